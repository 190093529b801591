"""Every check of a reference, the field it names, and that no check lacks a test here."""

from __future__ import annotations

import ast
import json
import traceback
from pathlib import Path
from typing import Any

import pytest

import modebench.verifiers
from modebench.tasks import Task
from modebench.verifiers import InvalidReference, verify
from tests.verifiers.examples import DELETE, REFERENCES, RIGHT, damaged, task

_SUM = "add(" * 7 + "a" + ",a)" * 7
_WIDE = f"add({'add(a,a)'},{'add(a,a)'})"
_ITEM = "ingredients.2"

CASES: list[tuple[str, str, Any, str]] = [
    # Every domain
    *(
        (name, "verifier", value, "verifier")
        for name in REFERENCES
        for value in (DELETE, "", "Countdown", 1, None)
    ),
    ("countdown", "verifier", "graph_coloring", "verifier"),
    # Graph coloring
    *(("graph_coloring", "n", value, "n") for value in (DELETE, 0, -1, True, "4", 4.0, None)),
    *(("graph_coloring", "edges", value, "edges") for value in (DELETE, None, {}, "12", 1)),
    *(
        ("graph_coloring", "edges.1", value, "edges[1]")
        for value in ([], [1], [1, 2, 3], 1, "12", {"1": 2}, None)
    ),
    *(
        ("graph_coloring", "edges.2", value, "edges[2]")
        for value in ([0, 1], [1, 5], [1, True], [1, "2"], [1.0, 2])
    ),
    ("graph_coloring", "edges.0", [2, 2], "edges[0]"),
    *(
        ("graph_coloring", "partial_colors", value, "partial_colors")
        for value in ([], [1] * 3, [1] * 5, "1231", 1)
    ),
    *(
        ("graph_coloring", "partial_colors.2", value, "partial_colors[2]")
        for value in (0, 4, True, "1", 1.0, [])
    ),
    # Countdown
    *(("countdown", "numbers", value, "numbers") for value in (DELETE, [], None, 3, "369", {"0": 3})),
    *(("countdown", "numbers.1", value, "numbers[1]") for value in (True, "6", 6.0, None, [6])),
    *(("countdown", "target", value, "target") for value in (DELETE, None, "18", 18.0, True)),
    # Python factors
    *(("python_factors", "python_version", value, "python_version") for value in (DELETE, "factor-v2", 1)),
    *(
        ("python_factors", "cases", value, "cases")
        for value in (DELETE, [], [12], list(range(12, 21)), "12", None)
    ),
    *(
        ("python_factors", "cases.1", value, "cases[1]")
        for value in (3, 1001, 15.0, "15", True, None, 7, 997)
    ),
    ("python_factors", "cases.1", 12, "cases"),
    ("python_factors", "cases", [4, 9], "cases"),
    # MathIR
    *(("mathir", "mathir_version", value, "mathir_version") for value in (DELETE, "linear-v0", 1, None)),
    ("mathir_program", "mathir_version", "linear-menu-v1", "mathir_version"),
    *(
        ("mathir", "bindings", value, "bindings")
        for value in (DELETE, {}, [], None, dict.fromkeys("abcdefg", 1))
    ),
    *(("mathir", f"bindings.{name}", 1, f"bindings.{name}") for name in ("x", "A", "ab", "α", "_")),
    *(
        ("mathir", "bindings.b", value, "bindings.b")
        for value in (1.0, True, None, "", "1.5", "1/0", "+1", "1/-2", [1])
    ),
    ("mathir", "bindings.b", "9" * 5000, "bindings.b"),
    ("mathir", "bindings.d", 1, "bindings"),
    ("mathir", "bindings.c", DELETE, "initial_rhs"),
    *(("mathir", "initial_lhs", value, "initial_lhs") for value in (DELETE, None, "", " ", 1, ["x"])),
    *(
        ("mathir", "initial_lhs", value, "initial_lhs")
        for value in (
            "add(x)",
            "add(x,b",
            "x)",
            "pow(a,b)",
            "2",
            "add(x,,b)",
            "neg(x,b)",
            "add(mul(a,q),b)",
            "x b",
            "(x)",
        )
    ),
    ("mathir", "initial_lhs", _SUM, "initial_lhs"),
    ("mathir", "initial_lhs", f"add({_WIDE},add({_WIDE},add({_WIDE},add({_WIDE},x))))", "initial_lhs"),
    ("mathir", "initial_lhs", "add(a,b)", "initial_lhs"),
    ("mathir", "initial_lhs", "add(mul(b,x),mul(a,a))", "initial_lhs"),
    ("mathir", "initial_lhs", "add(div(x,sub(a,a)),b)", "initial_lhs"),
    ("mathir", "initial_lhs", "add(div(a,x),b)", "initial_lhs"),
    ("mathir", "initial_lhs", "div(add(mul(a,x),b),sub(add(b,b),sub(a,c)))", "initial_lhs"),
    ("mathir", "initial_rhs", "mul(c,c)", "initial_rhs"),
    ("mathir", "initial_rhs", "add(c,mul(a,x))", "initial_lhs"),
    *(("mathir", "max_steps", value, "max_steps") for value in (0, 5, True, "4", 4.0, None)),
    *(("mathir", "actions", value, "actions") for value in (DELETE, {}, [], None, {"A": "sub(b)"})),
    ("mathir", "actions", dict.fromkeys("ABCDEFGHI", "sub(b)"), "actions"),
    ("mathir", "actions", {"B": "sub(b)", "A": "div(a)"}, "actions"),
    ("mathir", "actions", {"A": "sub(b)", "C": "div(a)"}, "actions"),
    *(
        ("mathir", "actions.B", value, "actions.B")
        for value in ("", ";", "sub(a);sub(c)", None, 1, "sub(a)" * 40)
    ),
    *(
        ("mathir", "actions.B", value, "actions.B")
        for value in ("x", "neg(a)", "sub(q)", "sub(a", "Sub(a)", "sub()")
    ),
    ("mathir", "actions.C", " sub( b )", "actions.C"),
    # PantryPlan
    *(("pantry_plan", "pantry_version", value, "pantry_version") for value in (DELETE, "pantry-v2", 1)),
    *(
        ("pantry_plan", "ingredients", value, "ingredients")
        for value in (DELETE, [], {}, None, [{}], [{}] * 17)
    ),
    ("pantry_mask", "ingredients", REFERENCES["pantry_plan"]["ingredients"][:5], "ingredients"),
    *(("pantry_plan", _ITEM, value, "ingredients[2]") for value in ([], None, "rice", 1)),
    *(
        (("pantry_plan", f"{_ITEM}.id", value, "ingredients[2].id"))
        for value in (DELETE, "", "Rice", "9a", "a-b", "a" * 33, 1)
    ),
    ("pantry_plan", f"{_ITEM}.id", "oats", "ingredients[2].id"),
    *(
        ("pantry_plan", f"{_ITEM}.available_g", value, "ingredients[2].available_g")
        for value in (DELETE, 0, 10_001, 125.0)
    ),
    *(
        ("pantry_plan", f"{_ITEM}.step_g", value, "ingredients[2].step_g")
        for value in (DELETE, 0, 1001, "25", True)
    ),
    *(
        ("pantry_plan", f"{_ITEM}.min_if_used_g", value, "ingredients[2].min_if_used_g")
        for value in (DELETE, 24, 126)
    ),
    ("pantry_plan", f"{_ITEM}.available_g", 130, "ingredients[2].step_g"),
    ("pantry_plan", f"{_ITEM}.min_if_used_g", 60, "ingredients[2].step_g"),
    *(
        ("pantry_plan", f"{_ITEM}.attributes_per_100g", value, "ingredients[2].attributes_per_100g")
        for value in (DELETE, {}, [], None)
    ),
    ("pantry_plan", f"{_ITEM}.attributes_per_100g.sugar", 1, "ingredients[2].attributes_per_100g.sugar"),
    *(
        (
            "pantry_plan",
            f"{_ITEM}.attributes_per_100g.fat_g",
            value,
            "ingredients[2].attributes_per_100g.fat_g",
        )
        for value in (True, None, "", "much", "NaN", "sNaN", "inf", "-0.1", -1, [1])
    ),
    *(
        ("pantry_plan", f"{_ITEM}.tags", value, "ingredients[2].tags")
        for value in (None, "gluten", ["A"], ["b", "b"], [1])
    ),
    ("pantry_plan", f"{_ITEM}.tags", [f"t{i}" for i in range(33)], "ingredients[2].tags"),
    *(("pantry_plan", "min_ingredients", value, "min_ingredients") for value in (DELETE, 0, 7, True, "2")),
    *(("pantry_plan", "max_ingredients", value, "max_ingredients") for value in (DELETE, 1, 7, 4.0)),
    *(
        ("pantry_plan", "certified_mode_count", value, "certified_mode_count")
        for value in (DELETE, 1, 1_000_001, "9")
    ),
    *(("pantry_plan", "targets", value, "targets") for value in (DELETE, {}, [], None)),
    ("pantry_plan", "targets.sugar", {"min": 1}, "targets.sugar"),
    ("pantry_plan", "targets.fiber_g", {"min": 1}, "targets.fiber_g"),
    *(
        ("pantry_plan", "targets.mass_g", value, "targets.mass_g")
        for value in ({}, None, [1, 2], {"mean": 1}, {"min": 2, "max": 1})
    ),
    *(
        ("pantry_plan", "targets.mass_g.min", value, "targets.mass_g.min")
        for value in (None, True, "x", "-1", "Infinity")
    ),
    *(
        ("pantry_plan", "forbidden_tags", value, "forbidden_tags")
        for value in (None, "soy", ["Soy"], ["a", "a"], [None])
    ),
    (
        "pantry_mask",
        "ingredients",
        [{**item, "step_g": 1, "min_if_used_g": 1} for item in REFERENCES["pantry_plan"]["ingredients"]],
        "ingredients",
    ),
]


