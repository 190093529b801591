"""Every recorded verdict of the published reference implementation is ours too."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from modebench.verifiers import mathir, rational
from modebench.verifiers.registry import compiled
from tests.verifiers.conformance import DOMAIN_FILES, expected, outcome, rows

BEYOND_THEIR_REACH = {
    # Recipes whose large sizes void a run there: what they get here instead.
    "boxed sum of N ones": ("malformed", None),
    "boxed N unary minus then 18": ("malformed", None),
    "N CJK chars then \\boxed{3+6+9}": ("correct", "countdown:add(9,add(3,6))"),
    "N emoji then \\boxed{3+6+9}": ("correct", "countdown:add(9,add(3,6))"),
    "N letters a": ("malformed", None),
}

every_domain = pytest.mark.parametrize("name", DOMAIN_FILES)


def disagreements(name: str, change: Any = lambda row: row) -> list[Any]:
    """Rows (changed without changing their meaning) that get another verdict; empty when all agree."""
    found = []
    for row in rows(name):
        got = outcome(change(row), row["response"])
        if got != expected(row):
            found.append((row["response"][:200], expected(row), got))
    return found


@every_domain
def test_same_status_and_mode(name: str) -> None:
    assert disagreements(name) == []


def test_the_recorded_rows_cover_every_status_in_every_domain() -> None:
    for name in DOMAIN_FILES:
        statuses = Counter(row["status"] for row in rows(name))
        assert set(statuses) == {"correct", "incorrect", "malformed", "invalid_reference"}
        assert min(statuses.values()) >= 20


@every_domain
def test_reference_as_json_text(name: str) -> None:
    def as_text(row: dict[str, Any]) -> dict[str, Any]:
        answer = row["answer"]
        return row if isinstance(answer, str) else {**row, "answer": json.dumps(answer)}

    assert disagreements(name, as_text) == []


def test_reference_as_object_where_it_was_text() -> None:
    changed = 0
    for row in (row for name in DOMAIN_FILES for row in rows(name)):
        if isinstance(row["answer"], str) and row["status"] != "invalid_reference":
            changed += 1
            assert outcome({**row, "answer": json.loads(row["answer"])}, row["response"]) == expected(row)
    assert changed > 0


@every_domain
@pytest.mark.parametrize("spelling", ["{}", "level{}"])
def test_level_as_text(name: str, spelling: str) -> None:
    def respelled(row: dict[str, Any]) -> dict[str, Any]:
        level = row["level"]
        return {**row, "level": spelling.format(level)} if type(level) is int else row

    assert disagreements(name, respelled) == []


@every_domain
def test_reference_under_either_field_name(name: str) -> None:
    def renamed(row: dict[str, Any]) -> dict[str, Any]:
        return {"domain": row["domain"], "level": row["level"], "reference": row["answer"]}

    assert disagreements(name, renamed) == []


def test_mathir_normal_forms() -> None:
    unsupported = 0
    for row in rows("mathir-normal-forms"):
        names = rational.sort_symbols(sorted(set(re.findall(r"\b[a-z]\b", row["expr"]))))
        expression = mathir.parse_expression(row["expr"], names, max_nodes=1000)
        form = rational.cancel(mathir.build(expression, names))
        text = None if form is None else rational.text(form, names)
        assert text == row["canonical"], row["expr"]
        unsupported += form is None
    assert unsupported > 100


def test_pantry_level_1_projections() -> None:
    task: dict[str, Any] = {"domain": "pantry_plan", "level": 1}
    found = Counter[str]()
    for row in rows("pantry-level1-projection"):
        task = {**task, "answer": row.get("answer") or task["answer"]}
        got = outcome(task, row["mask"])
        assert got == expected(row), row["mask"]
        found[got[0]] += 1
        if got[1] is not None:
            _, spec = compiled(task)
            plan = spec.plan_for(got[1].rpartition(":")[2].split("+"))
            assert ";".join(f"{name}={grams}" for name, grams in plan.items()) == row["graded_text"]
    assert found["correct"] > 50


def build(recipe: str, size: int) -> str:
    """The response that a recipe of `unscorable` describes."""
    box = "\\boxed{3+6+9}"
    return {
        "boxed sum of N ones": lambda: f"\\boxed{{{'+'.join(['1'] * size)}}}",
        "boxed N unary minus then 18": lambda: f"\\boxed{{{'-' * size}18}}",
        "N CJK chars then \\boxed{3+6+9}": lambda: "推" * size + box,
        "N emoji then \\boxed{3+6+9}": lambda: "😀" * size + box,
        "N letters a": lambda: "a" * size,
        "N double quotes then boxed": lambda: '"' * size + box,
    }[recipe]()


@pytest.mark.parametrize("row", rows("unscorable"), ids=lambda row: f"{row['recipe']}, N={row['N']}")
def test_no_response_is_unscorable(row: dict[str, Any]) -> None:
    got = outcome(row, build(row["recipe"], row["N"]))
    if row["status"] in ("correct", "incorrect", "malformed"):
        assert got == expected(row)
    else:
        assert got == BEYOND_THEIR_REACH[row["recipe"]]
