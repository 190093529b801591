"""Runs and files of judged samples, to look at: their samples, prompts and summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from modebench.analysis.chance import NO_CHANCE
from modebench.analysis.probing import probe
from modebench.analysis.summary import prompt_table, summary_document
from modebench.chance import chance_table
from modebench.errors import UsageError
from modebench.grading import differences_summary
from modebench.joining import COLUMNS, STATUSES, graded_samples, joined_samples, together
from modebench.runs import MANIFEST, RunFolder
from modebench.usage import usage_of

__all__ = ["COLUMNS", "STATUSES", "Run", "Runs", "SampleFile", "load_run", "load_runs", "load_samples"]

ORIGIN = ("model", "seed", "step", "arm", "temperature")
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "stop")
Source = str | PathLike[str]


class Run:
    """A finished or unfinished run, to look at.

    Attributes:
        folder: where it lies, with its manifest.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def reading(self) -> str:
        """The verifier reading that the run was made with."""
        return str(self.folder.manifest["reading"])

    def samples(self, reading: str | None = None, *, texts: bool = True) -> pd.DataFrame:
        """One row a sample, with the columns `COLUMNS`.

        Args:
            reading: whose verdicts; None for the run's own.
            texts: with the raw responses. Without them, which takes a fraction of the memory, a column
                ``response_hash`` stands in their place: equal where the responses are.

        Raises:
            UsageError: not graded with this reading, or the responses changed since.
            InputError: a line that cannot be read, or a response without a verdict.
        """
        return joined_samples(self.folder, reading or self.reading, texts=texts)

    def prompts(self, reading: str | None = None) -> pd.DataFrame:
        """One row a prompt with its statistics; see `modebench.analysis.summary.prompt_table`."""
        samples = self.samples(reading, texts=False)
        return prompt_table(samples, by=cell_columns(samples))

    def chance(self, reading: str | None = None) -> pd.DataFrame | str:
        """What chance does on each prompt; see `modebench.chance.chance_table`."""
        return _chance(self.folder, reading or self.reading)

    def summary(self, reading: str | None = None) -> dict[str, Any]:
        """The summary document, computed from the files."""
        return run_document(self.folder, reading or self.reading)

    def origin(self) -> dict[str, Any]:
        """Model, seed, step, arm and temperature."""
        manifest = self.folder.manifest
        return {name: {**manifest, **manifest["settings"]}[name] for name in ORIGIN}

    def settings(self) -> dict[str, Any]:
        """What has to be equal for two runs to be compared, by the name that `--allow-mismatch` takes."""
        manifest = self.folder.manifest
        sampling = {name: manifest["settings"].get(name) for name in _SAMPLING}
        sets = {entry["name"]: entry["sha256"] for entry in manifest["task_sets"]}
        return {
            **sampling,
            "samples": manifest["samples"],
            "reading": self.reading,
            "profile": manifest["profile"],
            "system": manifest["system"],
            "strip_reasoning": manifest["strip_reasoning"],
            "constrained": manifest.get("constrained", False),
            "prompts": manifest.get("prompts_sha256"),
            "template": manifest["engine"].get("template_sha256"),
            "tasks": ", ".join(f"{name} {sha256[:12]}" for name, sha256 in sets.items()),
        }


