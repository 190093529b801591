"""The model card of a pretrained tiny policy: what it does on frozen tasks, and how well it writes tasks.

Everything is measured by the ordinary harness on tasks that the policy never read. Beside each accuracy stand
the chance rows; the best constant is also given among the policy's own answers, because the best of all
constants may be of a form that this policy never writes (one Python program is right on every task).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from modebench.analysis.prefix_information import prefix_information
from modebench.config import EvalConfig, Selection
from modebench.domains import DOMAINS, get_domain
from modebench.evaluation import create_run, finish, task_seeds
from modebench.grading import judge
from modebench.pretraining.corpus import LEVEL, Frozen, make_task
from modebench.probing import Prefix
from modebench.runs import RunFolder, read_json_object
from modebench.samples import load_run
from modebench.sampling.base import Engine, GenerationSettings, Group, Message
from modebench.strategies import STRATEGIES
from modebench.synthesis.compact import (
    REJECTIONS,
    CardContext,
    card_prompt,
    free_prompt,
    menu_prompt,
    read_card,
    read_menu,
)
from modebench.synthesis.validity import free_failure
from modebench.tasks import Task, load_tasks
from modebench.variation import CompactError, Unsolvable, get_variation
from modebench.verifiers import verify
from modebench.verifiers.verdict import InvalidReference

LEVELS = {1: (128, 32), 2: (64, 8), 3: (64, 8), 4: (64, 8), 5: (64, 8)}
"""Tasks of each domain and samples of each task, by level."""
PROBED = (64, 8)
"""Tasks of each domain and samples under each strategy."""
ASKED = 64
"""Texts of each format and domain."""
MAX_TOKENS = 128
_CONSTANTS = 50


def measure(engine: Engine, model: str, folder: Path) -> dict[str, Any]:
    """All figures of the card.

    Args:
        engine: the policy.
        model: its model string, recorded in the run folders.
        folder: where the run folders go; finished ones are kept.
    """
    solving = []
    for level, (limit, samples) in LEVELS.items():
        run = _run(engine, model, folder / f"level{level}", _config(level, limit, samples))
        solving += [_solving_row(cell) for cell in read_json_object(run.summary_path)["cells"]]
        if level == LEVEL:
            for row in solving:
                row["best_own_constant"] = best_own_constant(run, row["domain"])
    limit, samples = PROBED
    prefixes = tuple(
        Prefix(strategy.name, strategy.advice, domain=domain, level=LEVEL)
        for domain in DOMAINS
        for strategy in STRATEGIES[domain]
    )
    run = _run(engine, model, folder / "coached", _config(LEVEL, limit, samples, prefixes))
    table = load_run(run.path).samples(texts=False)
    coached = prefix_information(table).to_dict("records")
    return {"solving": solving, "coached": coached, "writing": writing(engine)}


def _config(level: int, limit: int, samples: int, prefixes: tuple[Prefix, ...] = ()) -> EvalConfig:
    selection = Selection(levels=(level,), limit=limit)
    settings = GenerationSettings(max_tokens=MAX_TOKENS)
    return EvalConfig(
        selection=selection, samples=samples, settings=settings, profile="compact", prefixes=prefixes
    )


def _run(engine: Engine, model: str, path: Path, config: EvalConfig) -> RunFolder:
    run = RunFolder.open(path) if path.exists() else create_run(path, engine, model, config)
    if run.manifest["status"] != "success":
        finish(run, engine, None)
    return run


def _solving_row(cell: Mapping[str, Any]) -> dict[str, Any]:
    def value(name: str, row: Mapping[str, Any] = cell) -> float | None:
        found: float | None = row[name]["value"]
        return found

    chance = {name: value("accuracy", row) for name, row in cell["chance"].items() if "accuracy" in row}
    return {
        "domain": cell["domain"],
        "level": cell["level"],
        "prompts": cell["prompts"],
        "samples": cell["samples_per_prompt"],
        "accuracy": value("accuracy"),
        "pass@8": value("pass@8"),
        "pcmd": value("pcmd"),
        "eligible": cell["pcmd"].get("eligible", 0),
        "truncated": value("truncated_rate"),
        **chance,
    }


def best_own_constant(run: RunFolder, domain: str) -> float:
    """Share of a run's tasks on which the best of the model's commonest answers is right."""
    answers = Counter(
        str(record["response"])
        for record in run.responses()
        if record["domain"] == domain and record.get("error") is None
    )
    tasks = load_tasks(domain, LEVEL).tasks
    rights = [
        sum(judge(task, answer, "published", True, "stop").mode is not None for task in tasks)
        for answer, _ in answers.most_common(_CONSTANTS)
    ]
    return max(rights, default=0) / len(tasks)


# Writing tasks ----------------------------------------------------------------------------------


def writing(engine: Engine, seed: int = 0) -> list[dict[str, Any]]:
    """How many replies of each writing format are what they should be, a row a domain and format.

    ``read``: the reply has the format. ``works``: a menu's operator applies; a free text is another
    task that keeps the solution; a card's problem is solvable and its solution
    right. ``new``: of those that work, the share that no frozen task reads like (not of menus).
    """
    frozen = Frozen()
    rows = []
    for domain in DOMAINS:
        rng = random.Random(f"{seed}|writing|{domain}")
        sources = []
        for task in load_tasks(domain, LEVEL, "dev").tasks[:ASKED]:
            found = list(get_domain(domain).solutions(task.reference, LEVEL))
            sources.append((task, rng.choice(found).answer))
        asked = {
            "menu": [menu_prompt(*source) for source in sources],
            "free": [free_prompt(*source) for source in sources],
            "card": [card_prompt(domain, _context(rng, domain)) for _ in sources],
        }
        for kind, prompts in asked.items():
            replies = _replies(engine, [task for task, _ in sources], prompts)
            judged = [
                _JUDGES[kind](rng, task, solution, reply, frozen)
                for (task, solution), reply in zip(sources, replies, strict=True)
            ]
            works = sum(one[1] for one in judged)
            rows.append(
                {
                    "domain": domain,
                    "format": kind,
                    "asked": len(judged),
                    "read": sum(one[0] for one in judged) / len(judged),
                    "works": works / len(judged),
                    "new": sum(one[2] for one in judged) / works if works and kind != "menu" else None,
                }
            )
    return rows


def _context(rng: random.Random, domain: str) -> CardContext:
    names = [strategy.name for strategy in STRATEGIES[domain]]
    often, rare = rng.sample(names, 2)
    counts = (rng.randrange(33), rng.randrange(33), rng.randrange(33))
    return CardContext(counts, often, rare, rng.choice(names), rng.choice(REJECTIONS))


def _replies(engine: Engine, tasks: Sequence[Task], prompts: Sequence[str]) -> list[str]:
    config = EvalConfig()
    groups = [
        Group(task, (Message(role="user", content=prompt),), tuple(task_seeds(config, task.id, 1)))
        for task, prompt in zip(tasks, prompts, strict=True)
    ]
    replies = [""] * len(groups)
    for index, samples in engine.generate(groups, GenerationSettings(max_tokens=MAX_TOKENS)):
        replies[index] = samples[0].response
    return replies


Judged = tuple[bool, bool, bool]


def _judge_menu(rng: random.Random, task: Task, solution: str, reply: str, frozen: Frozen) -> Judged:
    try:
        name = read_menu(task.domain, reply)
    except ValueError:
        return False, False, False
    [operator] = [one for one in get_variation(task.domain).operators if one.name == name]
    return True, operator.apply(rng, task.reference, solution) is not None, False


def _judge_free(rng: random.Random, task: Task, solution: str, reply: str, frozen: Frozen) -> Judged:
    try:
        after = get_variation(task.domain).parse(reply)
    except CompactError:
        return False, False, False
    works = free_failure(task, solution, after) is None
    return True, works, works and not frozen.holds(make_task(task.domain, after))


def _judge_card(rng: random.Random, task: Task, solution: str, reply: str, frozen: Frozen) -> Judged:
    variation = get_variation(task.domain)
    try:
        card = read_card(reply)
        written = variation.parse(card["problem"])
    except ValueError:
        return False, False, False
    try:
        variation.validate(written, LEVEL)
    except (InvalidReference, Unsolvable):
        return True, False, False
    place = {"domain": task.domain, "level": LEVEL, "reference": written}
    works = verify(place, card["solution"]).mode is not None
    return True, works, works and not frozen.holds(make_task(task.domain, written))


_JUDGES = {"menu": _judge_menu, "free": _judge_free, "card": _judge_card}


# The card ---------------------------------------------------------------------------------------


def render(figures: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The card as Markdown.

    Args:
        figures: of `measure`.
        facts: ``parameters``, ``vocabulary``, ``seed``, ``steps``, ``pools`` (by domain: tasks, excluded),
            ``frozen`` (number of frozen tasks), ``versions``.
    """
    pools = pd.DataFrame([{"domain": domain, **pool} for domain, pool in facts["pools"].items()])
    parts = [
        "# The tiny policy",
        f"A Llama of {facts['parameters']:,} parameters in float32 with {facts['vocabulary']} tokens, made "
        f"by `modebench pretrain --seed {facts['seed']}` in {facts['steps']:,} steps. It answers the prompt "
        "profile `compact` and knows no natural language. It is a subject for experiments with methods of "
        "training, not a model of anything else.",
        "## Solving",
        "Frozen eval tasks, temperature 1. `shuffled`: the same answers judged on other prompts; `uniform`: "
        "uniform answers of the right form; `best_constant`: the best single answer for all prompts; "
        "`best_own_constant`: the best of the policy's own commonest answers. An accuracy means something "
        "where it is above all of them. `eligible`: prompts with two right samples, on which PCMD rests.",
        _table(pd.DataFrame(figures["solving"])),
        "## Coach prefixes",
        "Mutual information of strategy and mode of right answers at level 1, bits a task: as sampled, with "
        "the strategies shuffled, and the difference with its 95 % interval.",
        _table(pd.DataFrame(figures["coached"])),
        "## Writing tasks",
        f"Shares of {ASKED} replies a domain and format, at temperature 1, to dev tasks: `read` has the "
        "format; `works` executes (a menu's operator applies; a free text is another task that keeps the "
        "solution; a card's problem is solvable and its solution right); `new`: no frozen task reads like "
        "it.",
        _table(pd.DataFrame(figures["writing"])),
        "## What it read",
        f"Tasks drawn from laws wider than level 1. Of the {facts['frozen']:,} frozen tasks of all levels "
        "and splits none was read: `excluded` counts the tasks that were drawn and left out because their "
        "identity or their compact prompt is that of a frozen one.",
        _table(pools),
        f"Versions: {', '.join(f'{name} {version}' for name, version in facts['versions'].items())}.",
    ]
    return "\n\n".join(parts) + "\n"


def _table(table: pd.DataFrame) -> str:
    """A Markdown table; numbers with three places."""

    def shown(value: Any) -> str:
        if value is None or value != value:
            return "–"
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    lines = [list(map(str, table.columns)), ["---"] * len(table.columns)]
    lines += [[shown(value) for value in row] for row in table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
