"""Tasks: what a model is asked, and what its answer is executed against.

A `Task` is plain data. It knows no domain code, so verifiers may import it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Task:
    """One problem of a domain.

    Attributes:
        id: stable identity, unique in its split, e.g. ``countdown/level1/eval/0007``.
        domain: canonical domain name, e.g. ``graph_coloring``.
        level: 1 to 5.
        split: ``train``, ``dev`` or ``eval`` (free text for user data).
        problem: the user message, complete with the reply format.
        reference: what the verifier executes against ("answer" in the published files).
        modes: exact number of valid modes, by enumeration of this task; None when unknown.
        declared_modes: what a published file says the number is; None for our own tasks.
    """

    id: str
    domain: str
    level: int
    split: str
    problem: str
    reference: Mapping[str, Any]
    modes: int | None = None
    declared_modes: int | None = None

    @cached_property
    def reference_json(self) -> str:
        """The reference as JSON text, key order kept (a MathIR menu's order is part of it)."""
        return json.dumps(self.reference, separators=(",", ":"))

    def to_record(self) -> dict[str, Any]:
        """The task as one JSON-ready mapping; the inverse of `task_from_record`."""
        record: dict[str, Any] = {
            "id": self.id,
            "domain": self.domain,
            "level": self.level,
            "split": self.split,
            "problem": self.problem,
            "reference": self.reference,
            "modes": self.modes,
        }
        if self.declared_modes is not None:
            record["declared_modes"] = self.declared_modes
        return record