class SampleFile:
    """A bare JSON Lines file of judged samples: task_id, domain, level, sample, status, mode, and any other
    of `COLUMNS`.

    Attributes:
        path: where it lies.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def samples(self, reading: str | None = None, *, texts: bool = True) -> pd.DataFrame:
        """One row a sample, with those of the columns `COLUMNS` that the file has.

        Args:
            reading: makes no difference: the file holds one verdict a sample.
            texts: as in `Run.samples`.

        Raises:
            InputError: a line that cannot be read.
            UsageError: the file is empty.
        """
        return graded_samples(self.path, texts=texts)

    def prompts(self, reading: str | None = None) -> pd.DataFrame:
        """One row a prompt with its statistics; see `modebench.analysis.summary.prompt_table`."""
        samples = self.samples(texts=False)
        return prompt_table(samples, by=cell_columns(samples))

    def chance(self, reading: str | None = None) -> str:
        """Why it is not known what chance does on these prompts: the file has neither tasks nor responses."""
        return NO_CHANCE

    def summary(self, reading: str | None = None) -> dict[str, Any]:
        """The summary document of the file."""
        samples = self.samples(texts=False)
        return summary_document(samples, by=cell_columns(samples), reading=reading)

    def origin(self) -> dict[str, Any]:
        """The name of the file as model; it knows nothing else."""
        return {**dict.fromkeys(ORIGIN), "model": self.path.stem}

    def settings(self) -> dict[str, Any]:
        """Nothing: the file does not say how its samples were made."""
        return {}


class Runs(Sequence[Run | SampleFile]):
    """Several runs or files, in one table.

    Attributes:
        members: each of them.
    """

    def __init__(self, members: Sequence[Run | SampleFile]) -> None:
        self.members = tuple(members)

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Run | SampleFile]:
        return iter(self.members)

    def __getitem__(self, index: Any) -> Any:
        return Runs(self.members[index]) if isinstance(index, slice) else self.members[index]

    def samples(self, reading: str | None = None, *, texts: bool = True) -> pd.DataFrame:
        """The long tables of all, with the columns of `ORIGIN` beside; args and errors as `Run.samples`."""
        tables = [member.samples(reading, texts=texts).assign(**member.origin()) for member in self.members]
        return together(tables)

    def prompts(self, reading: str | None = None) -> pd.DataFrame:
        """One row a prompt of each run; see `modebench.analysis.summary.prompt_table`."""
        samples = self.samples(reading, texts=False)
        return prompt_table(samples, by=(*ORIGIN, *cell_columns(samples)))

    def chance(self, reading: str | None = None) -> pd.DataFrame | str:
        """What chance does on each prompt of the runs that know it, with the columns of `ORIGIN` beside; or
        why none does."""
        found = [(member.chance(reading), member.origin()) for member in self.members]
        tables = [table.assign(**origin) for table, origin in found if not isinstance(table, str)]
        reasons = [table for table, _ in found if isinstance(table, str)]
        return pd.concat(tables, ignore_index=True) if tables else reasons[0]

    def settings(self) -> dict[str, Any]:
        """What the runs have in common of `Run.settings`.

        Raises:
            UsageError: two of them differ.
        """
        common: dict[str, Any] = {}
        for member in self.members:
            for name, value in member.settings().items():
                if common.setdefault(name, value) != value:
                    raise UsageError(
                        f"runs of one side differ in {name}: {common[name]!r} and {value!r} ({member.path}); "
                        "give those that belong together"
                    )
        return common

    def summary(self, reading: str | None = None) -> dict[str, Any]:
        """The summary document with a cell for every model, seed, step, arm, domain and level."""
        samples = self.samples(reading, texts=False)
        by = (*ORIGIN, *cell_columns(samples))
        return summary_document(samples, by=by, reading=reading, chance=self.chance(reading))


def load_run(path: Source) -> Run | SampleFile:
    """A run folder, or a bare JSON Lines file of judged samples.

    Raises:
        UsageError: there is neither at `path`.
        InputError: a manifest that cannot be read.
    """
    place = Path(path)
    if place.is_file():
        return SampleFile(place)
    if not place.exists():
        raise UsageError(f"no run folder and no file at {place}")
    return Run(RunFolder.open(place))


def load_runs(sources: Source | Iterable[Source]) -> Runs:
    """Run folders, folders of runs (searched to any depth) and files of judged samples, together.

    Of a training run these are the evaluations; those on dev, which only name its best checkpoint, are found
    where their own folder is given.

    Raises:
        UsageError: nothing at a path, or a folder without any run.
        InputError: a manifest that cannot be read.
    """
    given = [sources] if isinstance(sources, str | PathLike) else list(sources)
    found = [member for source in given for member in _found(Path(source))]
    if not found:
        raise UsageError("no run is named")
    return Runs(found)


def _found(path: Path) -> list[Run | SampleFile]:
    if not path.is_dir() or (path / MANIFEST).is_file():
        return [load_run(path)]
    inside = sorted(manifest.parent for manifest in path.rglob(MANIFEST))
    folders = [folder for folder in inside if not _is_dev(folder, path)]
    if not folders:
        raise UsageError(f"{path} is not a run folder and holds none: there is no {MANIFEST} in it")
    return [Run(RunFolder.open(folder)) for folder in folders]


def _is_dev(folder: Path, source: Path) -> bool:
    """Whether a run is an evaluation on dev of a training run at or below `source`."""
    dev = folder.parent
    return dev.name == "dev" and dev != source and is_training_folder(dev.parent)


def is_training_folder(path: Path) -> bool:
    """Whether this is the folder of a training run (`modebench.training.folder`)."""
    return (path / "config.yaml").is_file()


def load_samples(
    sources: Source | Iterable[Source], reading: str | None = None, *, texts: bool = True
) -> pd.DataFrame:
    """The long table of runs and files, with columns model, seed, step and arm.

    Args:
        sources: as in `load_runs`.
        reading: whose verdicts; None for each run's own.
        texts: as in `Run.samples`.

    Raises:
        UsageError, InputError: as `load_runs` and `Run.samples`.
    """
    return load_runs(sources).samples(reading, texts=texts)


def run_document(folder: RunFolder, reading: str) -> dict[str, Any]:
    """The summary document of a graded run: numbers, and what they rest on."""
    manifest = folder.manifest
    samples = joined_samples(folder, reading, texts=False)
    document = summary_document(
        samples,
        by=cell_columns(samples),
        reading=reading,
        profile=manifest["profile"],
        chance=_chance(folder, reading),
    )
    probing = {"probing": probe(samples)} if "prefix" in samples else {}
    head = {"model": manifest["model"], "settings": manifest["settings"]}
    head |= {"constrained": True} if manifest.get("constrained") else {}
    used = usage_of(samples, manifest["engine_options"])
    return {**head, **document, **probing, **used, **differences_summary(folder)}


def _chance(folder: RunFolder, reading: str) -> pd.DataFrame | str:
    if "prefixes" in folder.manifest:
        return "chance is counted for runs without prefixes"
    return chance_table(folder, reading)


def cell_columns(samples: pd.DataFrame) -> tuple[str, ...]:
    """What makes a cell of one run: domain and level, and the prefix where there are some."""
    return ("prefix", "domain", "level") if "prefix" in samples else ("domain", "level")
