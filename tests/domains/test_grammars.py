"""Grammars against the verifiers: what is listed can be generated, what can be generated is well-formed."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from modebench.domains import get_domain
from modebench.domains.grammars import grammar_of
from modebench.errors import UsageError
from modebench.tasks import Task, load_tasks
from modebench.verifiers import verify
from modebench.verifiers.pantry_plan import MAX_PLAN_CHARACTERS
from modebench.verifiers.python_factors import MAX_CHARACTERS

CONSTRAINED = ("countdown", "python_factors", "mathir", "pantry_plan")


@cache
def matchers() -> Any:
    pytest.importorskip("llguidance")
    from modebench.sampling.constraints import Matchers
    from tests.sampling.tiny_models import EOS, tiny_tokenizer

    return Matchers(tiny_tokenizer(), [EOS])


@cache
def vocabulary() -> tuple[dict[str, int], int]:
    """Token of every character that the grammars write, and the end token."""
    from tests.sampling.tiny_models import EOS, tiny_tokenizer

    tokenizer = tiny_tokenizer()
    characters = [chr(code) for code in range(32, 127)]
    return {c: tokenizer(c, add_special_tokens=False)["input_ids"][0] for c in characters}, EOS


def accepts(grammar: str, text: str) -> bool:
    """Whether a whole text is of the grammar."""
    tokens, end = vocabulary()
    matcher = matchers().start(grammar)
    # The library's own call for many tokens: a thousand tasks have a quarter of a million answers.
    taken = matcher._matcher.consume_tokens([tokens[character] for character in text])
    return taken and bool(matcher.allowed(128)[end])


def walk(grammar: str, rng: random.Random) -> str:
    """A text of the grammar, every next character equally likely among those allowed."""
    tokens, end = vocabulary()
    characters = {token: character for character, token in tokens.items()}
    matcher, text = matchers().start(grammar), ""
    while (token := int(rng.choice(np.flatnonzero(matcher.allowed(128))))) != end:
        assert matcher.take(token) is None
        text += characters[token]
    return text


def cells(domain: str) -> list[tuple[str, int]]:
    return [(domain, level) for level in (1, 2, 3, 4, 5) if level > 1 or domain == "pantry_plan"]


def random_tasks(domain: str, count: int, splits: tuple[str, ...]) -> Iterator[Task]:
    """Random tasks of frozen splits, spread over the cells of a domain that have grammars."""
    every = [task for cell in cells(domain) for split in splits for task in load_tasks(*cell, split)]
    return iter(random.Random(0).sample(every, count))


def check(domain: str, tasks: Iterator[Task], modes: int, walks: int) -> None:
    """Listed answers of every task, at most `modes` of them, are accepted; walks are never malformed."""
    rng = random.Random(1)
    seen = set()
    for task in tasks:
        grammar = grammar_of(task)
        assert grammar is not None
        listed = list(get_domain(domain).solutions(task.reference, task.level))
        for solution in listed if len(listed) <= modes else rng.sample(listed, modes):
            assert accepts(grammar, solution.answer), (task.id, solution.answer)
        for _ in range(walks):
            text = walk(grammar, rng)
            verdict = verify(task, text)
            assert verdict.status != "malformed", (task.id, text, verdict.detail)
            seen.add(verdict.status)
    assert "incorrect" in seen


@pytest.mark.parametrize("domain", CONSTRAINED)
def test_listed_modes_can_be_generated_and_what_is_generated_is_not_malformed(domain: str) -> None:
    check(domain, random_tasks(domain, 8, ("eval",)), modes=8, walks=8)


@pytest.mark.slow
@pytest.mark.parametrize("domain", CONSTRAINED)
def test_the_same_for_every_listed_mode_of_a_thousand_tasks(domain: str) -> None:
    check(domain, random_tasks(domain, 1000, ("train", "dev", "eval")), modes=10**9, walks=4)


def test_constrained_cells_are_those_of_the_published_grid() -> None:
    found = {
        (domain, level)
        for domain in (*CONSTRAINED, "graph_coloring")
        for level in (1, 2, 3, 4, 5)
        if grammar_of(load_tasks(domain, level)[0]) is not None
    }
    assert found == {cell for domain in CONSTRAINED for cell in cells(domain)}


def test_the_masks_are_exactly_the_64() -> None:
    grammar = grammar_of(load_tasks("pantry_plan")[0])
    assert grammar == "root ::= [01]{6}\n"
    assert all(accepts(grammar, "".join(bits)) for bits in product("01", repeat=6))
    assert not any(accepts(grammar, text) for text in ("01010", "0101010", "\\boxed{010101}", "010102", ""))


def task_of(domain: str, reference: dict[str, Any], level: int = 2) -> Task:
    return Task("t", domain, level, "eval", "?", reference)


def test_countdown_has_every_tree_with_each_number_once() -> None:
    grammar = grammar_of(task_of("countdown", {"verifier": "countdown", "numbers": [3, 3, 12], "target": 1}))
    assert grammar is not None
    right = ["3+(3*12)", "(12-3)/3", "12 * (3 - 3)", "3/(12+ 3)".replace("+ ", "+")]
    assert all(accepts(grammar, f"\\boxed{{{text}}}") for text in right)
    wrong = ["3+3", "3+3*12", "12+(12+3)", "3+(3+(3+12))", "(3+(3+12))", "3**(3+12)", "-3+(3+12)", "33+12"]
    assert not any(accepts(grammar, f"\\boxed{{{text}}}") for text in wrong)
    assert not accepts(grammar, "3+(3*12)")


def test_countdown_refuses_what_it_cannot_write() -> None:
    for numbers, problem in (([-1, 2, 3], "cannot write -1"), ([*range(2, 15)], "13 numbers are too many")):
        with pytest.raises(UsageError, match=problem):
            grammar_of(task_of("countdown", {"verifier": "countdown", "numbers": numbers, "target": 1}))


def python_grammar() -> str:
    grammar = grammar_of(load_tasks("python_factors", 2)[0])
    assert grammar is not None
    return grammar


def test_python_has_the_flat_programs_up_to_the_limit_of_nodes() -> None:
    grammar = python_grammar()
    dispatch = " ".join(f"{d} if n=={100 + d} else" for d in range(2, 9))
    trial = " ".join(f"{p} if n%{p}==0 else" for p in (2, 3, 5, 7, 11))
    right = [
        f"{dispatch} 9", f"{trial} n", "n", "10000", "n if n > 2 and 3 else n // 2 % 7 + 1",
        "+".join(["n"] * 15),  # 15 names of 2 nodes and 14 operators of 2: 58
    ]  # fmt: skip
    assert all(accepts(grammar, f"\\boxed{{lambda n: {text}}}") for text in right)
    wrong = [
        "+".join(["n"] * 16), f"{trial} 13 if n%13==0 else n", "10001", "007", "2 if 3 else n", "-n",
        "(n)", "n**2", "n/2", "n if n>2", "f(n)", "[n]", "x",
    ]  # fmt: skip
    assert not any(accepts(grammar, f"\\boxed{{lambda n: {text}}}") for text in wrong)


def longest(node: Any, rules: dict[str, Any]) -> int:
    """Characters of the longest text of a part of a grammar without recursion."""
    name = type(node).__name__
    if name == "LiteralNode":
        return len(node.value.replace("\\\\", "\\"))
    if name == "RegexNode":
        return 1
    if name == "RepetitionNode":
        return int(node.max_times) * longest(node.node, rules)
    if name == "RuleRefNode":
        if not isinstance(rules[node.name], int):
            rules[node.name] = longest(rules[node.name].alternatives, rules)
        return int(rules[node.name])
    lengths = [longest(child, rules) for child in node.children()]
    return max(lengths) if name == "AlternativeNode" else sum(lengths)


def test_no_text_is_longer_than_the_verifiers_take() -> None:
    gbnf = pytest.importorskip("llguidance.gbnf_to_lark")
    box = len("\\boxed{}")

    def longest_of(grammar: str | None) -> int:
        rules = gbnf.GrammarParser().parse(grammar)
        return longest(gbnf.RuleRefNode("root"), rules)

    assert 200 < longest_of(python_grammar()) - box <= MAX_CHARACTERS
    tasks = [task for level in (2, 3, 4, 5) for task in load_tasks("pantry_plan", level)]
    assert max(longest_of(grammar_of(task)) for task in tasks[::16]) - box <= MAX_PLAN_CHARACTERS


def test_mathir_takes_menu_letters_up_to_the_number_of_steps() -> None:
    task = load_tasks("mathir", 2)[0]
    grammar = grammar_of(dataclasses.replace(task, reference={**task.reference, "max_steps": 3}))
    assert grammar is not None
    assert all(accepts(grammar, f"\\boxed{{{text}}}") for text in ("A", "F;F", "C;A;F"))
    assert not any(accepts(grammar, f"\\boxed{{{text}}}") for text in ("", "G", "A;", "A;B;C;D", "AB", "a"))
    one = grammar_of(dataclasses.replace(task, reference={**task.reference, "max_steps": 1}))
    assert one is not None
    assert accepts(one, "\\boxed{B}")
    assert not accepts(one, "\\boxed{B;B}")
    assert grammar_of(task_of("mathir", {"verifier": "mathir_algebra"})) is None


def test_pantry_takes_different_ingredients_in_any_order_with_amounts_of_their_grid() -> None:
    rows = [
        {"id": name, "available_g": 100, "step_g": 25, "min_if_used_g": 50} for name in ("oat", "oats", "rye")
    ]
    reference = {"ingredients": rows, "min_ingredients": 2, "max_ingredients": 2}
    grammar = grammar_of(task_of("pantry_plan", reference))
    assert grammar is not None
    right = ("oat=50;oats=75", "oats=100;oat=50", "rye=75;oat=100")
    assert all(accepts(grammar, f"\\boxed{{{text}}}") for text in right)
    wrong = (
        "oat=50",
        "oat=50;oat=75",
        "oat=25;rye=50",
        "oat=60;rye=50",
        "oat=50;rye=50;oats=50",
        "corn=50;rye=50",
    )
    assert not any(accepts(grammar, f"\\boxed{{{text}}}") for text in wrong)
    many = [{**rows[0], "id": f"food{i}"} for i in range(16)]
    with pytest.raises(UsageError, match="16 of 16 ingredients are too many"):
        grammar_of(task_of("pantry_plan", {**reference, "ingredients": many, "max_ingredients": 16}))


def test_grammars_are_texts_that_do_not_change() -> None:
    """They are hashed into the manifest."""
    for domain in CONSTRAINED:
        task = load_tasks(domain, 2)[0]
        assert grammar_of(task) == grammar_of(task)
        assert str(grammar_of(task)).startswith("root ::= ")
