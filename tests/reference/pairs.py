"""Random (task, response) pairs over all domains and levels: valid, nearly valid and hostile.

Used three times: graded here and by the published reference implementation (`run.py`), as a fuzzing
corpus of the ordinary tests, and by the benchmarks. Everything follows from the generator passed in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from tests.reference import countdown_pairs, graph_pairs, json_edits, mathir_pairs, pantry_pairs, python_pairs
from tests.reference.texts import surface

DOMAINS = ("graph_coloring", "countdown", "python_factors", "mathir", "pantry_plan")
# fmt: off
ODD_LEVELS: tuple[Any, ...] = (
    0, 6, -1, True, False, None, 1.0, "0", "6", "level6", "Level1", " 1", "1 ", "１", "", "level", [1],
)
ODD_DOMAINS: tuple[Any, ...] = (
    "", "Countdown", "countdown ", "pantryplan", None, 1, "mathir_algebra", "unknown", "pantry_plan\n",
)
# fmt: on


class Generator(Protocol):
    """What a domain's file offers."""

    def reference(self, rng: random.Random, level: int) -> dict[str, Any]: ...
    def answer(self, rng: random.Random, reference: dict[str, Any], level: int) -> str: ...


GENERATORS: dict[str, Generator] = dict(
    zip(DOMAINS, (graph_pairs, countdown_pairs, python_pairs, mathir_pairs, pantry_pairs), strict=True)
)


class Pair(NamedTuple):
    """One response to one task, as plain JSON data."""

    domain: Any
    level: Any
    answer: Any
    response: str

    def task(self) -> dict[str, Any]:
        return {"domain": self.domain, "level": self.level, "answer": self.answer}


def pairs(seed: int, domain: str, stop: int, start: int = 0) -> Iterator[Pair]:
    """Pairs `start` to `stop` of a domain; pair number i depends on the seed and i alone."""
    for index in range(start, stop):
        yield pair(random.Random(f"{seed}/{domain}/{index}"), domain)


def pair(rng: random.Random, domain: str) -> Pair:
    level = rng.randint(1, 5)
    generator = GENERATORS[domain]
    reference = generator.reference(rng, level)
    if rng.random() < 0.12:
        reference = json_edits.change(rng, reference, rng.choice((1, 1, 1, 2)))
    return Pair(
        _odd_domain(rng, domain),
        _spelled_level(rng, level),
        _spelled_reference(rng, reference),
        _response(rng, domain, level, generator.answer(rng, reference, level)),
    )


def valid_reference(rng: random.Random, domain: str) -> tuple[int, dict[str, Any]]:
    """A level and a reference as generated, without random damage (rarely invalid all the same)."""
    level = rng.randint(1, 5)
    return level, GENERATORS[domain].reference(rng, level)


def _response(rng: random.Random, domain: str, level: int, answer: str) -> str:
    if domain == "pantry_plan" and level == 1 and rng.random() < 0.8:
        return answer
    return surface(rng, answer)


def _odd_domain(rng: random.Random, domain: str) -> Any:
    if domain == "pantry_plan" and rng.random() < 0.1:
        return "pantry"
    if rng.random() < 0.004:
        return rng.choice((*ODD_DOMAINS, *DOMAINS))
    return domain


def _spelled_level(rng: random.Random, level: int) -> Any:
    kind = rng.random()
    if kind < 0.004:
        return rng.choice(ODD_LEVELS)
    return level if kind < 0.9 else rng.choice((str(level), f"level{level}"))


def _spelled_reference(rng: random.Random, reference: dict[str, Any]) -> Any:
    kind = rng.random()
    if kind < 0.86:
        return reference
    if kind < 0.97:
        return json_edits.as_text(rng, reference)
    if kind < 0.995:
        return json_edits.broken_text(rng, reference)
    return rng.choice((None, [], 1, True, "", {}, [reference], {"answer": reference}))
