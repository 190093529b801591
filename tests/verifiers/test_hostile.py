"""Nothing in a response runs, raises, or changes the verdict with the circumstances."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from modebench.verifiers import InvalidReference, Reading, Verdict, verify
from modebench.verifiers.registry import READINGS
from tests.reference.pairs import DOMAINS, Pair, pairs
from tests.verifiers.examples import RIGHT, task
from tests.verifiers.hostile import CODE, GROWING, LIMIT, NOT_ANSWERS, forms, sized

Judged = dict[tuple[str, Reading], list[Verdict]]
every_reading = pytest.mark.parametrize("reading", READINGS)
every_example = pytest.mark.parametrize("name", list(RIGHT))

audited: list[str] | None = None
"""Interpreter events while it is a list."""


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if audited is not None:
        audited.append(event)


sys.addaudithook(_audit)


def corpus(marker: str = "marker") -> list[str]:
    """Every hostile text, small sizes of those that grow."""
    code = [text.replace("{{", "{").replace("}}", "}").replace("{marker}", marker) for text in CODE]
    grown = [form for family in GROWING for form in sized(family, 300)]
    return [form for text in (*code, *NOT_ANSWERS) for form in forms(text)[:2]] + grown


def judge_all(texts: list[str]) -> Judged:
    """Verdicts by example and reading, in the order of the texts."""
    return {
        (name, reading): [verify(task(name), text, reading) for text in texts]
        for name in RIGHT
        for reading in READINGS
    }


@pytest.fixture(scope="module")
def usual() -> Judged:
    """The verdicts of the corpus in ordinary circumstances."""
    return judge_all(corpus())


@every_reading
@every_example
def test_hostile_texts_get_verdicts_and_none_is_right(name: str, reading: Reading, usual: Judged) -> None:
    """The published reading of colourings takes any digits, and the clean one forgives formatting."""
    right = name == "graph_coloring" or reading == "clean"
    for text, verdict in zip(corpus(), usual[name, reading], strict=True):
        assert isinstance(verdict, Verdict)
        assert verdict.status in ("incorrect", "malformed", *["correct"] * right), text
        assert (verdict.mode is None) == (verdict.status != "correct")
        assert verdict.detail is None or len(verdict.detail) < 600


def test_nothing_executes(tmp_path: Path) -> None:
    """No import, no compilation, no file, no process: the interpreter reports nothing but the task's key."""
    global audited
    marker = tmp_path / "marker"
    texts = [*corpus(str(marker)), f"\\boxed{{{'{}' * 4_000}}}"]
    examples = [task(name) for name in RIGHT]
    judge_all(texts)
    audited = []
    try:
        for example in examples:
            for text in texts:
                for reading in READINGS:
                    verify(example, text, reading)
        events = set(audited)
    finally:
        audited = None
    assert events <= {"marshal.dumps"}
    assert list(tmp_path.iterdir()) == []


def test_the_audit_would_notice() -> None:
    global audited
    audited = []
    try:
        compile("1", "program", "eval")
        Path(__file__).open().close()
        events = set(audited)
    finally:
        audited = None
    assert events >= {"compile", "open"}


def at_depth(frames: int, call: Callable[[], Any]) -> Any:
    return call() if frames == 0 else at_depth(frames - 1, call)


def test_same_verdicts_deep_in_the_stack(usual: Judged) -> None:
    assert at_depth(500, lambda: judge_all(corpus())) == usual


def test_same_verdicts_in_threads(usual: Judged) -> None:
    """Eight threads on the same tasks, each with every fourth text, so that all share what is remembered."""
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(judge_all, corpus()[start % 4 :: 4]) for start in range(8)]
        for start, future in enumerate(futures):
            assert future.result() == {each: verdicts[start % 4 :: 4] for each, verdicts in usual.items()}


def test_same_verdicts_in_an_event_loop(usual: Judged) -> None:
    async def main() -> list[Judged]:
        async def here() -> Judged:
            return judge_all(corpus())

        return list(await asyncio.gather(here(), asyncio.to_thread(judge_all, corpus())))

    assert asyncio.run(main()) == [usual] * 2


