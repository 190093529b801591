"""MathIR expressions in ordinary notation, with exactly the parentheses that they need.

References write ``sub(div(b,a))``; the compact text is ``-b/a``. Both ways are exact: every tree has one
text, and a text gives back its tree, also where another tree has the same value.
"""

from __future__ import annotations

import re
from string import ascii_lowercase

from modebench.variation.base import Scanner
from modebench.verifiers.mathir import Expression, parse_expression

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
OPERATIONS = {sign: operation for operation, sign in SIGNS.items()}
# How tightly a text binds: sums, products, a leading minus, single letters and parentheses.
SUM, PRODUCT, MINUS, ATOM = 1, 2, 3, 4

_MAX_NODES = 1_000  # the verifier's own limits are tighter
_MAX_DEPTH = 32
_LETTER = re.compile("[a-z]")


def infix(expression: str) -> str:
    """A prefix expression in ordinary notation."""
    return _infix(_tree(expression))[0]


def write_command(command: str) -> str:
    """``div(sub(a,d))`` as ``/(a-d)``: the sign, and its right side."""
    operation, argument = "".join(command.split()).removesuffix(";").removesuffix(")").split("(", 1)
    return SIGNS[operation] + _right_side(_tree(argument), operation)


def _tree(expression: str) -> Expression:
    return parse_expression(expression, ascii_lowercase, _MAX_NODES)


def _infix(tree: Expression) -> tuple[str, int]:
    """Text and how tightly it binds."""
    if tree.op == "sym":
        return tree.symbol, ATOM
    if tree.op == "neg":
        text, strength = _infix(tree.children[0])
        return f"-{text if strength >= MINUS else f'({text})'}", MINUS
    level = _level(tree.op)
    text, strength = _infix(tree.children[0])
    left = text if strength >= level else f"({text})"
    return left + SIGNS[tree.op] + _right_side(tree.children[1], tree.op), level


def _right_side(tree: Expression, operation: str) -> str:
    text, strength = _infix(tree)
    return text if strength > _level(operation) else f"({text})"


def _level(operation: str) -> int:
    return SUM if operation in ("add", "sub") else PRODUCT


def read_expression(scanner: Scanner) -> str:
    """Ordinary notation back to a prefix expression."""
    return _read(scanner, SUM, 0)


def read_command(scanner: Scanner) -> str:
    """A sign and its right side back to a command."""
    operation = OPERATIONS.get(scanner.text[scanner.at : scanner.at + 1])
    if operation is None:
        scanner.fail("a command: +, -, * or / and its right side")
    scanner.at += 1
    return f"{operation}({_read(scanner, _level(operation) + 1, 0)})"


def _read(scanner: Scanner, level: int, depth: int) -> str:
    """An expression that binds at least as tightly as `level`."""
    if depth > _MAX_DEPTH:
        scanner.fail(f"at most {_MAX_DEPTH} parentheses and signs in one another")
    if level > PRODUCT:
        return _read_operand(scanner, depth)
    found = _read(scanner, level + 1, depth)
    signs = "+-" if level == SUM else "*/"
    while (sign := scanner.text[scanner.at : scanner.at + 1]) and sign in signs:
        scanner.take(sign)
        found = f"{OPERATIONS[sign]}({found},{_read(scanner, level + 1, depth)})"
    return found


def _read_operand(scanner: Scanner, depth: int) -> str:
    if scanner.skip("-"):
        return f"neg({_read(scanner, MINUS, depth + 1)})"
    if scanner.skip("("):
        inner = _read(scanner, SUM, depth + 1)
        scanner.take(")")
        return inner
    return scanner.read(_LETTER, "a letter, '-' or '('")
