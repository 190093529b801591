"""GRPODropout: right rollouts that the policy holds likely already are left out of the update.

Deng et al. 2026, arXiv:2610.11854. For a group of G rollouts with advantages A and surprisals s (minus the
sampler's mean log-probability of a token):

1. Push. h_i = A_i (s_i - mean(s)) / G, to first order what rollout i adds to the entropy of the policy.
   The mean is over all G, whatever is left out later; then the sum of h over the kept rows is the covariance
   over all G of (A 1[kept], s).
2. Filter. Leave out rows by increasing h until the sum over the rest is not negative: no larger set has that.
3. Restore. Rows that are not of the target sign come back: with ``positive``, all with A <= 0. The sum may be
   negative again.
4. Recentre. What is left out would let rows outside the update drift by minus the mean advantage under the
   policy (Proposition 4), so b = sum of w A, w the softmax of -s over the rows that are left, is subtracted
   from those.

Where all positive rows are left out and rewards are 0 or 1, all remaining advantages are equal, recentring
makes them 0 and the group is silent: ``grpo_dropout/silent_groups``, the mean of which goes into
summary.json.

The defaults are the publication's text. Its released code differs; as switches: ``strict`` (the sum must
be positive), ``zero_push=drop`` (rows with h = 0 are left out), ``floor=quarter`` (at least max(1, G // 4)
rows stay, those of largest h, before the restore step), ``advantages=recomputed`` (mean and deviation over
the kept rows), and, in the run that it calls main, ``target=both``. Where pushes tie the code draws; here
the first of the group come first, which is as good, as the order of a group's samples is random. A group
without any advantage stays whole under every switch; of such a group the code keeps G // 4 rows.

Controls: ``random`` leaves out as many rows of the target sign, drawn at random; ``keep_scale`` leaves
them in the average of the loss, with advantage 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group
from modebench.training.combining import BASELINE, FOREIGN_ROLLOUTS
from modebench.training.draws import draws
from modebench.training.part import Credit, Kept, Part, Stage

TOLERANCE = 1e-12
"""Sums of pushes this close to 0 are 0."""


def surprisals(group: Group) -> Floats:
    """[G] minus the sampler's mean log-probability of a token, nats."""
    return np.array([-sum(rollout.logp) / len(rollout.logp) for rollout in group.rollouts])


def pushes(advantage_G: Floats, surprisal_G: Floats) -> Floats:
    """[G] h, the first-order contribution to the entropy."""
    return np.asarray(advantage_G * (surprisal_G - surprisal_G.mean()) / len(advantage_G))


def largest_feasible(push_N: Floats, *, strict: bool = False) -> Kept:
    """[N] the largest set of rows whose pushes sum to at least 0 (to more than 0 where `strict`).

    >>> largest_feasible(np.array([-3.0, 1.0, -1.0, 2.5])).tolist()
    [False, True, True, True]
    """
    order = np.argsort(push_N, kind="stable")
    # rest[k]: sum of what stays when the k smallest go; the last entry is of the empty set.
    rest = np.append(np.cumsum(push_N[order][::-1])[::-1], 0.0)
    feasible = np.flatnonzero(rest > TOLERANCE if strict else rest >= -TOLERANCE)
    kept_N = np.zeros(len(push_N), dtype=np.bool_)
    kept_N[order[feasible[0] if feasible.size else len(order) :]] = True
    return kept_N


def recentred(advantage_N: Floats, weight_N: Floats) -> Floats:
    """[N] advantages minus their weighted mean; exactly 0 where all are equal."""
    if np.ptp(advantage_N) == 0:
        return np.zeros_like(advantage_N)
    return np.asarray(advantage_N - weight_N @ advantage_N / weight_N.sum())


@dataclass
class Draws:
    """What seeds the random control."""

    seed: int
    updates: int = 0

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"seed": self.seed, "updates": self.updates}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self.seed, self.updates = saved["seed"], saved["updates"]


