"""Reading the recorded verdicts of the published reference implementation."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modebench.verifiers import InvalidReference, verify

FOLDER = Path(__file__).resolve().parent.parent / "data" / "conformance"
DOMAIN_FILES = ("graph_coloring", "countdown", "python_factors", "mathir", "pantry_plan")

Outcome = tuple[str, str | None]
"""Status, with ``invalid_reference`` for a refused task, and mode."""


def rows(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def outcome(task: Any, response: Any) -> Outcome:
    """What our verifier says, in the terms of the published statuses."""
    try:
        verdict = verify(task, response)
    except InvalidReference as error:
        named = error.field and str(error).startswith(f"{error.field}: ")
        return ("invalid_reference" if named else f"unnamed field: {error}"), None
    assert (verdict.mode is None) == (verdict.status != "correct")
    assert (verdict.detail is None) == (verdict.status == "correct")
    return verdict.status, verdict.mode


def expected(row: Mapping[str, Any]) -> Outcome:
    return row["status"], row["canonical_key"]
