import json
import math
import time

import numpy as np
import pandas as pd
import pytest

from modebench.analysis import prompt_table, summarize, summary_document
from modebench.analysis.bootstrap import bootstrap_intervals
from modebench.analysis.intervals import mean_interval, rate_interval


def mixed(make_samples, **columns):
    return make_samples(["AAB.", "AB..", "AAAA", "....", "BC?!"], **columns)


def test_a_cell_holds_what_it_counts(make_samples):
    document = summary_document(mixed(make_samples), reading="published", profile="plain")
    assert document["schema"] == "modebench-summary-v1"
    assert (document["reading"], document["profile"], document["interval"]) == ("published", "plain", 0.95)
    (cell,) = document["cells"]
    assert (cell["domain"], cell["level"], cell["split"]) == ("countdown", 1, "eval")
    assert (cell["prompts"], cell["samples_per_prompt"]) == (5, 4)
    assert cell["graded_per_prompt"] == {"min": 3, "max": 4}
    assert cell["counts"] == {"correct": 11, "incorrect": 7, "malformed": 1, "error": 1, "truncated": 0}
    assert cell["accuracy"]["value"] == pytest.approx((0.75 + 0.5 + 1 + 0 + 2 / 3) / 5)
    pcmd = cell["pcmd"]
    assert pcmd["value"] == pytest.approx((2 / 3 + 1 + 0 + 1) / 4)
    assert (pcmd["n"], pcmd["eligible"], pcmd["reportable"]) == (4, 4, False)
    assert pcmd["sampling_variance"] == 0.0
    assert cell["pass@4"]["n"] == 4
    assert cell["pass@8"] == {
        "value": None,
        "low": None,
        "high": None,
        "n": 0,
        "reason": "no prompt has 8 graded samples",
    }
    assert document["overall"]["pass@8"]["value"] is None
    assert document["overall"]["accuracy"]["value"] == cell["accuracy"]["value"]


def test_keys_of_the_cell(make_samples):
    (cell,) = summary_document(mixed(make_samples))["cells"]
    at_k = [f"{name}@{k}" for name in ("pass", "modes") for k in (1, 2, 4, 8)]
    for name in [
        *("accuracy", *at_k, "distinct_pair_rate", "pcmd", "pcmd_per_group", "effective_modes", "hill_0"),
        *("hill_1", "hill_2", "coverage_good_turing", "chao1", "certified_coverage", "pass@8_group"),
        *("distinct@8_group", "wrong_distinct_pair_rate", "malformed_rate", "truncated_rate", "error_rate"),
        *("duplicate_rate", "tokens", "entropy"),
    ]:
        assert {"value", "low", "high", "n"} <= set(cell[name]), name


def test_intervals_are_those_of_the_interval_module(make_samples):
    samples = mixed(make_samples)
    table = prompt_table(samples)
    (cell,) = summary_document(samples, interval=0.9)["cells"]
    graded = float(table["graded"].sum())
    for name in ("accuracy", "pass@2", "distinct_pair_rate", "coverage_good_turing"):
        want = rate_interval(table[name], graded, 0.9)
        assert [cell[name][k] for k in ("value", "low", "high", "n")] == pytest.approx(list(want))
    for name, upper in (("pcmd", 1), ("modes@2", 2)):
        want = mean_interval(table[name], 0.9, 0, upper)
        assert [cell[name][k] for k in ("value", "low", "high", "n")] == pytest.approx(list(want))


def test_effective_modes_transform_the_interval_of_the_mean(make_samples):
    (cell,) = summary_document(make_samples(["AABB", "AABC", "AAAB"] * 20))["cells"]
    for key in ("value", "low", "high"):
        assert cell["effective_modes"][key] == pytest.approx(1 / (1 - cell["pcmd"][key]))
    assert cell["pcmd"]["reportable"]


def test_effective_modes_are_null_with_a_reason_when_all_answers_differ(make_samples):
    (cell,) = summary_document(make_samples(["ABCD"] * 40))["cells"]
    assert cell["pcmd"]["value"] == 1
    assert cell["effective_modes"]["value"] is None
    assert "every two correct samples differ" in cell["effective_modes"]["reason"]
    assert cell["effective_modes"]["low"] == pytest.approx(1 / (1 - cell["pcmd"]["low"]))
    (none,) = summary_document(make_samples(["A..."] * 40))["cells"]
    assert none["effective_modes"]["reason"] == "no prompt has two correct samples"


def test_collapse_keeps_an_interval_with_width(make_samples):
    (cell,) = summary_document(make_samples(["AAAA"] * 40))["cells"]
    assert cell["pcmd"]["value"] == 0
    assert 0.05 < cell["pcmd"]["high"] < 0.1
    assert cell["effective_modes"]["high"] > 1.05


def test_errors_are_never_wrong_answers(make_samples):
    (cell,) = summary_document(make_samples(["AB", "!!"]))["cells"]
    assert (cell["prompts"], cell["prompts_without_samples"]) == (1, 1)
    assert cell["accuracy"]["value"] == 1
    assert cell["error_rate"]["value"] == 0.5
    assert cell["error_rate"]["n"] == 2


def test_overall_is_the_mean_of_cells_and_null_where_one_is(make_samples):
    easy = make_samples(["AABB"] * 3)
    hard = make_samples(["A..."] * 3).assign(level=2)
    document = summary_document(pd.concat([easy, hard]))
    assert [cell["level"] for cell in document["cells"]] == [1, 2]
    overall = document["overall"]
    assert overall["cells"] == 2
    assert overall["accuracy"]["value"] == pytest.approx((1 + 0.25) / 2)
    assert overall["accuracy"]["low"] < overall["accuracy"]["value"] < overall["accuracy"]["high"]
    assert overall["pcmd"]["value"] is None
    assert overall["pcmd"]["reason"] == "undefined in 1 of 2 cells"
    assert overall["effective_modes"]["value"] is None
    assert overall["modes@2"]["n"] == 2


