"""Grammars of well-formed answers, for constrained decoding: a task in, text in GBNF out.

The cells are those that arXiv:2610.11064 constrains: levels 2 to 5 of every domain but graph colouring, and
the masks of pantry level 1. A grammar knows what the verifier calls well-formed and nothing of what makes an
answer right: no target, no bound, no forbidden tag. Every text of it is correct or incorrect in the
`published` reading, never malformed, and every listed mode has an answer in it:

* Countdown: every tree over the given numbers, each used once, all inner operands in parentheses.
* Python: ``lambda n:`` and an expression without parentheses, calls and unary signs, of at most the
  verifier's 64 syntax nodes.
* MathIR: one letter of the menu for each of at most the allowed number of steps; written commands, whose
  modes cannot be listed, have no grammar.
* Pantry: different ingredients in any order, as many as allowed, each with an amount of its grid.

GBNF is the notation of llama.cpp, which xgrammar reads (vLLM), and llguidance after a conversion of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from modebench.errors import UsageError
from modebench.tasks import Task
from modebench.verifiers.mathir import MAX_STEPS
from modebench.verifiers.pantry_plan import MASK_BITS
from modebench.verifiers.python_expression import BINARY, CHAIN, COMPARE
from modebench.verifiers.python_factors import EXPRESSION_NODE, MAX_LITERAL, MAX_NODES

MAX_RULES = 4_096
"""Rules of one grammar; a reference that would need more is refused."""

_OPEN, _CLOSE = r'"\\boxed{"', '"}"'
Rules = dict[str, str]


def grammar_of(task: Task) -> str | None:
    """The grammar of the answers to a task, or None where its cell is not constrained.

    Raises:
        UsageError: the reference is too large, or holds a number that cannot be written without a sign.
    """
    reference = task.reference
    if task.domain == "pantry_plan" and task.level == 1:
        return f"root ::= [01]{{{MASK_BITS}}}\n"
    if task.level == 1:
        return None
    match task.domain:
        case "countdown":
            return _text(_countdown(tuple(sorted(reference["numbers"]))))
        case "python_factors":
            return _text(_python())
        case "mathir" if reference["verifier"] == "mathir_action_menu":
            return _text(_mathir(list(reference["actions"]), reference.get("max_steps", MAX_STEPS)))
        case "pantry_plan":
            return _text(_pantry(reference))
    return None


def _text(rules: Rules) -> str:
    return "".join(f"{name} ::= {rule}\n" for name, rule in rules.items())


def _any(alternatives: Iterable[str]) -> str:
    return " | ".join(alternatives)


def _quoted(text: str) -> str:
    return f'"{text}"'


def _countdown(numbers: tuple[int, ...]) -> Rules:
    """A rule for every sub-multiset of two numbers or more: its trees."""
    if numbers[0] < 0:
        raise UsageError(f"a grammar of expressions without signs cannot write {numbers[0]}")
    if 2 ** len(numbers) > MAX_RULES:
        raise UsageError(f"{len(numbers)} numbers are too many for a grammar of their expressions")
    rules = {"root": f"{_OPEN} {_tree(numbers)} {_CLOSE}", "sign": _any(map(_spaced, "+-*/"))}
    for size in range(2, len(numbers) + 1):
        for part in dict.fromkeys(combinations(numbers, size)):
            rules[_tree(part)] = _any(f"{_side(a)} sign {_side(b)}" for a, b in _ordered_splits(part))
    return rules


def _ordered_splits(numbers: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(left, right) for every way to deal a sorted multiset to two sides, neither of them empty."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
    positions = range(len(numbers))
    for size in range(1, len(numbers)):
        for chosen in combinations(positions, size):
            left = tuple(numbers[i] for i in chosen)
            found[left, tuple(numbers[i] for i in positions if i not in chosen)] = None
    return list(found)


def _tree(numbers: tuple[int, ...]) -> str:
    return f"of-{'-'.join(map(str, numbers))}" if len(numbers) > 1 else _quoted(str(numbers[0]))


def _side(numbers: tuple[int, ...]) -> str:
    return f'"(" {_tree(numbers)} ")"' if len(numbers) > 1 else _tree(numbers)


def _spaced(symbol: str) -> str:
    """A symbol with or without blanks around it, a word always with."""
    return _quoted(f" {symbol} ") if symbol.isalpha() else f'"{symbol}" | " {symbol} "'


def _python() -> Rules:
    """Right-linear rules that carry the syntax nodes still to be spent, in the verifier's count.

    An integer is one node, ``n`` is two (`_N`), an operator at most two (`_SIGN`), a conditional one. A test
    starts with ``n`` and an operator: then 7 nodes pay for the at most 26 characters of a conditional, and
    no program exceeds the verifier's length.
    """
    nodes = MAX_NODES - EXPRESSION_NODE - _LAMBDA
    digits = len(str(MAX_LITERAL - 1))
    rules = {
        "root": f'{_OPEN} "lambda n: " value-{nodes} {_CLOSE}',
        "int": f'"0" | [1-9] [0-9]{{0,{digits - 1}}} | "{MAX_LITERAL}"',
        "sign": _any(map(_spaced, (*BINARY, *COMPARE, *CHAIN))),
    }
    for left in range(1, nodes + 1):
        rules[f"value-{left}"] = _operand(left, "rest")
        rules[f"rest-{left}"] = _any(
            [
                *([f"sign value-{left - _SIGN}"] if left > _SIGN else []),
                *([f'" if n" sign test-{left - _IF}'] if left - _IF >= _TEST else []),
            ]
        )
    for left in range(_TEST, nodes + 1):
        rules[f"test-{left}"] = _operand(left, "tested", reserved=1)
        rules[f"tested-{left}"] = _any(
            [f'" else " value-{left}', *([f"sign test-{left - _SIGN}"] if left - _SIGN >= _TEST else [])]
        )
    rules["tested-1"] = '" else " value-1'
    return {name: rule for name, rule in rules.items() if rule}  # nothing can follow once too little is left


_N, _SIGN, _LAMBDA = 2, 2, 3
_IF = 1 + _N + _SIGN
_TEST = 2  # the rest of a test, and what stands behind its else


def _operand(left: int, then: str, reserved: int = 0) -> str:
    """An operand for at most `left` nodes, `reserved` of which must remain."""
    found = []
    for text, cost in (("int", 1), ('"n"', _N)):
        rest = left - cost
        if rest >= reserved:
            # What follows a value is optional, and too little may remain for anything to follow.
            optional = "" if reserved else "?"
            follows = bool(reserved) or rest > _SIGN
            found.append(f"{text} {then}-{rest}{optional}" if follows else text)
    return _any(found)


def _mathir(letters: Sequence[str], max_steps: int) -> Rules:
    further = f' (";" letter){{0,{max_steps - 1}}}' if max_steps > 1 else ""
    return {"root": f"{_OPEN} letter{further} {_CLOSE}", "letter": _any(map(_quoted, letters))}


def _pantry(reference: Mapping[str, Any]) -> Rules:
    """A rule for every set of ingredients that may be named already."""
    rows = reference["ingredients"]
    low, high = reference["min_ingredients"], reference["max_ingredients"]
    rules = {"root": f"{_OPEN} {_beside(())} {_CLOSE}"}
    for size in range(high):
        for used in combinations(range(len(rows)), size):
            rules[_beside(used)] = _any(
                _chosen(new, tuple(sorted((*used, new))), low, high)
                for new in range(len(rows))
                if new not in used
            )
            if len(rules) > MAX_RULES:
                raise UsageError(f"{high} of {len(rows)} ingredients are too many for a grammar of plans")
    for number, row in enumerate(rows):
        amounts = range(row["min_if_used_g"], row["available_g"] + 1, row["step_g"])
        rules[f"row-{number}"] = f'"{row["id"]}=" ({_any(_quoted(str(grams)) for grams in amounts)})'
    return rules


def _beside(used: tuple[int, ...]) -> str:
    return "-".join(("beside", *map(str, used)))


def _chosen(new: int, used: tuple[int, ...], low: int, high: int) -> str:
    """One more ingredient, and what may or must follow it."""
    if len(used) == high:
        return f"row-{new}"
    follows = f'";" {_beside(used)}'
    return f"row-{new} {follows}" if len(used) < low else f"row-{new} ({follows})?"
