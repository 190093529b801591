"""Many responses, one process or several: the same verdicts, each different response judged once."""

from __future__ import annotations

import pytest

from modebench.tasks import load_tasks
from modebench.verifiers import InvalidReference, parallel, verify, verify_many


def mixed(count: int) -> list[tuple[object, str]]:
    tasks = [
        task for domain in ("countdown", "graph", "mathir", "pantry") for task in load_tasks(domain).head(3)
    ]
    texts = ["\\boxed{1}", "\\boxed{A;C}", "123", "110000", "\\boxed{3+6+9}", "x"]
    return [(tasks[i % len(tasks)], texts[i % len(texts)] + " " * (i % 3)) for i in range(count)]


@pytest.mark.parametrize("processes", [1, 2])
def test_verdicts_are_those_of_verify_in_order(processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CHUNK", 100)
    items = mixed(1_050)
    expected = [verify(task, text) for task, text in items]  # type: ignore[arg-type]
    assert verify_many(items, processes=processes) == expected  # type: ignore[arg-type]


def test_an_equal_pair_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counting(task: object, response: str, reading: str) -> object:
        calls.append(response)
        return verify(task, response)  # type: ignore[arg-type]

    monkeypatch.setattr(parallel, "verify", counting)
    task, other = load_tasks("countdown").head(2)
    verify_many([(task, "a"), (task, "b"), (task, "a"), (other, "a")])
    assert sorted(calls) == ["a", "a", "b"]


def test_errors_come_through() -> None:
    bad = {"domain": "countdown", "level": 1, "reference": {"verifier": "countdown", "numbers": []}}
    for processes in (1, 2):
        with pytest.raises(InvalidReference) as caught:
            verify_many([(bad, "x")], processes=processes)
        assert caught.value.field == "reference.numbers"
    with pytest.raises(ValueError, match="processes"):
        verify_many([], processes=0)


def test_nothing_is_asked_of_an_empty_stream() -> None:
    assert verify_many(iter(())) == []