def refusal(odd: Any) -> InvalidReference:
    with pytest.raises(InvalidReference) as caught:
        verify(odd, "\\boxed{1}")
    return caught.value


def identity(case: Any) -> str | None:
    return "DELETE" if case is DELETE else repr(case)[:40] if not isinstance(case, str) else None


@pytest.mark.parametrize(("name", "path", "value", "field"), CASES, ids=identity)
def test_the_field_is_named(name: str, path: str, value: Any, field: str) -> None:
    error = refusal(damaged(name, path, value))
    assert error.field == f"reference.{field}"
    assert str(error) == f"{error.field}: {error.problem}"
    assert "\n" not in error.problem
    assert len(error.problem) > 5


ODD_REFERENCES: list[Any] = [
    *(
        "",
        "{",
        "null",
        "[]",
        "1",
        '"a"',
        "{}x",
        "NaN",
        "\ufeff{}",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
    ),
    *('{"a": 1, "a": 1}', '{"b": {"a": 1, "a": 2}}', '{"a": ' + "[" * 100_000, '{"a": ' + "9" * 5_000 + "}"),
    *(f'{{"a": "{"p" * 66_000}"}}', f'{{"a": "{"é" * 12_000}"}}', '{"a": "' + '\\"' * 30_000 + '"}'),
    *({"a": "p" * 66_000}, {"a": float("nan")}, {"a": float("inf")}, {"a": object()}, {"a": b"1"}, {1j: 1}),
    *(None, [], 1, True, b"{}", object()),
]


