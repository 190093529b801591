"""Mode replay: rehearse what was solved, one stored response a mode (Re:Dr and Re:Max, arXiv:2610.11064).

Every training prompt has a bank {mode: exemplar} of at most `capacity` modes and a ledger that counts all
verified observations of each mode. After the groups of an update are verified and before any gradient:

1. Admission. A mode that the prompt's ledger doesn't know enters the bank while there is room, in the order
   of the mode keys; its exemplar is the lexicographically smallest token sequence among this group's rollouts
   of that mode, so the order of the rollouts has no part in it. Nothing is evicted or replaced, and a mode
   first seen when the bank was full stays out for good. Truncated rollouts are not admitted.
2. Schedule. As many banks as the update has prompts, round robin over the sorted keys of all non-empty banks,
   those of this update included; a bank of one mode counts too.
3. Loss. coefficient (G-1)/G^2 mean_banks sum_c w_c (-1/len_c) sum_t log p(e_c,t), w_c = 1/k (``uniform``) or
   the modes' shares of the ledger (``frequency``). (G-1)/G^2 is the weight of a lone success in a Dr. GRPO
   group of G.

``published`` divides an exemplar's token sum by its own length, while fresh tokens are divided by C =
max_completion_length: on the tokens of one exemplar replay is coefficient * C / (k len) times as strong as a
lone success, so C sets the dose. ``length_matched`` gives a replayed token the weight of a fresh one: the
ratio is coefficient / k whatever C is. The ratio is logged. Departure from the publication, which replays one
bank an update: with B prompts an update B banks are replayed, so that the dose per prompt stays.

Controls, to tell the choice of modes from having a gradient at all:

- ``zero``: everything but the weights; parameters are bit-equal to training without replay.
- ``random``: one stored response a bank, drawn by the ledger's shares, with the weight of the whole bank: the
  same dose on a random success of the prompt (in expectation ``frequency``).
- ``noise``: in place of the replay gradient Gaussian noise, of the same norm in every parameter tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import TASKS, Group, Row
from modebench.training.draws import draws
from modebench.training.part import Part, TokenWeight

if TYPE_CHECKING:
    import torch

Tokens = tuple[int, ...]
Choose = Callable[[str, list[Tokens]], Tokens]
"""One of the responses of a mode."""
Exemplar = Literal["smallest", "random", "newest"]
TERM = "replay"


@dataclass
class Bank:
    """The stored modes of one prompt, and the ledger of all verified observations of it."""

    prompt_ids: Tokens
    exemplars: dict[str, Tokens] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def admit(
        self, found: Mapping[str, Sequence[Tokens]], capacity: int, renew: bool, choose: Choose
    ) -> None:
        """Enter the eligible responses of one group, by mode; `renew` replaces exemplars that are there."""
        for mode in sorted(found):
            is_new = mode not in self.counts and len(self.exemplars) < capacity
            if is_new or (renew and mode in self.exemplars):
                self.exemplars[mode] = choose(mode, sorted(found[mode]))
            self.counts[mode] = self.counts.get(mode, 0) + len(found[mode])

    def shares(self) -> list[float]:
        """The ledger's shares of the stored modes, in their order."""
        counts = [self.counts[mode] for mode in self.exemplars]
        return [count / sum(counts) for count in counts]


@dataclass
class Banks:
    """The state of replay: banks by prompt key, the cursor, and what seeds the draws of the controls."""

    seed: int
    banks: dict[str, Bank] = field(default_factory=dict)
    cursor: int = 0
    updates: int = 0

    def admit(self, group: Group, capacity: int, exemplar: Exemplar = "smallest") -> None:
        """Enter a verified group."""

        def choose(mode: str, responses: list[Tokens]) -> Tokens:
            if exemplar != "random":
                return responses[0]
            return responses[int(draws(self.seed, TERM, group.key, mode).integers(len(responses)))]

        found: dict[str, list[Tokens]] = {}
        for rollout in group.rollouts:
            if rollout.mode is not None and rollout.reward > 0 and rollout.finish_reason != "length":
                found.setdefault(rollout.mode, []).append(rollout.token_ids)
        if found:
            bank = self.banks.setdefault(group.key, Bank(group.prompt_ids))
            bank.admit(found, capacity, exemplar == "newest", choose)

    def next_banks(self, count: int) -> list[Bank]:
        """At most `count` banks from the cursor on, which moves behind them."""
        keys = sorted(self.banks)
        if not keys:
            return []
        start = self.cursor % len(keys)
        taken = min(count, len(keys))
        self.cursor = (start + taken) % len(keys)
        return [self.banks[keys[(start + offset) % len(keys)]] for offset in range(taken)]

    def draws(self) -> np.random.Generator:
        """The random numbers of the present update."""
        return np.random.default_rng([self.seed % 2**64, self.updates])

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "seed": self.seed,
            "cursor": self.cursor,
            "updates": self.updates,
            "banks": {
                key: {
                    "prompt_ids": list(bank.prompt_ids),
                    "exemplars": {mode: list(tokens) for mode, tokens in bank.exemplars.items()},
                    "counts": dict(bank.counts),
                }
                for key, bank in self.banks.items()
            },
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self.seed, self.cursor, self.updates = saved["seed"], saved["cursor"], saved["updates"]
        self.banks = {
            key: Bank(
                tuple(bank["prompt_ids"]),
                {mode: tuple(tokens) for mode, tokens in bank["exemplars"].items()},
                dict(bank["counts"]),
            )
            for key, bank in saved["banks"].items()
        }


