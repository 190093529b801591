"""MathIR: compact text, variations around a command sequence, option removal.

Text: ``Ma*x+b=c -bA /aB +bC *aD -cE -b/aF;a=3,b=-2,c=7;4``: equation, commands with their letters, values
in the order of the alphabet, most commands of an answer. A command is its sign and what follows it as
the right side of that sign. A task without a menu, where commands are written by the responder, is
``Na*x+b=c;a=3,b=-2,c=7;4``.

A mode is a sequence of symbolic equations, so other values keep a solution right unless they make a
divisor zero (SVS, arXiv:2508.14029). Renaming the letters of an equation is not seen as a copy.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from modebench.domains.base import Reference
from modebench.variation.base import (
    COPY,
    Operator,
    Scanner,
    count_valid,
    integer,
    kept,
    listed_modes,
    mode_of,
    require_mode,
    strict_failure,
    strict_parse,
    write_checked,
)
from modebench.variation.mathir_text import infix, read_command, read_expression, write_command
from modebench.verifiers.extraction import MATHIR, extract
from modebench.verifiers.mathir import compile_reference

name: str = "mathir"

LETTERS = "ABCDEFGH"
MENU, PROGRAM = "mathir_action_menu", "mathir_algebra"
VERSIONS = {MENU: "linear-menu-v1", PROGRAM: "linear-v0"}
FIELDS = (
    "verifier",
    "mathir_version",
    "family",
    "bindings",
    "initial_lhs",
    "initial_rhs",
    "max_steps",
    "actions",
)
LIMIT = 9
"""Redrawn values are at most this large, or as large as the largest old one."""

_VALUE = re.compile("-?[0-9]{1,18}(?:/[0-9]{1,18})?")
_SYMBOL = re.compile("[a-wyz]")


# Compact text -----------------------------------------------------------------------------------


def write(reference: Reference) -> str:
    """One line; the family's name and the order of the values are lost."""
    return write_checked(name, reference, _spell)


def _spell(reference: Reference) -> str:
    menu = ""
    if reference["verifier"] == MENU:
        menu = "".join(f" {write_command(text)}{letter}" for letter, text in reference["actions"].items())
    values = ",".join(f"{symbol}={value}" for symbol, value in _values(reference).items())
    equation = f"{infix(reference['initial_lhs'])}={infix(reference['initial_rhs'])}"
    head = "M" if reference["verifier"] == MENU else "N"
    return f"{head}{equation}{menu};{values};{reference.get('max_steps', 4)}"


def parse(text: str) -> dict[str, Any]:
    """The reference of a text of exactly the spelling that `write` gives."""
    return strict_parse(text, _read, write)


def _read(scanner: Scanner) -> dict[str, Any]:
    verifier = MENU if scanner.skip("M") else PROGRAM
    if verifier == PROGRAM:
        scanner.take("N")
    lhs = read_expression(scanner)
    scanner.take("=")
    rhs = read_expression(scanner)
    actions: dict[str, str] = {}
    while verifier == MENU and len(actions) < len(LETTERS) and scanner.skip(" "):
        command = read_command(scanner)
        letter = LETTERS[len(actions)]
        scanner.take(letter)
        actions[letter] = command
    scanner.take(";")
    bindings = dict([_read_binding(scanner)])
    while scanner.skip(","):
        symbol, value = _read_binding(scanner)
        if symbol in bindings:
            scanner.fail("another symbol")
        bindings[symbol] = value
    scanner.take(";")
    task: dict[str, Any] = {
        "verifier": verifier,
        "mathir_version": VERSIONS[verifier],
        "bindings": bindings,
        "initial_lhs": lhs,
        "initial_rhs": rhs,
        "max_steps": integer(scanner, "the most commands of an answer"),
    }
    return task | ({"actions": actions} if verifier == MENU else {})


def _read_binding(scanner: Scanner) -> tuple[str, int | str]:
    symbol = scanner.read(_SYMBOL, "a symbol a-z other than x")
    scanner.take("=")
    start = scanner.at
    numerator, _, denominator = scanner.read(_VALUE, "an integer or a fraction").partition("/")
    if denominator and int(denominator) == 0:
        scanner.at = start
        scanner.fail("a fraction whose denominator is not 0")
    return symbol, _plain(Fraction(int(numerator), int(denominator or 1)))


def _plain(value: Fraction) -> int | str:
    return int(value) if value.denominator == 1 else str(value)


def _values(reference: Reference) -> dict[str, Fraction]:
    """The bindings as numbers, in the order of the alphabet."""
    bindings: Mapping[str, int | str] = reference["bindings"]
    return {symbol: Fraction(value) for symbol, value in sorted(bindings.items())}


def validate(reference: Reference, level: int) -> int:
    """The exact number of equation sequences that solve a menu task; a task without menu has no count."""
    return count_valid(name, reference, level)


def canonical_form(reference: Reference) -> str:
    """The compact text with the commands in the order of the alphabet and without their letters."""
    menu = sorted(map(write_command, reference.get("actions", {}).values()))
    return _spell(kept(reference, FIELDS) | {"actions": {}}) + " ".join(menu)


# Variations -------------------------------------------------------------------------------------


def _source(reference: Reference, solution: str) -> dict[str, Any]:
    require_mode(name, reference, 1, solution)
    return kept(reference, FIELDS)


