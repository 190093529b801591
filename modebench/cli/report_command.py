"""``modebench report``: one self-contained page of runs."""

from __future__ import annotations

from pathlib import Path

import click

from modebench.cli import options as shared
from modebench.errors import UsageError
from modebench.runs import write_atomically
from modebench.samples import Run, Runs, load_runs
from modebench.verifiers.registry import READINGS

_MEGABYTE = 1e6


@click.command("report")
@click.argument("sources", nargs=-1, required=True, type=shared.PATH)
@click.option(
    "--output", "-o", type=shared.PATH, help="The page  [default: report.html in the folder of a single run]"
)
@click.option("--title", default="ModeBench report", show_default=True, help="Title of the page.")
@click.option("--reading", type=click.Choice(READINGS), help="Whose verdicts  [default: each run's reading]")
@click.option(
    "--min-eligible", type=int, default=30, show_default=True, help="Prompts that make PCMD reportable."
)
def command(
    sources: tuple[Path, ...], output: Path | None, title: str, reading: str | None, min_eligible: int
) -> int:
    """Write a page about SOURCES: settings, warnings, numbers with intervals, figures, and every prompt with
    its responses grouped by mode.

    SOURCES are run folders, folders of runs, or files of judged samples. The page is a single file and needs
    no network.
    """
    from modebench.reporting import make_report

    runs = load_runs(sources)
    page = output if output is not None else _beside(runs)
    if not page.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {page.parent} to write in")
    write_atomically(page, make_report(runs, title, reading, min_eligible))
    click.echo(f"{page}: {page.stat().st_size / _MEGABYTE:.1f} MB")
    return 0


def _beside(runs: Runs) -> Path:
    members = list(runs)
    if len(members) == 1 and isinstance(members[0], Run):
        return members[0].path / "report.html"
    raise UsageError("--output is missing: where should the page on several runs or a file go?")
