"""What the tiny policy reads: tasks outside every frozen split, right answers uniform over modes, wrong ones.

A pool holds the tasks of a domain, drawn once from a seed out of laws wider than level 1. A task is left out
when its identity or its compact prompt is that of a frozen task of any level or split. The texts of a step
are a function of (pools, settings, seed, step), so a run that is continued reads what it would have read.

Five kinds of text: ``solve``, ``coached`` (the same behind the advice of a strategy, answers drawn from those
that follow it), ``menu``, ``free`` and ``card`` (`modebench.synthesis.compact`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any, Literal

from modebench.compact import compact_answer, compact_problem
from modebench.domains import DOMAINS, get_domain
from modebench.laws.countdown import targets
from modebench.pretraining.preferences import preferred
from modebench.prompts import build_messages
from modebench.splits import LEVELS, SIZES
from modebench.strategies import STRATEGIES, Strategy
from modebench.synthesis.compact import (
    DIFFICULTIES,
    INTENTS,
    NOTES,
    REJECTIONS,
    CardContext,
    card_prompt,
    free_prompt,
    menu_prompt,
    write_card,
)
from modebench.tasks import Task, load_tasks
from modebench.variation import CompactError, get_variation
from modebench.verifiers import verify

Kind = Literal["solve", "coached", "menu", "free", "card"]
LEVEL = 1
SPLIT = "pretraining"
_DRY = 500
"""Draws in a row without a new task, after which a law has none left."""


@dataclass(frozen=True)
class Text:
    """A prompt and one reply to it, both as text.

    Attributes:
        domain, kind: what it teaches.
        prompt: what `modebench.prompts` renders, without the mark that ends a prompt.
        reply: the text to be written.
    """

    domain: str
    kind: Kind
    prompt: str
    reply: str


class Frozen:
    """Identities and compact prompts of all frozen tasks.

    Attributes:
        identities, prompts: of every domain, level and split.
    """

    def __init__(self, domains: Iterable[str] = DOMAINS) -> None:
        names = list(domains)
        tasks = [
            task
            for name in names
            for level in LEVELS
            for split in SIZES
            for task in load_tasks(name, level, split)
        ]
        self.identities = {get_domain(task.domain).identity(task.reference) for task in tasks}
        self.prompts = {(task.domain, compact_problem(task)) for task in tasks}

    def holds(self, task: Task) -> bool:
        """Whether a task, or one that reads the same, is frozen."""
        identity = get_domain(task.domain).identity(task.reference)
        return identity in self.identities or (task.domain, compact_problem(task)) in self.prompts


def make_task(domain: str, reference: Mapping[str, Any]) -> Task:
    """A task of the pretraining split; its problem text is not written, nothing reads it."""
    return Task(get_domain(domain).identity(reference), domain, LEVEL, SPLIT, "", reference)


@dataclass(frozen=True)
class Source:
    """A task with all its right answers.

    Attributes:
        task: outside every frozen split.
        answers: bare right answers, one a mode.
    """

    task: Task
    answers: tuple[str, ...]

    @cached_property
    def right(self) -> frozenset[str]:
        return frozenset(self.answers)

    def coached(self, strategy: Strategy) -> Sequence[str]:
        """The right answers that follow a strategy."""
        return preferred(self.task.domain, strategy.name, self.task.reference, self.answers)


@dataclass(frozen=True)
class Varied:
    """A right solution and what the operators of the domain made of its task.

    Attributes:
        source: the task with its answers.
        solution: the right answer that is shown.
        texts: compact text of the varied task, by the menu's letter; only what no frozen task reads like.
    """

    source: Source
    solution: str
    texts: Mapping[str, str]


@dataclass
class Pool:
    """The tasks of one domain.

    Attributes:
        domain: its name.
        sources: tasks with answers, in the order in which they were drawn.
        varied: solutions of some of them with varied tasks.
        excluded: how many tasks were drawn and left out because they are frozen.
    """

    domain: str
    sources: list[Source] = field(default_factory=list)
    varied: list[Varied] = field(default_factory=list)
    excluded: int = 0

    @cached_property
    def by_difficulty(self) -> tuple[list[Source], ...]:
        """Sources by thirds of their number of modes, few modes last; all in each third where they agree."""
        ordered = sorted(self.sources, key=lambda source: -len(source.answers))
        if len(ordered[0].answers) == len(ordered[-1].answers):
            return (ordered, ordered, ordered)
        third = len(ordered) // 3
        return ordered[:third], ordered[third : 2 * third], ordered[2 * third :]


def make_pool(domain: str, seed: int, size: int, variations: int, frozen: Frozen) -> Pool:
    """Draw the pool of a domain.

    Args:
        domain: its name.
        seed: of the pool.
        size: tasks wanted; a law that runs dry gives fewer.
        variations: solutions with varied tasks.
        frozen: what is left out.
    """
    rng = random.Random(f"{seed}|pool|{domain}")
    pool, seen, stale = Pool(domain), set(), 0
    for reference in _LAWS[domain](rng):
        task = make_task(domain, reference)
        if task.id in seen:
            stale += 1
            if stale == _DRY:
                break
            continue
        stale = 0
        seen.add(task.id)
        if frozen.holds(task):
            pool.excluded += 1
            continue
        found = get_domain(domain).solutions(reference, LEVEL)
        answers = tuple(dict.fromkeys(compact_answer(solution.answer) for solution in found))
        if answers:
            pool.sources.append(Source(task, answers))
        if len(pool.sources) == size:
            break
    for number in range(variations):
        source = pool.sources[number % len(pool.sources)]
        pool.varied.append(_vary(rng, source, frozen))
    pool.varied = [varied for varied in pool.varied if varied.texts]
    return pool


def _vary(rng: random.Random, source: Source, frozen: Frozen) -> Varied:
    task = source.task
    variation = get_variation(task.domain)
    solution = rng.choice(source.answers)
    texts = {}
    for letter, operator in zip(ascii_uppercase, variation.operators, strict=False):
        after = operator.apply(rng, task.reference, solution)
        if after is None or frozen.holds(make_task(task.domain, after)):
            continue
        try:
            texts[letter] = variation.write(after)
        except CompactError:  # too long for a line
            continue
    return Varied(source, solution, MappingProxyType(texts))


# Laws: endless references, or all of them in a random order -------------------------------------


def _level1(domain: str) -> Callable[[random.Random], Iterator[Mapping[str, Any]]]:
    def law(rng: random.Random) -> Iterator[Mapping[str, Any]]:
        while True:
            yield get_domain(domain).generate(rng, LEVEL)

    return law


def _countdowns(rng: random.Random) -> Iterator[Mapping[str, Any]]:
    """Three numbers of 2 to 12, and as many with one of 13 to 20; any number of modes, targets up to 60."""
    near, far = _countdown_tasks(12), _countdown_tasks(20)
    far = [task for task in far if max(task[0]) > 12]
    order = near + rng.sample(far, len(near))
    rng.shuffle(order)
    for numbers, target in order:
        yield {"verifier": "countdown", "numbers": list(numbers), "target": target}


def _countdown_tasks(largest: int) -> list[tuple[tuple[int, ...], int]]:
    return [
        (numbers, int(target))
        for numbers in combinations(range(2, largest + 1), 3)
        for target in targets(numbers, 60).values
    ]


def _menus(rng: random.Random) -> Iterator[Mapping[str, Any]]:
    """Level 1, every other task with one command of its menu left out."""
    while True:
        reference = dict(get_domain("mathir").generate(rng, LEVEL))
        if rng.random() < 0.5:
            commands = list(reference["actions"].values())
            commands.pop(rng.randrange(len(commands)))
            reference["actions"] = dict(zip(ascii_uppercase, commands, strict=False))
        yield reference


_LAWS = MappingProxyType(
    {
        "graph_coloring": _level1("graph_coloring"),
        "countdown": _countdowns,
        "python_factors": _level1("python_factors"),
        "mathir": _menus,
        "pantry_plan": _level1("pantry_plan"),
    }
)

# Wrong answers ----------------------------------------------------------------------------------


def wrong_answer(rng: random.Random, source: Source) -> str:
    """An answer of the right form that the verifier refuses.

    Python: one or two outputs of a right table become numbers that don't divide. MathIR: one command of a
    right answer becomes another. Otherwise a uniform answer of the form.
    """
    for _ in range(1_000):
        answer = _candidate(rng, source)
        if answer in source.right:
            continue
        task = {"domain": source.task.domain, "level": LEVEL, "reference": source.task.reference}
        if verify(task, answer).mode is None:
            return answer
    raise RuntimeError(f"{source.task.id} has no wrong answer")


def _candidate(rng: random.Random, source: Source) -> str:
    task = source.task
    if task.domain == "python_factors":
        return _spoiled_table(rng, task.reference["cases"], rng.choice(source.answers))
    if task.domain == "mathir":
        letters = rng.choice(source.answers).split(";")
        letters[rng.randrange(len(letters))] = rng.choice(list(task.reference["actions"]))
        return ";".join(letters)
    return compact_answer(get_domain(task.domain).random_answer(rng, task.reference, LEVEL))


def _spoiled_table(rng: random.Random, cases: Sequence[int], answer: str) -> str:
    *tests, last = answer.removeprefix("lambda n: ").split(" else ")
    for place in rng.sample(range(len(cases)), rng.randint(1, 2)):
        wrong = [d for d in range(2, cases[place]) if cases[place] % d]
        if place < len(tests):
            tests[place] = f"{rng.choice(wrong)} if n=={cases[place]}"
        else:
            last = str(rng.choice(wrong))
    return "lambda n: " + " else ".join([*tests, last])


# Texts ------------------------------------------------------------------------------------------


def solving_texts(
    rng: random.Random, pool: Pool, prompts: int, answers: int, noise: float, coached: float
) -> list[Text]:
    """Texts of the kinds ``solve`` and ``coached``.

    Args:
        rng: the only source of randomness.
        pool: tasks to choose from.
        prompts: how many.
        answers: replies to each, right ones of different modes where there are enough.
        noise: share of wrong replies.
        coached: share of prompts that begin with the advice of a strategy.
    """
    texts = []
    for source in rng.choices(pool.sources, k=prompts):
        right: Sequence[str] = source.answers
        kind: Kind = "solve"
        prefix = ""
        if rng.random() < coached:
            strategy = rng.choice(STRATEGIES[pool.domain])
            kind, prefix, right = "coached", strategy.advice, source.coached(strategy)
        drawn = rng.sample(right, answers) if len(right) >= answers else rng.choices(right, k=answers)
        [message] = build_messages(source.task, "compact", prefix=prefix)
        for answer in drawn:
            reply = wrong_answer(rng, source) if rng.random() < noise else answer
            texts.append(Text(pool.domain, kind, message["content"], reply))
    return texts


def writing_texts(rng: random.Random, pool: Pool, menus: int, frees: int, cards: int) -> Iterator[Text]:
    """Texts of the kinds ``menu``, ``free`` and ``card``, so many of each."""
    for varied in rng.choices(pool.varied, k=menus):
        prompt = menu_prompt(varied.source.task, varied.solution)
        yield Text(pool.domain, "menu", prompt, rng.choice(list(varied.texts)))
    for varied in rng.choices(pool.varied, k=frees):
        prompt = free_prompt(varied.source.task, varied.solution)
        yield Text(pool.domain, "free", prompt, rng.choice(list(varied.texts.values())))
    for _ in range(cards):
        yield _card_text(rng, pool)


def _card_text(rng: random.Random, pool: Pool) -> Text:
    """A card whose difficulty and style mostly answer the context: harder when the pool was too easy."""
    names = [strategy.name for strategy in STRATEGIES[pool.domain]]
    often, rare = rng.sample(names, 2)
    counts = (rng.randrange(33), rng.randrange(33), rng.randrange(33))
    context = CardContext(counts, often, rare, rng.choice(names), rng.choice(REJECTIONS))
    wanted = 2 if counts[0] == max(counts) else 0 if counts[2] == max(counts) else 1
    difficulty = wanted if rng.random() < 0.8 else rng.randrange(3)
    style = rare if rng.random() < 0.7 else rng.choice(names)
    source = rng.choice(pool.by_difficulty[difficulty])
    [strategy] = [known for known in STRATEGIES[pool.domain] if known.name == style]
    solution = rng.choice(source.coached(strategy))
    fields = {
        "teaching_intent": INTENTS[difficulty],
        "target_reasoning_style": style,
        "expected_reasoner_weakness": context.weak,
        "difficulty_estimate": DIFFICULTIES[difficulty],
        "problem": get_variation(pool.domain).write(source.task.reference),
        "solution": solution,
        "final_answer": solution,
        "verification_notes": NOTES[0],
        "novelty_notes": NOTES[1],
    }
    return Text(pool.domain, "card", card_prompt(pool.domain, context), write_card(fields))
