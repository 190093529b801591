"""``modebench show``: look at the responses of a run, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from modebench.cli import options as shared
from modebench.config import tasks_of
from modebench.errors import InputError, UsageError
from modebench.runs import RunFolder, read_jsonl, sample_key
from modebench.verifiers import Reading
from modebench.verifiers.registry import READINGS

STATUSES = ("correct", "incorrect", "malformed", "error", "truncated")


@click.command("show")
@click.argument("run", type=shared.PATH)
@click.option("--status", type=click.Choice(STATUSES), help="Only these; truncated: cut at the token limit.")
@click.option("--task", help="Only tasks whose id matches, e.g. 'countdown/*/0007'.")
@click.option("--mode", help="Only responses of this mode.")
@click.option("--limit", "-n", type=int, default=20, show_default=True, help="Responses shown at most.")
@click.option("--prompt/--no-prompt", default=False, help="Show the task's problem too.")
@click.option("--reading", type=click.Choice(READINGS), help="Whose verdicts  [default: the run's reading]")
def command(
    run: Path,
    status: str | None,
    task: str | None,
    mode: str | None,
    limit: int,
    prompt: bool,
    reading: Reading | None,
) -> int:
    """Show responses of RUN with their verdicts and modes.

    The files are read line by line, so a long run costs no memory.
    """
    folder = RunFolder.open(run)
    problems = {}
    if prompt:
        problems = {item.id: item.problem for tasks in tasks_of(folder.manifest) for item in tasks}
    shown = matching = 0
    for record in joined(folder, reading or folder.manifest["reading"]):
        truncated = record.get("finish_reason") == "length"
        if status and status != record["status"] and not (status == "truncated" and truncated):
            continue
        if (task and not fnmatchcase(record["task_id"], task)) or (mode and record.get("mode") != mode):
            continue
        matching += 1
        if shown < limit:
            shown += 1
            click.echo(_text(record, problems.get(record["task_id"])))
    click.echo(f"{shown} of {matching} matching responses shown", err=True)
    return 0


def joined(folder: RunFolder, reading: str) -> Iterator[dict[str, Any]]:
    """Responses with status, mode and detail, in file order, holding one line at a time.

    Raises:
        UsageError: not graded with this reading.
        InputError: the verdicts are not those of the responses.
    """
    path = folder.verdicts_path(reading)
    if not path.is_file():
        raise UsageError(f"{folder.path} is not graded as {reading}; run: modebench grade {folder.path}")
    verdicts = read_jsonl(path)
    for line, record in enumerate(folder.responses(), 1):
        if record.get("error") is not None:
            yield record | {"status": "error", "mode": None, "detail": record["error"]}
            continue
        at, verdict = next(verdicts, (0, {}))
        if not verdict or sample_key(verdict, path, at) != sample_key(record, folder.responses_path, line):
            raise InputError(
                path, at or line, "task_id", f"is not the verdict on response {line}; grade again"
            )
        yield record | {name: verdict.get(name) for name in ("status", "mode", "detail")}


def _text(record: dict[str, Any], problem: str | None) -> str:
    head = f"── {record['task_id']} #{record['sample']}  {record['status']}"
    if record.get("mode"):
        head += f"  {record['mode']}"
    if record.get("detail"):
        head += f"  ({record['detail']})"
    if record.get("finish_reason") == "length":
        head += "  [truncated]"
    parts = [head]
    if problem is not None:
        parts.append(f"{problem}\n")
    if record.get("reasoning"):
        parts.append(f"[reasoning] {record['reasoning']}")
    parts.append(record.get("response") or "")
    return "\n".join(parts)
