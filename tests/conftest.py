"""What several test modules share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def modebench(tmp_path: Path) -> Command:
    """Run the real command line in a folder of its own."""

    def run(
        *arguments: object, stdin: str | None = None, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "modebench", *map(str, arguments)],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
