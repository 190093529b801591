"""A sixth domain in one file: pay an amount with coins. The mode is the multiset of coins."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from modebench.domains.base import Solution
from modebench.verifiers.verdict import InvalidReference, Verdict, correct, incorrect, malformed

name = "coins"
aliases: tuple[str, ...] = ()
COINS = (1, 2, 5)


def law(level: int) -> str:
    return "coins of 1, 2 and 5 and an amount drawn uniformly from 5 to 600"


def law_size(level: int) -> int | None:
    return 596


def generate(rng: random.Random, level: int) -> dict[str, Any]:
    return {"coins": list(COINS), "amount": rng.randint(5, 600)}


def identity(reference: Mapping[str, Any]) -> str:
    return f"{reference['coins']}={reference['amount']}"


def problem(reference: Mapping[str, Any], level: int) -> str:
    return (
        f"Pay {reference['amount']} with coins of {reference['coins']}: \\boxed{{count of each, by spaces}}."
    )


def system(level: int) -> str:
    return "Reply with the counts in \\boxed{} only."


def count_modes(reference: Mapping[str, Any], level: int) -> int:
    return sum(1 for _ in solutions(reference, level))


def solutions(reference: Mapping[str, Any], level: int) -> Iterator[Solution]:
    amount = reference["amount"]
    for fives in range(amount // 5 + 1):
        for twos in range((amount - 5 * fives) // 2 + 1):
            counts = (amount - 5 * fives - 2 * twos, twos, fives)
            text = " ".join(map(str, counts))
            yield Solution(f"coins:{text}", f"\\boxed{{{text}}}")


def listed(mode: str) -> bool:
    return True


def random_answer(rng: random.Random, reference: Mapping[str, Any], level: int) -> str:
    return "\\boxed{" + " ".join(str(rng.randint(0, 9)) for _ in reference["coins"]) + "}"


class verifier(NamedTuple):  # noqa: N801 - a plug-in's verifier is found under this name
    """What turns a reference and a response into a verdict."""

    @staticmethod
    def compile_reference(reference: Mapping[str, Any], level: int) -> tuple[list[int], int]:
        if type(reference.get("amount")) is not int:
            raise InvalidReference("reference.amount", f"must be an integer, not {reference.get('amount')!r}")
        return list(reference["coins"]), reference["amount"]

    @staticmethod
    def judge(spec: tuple[list[int], int], response: str) -> Verdict:
        coins, amount = spec
        match = re.search(r"\\boxed\{([0-9 ]{1,40})\}", response)
        counts = [int(text) for text in match.group(1).split()] if match else []
        if len(counts) != len(coins):
            return malformed("not one count a coin")
        if sum(count * coin for count, coin in zip(counts, coins, strict=True)) != amount:
            return incorrect("another amount")
        return correct("coins:" + " ".join(map(str, counts)))
