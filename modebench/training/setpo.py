"""SetPO: a rollout is worth more by what it adds to the diversity of its group (Li et al. 2026,
arXiv:2602.01062).

With a kernel k_ij in [0, 1] of similarity, k_ii = 1, the diversity of a set is D(S) = mean over i in S of
-log(1 + mean over j in S of k_ij), and a rollout adds s_i = D(S) - D(S without i), D of nothing being 0.
Its advantage is A_i + coefficient s_i, also where it is wrong, and the s_i of a group do not sum to 0: all
its rollouts are pushed down or up together. ``centred`` takes their mean away.

Kernels:

- ``mode``: 1 where the modes are the same, else 0. Not of the publication: it takes the choice of an
  encoder out of the comparison. Wrong rollouts are one further class, or left out (s_i = 0).
- ``text``: the cosine of embeddings of the responses by a frozen encoder, negative ones set to 0. The
  publication names no encoder; the default is that of the port of arXiv:2610.11064.

No official code was found; formula and base (Dr. GRPO) are those of the port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group
from modebench.training.combining import FOREIGN_ROLLOUTS, UNMIXED_CREDIT
from modebench.training.part import Credit, Encode, Part, Stage

if TYPE_CHECKING:
    from modebench.tasks import Task

Embed = Callable[[Sequence[str]], Any]
"""Texts to an array [texts, width] of embeddings of any length."""


@dataclass
class Embeddings:
    """Unit embeddings of the texts of the present update, by text; no checkpoint holds them."""

    embed: Embed | None = None
    by_text: dict[str, Floats] = field(default_factory=dict)

    def observe(self, groups: Sequence[Group]) -> None:
        """Embed every distinct text of the groups.

        Raises:
            UsageError: embeddings of another shape, not finite or of length 0.
        """
        assert self.embed is not None, "prepare comes first"
        texts = list(dict.fromkeys(one.text for group in groups for one in group.rollouts))
        vectors = np.asarray(self.embed(texts), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise UsageError(f"setpo's encoder gave an array of {vectors.shape} for {len(texts)} texts")
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(length) & (length > 0)).all():
            raise UsageError("setpo's encoder gave an embedding that has no direction")
        self.by_text = dict(zip(texts, vectors / length, strict=True))

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready: nothing, the encoder is frozen."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state."""


def diversity(kernel: Floats) -> float:
    """D of a set with this kernel [S, S]; 0 for the empty set."""
    return float(-np.log1p(kernel.mean(axis=1)).mean()) if len(kernel) else 0.0


def added(kernel: Floats) -> Floats:
    """[S] what every member adds to the diversity of the set."""
    size = len(kernel)
    # Row i of the mean without j is (sum_i - k_ij) / (S - 1); the member j itself is then left out.
    without_SS = (kernel.sum(axis=1, keepdims=True) - kernel) / max(size - 1, 1)
    terms_SS = -np.log1p(without_SS)
    np.fill_diagonal(terms_SS, 0.0)
    return np.asarray(diversity(kernel) - terms_SS.sum(axis=0) / max(size - 1, 1))


@dataclass(frozen=True)
class SetPO(Part):
    """The bonus of what a rollout adds to its set.

    Attributes:
        coefficient: of the bonus.
        kernel: see the module.
        wrong: with the kernel of modes, wrong rollouts are ``one_class``, or ``excluded`` from set and bonus.
        centred: the bonuses of a group sum to 0.
        encoder: with the kernel of texts, a model of sentence-transformers.
    """

    name: ClassVar[str] = "setpo"
    stage: ClassVar[Stage] = Stage.BONUS
    coefficient: float = 1.0
    kernel: Literal["mode", "text"] = "mode"
    wrong: Literal["one_class", "excluded"] = "one_class"
    centred: bool = False
    encoder: str = "sentence-transformers/all-MiniLM-L6-v2"

    def __post_init__(self) -> None:
        if self.coefficient < 0:
            raise UsageError(f"setpo.coefficient must not be negative, not {self.coefficient}")
        if self.kernel == "text" and self.wrong != "one_class":
            raise UsageError("setpo.wrong is of the kernel of modes; texts are compared right or wrong")

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({UNMIXED_CREDIT})

    @property
    def refuses(self) -> Mapping[str, str]:
        return {FOREIGN_ROLLOUTS: "it measures the diversity of the policy's own set"}

    def state(self, seed: int) -> Embeddings | None:
        return Embeddings() if self.kernel == "text" else None

    def prepare(self, tasks: Sequence[Task], encode: Encode, state: Embeddings | None) -> None:
        """Load the encoder.

        Raises:
            UsageError: it is not installed or cannot be loaded; says what to install.
        """
        if state is not None and state.embed is None:
            state.embed = load_encoder(self.encoder)

    def observe(self, groups: Sequence[Group], state: Embeddings | None) -> None:
        if state is not None:
            state.observe(groups)

    def advantage(self, group: Group, advantage_G: Floats, state: Embeddings | None) -> Floats:
        return advantage_G + self.coefficient * self.bonus(group, state)

    def bonus(self, group: Group, state: Embeddings | None) -> Floats:
        """[G] s, centred where that is asked."""
        members = np.arange(group.size)
        if self.kernel == "mode" and self.wrong == "excluded":
            members = np.flatnonzero(group.reward_G > 0)
        s_G = np.zeros(group.size)
        s_G[members] = added(self.similarity(group, state)[np.ix_(members, members)])
        if self.centred and members.size:
            s_G[members] -= s_G[members].mean()
        return s_G

    def similarity(self, group: Group, state: Embeddings | None) -> Floats:
        """[G, G] the kernel of a group."""
        if state is None:
            modes = [rollout.mode if rollout.reward > 0 else None for rollout in group.rollouts]
            return np.array([[float(one == other) for other in modes] for one in modes])
        unit_GE = np.stack([state.by_text[rollout.text] for rollout in group.rollouts])
        kernel_GG = np.clip(unit_GE @ unit_GE.T, 0.0, 1.0)
        np.fill_diagonal(kernel_GG, 1.0)
        return np.asarray(kernel_GG)

    def credit_metrics(self, credits: Sequence[Credit], state: Embeddings | None) -> dict[str, float | None]:
        """Mean magnitude of the bonus, and the mean bonus: the push that a group's rollouts share."""
        bonus = self.coefficient * np.concatenate([self.bonus(each.group, state) for each in credits])
        return {"setpo/bonus": float(np.abs(bonus).mean()), "setpo/shift": float(bonus.mean())}


def load_encoder(name: str) -> Embed:
    """A frozen encoder of sentence-transformers, on the CPU: the same numbers on every process.

    Raises:
        UsageError: the package or the model is missing.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise UsageError(
            'setpo.kernel=text needs sentence-transformers: pip install "modebench-toolkit[setpo]"; '
            "setpo.kernel=mode needs nothing"
        ) from None
    try:
        model = SentenceTransformer(name, device="cpu")
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"setpo.encoder: {name} cannot be loaded: {reason}") from None
    return lambda texts: model.encode(list(texts), show_progress_bar=False)
