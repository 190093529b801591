"""Tasks and solutions that the tests of variation share."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from modebench.domains import DOMAINS, get_domain
from modebench.domains.base import Solution
from modebench.verifiers import Verdict, verify

every_domain = pytest.mark.parametrize("domain", DOMAINS)


def draw(domain: str, count: int, level: int = 1) -> Iterator[tuple[random.Random, dict[str, Any], Solution]]:
    """Random tasks, each with its own generator of randomness and a random one of its first modes."""
    source = get_domain(domain)
    for index in range(count):
        rng = random.Random(f"variation {domain} {index}")
        reference = source.generate(rng, level)
        # All modes of a MathIR task take a while to list, so most tasks are drawn with an early one.
        first = list(islice(source.solutions(reference, level), rng.choice((1, 2, 2, 3, 40))))
        yield rng, reference, rng.choice(first)


def judge(domain: str, reference: Any, response: str, level: int = 1) -> Verdict:
    return verify({"domain": domain, "level": level, "reference": reference}, response)


def pantry_of_other_levels() -> dict[str, Any]:
    """Eight rows, steps of their own, open bounds, figures as numbers: what levels 2 to 5 may hold."""
    foods = [
        ("lentils", "343", "25.8", "30.5", "6", ["legume"], 150, 25, 50),
        ("almonds", "579", "21.15", "12.5", "1", ["nut", "tree_nut"], 60, 15, 30),
        ("oats", 389, 16.89, 10.6, 2, ["grain", "gluten"], 100, 20, 40),
        ("peanuts", "567", "25.8", "8.5", "18", ["legume", "peanut"], 150, 25, 50),
        ("raisins", "299", "3.07", "3.7", "11", ["fruit"], 150, 25, 50),
        ("quinoa", "368", "14.12", "7", "5", ["grain"], 125, 25, 75),
        ("egg", "143", "12.56", "0", "142", ["egg"], 150, 25, 50),
        ("kale", "49", "4.28", "3.6", "38", ["vegetable"], 150, 25, 50),
    ]
    rows = [
        {
            "id": food,
            "available_g": available,
            "step_g": step,
            "min_if_used_g": minimum,
            "attributes_per_100g": {
                "energy_kcal": energy,
                "protein_g": protein,
                "fiber_g": fiber,
                "sodium_mg": sodium,
            },
            "tags": tags,
        }
        for food, energy, protein, fiber, sodium, tags, available, step, minimum in foods
    ]
    return {
        "verifier": "pantry_plan",
        "pantry_version": "pantry-v1",
        "ingredients": rows,
        "targets": {
            "mass_g": {"min": "0", "max": 474},
            "protein_g": {"min": "12.50"},
            "sodium_mg": {"max": "200"},
        },
        "min_ingredients": 2,
        "max_ingredients": 3,
        "forbidden_tags": ["tree_nut", "peanut"],
        "certified_mode_count": 20,
    }
