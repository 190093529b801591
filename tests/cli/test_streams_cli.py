"""Copies among the samples, from a file of graded samples to the table."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.conftest import Command

EVIDENCE = Path(__file__).parents[1] / "data" / "evidence" / "published-keys.jsonl.gz"
KEYS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def write_evidence(path: Path) -> None:
    """The published evaluations as a bare file of judged samples, every cell with tasks of its own."""
    with gzip.open(EVIDENCE, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    domains = {row["c"]: row["domain"] for row in rows if row.get("kind") == "cell"}
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            if "kind" in row:
                continue
            place = {"task_id": f"{row['c']}/{row['i']}", "domain": domains[row["c"]], "level": 1}
            for sample, sign in enumerate(row["d"].replace("|", "")):
                mode = None if sign == "." else row["k"][KEYS.index(sign)]
                verdict = {"status": "correct" if mode else "incorrect", "mode": mode}
                out.write(json.dumps({**place, "sample": sample, **verdict}) + "\n")


def test_summarize_finds_the_streams_and_corrects(modebench: Command, tmp_path: Path) -> None:
    write_evidence(tmp_path / "evidence.jsonl")
    shown = modebench("summarize", "evidence.jsonl", "--distinct-streams")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("on 11 distinct streams of 32") == 5
    assert "the 32 samples are 11 distinct streams" in shown.stdout
    plain = modebench("summarize", "evidence.jsonl")
    assert "on 11 distinct streams" not in plain.stdout
    asked = ("summarize", "evidence.jsonl", "--distinct-streams", "--format", "json")
    document = json.loads(modebench(*asked).stdout)
    assert [entry["lag"] for entry in document["streams"]["lags"]] == [7, 14, 21]
    for cell in document["cells"]:
        assert cell["distinct_streams"]["pcmd"]["n"] <= cell["pcmd"]["n"]
