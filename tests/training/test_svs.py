"""SVS, step by step, on a policy whose replies are written here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.domains import get_domain
from modebench.errors import UsageError
from modebench.tasks import Task, load_tasks
from modebench.training.batch import Group, Rollout
from modebench.training.methods import build
from modebench.training.part import Asked, Sample, with_options
from modebench.training.proposals import Proposal
from modebench.training.svs import Svs, Synthesis, in_band
from modebench.variation import get_variation
from modebench.variation.base import mode_of

PROGRAM = "lambda n: 2 if n%2==0 else 5"
TEXTS = ("P8,25", "P10,35", "P8,55", "P12,25", "P14,35", "P16,55", "P18,25", "P20,35")
"""Valid tasks around `PROGRAM`, of which none is a frozen one."""


def task(text: str = "P6,35", domain: str = "python_factors", identity: str = "source") -> Task:
    reference = get_variation(domain).parse(text)
    problem = get_domain(domain).problem(reference, 1)
    return Task(identity, domain, 1, "train", problem, reference, 2)


def reply(text: str, reward: float = 0.0, mode: str | None = None, cut: bool = False) -> Rollout:
    status = "correct" if reward else "incorrect"
    return Rollout((3, 4, 7), (-1.0,) * 3, text, "length" if cut else "stop", 0, reward, status, mode)


def solved(right: int, size: int = 8, of: Task | None = None) -> Group:
    """A group with so many right rollouts."""
    members = [reply(PROGRAM, 1.0, "python_factor:2,5")] * right + [reply("lambda n: 3")] * (size - right)
    return Group(task() if of is None else of, (1, 2), tuple(members))


@dataclass
class Script:
    """Answers what is asked: the n-th prompt for a task with the n-th list of texts, a task with right and
    wrong rollouts.

    Attributes:
        texts: replies to prompts for tasks; a text that ends in "…" was cut.
        right: right rollouts of a made task by its compact text; 4 of those that are not named.
        room: groups that the budget has room for.
        asked: all prompts so far.
    """

    texts: Sequence[Sequence[str]] = (TEXTS,)
    right: Mapping[str, int] = field(default_factory=dict)
    room: int = 1_000
    asked: list[Asked] = field(default_factory=list)

    def __call__(self, part: str, asked: Sequence[Asked]) -> list[Group]:
        assert part == "svs"
        found = []
        for ask in asked[: self.room]:
            if ask.purpose == "write":
                texts = self.texts[sum(each.purpose == "write" for each in self.asked)]
                assert ask.size == len(texts)
                members = [reply(text, cut=text.endswith("…")) for text in texts]
                group = Group(ask.task, (9,), tuple(members), purpose="write", source=part)
            else:
                right = self.right.get(get_variation(ask.task.domain).write(ask.task.reference), 4)
                group = Group(ask.task, (5, 6), solved(right, ask.size).rollouts, source=part)
            self.asked.append(ask)
            found.append(group)
        self.room -= len(found)
        return found

    @property
    def posed(self) -> list[Asked]:
        return [ask for ask in self.asked if ask.purpose == "solve"]


def step(
    part: Svs, groups: list[Group], script: Script, state: Synthesis | None = None
) -> tuple[list[Group], Sequence[Proposal]]:
    state = part.state(0) if state is None else state
    trained = part.extend(groups, Sample("compact", "svs", script), state)
    return trained, part.proposals(state)


def written(groups: Sequence[Group]) -> list[Group]:
    return [group for group in groups if group.purpose == "write"]


# Band and reward --------------------------------------------------------------------------------


def test_the_reward_by_the_number_of_right_rollouts() -> None:
    found = []
    for right in range(9):
        trained, proposals = step(Svs(), [solved(1)], Script(right={TEXTS[0]: right}))
        found.append(proposals[0].reward)
        assert [proposal.reward for proposal in proposals[1:]] == [1] * 7
        assert written(trained)[0].reward_G.tolist() == [proposal.reward for proposal in proposals]
    assert found == [0, 1, 1, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("right", range(9))
def test_the_band_has_both_its_ends(right: int) -> None:
    script = Script([TEXTS] * 8)
    step(Svs(), [solved(right)], script)
    asked = [ask for ask in script.asked if ask.purpose == "write"]
    assert len(asked) == (right if 1 <= right <= 4 else 0)


@given(size=st.integers(1, 64), eighths=st.tuples(st.integers(0, 8), st.integers(0, 8)))
@settings(deadline=None)
def test_shares_are_compared_as_counts(size: int, eighths: tuple[int, int]) -> None:
    low, high = min(eighths), max(eighths)
    for count in range(size + 1):
        exact = Fraction(low, 8) * size <= count <= Fraction(high, 8) * size
        assert in_band(count, size, low / 8, high / 8) == exact


def test_groups_that_are_paid_alike_have_no_gradient() -> None:
    method = build("svs", max_completion_length=8)
    trained, _ = step(Svs(), [solved(1)], Script())
    [group] = written(trained)
    assert group.reward_G.tolist() == [1] * 8
    credit = method._credit(group, method.state(0))
    assert not credit.advantage_G.any()
    trained, _ = step(Svs(), [solved(1)], Script(right={TEXTS[0]: 8}))
    [group] = written(trained)
    advantage_G = method._credit(group, method.state(0)).advantage_G
    reward_G = np.array([0.0] + [1.0] * 7)
    assert advantage_G == pytest.approx((reward_G - 7 / 8) / (reward_G.std(ddof=1) + 1e-6))


# What is refused --------------------------------------------------------------------------------


def test_a_malformed_task_earns_nothing_and_inherits_nothing() -> None:
    """In the released code a reply that could not be read kept the problem of the reply before it."""
    texts = (TEXTS[0], "no task", TEXTS[1], "", TEXTS[2], "P8,25…", "P9", TEXTS[3])
    script = Script([texts])
    trained, proposals = step(Svs(), [solved(1)], script)
    assert [proposal.reward for proposal in proposals] == [1, 0, 1, 0, 1, 0, 0, 1]
    assert [proposal.failure for proposal in proposals] == [
        None, "unreadable", None, "unreadable", None, "truncated", "unsolvable", None,
    ]  # fmt: skip
    assert len(script.posed) == 4
    for proposal in proposals:
        assert (proposal.size is None) == (proposal.failure is not None)
        if proposal.failure in ("unreadable", "truncated", "unsolvable"):
            assert proposal.reference is None
    assert written(trained)[0].reward_G.tolist() == [1, 0, 1, 0, 1, 0, 0, 1]


def test_copies_of_the_source_and_wrong_tasks_are_refused_and_what_is_inherited_is_not() -> None:
    for check, asked in (("executed", 1), ("inherited", 3)):
        script = Script([("P35,6", "P8,21", "P8,25")])
        part = with_options(Svs(problems=3), {"check": check})
        _, proposals = step(part, [solved(1)], script)
        assert [proposal.failure for proposal in proposals] == ["copy", "wrong", None]
        assert len(script.posed) == asked


def test_held_out_tasks_are_never_asked() -> None:
    cases = load_tasks("python_factors", 1, "eval").tasks[0].reference["cases"]
    divisors = [next(d for d in range(2, n) if n % d == 0) for n in cases]
    tests = [f"{d} if n=={n} else " for d, n in zip(divisors[:-1], cases[:-1], strict=True)]
    program = f"lambda n: {''.join(tests)}{divisors[-1]}"
    # Right on the source too, whose last case is twice the last one.
    source = task("P" + ",".join(map(str, [*cases[:-1], 2 * cases[-1]])))
    members = (reply(program, 1.0, "python_factor:"), *[reply("lambda n: 0")] * 7)
    for check in ("executed", "inherited"):
        part = with_options(Svs(problems=2), {"check": check})
        state = part.state(0)
        part.prepare([source], lambda text: (), state)
        script = Script(
            [("P" + ",".join(map(str, cases)), "P" + ",".join(map(str, [*cases[:-1], 4 * cases[-1]])))]
        )
        _, proposals = step(part, [Group(source, (1, 2), members)], script, state)
        assert [proposal.failure for proposal in proposals] == ["held_out", None]
        assert [proposal.reward for proposal in proposals] == [0, 1]
        assert len(script.posed) == 1


def test_copies_within_a_step_are_asked_once_and_paid_alike() -> None:
    texts = ("P8,25", "P25,8", TEXTS[1], "P8,25")
    script = Script([texts], right={"P8,25": 8})
    part = Svs(problems=4)
    state = part.state(0)
    _, proposals = step(part, [solved(1)], script, state)
    assert [ask.task.reference["cases"] for ask in script.posed] == [[8, 25], [10, 35]]
    assert [proposal.reward for proposal in proposals] == [0, 0, 1, 0]
    assert [proposal.failure for proposal in proposals] == [None, "repeated", None, "repeated"]
    assert [proposal.correct for proposal in proposals] == [8, None, 4, None]
    again = Script([("P8,25", TEXTS[2], TEXTS[1], TEXTS[3])])
    _, proposals = step(part, [solved(1)], again, state)
    assert [proposal.failure for proposal in proposals] == ["repeated", None, "repeated", None]
    assert [proposal.reward for proposal in proposals] == [0, 1, 0, 1]


def test_made_tasks_are_forgotten_beyond_the_window() -> None:
    state = Synthesis(0)
    state.remember(["a", "b"], 3)
    state.remember(["c", "d"], 3)
    assert list(state.known) == ["b", "c", "d"]
    state.remember(["e"], 0)
    assert not state.known
    restored = Synthesis(1)
    state.known, state.updates = {"x": None}, 4
    restored.load_state_dict(json.loads(json.dumps(state.state_dict())))
    assert (restored.seed, restored.updates, restored.known) == (0, 4, {"x": None})


def test_what_a_refused_task_is_paid() -> None:
    texts = (TEXTS[0], "no task", TEXTS[1], TEXTS[2])
    script = Script([texts], right={TEXTS[1]: 8})
    trained, proposals = step(Svs(problems=4, invalid_reward=-1), [solved(1)], script)
    assert [proposal.reward for proposal in proposals] == [1, -1, 0, 1]
    assert written(trained)[0].reward_G.tolist() == [1, -1, 0, 1]


# Answers ----------------------------------------------------------------------------------------


def test_the_source_solution_is_right_on_every_task_that_is_asked() -> None:
    script = Script()
    step(Svs(), [solved(1)], script)
    assert len(script.posed) == 8
    for ask in script.posed:
        assert mode_of("python_factors", ask.task.reference, 1, PROGRAM) is not None
        assert ask.messages is None
        assert PROGRAM not in ask.task.problem
        assert ask.task.problem == get_domain("python_factors").problem(ask.task.reference, 1)
        assert ask.task.modes == get_variation("python_factors").validate(ask.task.reference, 1)
        assert ask.task.split == "synthetic"
    assert len({ask.task.id for ask in script.posed}) == 8


def test_an_inherited_answer_is_that_of_the_source_unchanged() -> None:
    script = Script([(*TEXTS[:6], "P8,21", "none")])
    _, proposals = step(Svs(check="inherited"), [solved(1)], script)
    assert len(script.posed) == 7
    for ask, text in zip(script.posed, (*TEXTS[:6], "P8,21"), strict=True):
        assert ask.task.reference is task().reference or ask.task.reference == task().reference
        assert ask.messages is not None
        assert ask.messages[-1]["content"] == text
    # The log has what execution would have said.
    assert [proposal.failure for proposal in proposals[6:]] == ["wrong", "unreadable"]
    assert proposals[6].reward == 1
    assert proposals[7].reward == 0


# What is trained on -----------------------------------------------------------------------------


def test_three_kinds_of_groups_in_one_update() -> None:
    other = [solved(right, of=task(identity=f"other{right}")) for right in (0, 6, 8)]
    right = dict(zip(TEXTS, (0, 1, 8, 3, 5, 6, 2, 4), strict=True))
    trained, _ = step(Svs(), [solved(1), *other], Script(right=right))
    own = [group for group in trained if group.source == "tasks"]
    assert [group.reward_G.sum() for group in own] == [1, 6]
    [paid] = written(trained)
    assert paid.reward_G.tolist() == [0, 1, 0, 1, 1, 0, 1, 1]
    made = [group for group in trained if group.source == "svs" and group.purpose == "solve"]
    assert [group.reward_G.sum() for group in made] == [1, 3, 5, 6, 2, 4]
    assert len(trained) == 2 + 1 + 6


def test_groups_of_written_tasks_without_a_rewarded_one_are_left_out() -> None:
    right = dict.fromkeys(TEXTS, 8)
    trained, proposals = step(Svs(), [solved(1)], Script(right=right))
    assert [proposal.reward for proposal in proposals] == [0] * 8
    assert trained == [solved(1)]


def test_a_step_without_a_made_task() -> None:
    outside = [solved(6), solved(8)]
    assert step(Svs(), outside, Script()) == ([], [])
    assert step(Svs(empty="train"), outside, Script())[0] == [solved(6)]
    trained, proposals = step(Svs(), [solved(1)], Script([["no task"] * 8]))
    assert trained == []
    assert len(proposals) == 8
    assert step(Svs(form="none"), [solved(1), *outside], Script())[0] == [solved(1), solved(6)]


def test_without_learning_the_writer_is_paid_and_not_trained() -> None:
    trained, proposals = step(Svs(learn=False), [solved(1)], Script(right={TEXTS[0]: 8}))
    assert not written(trained)
    assert [proposal.reward for proposal in proposals] == [0, *[1] * 7]
    assert len(trained) == 1 + 7


def test_what_is_generated() -> None:
    """B (n + c n (1 + n)) with c right solutions in the band, where every text is another valid task."""
    right = [2, 0, 6, 3]
    groups = [solved(each, of=task(identity=str(number))) for number, each in enumerate(right)]
    pool = [f"P{2 * a},{5 * b}" for a in range(4, 24) for b in (5, 7, 11, 13)]
    texts = [pool[8 * place : 8 * place + 8] for place in range(5)]
    script = Script(texts)
    _, proposals = step(Svs(), groups, script)
    assert all(proposal.valid for proposal in proposals)
    assert sum(ask.size for ask in script.asked) == (2 + 3) * 8 * (1 + 8)
    capped = Script(texts)
    step(Svs(max_solutions=1, problems=8, solutions=4), groups, capped)
    assert [ask.size for ask in capped.asked] == [8] * 2 + [4] * 16


def test_where_the_budget_ends_nothing_is_paid_by_halves() -> None:
    two = [solved(1, of=task(identity="a")), solved(1, of=task(identity="b"))]
    texts = [TEXTS[:4], TEXTS[4:]]
    part = Svs(problems=4)
    trained, proposals = step(part, two, Script(texts, room=2 + 5))
    assert [proposal.reward for proposal in proposals] == [1] * 5 + [None] * 3
    assert len(written(trained)) == 1
    trained, _ = step(part, two, Script(texts, room=1))
    assert trained == []


# Forms ------------------------------------------------------------------------------------------


def test_a_menu_is_answered_by_letters() -> None:
    letters = ("A", "B", "Z", "A", "no", "B", "A", "A…")
    part = Svs(form="menu", max_length=2)
    script = Script([letters])
    _, proposals = step(part, [solved(1)], script)
    names = [operator.name for operator in get_variation("python_factors").operators]
    expected = [names[0], names[1], None, names[0], None, names[1], names[0], None]
    assert [proposal.operator for proposal in proposals] == expected
    failures = [proposals[place].failure for place in (2, 4, 7)]
    assert failures == ["unreadable", "unreadable", "truncated"]
    assert script.asked[0].max_tokens == 2
    repeat = step(part, [solved(1)], Script([letters]))[1]
    assert repeat == proposals


def test_a_template_is_drawn_and_asks_the_policy_for_nothing() -> None:
    part = Svs(form="template", problems=6)
    script = Script()
    state = part.state(7)
    trained, proposals = step(part, [solved(2)], script, state)
    assert len(proposals) == 2 * 6
    assert not written(trained)
    assert all(ask.purpose == "solve" for ask in script.asked)
    assert all(proposal.reward is None and proposal.text == proposal.operator for proposal in proposals)
    assert {proposal.operator for proposal in proposals} == {"swap_case", "swap_two_cases"}
    assert all(mode_of("python_factors", ask.task.reference, 1, PROGRAM) for ask in script.posed)
    # The draws are those of the run seed and the update, wherever it goes on.
    restored = part.state(0)
    restored.load_state_dict(json.loads(json.dumps(state.state_dict())))
    later = [step(part, [solved(2)], Script(), each)[1] for each in (state, restored)]
    assert later[0] == later[1] != proposals
    assert step(part, [solved(2)], Script(), part.state(8))[1] != proposals


def test_making_nothing_is_grpo_on_mixed_groups() -> None:
    """The rows of the ablation and those of GRPO with a filter are the same, bit for bit."""
    groups = [solved(right, of=task(identity=str(right))) for right in (0, 1, 4, 5, 8)]
    ablation = build("svs", {"svs.form": "none"}, max_completion_length=8)
    filtered = build(
        "grpo", {"dynamic_sampling.max_rounds": 1}, ["dynamic_sampling"], max_completion_length=8
    )
    rows = []
    for method in (ablation, filtered):
        state = method.state(0)
        kept = method.extend(method.filter(groups, state), Script(), "compact", state)
        rows.append(method.credit(kept, state))
    assert len(rows[0]) == len(rows[1]) == 24
    for one, other in zip(*rows, strict=True):
        assert one.advantage_T is not None
        assert other.advantage_T is not None
        assert (one.advantage_T == other.advantage_T).all()
        assert (one.weight_T == other.weight_T).all()
        assert (one.token_ids, one.group) == (other.token_ids, other.group)


# Options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lower": 0.6}, "svs.lower and svs.upper must be shares"),
        ({"reward_upper": 1.5}, "svs.reward_lower and svs.reward_upper must be shares"),
        ({"problems": 1}, "svs.problems must be at least 2, not 1"),
        ({"max_solutions": 0}, "svs.max_solutions must be at least 1"),
        ({"invalid_reward": 0.5}, "svs.invalid_reward must not be above 0"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Svs(**options)


def test_a_domain_without_variations_is_refused() -> None:
    other = Task("t", "letters", 1, "train", "", {})
    part = Svs()
    with pytest.raises(UsageError, match="svs: domain 'letters' has no variations"):
        part.prepare([other], lambda text: (), part.state(0))


@pytest.mark.parametrize(
    ("name", "adds", "said"),
    [
        ("reinforce", ["svs"], "svs needs a baseline"),
        ("synco", ["svs"], "one part of a method makes tasks"),
    ],
)
def test_what_it_does_not_go_with(name: str, adds: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build(name, adds=adds, max_completion_length=8)
