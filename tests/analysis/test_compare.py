import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from modebench.analysis.compare import compare, comparison_document
from modebench.analysis.comparison_table import render_comparison
from modebench.analysis.intervals import clustered_limits
from modebench.analysis.sign_flip import holm, sign_flip_p
from modebench.errors import UsageError

A = ["AAB.", "AB..", "....", "A...", "...."]
B = ["AAAA", "CD..", "E...", "....", "...."]


def cell_of(a, b, **options):
    document = comparison_document(a, b, **options)
    [cell] = document["cells"]
    return cell


def test_differences_by_hand(make_samples):
    cell = cell_of(make_samples(A), make_samples(B))
    assert (cell["domain"], cell["level"], cell["prompts"], cell["pairs"]) == ("countdown", 1, 5, 5)
    accuracy = cell["accuracy"]
    differences = np.array([0.25, 0.0, 0.25, -0.25, 0.0])
    assert accuracy["a"] == pytest.approx(0.3)
    assert accuracy["b"] == pytest.approx(0.35)
    assert accuracy["difference"] == pytest.approx(differences.mean())
    want = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (accuracy["low"], accuracy["high"]) == pytest.approx((want.low, want.high))
    assert accuracy["n"] == 5
    assert accuracy["p"] == 1  # every sum of +-.25, +-.25, +-.25 is as far from 0 as this one


def test_pcmd_is_compared_where_both_define_it(make_samples):
    cell = cell_of(make_samples(A), make_samples(B))
    pcmd = cell["pcmd"]
    assert pcmd["n"] == 2
    assert pcmd["a"] == pytest.approx((2 / 3 + 1) / 2)
    assert pcmd["b"] == pytest.approx((0 + 1) / 2)
    assert (pcmd["eligible_a"], pcmd["eligible_b"], pcmd["reportable"]) == (0.4, 0.4, False)
    document = comparison_document(make_samples(["AA"] * 10), make_samples(["AA"] * 8 + ["A."] * 2))
    [warning] = document["warnings"]
    assert "eligibility: domain countdown, level 1: PCMD is defined on 100% of A's prompts and 80%" in warning
    assert not comparison_document(make_samples(["AA"] * 10), make_samples(["AA"] * 9 + ["A."]))["warnings"]


def test_outcomes_by_hand(make_samples):
    found = cell_of(make_samples(A), make_samples(B))["outcomes"]
    assert found["prompts"] == {"learned": 1, "retained": 2, "lost": 1, "never": 1}
    # AAB -> AAAA keeps A, loses B; AB -> CD; nothing -> E; A -> nothing
    assert found["modes"] == {"gained": 3, "kept": 1, "lost": 4}
    miss_one, miss_two = 1 / 2, (4 * 3) / (8 * 7)  # C(8 - c, 4) / C(8, 4)
    expected = found["prompts_expected"]
    # seven and four of eight correct; one; one; none
    learned = 0 + 1 / 70 + miss_one + miss_one
    assert expected["learned"] == expected["lost"] == pytest.approx(learned)
    assert expected["retained"] == pytest.approx(4 - 2 * learned)
    assert expected["never"] == 1
    # modes of 6, 1, 1, 1, 1, 1, 1, 1 samples; none of two
    assert found["modes_expected"]["gained"] == pytest.approx(7 * miss_one)
    assert miss_two > 0


def test_one_policy_shows_what_is_expected_of_one(make_samples):
    rng = np.random.default_rng(4)
    weights = rng.dirichlet([0.4] * 6, size=400)

    def draw():
        return ["".join(rng.choice(list("ABCD.?"), size=8, p=w)) for w in weights]

    found = cell_of(make_samples(draw()), make_samples(draw()))["outcomes"]
    for kind in ("prompts", "modes"):
        for name, count in found[kind].items():
            expected = found[f"{kind}_expected"][name]
            assert abs(count - expected) < 4 * np.sqrt(expected + 1), (kind, name)


