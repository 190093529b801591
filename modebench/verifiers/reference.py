"""Strict reading of task references.

A reference is an object or JSON text. Checks name the field that fails; nothing is coerced, because
``true`` is not 1 and ``25.0`` is not 25 in the published format.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from modebench.verifiers.verdict import InvalidReference

MAX_REFERENCE_BYTES = 65_536


def _unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidReference("reference", f"key {key!r} appears twice in one object")
            seen.add(key)
    return result


def _no_constant(text: str) -> NoReturn:
    raise InvalidReference("reference", f"{text} is not JSON")


def canonical_text(reference: object) -> str:
    """The reference as JSON text, key order kept; the cache key of compiled references.

    Raises:
        InvalidReference: not an object or its JSON text, not finite JSON, or over 64 KiB.
    """
    if isinstance(reference, str):
        text = reference
        # The published limit counts text as it stands in JSON, its quotes escaped.
        if len(text) > MAX_REFERENCE_BYTES // 12 and len(json.dumps(text)) > MAX_REFERENCE_BYTES:
            raise _too_long()
    elif isinstance(reference, Mapping):
        try:
            text = json.dumps(reference if isinstance(reference, dict) else dict(reference), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidReference("reference", f"cannot be written as JSON ({error})") from None
    else:
        raise InvalidReference("reference", f"must be an object or JSON text, not {type(reference).__name__}")
    if len(text) > MAX_REFERENCE_BYTES:
        raise _too_long()
    return text


def _too_long() -> InvalidReference:
    return InvalidReference("reference", f"longer than {MAX_REFERENCE_BYTES} bytes of JSON")


def parse_reference(text: str) -> dict[str, Any]:
    """JSON text to an object: no duplicate keys, no NaN or infinity, 64 KiB of ASCII JSON at most."""
    try:
        value = json.loads(text, object_pairs_hook=_unique_object, parse_constant=_no_constant)
        size = len(json.dumps(value))
    except InvalidReference:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidReference("reference", f"is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise InvalidReference("reference", f"must be an object, not {type(value).__name__}")
    if size > MAX_REFERENCE_BYTES:
        raise _too_long()
    _require_finite(value)
    return value


def _require_finite(value: object) -> None:
    """JSON text such as 1e999 reads as infinity, which no field allows."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise InvalidReference("reference", "a number is not finite")


def require_verifier(reference: Mapping[str, Any], *allowed: str) -> str:
    """The reference's ``verifier`` field, which must be one of `allowed`."""
    name = reference.get("verifier")
    if not isinstance(name, str) or name not in allowed:
        raise InvalidReference(
            "reference.verifier", f"is {name!r}, expected {' or '.join(map(repr, allowed))}"
        )
    return name


def is_int(value: object) -> bool:
    """A true integer: booleans are not."""
    return type(value) is int


def require_int(value: object, field: str, low: int | None = None, high: int | None = None) -> int:
    """A true integer within [low, high]."""
    if type(value) is not int:
        raise InvalidReference(field, f"must be an integer, not {value!r}")
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"in {low}..{high}"
        raise InvalidReference(field, f"must be {bounds}, not {value}")
    return value
