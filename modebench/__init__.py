"""ModeBench: measure solution-mode collapse, and compare the cures.

The public Python API; names are imported when they are first used, so that ``import modebench`` needs
neither pandas nor torch.

>>> import modebench as mb
>>> task = mb.load_tasks("countdown")[0]
>>> mb.verify(task, "no idea").status
'malformed'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from modebench.analysis import plots as plots
    from modebench.analysis.compare import compare
    from modebench.analysis.curves import curves, mode_spectrum
    from modebench.analysis.gradient_bearing import gradient_bearing
    from modebench.analysis.learn_retain import learn_retain
    from modebench.analysis.overhead import overhead
    from modebench.analysis.power import power
    from modebench.analysis.proposal_rates import proposal_rates
    from modebench.analysis.summary import prompt_table, summarize
    from modebench.analysis.teachability import asked_again, teachability
    from modebench.config import EvalConfig, Selection
    from modebench.errors import InputError, UsageError
    from modebench.evaluation import evaluate
    from modebench.results import load_results
    from modebench.samples import load_run, load_runs, load_samples
    from modebench.sampling import load_engine
    from modebench.sampling.base import GenerationSettings
    from modebench.tasks import Task, TaskSet, load_tasks, read_tasks, write_tasks
    from modebench.training_runs import load_training
    from modebench.verifiers import InvalidReference, Verdict, verify, verify_many

_HOMES = {
    "EvalConfig": "modebench.config",
    "GenerationSettings": "modebench.sampling.base",
    "InputError": "modebench.errors",
    "InvalidReference": "modebench.verifiers",
    "Selection": "modebench.config",
    "Task": "modebench.tasks",
    "TaskSet": "modebench.tasks",
    "UsageError": "modebench.errors",
    "Verdict": "modebench.verifiers",
    "asked_again": "modebench.analysis.teachability",
    "compare": "modebench.analysis.compare",
    "curves": "modebench.analysis.curves",
    "evaluate": "modebench.evaluation",
    "gradient_bearing": "modebench.analysis.gradient_bearing",
    "learn_retain": "modebench.analysis.learn_retain",
    "load_engine": "modebench.sampling",
    "load_results": "modebench.results",
    "load_run": "modebench.samples",
    "load_runs": "modebench.samples",
    "load_samples": "modebench.samples",
    "load_tasks": "modebench.tasks",
    "load_training": "modebench.training_runs",
    "mode_spectrum": "modebench.analysis.curves",
    "overhead": "modebench.analysis.overhead",
    "power": "modebench.analysis.power",
    "prompt_table": "modebench.analysis.summary",
    "proposal_rates": "modebench.analysis.proposal_rates",
    "read_tasks": "modebench.tasks",
    "summarize": "modebench.analysis.summary",
    "teachability": "modebench.analysis.teachability",
    "verify": "modebench.verifiers",
    "verify_many": "modebench.verifiers",
    "write_tasks": "modebench.tasks",
}

__all__ = [
    "EvalConfig",
    "GenerationSettings",
    "InputError",
    "InvalidReference",
    "Selection",
    "Task",
    "TaskSet",
    "UsageError",
    "Verdict",
    "__version__",
    "asked_again",
    "compare",
    "curves",
    "evaluate",
    "gradient_bearing",
    "learn_retain",
    "load_engine",
    "load_results",
    "load_run",
    "load_runs",
    "load_samples",
    "load_tasks",
    "load_training",
    "mode_spectrum",
    "overhead",
    "power",
    "prompt_table",
    "proposal_rates",
    "read_tasks",
    "summarize",
    "teachability",
    "verify",
    "verify_many",
    "write_tasks",
]


# Public names that are modules themselves; not in `__all__`, since figures need an extra.
_MODULES = {"plots": "modebench.analysis.plots"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'modebench' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
