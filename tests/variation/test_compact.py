"""Compact texts carry all that is executed, and have one spelling."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modebench.domains import get_domain
from modebench.splits import SIZES, load_split
from modebench.variation import CompactError, Unsolvable, get_variation
from modebench.verifiers.registry import verifier_of
from modebench.verifiers.verdict import InvalidReference
from tests.variation.cases import draw, every_domain, pantry_of_other_levels

CONFORMANCE = Path(__file__).parent.parent / "data" / "conformance"

EXAMPLES = {
    "graph_coloring": "G152334-?3??1",
    "countdown": "C3,9,12=6",
    "python_factors": "P8,35,54,91",
    "mathir": "Ma*x+b=d*x+c -bA /(a-d)B -(d*x+b)C -d*xD +bE /aF;a=3,b=-1/2,c=7,d=1;4",
    "pantry_plan": "K2-4/25/50m225-300e743.4-1342.25p15.739-s-60.7;al100da140/20/40fl100pi150ra150sf100;!pe",
}


def executed(domain: str, reference: Any, level: int) -> Any:
    """All of a reference that a verdict depends on."""
    spec = verifier_of(domain).compile_reference(reference, level)
    if domain == "graph_coloring":
        edges = sorted({tuple(sorted(edge)) for edge in spec.edges})
        return spec.n, edges, spec.partial or (None,) * spec.n
    if domain == "pantry_plan":
        return replace(spec, targets=tuple(sorted(spec.targets, key=str)))
    return spec


def round_trip(domain: str, reference: Any, level: int) -> None:
    module = get_variation(domain)
    text = module.write(reference)
    assert text.isascii()
    assert "\n" not in text
    again = module.parse(text)
    assert executed(domain, again, level) == executed(domain, reference, level)
    assert module.write(again) == text


@every_domain
@pytest.mark.parametrize("level", [2, 3, 4, 5])
def test_frozen_tasks_of_higher_levels_round_trip(domain: str, level: int) -> None:
    """A graph with ten edges was once refused, its edges taken for one number of twenty digits."""
    for task in load_split(domain, level, "train").tasks[::8]:
        round_trip(domain, task.reference, level)


@every_domain
@pytest.mark.parametrize("split", SIZES)
def test_frozen_tasks_round_trip(domain: str, split: str) -> None:
    module = get_variation(domain)
    for task in load_split(domain, 1, split).tasks[::6]:
        text = module.write(task.reference)
        again = module.parse(text)
        assert again == {key: value for key, value in task.reference.items() if key != "family"}
        assert module.write(again) == text
        assert len(text) <= 110


@every_domain
def test_references_of_other_levels_round_trip(domain: str) -> None:
    if domain == "pantry_plan":
        round_trip(domain, pantry_of_other_levels(), 2)
        return
    seen = set()
    with gzip.open(CONFORMANCE / f"{domain}.jsonl.gz", "rt") as file:
        for row in map(json.loads, file):
            reference = row["answer"]
            text = json.dumps(reference)
            if row["status"] == "invalid_reference" or isinstance(reference, str) or text in seen:
                continue
            seen.add(text)
            round_trip(domain, reference, 2)
    assert len(seen) >= 20


@every_domain
@pytest.mark.parametrize("level", [2, 3, 4, 5])
def test_laws_of_other_levels_round_trip(domain: str, level: int) -> None:
    for _, reference, _ in draw(domain, 3, level):
        round_trip(domain, reference, level)


@every_domain
def test_example(domain: str) -> None:
    module = get_variation(domain)
    reference = module.parse(EXAMPLES[domain])
    assert module.write(reference) == EXAMPLES[domain]
    assert module.validate(reference, 2) == get_domain(domain).count_modes(reference, 2) >= 1


@every_domain
def test_a_mutated_text_fails_or_is_the_text_of_another_task(domain: str) -> None:
    module, text, rng = get_variation(domain), EXAMPLES[domain], random.Random(3)
    original, positions = module.parse(text), list[int | None]()
    for _ in range(150):
        at = rng.randrange(len(text))
        letter = rng.choice([rng.choice(text), rng.choice("09 -/?;,!=xZ\n²"), ""])
        changed = text[:at] + letter + text[at + rng.randrange(2) :]
        try:
            reference = module.parse(changed)
        except CompactError as error:
            positions.append(error.position)
            continue
        assert module.write(reference) == changed
        assert (reference == original) == (changed == text)
    assert len(positions) > 50
    assert all(at is not None and 0 <= at <= len(text) + 1 for at in positions)


@pytest.mark.parametrize(
    ("domain", "text", "position", "expected"),
    [
        ("graph_coloring", "G51-?3??1", 1, "15"),
        ("graph_coloring", "G1512-?3??1", 2, "2"),
        ("graph_coloring", "G16-?3??1", 0, "edges"),
        ("graph_coloring", "G15-", 4, "shown colours"),
        ("countdown", "C9,3=6", 1, "3"),
        ("countdown", "C03,9=6", 1, "3,9"),
        ("countdown", "C3,9=", 5, "target"),
        ("python_factors", "P7,8", 0, "prime"),
        ("python_factors", "P8", 0, "cases"),
        ("mathir", "Ma*x=b -(b)A /aB;a=1,b=2;4", 8, "bA"),
        ("mathir", "Ma*x=b -bB /aA;a=1,b=2;4", 9, "'A'"),
        ("mathir", "Ma*x=b -bA /aB;b=2,a=1;4", 15, "a=1"),
        ("mathir", "Ma*x=b -bA /aB;a=2/4,b=2;4", 17, "1/2"),
        ("mathir", "Ma*x=b -bA /aB;a=0,b=2;4", 0, "determine"),
        ("mathir", "M" + "(" * 900, 34, "at most"),
        ("pantry_plan", "K1-2/25/50m50-;zz100al100", 15, "ingredient"),
        ("pantry_plan", "K1-2/25/50m50.0-;pe100al100", 13, "-;pe"),
        ("pantry_plan", "K1-2/25/50m50-;pe100al100;!pepe", 29, "another tag"),
        ("pantry_plan", "K1-2/25/50m500-;pe100al100", 0, "no mode"),
        ("countdown", "C" + "1," * 600, 0, "at most 1000"),
    ],
)
def test_errors_say_where_and_what(domain: str, text: str, position: int, expected: str) -> None:
    with pytest.raises(CompactError, match=f"position {position}:") as caught:
        get_variation(domain).parse(text)
    assert expected in caught.value.expected


def test_foods_outside_the_table_are_refused() -> None:
    module, reference = get_variation("pantry"), pantry_of_other_levels()
    for field, value, said in (
        ("id", "red_lentils", "not 'red_lentils'"),
        ("tags", [], "tags of lentils"),
        ("attributes_per_100g", {"protein_g": "9", "sodium_mg": "6"}, "protein_g of lentils"),
    ):
        row = reference["ingredients"][0] | {field: value}
        with pytest.raises(CompactError, match=said):
            module.write(reference | {"ingredients": [row, *reference["ingredients"][1:]]})


@every_domain
def test_broken_or_unsolvable_references(domain: str) -> None:
    module = get_variation(domain)
    with pytest.raises(InvalidReference, match="verifier"):
        module.write({"verifier": "chess"})
    unsolvable = {"graph_coloring": "G121323-???", "countdown": "C2,3=1000"}
    if domain in unsolvable:
        text = unsolvable[domain].replace("G121323-???", "G121314232434-????")
        with pytest.raises(Unsolvable, match="no mode"):
            module.validate(module.parse(text), 1)


def test_counting_is_bounded() -> None:
    for domain, text in (
        ("graph_coloring", "G12-" + "?" * 20),
        ("countdown", "C2,3,4,5,6,7=8"),
        ("pantry_plan", "K1-4/1/1m1-;al9999le9999oa9999pe9999"),
    ):
        module = get_variation(domain)
        with pytest.raises((Unsolvable, CompactError), match=r"up to|counted"):
            module.validate(module.parse(text), 2)


def test_unknown_domain() -> None:
    with pytest.raises(ValueError, match="no variations"):
        get_variation("chess")
