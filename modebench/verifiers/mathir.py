"""MathIR: solve a linear equation by commands on both sides.

A menu task offers commands by letter; a program task lets the response write them. States are
symbolic: after every command both sides are brought to the normal form of `rational`, and the mode
is the sequence of states after each command. The bindings only serve to refuse zero divisors and to
check the final value. The reachable states of a menu are few and kept with the compiled task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from modebench.verifiers import rational
from modebench.verifiers.extraction import MATHIR, extract
from modebench.verifiers.mathir_solution import solution
from modebench.verifiers.rational import Rational
from modebench.verifiers.reference import require_int, require_verifier
from modebench.verifiers.verdict import InvalidReference, Verdict, correct, incorrect, malformed

MAX_STEPS = 4
MAX_ANSWER_CHARACTERS = 160
_MAX_DEPTH = 6
_MAX_EQUATION_NODES = 31
_MAX_ARGUMENT_NODES = 11
_VERSIONS = {"mathir_action_menu": "linear-menu-v1", "mathir_algebra": "linear-v0"}
_COMMANDS = ("add", "sub", "mul", "div")
_LETTERS = "ABCDEFGH"

_BLANKS = re.compile(r"\s+")
_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_]*|[(),;]")
_COMMAND = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\((.*)\)")
_BINDING_NAME = re.compile(r"[a-wyz]")
_BINDING_VALUE = re.compile(r"-?\d+(?:/[1-9]\d*)?")


class Expression(NamedTuple):
    """A parsed expression: ``sym`` (its name in `symbol`), ``neg`` or a binary operation."""

    op: str
    symbol: str
    children: tuple[Expression, ...]


class Command(NamedTuple):
    """One command applied to both sides of the equation."""

    op: str
    argument: Expression


class State(NamedTuple):
    """An equation in normal form; equal states have equal text."""

    lhs: Rational
    rhs: Rational
    text: str


class Refused(ValueError):  # noqa: N818 - a verdict, not an error
    """A command or expression that the contract refuses; the message is the verdict's detail."""


@dataclass(frozen=True)
class Spec:
    """A checked reference.

    Attributes:
        names: symbols of the task, x included, in the order of `rational`.
        bindings: their numeric values, x excluded.
        start: the initial equation.
        target: the numeric solution.
        max_steps: commands allowed.
        prefix: the mode key's prefix.
        actions: commands by letter; empty for a program task.
    """

    names: tuple[str, ...]
    bindings: Mapping[str, Fraction]
    start: State
    target: Fraction
    max_steps: int
    prefix: str
    actions: Mapping[str, Command]
    _moves: dict[tuple[str, str], State | str] = field(default_factory=dict, compare=False)

    def step(self, state: State, letter: str) -> State | None:
        """The state after a menu command, or None where the command is not allowed there."""
        moved = self.move(state, letter)
        return moved if isinstance(moved, State) else None

    def move(self, state: State, letter: str) -> State | str:
        """The state after a menu command, or why it is refused; remembered for this task."""
        key = (state.text, letter)
        if key not in self._moves:
            self._moves[key] = apply(self, state, self.actions[letter])
        return self._moves[key]

    def solved(self, state: State) -> bool:
        """Whether one side is exactly x and the other, free of x, equals the solution."""
        for side, other in ((state.lhs, state.rhs), (state.rhs, state.lhs)):
            if side == self._x():
                return self._value(other) == self.target
        return False

    def key(self, states: Sequence[State]) -> str:
        """Mode key of the states after each command."""
        return self.prefix + ">".join(state.text for state in states)

    def _x(self) -> Rational:
        return rational.variable(self.names.index("x"), len(self.names))

    def _value(self, side: Rational) -> Fraction | None:
        """Numeric value of a side; None where it holds x or divides by zero."""
        index = self.names.index("x")
        if any(monomial[index] for part in side for monomial in part):
            return None
        numerator, denominator = (rational.substitute(part, self.names, self.bindings) for part in side)
        return numerator.get(0, Fraction(0)) / denominator[0] if denominator else None


def judge(spec: Spec, response: str) -> Verdict:
    """The `published` verdict on a response."""
    candidate = extract(response, MATHIR)
    if candidate is None:
        return malformed("no answer found")
    # Pieces are counted before they are joined: a long text is refused without reading all of it.
    pieces = candidate.split(None, MAX_ANSWER_CHARACTERS)
    text = "".join(pieces)
    if not text or len(pieces) > MAX_ANSWER_CHARACTERS or len(text) > MAX_ANSWER_CHARACTERS:
        return malformed(f"empty or longer than {MAX_ANSWER_CHARACTERS} characters")
    return judge_menu(spec, text) if spec.actions else judge_program(spec, text)


def judge_menu(spec: Spec, text: str) -> Verdict:
    """Run an answer of menu letters, blanks removed."""
    letters = _split(text)
    if letters is None or not 1 <= len(letters) <= spec.max_steps:
        return malformed(f"not 1 to {spec.max_steps} letters separated by ;")
    unknown = [letter for letter in letters if letter not in spec.actions]
    if unknown:
        return malformed(f"{unknown[0][:20]!r} is not on the menu")
    return _run(spec, [partial(spec.move, letter=letter) for letter in letters])


