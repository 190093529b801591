"""Python programs judged by CPython itself, and by RestrictedPython, against our own parser and interpreter.

CPython compiles and runs only what the generators of this test suite wrote and only after its own
tree has been checked to hold nothing but arithmetic.
"""

from __future__ import annotations

import ast
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from modebench.verifiers.extraction import plain_lambda
from modebench.verifiers.python_expression import evaluate, parse
from modebench.verifiers.python_factors import Spec, judge_program
from tests.reference.python_pairs import CASES, TOKENS, answer, dress, expression, mapping, parameters

ALLOWED = (
    *(
        ast.Expression,
        ast.Lambda,
        ast.arguments,
        ast.arg,
        ast.IfExp,
        ast.BoolOp,
        ast.And,
        ast.Or,
        ast.UnaryOp,
    ),
    *(
        ast.Not,
        ast.USub,
        ast.UAdd,
        ast.Compare,
        ast.Eq,
        ast.NotEq,
        ast.Lt,
        ast.LtE,
        ast.Gt,
        ast.GtE,
        ast.BinOp,
    ),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Name, ast.Load, ast.Constant),
)
LAYOUT = (
    "# c\n",
    "(",
    "\\\n",
    " \\\n",
    "# c\n ",
    "\n",
    "# c\n\f",
    "# c\n \f",
    "\f",
    "\r",
    "#\r",
    "\\\n\n",
    "\\\r\n",
)
ENDS = (
    ")",
    "\n# c",
    "#x",
    "\\",
    "\n\n #",
    "\r",
    "\r\n#",
    " \f",
    "\\\n",
    "\n)",
    "\n2",
    ";",
    "\\\n#",
    "#\\\n",
    "\v",
)

Outcome = tuple[str, str | None]
Factory = Callable[[ast.Expression, str], Callable[[int], Any]]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def cpython(tree: ast.Expression, text: str) -> Callable[[int], Any]:
    return eval(compile(tree, "program", "eval"), {"__builtins__": {}})


def tree_of(text: str) -> ast.Expression | None:
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return None


def allowed(tree: ast.Expression) -> bool:
    """Whether the contract allows a tree; limits included."""
    top = tree.body
    if not isinstance(top, ast.Lambda):
        return False
    names = top.args
    others = [names.vararg, names.kwarg, *names.kwonlyargs, *names.posonlyargs, *names.defaults]
    if [each.arg for each in names.args] != ["n"] or any(others):
        return False
    nodes = list(ast.walk(tree))
    return len(nodes) <= 64 and all(_allowed_node(node) for node in nodes)


