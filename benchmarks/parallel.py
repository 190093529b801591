"""Verdicts a second of `verify_many`: several processes against one, on a million mixed responses.

    python benchmarks/parallel.py [--responses 1000000] [--processes 2]

Responses to the frozen level-1 tasks of all domains: uniform well-formed answers, listed solutions with
some words before them, and texts without an answer, in random order. Wall-clock time of each, best of
`--repeat`, alternating; both sides judge the same list and must agree.
"""

from __future__ import annotations

import argparse
import random
import time
from itertools import islice

from modebench.domains import DOMAINS, get_domain
from modebench.tasks import Task, load_tasks
from modebench.verifiers import verify_many

SOLUTIONS = 32


def mixed(count: int, rng: random.Random) -> list[tuple[Task, str]]:
    """Random (task, response) pairs."""
    tasks = [task for name in DOMAINS for task in load_tasks(name)]
    solutions = {
        task.id: [
            s.answer for s in islice(get_domain(task.domain).solutions(task.reference, task.level), SOLUTIONS)
        ]
        for task in tasks
    }
    pairs = []
    for number in range(count):
        task = rng.choice(tasks)
        kind = rng.random()
        if kind < 0.5:
            text = get_domain(task.domain).random_answer(rng, task.reference, task.level)
        elif kind < 0.8:
            text = f"Attempt {number}: {rng.choice(solutions[task.id])}"
        else:
            text = f"Let me see. I tried {number} ways, and none of them works out. " * 4
        pairs.append((task, text))
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--responses", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    pairs = mixed(options.responses, random.Random(options.seed))
    best = {1: float("inf"), options.processes: float("inf")}
    verdicts = {}
    for _ in range(options.repeat):
        for processes in best:
            start = time.perf_counter()
            verdicts[processes] = verify_many(pairs, processes=processes)
            best[processes] = min(best[processes], time.perf_counter() - start)
    if verdicts[1] != verdicts[options.processes]:
        raise SystemExit("the verdicts of one process and of several differ")
    for processes, seconds in best.items():
        print(f"{processes} process(es): {seconds:.1f} s, {len(pairs) / seconds:,.0f} verdicts a second")
    print(f"ratio {best[1] / best[options.processes]:.2f}×")


if __name__ == "__main__":
    main()
