"""The report of 100,000 samples of at most 200 characters: its size, and how long a browser takes to open it.

    python benchmarks/report.py [--samples N] [--output FILE]

Wanted: below 15 MB, and open in less than 2 s. Opening is from the start of the navigation to the end of the
script that lists the first prompts, in headless Chromium; the median of five. The texts are random words and
numbers, which compress worse than answers of a model do.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import pandas as pd

from modebench.analysis.report import Report, render_report
from modebench.analysis.report_figures import report_figures
from modebench.analysis.summary import summary_document, tidy
from modebench.domains import DOMAINS

SAMPLES_PER_PROMPT = 32
WORDS = [
    "so",
    "we",
    "add",
    "multiply",
    "divide",
    "take",
    "the",
    "number",
    "first",
    "second",
    "then",
    "vertex",
    "result",
    "is",
    "equal",
    "to",
]


def make_samples(count: int) -> pd.DataFrame:
    """A long table of random texts of 20 to 200 characters."""
    rng = random.Random(0)
    rows = []
    for place in range(count):
        prompt, sample = divmod(place, SAMPLES_PER_PROMPT)
        words = (rng.choice(WORDS) if rng.random() < 0.7 else str(rng.randrange(1000)) for _ in range(60))
        text = " ".join(words)[: rng.randrange(20, 201)]
        right = rng.random() < 0.5
        rows.append(
            {
                "task_id": f"{DOMAINS[prompt % 5]}/level1/eval/{prompt:04d}",
                "domain": DOMAINS[prompt % 5],
                "level": 1,
                "split": "eval",
                "sample": sample,
                "status": "correct" if right else "incorrect",
                "mode": f"mode {prompt}-{rng.randrange(6)}" if right else None,
                "response": text,
                "finish_reason": "stop",
                "modes": 12,
            }
        )
    return pd.DataFrame(rows)


def make_page(samples: pd.DataFrame) -> str:
    document = summary_document(samples)
    problems = {
        (row.domain, row.level, row.task_id): f"A problem of some length, number {row.task_id}. " * 8
        for row in samples.drop_duplicates("task_id").itertuples()
    }
    figures = report_figures(samples, tidy(document["cells"], 30))
    return render_report(Report("Benchmark", samples, document, figures, problems, {}, [], [], "benchmark"))


def opening_seconds(page: Path, repeats: int = 5) -> list[float]:
    """Seconds until the first prompts are listed, in a browser of its own each time."""
    from playwright.sync_api import sync_playwright

    seconds = []
    with sync_playwright() as started:
        for _ in range(repeats):
            browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            tab = browser.new_page()
            tab.goto(page.absolute().as_uri(), wait_until="commit")
            tab.wait_for_selector("html[data-ready=true]", timeout=60_000)
            # The page's own clock, which does not count the start of the browser.
            seconds.append(tab.evaluate("Number(document.documentElement.dataset.milliseconds)") / 1000)
            browser.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--output", type=Path, help="keep the page here")
    arguments = parser.parse_args()
    samples = make_samples(arguments.samples)
    start = time.perf_counter()
    content = make_page(samples)
    made = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        page = arguments.output or Path(folder) / "report.html"
        page.write_text(content, encoding="utf-8")
        texts = int(samples["response"].str.len().sum())
        print(f"{len(samples)} samples, {texts / 1e6:.1f} MB of responses; page made in {made:.1f} s")
        print(f"size: {page.stat().st_size / 1e6:.1f} MB (wanted: below 15)")
        seconds = opening_seconds(page)
        print(f"opens in {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} (wanted: below 2)")


if __name__ == "__main__":
    main()
