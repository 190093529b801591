"""The independence test: it finds reused seeds, and leaves honest repetition alone."""

import numpy as np
import pytest

from modebench.analysis import summary_document
from modebench.analysis.duplicates import position_test


def draws(rng, prompts, samples, answers, collapse=0.0):
    """Independent texts: each prompt has its own answers, more or less concentrated on the first."""
    weights = np.full(answers, (1 - collapse) / answers)
    weights[0] += collapse
    texts = rng.choice(answers, size=(prompts, samples), p=weights)
    return texts + answers * np.arange(prompts)[:, None]


def flagged(texts):
    return len(position_test(texts).copies())


@pytest.mark.parametrize("collapse", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize(("prompts", "samples", "answers"), [(128, 8, 5), (30, 32, 100), (216, 16, 2)])
def test_independent_samples_are_not_flagged(collapse, prompts, samples, answers):
    rng = np.random.default_rng(5)
    for _ in range(10):
        assert flagged(draws(rng, prompts, samples, answers, collapse)) == 0


def test_collapse_of_a_part_of_the_prompts_is_not_flagged():
    rng = np.random.default_rng(6)
    texts = draws(rng, 128, 16, 50)
    texts[::2] = texts[::2, :1]
    assert flagged(texts) == 0
    assert not position_test(texts).one_text


@pytest.mark.parametrize("collapse", [0.0, 0.5, 0.8])
def test_a_repeated_seed_is_found_inside_a_repetitive_model(collapse):
    texts = draws(np.random.default_rng(7), 128, 8, 5, collapse)
    texts[:, 6] = texts[:, 1]
    result = position_test(texts)
    assert result.copies().tolist() == [[1, 6]] == [result.pairs[result.worst].tolist()]
    assert result.agreeing[result.worst] == result.prompts[result.worst] == 128


def test_overlapping_seed_ranges_are_found():
    # Four requests of 8 with seeds s, s+1, s+2, s+3, each numbering its samples seed + i.
    streams = draws(np.random.default_rng(8), 20, 11, 1000)
    texts = np.concatenate([streams[:, start : start + 8] for start in range(4)], axis=1)
    pairs = sum(m * (m - 1) // 2 for m in [1, 2, 3, 4, 4, 4, 4, 4, 3, 2, 1])
    assert flagged(texts) == pairs == 38


def test_few_prompts_suffice_when_texts_are_long():
    texts = draws(np.random.default_rng(9), 6, 8, 10**6)
    assert flagged(texts) == 0
    texts[:, 7] = texts[:, 0]
    assert flagged(texts) == 1


def test_one_seed_list_for_all_prompts_is_found():
    # The same uniform numbers drive every prompt, and prompts have like distributions.
    uniform = np.random.default_rng(10).random(8)
    texts = (uniform > 0.4).astype(int) + 2 * np.arange(100)[:, None]
    assert flagged(texts) > 0


def test_missing_texts_never_match():
    texts = draws(np.random.default_rng(11), 100, 6, 4)
    texts[:, 2:4] = -1
    assert flagged(texts) == 0
    texts[::3, 5] = -1
    texts[:, 5] = np.where(texts[:, 5] < 0, -1, texts[:, 0])
    result = position_test(texts)
    assert result.pairs[result.worst].tolist() == [0, 5]
    assert result.prompts[result.worst] == 66


def test_nothing_to_compare():
    assert position_test(np.zeros((0, 0), int)) is None
    assert position_test([[1], [2]]) is None
    assert position_test([[1, -1], [-1, 2]]) is None


def test_false_alarms_stay_below_the_threshold():
    rng = np.random.default_rng(12)
    alarms = sum(len(position_test(draws(rng, 40, 6, 3)).copies(0.05)) > 0 for _ in range(400))
    assert alarms / 400 < 0.05


def test_summary_warns_of_reused_seeds_and_of_one_text(make_samples):
    samples = make_samples(["ABCD"] * 20)
    unique = [f"{task}{sample}" for task, sample in zip(samples["task_id"], samples["sample"], strict=True)]
    honest = samples.assign(response=unique)
    assert summary_document(honest)["warnings"] == []
    reused = honest.assign(response=honest["task_id"] + (honest["sample"] % 2).astype(str))
    (warning,) = summary_document(reused)["warnings"]
    assert warning.startswith("duplicate-samples: domain countdown, level 1: ")
    assert "2 pairs" in warning
    assert "20 of 20 prompts" in warning
    constant = honest.assign(response="same")
    (warning,) = summary_document(constant)["warnings"]
    assert warning.startswith("one-text: ")
    assert summary_document(make_samples(["AAAA"] * 20))["warnings"] == []
