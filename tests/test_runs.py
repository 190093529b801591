"""Run folders and JSON lines on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modebench.errors import InputError, UsageError
from modebench.reasoning import split_reasoning
from modebench.runs import RunFolder, drop_torn_line, json_line, read_jsonl


@given(st.dictionaries(st.text(), st.one_of(st.none(), st.text(), st.integers(), st.floats())))
def test_a_line_is_one_line_of_json_whatever_the_text(record: dict[str, object]) -> None:
    line = json_line(record)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    expected = {k: None if isinstance(v, float) and v - v != 0 else v for k, v in record.items()}
    assert json.loads(line) == expected


def test_a_lone_surrogate_survives() -> None:
    assert json.loads(json_line({"response": "a\ud800b"})) == {"response": "a\ud800b"}


@given(st.lists(st.text(alphabet="ab{}\u2028é", max_size=5), max_size=5), st.binary(max_size=9))
def test_only_a_torn_last_line_is_dropped(whole: list[str], torn: bytes) -> None:
    import tempfile

    kept = b"".join(json_line({"t": text}) for text in whole)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(kept + torn.replace(b"\n", b""))
        drop_torn_line(path)
        assert path.read_bytes() == kept


def test_a_long_torn_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"a":1}\n' + b"x" * 200_000)
    drop_torn_line(path)
    assert path.read_bytes() == b'{"a":1}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a":1}\n{"a"\n', r"f:2: record: is not JSON"),
        (b"[1]\n", r"f:1: record: must be a JSON object, not list"),
        (b"\xff\xfe\n", r"f:1: record: is not JSON"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_jsonl(tmp_path / "f"))


def test_opening_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a run folder"):
        RunFolder.open(tmp_path)
    (tmp_path / "run.json").write_text('{"schema": "other"}')
    with pytest.raises(InputError, match="schema"):
        RunFolder.open(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run.json:1: record: is not JSON"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize(
    ("response", "answer", "reasoning"),
    [
        ("plain", "plain", None),
        ("<think>a</think>b", "b", "a"),
        ("a</think>b", "b", "a"),
        ("<think>a", None, "a"),
        ("<think>a</think>b<think>c", None, "a\nc"),
        ("<think>a</think>b<think>c</think>d", "d", "abc"),
        ("", "", None),
        ("<think></think>b", "b", None),
        ("said < think > b", "said < think > b", None),
    ],
)
def test_reasoning_split(response: str, answer: str | None, reasoning: str | None) -> None:
    assert split_reasoning(response) == (answer, reasoning)
