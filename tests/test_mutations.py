"""tests/mutations/run.py: every planted fault still fits the code, and names tests that there are."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_planted_fault_fits_the_code_once() -> None:
    mutations = runpy.run_path(str(ROOT / "tests/mutations/run.py"), run_name="mutations")["MUTATIONS"]
    for fault in mutations:
        code = (ROOT / "modebench" / fault.file).read_text()
        assert code.count(fault.old) == 1, (fault.file, fault.old)
        compile(code.replace(fault.old, fault.new), fault.file, "exec")
        assert (ROOT / fault.tests).exists(), fault.tests
