"""``modebench attribution``: what the change, gradients, tasks and costs of training runs come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pandas as pd

from modebench.analysis import frames
from modebench.analysis.frames import Shown, beside
from modebench.analysis.gradient_bearing import gradient_bearing
from modebench.analysis.learn_retain import learn_retain
from modebench.analysis.overhead import overhead
from modebench.analysis.proposal_rates import BAND, proposal_rates
from modebench.analysis.teachability import TARGETS, asked_again, teachability
from modebench.cli import options as shared
from modebench.errors import UsageError
from modebench.proposals import check_asked, choose_asked, proposed_tasks, read_proposals
from modebench.samples import Run, load_run
from modebench.tasks import write_tasks
from modebench.training_runs import PROPOSALS, load_training

_SOURCES = click.argument("sources", nargs=-1, required=True, type=shared.PATH)
_RUN = click.argument("run", type=shared.PATH)
_FORMAT = click.option(
    "--format", "layout", type=click.Choice((*frames.FORMATS, "table")), default="text", show_default=True
)
_LOW_HIGH = ("low", "high")


@click.group("attribution")
def command() -> None:
    """What the change, gradients, tasks and costs of training runs come from.

    SOURCES are training folders, or folders of them such as that of a sweep; runs that have not finished are
    left out. docs/attribution.md says how every number is estimated.
    """


def _by(default: str) -> Callable[[shared.Command], shared.Command]:
    return click.option(
        "--by", metavar="NAME[,NAME]", callback=shared.names, default=default, show_default=True,
        help="What makes a cell.",
    )  # fmt: skip


def _bins(default: int | None, what: str) -> Callable[[shared.Command], shared.Command]:
    return click.option("--bins", type=click.IntRange(1), default=default, show_default=True, help=what)


def _pair(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, float] | None:
    """Callback: LOW:HIGH."""
    if value is None:
        return None
    if not re.fullmatch(r"[0-9.]+:[0-9.]+", value, re.ASCII):
        raise click.BadParameter(f"{value!r} is not LOW:HIGH", ctx, param)
    try:
        low, high = map(float, value.split(":"))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not LOW:HIGH", ctx, param) from None
    return low, high


def _show(
    table: pd.DataFrame, keys: Sequence[str], shown: Sequence[Shown], notes: Sequence[str], layout: str
) -> None:
    click.echo(frames.render_frame(table, keys, shown, notes, "text" if layout == "table" else layout))


@command.command("learn-retain")
@_SOURCES
@_by("domain,arm")
@click.option(
    "--attempts", "-n", type=int,
    help="Attempts at step 0 that choose the side  [default: 8, or half of the samples]",
)  # fmt: skip
@_FORMAT
def learn_retain_command(
    sources: tuple[Path, ...], by: tuple[str, ...], attempts: int | None, layout: str
) -> int:
    """Change since step 0 of what the first policy could not solve (learn), and of what it could (retain).

    The same of modes: those that are gained, and those that are kept.
    """
    runs = load_training(sources)
    try:
        table = learn_retain(runs.first(), runs.last(), by, attempts=attempts)
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from None
    left_out = table.drop_duplicates(by)["left_out"].sum()
    shown = [Shown("weight", "weight"), Shown("before", "before"), Shown("after", "after")]
    shown.append(Shown("change", "change", _LOW_HIGH, "+.3f"))
    if table["seed_low"].notna().any():
        shown.append(Shown("change", "over seeds", ("seed_low", "seed_high"), "+.3f"))
    shown.append(Shown("contribution", "contribution", ("contribution_low", "contribution_high"), "+.3f"))
    notes = [
        f"learn: not solved (of modes: not found) in {table['attempts'].iloc[0]} attempts at step 0; retain: "
        "the rest; before: other samples of step 0, so that an unchanged policy has no change",
        "weight: share of the prompts, or modes present in a prompt; contributions add up to the change of "
        "accuracy and of modes@n",
        "95% intervals: t over prompts, all seeds of a prompt together; over seeds from three on",
        *([f"left out: {left_out} prompts with too few samples"] if left_out else []),
        *(f"warning: {text}" for text in runs.warnings),
    ]
    _show(table, [*by, "metric", "side"], shown, notes, layout)
    return 0


@command.command("gradient")
@_SOURCES
@_by("domain,arm")
@_bins(5, "Bins of steps.")
@_FORMAT
def gradient_command(sources: tuple[Path, ...], by: tuple[str, ...], bins: int, layout: str) -> int:
    """Share of the generated groups that bear a gradient, over training and by where their tasks are from."""
    runs = load_training(sources)
    table = gradient_bearing(runs.steps(), by, bins=bins)
    shown = [
        Shown("from_step", "from", form="d"),
        Shown("to_step", "to", form="d"),
        Shown("runs", "runs", form="d"),
        Shown("with_gradient", "with gradient", ("with_gradient_low", "with_gradient_high")),
        Shown("change", "since first bin", ("change_low", "change_high"), "+.3f"),
        Shown("mixed_groups", "mixed groups", ("mixed_groups_low", "mixed_groups_high")),
        Shown("accuracy", "accuracy"),
    ]
    notes = [
        "with gradient: share of the generated groups with a row whose loss has a gradient; mixed groups: "
        "some rollouts are paid more than others",
        "95% intervals: t over runs, from three on",
        *(f"warning: {text}" for text in runs.warnings),
    ]
    _show(table, [*by, "source"], shown, notes, layout)
    return 0


@command.command("tasks")
@_SOURCES
@_by("arm,part,form")
@_bins(None, "Also by bins of steps: the audit of validity over training  [default: none]")
@click.option(
    "--band", metavar="LOW:HIGH", callback=_pair, default="{}:{}".format(*BAND), show_default=True,
    help="Group accuracies that count as in band, both included.",
)  # fmt: skip
@_FORMAT
def tasks_command(
    sources: tuple[Path, ...], by: tuple[str, ...], bins: int | None, band: tuple[float, float], layout: str
) -> int:
    """What became of the tasks that a method proposed: valid, in band, mixed, and why the others failed."""
    runs = load_training(sources)
    rates = proposal_rates(runs.proposals(), by, band=band, bins=bins)
    if layout in ("csv", "json"):
        _show(rates, [], [], [], layout)
        return 0
    keys = [*by, *(["bin", "from_step", "to_step"] if bins else [])]
    kinds = [name for name in rates["metric"].unique() if name.startswith("failure/")]
    shown = [Shown("n.valid", "proposed", form=".0f")]
    for name in ("valid", "in_band", "mixed", "effective", "invalid_in_band"):
        shown.append(Shown(f"value.{name}", name.replace("_", " "), (f"low.{name}", f"high.{name}")))
    shown += [Shown(f"value.{kind}", kind.removeprefix("failure/")) for kind in kinds]
    notes = [
        f"shares of the proposed tasks; in band: valid, {band[0]:g} to {band[1]:g} of the rollouts right; "
        "mixed: valid, some are right and some wrong; effective: both; behind them the kinds of failure",
        "95% intervals: over steps (Wilson on the effective sample size), from three runs on over runs (t)",
        *(f"warning: {text}" for text in runs.warnings),
    ]
    _show(beside(rates, keys, "metric"), keys, shown, notes, layout)
    return 0


@command.command("overhead")
@_SOURCES
@click.option("--base", metavar="ARM", help="Also the ratio to this arm, paired by domain and seed.")
@_FORMAT
def overhead_command(sources: tuple[Path, ...], base: str | None, layout: str) -> int:
    """Seconds, rollouts and tokens a step, and the state that a method keeps, beside those of a base arm."""
    runs = load_training(sources)
    costs = overhead(runs.costs(), base)
    if layout in ("csv", "json"):
        _show(costs, [], [], [], layout)
        return 0
    titles = {"learner_seconds": "learner s", "wall_seconds": "wall s", "rollouts": "rollouts"}
    titles |= {"tokens": "tokens", "scored": "scored"}
    shown = []
    for cost, title in titles.items():
        shown.append(Shown(f"value.{cost}", title, form=".2f" if cost.endswith("seconds") else ".1f"))
        if base is not None:
            limits = (f"ratio_low.{cost}", f"ratio_high.{cost}")
            shown.append(Shown(f"ratio.{cost}", f"× {base}", limits, ".2f"))
    shown += [
        Shown(f"value.{size}", size.replace("_", " "), form=".0f")
        for size in ("state_bytes", "checkpoint_bytes")
    ]
    notes = [
        "a step: seconds of updates, of all timed stages (evaluations and checkpoints apart), rollouts and "
        "tokens generated, responses scored without a gradient; bytes of the last checkpoint",
        "95% intervals of ratios: t over logarithms of paired runs, from three on; seconds are those of a "
        "machine that may be shared",
        *(f"warning: {text}" for text in runs.warnings),
    ]
    _show(beside(costs, ["domain", "arm"], "cost"), ["domain", "arm"], shown, notes, layout)
    return 0


@command.command("export")
@_RUN
@click.option(
    "--steps", metavar="FIRST:LAST", callback=_pair,
    help="Only tasks proposed in these steps; those of step s + 1 met the policy of checkpoint s.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(1), help="So many of them, drawn at random.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw.")
@click.option("--output", "-o", type=shared.PATH, required=True, help="File to write.")
def export_command(
    run: Path, steps: tuple[float, float] | None, limit: int | None, seed: int, output: Path
) -> int:
    """Write the valid tasks that a RUN proposed and asked as a file for modebench eval --tasks."""
    path = _proposals(run)
    between = None if steps is None else (int(steps[0]), int(steps[1]))
    chosen = choose_asked(read_proposals(path), between, limit, seed)
    if output.exists():
        raise UsageError(f"{output} exists already; name another file")
    write_tasks(output, proposed_tasks(path, chosen))
    size = int(chosen["size"].max())
    click.echo(f"{output}: {len(chosen)} tasks; next: modebench eval --tasks {output} --samples {size + 64}")
    return 0


@command.command("teachability")
@_RUN
@click.argument("evaluation", type=shared.PATH)
@click.option(
    "--slope", type=float, default=1.0, show_default=True, help="Fall of T beyond an accuracy of 1/2."
)
@click.option("--draws", type=click.IntRange(1), default=2000, show_default=True, help="Of the bootstrap.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@_FORMAT
def teachability_command(
    run: Path, evaluation: Path, slope: float, draws: int, seed: int, layout: str
) -> int:
    """Whether scores of the tasks that a RUN proposed tell what further rollouts of them do.

    EVALUATION is a run folder of modebench eval on the tasks that modebench attribution export wrote.
    """
    proposals = choose_asked(read_proposals(_proposals(run)))
    again = load_run(evaluation)
    if not isinstance(again, Run):
        raise UsageError(f"{evaluation} is a file; give the run folder of modebench eval")
    check_asked(again.folder.manifest, proposals)
    asked = asked_again(proposals, again.samples(texts=False), slope)
    table = teachability(asked, draws=draws, seed=seed)
    if layout in ("csv", "json"):
        _show(table, [], [], [], layout)
        return 0
    shown = [Shown("n.fresh", "tasks", form="d")]
    for value, title in (("r", "r"), ("top", "top quarter")):
        for target in TARGETS:
            limits = (f"{value}_low.{target}", f"{value}_high.{target}")
            shown.append(Shown(f"{value}.{target}", f"{title}, {target}", limits))
    mixed = table[table["target"] == "fresh"].iloc[0]["mixed"]
    rollouts = sorted(asked["rollouts"].unique())
    notes = [
        "same: the rollouts that were logged are mixed, by which teachability is defined; fresh: as many "
        f"further ones are; estimate: the chance of that from {rollouts[0]} to {rollouts[-1]} others",
        f"top quarter: share of mixed tasks in the highest quarter by a score; of all {len(asked)} tasks "
        f"{mixed:.3f} (fresh); 95% intervals: bootstrap over tasks",
    ]
    _show(beside(table, ["score"], "target"), ["score"], shown, notes, layout)
    return 0


def _proposals(run: Path) -> Path:
    path = run / PROPOSALS
    if not path.is_file():
        raise UsageError(f"{run} proposed no tasks: it has no {PROPOSALS}")
    return path