@dataclass(frozen=True)
class Replay(Part):
    """Replay of verified modes beside the fresh loss.

    Attributes:
        coefficient: lambda, the dose.
        capacity: modes stored a prompt; 1 is the ablation that knows no modes.
        weighting: of the modes of a bank.
        normaliser: of an exemplar's token sum.
        control: replay proper (``none``) or one of its controls.
        exemplar: which response of a mode is stored: the ``smallest`` of the first group that has the mode, a
            ``random`` one of that group, or the smallest of the ``newest`` group that has it.
    """

    name: ClassVar[str] = "replay"
    needs_whole_groups: ClassVar[bool] = True
    coefficient: float = 0.1
    capacity: int = 16
    weighting: Literal["uniform", "frequency"] = "uniform"
    normaliser: Literal["published", "length_matched"] = "published"
    control: Literal["none", "zero", "random", "noise"] = "none"
    exemplar: Exemplar = "smallest"

    def __post_init__(self) -> None:
        if self.coefficient < 0:
            raise UsageError(f"replay.coefficient must not be negative, not {self.coefficient}")
        if self.capacity < 1:
            raise UsageError(f"replay.capacity must be at least 1, not {self.capacity}")
        if self.control == "random" and self.weighting != "uniform":
            raise UsageError("replay.control=random draws by frequency already; leave replay.weighting out")

    def state(self, seed: int) -> Banks:
        return Banks(seed)

    def observe(self, groups: Sequence[Group], state: Banks) -> None:
        for group in groups:
            if group.source == TASKS:  # a task that was made comes once, and would crowd out the others
                state.admit(group, self.capacity, self.exemplar)

    def extra_rows(self, groups: Sequence[Group], fresh: TokenWeight, state: Banks) -> list[Row]:
        """A likelihood row an exemplar of the scheduled banks.

        Raises:
            UsageError: groups of one, for which the scale (G-1)/G^2 is zero.
        """
        size = _group_size(groups)
        if size < 2:
            raise UsageError("replay is scaled by (G-1)/G^2 and needs 2 or more rollouts a prompt")
        state.updates += 1
        scheduled = state.next_banks(len(groups))
        rows = []
        for bank in scheduled:
            for tokens, share in self._shares(bank, state):
                length = len(tokens)
                matched = self.normaliser == "length_matched"
                per_token = len(groups) * fresh(length) if matched else 1 / (size * length)
                weight = self.coefficient * (size - 1) / size * share / len(scheduled) * per_token
                weight_T = np.full(length, 0.0 if self.control == "zero" else weight)
                rows.append(Row(bank.prompt_ids, tokens, "likelihood", weight_T, term=TERM))
        return rows

    def _shares(self, bank: Bank, state: Banks) -> list[tuple[Tokens, float]]:
        """What of a bank is replayed, with weights that sum to 1."""
        exemplars = list(bank.exemplars.values())
        if self.control == "random":
            return [(exemplars[int(state.draws().choice(len(exemplars), p=bank.shares()))], 1.0)]
        if self.weighting == "frequency":
            return list(zip(exemplars, bank.shares(), strict=True))
        return [(tokens, 1 / len(exemplars)) for tokens in exemplars]

    def extra_gradient(self, gradients: list[torch.Tensor], state: Banks) -> list[torch.Tensor]:
        if self.control != "noise":
            return gradients
        import torch  # here, so that the table of methods can be listed without it

        # Drawn on the CPU: the same numbers whatever device the policy is on.
        generator = torch.Generator().manual_seed(int(state.draws().integers(2**63)))
        noisy = []
        for gradient in gradients:
            noise = torch.randn(gradient.shape, generator=generator).to(gradient)
            noisy.append(noise * (gradient.norm() / noise.norm()))
        return noisy

    def metrics(
        self, groups: Sequence[Group], extra: Sequence[Row], fresh: TokenWeight, state: Banks
    ) -> dict[str, float | None]:
        """Banks (prompts with a stored mode), stored modes a bank, and the ratio replay : lone success.

        The ratio compares, on the tokens of one exemplar, its weight with that of a lone success of the same
        length in a Dr. GRPO group; the mean over the replayed exemplars.
        """
        size = _group_size(groups)
        compared = [(row.weight_T[0], fresh(len(row.token_ids))) for row in extra if row.term == TERM]
        ratios = [float(weight) / ((size - 1) / size * alone) for weight, alone in compared if alone]
        modes = [len(bank.exemplars) for bank in state.banks.values()]
        return {
            "replay/banks": float(len(modes)),
            "replay/modes_per_bank": sum(modes) / len(modes) if modes else None,
            "replay/to_lone_success": sum(ratios) / len(ratios) if ratios else None,
        }


def _group_size(groups: Sequence[Group]) -> float:
    """G: rollouts a prompt, on average."""
    return sum(group.size for group in groups) / len(groups)
