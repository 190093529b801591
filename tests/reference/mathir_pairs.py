"""MathIR: references (menus and free programs) and answers."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

from tests.reference.texts import BLANKS, edit, guesses, nonsense

LETTERS = "ABCDEFGH"
# fmt: off
PIECES = (
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "a", ";", ";", ";;", ",", " ", "\n", "add(", "sub(", "mul(",
    "div(", "neg(", "(", ")", "x", "b", "c", "pow(", "1", "2", "b,", "x)", "a)", "rat(1,2)", "inv(a)", "eq(",
    "Add(", "aa", "a_1", "\xa0",
)
# fmt: on
FAMILIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("add(mul(a,x),b)", "c", ("sub(b)", "div(a)")),
    ("add(div(x,a),b)", "c", ("sub(b)", "mul(a)")),
    ("add(mul(a,x),b)", "add(mul(d,x),c)", ("sub(b)", "sub(mul(d,x))", "div(sub(a,d))")),
    ("add(mul(a,x),b)", "sub(c,mul(d,x))", ("sub(b)", "add(mul(d,x))", "div(add(a,d))")),
    (
        "div(mul(a,add(x,b)),e)",
        "div(sub(c,mul(d,x)),f)",
        ("sub(div(mul(a,b),e))", "add(div(mul(d,x),f))", "div(add(div(a,e),div(d,f)))"),
    ),
    (
        "add(div(mul(a,x),add(a,e)),div(b,f))",
        "add(mul(d,x),c)",
        ("sub(div(b,f))", "sub(mul(d,x))", "div(sub(div(a,add(a,e)),d))"),
    ),
    ("sub(b,mul(x,a))", "c", ("sub(b)", "div(neg(a))")),
    ("neg(mul(a,x))", "neg(b)", ("div(neg(a))",)),
    ("mul(add(a,b),x)", "sub(a,b)", ("div(add(a,b))",)),
    ("div(add(x,x),add(a,a))", "b", ("mul(a)",)),
    ("c", "div(sub(x,b),a)", ("mul(a)", "add(b)")),
    ("x", "add(a,b)", ("add(x)", "sub(x)")),
)
"""Left side, right side, and commands that solve the equation (in order, or with the first two swapped)."""
# fmt: off
SHARED_ARGUMENTS = (
    "a", "b", "c", "mul(a,x)", "mul(d,x)", "add(a,d)", "sub(a,d)", "div(b,f)", "x", "div(b,a)", "neg(b)",
)
ODD_VALUES = (
    "1/2", "-3/4", " 5 ", "0/7", "6/4", "٣", "007", "+5", "5/0", "1/-2", "", "1.5", "1e3", "½", "-", "1/02",
    "-0",
)
# fmt: on


def symbols(text: str) -> set[str]:
    return set(re.findall(r"\b[a-z]\b", text))


def _rename(text: str, letters: Mapping[str, str]) -> str:
    return re.sub(r"\b[a-z]\b", lambda match: letters.get(match.group(), match.group()), text)


def solution(reference: Mapping[str, Any]) -> list[str]:
    """Commands that solve a reference of a known family, whatever its letters; else none."""
    sides = f"{reference.get('initial_lhs')}={reference.get('initial_rhs')}"
    for lhs, rhs, steps in FAMILIES:
        for known in (f"{lhs}={rhs}", f"{rhs}={lhs}"):
            ours, theirs = (re.findall(r"\b[a-wyz]\b", text) for text in (known, sides))
            letters = dict(zip(ours, theirs, strict=False))
            if len(set(letters.values())) == len(letters) and _rename(known, letters) == sides:
                return [_rename(step, letters) for step in steps]
    return []


def expression(rng: random.Random, names: str, depth: int, ops: str = "asmdn") -> str:
    """A random expression; ``ops`` are initials of add, sub, mul, div, neg."""
    if depth <= 0 or rng.random() < 0.25:
        return rng.choice(names)
    op = {"a": "add", "s": "sub", "m": "mul", "d": "div", "n": "neg"}[rng.choice(ops)]
    left = expression(rng, names, depth - 1, ops)
    return f"neg({left})" if op == "neg" else f"{op}({left},{expression(rng, names, depth - 1, ops)})"


def cancelling(rng: random.Random, names: str) -> str:
    """Expressions in which something cancels, divides by zero, or leaves a power."""
    a, b, c = (rng.choice(names) for _ in range(3))
    return rng.choice(
        (
            f"div(mul({a},{b}),{a})",
            f"div({a},{a})",
            f"sub({a},{a})",
            f"mul({a},{a})",
            f"div({a},mul({a},{b}))",
            f"div(sub(mul({a},{a}),mul({b},{b})),add({a},{b}))",
            f"div({a},sub({b},{c}))",
            f"div({a},sub({b},{b}))",
            f"div(add({a},{b}),add({b},{a}))",
            f"sub(add({a},{b}),{b})",
            f"neg(neg({a}))",
            f"add({a},add({a},{a}))",
            f"div(add({a},{a}),add({b},{b}))",
            f"div({a},div({b},{c}))",
            f"add(div({a},{b}),div({c},{b}))",
            f"sub(div({a},sub({a},{b})),div({b},sub({a},{b})))",
        )
    )


def reference(rng: random.Random, level: int) -> dict[str, Any]:
    if rng.random() < 0.85:
        lhs, rhs, _ = rng.choice(FAMILIES)
    else:
        names = "".join(rng.sample("abcdefgpyz", rng.randint(1, 4)))
        ops = rng.choice(("as", "asm", "asmd", "asmdn"))
        lhs = f"{rng.choice(('add', 'sub', 'mul'))}(x,{expression(rng, names, 2, ops)})"
        rhs = rng.choice(
            (expression(rng, names + "x", 2, ops), rng.choice(names), cancelling(rng, names + "x"))
        )
    if rng.random() < 0.15:
        lhs, rhs = rhs, lhs
    if rng.random() < 0.15:
        letters = dict(zip("abcdef", rng.sample("abcdefghijklmnopqrstuvwyz", 6), strict=True))
        lhs, rhs = _rename(lhs, letters), _rename(rhs, letters)
    names = sorted(symbols(f"{lhs} {rhs}") - {"x"}) or ["a"]
    bindings: dict[str, Any] = {name: _value(rng) for name in names}
    if len(names) > 1 and rng.random() < 0.2:
        bindings[names[0]] = bindings[names[-1]]
    if rng.random() < 0.1:
        bindings = {name: rng.choice((0, 0, 0, 1, -1, 2, 2)) for name in names}
    common = {"bindings": bindings, "initial_lhs": lhs, "initial_rhs": rhs}
    if rng.random() < 0.8:
        common["max_steps"] = rng.choice((4, 4, 4, 3, 2, 1))
    if rng.random() < 0.3:
        common |= {"family": "test", "instance_id": "t-0", "num_completions": 5, "support_is_open": False}
    if rng.random() < 0.3:
        return {"verifier": "mathir_algebra", "mathir_version": "linear-v0", **common}
    return {
        "verifier": "mathir_action_menu",
        "mathir_version": "linear-menu-v1",
        **common,
        "actions": _menu(rng, names, solution(common)),
    }


def _value(rng: random.Random) -> Any:
    if rng.random() < 0.02:
        return rng.choice(ODD_VALUES)
    return rng.choice(
        (rng.randint(-9, 9), rng.randint(1, 4), rng.choice((-1, 1, 2, 3)), rng.randint(-13, 13))
    )


def command(rng: random.Random, names: list[str]) -> str:
    pool = [text for text in SHARED_ARGUMENTS if symbols(text) <= {*names, "x"}] or ["x"]
    letters = "".join(names) + ("x" if rng.random() < 0.3 else "")
    argument = rng.choice(
        (
            *(rng.choice(pool), rng.choice(pool), rng.choice(letters)),
            *(expression(rng, letters, rng.randint(1, 3)), cancelling(rng, letters)),
        )
    )
    return f"{rng.choice(('add', 'sub', 'mul', 'div', 'sub', 'div'))}({argument})"


def _menu(rng: random.Random, names: list[str], steps: list[str]) -> dict[str, str]:
    usable = list(steps) if rng.random() < 0.9 else []
    wanted = max(len(usable), rng.choice((2, 4, 6, 6, 6, 8)))
    while len(usable) < wanted:
        extra = command(rng, names)
        if extra not in usable:
            usable.append(extra)
    rng.shuffle(usable)
    if rng.random() < 0.05:
        usable[0] = rng.choice(
            (usable[0] + ";", f" {usable[0]} ", usable[-1], usable[0].replace(",", " ,\t"), ";", "x")
        )
    return dict(zip(LETTERS, usable, strict=False))


def _spaced(rng: random.Random, text: str) -> str:
    blank = rng.choice(("", "", " ", rng.choice(BLANKS)))
    return "".join(c + (blank if c in ";,()" and rng.random() < 0.6 else "") for c in text)


def _edge(rng: random.Random, names: list[str]) -> str:
    """Programs at the limits: 7 levels, 11 nodes, 160 characters, 4 steps."""
    a = rng.choice(names)
    return rng.choice(
        (
            lambda: "add(" + "neg(" * (n := rng.randint(4, 8)) + a + ")" * n + ")",
            lambda: "add(" + "add(" * (n := rng.randint(3, 6)) + a + f",{a})" * n + ")",
            lambda: ";".join([f"add({a})"] * rng.randint(3, 6)),
            lambda: f"add({a})" + ";" * rng.randint(1, 2),
            lambda: f"add({a})" + " " * rng.choice((140, 160, 200)),
            lambda: ";".join([f"add({expression(rng, a, 3)})"] * 4),
            lambda: f"sub(mul({a},x));add(mul({a},x))",
        )
    )()


def _names(reference: dict[str, Any]) -> list[str]:
    bindings = reference.get("bindings")
    keys = bindings if isinstance(bindings, dict) else {}
    return [
        name for name in keys if isinstance(name, str) and len(name) == 1 and name.isalpha() and name != "x"
    ] or ["a"]


def _steps(rng: random.Random, reference: dict[str, Any], names: list[str]) -> list[str]:
    """Commands: those that solve it, with detours, or any."""
    known = solution(reference)
    actions = reference.get("actions")
    menu = [str(text) for text in actions.values()] if isinstance(actions, dict) else []
    if not known or rng.random() < 0.35:
        count = rng.choice((1, 2, 2, 3, 3, 4, 4, 5))
        return [rng.choice(menu) if menu else command(rng, names) for _ in range(count)]
    if len(known) > 2 and rng.random() < 0.5:
        known[:2] = known[1::-1]
    if rng.random() < 0.4:
        detour = rng.choice(menu) if menu and rng.random() < 0.7 else command(rng, names)
        known.insert(rng.randint(0, len(known)), detour)
        if rng.random() < 0.5:
            known.insert(rng.randint(0, len(known)), rng.choice(menu) if menu else command(rng, names))
    return known


def _letters(actions: Any, steps: list[str]) -> list[str]:
    """Letters of a menu for commands that stand on it; the commands themselves without a menu."""
    if not isinstance(actions, dict) or not actions:
        return steps
    place = {str(text): str(letter) for letter, text in actions.items()}
    return [place.get(step, "A") for step in steps]


def answer(rng: random.Random, reference: dict[str, Any], level: int) -> str:
    actions = reference.get("actions")
    names = _names(reference)
    kind = rng.randrange(12)
    if kind == 0:
        return nonsense(rng, PIECES)
    text = ";".join(_letters(actions, _steps(rng, reference, names)))
    if kind == 1:
        return edit(rng, text, PIECES, rng.randint(1, 2))
    if kind == 2:
        return _spaced(rng, text) + rng.choice(("", ";", "; ", ";;"))
    if kind == 3:
        return _edge(rng, names)
    if kind == 4:
        return guesses(rng, [text, rng.choice(("A", "B;C", text))])
    if kind == 5:
        return rng.choice(
            (text.replace(";", ","), text.replace(";", " "), text.replace(";", ""), text.lower(), f"; {text}")
        )
    return text
