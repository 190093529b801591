"""The pretraining loop at a tiny size: it learns, and a continued run ends in the same weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from modebench.domains import DOMAINS
from modebench.errors import UsageError
from modebench.pretraining.corpus import Frozen, Pool, Text, make_pool
from modebench.pretraining.folder import PretrainingFolder
from modebench.pretraining.pretrain import (
    PoolSize,
    PretrainConfig,
    Pretrainer,
    Shape,
    Share,
    Stage,
    rows_of,
    texts_of,
)
from modebench.pretraining.tokenizer import make_tokenizer
from tests.conftest import Command

SHARES = {domain: Share(2, 2, menus=1, frees=1, cards=1) for domain in ("countdown", "graph_coloring")}
CONFIG = PretrainConfig(
    stages=(Stage(4, SHARES), Stage(2, {domain: replace(SHARES[domain], noise=1.0) for domain in SHARES})),
    pools={domain: PoolSize(6, 3) for domain in SHARES},
    shape=Shape(width=16, layers=1, heads=2, inner=32),
    warmup=2,
)


SHORT = replace(CONFIG, stages=(Stage(2, SHARES),))


@pytest.fixture(scope="module")
def pools() -> dict[str, Pool]:
    frozen = Frozen(SHARES)
    return {domain: make_pool(domain, 0, 6, 3, frozen) for domain in SHARES}


def weights(pretrainer: Pretrainer) -> torch.Tensor:
    return torch.cat([parameter.flatten() for parameter in pretrainer.model.parameters()]).detach()


def test_a_continued_run_ends_in_the_same_weights(pools: dict[str, Pool], tmp_path: Path) -> None:
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    for folder in (whole, parted):
        folder.mkdir()
    straight = Pretrainer(CONFIG, pools, whole)
    straight.run(lambda step, losses: None)
    first = Pretrainer(CONFIG, pools, parted)
    for _ in range(3):
        first.update()
    first.save()
    first.update()  # lost: it comes after the last save
    second = Pretrainer(CONFIG, pools, parted)
    assert second.step == 3
    second.run(lambda step, losses: None)
    assert torch.equal(weights(straight), weights(second))


def test_other_settings_are_refused(pools: dict[str, Pool], tmp_path: Path) -> None:
    Pretrainer(CONFIG, pools, tmp_path).save()
    with pytest.raises(UsageError, match="other settings"):
        Pretrainer(replace(CONFIG, seed=1), pools, tmp_path)


def test_the_loss_falls(pools: dict[str, Pool], tmp_path: Path) -> None:
    seen: list[float] = []
    config = replace(CONFIG, stages=(Stage(60, SHARES),))
    Pretrainer(config, pools, tmp_path).run(lambda step, losses: seen.append(losses["countdown/solve"]))
    assert sum(seen[-5:]) < 0.75 * sum(seen[:5])


def test_weights_of_a_group_sum_to_its_weight() -> None:
    texts = [
        Text("countdown", "solve", "C3,4=7", "3+4"),
        Text("countdown", "coached", "C3,4=7", "4+3"),
        Text("countdown", "menu", "menu:", "A"),
    ]
    rows = rows_of(make_tokenizer(), texts, writing=0.2)
    assert [row.term for row in rows] == ["countdown/solve", "countdown/solve", "countdown/menu"]
    assert sum(row.weight_T.sum() for row in rows[:2]) == pytest.approx(1.0)
    assert rows[2].weight_T.sum() == pytest.approx(0.2)
    assert all(row.token_ids[-1] == make_tokenizer().eos_token_id for row in rows)


def test_every_stage_reads_its_own_shares(pools: dict[str, Pool]) -> None:
    right = {answer for source in pools["countdown"].sources for answer in source.answers}
    for step, wrong in ((1, False), (4, False), (5, True), (6, True)):
        texts = texts_of(CONFIG, pools, step)
        solved = [text.reply for text in texts if text.domain == "countdown" and text.kind == "solve"]
        coached = [text.reply for text in texts if text.domain == "countdown" and text.kind == "coached"]
        assert len(solved) + len(coached) == 4
        assert all((reply not in right) == wrong for reply in solved + coached)
    with pytest.raises(ValueError, match="after the last"):
        texts_of(CONFIG, pools, 7)


@pytest.mark.parametrize(
    ("step", "rate"), [(1, 0.02), (50, 1.0), (51, 1.0), (100, 1.0), (101, 0.7), (150, 0.35), (200, 0.0)]
)
def test_rates(step: int, rate: float) -> None:
    stages = (Stage(100, {}), Stage(100, {}, rates=(0.7, 0.0)))
    assert PretrainConfig(stages=stages).rate(step) == pytest.approx(rate, abs=0.01)


def test_the_command_makes_an_ordinary_folder(tmp_path: Path, modebench: Command) -> None:
    path = tmp_path / "run"
    PretrainingFolder.create(path, SHORT)
    done = modebench("pretrain", "--resume", str(path), "--no-card")
    assert done.returncode == 0, done.stderr
    policy = path / "policy"
    model = AutoModelForCausalLM.from_pretrained(policy)
    tokenizer = AutoTokenizer.from_pretrained(policy)
    prompt = tokenizer("C3,4,5=12>", return_tensors="pt", add_special_tokens=False)
    assert model(**prompt).logits.shape[-1] == len(tokenizer)
    assert len((path / "log.jsonl").read_text().splitlines()) == 2
    settings = json.loads((path / "pretraining.json").read_text())
    assert settings["pools"].keys() == SHARES.keys()
    assert PretrainingFolder.open(path).config == SHORT


def test_mistakes_are_told_in_one_line(tmp_path: Path, modebench: Command) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    for arguments, told in (
        ([], "--output is missing"),
        (["-o", str(tmp_path / "full")], "is in use"),
        (["--resume", str(tmp_path)], "not a pretraining folder"),
    ):
        done = modebench("pretrain", *arguments)
        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_all_domains_are_read_in_every_stage() -> None:
    config = PretrainConfig()
    assert config.pools.keys() == set(DOMAINS)
    assert all(stage.shares.keys() == set(DOMAINS) for stage in config.stages)
