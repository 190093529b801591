"""SynCo (arXiv:2610.11345): who is asked what, what is paid, what is remembered; without a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modebench.domains import get_domain
from modebench.errors import InputError, UsageError
from modebench.prompts import build_messages, is_canonical
from modebench.synthesis.cards import Gates
from modebench.synthesis.compact import CARD_FIELDS, write_card
from modebench.synthesis.novelty import HeldOut, Recent
from modebench.tasks import Task, load_tasks
from modebench.training.batch import Group, Rollout
from modebench.training.methods import METHODS, build
from modebench.training.part import Asked, Sample
from modebench.training.proposals import Proposal
from modebench.training.synco import SYNTHESIZER, SynCo, Workshop
from modebench.training.synco_tasks import dealt, drawn, read_pool
from modebench.verifiers import verify
from tests.training.groups import worth

TASKS = load_tasks("python_factors", 1).tasks[:4]
RULE = "lambda n: 2 if n%2==0 else 3 if n%3==0 else 5 if n%5==0 else 7"
"""Right on every input of at most 120 that is not a prime."""


def card(problem: str, solution: str = RULE, **fields: str) -> str:
    base = dict.fromkeys(CARD_FIELDS, "x") | {"target_reasoning_style": "parity"}
    return write_card({**base, "problem": problem, "solution": solution, "final_answer": solution, **fields})


CARDS = [
    card("P14,15,22,25"),
    card("P26,27,34,35", solution="lambda n: 1"),
    card("P14,15,22,25"),
    card("P7,8"),
    "no card",
    card("P38,39,46,49"),
]
"""Good, of a wrong answer, a copy, unsolvable, unreadable, good."""


class Policies:
    """Stands in for both: writes given cards, and solves the first `right` of K rollouts of a task."""

    def __init__(self, cards: Sequence[str], right: Sequence[int], room: int | None = None) -> None:
        self.cards, self.right, self.room = cards, list(right), room
        self.asked: list[Asked] = []

    def __call__(self, part: str, asked: Sequence[Asked]) -> list[Group]:
        assert part == "synco"
        self.asked += asked
        return [replace(self._group(ask), source=part) for ask in asked[: self.room]]

    def _group(self, ask: Asked) -> Group:
        if ask.purpose == "write":
            texts = [self.cards[number % len(self.cards)] for number in range(ask.size)]
            members = [Rollout((number,), (-1.0,), text, "stop", 0, 0, "written", None) for number, text in
                       enumerate(texts)]  # fmt: skip
        else:
            right = self.right.pop(0)
            members = [_answer(number, right) for number in range(ask.size)]
        return Group(ask.task, (1,), tuple(members), purpose=ask.purpose, agent=ask.agent)


def _answer(number: int, right: int) -> Rollout:
    """The first `right` ones are right, each in a mode of its own."""
    told = (1.0, "correct", f"m{number}") if number < right else (0.0, "incorrect", None)
    return Rollout((number,), (-1.0,), RULE, "stop", 0, *told)


def ready(part: SynCo, tasks: Sequence[Task] = TASKS, seed: int = 0) -> Workshop:
    state = part.state(seed)
    part.prepare(tasks, lambda text: (), state)
    return state


def step(
    part: SynCo, state: Workshop, policies: Policies, profile: str = "compact"
) -> tuple[list[Group], list[Proposal]]:
    groups = part.extend([], Sample(profile, "synco", policies), state)
    return groups, list(part.proposals(state))


def test_one_step_by_hand() -> None:
    part = SynCo(slots=6)
    state = ready(part)
    policies = Policies(CARDS, [1, 2, 4])
    groups, proposals = step(part, state, policies)
    write, *solve = policies.asked
    assert (write.size, write.agent, write.purpose, write.max_tokens) == (6, SYNTHESIZER, "write", 6144)
    assert [(ask.size, ask.agent, ask.purpose) for ask in solve] == [(4, "policy", "solve")] * 3
    assert [proposal.failure for proposal in proposals] == [
        None, None, "repeated", "unsolvable", "unreadable", None,
    ]  # fmt: skip
    assert [proposal.teachability for proposal in proposals] == [0.5, 1, None, None, None, 0]
    # Gate(1) Gate(1) T(1/4); a wrong answer shuts the gate; T(1) = 0 is more than -1/2.
    assert proposals[0].quality == pytest.approx(1)
    assert [proposal.reward for proposal in proposals] == pytest.approx([0.5, 0, -0.5, -0.5, -0.5, 0])
    assert [proposal.correct for proposal in proposals] == [1, 2, None, None, None, 4]
    assert [group.agent for group in groups] == ["policy"] * 3 + [SYNTHESIZER]
    assert list(groups[-1].reward_G) == [proposal.reward for proposal in proposals]
    assert [group.task.reference["cases"] for group in groups[:3]] == [
        [14, 15, 22, 25],
        [26, 27, 34, 35],
        [38, 39, 46, 49],
    ]


def test_the_published_defaults() -> None:
    part = SynCo()
    assert (part.slots, part.size, part.slope, part.every, part.window) == (32, 4, 1, 5, 500)
    method = build("synco", max_completion_length=8)
    assert method.agents == [SYNTHESIZER]
    state = ready(part)
    groups, _ = step(part, state, Policies(CARDS, [2] * 3))
    assert groups[-1].size == 32
    assert groups[-1].agent == SYNTHESIZER


def test_the_runs_own_tasks_are_not_asked() -> None:
    method = build("synco", max_completion_length=8)
    assert method.plan(TASKS, 16, method.state(0)) == []


@pytest.mark.parametrize(
    ("pay", "reward"), [("gated", [1, -0.5]), ("additive", [0.3 + 0.2 + 0.2 + 0.15 + 0.15, -0.5])]
)
def test_rewards_are_minus_a_half_or_a_share(pay: Any, reward: list[float]) -> None:
    part = SynCo(slots=2, pay=pay)
    _, proposals = step(part, ready(part), Policies([CARDS[0], "no card"], [2]))
    assert [proposal.reward for proposal in proposals] == pytest.approx(reward)


def test_tasks_solved_in_several_ways_are_worth_more_in_the_modes_arm() -> None:
    part = SynCo(slots=2, teach="modes")
    _, [proposal, _] = step(part, ready(part), Policies([CARDS[0], "no card"], [2]))
    assert (proposal.modes, proposal.teachability) == (2, 1 * (1 + 2 / 4) / 2)


def test_where_all_cards_are_paid_alike_the_synthesizer_learns_nothing() -> None:
    method = build("synco", {"synco.slots": 2}, max_completion_length=8)
    part = next(part for part in method.parts if isinstance(part, SynCo))
    groups, _ = step(part, ready(part), Policies(["no card"], []))
    [group] = groups  # and without a task the reasoner has no step
    assert worth(method, group) == [0, 0]


def test_advantages_of_the_synthesizer_are_over_all_its_cards() -> None:
    method = build("synco", {"synco.slots": 6, "advantage.eps": 0}, max_completion_length=8)
    part = next(part for part in method.parts if isinstance(part, SynCo))
    groups, proposals = step(part, ready(part), Policies(CARDS, [1, 2, 4]))
    rewards = np.array([proposal.reward for proposal in proposals])
    expected = (rewards - rewards.mean()) / rewards.std(ddof=1)
    assert worth(method.of_written(), groups[-1], method.state(0)) == pytest.approx(list(expected))


def test_what_cannot_be_taught_is_left_out_where_that_is_asked_for() -> None:
    part = SynCo(slots=6, keep="teachable")
    groups, _ = step(part, ready(part), Policies(CARDS, [1, 0, 4]))
    assert [group.reward_G.sum() for group in groups[:-1]] == [1]


def test_a_budget_that_ends_within_a_step() -> None:
    part = SynCo(slots=6)
    groups, proposals = step(part, ready(part), Policies(CARDS, [1], room=1))
    assert [group.agent for group in groups] == ["policy"]  # cards that nobody tried cannot be paid
    assert [proposal.size for proposal in proposals] == [4, None, None, None, None, None]
    groups, proposals = step(part, ready(part), Policies(CARDS, [], room=0))
    assert groups == proposals == []


@pytest.mark.parametrize("profile", ["compact", "direct"])
def test_the_reasoner_sees_the_problem_alone(profile: str) -> None:
    part = SynCo(slots=6)
    policies = Policies(CARDS, [1, 2, 4])
    step(part, ready(part), policies, profile)
    for ask in policies.asked:
        if ask.purpose == "solve":
            assert ask.messages is None
            assert ask.prefix is None
            shown = json.dumps(build_messages(ask.task, profile))
            assert not any(word in shown for word in ("lambda n: 2", "parity", "solution", "final_answer"))
            assert ask.task.problem == get_domain(ask.task.domain).problem(ask.task.reference, 1)


def test_the_context_moves_every_so_many_steps_also_when_the_synthesizer_is_frozen() -> None:
    part = SynCo(source="frozen", slots=2, every=2, window=500)
    state = ready(part)
    prompts = []
    for number in range(4):
        policies = Policies([card(f"P{14 + 2 * number},{26 + 4 * number},95,93"), "no card"], [1])
        groups, proposals = step(part, state, policies)
        assert [group.agent for group in groups] == ["policy"] * len(groups)  # its cards are not trained on
        assert proposals[-1].reward == -0.5
        assert policies.asked[0].messages is not None
        prompts.append(policies.asked[0].messages[0]["content"])
    assert prompts[0] == prompts[1] != prompts[2] == prompts[3]
    assert prompts[0].endswith(
        "easy=0,learnable=0,hard=0,often=smallest,rare=size,weak=smallest,rejected=none"
    )
    assert prompts[2].endswith(
        "easy=0,learnable=2,hard=0,often=parity,rare=size,weak=parity,rejected=unreadable"
    )


def test_domains_take_turns() -> None:
    part = SynCo(slots=2)
    state = ready(part, [*TASKS, *load_tasks("countdown", 1).tasks[:2]])
    seen = []
    for _ in range(3):
        policies = Policies(["no card"], [])
        step(part, state, policies)
        seen.append(policies.asked[0].task.domain)
    assert seen == ["python_factors", "countdown", "python_factors"]


def test_a_saved_state_goes_on_as_the_first_one_would() -> None:
    part = SynCo(slots=6, every=2)
    state, again = ready(part), ready(part)
    for number in range(3):
        step(part, state, Policies(CARDS, [1, 2, 4][number:] + [0] * 3))
    again.load_state_dict(json.loads(json.dumps(state.state_dict())))
    assert again.state_dict() == state.state_dict()
    results = [step(part, one, Policies([*CARDS, card("P55,57,58,62")], [3])) for one in (state, again)]
    assert results[0] == results[1]
    assert again.state_dict() == state.state_dict()


@pytest.mark.parametrize(
    ("profile", "domain", "response", "canonical"),
    [
        ("compact", "python_factors", RULE, True),
        ("compact", "python_factors", f"\\boxed{{{RULE}}}", False),
        ("direct", "python_factors", f"\\boxed{{{RULE}}}", True),
        ("direct", "python_factors", RULE, False),
        ("direct", "pantry_plan", "010101", True),
        ("direct", "pantry_plan", "\\boxed{010101}", False),
    ],
)
def test_right_answers_in_another_form_are_paid_less(
    profile: str, domain: str, response: str, canonical: bool
) -> None:
    task = load_tasks(domain, 1).tasks[0]
    assert is_canonical(task, profile, response) == canonical
    part = SynCo()
    state = ready(part)
    state.begin(profile, 5)
    members = tuple(Rollout((1,), (0.0,), response, "stop", 0, r, "correct", "m") for r in (1.0, 0.0))
    group = Group(task, (1,), members, source="synco")
    assert list(part.reward(group, group.reward_G, state)) == [1.0 if canonical else 0.9, 0]
    own = replace(group, source="tasks")
    assert list(part.reward(own, own.reward_G, state)) == [1, 0]


def test_tasks_of_the_law_pass_the_same_gates() -> None:
    gates = Gates(Recent(), HeldOut(["python_factors"]))
    found = drawn(3, 1, "python_factors", 1, 20, gates)
    assert len(gates.recent.texts) == sum(checked.rejection is None for _, checked in found) > 15
    assert found == drawn(3, 1, "python_factors", 1, 20, Gates(Recent(), gates.held_out))
    assert found != drawn(3, 2, "python_factors", 1, 20, Gates(Recent(), gates.held_out))
    known = gates.recent.texts
    assert {checked.rejection for _, checked in drawn(3, 1, "python_factors", 1, 20, gates)} == {"repeated"}
    assert gates.recent.texts == known
    part = SynCo(source="random", slots=4)
    policies = Policies([], [2, 2, 2, 2])
    groups, proposals = step(part, ready(part), policies)
    assert part.agents == frozenset()
    assert {ask.purpose for ask in policies.asked} == {"solve"}
    assert [proposal.form for proposal in proposals] == ["law"] * 4
    assert all(proposal.reward is None for proposal in proposals)
    assert len(groups) == sum(proposal.valid for proposal in proposals)


def pool_of(folder: Path, *counts: int) -> list[dict[str, Any]]:
    """A run whose steps had so many valid tasks, and a refused one each."""
    references = [task.reference for task in load_tasks("python_factors", 1).tasks]
    lines = []
    for number, count in enumerate(counts, 1):
        for _ in range(count):
            valid = Proposal("card", "python_factors", 1, True, None, "card", reference=references.pop())
            lines.append(valid.record(number, "synco"))
        lines.append(Proposal("card", "python_factors", 1, False, "leak", "x").record(number, "synco"))
    folder.mkdir(exist_ok=True)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


def test_a_static_pool_has_the_other_runs_tasks_at_other_steps(tmp_path: Path) -> None:
    lines = pool_of(tmp_path / "run", 5, 0, 7)
    pool = read_pool(tmp_path / "run", TASKS)
    assert [len(own) for own in pool] == [5, 0, 7]
    steps = [dealt(pool, 0, number) for number in range(1, 7)]
    assert [len(own) for own in steps] == [5, 0, 7, 5, 0, 7]
    valid = [line["reference"]["cases"] for line in lines if line["valid"]]
    for epoch in (steps[:3], steps[3:]):
        cases = [each.reference["cases"] for own in epoch for each in own if each.reference]
        assert sorted(cases) == sorted(valid) != cases
    assert steps[:3] != steps[3:]
    assert steps[0] != dealt(pool, 1, 1)
    part = SynCo(source="static", pool=str(tmp_path / "run"))
    state = ready(part)
    policies = Policies([], [2] * 5)
    groups, proposals = step(part, state, policies)
    assert len(groups) == len(proposals) == 5
    assert part.agents == frozenset()
    assert verify(groups[0].task, f"\\boxed{{{RULE}}}").status == "correct"
    saved = state.state_dict()
    pool_of(tmp_path / "run", 5, 1, 7)
    with pytest.raises(UsageError, match=r"synco\.pool are not those that the run began with"):
        ready(part).load_state_dict(saved)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"step": "x"}, "step"),
        ({"domain": "countdown"}, "domain"),
        ({"reference": {"cases": "8"}}, "reference"),
        ({"valid": None}, "valid"),
    ],
)
def test_a_broken_pool_names_line_and_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    lines = pool_of(tmp_path / "run", 2)
    lines[1] |= change
    (tmp_path / "run/tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError, match=rf"tasks\.jsonl:2: {field}"):
        read_pool(tmp_path / "run", TASKS)


def test_options_are_checked(tmp_path: Path) -> None:
    for options, told in (
        ({"slots": 1}, "synco.slots must be at least 2, not 1"),
        ({"unboxed": 2}, "synco.unboxed must be at most 1"),
        ({"source": "static"}, "synco.pool and synco.source=static go together"),
        ({"pool": str(tmp_path)}, "synco.pool and synco.source=static go together"),
        ({"source": "static", "pool": str(tmp_path)}, "must be a training folder with tasks.jsonl"),
    ):
        with pytest.raises(UsageError, match=told):
            SynCo(**options)  # type: ignore[arg-type]
    pool_of(tmp_path / "none", 0)
    with pytest.raises(UsageError, match="has no valid task"):
        read_pool(tmp_path / "none", TASKS)
    with pytest.raises(UsageError, match="synco: domain 'letters' has no variations"):
        ready(SynCo(), [Task("t", "letters", 1, "train", "", {})])


def test_parts_that_need_tasks_to_come_back_are_refused() -> None:
    for added in ("svs", "coaching", "rlep", "dynamic_sampling"):
        with pytest.raises(UsageError, match="does not go with"):
            build("synco", adds=[added], max_completion_length=8)
    with pytest.raises(UsageError, match="synco needs a baseline"):
        build("reinforce", adds=["synco"], max_completion_length=8)
    alone = {"synco.source": "random", "synco.unboxed": 1}
    assert build("maxrl", alone, ["synco"], max_completion_length=8).agents == []
    assert build("synco", adds=["replay"], max_completion_length=8).agents == [SYNTHESIZER]
    assert METHODS["grpo"].agents == []
