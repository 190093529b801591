"""Responses that exist already, replayed as if a model wrote them: ``recorded/FILE``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from modebench.records import read_responses
from modebench.runs import file_sha256
from modebench.sampling.base import EngineUnavailable, GenerationSettings, Group, Sample


class RecordedEngine:
    """Answers with the recorded responses of each task, in their order.

    A task with fewer recorded responses than samples asked gets failed samples, which are counted as
    missing and never as wrong.
    """

    groups_per_batch = 16

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            path = path / "responses.jsonl"
        if not path.is_file():
            raise EngineUnavailable(f"no file of responses at {path}")
        self.path = path
        self._samples: dict[tuple[str, str | None], dict[int, Sample]] = {}
        for record in read_responses(path):
            self._samples.setdefault((record.task_id, record.prefix), {})[record.sample] = Sample(
                response=record.response,
                finish_reason=record.finish_reason,
                input_tokens=record.input_tokens,
                output_tokens=record.output_tokens,
                reasoning=record.reasoning,
                error=record.error,
            )

    def describe(self) -> dict[str, Any]:
        return {"engine": "recorded", "file": str(self.path), "sha256": file_sha256(self.path)}

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        for index, group in enumerate(groups):
            known = self._samples.get((group.task.id, group.prefix), {})
            places = range(group.first, group.first + len(group.seeds))
            yield index, [known.get(place) or _missing(group, place) for place in places]


def _missing(group: Group, sample: int) -> Sample:
    prefix = "" if group.prefix is None else f" with prefix {group.prefix!r}"
    return Sample("", "error", error=f"no recorded response number {sample} of {group.task.id}{prefix}")
