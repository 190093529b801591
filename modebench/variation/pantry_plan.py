"""Pantry plan: compact text (`pantry_text`), variations around a choice, option removal.

A solution stays right while the verifier still finds its quantities, or accepts those it states, within
the bounds; bounds, availability and forbidden tags are free to move as far as that (SVS,
arXiv:2508.14029). A response of six digits is read as a level-1 choice, any other as stated quantities.
A variation on which every choice of an allowed size is valid asks nothing, and is refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import comb, prod
from typing import Any

from modebench.domains.base import Reference
from modebench.variation.base import (
    COPY,
    NotExecutable,
    Operator,
    Unsolvable,
    count_valid,
    kept,
    listed_modes,
    mode_of,
    require_mode,
    strict_failure,
    strict_parse,
    write_checked,
)
from modebench.variation.pantry_text import TAGS, decimal, read, spell
from modebench.verifiers.registry import check_task

name: str = "pantry_plan"

FIELDS = (
    "verifier",
    "pantry_version",
    "family",
    "ingredients",
    "targets",
    "min_ingredients",
    "max_ingredients",
    "forbidden_tags",
    "certified_mode_count",
)
MAX_QUANTITIES = 1_000_000
"""Most combinations of quantities of a task whose modes are counted."""
FACTORS = (Fraction(9, 10), Fraction(19, 20), Fraction(21, 20), Fraction(11, 10))
"""By what a bound is multiplied when it moves."""

Row = Mapping[str, Any]


# Compact text -----------------------------------------------------------------------------------


def write(reference: Reference) -> str:
    """One line; family, unbounded figures and mode count are lost."""
    return write_checked(name, reference, spell)


def parse(text: str) -> dict[str, Any]:
    """The reference of a text of exactly the spelling that `write` gives.

    The layout states the number of modes, at least 2; it is counted here.
    """
    reference = strict_parse(text, lambda scanner: read(scanner) | {"certified_mode_count": 2}, write)
    try:
        modes = validate(reference, 2)
    except Unsolvable as error:
        raise NotExecutable(0, f"a task whose modes can be counted, but {error}") from None
    if modes < 2:
        raise NotExecutable(0, "a task of at least 2 modes, as the layout demands")
    return reference | {"certified_mode_count": modes}


def validate(reference: Reference, level: int) -> int:
    """The exact number of choices that some quantities on the grid make valid."""
    check_task({"domain": name, "level": level, "reference": reference})
    # Coefficients of the product of (1 + g t) over the rows: combinations of quantities by size.
    counts = [1] + [0] * len(reference["ingredients"])
    for row in reference["ingredients"]:
        for size in range(len(counts) - 1, 0, -1):
            counts[size] += counts[size - 1] * len(_grid(row))
    if sum(counts[reference["min_ingredients"] : reference["max_ingredients"] + 1]) > MAX_QUANTITIES:
        raise Unsolvable(f"more than {MAX_QUANTITIES} combinations of quantities")
    return count_valid(name, reference, level)


def canonical_form(reference: Reference) -> str:
    """All that is executed, rows by name; a forbidden tag counts by the rows that it excludes."""
    forbidden = set(reference.get("forbidden_tags", ()))
    bounds = {
        key: {side: str(Fraction(str(value))) for side, value in sorted(limits.items())}
        for key, limits in sorted(reference["targets"].items())
    }
    rows = [
        (
            row["id"],
            not forbidden & set(row.get("tags", ())),
            (row["available_g"], row["step_g"], row["min_if_used_g"]),
            [str(Fraction(str(row["attributes_per_100g"][key]))) for key in bounds if key != "mass_g"],
        )
        for row in sorted(reference["ingredients"], key=lambda row: str(row["id"]))
    ]
    return f"{reference['min_ingredients']}-{reference['max_ingredients']} {bounds} {rows}"


def _grid(row: Row) -> range:
    return range(row["min_if_used_g"], row["available_g"] + 1, row["step_g"])


# Variations -------------------------------------------------------------------------------------


def _level(reference: Reference, solution: str) -> int:
    bits = solution.strip()
    return 1 if len(reference["ingredients"]) == len(bits) == 6 and not bits.strip("01") else 2


def _recounted(reference: Reference, **fields: Any) -> dict[str, Any] | None:
    """The task with other fields and its own mode count; None where the layout refuses it."""
    after = kept(reference, FIELDS) | fields | {"certified_mode_count": 2}
    try:
        modes = validate(after, 2)
    except ValueError:
        return None
    return after | {"certified_mode_count": modes} if modes >= 2 else None


def _with_row(reference: Reference, index: int, **fields: Any) -> dict[str, Any] | None:
    rows = [dict(row) for row in reference["ingredients"]]
    rows[index] |= fields
    return _recounted(reference, ingredients=rows)


def _with_bound(reference: Reference, key: str, side: str, value: Fraction) -> dict[str, Any] | None:
    targets = {attribute: dict(limits) for attribute, limits in reference["targets"].items()}
    targets[key][side] = decimal(value)
    return _recounted(reference, targets=targets)


def _first_valid(candidates: Iterator[dict[str, Any] | None], solution: str) -> dict[str, Any] | None:
    """The first candidate of the layout on which the solution is right."""
    for after in candidates:
        if after is not None and mode_of(name, after, _level(after, solution), solution) is not None:
            return after
    return None


def _shuffled(rng: random.Random, items: Sequence[Any]) -> list[Any]:
    return rng.sample(items, len(items))


def _move_bound(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    require_mode(name, reference, _level(reference, solution), solution)
    moves = [
        (key, side, _rounded(key, Fraction(str(value)) * factor))
        for key, limits in reference["targets"].items()
        for side, value in limits.items()
        for factor in FACTORS
        if value is not None
    ]
    return _first_valid((_with_bound(reference, *move) for move in _shuffled(rng, moves)), solution)


def _rounded(key: str, value: Fraction) -> Fraction:
    """Grams of a whole plan to 25, as in the published rows; other figures to 0.001."""
    unit = Fraction(25) if key == "mass_g" else Fraction(1, 1000)
    return int(value / unit + Fraction(1, 2)) * unit


def _change_available(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    require_mode(name, reference, _level(reference, solution), solution)
    moves = [
        (index, row["available_g"] + sign * row["step_g"])
        for index, row in enumerate(reference["ingredients"])
        for sign in (1, -1)
        if row["available_g"] + sign * row["step_g"] >= row["min_if_used_g"]
    ]
    tasks = (_with_row(reference, index, available_g=grams) for index, grams in _shuffled(rng, moves))
    return _first_valid(tasks, solution)


def _toggle_tag(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    require_mode(name, reference, _level(reference, solution), solution)
    present = sorted({tag for row in reference["ingredients"] for tag in row.get("tags", ())})
    tasks = (_with_tag(reference, tag) for tag in _shuffled(rng, present))
    return _first_valid(tasks, solution)


def _with_tag(reference: Reference, tag: str) -> dict[str, Any] | None:
    """The tag forbidden, or allowed where it was forbidden."""
    return _recounted(reference, forbidden_tags=sorted(set(reference.get("forbidden_tags", ())) ^ {tag}))


def _difference(before: Reference, after: Reference) -> Difference:
    """How many bounds, amounts at hand and forbidden tags differ, and how much else."""
    old, new = before["targets"], after["targets"]
    keys = set(old) | set(new)
    bounds = sum(
        old.get(key, {}).get(side) != new.get(key, {}).get(side) for key in keys for side in ("min", "max")
    )
    pairs = list(zip(before["ingredients"], after["ingredients"], strict=False))
    available = sum(a["available_g"] != b["available_g"] for a, b in pairs)
    tags = len(set(before.get("forbidden_tags", ())) ^ set(after.get("forbidden_tags", ())))
    rest = sum({**a, "available_g": 0} != {**b, "available_g": 0} for a, b in pairs) + abs(
        len(before["ingredients"]) - len(after["ingredients"])
    )
    rest += any(before[field] != after[field] for field in ("min_ingredients", "max_ingredients"))
    return bounds, available, tags, rest


Difference = tuple[int, int, int, int]


def _check(step: Difference) -> Callable[[Reference, str, Reference], str | None]:
    """The check of an operator that changes so many bounds, amounts at hand and tags."""

    def check(before: Reference, solution: str, after: Reference) -> str | None:
        if canonical_form(before) == canonical_form(after):
            return COPY
        if _difference(before, after) != step:
            return "not the step of this operator"
        level = _level(before, solution)
        failure = strict_failure(name, level, before, solution, after)
        if failure is not None:
            return failure
        try:
            modes = validate(after, level)
        except Unsolvable as error:
            return str(error)
        if after.get("certified_mode_count") != modes:
            return f"states {after.get('certified_mode_count')} modes and has {modes}"
        sizes = range(after["min_ingredients"], after["max_ingredients"] + 1)
        every = sum(comb(len(after["ingredients"]), size) for size in sizes)
        return "every choice is valid" if modes == every else None

    return check


operators: tuple[Operator, ...] = (
    Operator("move_bound", "strict", _move_bound, _check((1, 0, 0, 0))),
    Operator("change_available", "strict", _change_available, _check((0, 1, 0, 0))),
    Operator("toggle_tag", "strict", _toggle_tag, _check((0, 0, 1, 0))),
)


# Option removal ---------------------------------------------------------------------------------


def remove_option(
    reference: Reference, level: int, mode: str, answer: str | None = None
) -> dict[str, Any] | None:
    """One bound tightened, one amount at hand lowered or one tag forbidden; most modes are kept.

    A bound is moved just past everything that the favourite's ingredients can reach within the others,
    an amount is lowered as little as it takes. All three leave a subset of the old modes.

    Raises:
        ValueError: `mode` is not a mode of the task.
    """
    listed = listed_modes(name, reference, level)
    if mode not in listed:
        raise ValueError(f"mode: {mode!r} is not a mode of this task")
    answer = listed[mode] if answer is None else answer
    best: tuple[int, dict[str, Any]] | None = None
    for after in _steps(reference, mode.rsplit(":", 1)[1].split("+")):
        modes = 0 if after is None else after["certified_mode_count"]
        if after is None or (best is not None and modes <= best[0]):
            continue
        if mode not in listed_modes(name, after, level) and mode_of(name, after, level, answer) is None:
            best = modes, after
    return best[1] if best else None


def _steps(reference: Reference, support: Sequence[str]) -> Iterator[dict[str, Any] | None]:
    rows = [row for row in reference["ingredients"] if row["id"] in support]
    reached = _reached(reference, rows)
    for key, limits in reference["targets"].items():
        least, most = min(totals[key] for totals in reached), max(totals[key] for totals in reached)
        step = Fraction(25 if key == "mass_g" else Fraction(1, 1000))
        for side, value in (("min", most), ("max", least)):
            # The next printable figure that the favourite can't reach.
            moved = (value // step + 1) * step if side == "min" else -((-value) // step + 1) * step
            if limits.get(side) is not None and moved >= 0:
                yield _with_bound(reference, key, side, moved)
    for index, row in enumerate(reference["ingredients"]):
        if row["id"] in support:
            for grams in reversed(_grid(row)[:-1]):
                yield _with_row(reference, index, available_g=grams)
    for tag in sorted({tag for row in rows for tag in row.get("tags", ()) if tag in TAGS}):
        yield _with_tag(reference, tag)


def _reached(reference: Reference, rows: Sequence[Row]) -> list[dict[str, Fraction]]:
    """Totals of every valid set of quantities of exactly these rows."""
    targets = reference["targets"]
    if prod(len(_grid(row)) for row in rows) > MAX_QUANTITIES:
        raise Unsolvable(f"more than {MAX_QUANTITIES} combinations of quantities")
    shares = {
        key: [
            Fraction(1) if key == "mass_g" else Fraction(str(row["attributes_per_100g"][key])) / 100
            for row in rows
        ]
        for key in targets
    }
    limits = {
        key: {side: Fraction(str(value)) for side, value in bounds.items()} for key, bounds in targets.items()
    }
    found = []
    for grams in product(*map(_grid, rows)):
        totals = {
            key: sum((s * g for s, g in zip(share, grams, strict=True)), Fraction(0))
            for key, share in shares.items()
        }
        if all(
            limits[key].get("min", value) <= value <= limits[key].get("max", value)
            for key, value in totals.items()
        ):
            found.append(totals)
    return found