@pytest.mark.parametrize(
    "reference", ODD_REFERENCES, ids=lambda odd: repr(odd)[:30].partition(" object at")[0]
)
def test_a_reference_that_is_no_json_object(reference: Any) -> None:
    assert refusal(task("countdown", reference=reference)).field == "reference"


@pytest.mark.parametrize("filler", ["p", '"', "é", "😀"])
def test_references_of_just_64_kib(filler: str) -> None:
    """The limit is on JSON in ASCII: of the object, or of the text with its own quotes escaped."""
    reference = {**REFERENCES["countdown"], "note": ""}
    for as_text in (False, True):
        for spare, refused in ((0, False), (-1, True)):
            if as_text:
                full = json.dumps({**reference, "note": filler * 3_000}, ensure_ascii=False)
                padding = 65_536 - spare - len(json.dumps(full))
                form: Any = full + " " * padding
            else:
                room = 65_536 - spare - len(json.dumps(reference))
                size = len(json.dumps(filler)) - 2
                note = filler * (room // size) + "p" * (room % size)
                form = {**reference, "note": note}
            assert len(json.dumps(form)) == 65_536 - spare
            if refused:
                assert refusal(task("countdown", reference=form)).field == "reference"
            else:
                assert verify(task("countdown", reference=form), "3+6+9").status == "correct"


def test_a_reference_that_holds_itself() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    assert refusal(task("countdown", reference=loop)).field == "reference"


def test_a_missing_reference() -> None:
    assert refusal({"domain": "countdown", "level": 1}).field == "reference"


@pytest.mark.parametrize("reference", [{"a": object()}, {"a": float("nan")}, {"a": {1, 2}}, None, "{}", []])
def test_task_objects_are_refused_alike(reference: Any) -> None:
    odd = Task("id", "countdown", 1, "eval", "problem", reference)
    assert refusal(odd).field in ("reference", "reference.verifier")


def test_the_first_broken_thing_is_the_domain_then_the_level() -> None:
    assert refusal({"domain": "?", "level": 9, "reference": {}}).field == "domain"
    assert refusal({"domain": "countdown", "level": 9, "reference": {}}).field == "level"


def test_a_broken_reference_is_refused_whatever_the_response() -> None:
    for response in (None, "", "x" * 200_000, "\\boxed{3+6+9}"):
        with pytest.raises(InvalidReference):
            verify(damaged("countdown", "target", None), response)  # type: ignore[arg-type]


@pytest.mark.parametrize("exponent", ["1e999999", "1E+1000000", "9e999999999", "1e-999999999"])
@pytest.mark.parametrize("path", ["ingredients.0.attributes_per_100g.energy_kcal", "targets.energy_kcal.min"])
def test_numbers_beyond_decimal_exponents_get_a_verdict(path: str, exponent: str) -> None:
    for name in ("pantry_plan", "pantry_mask"):
        example = damaged(name, path, exponent)
        wanted = "incorrect" if path.startswith("targets") and "e-" not in exponent else "correct"
        assert verify(example, RIGHT[name][0]).status == wanted


def test_every_check_is_tested_here() -> None:
    """No `raise InvalidReference` of the verifiers is out of reach of the cases above."""
    folder = Path(modebench.verifiers.__file__).parent
    checks = {
        (path.name, node.lineno, node.end_lineno)
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise) and "InvalidReference(" in ast.unparse(node)
    }
    odd: list[Any] = [damaged(name, path, value) for name, path, value, _ in CASES]
    odd += [task("countdown", reference=reference) for reference in ODD_REFERENCES]
    odd += [
        {"domain": "countdown", "level": 1},
        task("countdown", level=0),
        task("countdown", domain="?"),
        None,
    ]
    hit = set()
    for each in odd:
        last = traceback.extract_tb(refusal(each).__traceback__)[-1]
        hit |= {
            check
            for check in checks
            if check[0] == Path(last.filename).name and last.lineno in range(check[1], check[2] + 1)
        }
    assert len(checks) > 40
    assert sorted(checks - hit) == []


def test_examples_are_good() -> None:
    for name in REFERENCES:
        json.dumps(REFERENCES[name])
        assert verify(task(name), RIGHT[name][0]).status == "correct"
