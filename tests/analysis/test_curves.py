"""Curves over k and the spectrum of modes."""

import numpy as np
import pandas as pd
import pytest

from modebench.analysis import summary_document
from modebench.analysis.curves import CURVES, curves, mode_spectrum
from modebench.analysis.diversity import rarefied_modes


@pytest.fixture
def samples(make_samples):
    return make_samples(["AAB.", "ABC.", "....", "BB?A", "AB!."])


def values(table, metric):
    return table[table["metric"] == metric].set_index("k")


def test_curves_pass_through_the_points_of_the_summary(samples):
    table = curves(samples)
    (cell,) = summary_document(samples, ks=(1, 2, 3, 4))["cells"]
    assert sorted(table["metric"].unique()) == sorted(CURVES)
    assert list(table.columns) == ["domain", "level", "metric", "k", "value", "low", "high", "n"]
    for name in ("pass@", "modes@"):
        curve = values(table, f"{name}k")
        assert curve.index.tolist() == [1, 2, 3, 4]
        for k in (1, 2, 3, 4):
            got = curve.loc[k, ["value", "low", "high", "n"]].to_dict()
            assert got == {key: cell[f"{name}{k}"][key] for key in got}
    assert values(table, "pass^k")["value"].iloc[0] == cell["accuracy"]["value"]


def test_rarefaction_by_correct_samples(samples):
    curve = values(curves(samples), "rarefied@k")
    # correct counts of the prompts: 2+1, 1+1+1, none, 2+1, 1+1
    assert curve["n"].tolist() == [4, 4, 3, 0]
    want = np.mean([rarefied_modes(c, 2) for c in ([2, 1], [1, 1, 1], [2, 1], [1, 1])])
    assert curve.loc[2, "value"] == pytest.approx(float(want))
    assert curve.loc[3, "value"] == pytest.approx((2 + 3 + 2) / 3)
    assert np.isnan(curve.loc[4, "value"])


def test_accumulation_follows_the_recorded_order(samples):
    curve = values(curves(samples), "found@k")
    # modes among the first k graded attempts: AAB. 1 1 2 2, ABC. 1 2 3 3, .... 0, BB?A 1 1 1 2, AB. 1 2 2
    assert curve["value"].tolist() == pytest.approx([4 / 5, 6 / 5, 8 / 5, 7 / 4])
    assert curve["n"].tolist() == [5, 5, 5, 4]


def test_accumulation_averaged_over_orders_is_modes_at_k(make_samples):
    rng = np.random.default_rng(0)
    shuffled = [make_samples(["".join(rng.permutation(list("AAABBC.."))) for _ in range(400)])]
    table = curves(shuffled[0], ks=(2, 5))
    for k in (2, 5):
        found, expected = values(table, "found@k").loc[k], values(table, "modes@k").loc[k]
        assert found["low"] <= expected["value"] <= found["high"]


def test_spectrum(samples):
    table = mode_spectrum(samples)
    # shares: 2/3 1/3, 1/3 1/3 1/3, (none), 2/3 1/3, 1/2 1/2
    assert table["rank"].tolist() == [1, 2, 3]
    assert table["value"].tolist() == pytest.approx([13 / 24, 9 / 24, 2 / 24])
    assert table["n"].tolist() == [4, 4, 4]
    assert mode_spectrum(samples, min_correct=3)["n"].tolist() == [3, 3, 3]
    assert mode_spectrum(samples)["value"].sum() == pytest.approx(1)


def test_cells_stand_apart(samples):
    both = pd.concat([samples, samples.assign(level=2)])
    table = curves(both, ks=(2,), bootstrap=50)
    assert len(table) == 2 * len(CURVES)
    assert table.groupby("level")["value"].sum().nunique() == 1
    assert curves(samples, ks=(9,))["value"].isna().all()
    with pytest.raises(ValueError, match="positive integer"):
        curves(samples, ks=(0,))


def test_nothing_to_draw(make_samples):
    assert len(curves(make_samples([]))) == 0
    assert len(mode_spectrum(make_samples([]))) == 0
    assert len(mode_spectrum(make_samples(["..", "."]))) == 0
