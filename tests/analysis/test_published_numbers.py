"""The published summaries, recomputed from published counts and mode keys."""

import json
from pathlib import Path

import pandas as pd
import pytest

from modebench.analysis import diversity as d
from modebench.analysis import summary_document

DATA = Path(__file__).parents[1] / "data"
KEYS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def lines(name):
    with (DATA / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def null(value):
    return None if value != value else float(value)


@pytest.mark.parametrize("row", lines("conformance/metrics.jsonl"), ids=lambda row: str(row["counts"]))
def test_statistics_of_counts(row):
    counts = row["counts"]
    # one division: the same to the last bit; the rarefied ones are sums, in another order
    assert null(d.pcmd(counts)) == row["d_mode"]
    assert null(d.effective_modes(d.pcmd(counts))) == row["effective_modes"]
    for r in (2, 3, 5):
        want = row[f"rarefied_{r}"]
        assert null(d.rarefied_modes(counts, r)) == (want if want is None else pytest.approx(want, rel=1e-15))


def cell_samples(prompts):
    rows = [
        {"task_id": task, "group": group, "sample": sample, "mode": key, "cell": 0}
        for task, groups in enumerate(prompts)
        for group, keys in enumerate(groups)
        for sample, key in enumerate(keys)
    ]
    table = pd.DataFrame(rows)
    return table.assign(status=table["mode"].notna().map({True: "correct", False: "incorrect"}))


@pytest.mark.parametrize("row", lines("conformance/cells.jsonl"), ids=lambda row: str(len(row["prompts"])))
def test_cells_pooled_and_per_group(row):
    (cell,) = summary_document(cell_samples(row["prompts"]), by="cell")["cells"]
    for name, want in (("pcmd", row["pooled"]), ("pcmd_per_group", row["per_group"])):
        got = cell[name]
        assert got["value"] == pytest.approx(want["d_mode"], rel=1e-14)
        assert got["n"] == want["defined_prompts"]
        assert cell["prompts"] == want["prompts"]
        assert cell["pcmd"]["reportable"] == want["reportable"]
        assert null(d.effective_modes(got["value"])) == pytest.approx(want["effective_modes"], rel=1e-14)
        assert got["value"] + 1 == pytest.approx(want["rarefied_distinct_at_2"], rel=1e-14)
        assert (got["low"] is None) == (want["standard_error"] is None)


def test_published_training_evaluations_are_recomputed_exactly():
    rows = lines("evidence/published-keys-excerpt.jsonl")
    published = {row["c"]: row["published"] for row in rows if row.get("kind") == "cell"}
    samples = [
        {
            "cell": row["c"],
            "task_id": row["i"],
            "group": draw,
            "sample": sample,
            "status": "incorrect" if sign == "." else "correct",
            "mode": None if sign == "." else row["k"][KEYS.index(sign)],
        }
        for row in rows
        if "kind" not in row
        for draw, signs in enumerate(row["d"].split("|"))
        for sample, sign in enumerate(signs)
    ]
    table = pd.DataFrame(samples)
    document = summary_document(table.assign(response=table["mode"]), by="cell")
    assert len(document["cells"]) == len(published) == 6
    for cell in document["cells"]:
        want = published[cell["cell"]]
        assert cell["pcmd"]["value"] == want["pmd"]
        assert cell["pass@8_group"]["value"] == want["pass8"]
        assert cell["distinct@8_group"]["value"] == want["distinct8"]
        assert (cell["pcmd"]["n"], cell["prompts"]) == (want["defined_prompts"], want["prompts"])
        assert cell["pcmd"]["reportable"] == want["reportable"]
    # Those draws shared their seeds. Where keys are diverse enough to tell, the independence test sees it.
    flagged = [w.split(":")[1] for w in document["warnings"] if w.startswith("duplicate-samples")]
    assert flagged == [" cell 22", " cell 44", " cell 58"]
