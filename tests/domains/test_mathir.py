from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest

from modebench.domains import mathir
from modebench.laws.mathir import FAMILIES
from modebench.verifiers import verify

PRODUCT = {
    "verifier": "mathir_action_menu",
    "mathir_version": "linear-menu-v1",
    "bindings": {"a": -4, "b": 4, "c": -3},
    "initial_lhs": "add(mul(a,x),b)",
    "initial_rhs": "c",
    "max_steps": 2,
    "actions": {
        "A": "sub(c)",
        "B": "sub(div(b,a))",
        "C": "div(a)",
        "D": "mul(a)",
        "E": "sub(b)",
        "F": "add(b)",
    },
}


def test_two_steps_by_hand() -> None:
    # Divide first, or subtract first; nothing else is done in two commands.
    solved = "eq(x,mul(add(c,mul(-1,b)),inv(a)))"
    assert [tuple(s) for s in mathir.solutions(PRODUCT, 1)] == [
        (
            f"mathir:linear-menu-v1:eq(mul(add(b,mul(a,x)),inv(a)),mul(c,inv(a)))>{solved}",
            "\\boxed{C;B}",
        ),
        (f"mathir:linear-menu-v1:eq(mul(a,x),add(c,mul(-1,b)))>{solved}", "\\boxed{E;C}"),
    ]


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_number_of_modes_by_steps(steps: int) -> None:
    assert mathir.count_modes({**PRODUCT, "max_steps": steps}, 1) == {1: 0, 2: 2, 3: 2, 4: 5}[steps]


def test_enumeration_agrees_with_verifying_every_sequence() -> None:
    task = {"domain": "mathir", "level": 1, "reference": {**PRODUCT, "max_steps": 3}}
    sequences = [";".join(letters) for n in (1, 2, 3) for letters in product("ABCDEF", repeat=n)]
    found = {verify(task, f"\\boxed{{{text}}}").mode for text in sequences} - {None}
    assert found == {s.mode for s in mathir.solutions(task["reference"], 1)}


def test_law() -> None:
    rng = random.Random(2)
    families = set()
    for _ in range(300):
        reference = mathir.generate(rng, 1)
        families.add(reference["family"])
        value = {name: Fraction(v) for name, v in reference["bindings"].items()}
        a, b, c, d = value["a"], value["b"], value["c"], value.get("d", Fraction(0))
        x = {
            "product": lambda a=a, b=b, c=c: (c - b) / a,
            "quotient": lambda a=a, b=b, c=c: (c - b) * a,
            "two_sided": lambda a=a, b=b, c=c, d=d: (c - b) / (a - d),
            "two_sided_minus": lambda a=a, b=b, c=c, d=d: (c - b) / (a + d),
        }[reference["family"]]()
        assert x.denominator == 1
        assert 1 <= abs(x) <= 9
        assert 1 <= abs(a) <= 9
        assert abs(b) <= 12
        assert ("d" in value) == reference["family"].startswith("two_sided")
        assert list(reference["actions"]) == list("ABCDEF")
        assert sorted(reference["actions"].values()) == sorted(FAMILIES[reference["family"]].commands)
    assert len(families) == 4
    assert mathir.law_size(1) == 4 * 720


def test_identity_leaves_out_values_only() -> None:
    other = {**PRODUCT, "bindings": {"a": 2, "b": -1, "c": 5}}
    assert mathir.identity(other) == mathir.identity(PRODUCT)
    swapped = PRODUCT["actions"] | {"A": "sub(b)", "E": "sub(c)"}
    assert mathir.identity({**PRODUCT, "actions": swapped}) != mathir.identity(PRODUCT)


@pytest.mark.parametrize(
    ("prefix", "infix"),
    [
        ("x", "x"),
        ("add(mul(a,x),b)", "a*x + b"),
        ("add(div(x,a),b)", "x/a + b"),
        ("sub(c,mul(d,x))", "c - d*x"),
        ("sub(a,add(b,c))", "a - (b + c)"),
        ("sub(sub(a,b),c)", "a - b - c"),
        ("div(add(mul(a,x),b),e)", "(a*x + b)/e"),
        ("div(a,mul(b,c))", "a/(b*c)"),
        ("mul(a,neg(b))", "a*(-b)"),
        ("neg(add(a,b))", "-(a + b)"),
        ("mul( div(d, f) , x)", "d/f*x"),
    ],
)
def test_ordinary_notation(prefix: str, infix: str) -> None:
    assert mathir._infix(prefix) == infix


def test_menu_is_spoken() -> None:
    problem = mathir.problem(PRODUCT, 1)
    assert "Equation: a*x + b = c\nValues: a = -4, b = 4, c = -3." in problem
    assert (
        "\nA: subtract c\nB: subtract (b/a)\nC: divide by a\nD: multiply by a\nE: subtract b\nF: add b\n"
        in problem
    )
    assert "Choose 1 to 2 commands" in problem


def test_chance_covers_every_length() -> None:
    rng = random.Random(0)
    drawn = [mathir.random_answer(rng, PRODUCT, 1) for _ in range(4_000)]
    assert len(set(drawn)) == 6 + 36
    assert max(map(drawn.count, set(drawn))) < 2.5 * min(map(drawn.count, set(drawn)))


def test_free_programs_have_no_list_of_modes() -> None:
    program = {key: value for key, value in PRODUCT.items() if key != "actions"}
    with pytest.raises(ValueError, match=r"reference\.verifier"):
        mathir.count_modes({**program, "verifier": "mathir_algebra"}, 1)
