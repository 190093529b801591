"""A domain that a random model solves often: say one of some letters. The mode is the letter said first."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from modebench.domains.base import Solution
from modebench.verifiers.verdict import InvalidReference, Verdict, correct, incorrect

name = "letters"
aliases: tuple[str, ...] = ()


def law(level: int) -> str:
    return "six letters drawn uniformly"


def law_size(level: int) -> int | None:
    return 230_230


def generate(rng: random.Random, level: int) -> dict[str, Any]:
    return {"letters": "".join(sorted(rng.sample(string.ascii_lowercase, 6)))}


def identity(reference: Mapping[str, Any]) -> str:
    return str(reference["letters"])


def problem(reference: Mapping[str, Any], level: int) -> str:
    return f"Say one of {reference['letters']}"


def system(level: int) -> str:
    return ""


def count_modes(reference: Mapping[str, Any], level: int) -> int:
    return 6


def solutions(reference: Mapping[str, Any], level: int) -> Iterator[Solution]:
    for letter in reference["letters"]:
        yield Solution(f"letters:{letter}", letter)


def listed(mode: str) -> bool:
    return True


def random_answer(rng: random.Random, reference: Mapping[str, Any], level: int) -> str:
    return rng.choice(string.ascii_lowercase)


class verifier(NamedTuple):  # noqa: N801 - a plug-in's verifier is found under this name
    """What turns a reference and a response into a verdict."""

    @staticmethod
    def compile_reference(reference: Mapping[str, Any], level: int) -> str:
        if not isinstance(reference.get("letters"), str):
            raise InvalidReference("reference.letters", f"must be text, not {reference.get('letters')!r}")
        return str(reference["letters"])

    @staticmethod
    def judge(spec: str, response: str) -> Verdict:
        said = next((letter for letter in response if letter in spec), None)
        return incorrect("none of the letters") if said is None else correct(f"letters:{said}")
