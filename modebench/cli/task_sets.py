"""``modebench tasks build, export, overlap, calibrate``: whole sets of tasks."""

from __future__ import annotations

from pathlib import Path

import click

from modebench import calibration
from modebench import overlap as overlaps
from modebench.cli import options as shared
from modebench.config import Selection
from modebench.domains import DOMAINS, get_domain
from modebench.errors import SplitError, UsageError
from modebench.samples import load_samples
from modebench.splits import LEVELS, SIZES, fresh_split
from modebench.tasks import Task, published_row, write_tasks
from modebench.verifiers import Reading

_OUTPUT = click.option("--output", "-o", "output", type=shared.PATH, required=True, help="File to write.")


def tasks_in(file: Path) -> tuple[Task, ...]:
    """The checked tasks of a file.

    Raises:
        UsageError, InputError: it can't be read.
    """
    return tuple(task for members in Selection(file=str(file)).load() for task in members)


def split_named(name: str) -> tuple[Task, ...]:
    """The tasks of a frozen split, e.g. countdown/level1/eval.

    Raises:
        UsageError: no split has that name.
        SplitError: there is no such split.
    """
    pieces = name.split("/")
    if len(pieces) != 3 or pieces[1].removeprefix("level") not in {str(level) for level in LEVELS}:
        raise UsageError(f"{name!r} is not the name of a split; see: modebench tasks ls")
    level = int(pieces[1].removeprefix("level"))
    [tasks] = Selection(domains=(pieces[0],), levels=(level,), split=pieces[2]).load()
    return tasks.tasks


@click.command("build")
@click.option("--domain", required=True, help=f"One of {', '.join(DOMAINS)}.")
@click.option("--level", type=int, required=True, help="Level of the law, 1 to 5.")
@click.option("--split", type=click.Choice(list(SIZES)), default="eval", show_default=True)
@click.option("--size", type=click.IntRange(min=1), required=True, help="Tasks to build.")
@click.option("--seed", type=int, required=True, help="Seed; the frozen splits have 1.")
@_OUTPUT
def build(domain: str, level: int, split: str, size: int, seed: int, output: Path) -> int:
    """Build a fresh split of a level's law, with ids of its own.

    Tasks of frozen splits of lower levels are left out, and those of the splits with the same seed that
    stand before it: eval, then dev, then train.
    """
    try:
        tasks = fresh_split(domain, level, split, size, seed)
        exist = get_domain(domain).law_size(level)
    except SplitError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from None
    _write(output, tasks.tasks, published=False)
    many = "how many exist is not known" if exist is None else f"{exist} exist"
    click.echo(f"{output}: {len(tasks)} tasks of {tasks.name}; {many}; sha256 {tasks.sha256}")
    return 0


@click.command("export")
@click.argument("name")
@click.option("--published-layout", is_flag=True, help="Write the columns of the published data set.")
@_OUTPUT
def export(name: str, published_layout: bool, output: Path) -> int:
    """Write the frozen split NAME, e.g. countdown/level1/eval, as JSON Lines."""
    tasks = split_named(name)
    _write(output, tasks, published_layout)
    click.echo(f"{output}: {len(tasks)} tasks of {name}")
    return 0


def _write(output: Path, tasks: tuple[Task, ...], published: bool) -> None:
    if output.exists():
        raise UsageError(f"{output} exists already; name another file")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {output.parent} to write in")
    write_tasks(output, tasks, published_row if published else Task.to_record)


@click.command("overlap")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
def overlap(first: str, second: str) -> int:
    """Count the tasks of A that B has too; each is a split, e.g. countdown/level1/eval, or a file."""
    found = overlaps.overlap(_split_or_file(first), _split_or_file(second))
    for row in found:
        click.echo(
            f"{row.domain}: {row.labelled} of {row.first} tasks ({row.labelled / row.first:.1%}) are among "
            f"the {row.second} of {second}; {row.relabelled} ({row.relabelled / row.first:.1%}) up to "
            f"relabelling ({overlaps.RELABELLINGS.get(row.domain, 'none')})"
        )
    return 0


def _split_or_file(name: str) -> tuple[Task, ...]:
    return tasks_in(Path(name)) if Path(name).is_file() else split_named(name)


@click.command("calibrate")
@click.argument("sources", nargs=-1, required=True, type=shared.PATH)
@shared.reading_option
def calibrate(sources: tuple[Path, ...], reading: Reading) -> int:
    """Hold runs (SOURCES: run folders or graded files) against the published gates.

    Levels 3 to 5 pass where pass@1 and pass@8 are within .04 and .08 of what Qwen2.5-0.5B-Instruct has at
    level 1; level 2 where pass@8 is in .10 to .90 and below the same model's at level 1.
    """
    gates = calibration.calibrate(load_samples(sources, reading))
    if not gates:
        raise UsageError("the runs have no graded responses in a domain with published gates")
    click.echo(
        f"{'model':28} {'domain':15} level prompts pass@1 wanted pass@8 wanted gates\n"
        + "\n".join(
            f"{gate.model:28} {gate.domain:15} {gate.level:5} {gate.prompts:7} {gate.pass1:6.3f} "
            f"{gate.wanted1:6.3f} {gate.pass8:6.3f} {gate.wanted8:6.3f} {_PASSED[gate.passed]}"
            for gate in gates
        )
    )
    return 0


_PASSED = {True: "pass", False: "fail", None: "unknown: needs 8 responses a prompt, level 2 also level 1"}
