"""Levels 2 to 5 of every domain, on samples of the frozen tasks; all of them with ``-m slow``."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from itertools import islice

import pytest

from modebench.domains import DOMAINS, get_domain
from modebench.laws import (
    Cell,
    Impossible,
    cells,
    countdown,
    graph_coloring,
    level1_supports,
    mathir,
    pantry_plan,
    python_factors,
    schedule,
)
from modebench.splits import SIZES, frozen_splits, load_split, lower_identities, make_split
from modebench.tasks import Task
from modebench.verifiers import check_task, verify

LEVELS = (2, 3, 4, 5)
every_cell = pytest.mark.parametrize(
    ("name", "level"), [(name, level) for name in DOMAINS for level in LEVELS]
)
LISTED = 40


def check_modes(task: Task) -> None:
    """Listed modes are as many as counted, all different, and verify with their own keys."""
    domain = get_domain(task.domain)
    check_task(task)
    assert domain.count_modes(task.reference, task.level) == task.modes
    found = list(domain.solutions(task.reference, task.level))
    assert len({solution.mode for solution in found}) == len(found) == task.modes
    for mode, answer in random.Random(task.id).sample(found, min(LISTED, len(found))):
        verdict = verify(task, answer)
        assert (verdict.status, verdict.mode) == ("correct", mode)


def check_chance(task: Task, draws: int) -> None:
    """Random answers are well formed, and correct ones have listed modes."""
    domain = get_domain(task.domain)
    rng = random.Random(task.id)
    modes = {solution.mode for solution in domain.solutions(task.reference, task.level)}
    for _ in range(draws):
        verdict = verify(task, domain.random_answer(rng, task.reference, task.level))
        assert verdict.status in ("correct", "incorrect")
        assert verdict.mode is None or verdict.mode in modes


@every_cell
def test_sampled_tasks_are_sound(name: str, level: int) -> None:
    tasks = random.Random(level).sample(load_split(name, level, "eval").tasks, 3)
    for task in tasks[: 1 if name == "mathir" else 3]:
        check_modes(task)
        check_chance(task, 15)


@pytest.mark.slow
@every_cell
def test_all_tasks_are_sound(name: str, level: int) -> None:
    for split in SIZES:
        for task in load_split(name, level, split):
            check_modes(task)
            check_chance(task, 3)


@every_cell
def test_splits_are_disjoint_and_have_the_modes_of_level_1(name: str, level: int) -> None:
    domain = get_domain(name)
    parts = {split: load_split(name, level, split) for split in SIZES}
    identities = [domain.identity(task.reference) for tasks in parts.values() for task in tasks]
    assert len(set(identities)) == len(identities) == 640
    assert not lower_identities(domain, level) & set(identities)
    for split, tasks in parts.items():
        assert [task.modes for task in tasks] == list(level1_supports(name, split))
        assert frozen_splits()[tasks.name]["law"] == domain.law(level)


@every_cell
def test_frozen_tasks_follow_from_the_recorded_seed(name: str, level: int) -> None:
    size = 2 if (name, level) in {("pantry_plan", 2), ("countdown", 3)} or name == "mathir" else 4
    again = make_split(name, level, "eval", sizes={"eval": size})
    assert [task.reference for task in again] == [
        task.reference for task in load_split(name, level).head(size)
    ]


@every_cell
def test_tasks_without_a_cell(name: str, level: int) -> None:
    """All randomness comes from the generator; the number of modes is one of level 1's."""
    state = random.getstate()
    domain = get_domain(name)
    first, second = (domain.generate(random.Random(11), level) for _ in range(2))
    assert first == second
    assert random.getstate() == state
    assert domain.count_modes(first, level) in {m for split in SIZES for m in level1_supports(name, split)}


@every_cell
def test_prompts_ask_for_a_box(name: str, level: int) -> None:
    domain = get_domain(name)
    problem = load_split(name, level)[0].problem
    assert "\\boxed{" in problem
    assert "\\boxed{}" in domain.system(level)
    assert problem == problem.strip()


def test_schedule_mixes_tiers_within_numbers_of_modes() -> None:
    met: dict[int, Counter[int]] = {}
    drawn = list(islice(schedule("countdown", "train", (0, 1, 2, 3)), 384))
    for support, tier in drawn:
        met.setdefault(support, Counter())[tier] += 1
    for tiers in met.values():
        assert max(tiers.values()) - min(tiers[t] for t in range(4)) <= 1
    assert tuple(cell.support for cell in drawn) == level1_supports("countdown", "train")
    longer = list(islice(schedule("countdown", "train", (0, 1, 2, 3)), 500))
    assert longer[:384] == drawn
    assert longer[384].support == drawn[0].support
    assert next(cells("countdown", 1, "eval")) is None
    assert next(cells("sudoku", 3, "eval")) is None


