"""Countdown: reach a target using each given number exactly once.

The candidate is split at every ``=``; the first part that is a right expression wins. The mode is
the expression tree with the operands of + and × sorted (no flattening, no folding). Arithmetic is
exact; an own operator-precedence parser with an explicit stack reads the grammar that CPython gives
these characters, in time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from modebench.verifiers.extraction import SHORT_LINE, extract
from modebench.verifiers.reference import require_int, require_verifier
from modebench.verifiers.verdict import InvalidReference, Verdict, correct, incorrect, malformed

MAX_TREE_DEPTH = 987
"""Levels of an expression tree. The published reference answers at up to this depth and crashes on
every deeper tree; those parts are not read, instead of voiding the run."""

_MAX_PARENTHESES = 200
_MAX_DIGITS = 4_300
_PIECE = 500
# Zero tests of parts that cannot be correct are made modulo this Mersenne prime: never wrong for
# values whose numerator is smaller, and bounded whatever the text says.
_PRIME = 2**521 - 1

_REPLACEMENTS = (
    ("\\times", "*"),
    ("\\cdot", "*"),
    ("\\div", "/"),
    ("÷", "/"),
    ("×", "*"),
    ("^", "**"),
)
_PREFIX = re.compile(r"\s*(?:expression|answer)\s*(?:is|=|:)\s*", re.IGNORECASE)
_DIGITS = re.compile("[0-9]+")
_PART = re.compile(r"[0-9+\-*/().\s*]+")
_TOKEN = re.compile(
    r"(?P<float>[0-9]+\.[0-9]*|\.[0-9]+)|(?P<int>[0-9]+)|(?P<sign>\*\*|//|[-+*/])|(?P<open>\()|(?P<close>\))"
    r"|(?P<ellipsis>\.\.\.)|(?P<blank>[ \t\f]+)|(?P<newline>[\n\r]+)|(?P<error>.)",
    re.DOTALL,
)

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "pos": 3, "neg": 3, "**": 4, "(": 0, "call": 0}
_UNSUPPORTED = "?"
_NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


class Spec(NamedTuple):
    """A checked reference.

    Attributes:
        numbers: the given numbers, sorted.
        target: the value to reach.
        digits: the numbers as decimal texts, sorted as texts.
    """

    numbers: tuple[int, ...]
    target: int
    digits: list[str]


class Expression(NamedTuple):
    """One expression in postfix order.

    Attributes:
        code: integer literals as digit strings, signs (``neg`` and ``pos`` are unary), and ``?``
            for what the published evaluator does not support (floats, calls, ``()``, ``...``).
        literals: the digit strings, left to right.
        supported: only integers, unary signs, + − × ÷.
    """

    code: list[str]
    literals: list[str]
    supported: bool


def compile_reference(reference: Mapping[str, Any], level: int) -> Spec:
    """Check a reference; the level changes nothing here.

    Raises:
        InvalidReference: naming the field.
    """
    require_verifier(reference, "countdown")
    numbers = reference.get("numbers")
    if not isinstance(numbers, list) or not numbers:
        raise InvalidReference("reference.numbers", f"must be a non-empty list, not {numbers!r}")
    checked = [require_int(number, f"reference.numbers[{index}]") for index, number in enumerate(numbers)]
    target = require_int(reference.get("target"), "reference.target")
    return Spec(tuple(sorted(checked)), target, sorted(map(str, checked)))


def judge(spec: Spec, response: str) -> Verdict:
    """The `published` verdict on a response."""
    candidate = extract(response, SHORT_LINE)
    if candidate is None:
        return malformed("no answer found")
    text = candidate.strip()
    for old, new in _REPLACEMENTS:
        text = text.replace(old, new)
    label = _PREFIX.match(text)
    if label:
        text = text[label.end() :].strip()
    evaluable = False
    for part in dict.fromkeys(text.split("=")):
        part = part.strip()
        promising = _holds_the_numbers(part, spec)
        if (evaluable and not promising) or not _PART.fullmatch(part):
            continue
        expression = parse(part)
        if expression is None:
            continue
        if promising and _reaches(expression, spec):
            return correct(f"countdown:{key(expression)}")
        evaluable = evaluable or expression.supported or _divides_by_zero_first(expression)
    if evaluable:
        return incorrect("does not reach the target with each number used once")
    return malformed("not an arithmetic expression")


def key(expression: Expression) -> str:
    """The mode of a supported expression, without the domain prefix."""
    stack: list[str] = []
    for item in expression.code:
        if item in _NAMES:
            right, left = stack.pop(), stack.pop()
            if item in "+*" and right < left:
                left, right = right, left
            stack.append(f"{_NAMES[item]}({left},{right})")
        elif item == "neg":
            stack.append(f"neg({stack.pop()})")
        elif item != "pos":
            stack.append(item.lstrip("0") or "0")
    return stack.pop()


def _holds_the_numbers(part: str, spec: Spec) -> bool:
    """Whether the runs of digits in a part are the given numbers, which any right answer's are."""
    runs = _DIGITS.findall(part)
    if len(runs) != len(spec.numbers):
        return False
    return sorted([run.lstrip("0") or "0" for run in runs]) == spec.digits


