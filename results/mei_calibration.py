"""What the forms of MEI read for policies whose modes are known, to results/NAME.

    python results/mei_calibration.py results/mei-calibration --model tiny --domain graph,python

Two kinds of policy, each read at several group sizes from the same 64 rollouts a prompt, cut into groups:

- synthetic ones of one token, whose probabilities are written down, so number of modes (1 / sum p²) and
  entropy are exact; a rollout is paid by a fair coin, so rewards tell nothing of modes;
- models, on the frozen eval tasks of a domain: number of modes as 1 / (1 - PCMD) over the prompts, entropy as
  the mean over tokens.

calibration.csv  a row a policy and group size: the forms of MEI, sd of a group's ratio, and how many groups
                 it takes for three standard errors of 0.013, by which the published threshold is above 1
calibration.md   the same as a table
figure.png       MEI against the effective number of modes
manifest.json    arguments and versions
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
from matplotlib import pyplot

import modebench as mb
from modebench.analysis.diversity import pcmd
from modebench.analysis.grid import DASH, Grid, render_grid
from modebench.analysis.plots.series import COLORS, MARKERS
from modebench.cli.errors import exit_code
from modebench.evaluation import sample_seed
from modebench.provenance import versions
from modebench.runs import write_atomically
from modebench.training.batch import Floats
from modebench.training.mei import mean_of_ratios, mei_forms, pull

SIZES = (4, 8, 16, 64)
ROLLOUTS = max(SIZES)
FORMS = ("mean", "ratio_of_sums", "advantage", "correct")
MARGIN = 0.013
SYNTHETIC_PROMPTS = 400


class Readings(NamedTuple):
    """A policy's prompts.

    Attributes:
        name: of the policy.
        modes: effective number of modes; None where undefined.
        entropy: nats a token.
        grams: [ROLLOUTS, ROLLOUTS] of every prompt, inner products of residuals.
        rewards: [ROLLOUTS] of every prompt.
    """

    name: str
    modes: float | None
    entropy: float
    grams: list[Floats]
    rewards: list[Floats]


def synthetic(name: str, p_M: Sequence[float], prompts: int, seed: int) -> Readings:
    """The policy that answers with one of M tokens, with these probabilities."""
    random = np.random.default_rng(seed)
    residual_MM = np.eye(len(p_M)) - np.array(p_M)
    gram_MM = residual_MM @ residual_MM.T
    draws = random.choice(len(p_M), size=(prompts, ROLLOUTS), p=p_M)
    rewards = random.integers(0, 2, size=draws.shape).astype(np.float64)
    entropy = -sum(p * math.log(p) for p in p_M)
    grams = [gram_MM[np.ix_(each, each)] for each in draws]
    return Readings(name, 1 / float(np.square(p_M).sum()), entropy, grams, list(rewards))


def policies(seed: int) -> Iterator[Readings]:
    """Equal modes, and one mode that takes nearly everything from nine others."""
    for modes in (2, 4, 10):
        yield synthetic(f"{modes} equal", [1 / modes] * modes, SYNTHETIC_PROMPTS, seed)
    for share in (0.5, 0.9, 0.99, 0.999):
        yield synthetic(f"one of {share:g}", [share] + [(1 - share) / 9] * 9, SYNTHETIC_PROMPTS, seed)


def of_model(model: str, domain: str, prompts: int, seed: int) -> Readings:
    """A saved policy on the frozen eval tasks of a domain, sampled at temperature 1 with nothing cut off."""
    from modebench.sampling.base import GenerationSettings
    from modebench.tiny import model_defaults
    from modebench.training import policy
    from modebench.training.diagnose import residual_gram
    from modebench.training.sampling import rollouts
    from modebench.training.setup import model_name

    name = model_name(model)
    told = model_defaults(Path(name).expanduser())
    loaded = policy.load(name, device="cpu", profile=told.get("profile", "direct"))
    settings = GenerationSettings(temperature=1.0, max_tokens=told.get("max_tokens", 192))
    grams, rewards, entropies, diversity = [], [], [], []
    for task in mb.load_tasks(domain, 1, "eval").head(prompts):
        seeds = [sample_seed(seed, 0, task.id, index) for index in range(ROLLOUTS)]
        [group] = rollouts(loaded, [task], [seeds], settings)
        gram_GG, entropy = residual_gram(loaded, group, settings.temperature)
        grams.append(gram_GG)
        rewards.append(group.reward_G)
        entropies.append(entropy)
        counts = Counter(rollout.mode for rollout in group.rollouts if rollout.mode is not None)
        diversity.append(float(pcmd(list(counts.values()) or [0])))
    mean = float(np.nanmean(diversity)) if not np.isnan(diversity).all() else 1.0
    return Readings(
        f"{model}, {domain}", 1 / (1 - mean) if mean < 1 else None, float(np.mean(entropies)), grams, rewards
    )


def rows_of(read: Readings) -> Iterator[dict[str, Any]]:
    """A row a group size."""
    for size in SIZES:
        cuts = [range(start, start + size) for start in range(0, ROLLOUTS, size)]
        grams = [gram[np.ix_(cut, cut)] for gram in read.grams for cut in cuts]
        rewards = [reward[cut] for reward in read.rewards for cut in cuts]
        forms = mei_forms(grams, [each - each.mean() for each in rewards], rewards)
        ratios = [ratio for gram in grams if (ratio := mean_of_ratios([pull(gram)])) is not None]
        sd = float(np.std(ratios, ddof=1)) if len(ratios) > 1 else None
        yield {
            "policy": read.name,
            "effective_modes": read.modes,
            "entropy": read.entropy,
            "G": size,
            "groups": len(grams),
            **{form: forms[form] for form in FORMS},
            "sd": sd,
            "groups_needed": None if sd is None else math.ceil((3 * sd / MARGIN) ** 2),
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the policies and write the results.

    Raises:
        UsageError: a model that cannot be read, or a domain that there is not.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path, help="folder of the results")
    parser.add_argument("--model", action="append", default=[], help="of modebench train, e.g. tiny")
    parser.add_argument("--domain", default="graph_coloring", help="of the models (default: %(default)s)")
    parser.add_argument("--prompts", type=int, default=64, help="of a model (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    read = list(policies(asked.seed))
    for model in asked.model:
        for domain in asked.domain.split(","):
            read.append(of_model(model, domain, asked.prompts, asked.seed))
    table = pd.DataFrame(row for each in read for row in rows_of(each))
    asked.output.mkdir(parents=True, exist_ok=True)
    write_atomically(asked.output / "calibration.csv", table.to_csv(index=False))
    write_atomically(asked.output / "calibration.md", _markdown(table) + "\n")
    _draw(table, asked.output / "figure.png")
    told = {name: value for name, value in vars(asked).items() if name != "output"}
    manifest = json.dumps({"made": versions(), "arguments": told}, indent=2)
    write_atomically(asked.output / "manifest.json", manifest + "\n")


def _markdown(table: pd.DataFrame) -> str:
    def text(value: Any) -> str:
        if isinstance(value, str) or pd.isna(value):
            return value if isinstance(value, str) else DASH
        return f"{value:.4g}" if value < 1000 else f"{value:.0f}"

    texts = [[text(value) for value in row] for row in table.itertuples(index=False)]
    notes = [
        "mean, advantage, correct: means of the groups' ratios; ratio_of_sums: 1 in expectation for every "
        "policy that is sampled as it is scored; groups_needed: so that three standard errors are "
        f"{MARGIN}; both kinds of policy are cut into groups from the same {ROLLOUTS} rollouts a prompt"
    ]
    return render_grid(Grid(list(table), texts, None, notes, [True] + [False] * 9), "markdown")


def _draw(table: pd.DataFrame, path: Path) -> None:
    """Mean of ratios and ratio of sums over the effective number of modes, a line a group size."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    table = table.assign(written=table["policy"].isin({read.name for read in policies(0)}))
    for form, ax in zip(("mean", "ratio_of_sums"), axes, strict=True):
        for number, (size, part) in enumerate(table.groupby("G")):
            ordered = part[part["written"]].sort_values("effective_modes")
            x, look = "effective_modes", {"color": COLORS[number], "marker": MARKERS[number]}
            ax.plot(ordered[x], ordered[form], label=f"G = {size}", linewidth=0.8, **look)
            models = part[~part["written"]]
            ax.plot(models[x], models[form], linestyle="", markerfacecolor="white", **look)
        ax.set(xlabel="effective modes", title=f"MEI, {form.replace('_', ' ')}", xscale="log", yscale="log")
    axes[0].legend(title="hollow: models")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(exit_code(main))
