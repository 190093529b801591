"""MathIR, `clean`: letters spelled freely, and a path may also end solved in numbers.

Commands and states are the published ones, and the mode is the published trajectory. Where a
coefficient is 1 or 0, an equation can say ``x = number`` once the values are put in although its letters
do not; that ends a path here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from modebench.verifiers import rational
from modebench.verifiers.clean.extraction import plain_answer
from modebench.verifiers.mathir import (
    MAX_ANSWER_CHARACTERS,
    Refused,
    Spec,
    State,
    apply,
    parse_command,
)
from modebench.verifiers.rational import Rational
from modebench.verifiers.verdict import Verdict, correct, incorrect, malformed

_LETTERS = re.compile(r"[A-Za-z](?:\s*(?:;|,|->|→)\s*[A-Za-z]|\s+[A-Za-z])*")
_LETTER = re.compile("[A-Za-z]")
_BLANKS = re.compile(r"\s+")

Move = Callable[[State], State | str]


def judge(spec: Spec, response: str, truncated: bool = False) -> Verdict:
    """The `clean` verdict on a response."""
    answer = plain_answer(response, truncated)
    if answer is None:
        return malformed("no answer found")
    moves = _menu_moves(spec, answer) if spec.actions else _program_moves(spec, answer)
    return malformed(moves) if isinstance(moves, str) else _run(spec, moves)


def _menu_moves(spec: Spec, answer: str) -> list[Move] | str:
    """Letters with one kind of separator, or why the answer is none."""
    if not _LETTERS.fullmatch(answer):
        return "not letters separated by ;"
    if len({separator.strip() for separator in _LETTER.split(answer)[1:-1]}) > 1:
        return "letters separated in more than one way"
    letters = [letter.upper() for letter in _LETTER.findall(answer)]
    if len(letters) > spec.max_steps:
        return f"more than {spec.max_steps} letters"
    unknown = [letter for letter in letters if letter not in spec.actions]
    if unknown:
        return f"{unknown[0]!r} is not on the menu"
    return [partial(spec.move, letter=letter) for letter in letters]


def _program_moves(spec: Spec, answer: str) -> list[Move] | str:
    """Written commands separated by semicolons, or why the answer is none."""
    text = _BLANKS.sub("", answer)
    pieces = text.split(";")
    if len(text) > MAX_ANSWER_CHARACTERS or "" in pieces or len(pieces) > spec.max_steps:
        return f"not 1 to {spec.max_steps} commands separated by ;"
    try:
        return [partial(apply, spec, command=parse_command(piece, spec.names)) for piece in pieces]
    except Refused as refused:
        return str(refused)


def _run(spec: Spec, moves: Sequence[Move]) -> Verdict:
    states: list[State] = []
    current, seen = spec.start, {spec.start.text}
    for move in moves:
        moved = move(current)
        if isinstance(moved, str):
            return incorrect(moved)
        if moved.text in seen:
            return incorrect("repeats an equation")
        seen.add(moved.text)
        states.append(moved)
        current = moved
    if spec.solved(current) or solved_in_numbers(spec, current):
        return correct(spec.key(states))
    return incorrect("does not end with x isolated at the solution")


def solved_in_numbers(spec: Spec, state: State) -> bool:
    """Whether, with the values put in, one side is exactly x and the other the solution."""
    sides = [_in_numbers(spec, side) for side in (state.lhs, state.rhs)]
    isolated = {1: Fraction(1)}
    solution = {0: spec.target} if spec.target else {}
    return sides in ([isolated, solution], [solution, isolated])


def _in_numbers(spec: Spec, side: Rational) -> dict[int, Fraction] | None:
    """A side by powers of x, zeros left out; None where x or zero is in its denominator."""
    above, below = (rational.substitute(part, spec.names, spec.bindings) for part in side)
    if set(below) != {0}:
        return None
    return {power: number / below[0] for power, number in above.items()}
