"""Progress on stderr: a bar on a terminal, a line every half minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from modebench.evaluation import Progress

_TERMINAL_SECONDS, _LOG_SECONDS = 0.1, 30.0
_BAR = 30


@contextmanager
def progress_reporter(enabled: bool) -> Iterator[Progress | None]:
    """A callback for `modebench.evaluation.generate`, or None when not wanted."""
    if not enabled:
        yield None
        return
    reporter = _Reporter()
    try:
        yield reporter
    finally:
        reporter.close()


class _Reporter:
    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._every = _TERMINAL_SECONDS if self._terminal else _LOG_SECONDS
        self._start = self._shown = time.monotonic()
        self._first: int | None = None
        self._open = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = done
            return
        if now - self._shown < self._every and done < total:
            return
        self._shown = now
        rate = (done - self._first) / max(now - self._start, 1e-9)
        left = f", {(total - done) / rate:.0f} s left" if rate > 0 and done < total else ""
        text = f"{done}/{total} samples, {rate:.1f}/s{left}"
        if self._terminal:
            filled = _BAR * done // max(total, 1)
            sys.stderr.write(f"\r[{'█' * filled}{'·' * (_BAR - filled)}] {text}\x1b[K")
            self._open = True
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        if self._open:
            sys.stderr.write("\n")


class TrainingReporter:
    """Progress of a training run: a line a step on a terminal, one every half minute elsewhere."""

    def __init__(self) -> None:
        self._every = _TERMINAL_SECONDS if sys.stderr.isatty() else _LOG_SECONDS
        self._start = time.monotonic()
        self._shown = -_LOG_SECONDS
        self._first: int | None = None

    def step(self, step: int, steps: int, metrics: Mapping[str, Any]) -> None:
        """After every step; the loss of centred advantages is about 0 and would say nothing."""
        first = self._first = step - 1 if self._first is None else self._first
        rate = (time.monotonic() - self._start) / (step - first)
        values = {"reward": "reward", "mixed": "mixed_groups", "pcmd": "pcmd", "entropy": "entropy"}
        shown = [f"{name} {metrics[key]:.3f}" for name, key in values.items() if metrics.get(key) is not None]
        norm = metrics["grad_norm"]
        shown.append("no update" if norm is None else f"grad {norm:.2e}")
        text = f"step {step}/{steps}  {'  '.join(shown)}  {rate * (steps - step):.0f} s left"
        self._write(text, at_once=step == steps)

    def samples(self, done: int, total: int) -> None:
        """After every committed group of an evaluation."""
        self._write(f"evaluating: {done}/{total} samples", at_once=done == total)

    def _write(self, text: str, at_once: bool) -> None:
        now = time.monotonic()
        if at_once or now - self._shown >= self._every:
            self._shown = now
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