def _reaches(expression: Expression, spec: Spec) -> bool:
    """Uses exactly the given numbers and has exactly the target's value."""
    if not expression.supported or tuple(sorted(map(int, expression.literals))) != spec.numbers:
        return False
    stack: list[tuple[int, int]] = []
    for item in expression.code:
        if item == "neg":
            numerator, denominator = stack.pop()
            stack.append((-numerator, denominator))
        elif item in _NAMES:
            right, left = stack.pop(), stack.pop()
            if item == "/" and right[0] == 0:
                return False
            stack.append(_combine(item, left, right))
        elif item != "pos":
            stack.append((int(item), 1))
    numerator, denominator = stack.pop()
    return numerator == spec.target * denominator


def _combine(sign: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """An operation on fractions that are kept as (numerator, nonzero denominator), not reduced."""
    (a, b), (c, d) = left, right
    if sign == "+":
        return a * d + c * b, b * d
    if sign == "-":
        return a * d - c * b, b * d
    if sign == "*":
        return a * c, b * d
    return a * d, b * c


def _divides_by_zero_first(expression: Expression) -> bool:
    """Whether evaluation, left to right, meets a division by zero before anything unsupported."""
    stack: list[tuple[int, int]] = []
    for item in expression.code:
        if item in (_UNSUPPORTED, "//", "**"):
            return False
        if item == "neg":
            numerator, denominator = stack.pop()
            stack.append((-numerator, denominator))
        elif item in _NAMES:
            right, left = stack.pop(), stack.pop()
            if item == "/" and right[0] == 0:
                return True
            numerator, denominator = _combine(item, left, right)
            stack.append((numerator % _PRIME, denominator % _PRIME))
        elif item != "pos":
            stack.append((_residue(item), 1))
    return False


def _residue(digits: str) -> int:
    """A literal modulo the prime, piecewise: the interpreter may be set to refuse long ones."""
    if len(digits) <= _PIECE:
        return int(digits) % _PRIME
    result = 0
    for start in range(0, len(digits), _PIECE):
        piece = digits[start : start + _PIECE]
        result = (result * 10 ** len(piece) + int(piece)) % _PRIME
    return result


def parse(text: str) -> Expression | None:
    """Read one expression as CPython's grammar does, or None where that is a syntax error.

    Also None beyond 200 nested parentheses, 4,300 digits in a literal (both CPython's) and
    `MAX_TREE_DEPTH`.
    """
    parser = _Parser()
    for match in _TOKEN.finditer(text):
        if not parser.feed(match.lastgroup or "error", match.group()):
            return None
    return parser.finish()


class _Parser:
    """Operator precedence with an explicit stack: no recursion, whatever the nesting."""

    def __init__(self) -> None:
        self.code: list[str] = []
        self.literals: list[str] = []
        self.supported = True
        self.signs: list[str] = []
        self.operands: list[tuple[int, int, int]] = []  # (start in code, start in literals, depth)
        self.parentheses = 0
        self.after_operand = False
        self.argument_start = False  # just inside a call, where * and ** may unpack
        self.after_star = False

    def feed(self, kind: str, text: str) -> bool:
        """Take one token; False on a syntax error."""
        if kind == "blank":
            return True
        if kind == "newline":
            return self.parentheses > 0
        if self.argument_start and text in ("*", "**"):
            self.argument_start, self.after_star = False, True
            return True
        if self.after_star and kind == "close":
            return False
        self.argument_start = self.after_star = False
        if kind == "sign":
            return self._sign(text)
        if kind == "open":
            return self._open()
        if kind == "close":
            return self._close()
        if kind == "error" or self.after_operand:
            return False
        return self._operand(kind, text)

    def finish(self) -> Expression | None:
        if not self.after_operand or self.parentheses:
            return None
        if not all(self._apply(self.signs.pop()) for _ in range(len(self.signs))):
            return None
        return Expression(self.code, self.literals, self.supported)

    def _operand(self, kind: str, text: str) -> bool:
        start = (len(self.code), len(self.literals), 1)
        if kind == "int":
            if text[0] == "0" and text.strip("0"):
                return False
            if text[0] != "0" and len(text) > _MAX_DIGITS:
                return False
            self.literals.append(text if text[0] != "0" else "0")
            self.code.append(self.literals[-1])
        else:
            self.code.append(_UNSUPPORTED)
            self.supported = False
        self.operands.append(start)
        self.after_operand = True
        return True

    def _sign(self, text: str) -> bool:
        if not self.after_operand:
            if text not in "+-":
                return False
            self.signs.append("neg" if text == "-" else "pos")
            return True
        power = text == "**"
        level = _PRECEDENCE[text]
        while self.signs and _PRECEDENCE[self.signs[-1]] >= level + power:
            if not self._apply(self.signs.pop()):
                return False
        self.signs.append(text)
        self.after_operand = False
        return True

    def _open(self) -> bool:
        self.parentheses += 1
        if self.parentheses > _MAX_PARENTHESES:
            return False
        self.signs.append("call" if self.after_operand else "(")
        self.argument_start = self.after_operand
        self.after_operand = False
        return True

    def _close(self) -> bool:
        if not self.parentheses:
            return False
        self.parentheses -= 1
        empty = not self.after_operand
        if empty and self.signs[-1] not in ("(", "call"):
            return False
        while self.signs[-1] not in ("(", "call"):
            if not self._apply(self.signs.pop()):
                return False
        if self.signs.pop() == "call":
            if not empty:
                self.operands.pop()
            self._replace_by_unsupported(self.operands.pop())
        elif empty:
            self._replace_by_unsupported((len(self.code), len(self.literals), 0))
        self.after_operand = True
        return True

    def _replace_by_unsupported(self, operand: tuple[int, int, int]) -> None:
        """The published evaluator refuses a call or ``()`` before looking inside."""
        code, literals, depth = operand
        del self.code[code:]
        del self.literals[literals:]
        self.code.append(_UNSUPPORTED)
        self.supported = False
        self.operands.append((code, literals, depth + 1))

    def _apply(self, sign: str) -> bool:
        """Close the top sign over its operands; False beyond the depth limit."""
        code, literals, depth = self.operands.pop()
        if sign not in ("neg", "pos"):
            code, literals, left = self.operands.pop()
            depth = max(depth, left)
        self.code.append(sign)
        self.supported = self.supported and sign not in ("//", "**")
        self.operands.append((code, literals, depth + 1))
        return depth < MAX_TREE_DEPTH
