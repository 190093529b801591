import numpy as np
import pandas as pd
import pytest

from modebench.analysis import prompt_table
from modebench.analysis.long_table import over_counts, read_long_table
from modebench.analysis.prompts import checked_ks, default_ks


def test_one_row_a_prompt_with_its_counts(make_samples):
    table = prompt_table(make_samples(["AAB.", "..?!", "!!!!"]))
    assert table["task_id"].tolist() == ["t0000", "t0001", "t0002"]
    assert table["graded"].tolist() == [4, 3, 0]
    counts = table[["samples", "correct", "incorrect", "malformed", "error", "modes_found"]]
    assert counts.to_numpy().tolist() == [[4, 3, 1, 0, 0, 2], [4, 0, 2, 1, 1, 0], [4, 0, 0, 0, 4, 0]]
    assert table["accuracy"].tolist()[:2] == [0.75, 0.0]
    assert table["pcmd"][0] == pytest.approx(2 / 3)
    assert table["error_rate"].tolist() == [0, 0.25, 1]
    undefined = table.loc[2].drop(["error_rate", "task_id", "domain", "level", "split"])
    assert undefined.loc["accuracy":].isna().all()


def test_k_beyond_the_samples_is_undefined_per_prompt(make_samples):
    table = prompt_table(make_samples(["AAB.", "AB", "A!!!"]), ks=[2, 4])
    assert table["pass@2"].isna().tolist() == [False, False, True]
    assert table["modes@4"].isna().tolist() == [False, True, True]
    assert table["modes@4"][0] == 2


def test_ks():
    assert default_ks(0) == (1, 2, 4, 8)
    assert default_ks(16) == (1, 2, 4, 8, 16)
    assert checked_ks([4, 1, 4], 9) == (1, 4)
    for bad in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match="positive integer"):
            checked_ks([bad], 9)


def test_rows_in_any_order_with_any_index(make_samples):
    samples = make_samples(["AAB.", "..?!"])
    shuffled = samples.sample(frac=1, random_state=1).set_axis(range(90, 98), axis=0)
    pd.testing.assert_frame_equal(prompt_table(samples), prompt_table(shuffled))


def test_truncation_tokens_and_entropy(make_samples):
    samples = make_samples(["AB.!"]).assign(
        finish_reason=["stop", "length", None, "length"],
        output_tokens=[10, 20, 60, 999],
        entropy=[0.5, None, 1.5, 9.0],
    )
    row = prompt_table(samples).loc[0]
    assert row["truncated"] == 1  # an error is no answer that was cut off
    assert row["truncated_rate"] == pytest.approx(1 / 3)
    assert row["tokens"] == 30
    assert row["entropy"] == 1.0
    bare = prompt_table(make_samples(["AB.!"])).loc[0]
    assert bare[["truncated_rate", "tokens", "entropy", "duplicate_rate"]].isna().all()


def test_repeated_texts(make_samples):
    samples = make_samples(["AAA...!!", "ABC"]).assign(
        response=["x", "x", "y", "w", "w", "v", "x", "x", "p", "q", None]
    )
    table = prompt_table(samples)
    assert table["duplicate_rate"].tolist() == [2 / 6, 0]
    assert table["wrong_distinct_pair_rate"][0] == pytest.approx(2 / 3)
    assert np.isnan(table["wrong_distinct_pair_rate"][1])


def test_certified_coverage_counts_listed_modes_only(make_samples):
    samples = make_samples(["AABU", "ABC.", "AB..", "...."])
    samples = samples.assign(listed=samples["mode"] != "U", modes=[4] * 4 + [2] * 4 + [np.nan] * 4 + [5] * 4)
    table = prompt_table(samples)
    assert table["certified_coverage"].tolist()[:2] == [0.5, 1.0]  # never above all of them
    assert table["uncertified_modes"].tolist() == [1, 1, 0, 0]
    assert table["excess_modes"].tolist() == [0, 1, 0, 0]
    assert np.isnan(table["certified_coverage"][2])
    assert table["certified_coverage"][3] == 0
    every = prompt_table(samples.drop(columns="listed"))
    assert every["certified_coverage"][0] == 0.75
    unknown = prompt_table(samples.assign(listed=None))
    pd.testing.assert_frame_equal(every, unknown)


