"""From runs to a report: what `modebench.analysis.report` is told about models, tasks and settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from modebench import __version__
from modebench.analysis.compare import comparison_document, tidy_comparison
from modebench.analysis.probing import probe, render_probe
from modebench.analysis.report import Report, render_report
from modebench.analysis.report_figures import report_figures
from modebench.analysis.summary import summary_document, tidy
from modebench.config import tasks_of
from modebench.errors import UsageError
from modebench.samples import ORIGIN, Run, Runs, SampleFile

Manifests = dict[str, dict[str, Any]]


def make_report(runs: Runs, title: str, reading: str | None = None, min_eligible: int = 30) -> str:
    """One self-contained page about some runs, as HTML.

    Args:
        runs: what `modebench.load_runs` returns.
        title: of the page.
        reading: whose verdicts; None for each run's own.
        min_eligible: prompts that make PCMD reportable.

    Raises:
        UsageError: a run that is not graded; matplotlib is not installed.
        InputError: a file that cannot be read.
    """
    samples = runs.samples(reading)
    varying = [name for name in (*ORIGIN, "prefix") if name in samples and samples[name].nunique(False) > 1]
    samples = samples.assign(run=_labels(samples, varying or ["model"]))
    manifests = {str(member.path): member.folder.manifest for member in runs if isinstance(member, Run)}
    document = summary_document(
        samples,
        by=[*varying, "domain", "level"],
        min_eligible=min_eligible,
        reading=reading or _shared(manifests, "reading"),
        profile=_shared(manifests, "profile"),
        chance=runs.chance(reading),
    )
    comparison, remarks = (None, []) if "prefix" in samples else _compared(runs, reading)
    for name, manifest in manifests.items():
        remarks += _remarks(name, manifest)
    return render_report(
        Report(
            title=title,
            samples=samples,
            document=document,
            figures=report_figures(samples, tidy(document["cells"], min_eligible), comparison),
            problems=_problems(runs),
            settings={name: _settings(manifest) for name, manifest in manifests.items()},
            remarks=remarks,
            notes=[render_probe(probe(member.samples(reading))) for member in runs if _probed(member)],
            version=__version__,
        )
    )


def _probed(member: Run | SampleFile) -> bool:
    return isinstance(member, Run) and "prefixes" in member.folder.manifest


def _labels(samples: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """A name for the run of every sample, from what differs between the runs."""
    number = samples.groupby(list(names), sort=False, dropna=False, observed=True).ngroup()
    origins = samples.loc[~number.duplicated(), list(names)]
    labels = [" · ".join(map(_named, names, origin)) for origin in origins.itertuples(index=False)]
    return number.map(dict(enumerate(labels)))


def _named(name: str, value: Any) -> str:
    """A text speaks for itself, a number needs its name."""
    return value if isinstance(value, str) else f"{name} {'–' if pd.isna(value) else value}"


def _shared(manifests: Manifests, name: str) -> str | None:
    """What the runs have, in one text."""
    return ", ".join(sorted({str(manifest[name]) for manifest in manifests.values()})) or None


def _compared(runs: Runs, reading: str | None) -> tuple[pd.DataFrame | None, list[str]]:
    """The paired differences of two runs; or, where they must not be compared, a remark that says why."""
    if len(runs) != 2:
        return None, []
    try:
        document = comparison_document(runs[0], runs[1], reading=reading)
    except UsageError as error:
        return None, [f"not-compared: {error}"]
    table = tidy_comparison(document)
    return table[table["metric"].isin(document["starred"])], []


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
    first = ("model", "arm", "seed", "step", "samples", "reading", "profile", "system", "strip_reasoning")
    last = ("status", "missing", "created", "platform", "git", "versions", "command")
    sets = [
        f"{entry['name']} ({entry['count']}, sha256 {entry['sha256'][:16]}…)"
        for entry in manifest["task_sets"]
    ]
    return {
        **{name: manifest.get(name) for name in first},
        **manifest["settings"],
        "prefixes": manifest.get("prefixes"),
        "engine": manifest["engine"],
        "task sets": sets,
        **{name: manifest.get(name) for name in last},
    }


def _remarks(name: str, manifest: dict[str, Any]) -> list[str]:
    remarks = []
    if manifest["status"] != "success":
        remarks.append(f"unfinished: {name} has the status {manifest['status']}")
    if manifest.get("missing"):
        remarks.append(f"missing-samples: {name} lacks {manifest['missing']} samples")
    return remarks