def _redraw(rng: random.Random, reference: Reference, solution: str, count: int | None) -> dict[str, Any]:
    """`count` values (None: all) drawn anew; a value that was not 0 doesn't become 0."""
    source, values = _source(reference, solution), _values(reference)
    symbols = list(reference["bindings"])
    limit = max(LIMIT, *(abs(int(value)) for value in values.values()))
    bindings = dict(reference["bindings"])
    whole = _target(reference).denominator == 1
    for _ in range(_DRAWS):
        for symbol in symbols if count is None else rng.sample(symbols, count):
            allowed = [v for v in range(-limit, limit + 1) if v or not values[symbol]]
            bindings[symbol] = rng.choice(allowed)
        drawn = source | {"bindings": dict(bindings)}
        try:
            # Level-1 tasks have whole solutions, and a varied one should not stand out.
            if not whole or _target(drawn).denominator == 1:
                return drawn
        except ValueError:
            pass
        bindings = dict(reference["bindings"])
    return drawn


_DRAWS = 48  # draws in search of a determinate equation with a whole solution


def _target(reference: Reference) -> Fraction:
    return compile_reference(reference, 1).target


def _redraw_values(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    return _redraw(rng, reference, solution, None)


def _redraw_one_value(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    return _redraw(rng, reference, solution, 1)


def _turn_unused(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    """A command that the solution doesn't use gets another operation, if the menu hasn't got that."""
    source = _source(reference, solution)
    actions = source.get("actions", {})
    used = set(_letters(solution))
    texts = {"".join(text.split()) for text in actions.values()}
    choices = [
        (letter, turned)
        for letter, text in actions.items()
        for operation in ("add", "sub", "mul", "div")
        if letter not in used and (turned := operation + "".join(text.split())[3:]) not in texts
    ]
    if not choices:
        return None
    letter, turned = rng.choice(choices)
    return source | {"actions": {**actions, letter: turned}}


def _permute_menu(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    source = _source(reference, solution)
    commands = list(source.get("actions", {}).values())
    if not commands:
        return None
    shuffled = rng.sample(commands, len(commands))
    return source | {"actions": dict(zip(LETTERS, shuffled, strict=False))}


def _letters(solution: str) -> list[str]:
    """The letters of a correct response."""
    return "".join((extract(solution, MATHIR) or "").split()).removesuffix(";").split(";")


def _relettered(before: Reference, solution: str, after: Reference) -> str:
    """A response of the same mode, spelled with the letters of the varied menu."""
    place = {text: letter for letter, text in after["actions"].items()}
    letters = [place[before["actions"][letter]] for letter in _letters(solution)]
    return f"\\boxed{{{';'.join(letters)}}}"


def _rest(reference: Reference, field: str) -> dict[str, Any]:
    """All that is executed but one field."""
    rest = kept(reference, FIELDS)
    rest.pop("family", None)
    rest.pop(field, None)
    return rest


def _check_values(before: Reference, solution: str, after: Reference) -> str | None:
    if _rest(before, "bindings") != _rest(after, "bindings"):
        return "not the step of this operator: more than values changed"
    return _check_strict(before, solution, after)


def _check_turn(before: Reference, solution: str, after: Reference) -> str | None:
    if _rest(before, "actions") != _rest(after, "actions") or list(before["actions"]) != list(
        after["actions"]
    ):
        return "not the step of this operator: more than a command changed"
    if sum(text != after["actions"][letter] for letter, text in before["actions"].items()) != 1:
        return "not the step of this operator: not one command changed"
    return _check_strict(before, solution, after)


def _check_strict(before: Reference, solution: str, after: Reference) -> str | None:
    if canonical_form(before) == canonical_form(after):
        return COPY
    return strict_failure(name, 1, before, solution, after)


def _check_permuted(before: Reference, solution: str, after: Reference) -> str | None:
    """Only the surface may change: the canonical form is the same, the letters are not."""
    if canonical_form(before) != canonical_form(after):
        return "not the step of this operator: more than the order of the menu changed"
    if list(before["actions"].values()) == list(after["actions"].values()):
        return COPY
    if mode_of(name, before, 1, solution) is None:
        return "the solution is not correct on the source task"
    if set(listed_modes(name, before, 1)) != set(listed_modes(name, after, 1)):
        return "other modes"
    answer = _relettered(before, solution, after)
    return strict_failure(name, 1, after, answer, after)


operators: tuple[Operator, ...] = (
    Operator("redraw_values", "strict", _redraw_values, _check_values),
    Operator("redraw_one_value", "strict", _redraw_one_value, _check_values),
    Operator("turn_unused", "strict", _turn_unused, _check_turn),
    Operator("permute_menu", "set", _permute_menu, _check_permuted, _relettered),
)


# Option removal ---------------------------------------------------------------------------------


def remove_option(
    reference: Reference, level: int, mode: str, answer: str | None = None
) -> dict[str, Any] | None:
    """The menu without one command that the favourite uses; the later commands move up a letter.

    The command whose absence leaves most modes is taken. The equation and its values stay.

    Raises:
        ValueError: `mode` is not a mode of the task.
    """
    listed = listed_modes(name, reference, level)
    if mode not in listed:
        raise ValueError(f"mode: {mode!r} is not a mode of this task")
    answer = listed[mode] if answer is None else answer
    uses = [set(_letters(text)) for text in listed.values()]
    # Most modes left first, by the letters of the listed answers; what is left is then executed.
    for letter in sorted(_letters(listed[mode]), key=lambda used: (sum(used in use for use in uses), used)):
        commands = [text for other, text in reference["actions"].items() if other != letter]
        after = kept(reference, FIELDS) | {"actions": dict(zip(LETTERS, commands, strict=False))}
        if len(commands) < 2 or mode_of(name, after, level, answer) is not None:
            continue
        left = listed_modes(name, after, level)
        if left and mode not in left:
            return after
    return None
