"""What a verifier says of one response."""

from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["correct", "incorrect", "malformed"]
Reading = Literal["published", "clean"]


class Verdict(NamedTuple):
    """The judgement of one response.

    Attributes:
        status: ``correct``; ``incorrect`` (a readable answer that fails when executed);
            ``malformed`` (no answer of the required form).
        mode: canonical string of the solution, equal exactly when two solutions are the same
            solution; None unless correct.
        detail: why the response is not correct, for people; None when correct.
    """

    status: Status
    mode: str | None = None
    detail: str | None = None


def correct(mode: str) -> Verdict:
    return Verdict("correct", mode, None)


def incorrect(detail: str) -> Verdict:
    return Verdict("incorrect", None, detail)


def malformed(detail: str) -> Verdict:
    return Verdict("malformed", None, detail)


class InvalidReference(ValueError):  # noqa: N818 - the name of the published status
    """A task's reference cannot be executed against.

    Attributes:
        field: dotted path of the offending field, e.g. ``reference.edges[3]``.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem

    def __reduce__(self) -> tuple[type[InvalidReference], tuple[str, str]]:
        """Both arguments, so that the error crosses between processes."""
        return (InvalidReference, (self.field, self.problem))