def judge_program(spec: Spec, text: str) -> Verdict:
    """Run an answer of written commands, blanks removed."""
    pieces = _split(text)
    if pieces is None or not 1 <= len(pieces) <= spec.max_steps:
        return malformed(f"not 1 to {spec.max_steps} commands separated by ;")
    try:
        commands = [parse_command(piece, spec.names) for piece in pieces]
    except Refused as refused:
        return malformed(str(refused))
    return _run(spec, [partial(apply, spec, command=command) for command in commands])


def _run(spec: Spec, moves: Sequence[Callable[[State], State | str]]) -> Verdict:
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
    if spec.solved(current):
        return correct(spec.key(states))
    return incorrect("does not end with x isolated at the solution")


def _split(text: str) -> list[str] | None:
    """Pieces between semicolons; one trailing semicolon is dropped, an empty piece is None."""
    pieces = text.removesuffix(";").split(";")
    return None if "" in pieces else pieces


def apply(spec: Spec, state: State, command: Command) -> State | str:
    """Both sides of `state` after `command`, or why the command is refused."""
    op, argument = command
    try:
        _check_divisions(argument, spec.bindings)
        if op in ("mul", "div"):
            if _holds_x(argument):
                return "multiplies or divides by x"
            if _number(argument, spec.bindings) == 0:
                return "multiplies or divides by zero"
    except Refused as refused:
        return str(refused)
    value = build(argument, spec.names)
    sides = [rational.cancel(rational.combine(op, side, value)) for side in (state.lhs, state.rhs)]
    if sides[0] is None or sides[1] is None:
        return "leads to a power, which has no normal form"
    return _state(sides[0], sides[1], spec.names)


def _state(lhs: Rational, rhs: Rational, names: Sequence[str]) -> State:
    return State(lhs, rhs, f"eq({rational.text(lhs, names)},{rational.text(rhs, names)})")


def _check_divisions(expression: Expression, bindings: Mapping[str, Fraction]) -> None:
    """Refuse a division by something that holds x or is zero."""
    for child in expression.children:
        _check_divisions(child, bindings)
    if expression.op == "div":
        divisor = expression.children[1]
        if _holds_x(divisor):
            raise Refused("divides by an expression with x")
        if _number(divisor, bindings) == 0:
            raise Refused("divides by zero")


def _holds_x(expression: Expression) -> bool:
    return expression.symbol == "x" or any(_holds_x(child) for child in expression.children)


def _number(expression: Expression, bindings: Mapping[str, Fraction]) -> Fraction:
    """Numeric value of an expression without x whose divisions are checked."""
    if expression.op == "sym":
        return bindings[expression.symbol]
    values = [_number(child, bindings) for child in expression.children]
    if expression.op == "neg":
        return -values[0]
    left, right = values
    if expression.op == "add":
        return left + right
    if expression.op == "sub":
        return left - right
    return left * right if expression.op == "mul" else left / right


def build(expression: Expression, names: Sequence[str]) -> Rational:
    """The expression as a quotient of polynomials, not cancelled."""
    if expression.op == "sym":
        return rational.variable(names.index(expression.symbol), len(names))
    parts = [build(child, names) for child in expression.children]
    if expression.op == "neg":
        numerator, denominator = parts[0]
        return Rational({monomial: -number for monomial, number in numerator.items()}, denominator)
    return rational.combine(expression.op, *parts)


def parse_command(text: str, names: Sequence[str]) -> Command:
    """``op(expression)``; raises `Refused`."""
    match = _COMMAND.fullmatch(text)
    if match is None or match.group(1) not in _COMMANDS:
        raise Refused(f"{text[:40]!r} is not add, sub, mul or div of one expression")
    return Command(match.group(1), parse_expression(match.group(2), names, _MAX_ARGUMENT_NODES))


def parse_expression(text: str, names: Sequence[str], max_nodes: int) -> Expression:
    """An expression over `names`; blanks do not count. Raises `Refused`."""
    plain = _BLANKS.sub("", text)
    tokens = _TOKEN.findall(plain)
    if not tokens or sum(map(len, tokens)) != len(plain) or len(tokens) > 4 * max_nodes:
        raise Refused(f"{plain[:40]!r} is not an expression of at most {max_nodes} nodes")
    expression, end = _parse(tokens, 0, names, 0)
    if end != len(tokens):
        raise Refused(f"unexpected {tokens[end]!r} after the expression")
    if _size(expression) > max_nodes:
        raise Refused(f"expression of more than {max_nodes} nodes")
    return expression