def test_per_group_forms(make_samples):
    samples = make_samples(["AAB.CC..", "........"])
    samples["group"] = samples["sample"] // 4
    table = prompt_table(samples, group_size=4)
    assert table["pass@4_group"].tolist() == [1, 0]
    assert table["distinct@4_group"].tolist() == [1.5, 0]
    assert table["pcmd_per_group"][0] == pytest.approx((2 / 3 + 0) / 2)
    assert table["pcmd"][0] == pytest.approx(1 - 4 / 20)
    assert prompt_table(samples)["pass@8_group"].isna().all()  # no group of 8
    whole = prompt_table(samples.drop(columns="group"))
    assert whole["distinct@8_group"].tolist() == [3, 0]
    np.testing.assert_array_equal(whole["pcmd"], whole["pcmd_per_group"])


def test_sample_numbers_may_restart_in_every_group(make_samples):
    samples = make_samples(["AAB.CC.."])
    samples["group"] = samples["sample"] // 4
    restarted = samples.assign(sample=samples["sample"] % 4)
    pd.testing.assert_frame_equal(prompt_table(samples), prompt_table(restarted))


def test_prompts_are_told_apart_by_the_grouping_columns(make_samples):
    samples = make_samples(["AB"])
    both = pd.concat([samples.assign(model="x"), samples.assign(model="y", level=2)])
    assert len(prompt_table(both, by="model")) == 2
    keys = ["model", "domain", "level", "split", "task_id"]
    assert list(prompt_table(both, by="model").columns[:5]) == keys


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: s.drop(columns=["mode", "level"]), r"lacks the columns \['level', 'mode'\]"),
        (lambda s: s.assign(status="right"), "unknown status"),
        (lambda s: s.assign(status=None), "unknown status"),
        (lambda s: s.assign(mode=None), "row 0: a correct sample needs a mode"),
        (lambda s: pd.concat([s, s]), "same sample of the same task"),
        (lambda s: s.assign(sample=0), "same sample of the same task"),
    ],
)
def test_tables_that_make_no_sense_are_refused(make_samples, change, text):
    with pytest.raises(ValueError, match=text):
        prompt_table(change(make_samples(["AB."])))


def test_grouping_needs_a_column(make_samples):
    with pytest.raises(ValueError, match="at least one column"):
        prompt_table(make_samples(["AB."]), by=[])


def test_an_empty_table_has_no_prompts(make_samples):
    assert len(prompt_table(make_samples([]))) == 0


def test_a_mode_on_a_sample_that_is_not_correct_is_ignored(make_samples):
    samples = make_samples(["AB.!"])
    tagged = samples.assign(mode=samples["mode"].fillna("ghost"))
    pd.testing.assert_frame_equal(prompt_table(samples), prompt_table(tagged))


def test_blocks_of_counts_cover_every_row(monkeypatch):
    monkeypatch.setattr("modebench.analysis.long_table._BLOCK", 6)
    widths = [3, 0, 1, 5, 2, 0, 4]
    row = np.repeat(np.arange(7), widths)
    count = np.arange(1, len(row) + 1)
    got = over_counts(row, count, 7, lambda dense, block: {"sum": dense.sum(1) + 100.0 * block})
    want = [count[row == r].sum() + 100 * r for r in range(7)]
    assert got["sum"].tolist() == want


def test_categories_and_text_dtypes(make_samples):
    samples = make_samples(["AB.", "A?!"])
    categorical = samples.astype(dict.fromkeys(["task_id", "domain", "status", "mode"], "category"))
    got, want = prompt_table(categorical), prompt_table(samples)
    pd.testing.assert_frame_equal(got.astype({"task_id": object, "domain": object}), want, check_dtype=False)
    assert read_long_table(categorical).prompt.tolist() == [0, 0, 0, 1, 1, 1]