def test_countdown_counts_agree_with_the_domain() -> None:
    domain = get_domain("countdown")
    rng = random.Random(4)
    for level in LEVELS:
        for tier, kind in enumerate(countdown.TIERS[level]):
            reference = countdown.generate(rng, level, Cell(5, tier))
            numbers, target = reference["numbers"], reference["target"]
            assert len(set(numbers)) == kind.operands
            assert kind.values[0] <= min(numbers) <= max(numbers) <= kind.values[1]
            assert 1 <= target <= kind.operands * kind.values[1]
            assert domain.count_modes(reference, level) == 5
            found = countdown.targets(tuple(numbers), kind.operands * kind.values[1])
            for value, modes in list(zip(found.values.tolist(), found.modes.tolist(), strict=True))[:2]:
                assert domain.count_modes(reference | {"target": value}, level) == modes


def test_countdown_redirects_what_three_numbers_hardly_have() -> None:
    assert len(countdown.generate(random.Random(1), 3, Cell(7, 0))["numbers"]) == 4
    assert len(countdown.generate(random.Random(1), 3, Cell(6, 0))["numbers"]) == 3


def test_graph_laws() -> None:
    rng = random.Random(3)
    for tier in range(4):
        for support in (4, 6, 8):
            for level in LEVELS:
                reference = graph_coloring.generate(rng, level, Cell(support, 0 if level == 2 else tier))
                partial = reference["partial_colors"]
                hidden = partial.count(None)
                assert get_domain("graph").count_modes(reference, level) == support
                assert len(reference["edges"]) <= graph_coloring.MAX_EDGES
                match level:
                    case 2:
                        assert (hidden, len(partial) in (5, 6)) == (4, True)
                    case 3:
                        assert (hidden, len(partial)) == (3, 5)
                    case 4:
                        assert (len(partial), hidden) == graph_coloring.PLANTED[tier]
                        assert tier > 0 or partial[:2].count(None) == 0
                    case _:
                        assert sorted(c for c in partial if c) == [1, 2, 3]
                        assert hidden in (3, 4)
    structures = [s for members in graph_coloring._structures().values() for s in members]
    assert len(structures) == 1024 + 512
    assert graph_coloring.law_size(3) == 39360
    with pytest.raises(Impossible):
        graph_coloring.generate(rng, 3, Cell(7, 0))


def test_python_laws() -> None:
    rng = random.Random(5)
    for level in LEVELS:
        for tier in set(python_factors.CYCLES[level]):
            cases = python_factors.generate(rng, level, Cell(96, tier))["cases"]
            assert math.prod(len(python_factors.divisors(v)) for v in cases) == 96
            assert cases == sorted(set(cases))
            smallest = sorted(python_factors.divisors(v)[0] for v in cases)
            match level:
                case 2:
                    assert 96 < cases[-1] <= 192
                case 3:
                    assert 60 <= cases[0] <= python_factors.LEVEL3[tier][1]
                    assert smallest[-1] <= 5
                case 4:
                    assert math.gcd(*cases) == 1
                    assert smallest[-1] == python_factors.SEMIPRIMES[tier]
                    assert ({25, 49} <= set(cases)) == (tier > 0)
                case _:
                    assert math.gcd(*cases) == 1
                    assert tier == 0 or smallest[-1] == python_factors.EXCEPTIONS[tier]


def test_python_sets_are_uniform() -> None:
    window = python_factors.Window(6, 40, factors=(2, 5), min_divisors=2)
    rng = random.Random(0)
    drawn = Counter(tuple(python_factors._draw_set(rng, window, 2, 8) or ()) for _ in range(20_000))
    assert len(drawn) == python_factors.ways(window, 2, 8)
    assert max(drawn.values()) < 1.6 * min(drawn.values())
    assert python_factors._draw_set(rng, window, 2, 7 * 11) is None


def test_mathir_laws() -> None:
    rng = random.Random(6)
    for _ in range(40):
        two_sided = mathir.generate(rng, 2, Cell(5, 0))["bindings"]
        a, b, c, d = (Fraction(two_sided[name]) for name in "abcd")
        assert abs(abs(a) - abs(d)) <= 1
        assert ((c - b) / (a - d)).denominator == 1
        signs = mathir.generate(rng, 3, Cell(5, 1))["bindings"]
        assert signs["a"] < 0 < signs["b"]
        scaled = mathir.generate(rng, 5, Cell(5, 3))["bindings"]
        assert scaled["a"] + scaled["e"] != 0 != scaled["b"] - scaled["f"]
        assert all(1 <= abs(value) <= 13 for value in scaled.values())
    assert [mathir.law_size(level) for level in LEVELS] == [1440, 1440, 1440, 2880]


def test_pantry_laws() -> None:
    rng = random.Random(7)
    domain = get_domain("pantry")
    for level in LEVELS:
        for tier, kind in enumerate(pantry_plan.TIERS[level]):
            reference = pantry_plan.generate(rng, level, Cell(14, tier))
            rows = reference["ingredients"]
            assert len(rows) == kind.menu
            assert {row["step_g"] for row in rows} <= set(kind.steps)
            assert domain.count_modes(reference, level) == reference["certified_mode_count"] == 14
            assert level > 2 or reference["forbidden_tags"]
            for row in rows:
                least, most = row["min_if_used_g"] / row["step_g"], row["available_g"] / row["step_g"]
                assert kind.minimum[0] <= least <= kind.minimum[1]
                assert kind.headroom[0] <= most - least <= kind.headroom[1]