@dataclass(frozen=True)
class GRPODropout(Part):
    """Leaving out rollouts by their push on the entropy.

    Attributes:
        target: the sign of the advantages that may be left out.
        recentre: weights of the mean that is subtracted: those of the policy, equal ones, or no subtraction.
        strict, zero_push, floor, advantages: see the module.
        control: the method proper (``none``) or one of its controls.
    """

    name: ClassVar[str] = "grpo_dropout"
    stage: ClassVar[Stage] = Stage.RECENTRE
    needs_whole_groups: ClassVar[bool] = True
    headline: ClassVar[Mapping[str, str]] = {
        "grpo_dropout/silent_groups": "grpo_dropout/credited_groups",
        "grpo_dropout/kept": "grpo_dropout/credited_groups",
    }
    target: Literal["positive", "negative", "both"] = "positive"
    recentre: Literal["prob", "uniform", "none"] = "prob"
    strict: bool = False
    zero_push: Literal["keep", "drop"] = "keep"
    floor: Literal["none", "quarter"] = "none"
    advantages: Literal["native", "recomputed"] = "native"
    control: Literal["none", "random", "keep_scale"] = "none"

    @property
    def requires(self) -> Mapping[str, str]:
        return {BASELINE: "it leaves rollouts out by the sign of what they are worth over the others"}

    @property
    def refuses(self) -> Mapping[str, str]:
        return {FOREIGN_ROLLOUTS: "their surprisal under the sampler is not known"}

    def state(self, seed: int) -> Draws | None:
        return Draws(seed) if self.control == "random" else None

    def observe(self, groups: Sequence[Group], state: Draws | None) -> None:
        if state is not None:
            state.updates += 1

    def select(
        self, group: Group, advantage_G: Floats, kept_G: Kept, state: Draws | None
    ) -> tuple[Floats, Kept]:
        """Advantages and rows after the four steps, among the rows that earlier parts kept.

        Raises:
            UsageError: a group of one.
        """
        if group.size < 2:
            raise UsageError("grpo_dropout compares the rollouts of a prompt: ask for 2 or more, not 1")
        if not advantage_G.any():
            return advantage_G, kept_G
        surprisal_G = surprisals(group)
        left_G = self._left(advantage_G, pushes(advantage_G, surprisal_G), kept_G)
        if state is not None:
            random = draws(state.seed, self.name, state.updates, group.key)
            left_G = self._redrawn(advantage_G, kept_G, left_G, random)
        changed_G = np.zeros_like(advantage_G)
        if left_G.any():
            changed_G[left_G] = self._centred(advantage_G[left_G], surprisal_G[left_G])
        return changed_G, kept_G if self.control == "keep_scale" else left_G

    def _left(self, advantage_G: Floats, push_G: Floats, kept_G: Kept) -> Kept:
        """[G] the rows that stay: filter, floor, restore."""
        rows = np.flatnonzero(kept_G)
        left_G = np.zeros_like(kept_G)
        left_G[rows[largest_feasible(push_G[rows], strict=self.strict)]] = True
        if self.zero_push == "drop":
            left_G &= np.abs(push_G) > TOLERANCE
        least = max(1, len(kept_G) // 4) if self.floor == "quarter" else 0
        if left_G.sum() < least:
            left_G[rows[np.argsort(-push_G[rows], kind="stable")[:least]]] = True
        return left_G | (kept_G & ~self._targeted(advantage_G))

    def _targeted(self, advantage_G: Floats) -> Kept:
        """[G] the rows that may be left out."""
        if self.target == "both":
            return np.ones(len(advantage_G), dtype=np.bool_)
        return np.asarray(advantage_G > 0 if self.target == "positive" else advantage_G < 0)

    def _redrawn(self, advantage_G: Floats, kept_G: Kept, left_G: Kept, random: np.random.Generator) -> Kept:
        """[G] as many rows as in `left_G`, the left-out ones drawn among all that might have been."""
        candidates = np.flatnonzero(kept_G & self._targeted(advantage_G))
        out = random.choice(candidates, int(kept_G.sum() - left_G.sum()), replace=False)
        drawn_G = kept_G.copy()
        drawn_G[out] = False
        return drawn_G

    def _centred(self, advantage_N: Floats, surprisal_N: Floats) -> Floats:
        """[N] advantages of the rows that are left."""
        if self.advantages == "recomputed":
            # An affine function of the rewards has their standardised values.
            centred_N = recentred(advantage_N, np.ones_like(advantage_N))
            advantage_N = centred_N / advantage_N.std(ddof=1) if centred_N.any() else centred_N
        if self.recentre == "none":
            return advantage_N
        likelihood_N = np.exp(surprisal_N.min() - surprisal_N)
        return recentred(advantage_N, likelihood_N if self.recentre == "prob" else np.ones_like(advantage_N))

    def credit_metrics(self, credits: Sequence[Credit], state: Draws | None) -> dict[str, float | None]:
        """Of the groups that had a non-zero advantage: their number; shares of them that are silent (none
        left), that lost every positive rollout, and whose pushes sum to less than 0 in the end; and the share
        of their rollouts that has an own part in the update."""
        live = [each for each in credits if np.any(each.given_G)]
        found = {"silent_groups": 0.0, "no_positives": 0.0, "negative_sum": 0.0, "kept": 0.0}
        for each in live:
            push_G = pushes(each.given_G, surprisals(each.group))
            left_G = each.kept_G
            if self.control == "keep_scale":  # then all rows that came here are kept
                left_G = self._left(each.given_G, push_G, left_G)
            found["silent_groups"] += not np.any(each.advantage_G[left_G])
            found["no_positives"] += bool(np.any(each.given_G > 0)) and not np.any(each.given_G[left_G] > 0)
            found["negative_sum"] += bool(push_G[left_G].sum() < -TOLERANCE)
            found["kept"] += float(left_G.mean())
        shares = {name: value / len(live) if live else None for name, value in found.items()}
        return {
            "grpo_dropout/credited_groups": float(len(live)),
            **{f"grpo_dropout/{name}": share for name, share in shares.items()},
        }
