"""Compare our verifiers with the published reference implementation on fresh random pairs and our tasks.

Installs the published package in a private folder, grades every pair with it (in a process of its
own) and with ours, then shows it every listed mode of tasks of all 25 cells. Prints tables, writes each
disagreement as a JSON line, and exits 1 on any.

    python tests/reference/run.py --seed 7
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from modebench.verifiers import InvalidReference, verify  # noqa: E402
from tests.reference.own_tasks import LEVELS, Cell, check_cell, lines  # noqa: E402
from tests.reference.pairs import DOMAINS, Pair, pairs  # noqa: E402

PACKAGE = "modebench==0.4.0"
CACHE = ROOT / ".cache" / "reference"
INTERPRETERS = ("python3.11", "python3.12", sys.executable)
UNSCORABLE = frozenset({"crash", "timeout", "worker_failure", "resource_limit"})
CHUNK = 250
LIMIT_S = 4.0
PATIENT_S = 120.0
"""For our own tasks: the published normal form takes seconds on some, longer on a busy machine."""
SHOWN = 300
"""Characters of a response that the screen shows; the file has it in full."""


class Answer(NamedTuple):
    """What one of the two graders said."""

    status: str
    mode: str | None
    detail: str | None


class Part(NamedTuple):
    """The outcome of one chunk of pairs."""

    domain: str
    counts: Counter[str]
    disagreements: list[dict[str, Any]]


def interpreter() -> tuple[str, str]:
    """An interpreter that the published package supports, and its version such as ``3.11``."""
    for name in INTERPRETERS:
        command = [name, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            continue
        if version in ("3.11", "3.12"):
            return name, version
    raise SystemExit(f"the published package needs Python 3.11 or 3.12; tried {', '.join(INTERPRETERS)}")


def install(version: str) -> Path:
    """The folder with the published package, installed on first use."""
    folder = CACHE / f"{PACKAGE.replace('==', '-')}-py{version}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=CACHE))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--target", str(fresh), "--python-version", version, "--only-binary=:all:", PACKAGE]
        if subprocess.run(command).returncode:
            shutil.rmtree(fresh)
            raise SystemExit(f"cannot install {PACKAGE}: the comparison needs a package index")
        fresh.rename(folder)
    return folder


class Peer:
    """The published implementation in a process of its own."""

    def __init__(self, python: str, folder: str) -> None:
        self.process = subprocess.Popen(
            [python, "-I", "-S", "-W", "ignore", str(ROOT / "tests" / "reference" / "peer.py"), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def grade(self, pair: Pair, limit_s: float = LIMIT_S) -> Answer:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({**pair._asdict(), "limit_s": limit_s}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the published implementation ended on {pair!r}")
        return Answer(*json.loads(line))


def ours(pair: Pair) -> Answer:
    """Our verdict; ``raised`` is always a fault."""
    try:
        return Answer(*verify(pair.task(), pair.response))
    except InvalidReference as error:
        return Answer("invalid_reference" if error.field else "raised", None, str(error))
    except Exception as error:
        return Answer("raised", None, repr(error))


def compare(pair: Pair, we: Answer, they: Answer, counts: Counter[str]) -> dict[str, Any] | None:
    """Count one pair; the record of a disagreement, or None."""
    counts["pairs"] += 1
    counts[we.status] += 1
    scorable = they.status not in UNSCORABLE
    counts["compared" if scorable else "not comparable"] += 1
    same = we[:2] == they[:2] if scorable else we.status != "raised"
    if same:
        counts["agreed"] += scorable
        return None
    counts["disagreed"] += 1
    return {**pair._asdict(), "ours": list(we), "published": list(they)}


_peer: Peer | None = None


def _start(python: str, folder: str) -> None:
    global _peer
    _peer = Peer(python, folder)


def grade_chunk(chunk: tuple[int, str, int, int]) -> Part:
    seed, domain, start, stop = chunk
    assert _peer is not None
    counts: Counter[str] = Counter()
    found = [
        compare(pair, ours(pair), _peer.grade(pair), counts)
        for pair in pairs(seed, domain, stop, start=start)
    ]
    return Part(domain, counts, [record for record in found if record is not None])


def grade_cell(cell: tuple[str, int, int, int]) -> Cell:
    assert _peer is not None
    return check_cell(*cell, partial(_peer.grade, limit_s=PATIENT_S))


COLUMNS = (
    *("pairs", "compared", "agreed", "disagreed", "not comparable"),
    *("correct", "incorrect", "malformed", "invalid_reference"),
)


def table(parts: Sequence[Part]) -> str:
    """One line a domain, then the total."""
    total: Counter[str] = Counter()
    lines = [" ".join(["domain".ljust(15), *(name.rjust(max(8, len(name))) for name in COLUMNS)])]
    for domain in dict.fromkeys(part.domain for part in parts):
        counts: Counter[str] = sum((part.counts for part in parts if part.domain == domain), Counter())
        total += counts
        lines.append(_row(domain, counts))
    return "\n".join([*lines, _row("all", total)])


def _row(name: str, counts: Counter[str]) -> str:
    return " ".join([name.ljust(15), *(str(counts[key]).rjust(max(8, len(key))) for key in COLUMNS)])


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=5_000, help="pairs a domain (MathIR: a third of them)")
    parser.add_argument(
        "--tasks", type=int, default=50, help="our tasks a cell, with all their modes (MathIR: two fifths)"
    )
    parser.add_argument(
        "--domain", choices=DOMAINS, action="append", help="only this domain; may be repeated"
    )
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--out", type=Path, default=CACHE / "disagreements.jsonl")
    return parser.parse_args(argv)


def own_cells(options: argparse.Namespace) -> list[tuple[str, int, int, int]]:
    """Domain, level, number of tasks and seed of every cell."""
    return [
        (domain, level, options.tasks * 2 // 5 if domain == "mathir" else options.tasks, options.seed)
        for domain in options.domain or DOMAINS
        for level in LEVELS
    ]


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    python, version = interpreter()
    folder = install(version)
    chunks = [
        (options.seed, domain, start, min(size, start + CHUNK))
        for domain in options.domain or DOMAINS
        for size in [options.pairs // 3 if domain == "mathir" else options.pairs]
        for start in range(0, size, CHUNK)
    ]
    with ProcessPoolExecutor(options.jobs, initializer=_start, initargs=(python, str(folder))) as pool:
        parts = list(pool.map(grade_chunk, chunks))
        cells = list(pool.map(grade_cell, own_cells(options)))
    print(f"{PACKAGE} on Python {version}, seed {options.seed}")
    print(table(parts))
    print("\n".join(["", *lines(cells)]))
    found = [record for part in parts for record in part.disagreements]
    found += [{"domain": cell.domain, **fault} for cell in cells for fault in cell.faults]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("".join(json.dumps(record) + "\n" for record in found))
    for record in found[:20]:
        print(f"{record['domain']}: {record.get('response', '')[:SHOWN]!r}\n  ours {record['ours']}")
        print(f"  published {record['published']}")
    if found:
        print(f"{len(found)} disagreements, all in {options.out}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