def _parse(tokens: list[str], at: int, names: Sequence[str], depth: int) -> tuple[Expression, int]:
    if depth > _MAX_DEPTH:
        raise Refused(f"expression nested deeper than {_MAX_DEPTH}")
    name = tokens[at] if at < len(tokens) else "the end"
    if tokens[at + 1 : at + 2] != ["("]:
        if name not in names:
            raise Refused(f"unknown symbol {name[:20]!r}")
        return Expression("sym", name, ()), at + 1
    if name not in (*_COMMANDS, "neg"):
        raise Refused(f"unknown operation {name[:20]!r}")
    children: list[Expression] = []
    at += 1
    for expected in ("(",) if name == "neg" else ("(", ","):
        if tokens[at : at + 1] != [expected]:
            raise Refused(f"expected {expected!r} in {name}")
        child, at = _parse(tokens, at + 1, names, depth + 1)
        children.append(child)
    if tokens[at : at + 1] != [")"]:
        raise Refused(f"expected ')' after {name}")
    return Expression(name, "", tuple(children)), at + 1


def _size(expression: Expression) -> int:
    return 1 + sum(map(_size, expression.children))


def compile_reference(reference: Mapping[str, Any], level: int) -> Spec:
    """Check a reference; the level changes nothing here.

    Raises:
        InvalidReference: naming the field.
    """
    verifier = require_verifier(reference, *_VERSIONS)
    version = reference.get("mathir_version")
    if version != _VERSIONS[verifier]:
        raise InvalidReference(
            "reference.mathir_version", f"must be {_VERSIONS[verifier]!r}, not {version!r}"
        )
    bindings = _bindings(reference.get("bindings"))
    names = rational.sort_symbols(["x", *bindings])
    sides = [_side(reference, name, names) for name in ("initial_lhs", "initial_rhs")]
    used = set().union(*(_symbols(side) for side in sides)) - {"x"}
    if used != set(bindings):
        odd = sorted(used ^ set(bindings))
        raise InvalidReference("reference.bindings", f"and the initial equation disagree on {', '.join(odd)}")
    lhs, rhs = (_normal(side, names, field) for side, field in zip(sides, ("lhs", "rhs"), strict=True))
    return Spec(
        names=names,
        bindings=bindings,
        start=_state(lhs, rhs, names),
        target=solution(lhs, rhs, names, bindings),
        max_steps=require_int(reference.get("max_steps", MAX_STEPS), "reference.max_steps", 1, MAX_STEPS),
        prefix=f"mathir:{version}:",
        actions=_actions(reference.get("actions"), names) if verifier == "mathir_action_menu" else {},
    )


def _bindings(value: object) -> dict[str, Fraction]:
    if not isinstance(value, dict) or not 1 <= len(value) <= 6:
        raise InvalidReference("reference.bindings", "must be an object with 1 to 6 symbols")
    result: dict[str, Fraction] = {}
    for name, number in value.items():
        path = f"reference.bindings.{name}"
        if not _BINDING_NAME.fullmatch(name):
            raise InvalidReference(path, "symbols are single lower-case letters other than x")
        if type(number) is int:
            result[name] = Fraction(number)
        elif isinstance(number, str) and _BINDING_VALUE.fullmatch(number.strip()):
            try:
                result[name] = Fraction(*map(int, number.strip().split("/")))
            except ValueError as error:
                raise InvalidReference(path, str(error)) from None
        else:
            raise InvalidReference(path, f"must be an integer or a text like '-3/4', not {number!r}")
    return result


def _side(reference: Mapping[str, Any], name: str, names: Sequence[str]) -> Expression:
    value = reference.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidReference(f"reference.{name}", f"must be an expression, not {value!r}")
    try:
        return parse_expression(value, names, _MAX_EQUATION_NODES)
    except Refused as refused:
        raise InvalidReference(f"reference.{name}", str(refused)) from None


def _symbols(expression: Expression) -> set[str]:
    if expression.op == "sym":
        return {expression.symbol}
    return set().union(*map(_symbols, expression.children))


def _normal(expression: Expression, names: Sequence[str], side: str) -> Rational:
    value = rational.cancel(build(expression, names))
    if value is None:
        raise InvalidReference(f"reference.initial_{side}", "has no normal form (a power, or a zero divisor)")
    return value


def _actions(value: object, names: Sequence[str]) -> dict[str, Command]:
    if not isinstance(value, dict) or not 2 <= len(value) <= len(_LETTERS):
        raise InvalidReference("reference.actions", f"must be an object with 2 to {len(_LETTERS)} commands")
    if list(value) != list(_LETTERS[: len(value)]):
        raise InvalidReference("reference.actions", "must be keyed A, B, C, … in this order")
    texts: set[str] = set()
    actions: dict[str, Command] = {}
    for letter, program in value.items():
        path = f"reference.actions.{letter}"
        text = _BLANKS.sub("", program) if isinstance(program, str) else ""
        pieces = _split(text) if len(text) <= MAX_ANSWER_CHARACTERS else None
        if pieces is None or len(pieces) != 1:
            raise InvalidReference(path, f"must be one command, not {program!r}")
        if text in texts:
            raise InvalidReference(path, "repeats another action")
        texts.add(text)
        try:
            actions[letter] = parse_command(pieces[0], names)
        except Refused as refused:
            raise InvalidReference(path, str(refused)) from None
    return actions
