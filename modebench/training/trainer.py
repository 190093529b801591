"""The loop: tasks → rollouts → credit → update → log → checkpoint → evaluation.

What differs between methods stands in `modebench.training.method`; everything here is the same for all. Step
n, from 1, makes the policy of step n; step 0 is the policy as it was loaded. Samples are seeded by (run seed,
step, task, sample), so they depend neither on the number of processes nor on what happened before a resume.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from accelerate import Accelerator

from modebench.errors import TrainingError, UsageError
from modebench.evaluation import Progress
from modebench.tasks import Task
from modebench.training import checkpoint
from modebench.training.agent import Agent, learn
from modebench.training.batch import POLICY, TASKS, Group
from modebench.training.checkpoint import TrainerState
from modebench.training.config import TrainConfig
from modebench.training.drawing import StepRollouts
from modebench.training.folder import StepLog, TrainingFolder
from modebench.training.method import Method
from modebench.training.metrics import step_metrics
from modebench.training.order import tasks_at
from modebench.training.periodic import best_on_dev, evaluate_step, is_due, mean_accuracy
from modebench.training.policy import Policy
from modebench.training.proposals import proposal_metrics
from modebench.training.sampling import LiveEngine

_log = logging.getLogger(__name__)

StepProgress = Callable[[int, int, dict[str, Any]], None]
"""Called after every step with (step, steps, its metrics)."""


@dataclass
class StopRequest:
    """Whether the run was asked to stop: by SIGTERM or the first interrupt."""

    made: bool = False

    def __call__(self, *signal_and_frame: object) -> None:
        # A second interrupt ends the process at once; the last checkpoint is whole anyway.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.made = True

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Take SIGTERM and SIGINT as requests meanwhile."""
        before = {number: signal.signal(number, self) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass
class Trainer:
    """Trains one policy with one method into one folder.

    Args:
        config: what decides the run.
        method: built with its options.
        policy: on its device; of a resumed run, loaded from its last checkpoint.
        folder: of the run; every process names the same one, the main process writes to it.
        accelerator: knows the processes and the trackers.
        tasks: what is trained on, in the order of their files.
        reference: the policy as the run began, where the method needs it.
        on_step, on_samples: progress of training and of evaluations.
        stop: whether the run was asked to stop.
        beside: the policies that the method needs beside the first, by name; of a resumed run from its last
            checkpoint too.
    """

    config: TrainConfig
    method: Method
    policy: Policy
    folder: TrainingFolder
    accelerator: Accelerator
    tasks: Sequence[Task]
    reference: Policy | None = None
    on_step: StepProgress | None = None
    on_samples: Progress | None = None
    stop: StopRequest = field(default_factory=StopRequest)
    beside: Mapping[str, Policy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.config, self.method, self.accelerator
        first = Agent.make(self.policy, *given, self.reference)
        self.others = {name: Agent.make(policy, *given) for name, policy in self.beside.items()}
        self.agents = {POLICY: first, **self.others}
        self.optimizer, self.updater = first.optimizer, first.updater
        self.engine = LiveEngine(self.policy, groups_per_batch=self.config.rollout.groups_per_batch)
        self.method_state = self.method.state(self.config.run.seed)
        self.method.prepare(self.tasks, self.policy.response_ids, self.method_state)
        self.state = TrainerState()
        last = self.folder.last_checkpoint()
        if last is not None:
            self.state = checkpoint.load(last, self.optimizer, self.others)
            self.method_state.load_state_dict(self.state.method)
        if self.reference is not None:
            self._check_reference(self.reference)

    def run(self) -> bool:
        """Train to the end, or until a stop is requested; False in the second case.

        Raises:
            TrainingError: the run cannot go on; the last checkpoint is intact.
            UsageError: another process trains in the folder.
        """
        with self.stop.on_signals(), contextlib.ExitStack() as opened:
            log = None
            if self.accelerator.is_main_process:
                proposed = self.state.totals.get("proposed", 0) if self.method.makers else None
                log = opened.enter_context(self.folder.log(self.state.step, proposed))
            try:
                self._summarize("running")
                finished = self._run(log)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    self._summarize("cancelled")
                else:
                    self._summarize("error", " ".join(str(error).split()))
                raise
            self._summarize("success" if finished else "cancelled")
        self.accelerator.end_training()  # trackers write out what they hold
        return finished

    @property
    def _left(self) -> int | None:
        """Rollouts that the run may still draw; None for any number."""
        budget = self.config.budget
        return None if budget is None else budget - self.state.totals.get("rollouts", 0)

    @property
    def _due(self) -> bool:
        """Whether the policy is evaluated now."""
        return self._done or is_due(self.config, self.state.step)

    @property
    def _done(self) -> bool:
        """Whether the last step is done, or the budget has no room for another group."""
        spent = self._left is not None and self._left < self.config.rollout.group_size
        return spent or self.state.spent or self.state.step >= self.config.steps

    @property
    def inert(self) -> list[str]:
        """What of the method changed nothing in the steps so far, by what was counted."""
        return [name for name, count in self.state.effects.items() if count == 0]

    def _run(self, log: StepLog | None) -> bool:
        if self.state.step == 0:
            self._save(log)
        self._evaluate()
        while not self._done and not self._stopping():
            metrics, timing = self._step(self.state.step + 1)
            if log is not None:
                log.propose(self._proposals())
                log.write(metrics, timing)
            self.accelerator.log({**metrics, **timing}, step=self.state.step)
            if self.on_step and self.accelerator.is_main_process:
                self.on_step(self.state.step, self.config.steps, metrics)
            every = self.config.checkpoint.every
            if self._due or (every > 0 and self.state.step % every == 0):
                self._save(log)
            self._evaluate()
        finished = not self._stopping()
        if not finished:
            self._save(log)
        return finished

    def _step(self, step: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """One step; its metrics, which depend on the configuration alone, and its seconds."""
        began = time.perf_counter()
        groups, generated = self._rollouts(step)
        sampled = time.perf_counter()
        answered = [group for group in generated if group.purpose == "solve"]
        self._note_success(answered, step)
        self.method.observe(answered, self.method_state)
        learned = learn(self.agents, self.method, self.method_state, groups, self.config, step)
        report, own = learned.reports[POLICY], learned.groups[POLICY]
        logged = step_metrics(generated, learned.trained, learned.rows, self.method.makers)
        if report.updates:
            logged |= self.method.metrics(own, report.extra, self.method_state, report.updated)
            logged |= self.method.gram_metrics(own, report.rows, report.grams)
        for maker in self.method.makers:
            made = [proposal for part, proposal in self.method.proposals(self.method_state) if part == maker]
            logged |= {f"{maker}/{name}": value for name, value in proposal_metrics(made).items()}
        updated = time.perf_counter()
        effects = self.method.effects(self.method_state)
        self.state.effects = _summed(self.state.effects, effects)
        sequences = [rollout.token_ids for group in generated for rollout in group.rollouts]
        discarded = len(sequences) - sum(group.size for group in groups)
        counts = {
            "rollouts": len(sequences),
            "tokens": sum(map(len, sequences)),
            "discarded": discarded,
            **learned.counts(),
        }
        if self.method.makers:
            counts["proposed"] = len(self.method.proposals(self.method_state))
        self.state.totals = _summed(self.state.totals, counts)
        self.state.step = step
        metrics = {"step": step, **logged, **learned.metrics()}
        metrics |= {f"effect/{name}": count for name, count in effects.items()}
        metrics |= {f"total/{name}": count for name, count in self.state.totals.items()}
        timing = {"step": step, "seconds/sampling": sampled - began, "seconds/update": updated - sampled}
        return metrics, timing

    def _rollouts(self, step: int) -> tuple[list[Group], list[Group]]:
        """The groups of a step that are trained on, and all that were generated; the same on every process.

        Raises:
            TrainingError: none were generated.
        """
        kept: list[Group] = []
        policies = {name: agent.policy for name, agent in self.agents.items()}
        draw = StepRollouts(policies, self.accelerator, self.config, step, self._left)
        wanted = 0
        for number in range(self.method.rounds):
            tasks = tasks_at(
                self.tasks, self.config.run.seed, self.state.cursor, self.config.rollout.num_prompts
            )
            self.state.cursor += len(tasks)
            planned = self.method.plan(tasks, self.config.rollout.group_size, self.method_state)
            asked = self.method.phrase(planned, self.method_state)
            if number == 0:
                wanted = len(asked)
            kept += self.method.filter(draw(TASKS, asked), self.method_state)
            if len(kept) >= wanted:
                break
        kept = self.method.extend(kept[:wanted], draw, self.policy.profile, self.method_state)
        self.state.spent = draw.cut
        if not draw.cut and not any(group.size for group in draw.generated):
            raise TrainingError(
                f"step {step} has no rollouts: the method {self.config.method} asked for none"
            )
        return kept, draw.generated

    def _proposals(self) -> list[dict[str, Any]]:
        """What was proposed in the last step, a line of tasks.jsonl each."""
        proposed = self.method.proposals(self.method_state)
        return [proposal.record(self.state.step, part) for part, proposal in proposed]

    def _note_success(self, groups: Sequence[Group], step: int) -> None:
        """Remember that something was right; give up where nothing was for long.

        Raises:
            TrainingError: says what to do.
        """
        self.state.ever_correct |= any(bool(group.reward_G.any()) for group in groups)
        patience = self.config.update.all_wrong_patience
        if not self.state.ever_correct and patience and step >= patience:
            raise TrainingError(
                f"no rollout of the first {step} steps was right, so nothing can be learned; measure the "
                f"model (modebench eval --model {self.config.model}), take an easier level or domain or a "
                "model that solves some tasks, or try longer with --set update.all_wrong_patience=0"
            )

    def _check_reference(self, reference: Policy) -> None:
        """The reference is the model that the run began with, also after a resume.

        Raises:
            UsageError: it has other weights by now.
        """
        found = reference.origin
        if self.state.reference is not None and self.state.reference != found:
            raise UsageError(
                f"the reference, {reference.name}, is no longer the model that this run began with: "
                f"{self.state.reference} then, {found} now"
            )
        self.state.reference = found

    def _evaluate(self) -> None:
        """Measure the policy where that is due; a requested stop cuts it short, and a resume completes it."""
        step = self.state.step
        if not self._due:
            return
        if self.accelerator.is_main_process:
            with contextlib.suppress(KeyboardInterrupt):
                summaries = evaluate_step(self.engine, self.folder, self.config, step, self._watched)
                values = {f"{split}/accuracy": mean_accuracy(summaries[split]) for split in summaries}
                self.accelerator.log({k: v for k, v in values.items() if v is not None}, step=step)
            self._summarize("running")
        self.accelerator.wait_for_everyone()

    def _watched(self, done: int, total: int) -> None:
        """Progress of an evaluation, which a requested stop ends between two groups."""
        if self.on_samples:
            self.on_samples(done, total)
        if self.stop.made:
            raise KeyboardInterrupt

    def _stopping(self) -> bool:
        """Whether any process was asked to stop."""
        asked = torch.tensor([float(self.stop.made)], device=self.accelerator.device)
        return bool(self.accelerator.reduce(asked, "sum").item())

    def _save(self, log: StepLog | None) -> None:
        """Write a checkpoint, the log's lines up to it first."""
        self.state.method = self.method_state.state_dict()
        if log is not None:
            log.sync()
            checkpoint.save(self.folder.checkpoints, self.state, self.policy, self.optimizer, self.others)
            best = best_on_dev(self.folder)
            checkpoint.prune(
                self.folder.checkpoints, self.config.checkpoint.keep, [best["step"]] if best else []
            )
        self.accelerator.wait_for_everyone()

    def _summarize(self, status: str, error: str | None = None) -> None:
        """Write summary.json: how the run stands, its result, and the best on dev beside it."""
        if not self.accelerator.is_main_process:
            return
        last = self.folder.last_checkpoint()
        try:
            self.folder.update_summary(
                status=status,
                error=error,
                method=self.config.method,
                model=self.config.model,
                seed=self.config.run.seed,
                processes=self.accelerator.num_processes,
                steps=self.config.steps,
                step=self.state.step,
                totals=self.state.totals,
                effects=self.state.effects,
                inert=self.inert,
                last_checkpoint=None if last is None else str(last.relative_to(self.folder.path)),
                best_on_dev=best_on_dev(self.folder),
                headline=self.method.headline(self.folder.steps()),
            )
        except OSError as problem:
            # A full disk has an error of its own by now, which must not be hidden behind this one.
            if status != "error":
                raise
            _log.warning("summary.json could not be written: %s", problem)


def _summed(totals: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, int]:
    """Totals with what a step adds."""
    return {name: totals.get(name, 0) + count for name, count in counts.items()}
