"""What the tiny policy reads: never a frozen task, right answers right, wrong answers wrong."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from modebench.compact import compact_problem
from modebench.domains import DOMAINS, get_domain
from modebench.pretraining.corpus import (
    Frozen,
    Pool,
    make_pool,
    make_task,
    solving_texts,
    writing_texts,
    wrong_answer,
)
from modebench.strategies import STRATEGIES
from modebench.synthesis.compact import read_card, read_menu
from modebench.tasks import load_tasks
from modebench.variation import get_variation
from modebench.verifiers import verify

FROZEN = Frozen()
POOLS = {domain: make_pool(domain, 0, 60, 12, FROZEN) for domain in DOMAINS}
every_pool = pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)


def test_every_frozen_task_is_known() -> None:
    assert len(FROZEN.identities) == 5 * 5 * 640
    for domain in DOMAINS:
        for level in (1, 3, 5):
            assert all(FROZEN.holds(task) for task in load_tasks(domain, level, "train").tasks[::50])


@every_pool
def test_a_pool_holds_no_frozen_task(pool: Pool) -> None:
    assert len(pool.sources) == 60
    assert len({source.task.id for source in pool.sources}) == 60
    prompts = {prompt for _, prompt in FROZEN.prompts}
    for source in pool.sources:
        assert source.task.id not in FROZEN.identities
        assert compact_problem(source.task) not in prompts
    variation = get_variation(pool.domain)
    for varied in pool.varied:
        for text in varied.texts.values():
            assert not FROZEN.holds(make_task(pool.domain, variation.parse(text)))


def test_exclusions_are_counted() -> None:
    drawn = make_pool("countdown", 1, 10_000, 0, FROZEN)
    # All three-number tasks with a target up to 36 of level 1 are in its law, so its frozen tasks are met.
    assert drawn.excluded >= 640
    assert len(drawn.sources) > 3_000


@every_pool
def test_answers_are_all_modes_and_right(pool: Pool) -> None:
    for source in pool.sources[:20]:
        modes = [verify(source.task, answer).mode for answer in source.answers]
        assert None not in modes
        assert len(set(modes)) == len(modes) == get_domain(pool.domain).count_modes(source.task.reference, 1)


@every_pool
def test_wrong_answers_are_wrong(pool: Pool) -> None:
    rng = random.Random(3)
    for source in pool.sources[:30]:
        verdict = verify(source.task, wrong_answer(rng, source))
        assert verdict.mode is None
        assert verdict.status == "incorrect" or pool.domain == "mathir"


@every_pool
def test_modes_are_drawn_uniformly(pool: Pool) -> None:
    source = max(pool.sources, key=lambda one: 3 <= len(one.answers) <= 12)
    alone = Pool(pool.domain, [source])
    texts = solving_texts(random.Random(5), alone, 600, 2, noise=0.0, coached=0.0)
    counts = Counter(text.reply for text in texts)
    expected = len(texts) / len(source.answers)
    if len(source.answers) <= 12:
        assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())
    assert {text.kind for text in texts} == {"solve"}


@every_pool
def test_noise_and_coaching_have_their_shares(pool: Pool) -> None:
    texts = solving_texts(random.Random(7), pool, 400, 2, noise=0.3, coached=0.25)
    right = {compact_problem(source.task): source.right for source in pool.sources}
    wrong = [text.reply not in right[text.prompt.rpartition("\n")[2]] for text in texts]
    assert abs(sum(wrong) / len(wrong) - 0.3) < 0.08
    coached = [text for text in texts if text.kind == "coached"]
    assert abs(len(coached) / len(texts) - 0.25) < 0.1
    advice = {strategy.advice for strategy in STRATEGIES[pool.domain]}
    assert {text.prompt.split("\n\n")[0] for text in coached} == advice


@every_pool
def test_written_tasks_are_what_they_are_asked_for(pool: Pool) -> None:
    texts = list(writing_texts(random.Random(9), pool, 10, 10, 10))
    assert Counter(text.kind for text in texts) == {"menu": 10, "free": 10, "card": 10}
    variation = get_variation(pool.domain)
    for text in texts:
        if text.kind == "menu":
            assert read_menu(pool.domain, text.reply)
        elif text.kind == "free":
            assert variation.validate(variation.parse(text.reply), 1) >= 1
        else:
            card = read_card(text.reply)
            place = {"domain": pool.domain, "level": 1, "reference": variation.parse(card["problem"])}
            assert verify(place, card["solution"]).mode is not None


@every_pool
def test_the_same_seed_draws_the_same(pool: Pool) -> None:
    again = make_pool(pool.domain, 0, 60, 12, FROZEN)
    assert [source.task.id for source in again.sources] == [source.task.id for source in pool.sources]
    assert [varied.texts for varied in again.varied] == [varied.texts for varied in pool.varied]
    drawn = [list(writing_texts(random.Random(2), one, 3, 3, 3)) for one in (pool, again)]
    assert drawn[0] == drawn[1]
