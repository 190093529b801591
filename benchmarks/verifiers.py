"""Verdicts a second: ours against the published package's public grade, same cases, same run.

    python benchmarks/verifiers.py [--repeat 3]

The published package is installed into an environment of its own (its workers see nothing else).
Each side runs in one process of its own; passes alternate. Cold: every reference is new to the
process. Warm: references were seen before. The figure of a side is its best pass.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VECTORS = ROOT / "tests" / "data" / "conformance"
ENVIRONMENT = ROOT / ".cache" / "published-environment"
PACKAGE = "modebench==0.4.0"

PEER = """
import json, sys, time
from modebench.verifier import grade_response
cases = json.load(open(sys.argv[1]))
grade_response(1, "countdown", {"answer": {"verifier": "countdown", "numbers": [1], "target": 1}}, "1")
for line in sys.stdin:
    rows = cases[line.strip()]
    start = time.perf_counter()
    for level, domain, answer, response in rows:
        grade_response(level, domain, {"answer": answer}, response)
    print(time.perf_counter() - start, flush=True)
"""

OURS = """
import json, sys, time
from modebench.verifiers import verify
from modebench.verifiers.registry import forget_references
cases = json.load(open(sys.argv[1]))
for line in sys.stdin:
    name, cold = line.strip().removesuffix(" cold"), line.strip().endswith(" cold")
    tasks = [({"level": l, "domain": d, "answer": a}, r) for l, d, a, r in cases[name]]
    spent = 0.0
    for task, response in tasks:
        if cold:
            forget_references()
        start = time.perf_counter()
        verify(task, response)
        spent += time.perf_counter() - start
    print(spent, flush=True)
"""


def rows_of(name: str) -> list[dict[str, Any]]:
    with gzip.open(VECTORS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def cases() -> dict[str, list[list[Any]]]:
    """Named case files: [level, domain, answer, response] a row, valid references only."""
    named = {}
    for name in ("graph_coloring", "countdown", "python_factors", "mathir", "pantry_plan"):
        rows = [row for row in rows_of(name) if row["status"] != "invalid_reference"]
        if name == "pantry_plan":
            name, rows = "pantry allocations", [row for row in rows if str(row["level"])[-1] != "1"]
        named[name] = [[row["level"], row["domain"], row["answer"], row["response"]] for row in rows]
    masks, answer = [], None
    for row in rows_of("pantry-level1-projection"):
        answer = row.get("answer") or answer
        masks.append([1, "pantry_plan", answer, row["mask"]])
    named["pantry masks"] = masks
    return named


def published_python() -> Path:
    """The interpreter of an environment that holds the published package, made on first use."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        base = next(name for name in ("python3.11", "python3.12") if _runs(name))
        subprocess.run([base, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PACKAGE], check=True)
    return python


def _runs(name: str) -> bool:
    try:
        return subprocess.run([name, "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


class Side:
    """One grader in a process of its own; asked for a pass, it says how many seconds it took."""

    def __init__(self, python: Path | str, code: str, file: Path) -> None:
        # -I keeps the working folder, and so the other package of this name, off the import path.
        self._process = subprocess.Popen(
            [str(python), "-I", "-c", code, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, request: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    named = cases()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.json"
        file.write_text(json.dumps(named))
        peer, ours = Side(published_python(), PEER, file), Side(sys.executable, OURS, file)
        time.sleep(1)
        titles = ("published/s", "cold/s", "ratio", "warm/s", "ratio")
        print(f"{'cases':20} {'rows':>5} " + " ".join(f"{title:>11}" for title in titles))
        for name, rows in named.items():
            best = {"peer": float("inf"), "cold": float("inf"), "warm": float("inf")}
            for _ in range(repeat):
                best["peer"] = min(best["peer"], peer.seconds(name))
                best["cold"] = min(best["cold"], ours.seconds(f"{name} cold"))
                ours.seconds(name)
                best["warm"] = min(best["warm"], ours.seconds(name))
            rate = {side: len(rows) / seconds for side, seconds in best.items()}
            ratios = (f"{rate[side] / rate['peer']:.1f}×" for side in ("cold", "warm"))
            shown = zip((f"{rate[side]:.0f}" for side in ("cold", "warm")), ratios, strict=True)
            figures = [f"{rate['peer']:.0f}", *(text for pair in shown for text in pair)]
            print(f"{name:20} {len(rows):5} " + " ".join(f"{text:>11}" for text in figures), flush=True)


if __name__ == "__main__":
    main()
