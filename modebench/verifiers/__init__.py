"""Verdicts: is a response right, and which solution is it?

`verify` is total: any string gets a verdict, in bounded time and memory, in any thread, without
executing model text. A broken reference raises `InvalidReference`, naming the field.
"""

from modebench.verifiers.parallel import verify_many
from modebench.verifiers.registry import Answerable, check_task, verify
from modebench.verifiers.verdict import InvalidReference, Reading, Status, Verdict

__all__ = [
    "Answerable",
    "InvalidReference",
    "Reading",
    "Status",
    "Verdict",
    "check_task",
    "verify",
    "verify_many",
]
