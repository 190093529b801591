"""Which right answers follow a strategy: what makes a coach prefix change what the tiny policy samples.

The answers of a task are those in the domain's listing, without boxes. Where no right answer follows the
advice, it does not apply to the task and all of them are left.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import MappingProxyType

from modebench.domains.base import Reference
from modebench.strategies import STRATEGIES

Answers = Sequence[str]
_Rule = Callable[[Reference, Answers], Answers]


def preferred(domain: str, strategy: str, reference: Reference, answers: Answers) -> Answers:
    """The right answers that follow a strategy.

    Args:
        domain: its name.
        strategy: name of one of its strategies.
        reference: the task.
        answers: right answers of the task, at least one, bare.
    """
    names = [known.name for known in STRATEGIES[domain]]
    return _RULES[domain][names.index(strategy)](reference, answers) or answers


def _best(answers: Answers, cost: Callable[[str], float | str | tuple[int, ...]]) -> Answers:
    costs = [cost(answer) for answer in answers]
    least = min(costs)
    return [answer for answer, value in zip(answers, costs, strict=True) if value == least]


# Graph colouring: an answer is the missing colours ----------------------------------------------


def _tightest(reference: Reference, answers: Answers) -> Answers:
    partial = reference["partial_colors"]
    hidden = [vertex for vertex, colour in enumerate(partial, 1) if colour is None]
    taken: dict[int, set[int]] = {vertex: set() for vertex in hidden}
    for edge in reference["edges"]:
        for one, other in (edge, edge[::-1]):
            if one in taken and partial[other - 1] is not None:
                taken[one].add(partial[other - 1])
    order = sorted(range(len(hidden)), key=lambda place: -len(taken[hidden[place]]))
    return _best(answers, lambda answer: "".join(answer[place] for place in order))


def _lowest(reference: Reference, answers: Answers) -> Answers:
    return [min(answers)]


def _highest(reference: Reference, answers: Answers) -> Answers:
    return [max(answers, key=lambda answer: answer[::-1])]


def _one_class(reference: Reference, answers: Answers) -> Answers:
    return _best(answers, lambda answer: -max(map(answer.count, "123")))


# Countdown: an answer is an expression ----------------------------------------------------------


def _sums(reference: Reference, answers: Answers) -> Answers:
    return [answer for answer in answers if not set(answer) & set("*/")]


def _product(reference: Reference, answers: Answers) -> Answers:
    return [answer for answer in answers if isinstance(_root(answer).op, ast.Mult)]


def _undo_largest(reference: Reference, answers: Answers) -> Answers:
    largest = max(reference["numbers"])

    def undone(answer: str) -> bool:
        sides = (_root(answer).left, _root(answer).right)
        return any(isinstance(side, ast.Constant) and side.value == largest for side in sides)

    return [answer for answer in answers if undone(answer)]


def _small_helper(reference: Reference, answers: Answers) -> Answers:
    def helped(answer: str) -> bool:
        inner = [node for node in ast.walk(_root(answer)) if isinstance(node, ast.BinOp)][1:]
        return any(_value(node) in (0, 1, 2) for node in inner if isinstance(node.op, ast.Sub | ast.Div))

    return [answer for answer in answers if helped(answer)]


def _root(answer: str) -> ast.BinOp:
    node = ast.parse(answer, mode="eval").body
    assert isinstance(node, ast.BinOp), answer
    return node


def _value(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Fraction(node.value)
    assert isinstance(node, ast.BinOp)
    left, right = _value(node.left), _value(node.right)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    return left * right if isinstance(node.op, ast.Mult) else left / right


# Python factors: an answer is a table of outputs, in the order of the inputs -------------------


def _pick_outputs(choose: Callable[[Sequence[int], int, int], bool]) -> _Rule:
    """Answers whose every output is chosen: (inputs, place, output) -> whether it follows the advice."""

    def rule(reference: Reference, answers: Answers) -> Answers:
        cases = reference["cases"]
        return [
            answer
            for answer in answers
            if all(choose(cases, place, output) for place, output in enumerate(outputs_of(answer)))
        ]

    return rule


def outputs_of(answer: str) -> list[int]:
    """The outputs of a dispatching lambda, in the order of its inputs."""
    *tests, last = answer.removeprefix("lambda n: ").split(" else ")
    return [int(test.split(" if ")[0]) for test in tests] + [int(last)]


def smallest_divisor(value: int) -> int:
    """The smallest divisor above 1."""
    return next(d for d in range(2, value + 1) if value % d == 0)


def _is_smallest(cases: Sequence[int], place: int, output: int) -> bool:
    return output == smallest_divisor(cases[place])


def _is_largest(cases: Sequence[int], place: int, output: int) -> bool:
    return output == cases[place] // smallest_divisor(cases[place])


def _halves(cases: Sequence[int], place: int, output: int) -> bool:
    return cases[place] % 2 == 1 or output == cases[place] // 2


def _by_size(cases: Sequence[int], place: int, output: int) -> bool:
    small = sorted(cases).index(cases[place]) < len(cases) / 2
    return (_is_smallest if small else _is_largest)(cases, place, output)


# MathIR: an answer is letters of the menu -------------------------------------------------------


def _first_command(fits: Callable[[str], bool]) -> _Rule:
    def rule(reference: Reference, answers: Answers) -> Answers:
        return [answer for answer in answers if fits(reference["actions"][answer[0]])]

    return rule


def _collects(command: str) -> bool:
    return command.startswith(("add", "sub")) and "x" in command


def _moves_constant(command: str) -> bool:
    return command.startswith(("add", "sub")) and "x" not in command


# Pantry: an answer is a mask --------------------------------------------------------------------


def _portion(row: Reference, attribute: str) -> Fraction:
    return Fraction(row["attributes_per_100g"][attribute]) * int(row["available_g"])


def _protein(reference: Reference, answers: Answers) -> Answers:
    rows = reference["ingredients"]
    richest = max(range(len(rows)), key=lambda place: _portion(rows[place], "protein_g"))
    return [answer for answer in answers if answer[richest] == "1"]


def _light(reference: Reference, answers: Answers) -> Answers:
    energies = [_portion(row, "energy_kcal") for row in reference["ingredients"]]
    return _best(
        answers,
        lambda answer: float(sum(e for e, bit in zip(energies, answer, strict=True) if bit == "1")),
    )


def _fewest(reference: Reference, answers: Answers) -> Answers:
    return _best(answers, lambda answer: answer.count("1"))


def _leave_out(reference: Reference, answers: Answers) -> Answers:
    rows = reference["ingredients"]
    scarcest = min(range(len(rows)), key=lambda place: int(rows[place]["available_g"]))
    return [answer for answer in answers if answer[scarcest] == "0"]


_RULES: MappingProxyType[str, tuple[_Rule, ...]] = MappingProxyType(
    {
        "graph_coloring": (_tightest, _lowest, _highest, _one_class),
        "countdown": (_sums, _product, _undo_largest, _small_helper),
        "python_factors": tuple(map(_pick_outputs, (_is_smallest, _is_largest, _halves, _by_size))),
        "mathir": tuple(
            map(
                _first_command,
                (_collects, _moves_constant, lambda c: c.startswith("mul"), lambda c: c.startswith("div")),
            )
        ),
        "pantry_plan": (_protein, _light, _fewest, _leave_out),
    }
)
"""The rules of each domain, in the order of its strategies."""
