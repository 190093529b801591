"""Coach prompting: every task of a step is asked once with each of its prefixes, a group each.

From Mesh Learning (arXiv:2610.02835), whose coach is a model; here the prefixes are the strategies of the
task's domain, or those of a file that `modebench coach` wrote (see `modebench.coaching`). The tokens of a
prefix are part of the prompt, so no loss is ever on them. Evaluations ask without prefixes.

A task planned for G rollouts has m groups of G/m, so that what is generated stays the same (``matched``, as
in the released code: 4 prefixes of 4 rollouts beside 16); with ``full`` every prefix has G, which is m times
as much. Matched groups are smaller, and advantages are relative to a group: compare ``coach_only`` and the
``identical`` control before anything is put down to the prefixes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from modebench.analysis.diversity import pcmd
from modebench.coaching import Control, by_rule
from modebench.errors import UsageError
from modebench.probing import Prefix, read_prefixes
from modebench.runs import file_sha256
from modebench.training.batch import Group, Row
from modebench.training.combining import PREFIXES
from modebench.training.part import Asked, Encode, Part, TokenWeight

if TYPE_CHECKING:
    from modebench.tasks import Task


@dataclass
class Coach:
    """The prefixes of a run.

    Attributes:
        seed: of the meaningless words of a control.
        by_scope: prefixes by task id, and those for whole cells by (domain, level).
        source: SHA-256 of the file that they are from, which a checkpoint names; None for those by rule.
    """

    seed: int
    by_scope: dict[object, list[Prefix]] = field(default_factory=dict)
    source: str | None = None

    @property
    def names(self) -> list[str]:
        """Of the prefixes that are for whole cells, in their order."""
        own = (prefix for prefixes in self.by_scope.values() for prefix in prefixes)
        return list(dict.fromkeys(prefix.name for prefix in own if prefix.task_id is None))

    def of(self, task: Task) -> list[Prefix]:
        """The prefixes of a task.

        Raises:
            UsageError: it has none, or two of one name.
        """
        own = [*self.by_scope.get(task.id, ()), *self.by_scope.get((task.domain, task.level), ())]
        if not own or len({prefix.name for prefix in own}) < len(own):
            raise UsageError(f"coaching: {task.id} has {'two prefixes of one name' if own else 'no prefix'}")
        return own

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"seed": self.seed, "source": self.source}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            UsageError: the prefixes are others than when the run began.
        """
        if saved["source"] != self.source:
            raise UsageError("the prefixes in coaching.file are not those that the run began with")
        self.seed = saved["seed"]


@dataclass(frozen=True)
class Coaching(Part):
    """Tasks are asked with prefixes.

    Attributes:
        file: prefixes of every task, used as they stand; None: the strategies of its domain.
        control: of the strategies; see `modebench.coaching.CONTROLS`.
        budget: rollouts of a prefix: the task's shared out, or as many for each.
        wrap: put the strategies into the wrapper; False gives the bare sentence.
    """

    name: ClassVar[str] = "coaching"
    file: str | None = None
    control: Control = "none"
    budget: Literal["matched", "full"] = "matched"
    wrap: bool = True

    def __post_init__(self) -> None:
        if self.file is not None and self.control != "none":
            raise UsageError("coaching.control is of the strategies; leave coaching.file out")
        if self.file is not None and not Path(self.file).is_file():
            raise UsageError(f"coaching.file must be a file of prefixes, and {self.file} is none")

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({PREFIXES})

    def state(self, seed: int) -> Coach:
        return Coach(seed)

    def prepare(self, tasks: Sequence[Task], encode: Encode, state: Coach) -> None:
        """Find the prefixes, which every task must have.

        Raises:
            UsageError: a task without prefixes, or with two of one name.
            InputError: a line of the file that is none.
        """
        if self.file is None:
            cells = dict.fromkeys((task.domain, task.level) for task in tasks)
            known = by_rule(cells, "direct" if self.wrap else "compact", self.control, state.seed)
        else:
            known = list(read_prefixes(Path(self.file)))
            state.source = file_sha256(Path(self.file))
        state.by_scope = {}
        for prefix in known:
            state.by_scope.setdefault(prefix.task_id or (prefix.domain, prefix.level), []).append(prefix)
        for task in tasks:
            state.of(task)

    def phrase(self, asked: list[Asked], state: Coach) -> list[Asked]:
        """A group for every prefix.

        Raises:
            UsageError: the rollouts of a task cannot be shared out evenly, or a new task has no prefix.
        """
        return [each for one in asked for each in self._coached(one, state)]

    def _coached(self, asked: Asked, state: Coach) -> list[Asked]:
        prefixes = state.of(asked.task)
        size = asked.size
        if self.budget == "matched":
            size, rest = divmod(asked.size, len(prefixes))
            if rest:
                raise UsageError(
                    f"{asked.task.id} has {len(prefixes)} prefixes, among which {asked.size} rollouts cannot "
                    "be shared out: take a multiple as rollout.group_size, or coaching.budget=full"
                )
        return [Asked(asked.task, size, prefix) for prefix in prefixes]

    def metrics(
        self, groups: Sequence[Group], extra: Sequence[Row], fresh: TokenWeight, state: Coach
    ) -> dict[str, float | None]:
        """Of an update: accuracy of the best and of the worst prefix by its name; the mass of the strategies,
        which is the share of all right rollouts that each prefix of a cell has; and PCMD of a task's right
        rollouts, whatever their prefix."""
        right: Counter[str | None] = Counter()
        asked: Counter[str | None] = Counter()
        modes: dict[str, Counter[str | None]] = {}
        for group in groups:
            if group.prefix is None:
                continue
            found = [rollout.mode for rollout in group.rollouts if rollout.reward > 0]
            right[group.prefix] += len(found)
            asked[group.prefix] += group.size
            modes.setdefault(group.task.id, Counter()).update(found)
        rates = [right[name] / size for name, size in asked.items() if size]
        diversity = [float(pcmd(list(counts.values()) or [0])) for counts in modes.values()]
        defined = [value for value in diversity if not np.isnan(value)]
        total = right.total()
        return {
            "coaching/best": max(rates, default=None),
            "coaching/worst": min(rates, default=None),
            "coaching/pcmd": float(np.mean(defined)) if defined else None,
            **{f"coaching/mass/{name}": right[name] / total if total else None for name in state.names},
        }