def test_comparing_the_other_way_round_changes_signs_only(make_samples):
    a, b = make_samples(A), make_samples(B)
    forth, back = cell_of(a, b), cell_of(b, a)
    for name, entry in forth.items():
        if isinstance(entry, dict) and "difference" in entry and entry["n"]:
            other = back[name]
            assert entry["difference"] == pytest.approx(-other["difference"])
            assert (entry["a"], entry["p"]) == pytest.approx((other["b"], other["p"]))
            if entry["low"] is not None:
                assert (entry["low"], entry["high"]) == pytest.approx((-other["high"], -other["low"]))
    assert forth["outcomes"]["prompts"]["learned"] == back["outcomes"]["prompts"]["lost"]
    assert forth["outcomes"]["modes"]["gained"] == back["outcomes"]["modes"]["lost"]


def test_order_of_rows_makes_no_difference(make_samples):
    a, b = make_samples(A), make_samples(B)
    shuffled = b.sample(frac=1, random_state=1)
    assert comparison_document(a, b) == comparison_document(a, shuffled)


def test_a_difference_of_nothing_keeps_width(make_samples):
    cell = cell_of(make_samples(["AAAA"] * 40), make_samples(["AAAA"] * 40))
    assert cell["pcmd"]["difference"] == 0
    assert cell["pcmd"]["high"] == pytest.approx(0.0876, abs=1e-4)
    assert cell["pcmd"]["low"] == pytest.approx(-0.0876, abs=1e-4)
    assert cell["pcmd"]["p"] == 1
    assert (cell["accuracy"]["low"], cell["accuracy"]["high"]) == (cell["pcmd"]["low"], cell["pcmd"]["high"])


def seeds(make_samples, *prompts):
    return pd.concat([make_samples(p).assign(seed=number) for number, p in enumerate(prompts)])


def test_runs_are_paired_by_seed(make_samples):
    a = seeds(make_samples, ["AA..", "A..."], ["A...", "AB.."], ["....", "A..."])
    b = seeds(make_samples, ["AAAA", "AA.."], ["AA..", "ABC."], ["A...", "AB.."])
    document = comparison_document(a, b)
    [cell] = document["cells"]
    assert document["upper_level"] == "seed"
    assert (cell["prompts"], cell["pairs"]) == (2, 6)
    differences = np.array([[0.5, 0.25], [0.25, 0.25], [0.25, 0.25]])
    accuracy = cell["accuracy"]
    assert accuracy["difference"] == pytest.approx(differences.mean())
    over_prompts = stats.ttest_1samp(differences.mean(0), 0).confidence_interval(0.95)
    assert accuracy["low"] == pytest.approx(max(over_prompts.low, -1))
    over_seeds = stats.ttest_1samp(differences.mean(1), 0).confidence_interval(0.95)
    assert accuracy["seeds"]["low"] == pytest.approx(over_seeds.low)
    assert accuracy["seeds"]["high"] == pytest.approx(over_seeds.high)
    assert accuracy["seeds"]["n"] == 3
    assert accuracy["seeds"]["p"] == pytest.approx(stats.ttest_1samp(differences.mean(1), 0).pvalue)
    # Two seeds have prompts with a PCMD on both sides, all of difference 0: no spread, no test.
    assert (cell["pcmd"]["seeds"]["n"], cell["pcmd"]["seeds"]["p"]) == (2, None)
    assert accuracy["p"] == 0.5  # of four patterns, the two that give both prompts one sign
    assert not any(text.startswith("few-units") for text in document["warnings"])


def test_two_seeds_give_no_interval_over_seeds(make_samples):
    a, b = (seeds(make_samples, p, p) for p in (A, B))
    document = comparison_document(a, b)
    assert "seeds" not in document["cells"][0]["accuracy"]
    assert any(text.startswith("few-units: two values of seed") for text in document["warnings"])


