"""Strategy balance: right strategies of a task that outgrow the others are held back (Mesh Learning,
arXiv:2610.02835; the equations are cited from its descriptions, as its full text was not at hand).

With m strategies of a task, C_i the right rollouts of strategy i, and q the policy as the run began:

    z_i = mean over C_i of log p(rollout),  r_i = z_i - z_i under q,  s = softmax(r)
    J = mu KL(1/m ‖ s) = -mu/m sum_i log(m s_i),  dJ/dr_i = mu (s_i - 1/m)

J is the same for r + c, is 0 only where all r are equal, and so has neither value nor gradient before the
first update. Its gradient reaches right rollouts only, as a weight mu (s_i - 1/m) / |C_i| on the sum of their
log-probabilities: a likelihood row each, with weights from a pass without gradient.

With ``js`` it is the Jensen-Shannon divergence of 1/m and s. A strategy is a prefix (the publication), a
rollout (the later release), an executable mode, or a cluster: rollouts that repel or attract all others alike
(`modebench.training.coupling`), by the cosines of their residuals. A prefix or a rollout without a right
answer is left out, m counting what is there, and with fewer than two J is 0; with ``floor`` it stays with
r = -1e9, as in an early release, which makes J useless and pushes all others equally.

What the strength means. A rollout of length len in a GRPO group has the weight |A| / (N len) on each token, a
strategy of J at most mu (1 - 1/m) on the sums of its log-probabilities, so beside advantages of 1 the term is

    kappa = mu (m - 1) len

times as strong as the policy gradient of a strategy; the published mu = 1e-5 is .03 at a thousand tokens and
nothing at ten. `kappa` is therefore what is set, and mu follows from it by the weights of the update's own
average; `mu` sets it as published. The norm of its gradient over that of the policy's is logged as
``grad_norm/ratio``, together with other further terms where a method has some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group, Row
from modebench.training.combining import PREFIXES
from modebench.training.coupling import clusters
from modebench.training.part import Part, Seen, TokenWeight

FLOOR = -1e9
TERM = "strategy_balance"


class Member(NamedTuple):
    """One rollout of a task in an update.

    Attributes:
        row: its row.
        right: it was paid.
        prefix, mode: as in its group and verdict.
        seen: what the policy says of it.
    """

    row: Row
    right: bool
    prefix: str | None
    mode: str | None
    seen: Seen


class Balance(NamedTuple):
    """The term of one task, without its strength.

    Attributes:
        value: the divergence, nats.
        slope_M: [M] its derivative by r, a strategy each.
        share_M: [M] softmax(r).
    """

    value: float
    slope_M: Floats
    share_M: Floats


def balance(r_M: Floats, divergence: Literal["kl_uniform", "js"] = "kl_uniform") -> Balance:
    """The divergence between equal shares and softmax(r) of [M] strategies.

    >>> float(balance(np.array([3.0, 3.0])).value)
    0.0
    """
    m = len(r_M)
    shifted_M = r_M - r_M.max()
    log_share_M = shifted_M - np.log(np.exp(shifted_M).sum())
    share_M = np.exp(log_share_M)
    if divergence == "kl_uniform":
        return Balance(max(0.0, float(-(log_share_M + np.log(m)).mean())), share_M - 1 / m, share_M)
    middle_M = np.log((share_M + 1 / m) / 2)
    over_M = np.where(share_M > 0, log_share_M - middle_M, 0.0) / 2
    under = (-np.log(m) - middle_M).mean() / 2
    return Balance(
        float((share_M * over_M).sum() + under), share_M * (over_M - (share_M * over_M).sum()), share_M
    )


@dataclass
class Told:
    """What the last update's term was, for the log; nothing of it goes into a checkpoint."""

    values: list[float] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)
    strategies: list[int] = field(default_factory=list)
    tasks: int = 0
    mu: float | None = None

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {}

    def load_state_dict(self, saved: Any) -> None:
        """Nothing is kept."""


