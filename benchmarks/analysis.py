"""Time and memory from a million samples to their numbers.

Makes a run folder of ``--samples`` responses of up to ``--bytes`` letters in a temporary folder, then in
processes of their own, so that each peak of memory is its own: reads it with nothing but the JSON Lines,
reads it again beside the columnar copy that the first reading left, summarises, and summarises with the
bootstrap.

    python benchmarks/analysis.py                      # 1,000,000 samples, 2,000 bootstrap draws
    python benchmarks/analysis.py --samples 100000
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from modebench.config import EvalConfig, Selection, record_of
from modebench.runs import RunFolder, file_sha256, json_line
from modebench.samples import load_run
from modebench.tasks import Task

# Each stage reads the run first; only the first one finds no columnar copy beside it.
STAGES = ("cold", "cached", "summarize", "bootstrap")


def make_run(path: Path, samples: int, length: int, per_task: int = 64) -> None:
    """A graded run folder of level-1 tasks, with texts that are as long as asked for at most.

    The verdicts are drawn, not judged: what is measured here is reading and counting.
    """
    tasks = [task for tasks in Selection().load() for task in tasks]
    per_task = max(per_task, -(-samples // len(tasks)))
    config = EvalConfig(samples=per_task)
    sets = [{"name": s.name, "count": len(s), "sha256": s.sha256} for s in Selection().load()]
    recorded = {"model": "mock/uniform", "engine": {}, **record_of(config), "task_sets": sets}
    run = RunFolder.create(path, {"status": "success", **recorded})
    rng = random.Random(0)
    letters = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz 0123456789+-*/", k=1 << 16))
    written = 0
    with (
        run.responses_path.open("wb", buffering=1 << 20) as responses,
        run.verdicts_path("published").open("wb", buffering=1 << 20) as verdicts,
    ):
        for task in tasks:
            for sample in range(min(per_task, samples - written)):
                response, verdict = _records(task, sample, rng, letters, length)
                responses.write(json_line(response))
                verdicts.write(json_line(verdict))
                written += 1
    run.update(graded={"published": {"responses_sha256": file_sha256(run.responses_path)}})


def _records(
    task: Task, sample: int, rng: random.Random, letters: str, length: int
) -> tuple[dict[str, object], dict[str, object]]:
    start, size = rng.randrange(len(letters) - length), rng.randint(length // 8, length)
    status = rng.choices(("correct", "incorrect", "malformed"), (3, 4, 1))[0]
    place: dict[str, object] = {"task_id": task.id, "sample": sample}
    response = {
        "task_id": task.id, "domain": task.domain, "level": task.level, "split": task.split,
        "sample": sample, "group": 0, "seed": rng.getrandbits(63), "response": letters[start : start + size],
        "finish_reason": "stop", "input_tokens": 120, "output_tokens": size // 4,
        "logprob": -rng.random() * size, "entropy": rng.random(), "reasoning": None, "error": None,
    }  # fmt: skip
    mode = f"mode-{rng.randrange(12)}" if status == "correct" else None
    detail = None if status == "correct" else f"drawn as {status}"
    return response, {**place, "status": status, "mode": mode, "detail": detail}


def measure(stage: str, path: Path, draws: int) -> None:
    """Run one stage in this process; print its seconds by the clock and of the processor, and the peak."""
    import modebench as mb

    run = load_run(path)
    start, started = time.perf_counter(), time.process_time()
    samples = run.samples(texts=False)
    if stage in ("summarize", "bootstrap"):
        mb.summarize(samples, bootstrap=draws if stage == "bootstrap" else 0)
    seconds, busy = time.perf_counter() - start, time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{stage:10} {seconds:6.2f} s  {busy:6.2f} s  {peak:7.0f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=1_000, help="letters of the longest response")
    parser.add_argument("--draws", type=int, default=2_000, help="bootstrap draws")
    parser.add_argument("--folder", type=Path, help="keep the run here, or use the one that is here")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.stage:
        measure(asked.stage, asked.folder, asked.draws)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch) / "run"
        if not folder.exists():
            make_run(folder, asked.samples, asked.bytes)
        for copy in folder.glob("*.npz"):
            copy.unlink()
        size = (folder / "responses.jsonl").stat().st_size / 2**20
        print(f"responses.jsonl of {size:.0f} MiB: clock, processor, peak of memory", flush=True)
        for stage in STAGES:
            command = [sys.executable, __file__, "--folder", folder, "--draws", str(asked.draws)]
            subprocess.run([*map(str, command), "--stage", stage], check=True)


if __name__ == "__main__":
    main()
