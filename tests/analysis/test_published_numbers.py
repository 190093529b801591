"""The published summaries, recomputed from published counts and mode keys."""

import gzip
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


@pytest.fixture(scope="module")
def evidence():
    """The published training evaluations: what each of 37 cells states, and its samples."""
    with gzip.open(DATA / "evidence" / "published-keys.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    stated = {row["c"]: row for row in rows if row.get("kind") == "cell"}
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
    return stated, pd.DataFrame(samples)


@pytest.fixture(scope="module")
def document(evidence):
    return summary_document(evidence[1], by="cell", distinct_streams=True)


def test_published_training_evaluations_are_recomputed_exactly(evidence, document):
    stated, _ = evidence
    assert len(document["cells"]) == len(stated) == 37
    for cell in document["cells"]:
        want = stated[cell["cell"]]["published"]
        for name, value in (("pcmd", "pmd"), ("pass@8_group", "pass8"), ("distinct@8_group", "distinct8")):
            if want[value] is None:
                assert cell[name]["value"] is None
            else:
                assert cell[name]["value"] == pytest.approx(want[value], abs=1e-12)
        assert (cell["pcmd"]["n"], cell["prompts"]) == (want["defined_prompts"], want["prompts"])
        assert cell["pcmd"]["reportable"] == want["reportable"]


def test_the_overlap_of_the_published_draws_is_found(document):
    """Four draws of 8, each the one before shifted by a place: 11 streams, with copies at lags of 7."""
    streams = document["streams"]
    assert (streams["positions"], streams["distinct"]) == (32, 11)
    assert [entry["lag"] for entry in streams["lags"]] == [7, 14, 21]
    assert all(entry["agreement"] > entry["chance"] + 0.05 for entry in streams["lags"])
    warned = [text for text in document["warnings"] if text.startswith("duplicate-samples")]
    assert len(warned) == 19
    assert all("the 32 samples are 11 distinct streams" in text for text in warned)


def test_numbers_on_distinct_streams_stand_beside_the_published_ones(evidence, document):
    """The corrected values were derived elsewhere, from the known seeds, to ten decimals."""
    stated, _ = evidence
    moved = 0
    for cell in document["cells"]:
        want, corrected = stated[cell["cell"]], cell["distinct_streams"]
        assert cell["accuracy"]["value"] == pytest.approx(want["derived_mean8_ours"], abs=1e-10)
        assert corrected["samples"] == 11
        assert corrected["pcmd"]["n"] == want["derived_defined_11_ours"] <= cell["pcmd"]["n"]
        derived = want["derived_pmd_first_of_each_stream_11_ours"]
        assert corrected["pcmd"]["value"] == (
            derived if derived is None else pytest.approx(derived, abs=1e-10)
        )
        moved += derived is not None and derived > cell["pcmd"]["value"] + 0.05
    assert moved >= 10  # copies count as pairs of one mode, which pulls PCMD down


def test_the_corrected_values_are_those_of_the_known_streams(evidence, document):
    """To the last bit: sample i of draw j is stream i + j."""
    _, samples = evidence
    stream = samples["group"] + samples["sample"]
    known = samples[~samples.assign(stream=stream).duplicated(["cell", "task_id", "stream"])]
    again = summary_document(known, by="cell")
    for cell, want in zip(document["cells"], again["cells"], strict=True):
        for name in ("accuracy", "pass@8", "modes@8", "pcmd", "chao1", "distinct_pair_rate"):
            assert cell["distinct_streams"][name] == want[name]
