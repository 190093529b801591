"""The table of methods, and how one is built with its options. `modebench methods` prints it.

A third-party method is an entry point of the group ``modebench.methods`` that names a `Method`; one that
names a subclass of `Part` can be added to any method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

from modebench.errors import UsageError
from modebench.training.advantages import Advantage
from modebench.training.coaching import Coaching
from modebench.training.combining import refusal
from modebench.training.dapo import DynamicSampling, Overlong
from modebench.training.divergence import Divergence, Entropy
from modebench.training.dropout import GRPODropout
from modebench.training.gapo import Gapo
from modebench.training.group_class import GroupClass
from modebench.training.mei import Mei
from modebench.training.method import Method
from modebench.training.part import Part, suggestion, with_options
from modebench.training.replay import Replay
from modebench.training.rlep import Rlep
from modebench.training.selection import MaskTruncated
from modebench.training.semantic_maxent import SemanticMaxEnt
from modebench.training.setpo import SetPO
from modebench.training.strategy_balance import StrategyBalance
from modebench.training.surrogates import Surrogate
from modebench.training.svs import Svs
from modebench.training.synco import SynCo
from modebench.training.token_selection import ClipCov, KLCov, TopEntropy
from modebench.training.ucpo import Ucpo

ENTRY_POINTS = "modebench.methods"
PARTS: dict[str, type[Part]] = {
    part.name: part
    for part in (
        Replay, Rlep, GRPODropout, Gapo, SetPO, Ucpo, SemanticMaxEnt, MaskTruncated, GroupClass,
        DynamicSampling, Overlong, ClipCov, KLCov, TopEntropy, Divergence, Entropy, Coaching,
        StrategyBalance, Mei, Svs, SynCo,
    )
}  # fmt: skip

_MEAN_CENTERED = "A_i = r_i - mean(r)"
_STANDARDISED = "A_i = (r_i - mean(r)) / (std(r) + eps); token mean"
_CLIP_HIGHER = Surrogate("token-mean", epsilon=0.2, epsilon_high=0.28)
_MAXRL = "A_i = G r_i / K - 1 if K = sum(r) > 0, else 0"
_REPLAY = "+ λ (G-1)/G² · mean over banks of mean over stored modes of -log p(exemplar) / length"

METHODS: dict[str, Method] = {
    method.id: method
    for method in (
        Method(
            "reinforce",
            "REINFORCE",
            "A_i = r_i, no baseline",
            "Williams 1992, Machine Learning 8:229-256",
            (Advantage(kind="none"),),
        ),
        Method(
            "grpo",
            "GRPO",
            "A_i = (r_i - mean(r)) / (std(r) + eps); mean over rollouts of token means",
            "Shao et al. 2024, arXiv:2402.03300",
            (Advantage(kind="group_std"),),
            Surrogate(loss_agg_mode="seq-mean-token-mean"),
        ),
        Method(
            "dr_grpo",
            "Dr. GRPO",
            f"{_MEAN_CENTERED}; token sums over a constant length",
            "Liu et al. 2025, arXiv:2503.20783",
            (Advantage(kind="mean_centered"),),
        ),
        Method(
            "clip_higher",
            "Clip-Higher",
            f"{_STANDARDISED}; ratios up to 1 + epsilon_high",
            "Yu et al. 2025, arXiv:2503.14476",
            (Advantage(kind="group_std"),),
            _CLIP_HIGHER,
        ),
        Method(
            "dapo",
            "DAPO",
            "Clip-Higher on mixed groups only, generated until there are enough; long responses paid less",
            "Yu et al. 2025, arXiv:2503.14476",
            (Overlong(), Advantage(kind="group_std"), DynamicSampling()),
            _CLIP_HIGHER,
        ),
        Method(
            "gspo",
            "GSPO",
            "GRPO with the ratio of the whole response, exp(mean of logp - logp_old)",
            "Zheng et al. 2025, arXiv:2507.18071",
            (Advantage(kind="group_std"),),
            Surrogate("seq-mean-token-mean", 3e-4, 4e-4, importance_sampling_level="sequence"),
        ),
        Method(
            "clip_cov",
            "Clip-Cov",
            f"{_STANDARDISED}; without some of the tokens of large covariance",
            "Cui et al. 2025, arXiv:2505.22617; released code",
            (Advantage(kind="group_std"), ClipCov()),
            Surrogate("token-mean", 1.0, 1.0),
        ),
        Method(
            "kl_cov",
            "KL-Cov",
            f"{_STANDARDISED}, unclipped; + |logp - logp_old| on the tokens of the largest covariance",
            "Cui et al. 2025, arXiv:2505.22617; released code",
            (Advantage(kind="group_std"), KLCov()),
            Surrogate("token-mean", clip=False),
        ),
        Method(
            "top_entropy",
            "Top-entropy tokens (80/20)",
            "Clip-Higher on the tokens of the highest entropy, averaged over them",
            "Wang et al. 2025, arXiv:2506.01939; released code",
            (Advantage(kind="group_std"), TopEntropy()),
            _CLIP_HIGHER,
        ),
        Method(
            "grpo_kl",
            "GRPO with KL",
            "GRPO + beta · mean of exp(d) - 1 - d, d = log q - log p, q the policy as the run began",
            "Shao et al. 2024, arXiv:2402.03300, equation 4",
            (Advantage(kind="group_std"), Divergence(kind="k3")),
            Surrogate("seq-mean-token-mean"),
        ),
        Method(
            "grpo_js",
            "GRPO with JS",
            "GRPO + beta · mean of the Jensen-Shannon divergence from the policy as the run began",
            "a baseline of Mesh Learning, in its exact form",
            (Advantage(kind="group_std"), Divergence(kind="exact_js", beta=0.01)),
            Surrogate("seq-mean-token-mean"),
        ),
        Method(
            "entropy_bonus",
            "Entropy bonus",
            "Dr. GRPO - coefficient · mean entropy of the policy at the tokens of its rollouts",
            "Williams & Peng 1991, Connection Science 3:241-268",
            (Advantage(kind="mean_centered"), Entropy()),
        ),
        Method(
            "maxrl",
            "MaxRL",
            f"{_MAXRL}; token sums over a constant length",
            "Tajwar et al. 2026, arXiv:2602.02710",
            (Advantage(kind="maxrl"),),
        ),
        Method(
            "re_dr",
            "Re:Dr",
            f"Dr. GRPO {_REPLAY}",
            "d'Aliberti et al. 2026, arXiv:2610.11064",
            (Advantage(kind="mean_centered"), Replay()),
        ),
        Method(
            "re_max",
            "Re:Max",
            f"MaxRL {_REPLAY}",
            "d'Aliberti et al. 2026, arXiv:2610.11064; not ReMax, another estimator (arXiv:2310.10505)",
            (Advantage(kind="maxrl"), Replay()),
        ),
        Method(
            "rlep",
            "RLEP",
            "GRPO over G fresh and M stored right responses, clipped at 1 + ε_high; mean over tokens",
            "Zhang et al. 2025, arXiv:2507.07451, and its released code",
            (Rlep(), Advantage(kind="group_std")),
            Surrogate(loss_agg_mode="token-mean", epsilon_high=0.28),
        ),
        Method(
            "grpo_dropout",
            "GRPODropout",
            "GRPO without right rollouts of lowest A_i (s_i - mean(s)) until the sum over the kept is >= 0; "
            "A_i - sum w A on those; mean over their tokens",
            "Deng et al. 2026, arXiv:2610.11854",
            (Advantage(kind="group_std"), GRPODropout()),
            Surrogate(loss_agg_mode="token-mean"),
        ),
        Method(
            "gapo",
            "GAPO",
            "GRPO on r_i = 1 - (share of the mode among the right - 1/modes of the task) if right, else -1",
            "Anschel et al. 2025, arXiv:2511.12596, as described there and in its port in arXiv:2610.11064",
            (Gapo(), Advantage(kind="group_std")),
            Surrogate(loss_agg_mode="seq-mean-token-mean"),
        ),
        Method(
            "setpo",
            "SetPO",
            f"{_MEAN_CENTERED} + λ (D(group) - D(group without i)), D = mean of -log(1 + mean similarity)",
            "Li et al. 2026, arXiv:2602.01062, on the base of its port in arXiv:2610.11064",
            (Advantage(kind="mean_centered"), SetPO()),
        ),
        Method(
            "ucpo",
            "UCPO",
            "GRPO; the n right rollouts share n A+ as (1 - τ)/n + τ v_i / sum(v), v_i = 1 / likelihood",
            "Lochab, Li & Zhang 2026, arXiv:2605.00365, and its released code",
            (Advantage(kind="group_std"), Ucpo()),
            Surrogate(loss_agg_mode="seq-mean-token-mean"),
        ),
        Method(
            "semantic_maxent",
            "Semantic MaxEnt",
            f"{_MEAN_CENTERED} + η (min(-log p(mode), κ) - its mean under p) / κ if right, p from counts",
            "d'Aliberti et al. 2026, arXiv:2610.11064, appendix D.7",
            (Advantage(kind="mean_centered"), SemanticMaxEnt()),
        ),
        Method(
            "coach_only",
            "Coach prompting",
            "GRPO on groups of G/m rollouts, one for each of m prefixes that name a strategy",
            "Huang, Xu & Li 2026, arXiv:2610.02835, and its released code",
            (Advantage(kind="group_std"), Coaching()),
            Surrogate(loss_agg_mode="seq-mean-token-mean"),
        ),
        Method(
            "mesh",
            "Mesh Learning",
            "Coach prompting + mu KL(1/m ‖ softmax(r)), r_i what right rollouts of prefix i gained in log p",
            "Huang, Xu & Li 2026, arXiv:2610.02835, and its released code",
            (Advantage(kind="group_std"), Coaching(), StrategyBalance()),
            Surrogate(loss_agg_mode="seq-mean-token-mean"),
        ),
        Method(
            "svs",
            "SVS",
            "GRPO on mixed groups, also of tasks made around right answers where .125 n to .5 n are right, "
            "and on making those, paid 1 if .125 n to .625 n are right",
            "Liang et al. 2025, arXiv:2508.14029, and its released code",
            (Advantage(kind="group_std"), Svs()),
            Surrogate(loss_agg_mode="seq-mean-token-mean"),
        ),
        Method(
            "synco",
            "SynCo",
            "GRPO on tasks of a second policy, which GRPO trains on Gate(quality) Gate(reliability) T(mu)",
            "Yang et al. 2026, arXiv:2610.11345, as described in reviews, and its released code",
            (Advantage(kind="group_std"), SynCo()),
            Surrogate(loss_agg_mode="seq-mean-token-mean"),
        ),
    )
}


def get_method(name: str) -> Method:
    """The method with this id as it stands in the table: a built-in one, else an installed entry point.

    Raises:
        UsageError: no such method, or an entry point that can't be loaded.
    """
    if name in METHODS:
        return METHODS[name]
    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    found = _load(points[name]) if name in points else None
    if isinstance(found, Method):
        return found
    raise UsageError(f"no method is called {name!r}; {suggestion(name, [*METHODS, *sorted(points)])}")


def all_methods() -> dict[str, Method]:
    """Built-in and installed methods by id; a built-in one comes before an installed one of its name."""
    return METHODS | {
        name: value
        for name, value in _installed().items()
        if isinstance(value, Method) and name not in METHODS
    }


def all_parts() -> dict[str, type[Part]]:
    """Built-in and installed parts that can be added to a method, by name."""
    return PARTS | {value.name: value for value in _installed().values() if not isinstance(value, Method)}


def parts_of(name: str, adds: Iterable[str] = ()) -> dict[str, Part]:
    """The parts of a method and those added to it, by name, its surrogate too; all with their defaults.

    Whether they go together is not asked: options may make them.

    Raises:
        UsageError: no such method or part, or a part added twice.
    """
    method = get_method(name)
    parts = {part.name: part for part in (*method.parts, method.surrogate)}
    for added in adds:
        known = all_parts()
        if added not in known:
            raise UsageError(f"no part is called {added!r}; {suggestion(added, list(known))}")
        if added in parts:
            raise UsageError(f"{name} has the part {added!r} already; set its options: {added}.OPTION=VALUE")
        parts[added] = known[added]()
    return parts


def build(
    name: str,
    sets: Mapping[str, object] | None = None,
    adds: Iterable[str] = (),
    *,
    max_completion_length: int,
) -> Method:
    """A method with its options.

    Args:
        name: id of the method.
        sets: values by ``part.option``; a string is read as the option's type.
        adds: names of further parts; when each is called depends on its stage, not on the order here.
        max_completion_length: tokens of a response at most, the constant of Dr. GRPO's divisor.

    Raises:
        UsageError: no such method, part or option, a value that it can't take, a part added twice, or parts
            that do not go together.
    """
    if max_completion_length < 1:
        raise UsageError(f"max_completion_length must be at least 1, not {max_completion_length}")
    method, parts = get_method(name), parts_of(name, adds)
    for part, values in _by_part(name, sets or {}, list(parts)).items():
        parts[part] = with_options(parts[part], values)
    surrogate = parts.pop(Surrogate.name)
    assert isinstance(surrogate, Surrogate)  # for the type checker: nothing else has its name
    refused = refusal([*parts.values(), surrogate])
    if refused is not None:
        raise UsageError(f"{name}: {refused}")
    return replace(
        method,
        parts=tuple(
            part.fitted(max_completion_length) for part in sorted(parts.values(), key=lambda part: part.stage)
        ),
        surrogate=surrogate,
        max_completion_length=max_completion_length,
    )


def _by_part(name: str, sets: Mapping[str, object], parts: list[str]) -> dict[str, dict[str, object]]:
    """Values by option, by part."""
    found: dict[str, dict[str, object]] = {}
    for key, value in sets.items():
        part, dot, option = key.partition(".")
        if part not in parts:
            raise UsageError(f"{name} has no part {part!r} (in {key!r}); {suggestion(part, parts)}")
        if not dot:
            raise UsageError(f"{key!r} must be PART.OPTION; see: modebench methods {name}")
        found.setdefault(part, {})[option] = value
    return found


def _installed() -> dict[str, Method | type[Part]]:
    return {point.name: _load(point) for point in entry_points(group=ENTRY_POINTS)}


def _load(point: EntryPoint) -> Method | type[Part]:
    try:
        value = point.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        raise UsageError(f"the method {point.name!r} ({point.value}) cannot be loaded: {error!r}") from None
    if isinstance(value, Method) and value.id != point.name:
        raise UsageError(f"the entry point {point.name!r} ({point.value}) is the method {value.id!r}")
    if isinstance(value, Method) or (isinstance(value, type) and issubclass(value, Part)):
        return value
    raise UsageError(f"the entry point {point.name!r} ({point.value}) is neither a Method nor a Part")