@dataclass(frozen=True)
class StrategyBalance(Part):
    """The regulariser.

    Attributes:
        kappa: strength beside the policy gradient; see the module.
        mu: strength as published, in place of `kappa`.
        group_by: what a strategy is.
        z: a rollout counts with the sum of its log-probabilities, or with their mean.
        reference: False leaves z under the reference out of r.
        missing: what becomes of strategies without a right rollout.
        divergence: of the shares from equal ones.
        reduce: over the tasks of an update.
    """

    name: ClassVar[str] = TERM
    needs_statistics: ClassVar[bool] = True
    needs_whole_groups: ClassVar[bool] = True
    kappa: float | None = 0.1
    mu: float | None = None
    group_by: Literal["prefix", "row", "mode", "cluster"] = "prefix"
    z: Literal["seq_sum", "token_mean"] = "seq_sum"
    reference: bool = True
    missing: Literal["exclude", "floor"] = "exclude"
    divergence: Literal["kl_uniform", "js"] = "kl_uniform"
    reduce: Literal["mean", "sum"] = "mean"

    def __post_init__(self) -> None:
        if (self.kappa is None) == (self.mu is None):
            raise UsageError("strategy_balance needs one of kappa and mu: set the other one to none")
        for option in ("kappa", "mu"):
            value = getattr(self, option)
            if value is not None and value < 0:
                raise UsageError(f"strategy_balance.{option} must not be negative, not {value}")
        if self.missing == "floor" and self.group_by in ("mode", "cluster"):
            raise UsageError(
                f"strategy_balance.missing=floor: no {self.group_by} is known before it is found"
            )

    @property
    def needs_reference(self) -> bool:
        return self.reference

    @property
    def compares_with_reference(self) -> bool:
        return self.reference

    @property
    def needs_residuals(self) -> bool:
        return self.group_by == "cluster"

    @property
    def requires(self) -> dict[str, str]:
        if self.group_by != "prefix":
            return {}
        return {PREFIXES: "its strategies are prefixes; strategy_balance.group_by=mode needs none"}

    def state(self, seed: int) -> Told:
        return Told()

    def further_rows(
        self,
        groups: Sequence[Group],
        rows: Sequence[Row],
        seen: Sequence[Seen],
        fresh: TokenWeight,
        state: Told,
    ) -> list[Row]:
        """A likelihood row for every right rollout of a task with two strategies or more."""
        families = _families(groups, rows, seen)
        split = [self._strategies(members) for members in families]
        mu = self._mu(families, list(map(len, split)), fresh)
        state.values, state.largest, state.strategies = [], [], []
        state.tasks, state.mu = len(families), mu
        found = []
        for strategies in split:
            if len(strategies) < 2 or not any(strategies.values()):
                continue
            told = balance(np.array([self._growth(each) for each in strategies.values()]), self.divergence)
            state.values.append(told.value)
            state.largest.append(float(told.share_M.max()))
            state.strategies.append(len(strategies))
            scale = mu / (len(families) if self.reduce == "mean" else 1)
            for slope, own in zip(told.slope_M, strategies.values(), strict=True):
                found += [self._row(member, -scale * slope / len(own)) for member in own]
        return found

    def _row(self, member: Member, weight: float) -> Row:
        """The likelihood row whose gradient is -weight times that of what the rollout counts with."""
        row = member.row
        length = len(row.token_ids)
        weight_T = np.full(length, weight / (length if self.z == "token_mean" else 1))
        return Row(row.prompt_ids, row.token_ids, "likelihood", weight_T, term=TERM)

    def _growth(self, members: Sequence[Member]) -> float:
        """r of a strategy, nats."""
        if not members:
            return FLOOR
        average = np.mean if self.z == "token_mean" else np.sum
        return float(np.mean([average(self._gain(member.seen)) for member in members]))

    def _gain(self, seen: Seen) -> Floats:
        if not self.reference:
            return seen.logp_T
        assert seen.reference_T is not None  # asked for by `compares_with_reference`
        return seen.logp_T - seen.reference_T

    def _strategies(self, members: Sequence[Member]) -> dict[Any, list[Member]]:
        """The right rollouts of each strategy; without any only where missing ones count."""
        known = [member for member in members if member.right or self.missing == "floor"]
        found: dict[Any, list[Member]] = {}
        for key, member in zip(self._keys(known), known, strict=True):
            found.setdefault(key, [])
            if member.right:
                found[key].append(member)
        return found

    def _keys(self, members: Sequence[Member]) -> Sequence[Any]:
        """The strategy of each of these rollouts."""
        if self.group_by == "prefix":
            return [member.prefix for member in members]
        if self.group_by == "row":
            return range(len(members))
        if self.group_by == "mode":
            return [member.mode for member in members]
        residuals = [member.seen.residual_V for member in members if member.seen.residual_V is not None]
        if not residuals:
            return []
        residual_RV = np.stack(residuals)
        return clusters(residual_RV @ residual_RV.T)

    def _mu(
        self, families: Sequence[Sequence[Member]], strategies: Sequence[int], fresh: TokenWeight
    ) -> float:
        """The strength in this update, of families with so many strategies each."""
        if self.mu is not None:
            return self.mu
        assert self.kappa is not None
        wide = [(len(members), m) for members, m in zip(families, strategies, strict=True) if m > 1]
        if not wide:
            return 0.0
        lengths = [len(member.row.token_ids) for members in families for member in members]
        weights = [fresh(n) * (n if self.z == "token_mean" else 1) for n in lengths]
        # Of a family: what the fresh loss gives a strategy, over what J gives it at most with mu = 1.
        ratios = [size / m * float(np.mean(weights)) / (1 - 1 / m) for size, m in wide]
        return self.kappa * float(np.mean(ratios)) * (len(families) if self.reduce == "mean" else 1)

    def metrics(
        self, groups: Sequence[Group], extra: Sequence[Row], fresh: TokenWeight, state: Told
    ) -> dict[str, float | None]:
        """Of the last update: mean divergence, mean largest share, strategies a task, the share of the tasks
        that have two or more, and mu."""
        return {
            "strategy_balance/divergence": _mean(state.values),
            "strategy_balance/largest_share": _mean(state.largest),
            "strategy_balance/strategies": _mean(state.strategies),
            "strategy_balance/tasks": len(state.values) / state.tasks if state.tasks else None,
            "strategy_balance/mu": state.mu,
        }


def _families(groups: Sequence[Group], rows: Sequence[Row], seen: Sequence[Seen]) -> list[list[Member]]:
    """The policy's own rollouts by task; without prefixes a group is a family of its own."""
    found: dict[object, list[Member]] = {}
    place: Counter[int] = Counter()
    for row, told in zip(rows, seen, strict=True):
        group = groups[row.group]
        number = place[row.group]
        place[row.group] += 1
        if row.term != "fresh" or group.purpose == "write":
            continue
        rollout = group.rollouts[number]
        member = Member(row, rollout.reward > 0, group.prefix, rollout.mode, told)
        found.setdefault(row.group if group.prefix is None else group.task.id, []).append(member)
    return list(found.values())


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
