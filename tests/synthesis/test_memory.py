"""What a writer is told: counts by hand, bounded, and the same after a round trip."""

from __future__ import annotations

import json

import pytest

from modebench.domains import DOMAINS
from modebench.strategies import STRATEGIES
from modebench.synthesis.compact import REJECTIONS, CardContext
from modebench.synthesis.memory import MAX_REPORT, Interaction, InteractionMemory
from modebench.synthesis.readable import NOTATION, card_messages
from modebench.tasks import load_tasks


def seen(style: str = "smallest", refused: str | None = None, rate: float | None = None) -> Interaction:
    return Interaction("python_factors", 1, style, refused, rate)


def filled() -> InteractionMemory:
    memory = InteractionMemory()
    for rate in (1, 0.95, 0.9, 0.5, 0.2, 0.1, 0.04):
        memory.add(seen(rate=rate))
    memory.add(seen("parity", "wrong", 0.25))
    memory.add(seen("size", "repeated"))
    memory.add(seen("", "unreadable"))
    memory.add(seen("", "unreadable"))
    memory.add(Interaction("countdown", 1, "sums", "leak", None))
    return memory


def test_counts_by_hand() -> None:
    report = filled().report("python_factors", 1)
    assert (report.cards, report.tasks, report.counts, report.recent) == (11, 8, (2, 3, 1), (2, 3, 1))
    assert report.refusals == (("unreadable", 2), ("wrong", 1), ("repeated", 1))
    assert [(style.name, style.tasks) for style in report.styles] == [
        ("smallest", 7),
        ("largest", 0),
        ("parity", 1),
        ("size", 1),
    ]
    assert report.compact("python_factors") == CardContext(
        (2, 3, 1), "smallest", "largest", "parity", "unreadable"
    )


def test_the_report_in_words() -> None:
    text = filled().report("python_factors", 1).text()
    for told in (
        "last 11 cards: 8 were valid",
        "2 too easy, 3 learnable, 1 too hard",
        "smallest (7, 53% solved); parity (1, 25% solved); size (1)",
        "weakest at: parity",
        "Not explored yet: largest",
        "unreadable (2), wrong (1), repeated (1)",
    ):
        assert told in text


@pytest.mark.parametrize("domain", DOMAINS)
def test_an_empty_memory_has_a_context_of_two_different_styles(domain: str) -> None:
    report = InteractionMemory().report(domain, 1)
    context = report.compact(domain)
    names = [strategy.name for strategy in STRATEGIES[domain]]
    assert (context.counts, context.rejected) == ((0, 0, 0), "none")
    assert (context.often, context.rare, context.weak) == (names[0], names[-1], names[0])
    assert "last 0 cards" in report.text()


def test_the_compact_context_keeps_to_what_the_tiny_policy_was_taught() -> None:
    memory = InteractionMemory()
    for number in range(100):
        memory.add(seen("a style of its own", "held_out", number % 2))
    context = memory.report("python_factors", 1).compact("python_factors")
    assert context.counts == (16, 0, 16)
    assert context.rejected in REJECTIONS
    assert {context.often, context.rare, context.weak} <= {s.name for s in STRATEGIES["python_factors"]}


def test_memory_and_report_are_bounded() -> None:
    memory = InteractionMemory(window=200)
    for number in range(1_000):
        memory.add(seen(f"{number:04d}" + "x" * 10_000, rate=0.5))
    assert len(memory.interactions) == 200
    assert max(len(each.style) for each in memory.interactions) == 60
    text = memory.report("python_factors", 1).text()
    assert len(text) == MAX_REPORT
    assert text.endswith("…")


def test_a_round_trip_through_json_changes_nothing() -> None:
    memory, again = filled(), InteractionMemory()
    again.load_state_dict(json.loads(json.dumps(memory.state_dict())))
    assert again.interactions == memory.interactions


@pytest.mark.parametrize("domain", DOMAINS)
def test_how_a_card_is_asked_for(domain: str) -> None:
    task = load_tasks(domain, 1).tasks[0]
    report = InteractionMemory().report(domain, 1)
    [message] = card_messages("compact", task, report)
    assert message["content"].startswith(f"card:{domain},easy=0,")
    system, user = card_messages("direct", task, report)
    assert system["role"] == "system"
    for told in (task.problem, NOTATION[domain], report.text(), "- novelty_notes:"):
        assert told in user["content"]
