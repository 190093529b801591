"""SetPO: what a rollout adds to its group, against the definition; both kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.advantages import Advantage
from modebench.training.batch import Floats, Group
from modebench.training.method import Method, MethodState
from modebench.training.methods import build
from modebench.training.setpo import Embeddings, SetPO, added, diversity
from tests.training.groups import moded, rollout, worth

KERNELS = st.integers(1, 6).flatmap(
    lambda size: st.lists(
        st.lists(st.floats(-1, 1), min_size=3, max_size=3).filter(lambda v: np.linalg.norm(v) > 0.1),
        min_size=size,
        max_size=size,
    )
)


def cosine(vectors: Sequence[Sequence[float]]) -> Floats:
    unit = np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.clip(unit @ unit.T, 0, 1))


class LetterCounts:
    """Stands in for an encoder: how often a text has each letter."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        return [[float(text.count(letter)) for letter in "abc"] for text in texts]


def with_encoder(embed: Any, **sets: object) -> tuple[Method, MethodState]:
    options = {f"setpo.{name}": value for name, value in sets.items()}
    method = build("setpo", {"setpo.kernel": "text", **options}, max_completion_length=8)
    state = method.state(0)
    state.parts["setpo"] = Embeddings(embed)
    return method, state


def texted(*texts: str) -> Group:
    """The last one is wrong."""
    group = moded("a", None)
    last = len(texts) - 1
    members = [
        rollout([3, 7], float(place < last), "m" if place < last else None, text=text)
        for place, text in enumerate(texts)
    ]
    return replace(group, rollouts=tuple(members))


@settings(deadline=None, max_examples=60)
@given(KERNELS)
def test_leave_one_out_is_as_defined(vectors: list[list[float]]) -> None:
    kernel = cosine(vectors)
    size = len(kernel)

    def value(members: list[int]) -> float:
        terms = [-np.log1p(np.mean([kernel[i, j] for j in members])) for i in members]
        return float(np.mean(terms)) if members else 0.0

    everyone = list(range(size))
    expected = [value(everyone) - value([j for j in everyone if j != i]) for i in everyone]
    assert added(kernel) == pytest.approx(expected, abs=1e-12)
    assert diversity(kernel) == pytest.approx(value(everyone))


def test_small_sets_by_hand() -> None:
    assert diversity(np.zeros((0, 0))) == 0
    assert added(np.zeros((0, 0))).tolist() == []
    assert added(np.ones((1, 1))) == pytest.approx([-np.log(2)])
    # Two modes, one of them twice: D = -(2/3) log(5/3) - (1/3) log(4/3); without a twin -log(3/2).
    bonus = SetPO().bonus(moded("a", "a", "b"), None)
    whole = -2 / 3 * np.log(5 / 3) - 1 / 3 * np.log(4 / 3)
    assert bonus == pytest.approx([whole + np.log(3 / 2)] * 2 + [whole + np.log(2)])


def test_duplicates_are_worth_less() -> None:
    bonus = SetPO().bonus(moded("a", "b", "c", "d", "e", "f"), None)
    assert np.ptp(bonus) < 1e-12
    twin = SetPO().bonus(moded("a", "b", "c", "d", "e", "a"), None)
    assert twin[0] == pytest.approx(twin[5])
    assert twin[0] < bonus[0]
    assert twin[0] < 0 < twin[1]
    assert abs(twin.sum()) > 0.01  # they do not sum to 0: all are pushed one way


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_further_copy_lowers_its_twin(size: int) -> None:
    modes = [str(number) for number in range(size)]
    before, after = (SetPO().bonus(moded(*each), None) for each in (modes, [*modes, "0"]))
    assert after[0] == after[-1]
    assert after[0] < before[0] or size == 1  # alone it adds -log 2, as one of two copies nothing
    assert size == 1 or after[0] < min(after[1:-1])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=8))
def test_the_kernel_of_modes(modes: list[str | None]) -> None:
    kernel = SetPO().similarity(moded(*modes), None)
    assert (kernel == kernel.T).all()
    assert np.diag(kernel).tolist() == [1] * len(modes)
    assert kernel.tolist() == [[float(one == other) for other in modes] for one in modes]


