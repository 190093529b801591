"""The runs of a sweep, carried out: a process each, some at a time; one that fails leaves the rest alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from modebench.training.folder import METRICS
from modebench.training.sweep import State, SweepRun

Outcome = Literal["finished", "failed", "interrupted"]
Say = Callable[[str], None]
_POLL_SECONDS = 0.1
_REPORT_SECONDS = 30.0


class Stop(Protocol):
    """Whether the sweep was asked to stop."""

    made: bool


@dataclass
class Job:
    """A run that is to be carried out.

    Attributes:
        run: which one.
        path: its folder.
        state: how it stands.
        outcome: how it ended; None before.
        problem: what went wrong, where it failed.
        seconds: how long it took.
    """

    run: SweepRun
    path: Path
    state: State
    outcome: Outcome | None = None
    problem: str = ""
    seconds: float = 0.0

    @property
    def log(self) -> Path:
        """What its processes write; beside the folder, which must be empty when a run begins."""
        return self.path.with_name(f"{self.path.name}.log")

    def arguments(self) -> list[str]:
        """Arguments of ``modebench`` that begin the run, or go on with it."""
        resume = ["train", "--resume", str(self.path)]
        return resume if self.state == "interrupted" else self.run.arguments(self.path)

    def steps(self) -> str:
        """How far it is."""
        metrics = self.path / METRICS
        done = metrics.read_bytes().count(b"\n") if metrics.is_file() else 0
        return f"step {done}/{self.run.plan.config.steps}"

    def start(self) -> subprocess.Popen[bytes]:
        """Its process."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            # A session of its own: an interrupt from the terminal reaches the sweep, which passes it on.
            return subprocess.Popen(
                [sys.executable, "-m", "modebench", *self.arguments()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def settle(self, code: int, stopped: bool) -> None:
        """Note how its process ended."""
        if code == 0:
            self.outcome = "finished"
        elif stopped:
            self.outcome = "interrupted"
        else:
            self.outcome = "failed"
            self.problem = f"ended by signal {-code}" if code < 0 else _last_line(self.log)


@dataclass
class _Working:
    """A job with its process, when it began and when it was last told of."""

    job: Job
    process: subprocess.Popen[bytes]
    began: float
    told: float


def carry_out(jobs: Sequence[Job], at_once: int, stop: Stop, say: Say) -> None:
    """Bring every job to an outcome; those that a stop comes before keep None.

    A stop is passed on as SIGTERM: the runs end their step, save, and are interrupted. However this function
    ends, no process outlives it.

    Args:
        jobs: what there is to do, in order.
        at_once: processes at a time.
        stop: is looked at several times a second.
        say: takes a line on every run that begins, works or ends.
    """
    waiting, working, passed_on = list(jobs), list[_Working](), False
    try:
        while working or (waiting and not stop.made):
            while waiting and len(working) < at_once and not stop.made:
                job = waiting.pop(0)
                now = time.monotonic()
                working.append(_Working(job, job.start(), now, now))
                how = "goes on at" if job.state == "interrupted" else "begins,"
                say(f"{job.run.name}: {how} {job.steps()}")
            if stop.made and not passed_on:
                passed_on = True
                for one in working:
                    one.process.send_signal(signal.SIGTERM)
            going_on = [one for one in working if not _ended(one, stop, say)]
            if len(going_on) < len(working):
                working = going_on
                say(_left(jobs, at_once))
            time.sleep(_POLL_SECONDS)
    finally:
        for one in working:
            one.process.kill()
            one.process.wait()


def _ended(one: _Working, stop: Stop, say: Say) -> bool:
    """Whether a process has ended; says so, or now and then how far it is."""
    code, now, job = one.process.poll(), time.monotonic(), one.job
    if code is not None:
        job.seconds = now - one.began
        job.settle(code, stop.made)
        problem = f": {job.problem}" if job.problem else ""
        say(f"{job.run.name}: {job.outcome} at {job.steps()} after {job.seconds:.0f} s{problem}")
        return True
    if now - one.told >= _REPORT_SECONDS:
        one.told = now
        say(f"{job.run.name}: {job.steps()} after {now - one.began:.0f} s")
    return False


def _left(jobs: Sequence[Job], at_once: int) -> str:
    """How many jobs have ended, and how long the others may take."""
    ended = [job for job in jobs if job.outcome is not None]
    seconds = sum(job.seconds for job in ended) / len(ended) * (len(jobs) - len(ended)) / at_once
    return f"{len(ended)} of {len(jobs)} runs ended, about {seconds / 60:.0f} min left"


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "ended without a word")
