from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import pytest

from modebench.domains import pantry_plan
from modebench.domains.base import Reference
from modebench.laws import pantry_menu
from modebench.verifiers import verify


def row(food: str, protein: str, *tags: str, available: int = 100) -> dict[str, Any]:
    return {
        "id": food,
        "available_g": available,
        "step_g": 25,
        "min_if_used_g": 50,
        "attributes_per_100g": {"protein_g": protein},
        "tags": list(tags),
    }


def small(**changes: Any) -> dict[str, Any]:
    """Three foods at 50, 75 or 100 g; bounds on mass and protein."""
    return {
        "verifier": "pantry_plan",
        "pantry_version": "pantry-v1",
        "ingredients": [row("corn", "4"), row("beans", "20"), row("nuts", "20", "tree_nut")],
        "targets": {"mass_g": {"min": "150", "max": "175"}, "protein_g": {"min": "20.001"}},
        "min_ingredients": 2,
        "max_ingredients": 3,
        "forbidden_tags": [],
        "certified_mode_count": 2,
    } | changes


def brute_force(reference: Reference) -> list[str]:
    """Masks of feasible sets by trying every quantity with decimals."""
    rows, targets = reference["ingredients"], reference["targets"]
    masks = []
    for size in range(reference["min_ingredients"], reference["max_ingredients"] + 1):
        for support in combinations(range(len(rows)), size):
            if any(set(rows[i]["tags"]) & set(reference["forbidden_tags"]) for i in support):
                continue
            grids = [
                range(rows[i]["min_if_used_g"], rows[i]["available_g"] + 1, rows[i]["step_g"])
                for i in support
            ]
            for grams in product(*grids):
                totals = {
                    key: sum(
                        g
                        * (
                            Decimal(1)
                            if key == "mass_g"
                            else Decimal(rows[i]["attributes_per_100g"][key]) / 100
                        )
                        for i, g in zip(support, grams, strict=True)
                    )
                    for key in targets
                }
                if all(
                    Decimal(limits.get("min", "0")) <= totals[key] <= Decimal(limits.get("max", "1e9"))
                    for key, limits in targets.items()
                ):
                    masks.append("".join("1" if i in support else "0" for i in range(len(rows))))
                    break
    return masks


def test_small_case_by_hand() -> None:
    # corn + beans: 75 g of beans (15 g) and 100 of corn (4 g) give 19; 100 and 75 give 23. All three: 50 g
    # each give 22 g. Without corn any quantities from 150 g on give 30 g.
    listed = list(pantry_plan.solutions(small(), 1))
    assert [s.answer for s in listed] == ["110", "101", "011", "111"]
    assert listed[0].mode == "pantry_plan:pantry-v1:beans+corn"
    assert listed[3].mode == "pantry_plan:pantry-v1:beans+corn+nuts"


def test_bounds_are_exact_and_inclusive() -> None:
    edge = small(targets={"mass_g": {"min": "150", "max": "150"}, "protein_g": {"min": "22"}})
    assert [s.answer for s in pantry_plan.solutions(edge, 1)] == ["110", "101", "011", "111"]
    above = small(targets={"mass_g": {"min": "150", "max": "150"}, "protein_g": {"min": "22.0000001"}})
    assert [s.answer for s in pantry_plan.solutions(above, 1)] == ["011"]


def test_forbidden_tags_and_sizes() -> None:
    assert [s.answer for s in pantry_plan.solutions(small(forbidden_tags=["tree_nut"]), 1)] == ["110"]
    assert pantry_plan.count_modes(small(max_ingredients=2), 1) == 3


def test_enumeration_agrees_with_brute_force_and_verifier() -> None:
    rng = random.Random(9)
    for _ in range(3):
        reference = pantry_plan.generate(rng, 1)
        listed = {s.answer: s.mode for s in pantry_plan.solutions(reference, 1)}
        assert list(listed) == brute_force(reference)
        task = {"domain": "pantry_plan", "level": 1, "reference": reference}
        verdicts = {f"{mask:06b}": verify(task, f"{mask:06b}") for mask in range(64)}
        assert {mask: v.mode for mask, v in verdicts.items() if v.mode} == listed
        assert all(v.status != "malformed" for v in verdicts.values())


def test_law() -> None:
    rng = random.Random(2)
    for _ in range(60):
        reference = pantry_plan.generate(rng, 1)
        rows = reference["ingredients"]
        pool = pantry_menu.FAMILIES[reference["family"]].pool
        assert [r["id"] for r in rows] == sorted({r["id"] for r in rows} & set(pool))
        assert len(rows) == 6
        assert all(r["available_g"] in (100, 125, 150) for r in rows)
        assert reference["forbidden_tags"] in ([], ["peanut"], ["tree_nut"])
        assert reference["certified_mode_count"] == pantry_plan.count_modes(reference, 1)
        low, high = (int(reference["targets"]["mass_g"][side]) for side in ("min", "max"))
        assert high - 75 == low or (low == 100 and high <= 175)


def test_figures_are_those_of_the_table() -> None:
    table = pantry_menu.food_table()
    assert len(table) == 66
    lentils = table["lentils"]
    assert [lentils[a] for a in pantry_menu.ATTRIBUTES] == ["343", "25.8", "30.5", "6"]
    for family in pantry_menu.FAMILIES.values():
        assert 8 <= len(set(family.pool)) <= 10
        assert set(family.pool) <= set(table)
        tags = {tag for food in family.pool for tag in table[food]["tags"].split(";")}
        assert tags & {"peanut", "tree_nut"}
        # Nothing in a pool breaks the family's sodium cap by its minimum of 50 g alone.
        assert all(Fraction(table[food]["sodium_mg"]) / 2 < family.sodium_cap for food in family.pool)


@pytest.mark.parametrize(
    ("value", "text"),
    [("239.4", "239.4"), ("7", "7"), ("0.0005", "0.001"), ("6.42349", "6.423"), ("120", "120")],
)
def test_bounds_are_rounded_half_up(value: str, text: str) -> None:
    assert pantry_menu.decimal_text(Fraction(value)) == text


def test_chance_is_uniform_over_the_masks() -> None:
    rng = random.Random(0)
    reference = pantry_plan.generate(rng, 1)
    drawn = [pantry_plan.random_answer(rng, reference, 1) for _ in range(4_000)]
    assert len(set(drawn)) == 2**6
    assert max(map(drawn.count, set(drawn))) < 2.5 * min(map(drawn.count, set(drawn)))
