"""A removed option is gone, others are left, and the task differs in one step."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from modebench.domains import get_domain
from modebench.variation import get_variation
from tests.variation.cases import draw, every_domain, judge

# Most level-1 Countdown tasks have modes that differ in grouping alone.
MOST_NONE = {"countdown": 0.8, "mathir": 0.4}


def graph_step(before: Any, after: Any) -> bool:
    edges = len({tuple(e) for e in before["edges"]} ^ {tuple(e) for e in after["edges"]})
    shown = [a for a, b in zip(before["partial_colors"], after["partial_colors"], strict=True) if a != b]
    return (edges, shown) in ((1, []), (0, [None]))


def countdown_step(before: Any, after: Any) -> bool:
    new = Counter(after["numbers"]) - Counter(before["numbers"])
    return new.total() == 1 and len(before["numbers"]) == len(after["numbers"])


def python_step(before: Any, after: Any) -> bool:
    return sum(a != b for a, b in zip(before["cases"], after["cases"], strict=True)) == 1


def mathir_step(before: Any, after: Any) -> bool:
    kept = list(before["actions"].values())
    gone = [text for text in kept if text not in after["actions"].values()]
    same = all(before[field] == after[field] for field in ("bindings", "initial_lhs", "initial_rhs"))
    return same and len(gone) == 1 and [t for t in kept if t not in gone] == list(after["actions"].values())


def pantry_step(before: Any, after: Any) -> bool:
    rows = zip(before["ingredients"], after["ingredients"], strict=True)
    changes = sum(a != b for a, b in rows)
    changes += len(set(before["forbidden_tags"]) ^ set(after["forbidden_tags"]))
    for key, limits in before["targets"].items():
        changes += sum(after["targets"][key][side] != value for side, value in limits.items())
    return changes == 1


STEPS: dict[str, Callable[[Any, Any], bool]] = {
    "graph_coloring": graph_step,
    "countdown": countdown_step,
    "python_factors": python_step,
    "mathir": mathir_step,
    "pantry_plan": pantry_step,
}


def check_removal(domain: str, count: int) -> None:
    source, module = get_domain(domain), get_variation(domain)
    missing, left, one = 0, [], 0
    for _, reference, solution in draw(domain, count):
        after = module.remove_option(reference, 1, solution.mode)
        if after is None:
            missing += 1
            continue
        modes = source.count_modes(after, 1)
        assert modes >= 1
        assert judge(domain, after, solution.answer).status != "correct"
        assert solution.mode not in {other.mode for other in source.solutions(after, 1)}
        assert STEPS[domain](reference, after)
        if domain not in ("countdown", "python_factors"):
            old = {other.mode for other in source.solutions(reference, 1)}
            assert old >= {other.mode for other in source.solutions(after, 1)}
        left.append(modes / source.count_modes(reference, 1))
        one += modes == 1
    print(domain, f"none {missing / count:.3f}, one left {one}, median {statistics.median(left):.2f}")
    assert missing / count <= MOST_NONE.get(domain, 0.1)


@every_domain
def test_removal(domain: str) -> None:
    check_removal(domain, {"mathir": 3, "pantry_plan": 6}.get(domain, 40))


@pytest.mark.slow
@every_domain
def test_removal_on_two_hundred_tasks(domain: str) -> None:
    check_removal(domain, 200)


@every_domain
def test_only_modes_of_the_task_can_be_removed(domain: str) -> None:
    _, reference, _ = next(iter(draw(domain, 1)))
    with pytest.raises(ValueError, match=r"not a mode of this task|expected"):
        get_variation(domain).remove_option(reference, 1, f"{domain}:nothing")


def test_countdown_survivors_follow_their_operations() -> None:
    module, removed = get_variation("countdown"), 0
    for _, reference, solution in draw("countdown", 40):
        after = module.remove_option(reference, 1, solution.mode)
        if after is None:
            continue
        removed += 1
        [old] = Counter(reference["numbers"]) - Counter(after["numbers"])
        [new] = Counter(after["numbers"]) - Counter(reference["numbers"])
        followed = {
            other.mode: re.sub(rf"\b{old}\b", str(new), other.answer)
            for other in get_domain("countdown").solutions(reference, 1)
        }
        right = {mode for mode, text in followed.items() if judge("countdown", after, text).mode}
        assert right
        assert solution.mode not in right
    assert removed > 4


def test_a_rule_that_generalises_can_be_made_to_fail() -> None:
    module = get_variation("python")
    reference = module.parse("P12,18,20,50")
    mode, rule = "python_factor:2,2,2,2", "\\boxed{lambda n: 2 if n%2==0 else 3}"
    assert judge("python_factors", reference, rule).mode == mode
    after = module.remove_option(reference, 1, mode, rule)
    assert after is not None
    assert judge("python_factors", after, rule).status == "incorrect"


def test_a_shown_vertex_where_no_edge_can_be_added() -> None:
    module = get_variation("graph")
    after = module.remove_option(module.parse("G121323-???"), 1, "graph_coloring:123")
    assert after is not None
    assert after["partial_colors"].count(None) == 2
