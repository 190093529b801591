"""Copies and near copies of written tasks."""

from __future__ import annotations

import pytest

from modebench.domains import DOMAINS
from modebench.synthesis.novelty import HeldOut, Recent, features, jaccard
from modebench.tasks import load_tasks
from modebench.variation import Unsolvable, get_variation


def parsed(domain: str, text: str) -> dict[str, object]:
    return get_variation(domain).parse(text)


def test_similarity_by_hand() -> None:
    assert jaccard(frozenset("abc"), frozenset("bcd")) == 0.5
    assert jaccard(frozenset(), frozenset()) == 1
    # 8 and 9 of the cases are shared, of five in all.
    one, other = (features("python_factors", parsed("python_factors", t)) for t in ("P8,9,10", "P8,9,12,14"))
    assert jaccard(one, other) == pytest.approx(2 / 5)
    # Two numbers and the target are shared; 3 stands twice in one of them.
    pair = [features("countdown", parsed("countdown", t)) for t in ("C2,3,3=6", "C2,3,5=6")]
    assert jaccard(*pair) == pytest.approx(3 / 5)


def test_renamed_graphs_have_the_same_features() -> None:
    one, other = parsed("graph_coloring", "G1213-1??"), parsed("graph_coloring", "G1323-??3")
    assert features("graph_coloring", one) == features("graph_coloring", other)
    more = parsed("graph_coloring", "G1213-1???")
    assert features("graph_coloring", one) != features("graph_coloring", more)


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_copy_is_not_new_and_another_task_is_newer(domain: str) -> None:
    variation = get_variation(domain)
    one, *others = (parsed(domain, variation.write(t.reference)) for t in load_tasks(domain, 1).tasks[:8])
    recent = Recent()
    assert recent.novelty(domain, one) == 1
    recent.add(domain, variation.write(one))
    assert recent.novelty(domain, one) == 0
    for other in others:
        same = variation.canonical_form(one) == variation.canonical_form(other)
        assert (recent.novelty(domain, other) == 0) == same
        assert (features(domain, one) == features(domain, other)) == same
    assert all(Recent().novelty(domain, other) == 1 for other in others)


def test_a_copy_that_is_spelt_otherwise_is_not_new() -> None:
    variation = get_variation("pantry_plan")
    known = load_tasks("pantry_plan", 1).tasks[0].reference
    targets = {
        key: {side: f"{value}.0" if "." not in value else f"{value}0" for side, value in sides.items()}
        for key, sides in known["targets"].items()
    }
    recent = Recent()
    recent.add("pantry_plan", variation.write(known))
    assert features("pantry_plan", known | {"targets": targets}) != features("pantry_plan", known)
    assert recent.novelty("pantry_plan", known | {"targets": targets}) == 0


def test_tasks_of_other_domains_are_not_compared() -> None:
    recent = Recent()
    recent.add("python_factors", "P8,9")
    assert recent.novelty("countdown", parsed("countdown", "C8,9=17")) == 1


def test_only_the_last_tasks_count_and_a_memory_is_made_again() -> None:
    recent = Recent(window=2)
    for text in ("P8,9", "P10,12", "P14,15"):
        recent.add("python_factors", text)
    assert recent.texts == [("python_factors", "P10,12"), ("python_factors", "P14,15")]
    assert recent.novelty("python_factors", parsed("python_factors", "P8,9")) == 1
    again = Recent(window=2)
    for domain, text in recent.texts:
        again.add(domain, text)
    for text in ("P10,14", "P12,10", "P8,9,10"):
        reference = parsed("python_factors", text)
        assert again.novelty("python_factors", reference) == recent.novelty("python_factors", reference)


def test_frozen_tasks_of_evaluations_are_held_out() -> None:
    held_out = HeldOut(["graph_coloring", "python_factors"])
    for split, held in (("eval", True), ("dev", True), ("train", False)):
        for level in (1, 3):
            tasks = load_tasks("python_factors", level, split).tasks[:5]
            assert all(held_out.holds(task.domain, level, task.reference) == held for task in tasks)
    [task, *_] = load_tasks("graph_coloring", 1, "eval").tasks
    spelled = get_variation("graph_coloring").parse(get_variation("graph_coloring").write(task.reference))
    assert held_out.holds("graph_coloring", 1, spelled)


def test_a_graph_with_too_many_symmetries_is_refused_in_bounded_time() -> None:
    names = "123456789abcdefghijklmnopqrstuvwxyz"
    edges = "".join(names[2 * pair : 2 * pair + 2] for pair in range(12))
    with pytest.raises(Unsolvable, match="symmetries"):
        Recent().novelty("graph_coloring", parsed("graph_coloring", f"G{edges}-{'12' * 12}"))
