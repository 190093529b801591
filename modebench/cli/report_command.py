"""``modebench report``: one self-contained page of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from modebench import __version__
from modebench.cli import options as shared
from modebench.config import tasks_of
from modebench.errors import UsageError
from modebench.runs import write_atomically
from modebench.samples import Run, Runs, load_runs
from modebench.verifiers.registry import READINGS

# What tells runs apart, and so makes cells of their own.
_ORIGIN = ("model", "arm", "seed", "step", "temperature", "prefix")
_MEGABYTE = 1e6


@click.command("report")
@click.argument("sources", nargs=-1, required=True, type=shared.PATH)
@click.option(
    "--output", "-o", type=shared.PATH, help="The page  [default: report.html in the folder of a single run]"
)
@click.option("--title", default="ModeBench report", show_default=True)
@click.option(
    "--reading", type=click.Choice(READINGS), help="Whose verdicts  [default: the runs' own reading]"
)
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
    # Figures need matplotlib, which the other commands do without.
    from modebench.analysis.report import Report, render_report
    from modebench.analysis.report_figures import report_figures
    from modebench.analysis.summary import summary_document, tidy

    runs = load_runs(sources)
    page = output if output is not None else _beside(runs)
    if not page.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {page.parent} to write in")
    samples = runs.samples(reading)
    varying = [name for name in _ORIGIN if name in samples and samples[name].nunique(dropna=False) > 1]
    samples = samples.assign(run=_labels(samples, varying))
    manifests = {_name(member): member.folder.manifest for member in runs if isinstance(member, Run)}
    document = summary_document(
        samples,
        by=[*varying, "domain", "level"],
        min_eligible=min_eligible,
        reading=reading or _shared(manifests, "reading"),
        profile=_shared(manifests, "profile"),
        chance=runs.chance(reading),
    )
    report = Report(
        title=title,
        samples=samples,
        document=document,
        figures=report_figures(samples, tidy(document["cells"], min_eligible)),
        problems=_problems(runs),
        settings={name: _settings(manifest) for name, manifest in manifests.items()},
        remarks=[remark for name, manifest in manifests.items() for remark in _remarks(name, manifest)],
        version=__version__,
    )
    write_atomically(page, render_report(report))
    click.echo(f"{page}: {len(samples)} samples, {page.stat().st_size / _MEGABYTE:.1f} MB")
    return 0


def _beside(runs: Runs) -> Path:
    members = list(runs)
    if len(members) == 1 and isinstance(members[0], Run):
        return members[0].path / "report.html"
    raise UsageError("--output is missing: where should the page on several runs or a file go?")


def _labels(samples: Any, varying: list[str]) -> Any:
    """A name for the run of every sample: what differs between runs, else the model."""
    columns = varying or ["model"]
    texts = [
        samples[name].map(lambda value: "–" if value is None or value != value else str(value))
        for name in columns
    ]
    named = [
        text if name in ("model", "arm") else f"{name} " + text.astype(object)
        for name, text in zip(columns, texts, strict=True)
    ]
    label = named[0].astype(object)
    for text in named[1:]:
        label = label + " · " + text.astype(object)
    return label


def _name(member: Run) -> str:
    return str(member.path)


def _shared(manifests: dict[str, dict[str, Any]], name: str) -> str | None:
    """What all runs have, or all that there is."""
    return ", ".join(sorted({str(manifest[name]) for manifest in manifests.values()})) or None


def _problems(runs: Runs) -> dict[tuple[str, int, str], str]:
    return {
        (task.domain, task.level, task.id): task.problem
        for member in runs
        if isinstance(member, Run)
        for tasks in tasks_of(member.folder.manifest)
        for task in tasks
    }


def _settings(manifest: dict[str, Any]) -> dict[str, object]:
    """What a reader of the numbers may want to know of a run, by name."""
    plain = ("model", "arm", "seed", "step", "samples", "reading", "profile", "system", "strip_reasoning")
    later = ("status", "missing", "created", "platform", "git", "versions", "command")
    return {
        **{name: manifest.get(name) for name in plain},
        **manifest["settings"],
        "engine": manifest["engine"],
        "task sets": [
            f"{entry['name']} ({entry['count']}, sha256 {entry['sha256'][:16]}…)"
            for entry in manifest["task_sets"]
        ],
        **{name: manifest.get(name) for name in later},
    }


def _remarks(name: str, manifest: dict[str, Any]) -> list[str]:
    remarks = []
    if manifest["status"] != "success":
        remarks.append(f"unfinished: {name} has the status {manifest['status']}")
    if manifest.get("missing"):
        remarks.append(f"missing-samples: {name} lacks {manifest['missing']} samples")
    return remarks
