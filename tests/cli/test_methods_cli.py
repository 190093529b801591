"""``modebench methods``."""

from __future__ import annotations

import json

from modebench.training.methods import METHODS
from tests.conftest import Command


def test_the_list(modebench: Command) -> None:
    done = modebench("methods")
    assert done.returncode == 0, done.stderr
    for method in METHODS.values():
        assert method.id in done.stdout
        assert method.formula in done.stdout
        assert method.source in done.stdout
    records = json.loads(modebench("methods", "--json").stdout)
    assert [record["id"] for record in records] == list(METHODS)
    defaults = {record["id"]: record["defaults"] for record in records}
    assert defaults["re_max"]["replay"]["coefficient"] == 0.1
    assert set(records[0]) == {"id", "name", "parts", "formula", "defaults", "source"}


def test_one_method(modebench: Command) -> None:
    shown = modebench("methods", "re_dr").stdout
    assert "replay.normaliser=published\n" in shown
    assert "surrogate.epsilon_high=none\n" in shown
    assert json.loads(modebench("methods", "re_dr", "--json").stdout)["parts"] == [
        "advantage",
        "replay",
        "surrogate",
    ]


def test_an_unknown_method(modebench: Command) -> None:
    done = modebench("methods", "remax")
    assert done.returncode == 2
    assert done.stderr == "error: no method is called 'remax'; did you mean 're_max'?\n"