def _allowed_node(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id == "n"
    if isinstance(node, ast.Constant):
        return type(node.value) is int and node.value <= 10_000
    return isinstance(node, ALLOWED)


def judged(text: str, cases: tuple[int, ...], factory: Factory = cpython) -> Outcome:
    """The contract's verdict on a program, with CPython as parser and `factory` as executor."""
    tree = tree_of(text) if text and len(text) <= 240 else None
    if tree is None or not allowed(tree):
        return "malformed", None
    try:
        program = factory(tree, text)
    except SyntaxError:
        return "malformed", None
    outputs = []
    for case in cases:
        try:
            output = program(case)
        except (ArithmeticError, TypeError):
            return "incorrect", None
        if type(output) is not int or not (1 < output < case and case % output == 0):
            return "incorrect", None
        outputs.append(str(output))
    return "correct", f"python_factor:{','.join(outputs)}"


def program(rng: random.Random, cases: tuple[int, ...]) -> str:
    """A random program: grammatical, token soup, odd layout, or one of the pair generator's."""
    kind = rng.randrange(8)
    if kind < 3:
        text = f"lambda n: {expression(rng, rng.randint(1, 5))}"
        if rng.random() < 0.3:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice((*TOKENS, "")) + text[at + rng.randint(0, 1) :]
    elif kind == 3:
        text = "lambda n: " + "".join(rng.choice(TOKENS) for _ in range(rng.randint(1, 8)))
    elif kind == 4:
        text = f"lambda n: {rng.choice(('', 'n-n+', 'n*0+'))}{mapping(rng, list(cases))}"
    elif kind == 5:
        text = f"lambda n: (lambda {parameters(rng)}: {expression(rng, 1)}) and {mapping(rng, list(cases))}"
    elif kind == 6:
        text = dress(rng, expression(rng, 3))
    else:
        text = answer(rng, {"cases": list(cases)}, 1)
    if rng.random() < 0.12:
        text = rng.choice(LAYOUT) + text
    if rng.random() < 0.12:
        text += rng.choice(ENDS)
    return plain_lambda(text)


def compare(seed: int, count: int, factory: Factory = cpython) -> Counter[str]:
    statuses: Counter[str] = Counter()
    for index in range(count):
        rng = random.Random(f"python/{seed}/{index}")
        cases = tuple(rng.sample(CASES, 2))
        text = program(rng, cases)
        wanted = judged(text, cases, factory)
        verdict = judge_program(Spec(cases), text)
        assert (verdict.status, verdict.mode) == wanted, (text, cases)
        statuses[verdict.status] += 1
    return statuses


def test_verdicts_equal_cpython() -> None:
    statuses = compare(seed=1, count=3_000)
    assert min(statuses[name] for name in ("correct", "incorrect", "malformed")) > 250


@pytest.mark.slow
def test_verdicts_equal_cpython_at_length() -> None:
    assert compare(seed=2, count=60_000).total() == 60_000


def outcome(call: Callable[[], Any]) -> tuple[str, Any]:
    """A value with its type, or the kind of exception; functions are all alike."""
    try:
        value = call()
    except ArithmeticError:
        return "arithmetic error", None
    except TypeError:
        return "type error", None
    return ("number", (type(value), value)) if isinstance(value, int) else ("function", None)


def check_values(seed: int, count: int) -> Counter[str]:
    """Bodies of programs computed at many points, where a verdict would only say that a value is wrong."""
    found: Counter[str] = Counter()
    for index in range(count):
        rng = random.Random(f"values/{seed}/{index}")
        text = f"lambda n: {expression(rng, rng.randint(1, 5))}"
        tree, ours = tree_of(text), parse(text)
        if tree is None or ours is None:  # which of the two may be is for the tests of verdicts
            continue
        theirs = cpython(tree, text)
        for n in (-7, -1, 0, 1, 2, 3, 5, 12, 30, 97):
            wanted = outcome(lambda n=n, program=theirs: program(n))
            assert outcome(lambda n=n, body=ours.children[-1]: evaluate(body, n)) == wanted, (text, n)
            found[wanted[0]] += 1
    return found


def test_values_equal_cpython() -> None:
    found = check_values(seed=1, count=2_000)
    assert found["number"] > 10_000
    assert min(found[name] for name in ("arithmetic error", "type error", "function")) > 20


@pytest.mark.slow
def test_values_equal_cpython_at_length() -> None:
    assert check_values(seed=2, count=60_000)["number"] > 300_000


def test_sizes_equal_cpython() -> None:
    """Every accepted tree has exactly as many nodes as CPython's."""
    accepted = 0
    for index in range(2_500):
        text = program(random.Random(f"size/{index}"), (12, 18))[:240]
        ours = parse(text) if text else None
        if ours is not None:
            accepted += 1
            theirs = tree_of(text)
            assert theirs is not None, text
            assert ours.nodes + 1 == len(list(ast.walk(theirs))), text
    assert accepted > 900


def _restricted() -> Factory:
    compile_restricted = pytest.importorskip("RestrictedPython").compile_restricted

    def factory(tree: ast.Expression, text: str) -> Callable[[int], Any]:
        names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        if any(name.startswith("_") or name in ("print", "printed") for name in names):
            return cpython(tree, text)  # names that it keeps for itself
        return eval(compile_restricted(text, "program", "eval"), {"__builtins__": {}})

    return factory


def test_verdicts_equal_restricted_python() -> None:
    """Whatever we accept, a general-purpose sandbox accepts and computes too."""
    statuses = compare(seed=3, count=1_500, factory=_restricted())
    assert statuses["correct"] > 150


@pytest.mark.slow
def test_verdicts_equal_restricted_python_at_length() -> None:
    assert compare(seed=4, count=20_000, factory=_restricted()).total() == 20_000
