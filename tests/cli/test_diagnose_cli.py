"""``modebench diagnose`` on the packaged policy."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from modebench.cli.diagnose_command import command
from modebench.errors import UsageError
from modebench.sampling import EngineUnavailable


def test_the_packaged_policy() -> None:
    arguments = ["tiny", "--domain", "graph", "-n", "3", "-k", "8", "--device", "cpu", "--no-progress"]
    done = CliRunner().invoke(command, [*arguments, "--json"], standalone_mode=False, catch_exceptions=False)
    told = json.loads(done.output)
    assert told["profile"] == "compact"
    [cell] = told["cells"].values()
    assert (cell["tasks"], cell["samples"], cell["mei"]["G"]) == (3, 8, 8)
    assert 0 < cell["mei"]["mean"] <= 8
    assert len(cell["groups"]["mei"]) == 3
    for found in cell["coupling"].values():
        assert found["tasks"] >= 1
        assert -1 <= found["cosine_other_mode"] <= found["cosine_same_mode"] <= 1 + 1e-6
        assert 0 < found["largest_strategy"] <= 1
        assert 1 <= found["strategies"] <= 8
    table = CliRunner().invoke(command, arguments, standalone_mode=False, catch_exceptions=False).output
    assert "3 tasks, G = 8" in table
    assert f"mean of ratios {cell['mei']['mean']:.4g}" in table


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(["mock/oracle", "--domain", "graph"], EngineUnavailable), (["tiny", "--domain", "grahp"], UsageError)],
)
def test_what_cannot_be_diagnosed(arguments: list[str], error: type[Exception]) -> None:
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert isinstance(done.exception, error)
    assert "\n" not in str(done.exception)
