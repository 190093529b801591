"""PantryPlan, `clean`: pairs, masks and lists of ids spelled freely.

The mode is the set of ingredients, as published.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from modebench.verifiers.clean.extraction import plain_answer
from modebench.verifiers.pantry_plan import MASK_BITS, MAX_GRAMS, Spec, judge_mask, judge_plan
from modebench.verifiers.verdict import Verdict, malformed

_MAX_ID = 32
_SEPARATOR = re.compile(r"\s*[;,]\s*|[^\S\n\r]*[\n\r]\s*")
_NAME = r"[A-Za-z][A-Za-z0-9_-]*(?:[^\S\n\r]+[A-Za-z0-9_-]+)*"
_PAIR = re.compile(rf"(?P<name>{_NAME})\s*[=:]\s*(?P<grams>[0-9]+)\s*g?")
_ID = re.compile(_NAME)
_GAP = re.compile(r"\s+|-")
_BITS = re.compile(r"[01]+|[01](?:\s*,\s*[01])+|[01](?:\s+[01])+")


def judge(spec: Spec, response: str, truncated: bool = False) -> Verdict:
    """The `clean` verdict on a response."""
    answer = plain_answer(response, truncated)
    if answer is None:
        return malformed("no answer found")
    return _judge_choice(spec, answer) if spec.level == 1 else _judge_pairs(spec, answer)


def _judge_choice(spec: Spec, answer: str) -> Verdict:
    """Level 1: six bits, or ids of ingredients."""
    if _BITS.fullmatch(answer):
        bits = re.sub("[^01]", "", answer)
        return judge_mask(spec, bits)
    names: list[str] = []
    for piece in _SEPARATOR.split(answer):
        if not _ID.fullmatch(piece):
            return malformed(f"neither {MASK_BITS} digits 0 or 1 nor ids of ingredients")
        names.append(_id_of(piece))
    unknown = [name for name in names if name not in spec.ingredients]
    if unknown:
        return malformed(f"{unknown[0][:40]} is not in the pantry")
    if len(set(names)) != len(names):
        return malformed("names an ingredient twice")
    return judge_mask(spec, _mask(spec, names))


def _mask(spec: Spec, names: Sequence[str]) -> str:
    return "".join("1" if name in names else "0" for name in spec.ingredients)


def _judge_pairs(spec: Spec, answer: str) -> Verdict:
    """Levels 2 to 5: amounts in grams by id."""
    if answer.startswith("{") and answer.endswith("}"):
        answer = answer[1:-1].strip()
    plan: dict[str, int] = {}
    for piece in _SEPARATOR.split(answer):
        pair = _PAIR.fullmatch(piece)
        if pair is None:
            return malformed(f"{piece[:40]!r} is not id=grams")
        name, digits = _id_of(pair["name"]), pair["grams"].lstrip("0") or "0"
        if len(name) > _MAX_ID:
            return malformed(f"an id longer than {_MAX_ID} characters")
        if name in plan:
            return malformed(f"names {name} twice")
        if len(digits) > len(str(MAX_GRAMS)) or not 1 <= int(digits) <= MAX_GRAMS:
            return malformed(f"{name} has an amount outside 1..{MAX_GRAMS}")
        plan[name] = int(digits)
    return judge_plan(spec, plan)


def _id_of(name: str) -> str:
    return _GAP.sub("_", name).lower()