def test_seeds_must_match(make_samples):
    a = seeds(make_samples, A, A, A)
    b = a[a["seed"] != 1]
    with pytest.raises(UsageError, match=r"differ in seeds: \[0, 1, 2\] and \[0, 2\]"):
        comparison_document(a, b)
    document = comparison_document(a, b, allow=["seeds"])
    assert document["cells"][0]["pairs"] == 10
    assert document["warnings"][0].startswith("mismatch: A and B differ in seeds")
    with pytest.raises(UsageError, match="share no seed"):
        comparison_document(a, a.assign(seed=a["seed"] + 7), allow=["seeds"])
    # one run on either side: their seeds need not agree
    assert comparison_document(a[a["seed"] == 0], a[a["seed"] == 1])["upper_level"] is None


def test_task_sets_must_match(make_samples):
    a, b = make_samples(A), make_samples(B[:4])
    with pytest.raises(UsageError, match="differ in tasks: '1 prompts of its own' and '0 of its own'"):
        comparison_document(a, b)
    assert cell_of(a, b, allow=["tasks"])["prompts"] == 4
    with pytest.raises(UsageError, match="share no prompt"):
        comparison_document(a, b.assign(level=2))


def test_sample_counts_must_match(make_samples):
    a, b = make_samples(["AB"]), make_samples(["AB.A"])
    with pytest.raises(UsageError, match=r"differ in samples: 2 and 4; .*--allow-mismatch samples"):
        comparison_document(a, b)
    document = comparison_document(a, b, allow=["samples"])
    assert document["differing"] == {"samples": [2, 4]}
    assert document["starred"] == ["accuracy", "pass@2", "modes@2", "distinct_pair_rate", "pcmd"]


class Recorded:
    """A run as `compare` sees it."""

    def __init__(self, samples, **settings):
        self._samples = samples
        self._settings = {"temperature": 1.0, "reading": "published", **settings}

    def samples(self, reading=None, *, texts=True):
        return self._samples

    def settings(self):
        return self._settings

    def chance(self, reading=None):
        return "not known"


@pytest.mark.parametrize(
    ("name", "values"), [("temperature", (1.0, 0.7)), ("reading", ("published", "clean")), ("top_k", (0, 5))]
)
def test_settings_must_match(make_samples, name, values):
    a, b = (Recorded(make_samples(A), **{name: value}) for value in values)
    with pytest.raises(UsageError) as caught:
        comparison_document(a, b)
    assert f"A and B differ in {name}: {values[0]!r} and {values[1]!r};" in str(caught.value)
    assert comparison_document(a, b, allow=[name])["differing"] == {name: list(values)}
    with pytest.raises(UsageError, match="no setting is called 'mood'"):
        comparison_document(a, a, allow=["mood"])


def test_all_mismatches_stand_in_one_line(make_samples):
    a = Recorded(make_samples(A), profile="direct", prompts="1", top_p=1.0)
    b = Recorded(make_samples(A), profile="plain", prompts="2", top_p=0.9)
    with pytest.raises(UsageError) as caught:
        comparison_document(a, b)
    assert str(caught.value) == (
        "A and B differ in profile: 'direct' and 'plain'; top_p: 1.0 and 0.9; "
        "to compare them all the same: --allow-mismatch profile --allow-mismatch top_p"
    )
    with pytest.raises(UsageError, match="differ in prompts"):
        comparison_document(a, Recorded(make_samples(A), profile="direct", prompts="2", top_p=1.0))


def test_one_reading_for_both_is_no_mismatch(make_samples):
    a, b = Recorded(make_samples(A)), Recorded(make_samples(B), reading="clean")
    assert comparison_document(a, b, reading="clean")["differing"] == {}


def test_unknown_metrics_are_refused(make_samples):
    with pytest.raises(UsageError, match="no metric is called 'beauty'; metrics: accuracy"):
        comparison_document(make_samples(A), make_samples(B), starred=["beauty"])


def test_bootstrap_on_request(make_samples):
    a, b = make_samples(A * 6), make_samples(B * 6)
    document = comparison_document(a, b, bootstrap=500)
    assert document["interval_method"] == "bootstrap over prompts"
    closed, drawn = cell_of(a, b)["accuracy"], document["cells"][0]["accuracy"]
    assert drawn["low"] == pytest.approx(closed["low"], abs=0.03)
    assert drawn["low"] != closed["low"]
    over = seeds(make_samples, A, B, A), seeds(make_samples, B, A, A)
    assert comparison_document(*over, bootstrap=50)["interval_method"] == "bootstrap over seed, then prompts"