def test_same_verdicts_with_warnings_as_errors(usual: Judged) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert judge_all(corpus()) == usual


def test_same_verdicts_with_the_lowest_digit_limit(usual: Judged) -> None:
    """`sys.set_int_max_str_digits` is the user's, and 640 is the least it can be."""
    long = "9" * 3_000
    near = [
        f"{long}+6+9",
        f"1/{long}+2.0",
        f"3+6+9={long}",
        f"-{long}=3+6+9",
        f"oats={long};lentils=75",
        f"lambda n: {long}",
    ]
    texts = [form for text in (*near, long, f"{long} 1=2") for form in forms(text)]
    before = sys.get_int_max_str_digits()
    wanted = judge_all(texts)
    sys.set_int_max_str_digits(640)
    try:
        assert judge_all(texts) == wanted
    finally:
        sys.set_int_max_str_digits(before)


@every_example
def test_full_length(name: str) -> None:
    """At the length limit every family still gets a verdict; one character more is refused unread."""
    for family in GROWING:
        for text in sized(family):
            assert len(text) <= LIMIT
            assert verify(task(name), text).status in ("correct", "incorrect", "malformed")
            longer = text + "x" * (LIMIT + 1 - len(text))
            assert verify(task(name), longer) == Verdict("malformed", None, f"longer than {LIMIT} characters")


def steps(call: Callable[[], Any]) -> int:
    """Bytecode instructions that the package executes during a call."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if "modebench" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.slow
@every_example
def test_full_length_in_the_clean_reading(name: str) -> None:
    for family in GROWING:
        for text in sized(family):
            assert verify(task(name), text, "clean").status in ("correct", "incorrect", "malformed")


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        *((name, "published") for name in RIGHT),
        ("graph_coloring", "clean"),
        *(pytest.param(name, "clean", marks=pytest.mark.slow) for name in RIGHT if name != "graph_coloring"),
    ],
)
def test_work_is_at_most_linear_in_the_text(name: str, reading: Reading) -> None:
    """Twice the text, at most twice the instructions and a little."""
    example = task(name)
    for family in GROWING:
        for text in forms(GROWING[family](40)):  # CPython 3.13 counts little of code that it traces first
            steps(lambda text=text: verify(example, text, reading))
    for family in GROWING:
        for small, large in zip(*(forms(GROWING[family](size)) for size in (200, 400)), strict=True):
            few, many = (steps(lambda text=text: verify(example, text, reading)) for text in (small, large))
            assert many <= 2.2 * few + 500, (family, few, many)


def test_the_step_count_sees_quadratic_work() -> None:
    source = "def pairs(n):\n    return sum(1 for _ in range(n) for _ in range(n))\n"
    scope: dict[str, Any] = {}
    exec(compile(source, "modebench/made-up.py", "exec"), scope)
    few, many = (steps(lambda size=size: scope["pairs"](size)) for size in (30, 60))
    assert many > 3 * few > 0


@pytest.mark.parametrize("domain", DOMAINS)
def test_random_pairs_get_a_verdict_or_a_named_field(domain: str) -> None:
    statuses = set()
    for pair in pairs(5, domain, 500):
        statuses.add(total(pair))
    assert statuses == {"correct", "incorrect", "malformed", "invalid_reference"}


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_random_pairs_get_a_verdict_or_a_named_field_at_length(domain: str) -> None:
    for pair in pairs(6, domain, 30_000):
        total(pair)


def total(pair: Pair) -> str:
    try:
        verdicts = [verify(pair.task(), pair.response, reading) for reading in READINGS]
    except InvalidReference as error:
        return "invalid_reference" if error.field else "unnamed"
    assert verdicts == [verify(pair.task(), pair.response, reading) for reading in READINGS]
    assert all((verdict.mode is None) == (verdict.status != "correct") for verdict in verdicts)
    return verdicts[0].status