def finite(node):
    if isinstance(node, dict):
        return all(finite(x) for x in node.values())
    if isinstance(node, list):
        return all(finite(x) for x in node)
    assert node is None or type(node) in (str, int, float, bool)
    return not isinstance(node, float) or math.isfinite(node)


@pytest.mark.parametrize("prompts", [[], ["A"], ["."], ["!"], ["!!", "A"], ["ABCD"] * 3, ["AA", "A"], ["?"]])
def test_documents_are_json_without_nan(make_samples, prompts):
    samples = make_samples(prompts, response="x", output_tokens=np.float32(3), entropy=np.nan, modes=3)
    samples["level"] = samples["level"].astype(np.int32)
    document = summary_document(samples)
    assert finite(document)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_tidy_summary(make_samples):
    samples = pd.concat([mixed(make_samples), mixed(make_samples).assign(level=2)])
    table = summarize(samples, ks=(1, 2))
    assert list(table.columns) == [
        *("domain", "level", "split", "prompts", "samples_per_prompt"),
        *("metric", "value", "low", "high", "n", "reportable"),
    ]
    assert not table.duplicated(["domain", "level", "metric"]).any()
    row = table.set_index(["level", "metric"]).loc[(2, "pcmd")]
    assert row["value"] == pytest.approx(2 / 3)
    assert not row["reportable"]
    assert table["reportable"].sum() == len(table) - 6
    assert table["value"].dtype == np.float64
    assert len(summarize(make_samples([]))) == 0


def test_cells_by_any_column(make_samples):
    samples = pd.concat([mixed(make_samples).assign(arm=a, seed=s) for a in "xy" for s in (1, 2)])
    document = summary_document(samples, by=["arm", "seed"])
    assert len(document["cells"]) == 4
    assert document["overall"] == {}  # no mean across arms
    one = summary_document(samples[(samples["arm"] == "x") & (samples["seed"] == 1)], by=["arm", "domain"])
    assert one["overall"]["cells"] == 1
    with pytest.raises(ValueError, match="tells the runs apart"):
        summary_document(samples, by="arm")
    assert summary_document(samples, by=["seed", "arm"])["cells"][0]["arm"] == "x"


def test_bootstrap_on_request(make_samples):
    samples = mixed(make_samples)
    document = summary_document(samples, bootstrap=200, seed=4)
    assert document["interval_method"] == "bootstrap over prompts"
    [want] = bootstrap_intervals(prompt_table(samples)[["accuracy"]], draws=200, seed=4)
    got = document["cells"][0]["accuracy"]
    assert (got["value"], got["low"], got["high"]) == pytest.approx(want[:3])
    assert document == summary_document(samples, bootstrap=200, seed=4)


def test_warnings(make_samples):
    samples = make_samples(["AAB.", "A!!!", "!!!!"], finish_reason="length")
    samples.loc[samples["task_id"] == "t0001", "split"] = "dev"
    samples["modes"] = 1
    codes = [text.split(":")[0] for text in summary_document(samples)["warnings"]]
    assert codes == ["truncated", "dropped-prompts", "unequal-samples", "mixed-splits", "excess-modes"]
    assert summary_document(samples)["cells"][0]["split"] == "dev+eval"
    assert summary_document(samples)["cells"][0]["certified_coverage"]["uncertified_modes"] == 1


def test_a_hundred_thousand_rows_in_a_second_or_so():
    rng = np.random.default_rng(0)
    prompts, k = 6250, 16
    task = np.repeat(np.arange(prompts), k)
    right = rng.random(prompts * k) < rng.random(prompts)[task]
    samples = pd.DataFrame(
        {
            "task_id": task,
            "domain": np.array(["a", "b", "c", "d", "e"])[task % 5],
            "level": task % 3,
            "sample": np.tile(np.arange(k), prompts),
            "status": np.where(right, "correct", "incorrect"),
            "mode": np.where(right, rng.integers(0, 9, prompts * k).astype(str), None),
            "response": rng.integers(0, 99, prompts * k).astype(str),
        }
    )
    start = time.perf_counter()
    assert len(summary_document(samples)["cells"]) == 15
    # about 0.5 s on one slow core; the bound leaves room for a busy machine
    assert time.perf_counter() - start < 5


def test_repeated_seeds_are_told(make_samples):
    samples = make_samples(["AAB.", "AB.."]).assign(seed=1)
    samples["sample_seed"] = range(8)
    samples.loc[0, "sample_seed"] = None
    assert summary_document(samples)["warnings"] == []
    again = samples.assign(sample_seed=[5, 6, 5, 5, 8, 9, 0, 0])  # 0 stands for an unknown seed
    document = summary_document(again)
    assert document["streams"]["repeated_seeds"] == {"within_prompts": 2, "across_runs": 0}
    assert document["warnings"] == [
        "repeated-seeds: 2 samples have the seed of another sample of their prompt"
    ]


def test_seeds_shared_by_runs_that_claim_to_differ(make_samples):
    one = make_samples(["AAB.", "AB.."]).assign(arm="x", seed=1, sample_seed=range(1, 9))
    shared = one.assign(arm="y")  # arms of one seed share their random numbers on purpose
    by = ["arm", "seed", "domain"]
    assert summary_document(pd.concat([one, shared]), by=by)["warnings"] == []
    document = summary_document(pd.concat([one, one.assign(seed=2)]), by=by)
    assert document["streams"]["repeated_seeds"] == {"within_prompts": 0, "across_runs": 8}
    assert any("in a run of another seed" in text for text in document["warnings"])
