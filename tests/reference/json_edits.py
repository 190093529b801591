"""Broken and odd references: random changes to a JSON object and to JSON text."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.reference.texts import edit, odd_piece

# fmt: off
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 4, 6, 7, 8, 17, 33, 1000, 1001, 10000, 10001, 1000000, 1000001,
    9223372036854775808, 1000000000000000000000000000000, 1.0, 25.0, 0.5, -0.0, 1e-07, 1e+16, 1e+300, "", " ",
    "0", "1", "-1", "1.5", "a", "x", "A", "nan", "NaN", "inf", "-inf", "Infinity", "1e2", "1E-30", " 7 ",
    "1_000", "+5", "-0", "٣", "1/2", "0x10", "sNaN", [], {}, [1], [1, 2], [None], {'min': 1}, {'max': '2'},
    {'min': 3, 'max': 1}, [[1, 2]], [[1, 1]], "\x00", "é",
)
# fmt: on


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path into a JSON value, the root excluded."""
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield (*prefix, key)
        yield from paths(child, (*prefix, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def change(rng: random.Random, reference: dict[str, Any], edits: int = 1) -> dict[str, Any]:
    """A deep copy with random changes of fields: other values, types, sizes, keys."""
    result = copy.deepcopy(reference)
    for _ in range(edits):
        known = list(paths(result))
        if not known:
            break
        _change(rng, result, rng.choice(known))
    return result


def _change(rng: random.Random, root: dict[str, Any], path: tuple[Any, ...]) -> None:
    holder, key = at(root, path[:-1]), path[-1]
    value = holder[key]
    kind = rng.randrange(9)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = _near(rng, value)
    elif kind == 2 and isinstance(holder, list):
        holder.insert(rng.randint(0, len(holder)), copy.deepcopy(rng.choice(holder)))
    elif kind == 3 and isinstance(holder, dict):
        holder[rng.choice(("extra", "A", "x", "mass_g", "a", "z", f"{key} ", f"{key}".upper(), ""))] = value
    elif kind == 4 and isinstance(holder, list):
        rng.shuffle(holder)
    elif kind == 5 and isinstance(holder, dict):
        items = list(holder.items())
        rng.shuffle(items)
        holder.clear()
        holder.update(items)
    elif kind == 6:
        holder[key] = _near(rng, value)
    else:
        holder[key] = copy.deepcopy(rng.choice(VALUES))


def _near(rng: random.Random, value: Any) -> Any:
    """A value close to the given one, of the same or a confusable type."""
    if isinstance(value, bool) or value is None:
        return rng.choice((not value, int(bool(value)), 1.0, "true"))
    if isinstance(value, int):
        return rng.choice(
            (value + 1, value - 1, -value, float(value), str(value), bool(value), value * 1000, [value])
        )
    if isinstance(value, float):
        return rng.choice((-value, str(value), int(value), value * 1e200, [value]))
    if isinstance(value, str):
        texts = (
            value.upper(),
            f" {value}",
            f"{value}\n",
            edit(rng, value),
            value + odd_piece(rng),
            value[:-1],
            value * 9,
        )
        return rng.choice((*texts, [value], None, value + "0"))
    if isinstance(value, list):
        return rng.choice((value[:-1], value * 2, [*value, None], {"0": value}, json.dumps(value), value[:1]))
    return rng.choice(({}, [list(item) for item in value.items()], json.dumps(value), list(value), [value]))


def as_text(rng: random.Random, reference: dict[str, Any]) -> str:
    """The reference as JSON text in one of many equal spellings."""
    style = rng.randrange(5)
    if style == 0:
        return json.dumps(reference)
    if style == 1:
        return json.dumps(reference, indent=rng.choice((0, 1, "\t")), ensure_ascii=False)
    if style == 2:
        return f" \n\t\r{json.dumps(reference, separators=(',', ':'))}\n "
    if style == 3:
        return _escaped(rng, json.dumps(reference))
    return json.dumps(reference, sort_keys=True)


def _escaped(rng: random.Random, text: str) -> str:
    """Some letters inside strings written as ``\\u0061``; text with escapes of its own is left alone."""
    if "\\" in text:
        return text
    parts = text.split('"')
    for i in range(1, len(parts), 2):
        parts[i] = "".join(f"\\u{ord(c):04x}" if rng.random() < 0.1 else c for c in parts[i])
    return '"'.join(parts)


def broken_text(rng: random.Random, reference: dict[str, Any]) -> str:
    """JSON text with damage: duplicate keys, NaN, trailing text, deep nesting, great length."""
    text = json.dumps(reference)
    key = rng.choice(list(reference) or ["a"])
    return rng.choice(
        (
            lambda: text[:-1] + f", {json.dumps(key)}: {json.dumps(reference.get(key))}" + "}",
            lambda: text[:-1]
            + ', "extra": '
            + rng.choice(("NaN", "Infinity", "-Infinity", "1e999", "-1e999"))
            + "}",
            lambda: text[:-1]
            + ', "extra": '
            + rng.choice(("1e5", "01", "1.", ".5", "+1", "-0", "0x1", "'a'"))
            + "}",
            lambda: text[:-1] + ', "extra": ' + "[" * (n := rng.choice((5, 50, 400))) + "]" * n + "}",
            lambda: text[:-1] + ', "extra": {"a": 1, "a": 2}}',
            lambda: text[:-1]
            + ', "extra": "'
            + "p" * rng.choice((1000, 60_000, 65_000, 65_536, 70_000))
            + '"}',
            lambda: text[:-1] + ', "extra": "' + "é" * rng.choice((5_000, 10_800, 12_000, 20_000)) + '"}',
            lambda: text + rng.choice((" ", "\n", "}", " x", ",", "\0", "\xa0", "\ufeff")),
            lambda: rng.choice(("\ufeff", " ", "\xa0", "x", "\\")) + text,
            lambda: json.dumps(text),
            lambda: f"[{text}]",
            lambda: rng.choice(("", "null", "1", "[]", "{}", '"a"', "NaN", "true", "{", text[:-1])),
            lambda: edit(rng, text),
            lambda: text + " " * rng.choice((10, 60_000, 65_536, 70_000)),
        )
    )()
