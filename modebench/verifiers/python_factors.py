"""Python factors: one ``lambda n:`` that returns a proper divisor of every listed number.

The mode is the vector of outputs in case order. Programs are read and executed by
`python_expression`; nothing reaches CPython's compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from modebench.verifiers.extraction import PYTHON, extract, plain_lambda
from modebench.verifiers.python_expression import Node, evaluate, parse
from modebench.verifiers.reference import require_int, require_verifier
from modebench.verifiers.verdict import InvalidReference, Verdict, correct, incorrect, malformed

MAX_CHARACTERS = 240
MAX_NODES = 64
MAX_LITERAL = 10_000
EXPRESSION_NODE = 1  # the root that CPython's parser puts above the lambda


class Spec(NamedTuple):
    """A checked reference: the numbers on which the program runs, in order."""

    cases: tuple[int, ...]


def compile_reference(reference: Mapping[str, Any], level: int) -> Spec:
    """Check a reference; the level changes nothing here.

    Raises:
        InvalidReference: naming the field.
    """
    require_verifier(reference, "python_factor_function")
    if reference.get("python_version") != "factor-v1":
        raise InvalidReference(
            "reference.python_version", f"must be 'factor-v1', not {reference.get('python_version')!r}"
        )
    cases = reference.get("cases")
    if not isinstance(cases, list) or not 2 <= len(cases) <= 8:
        raise InvalidReference("reference.cases", "must list 2 to 8 numbers")
    modes = 1
    for index, case in enumerate(cases):
        require_int(case, f"reference.cases[{index}]", 4, 1000)
        modes *= sum(case % divisor == 0 for divisor in range(2, case))
        if modes == 0:
            raise InvalidReference(f"reference.cases[{index}]", f"{case} is prime")
    if len(set(cases)) != len(cases):
        raise InvalidReference("reference.cases", "must be distinct")
    if modes < 2:
        raise InvalidReference("reference.cases", "admit only one vector of proper divisors")
    return Spec(tuple(cases))


def judge(spec: Spec, response: str) -> Verdict:
    """The `published` verdict on a response."""
    candidate = extract(response, PYTHON)
    if candidate is None:
        return malformed("no answer found")
    return judge_program(spec, plain_lambda(candidate))


def judge_program(spec: Spec, text: str) -> Verdict:
    """Check one program against the contract and run it on every case.

    The published reference crashes on arithmetic with a function (an incorrect program) and on a
    lambda that names a parameter twice (not a program: malformed).
    """
    if not text:
        return malformed("no answer found")
    if len(text) > MAX_CHARACTERS:
        return malformed(f"program longer than {MAX_CHARACTERS} characters")
    tree = parse(text)
    if tree is None or tree.kind != "lambda":
        return malformed("not one lambda of the allowed syntax")
    if tree.parameters not in (("n",), ("n", ",")):
        return malformed("the lambda's parameters are not exactly n")
    if tree.nodes + EXPRESSION_NODE > MAX_NODES:
        return malformed(f"program of more than {MAX_NODES} syntax nodes")
    if _largest_literal(tree) > MAX_LITERAL:
        return malformed(f"an integer literal above {MAX_LITERAL}")
    return _run(spec, tree.children[-1])


def _largest_literal(node: Node) -> int:
    if node.kind == "int":
        return int(node.value)
    return max((_largest_literal(child) for child in node.children), default=0)


def _run(spec: Spec, body: Node) -> Verdict:
    outputs: list[str] = []
    for case in spec.cases:
        try:
            output = evaluate(body, case)
        except (ArithmeticError, TypeError) as error:
            return incorrect(f"fails on {case}: {error}")
        if type(output) is not int:
            return incorrect(f"returns a {type(output).__name__}, not an integer, on {case}")
        if not (1 < output < case and case % output == 0):
            return incorrect(f"returns {output} on {case}, not a proper divisor")
        outputs.append(str(output))
    return correct(f"python_factor:{','.join(outputs)}")
