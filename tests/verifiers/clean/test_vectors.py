"""Every vector has its verdict, and every rule has the vectors it needs."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from modebench.verifiers.clean.extraction import peel
from tests.verifiers.clean.vectors import DOMAINS, clean, rows

every_domain = pytest.mark.parametrize("domain", DOMAINS)


@every_domain
def test_status_and_mode(domain: str) -> None:
    wrong = []
    for row in rows(domain):
        verdict = clean(row, row["response"], row.get("truncated", False))
        assert (verdict.detail is None) == (verdict.status == "correct")
        if (verdict.status, verdict.mode) != (row["status"], row["mode"]):
            wrong.append((row["rule"], row["response"][:200], row["status"], row["mode"], verdict))
    assert wrong == []


@every_domain
def test_there_are_vectors_of_every_kind(domain: str) -> None:
    assert len(rows(domain)) >= 100
    assert min(Counter(row["status"] for row in rows(domain)).values()) >= 5
    spellings = defaultdict(set)
    for row in rows(domain):
        if row["mode"]:
            spellings[str(row["answer"])].add((row["mode"], row["response"]))
    assert any(len({mode for mode, _ in found}) > 1 for found in spellings.values())
    assert any(len(found) > len({mode for mode, _ in found}) for found in spellings.values())


@every_domain
def test_peeling_is_idempotent_on_the_vectors(domain: str) -> None:
    for row in rows(domain):
        once = peel(row["response"])
        assert peel(once) == once