def test_wrong_rollouts_are_a_class_or_left_out() -> None:
    group = moded("a", "b", None, None)
    as_class = SetPO().bonus(group, None)
    assert as_class == pytest.approx(SetPO().bonus(moded("a", "b", "c", "c"), None))
    excluded = SetPO(wrong="excluded").bonus(group, None)
    assert excluded[2:].tolist() == [0, 0]
    assert excluded[:2] == pytest.approx(SetPO().bonus(moded("a", "b"), None))
    assert SetPO(wrong="excluded").bonus(moded(None, None), None).tolist() == [0, 0]
    cut = replace(group, rollouts=(replace(group.rollouts[0], reward=0.0), *group.rollouts[1:]))
    assert SetPO().bonus(cut, None)[0] == pytest.approx(SetPO().bonus(cut, None)[2])  # not paid: wrong


def test_the_bonus_is_added_to_all_rollouts() -> None:
    group = moded("a", "a", "b", None)
    base = Advantage().advantage(group, group.reward_G, None)
    bonus = SetPO().bonus(group, None)
    assert worth(build("setpo", max_completion_length=8), group) == pytest.approx(base + bonus)
    none = build("setpo", {"setpo.coefficient": 0}, max_completion_length=8)
    assert worth(none, group) == base.tolist()
    centred = SetPO(centred=True).bonus(group, None)
    assert centred == pytest.approx(bonus - bonus.mean())
    assert abs(bonus.mean()) > 0.01
    method = build("setpo", {"setpo.coefficient": 2}, max_completion_length=8)
    logged = method.metrics([group], [], method.state(0))
    assert logged["setpo/bonus"] == pytest.approx(2 * np.abs(bonus).mean())
    assert logged["setpo/shift"] == pytest.approx(2 * bonus.mean())


def test_texts_are_compared_by_an_encoder() -> None:
    encoder = LetterCounts()
    method, state = with_encoder(encoder)
    group = texted("aab", "aab", "ccc", "a")
    method.observe([group, group], state)
    assert encoder.calls == [["aab", "ccc", "a"]]  # every text once
    kernel = SetPO(kernel="text").similarity(group, state.parts["setpo"])  # type: ignore[arg-type]
    assert kernel == pytest.approx(kernel.T)
    assert np.diag(kernel).tolist() == [1, 1, 1, 1]
    assert kernel[0] == pytest.approx([1, 1, 0, 2 / np.sqrt(5)])
    base = Advantage().advantage(group, group.reward_G, None)
    bonus = np.array(worth(method, group, state)) - base
    assert bonus == pytest.approx(added(kernel))
    assert bonus[0] == pytest.approx(bonus[1])
    assert len(encoder.calls) == 1


def test_texts_of_opposite_meaning_are_no_less_than_unlike() -> None:
    method, state = with_encoder(lambda texts: [[2.0, 0.0], [-3.0, 0.0]])
    group = texted("yes", "no")
    method.observe([group], state)
    assert SetPO(kernel="text").similarity(group, state.parts["setpo"]).tolist() == [[1, 0], [0, 1]]  # type: ignore[arg-type]


def test_nothing_of_an_encoder_is_saved() -> None:
    method, state = with_encoder(LetterCounts())
    saved = json.loads(json.dumps(state.state_dict()))
    assert saved == {"setpo": {}}
    state.load_state_dict(saved)
    method.prepare([], lambda text: (), state)  # one that is there already is not loaded
    assert build("setpo", max_completion_length=8).state(0).state_dict() == {}


@pytest.mark.parametrize(
    ("embed", "said"),
    [
        (lambda texts: [[1.0, 0.0]], r"gave an array of \(1, 2\) for 2 texts"),
        (lambda texts: [1.0, 0.0], r"gave an array of \(2,\) for 2 texts"),
        (lambda texts: [[1.0], [0.0]], "no direction"),
        (lambda texts: [[1.0], [float("nan")]], "no direction"),
    ],
)
def test_embeddings_that_cannot_be_compared(embed: Any, said: str) -> None:
    method, state = with_encoder(embed)
    with pytest.raises(UsageError, match=said):
        method.observe([texted("a", "b")], state)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    method = build("setpo", {"setpo.kernel": "text"}, max_completion_length=8)
    with pytest.raises(UsageError, match=r'pip install "modebench-toolkit\[setpo\]"'):
        method.prepare([], lambda text: (), method.state(0))


def test_options_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match=r"setpo\.coefficient must not be negative"):
        SetPO(coefficient=-1)
    with pytest.raises(UsageError, match=r"setpo\.wrong is of the kernel of modes"):
        SetPO(kernel="text", wrong="excluded")
