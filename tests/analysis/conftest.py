"""Small long tables for the analysis tests."""

from collections.abc import Callable, Iterable

import pandas as pd
import pytest

STATUS = {".": "incorrect", "?": "malformed", "!": "error"}


def _samples(prompts: Iterable[Iterable[str]], **columns: object) -> pd.DataFrame:
    """A long table from one string (or list) of modes a prompt.

    A sign of `STATUS` is that status, anything else a correct sample of that mode: "AAB.!" is three correct
    samples in two modes, a wrong one and an error.
    """
    rows = [
        {
            "task_id": f"t{number:04d}",
            "domain": "countdown",
            "level": 1,
            "split": "eval",
            "sample": sample,
            "status": STATUS.get(sign, "correct"),
            "mode": None if sign in STATUS else sign,
        }
        for number, signs in enumerate(prompts)
        for sample, sign in enumerate(signs)
    ]
    names = ["task_id", "domain", "level", "split", "sample", "status", "mode"]
    return pd.DataFrame(rows, columns=names).assign(**columns)


@pytest.fixture(scope="session")
def make_samples() -> Callable[..., pd.DataFrame]:
    return _samples
