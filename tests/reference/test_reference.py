"""The comparison harness itself: reproducible pairs, and no disagreement that it would miss."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from tests.reference.own_tasks import check_cell, tasks_of_cell
from tests.reference.pairs import DOMAINS, Pair, pairs, valid_reference
from tests.reference.run import Answer, Part, compare, ours, table

PAIR = Pair("countdown", 1, {"verifier": "countdown", "numbers": [3, 6], "target": 9}, "3+6")
RIGHT = Answer("correct", "countdown:add(3,6)", None)
every_domain = pytest.mark.parametrize("domain", DOMAINS)


@every_domain
def test_pairs_follow_from_the_seed_and_their_number(domain: str) -> None:
    state = random.getstate()
    first = list(pairs(1, domain, 40))
    assert list(pairs(1, domain, 40)) == first
    assert list(pairs(1, domain, 40, start=25)) == first[25:]
    assert list(pairs(2, domain, 40)) != first
    assert random.getstate() == state


@every_domain
def test_pairs_are_json(domain: str) -> None:
    for pair in pairs(3, domain, 300):
        assert isinstance(pair.response, str)
        json.dumps(pair._asdict())


@every_domain
def test_pairs_are_of_every_kind(domain: str) -> None:
    statuses = Counter(ours(pair).status for pair in pairs(4, domain, 600))
    assert set(statuses) == {"correct", "incorrect", "malformed", "invalid_reference"}
    assert min(statuses.values()) >= 20


@every_domain
def test_plain_references_are_mostly_valid(domain: str) -> None:
    found = []
    for index in range(100):
        level, reference = valid_reference(random.Random(index), domain)
        found.append(ours(Pair(domain, level, reference, "")).status == "malformed")
    assert sum(found) > 60


@pytest.mark.parametrize(
    ("we", "they", "counted", "recorded"),
    [
        (RIGHT, RIGHT, "agreed", False),
        (RIGHT, RIGHT._replace(detail="other words"), "agreed", False),
        (RIGHT, RIGHT._replace(mode="countdown:add(6,3)"), "disagreed", True),
        (RIGHT, Answer("incorrect", None, "why"), "disagreed", True),
        (RIGHT, Answer("invalid_reference", None, "why"), "disagreed", True),
        (
            Answer("invalid_reference", None, "field: why"),
            Answer("malformed", None, "why"),
            "disagreed",
            True,
        ),
        (RIGHT, Answer("crash", None, "RecursionError"), "not comparable", False),
        (Answer("malformed", None, "long"), Answer("resource_limit", None, "long"), "not comparable", False),
        (Answer("raised", None, "ValueError"), Answer("crash", None, "ValueError"), "disagreed", True),
    ],
)
def test_compare(we: Answer, they: Answer, counted: str, recorded: bool) -> None:
    counts: Counter[str] = Counter()
    record = compare(PAIR, we, they, counts)
    assert counts[counted] == 1
    assert counts["pairs"] == 1
    assert (record is not None) == recorded
    if record is not None:
        assert Pair(*(record[field] for field in Pair._fields)) == PAIR
        assert (record["ours"], record["published"]) == (list(we), list(they))


def test_our_side() -> None:
    assert ours(PAIR) == RIGHT
    assert ours(PAIR._replace(answer="{}")).status == "invalid_reference"
    assert ours(PAIR._replace(response="3+")).status == "malformed"


def test_an_exception_on_our_side_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: object, response: object) -> None:
        raise KeyError("broken")

    monkeypatch.setattr("tests.reference.run.verify", broken)
    assert ours(PAIR) == Answer("raised", None, "KeyError('broken')")


def test_table() -> None:
    parts = [
        Part("countdown", Counter(pairs=2, agreed=2), []),
        Part("countdown", Counter(pairs=3, agreed=1, disagreed=2), []),
        Part("mathir", Counter(pairs=5, agreed=5), []),
    ]
    rows = [line.split() for line in table(parts).splitlines()]
    assert [row[:2] for row in rows[1:]] == [["countdown", "5"], ["mathir", "5"], ["all", "10"]]
    assert rows[-1][3] == "8"


def test_our_tasks_are_shown_with_every_mode_and_faults_are_counted() -> None:
    def grade(pair: Pair) -> tuple[str, str | None, str | None]:
        return ours(pair)

    right = check_cell("countdown", 1, 6, 5, grade)
    assert (right.tasks, right.faults) == (6, [])
    assert right.modes == sum(task.modes or 0 for task in tasks_of_cell("countdown", 1, 6, 5))
    refused = check_cell("countdown", 1, 6, 5, lambda pair: ("malformed", None, "no"))
    assert len(refused.faults) == right.modes + 6
    merged = check_cell("countdown", 1, 6, 5, lambda pair: ("correct", "one key", None))
    assert len(merged.faults) == right.modes + 6
