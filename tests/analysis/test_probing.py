"""What a prefix brings back: exact small cases, unbiasedness by enumeration and simulation, chance."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from modebench.analysis.probing import probe, render_probe

MEASURES = (
    "accuracy",
    "accuracy_without",
    "accuracy_difference",
    "gained",
    "lost",
    "chance",
    "beyond_chance",
)


def table(tasks: dict[str, dict[str, str]], **columns: object) -> pd.DataFrame:
    """Samples from one string of modes a task and prefix; ``.`` is a wrong answer, ``!`` an error."""
    status = {".": "incorrect", "!": "error"}
    rows = [
        {
            "task_id": task,
            "domain": "countdown",
            "level": 1,
            "prefix": prefix,
            "status": status.get(sign, "correct"),
            "mode": None if sign in status else sign,
        }
        for task, asked in tasks.items()
        for prefix, signs in asked.items()
        for sign in signs
    ]
    return pd.DataFrame(rows).assign(**columns)


def values(row: dict[str, Any]) -> dict[str, float]:
    return {name: row[name]["value"] for name in MEASURES}


def test_with_a_control_the_counts_are_those_of_equal_budgets() -> None:
    document = probe(table({"t": {"none": "AA", "control": "AB", "p": "CC"}}))
    [row] = document["rows"]
    assert (row["budget"], row["tasks"], row["tasks_left_out"]) == (2, 1, 0)
    # Of the 4 unprefixed samples A, A, A, B: two drawn hold A always, B in 3 of 6 pairs.
    assert values(row) == pytest.approx(
        {
            "accuracy": 1,
            "accuracy_without": 1,
            "accuracy_difference": 0,
            "gained": 1,
            "lost": 1.5,
            "chance": 0.5,
            "beyond_chance": 0.5,
        }
    )
    assert document["modes"] == [{"task_id": "t", "prefix": "p", "gained": ["C"], "lost": ["A", "B"]}]


def test_without_a_control_both_sides_are_read_at_half_the_samples() -> None:
    [row] = probe(table({"t": {"none": "AB..", "p": "AC.."}}))["rows"]
    assert row["budget"] == 2
    # A pair of 4 samples misses a mode seen once in 3 of 6 cases. Gained: A .5 * .5, C .5.
    assert values(row)["gained"] == pytest.approx(0.75)
    assert values(row)["lost"] == pytest.approx(0.75)
    assert values(row)["chance"] == pytest.approx(2 - 1)
    assert values(row)["accuracy_difference"] == 0


@pytest.mark.parametrize(("none", "p"), [("AAB.C.", "AD.DEE"), ("......", "AB...."), ("ABCDEF", "AAAAAA")])
def test_expectations_are_averages_over_all_subsets(none: str, p: str) -> None:
    def modes(signs: tuple[str, ...]) -> set[str]:
        return set(signs) - {"."}

    def mean(numbers: list[int]) -> float:
        return sum(numbers) / len(numbers)

    h = len(none) // 2
    halves = [(one, two) for one in combinations(none, h) for two in combinations(p, h)]
    splits = [
        ([none[i] for i in chosen], [none[i] for i in range(len(none)) if i not in chosen])
        for chosen in combinations(range(len(none)), h)
    ]
    [row] = probe(table({"t": {"none": none, "p": p}}))["rows"]
    assert row["gained"]["value"] == pytest.approx(mean([len(modes(b) - modes(a)) for a, b in halves]))
    assert row["lost"]["value"] == pytest.approx(mean([len(modes(a) - modes(b)) for a, b in halves]))
    chance = mean([len(modes(tuple(b)) - modes(tuple(a))) for a, b in splits])
    assert row["chance"]["value"] == pytest.approx(chance)


def test_a_prefix_that_changes_nothing_gains_what_chance_does() -> None:
    rng = np.random.default_rng(0)
    tasks = {
        f"t{number}": {
            name: "".join(rng.choice(list("ABCDEFGH...."), size=8)) for name in ("none", "control", "p")
        }
        for number in range(400)
    }
    [row] = probe(table(tasks))["rows"]
    assert row["gained"]["value"] > 1
    assert row["beyond_chance"]["low"] < 0 < row["beyond_chance"]["high"]
    assert abs(row["beyond_chance"]["value"]) < 0.15


def test_tasks_with_too_few_graded_samples_are_left_out_and_counted() -> None:
    [row] = probe(
        table(
            {
                "a": {"none": "AB", "control": "AA", "p": "CC"},
                "b": {"none": "A!", "control": "AA", "p": "CC"},
                "c": {"none": "AA", "control": "AA", "p": "!!"},
            }
        )
    )["rows"]
    assert (row["tasks"], row["tasks_left_out"]) == (1, 2)
    assert row["gained"] == {"value": 1.0, "low": None, "high": None, "n": 1}


def test_cells_say_what_no_prefix_reached() -> None:
    tasks = {"a": {"none": "AB", "p": "CX"}, "b": {"none": "..", "p": "A."}, "c": {"none": "ABC"}}
    samples = table(tasks, modes=5)
    samples["listed"] = samples["mode"] != "X"
    [cell] = probe(samples)["cells"]
    assert cell == {
        "domain": "countdown",
        "level": 1,
        "tasks": 2,
        "existing": 10,
        "found_without": 2,
        "only_with_prefix": 2,
        "never_found": 6,
    }
    [unknown] = probe(table(tasks))["cells"]
    assert unknown["existing"] is None
    assert unknown["never_found"] is None


def test_the_text_states_numbers_budget_and_caveat() -> None:
    text = render_probe(probe(table({"t": {"none": "AA", "control": "AB", "use-division": "CC"}}, modes=9)))
    head, row, cell, *note = text.split("\n")
    assert head.split() == [
        "prefix",
        "cell",
        "tasks",
        "budget",
        "accuracy",
        "without",
        "with",
        "gained",
        "lost",
        "chance",
        "beyond",
        "chance",
    ]
    assert row.split()[:4] == ["use-division", "countdown", "1", "1"]
    assert cell == (
        "countdown 1: of 9 modes of 1 task 2 found without a prefix, 1 only with one, 6 never found"
    )
    assert "does not prove it pruned" in " ".join(note)


def test_a_table_without_prefixes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lacks the columns \['prefix'\]"):
        probe(table({"t": {"p": "A"}}).drop(columns="prefix"))