def test_tidy_table(make_samples):
    table = compare(make_samples(A), make_samples(B)).set_index("metric")
    assert table.loc["accuracy", "difference"] == pytest.approx(0.05)
    assert np.isnan(table.loc["pass@8", "difference"])
    assert np.isnan(table.loc["hill_0", "p_holm"])
    assert not table.index.duplicated().any()


@pytest.mark.parametrize("layout", ["text", "markdown", "latex", "html", "csv", "json"])
def test_every_layout(make_samples, layout):
    a, b = seeds(make_samples, A, A, A), seeds(make_samples, B, B, A)
    text = render_comparison(comparison_document(a, b), layout)
    assert "accuracy" in text
    assert "nan" not in text.lower()
    if layout == "text":
        assert "B − A" in text
        assert "over seeds" in text
        assert "learned (same)" in text


# --- tests and adjustments -------------------------------------------------------------------------------


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=7))
def test_exact_sign_flips_are_all_patterns(values):
    want = np.mean(
        [
            abs(sum(s * v for s, v in zip(signs, values, strict=True))) >= abs(sum(values))
            for signs in itertools.product((1, -1), repeat=len(values))
        ]
    )
    assert float(sign_flip_p(np.array(values, dtype=float)[:, None])[0]) == pytest.approx(want)


def test_sign_flips_agree_with_scipy():
    values = np.random.default_rng(2).normal(0.3, 1, size=60)
    want = stats.permutation_test(
        (values, np.zeros(60)), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=20000,
        rng=np.random.default_rng(0),
    ).pvalue  # fmt: skip
    got = float(sign_flip_p(values[:, None], draws=20000, seed=1)[0])
    assert got == pytest.approx(want, abs=0.01)
    assert got == float(sign_flip_p(values[:, None], draws=20000, seed=1)[0])
    assert float(sign_flip_p(np.full((60, 1), 1.0), draws=999)[0]) == 1 / 1000


def test_sign_flip_p_values_are_level_under_no_difference():
    rng = np.random.default_rng(3)
    p = sign_flip_p(rng.normal(size=(40, 2000)), draws=999, seed=5)
    assert 0.035 <= np.mean(p <= 0.05) <= 0.065


def test_holm_by_hand():
    assert holm([0.04, 0.01, 0.03]).tolist() == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_and_keeps_the_order(p):
    adjusted = holm(p)
    assert (adjusted >= np.array(p) - 1e-15).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= -1e-15).all()


def test_holm_is_over_the_starred_rows_of_all_cells(make_samples):
    a = pd.concat([make_samples(A * 4), make_samples(A * 4).assign(level=2)])
    b = pd.concat([make_samples(B * 4), make_samples(["AAAA"] * 20).assign(level=2)])
    document = comparison_document(a, b, starred=["accuracy", "pcmd"])
    entries = [cell[name] for cell in document["cells"] for name in ("accuracy", "pcmd")]
    assert [e["p_holm"] for e in entries] == pytest.approx(holm([e["p"] for e in entries]).tolist())
    assert document["cells"][0]["hill_0"]["p_holm"] is None


def test_clustered_limits_with_lone_rows_are_t_limits():
    values = np.random.default_rng(0).normal(size=(20, 1))
    want = stats.ttest_1samp(values[:, 0], 0).confidence_interval(0.9)
    got = clustered_limits(values, np.arange(20), 0.9, np.array([np.inf]))
    assert (got.low[0], got.high[0]) == pytest.approx((want.low, want.high))
    # repeating every row in a cluster of its own says nothing new
    again = clustered_limits(np.repeat(values, 3, axis=0), np.repeat(np.arange(20), 3), 0.9, np.array([9.0]))
    assert (again.low[0], again.high[0]) == pytest.approx((want.low, want.high))
