"""Constrained decoding with transformers: the masks, the log-probabilities, and whole runs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("llguidance")

import modebench as mb  # noqa: E402
from modebench.config import EvalConfig, Selection  # noqa: E402
from modebench.domains.grammars import grammar_of  # noqa: E402
from modebench.errors import UsageError  # noqa: E402
from modebench.evaluation import create_run, evaluate, generate  # noqa: E402
from modebench.runs import RunFolder  # noqa: E402
from modebench.sampling import EngineOptions, load_engine  # noqa: E402
from modebench.sampling.base import EngineUnavailable, GenerationSettings, Group  # noqa: E402
from modebench.sampling.constraints import Matchers, constrained  # noqa: E402
from modebench.sampling.transformers import TransformersEngine  # noqa: E402
from modebench.verifiers import verify  # noqa: E402
from tests.conftest import Command  # noqa: E402
from tests.sampling.tiny_models import EOS, save_tiny, tiny_model, tiny_tokenizer  # noqa: E402

CELLS = (("countdown", 2), ("python_factors", 2), ("mathir", 3), ("pantry_plan", 5), ("pantry_plan", 1))
SETTINGS = GenerationSettings(temperature=0.7, max_tokens=250)


def engine() -> TransformersEngine:
    tokenizer = tiny_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.config.max_position_embeddings = 4096
    return TransformersEngine(model, tokenizer)


def groups(samples: int, *, free: bool = False) -> list[Group]:
    found = []
    for place, cell in enumerate(CELLS):
        [task] = mb.load_tasks(*cell).head(1)
        seeds = tuple(range(100 * place, 100 * place + samples))
        messages = ({"role": "user", "content": f"task {place}"},)
        found.append(Group(task, messages, seeds, grammar=None if free else grammar_of(task)))
    return found


def test_what_is_forbidden_becomes_minus_infinity_and_nothing_else_changes() -> None:
    tokenizer = tiny_tokenizer()
    size = len(tokenizer)
    matcher = Matchers(tokenizer, [EOS]).start("root ::= [01]{2}\n")
    logits = torch.randn(3, size + 5)
    kept = logits.clone()
    found = constrained(logits, {1: matcher})
    assert torch.equal(logits, kept)
    assert torch.equal(found[[0, 2]], logits[[0, 2]])
    bits = tokenizer("01", add_special_tokens=False)["input_ids"]
    for expected in (bits, bits, [EOS]):
        row = constrained(logits, {1: matcher})[1]
        allowed = sorted(torch.isfinite(row).nonzero()[:, 0].tolist())
        assert allowed == sorted(expected)
        assert torch.equal(row[allowed], logits[1, allowed])
        assert matcher.take(expected[0]) is None
    assert "llguidance" in str(matcher.take(bits[0]))


def test_every_whole_response_is_well_formed_and_every_sample_has_its_own() -> None:
    asked = groups(6)
    for index, samples in engine().generate(asked, SETTINGS):
        task = asked[index].task
        assert {sample.error for sample in samples} == {None}
        whole = [sample for sample in samples if sample.finish_reason == "stop"]
        assert len(whole) >= 3
        assert len({sample.response for sample in samples}) >= 4
        for sample in whole:
            assert verify(task, sample.response).status != "malformed", sample.response


def test_log_probabilities_are_those_of_the_allowed_tokens_rescaled() -> None:
    own = engine()
    matchers = Matchers(own.tokenizer, own.end_token_ids)
    size = own.model.config.vocab_size
    for index, rollouts in own.rollouts(groups(2), SETTINGS):
        grammar = groups(2)[index].grammar
        assert grammar is not None
        for rollout in rollouts:
            matcher = matchers.start(grammar)
            with torch.no_grad():
                ids = torch.tensor([rollout.prompt_ids + rollout.token_ids])
                logits = own.model(ids).logits[0, len(rollout.prompt_ids) - 1 :].double()
            for place, token in enumerate(rollout.token_ids):
                allowed = torch.from_numpy(matcher.allowed(size))
                kept = logits[place][allowed] / SETTINGS.temperature
                logp = logits[place, token] / SETTINGS.temperature - torch.logsumexp(kept, 0)
                assert rollout.logp[place] == pytest.approx(logp.item(), abs=1e-4)
                p = torch.softmax(kept, 0)
                entropy = -torch.special.xlogy(p, p).sum().item()
                assert rollout.entropy[place] == pytest.approx(entropy, abs=1e-4)
                assert matcher.take(token) is None


def test_a_grammar_changes_nothing_for_the_free_groups_beside_it() -> None:
    settings = GenerationSettings(max_tokens=12)
    free = dict(engine().generate(groups(2, free=True), settings))
    mixed = [held if place % 2 else loose for place, (held, loose) in enumerate(
        zip(groups(2), groups(2, free=True), strict=True)
    )]  # fmt: skip
    found = dict(engine().generate(mixed, settings))
    for place in range(len(CELLS)):
        same = [sample.response for sample in found[place]] == [sample.response for sample in free[place]]
        assert same == (place % 2 == 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with room for the prompts of the tasks."""
    folder = save_tiny(tmp_path_factory.mktemp("model"), "llama")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 4096}))
    return folder


CONFIG = EvalConfig(
    selection=Selection(domains=("pantry", "mathir", "graph"), levels=(2,), limit=2),
    samples=2,
    settings=GenerationSettings(max_tokens=80),
    constrained=True,
)


def test_a_resumed_run_is_the_undisturbed_one(folder: Path, tmp_path: Path) -> None:
    def load() -> Any:
        return load_engine(f"hf/{folder}", EngineOptions(batch_size=1, threads=1))

    whole = evaluate(load(), tmp_path / "whole", CONFIG).folder
    run = create_run(tmp_path / "cut", load(), "m", CONFIG)

    def kill(done: int, total: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(run, load(), kill)
    assert 0 < run.responses_path.read_bytes().count(b"\n") < 12
    assert generate(RunFolder.open(run.path), load()) == 0
    assert run.responses_path.read_bytes() == whole.responses_path.read_bytes()


def test_the_manifest_says_which_grammars_held_what(modebench: Command, folder: Path, tmp_path: Path) -> None:
    done = modebench(
        "eval", "--model", f"hf/{folder}", "--domain", "pantry,graph", "--level", "2", "-n", "1", "-k", "2",
        "--max-tokens", "80", "--constrained", "-o", "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "not constrained, as there is no grammar: graph_coloring/level2/eval[:1]" in done.stderr
    assert "constrained: True" in done.stdout
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["constrained"] is True
    assert manifest["engine"]["constraint"]["library"] == "llguidance"
    assert manifest["engine"]["constraint"]["version"]
    assert manifest["grammars"]["tasks"] == {
        "pantry_plan/level2/eval[:1]": 1,
        "graph_coloring/level2/eval[:1]": 0,
    }


def test_a_run_whose_grammars_have_changed_is_not_resumed(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", engine(), "m", CONFIG)
    run.update(grammars={**run.manifest["grammars"], "sha256": "0" * 64})
    with pytest.raises(UsageError, match="the grammars are not those of the run any more"):
        generate(run, engine())


def test_a_held_run_is_not_compared_with_a_free_one(folder: Path, tmp_path: Path) -> None:
    few = Selection(domains=("pantry",), limit=2)
    held = EvalConfig(selection=few, samples=2, settings=GenerationSettings(max_tokens=8), constrained=True)
    own = load_engine(f"hf/{folder}")
    runs = [
        evaluate(own, tmp_path / name, config)
        for name, config in (("held", held), ("free", replace(held, constrained=False)))
    ]
    assert [run.settings()["constrained"] for run in runs] == [True, False]
    with pytest.raises(UsageError, match="--allow-mismatch constrained"):
        mb.compare(*runs)


def test_what_cannot_be_constrained_is_refused(modebench: Command, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--constrained needs a model of hf/"):
        create_run(tmp_path / "run", load_engine("mock/uniform"), "mock/uniform", CONFIG)
    config = EvalConfig(selection=Selection(domains=("graph", "countdown"), limit=1), constrained=True)
    with pytest.raises(UsageError, match=r"graph_coloring/level1/eval.*have no grammar"):
        create_run(tmp_path / "run", engine(), "m", config)
    asked = ("--model", "mock/uniform", "--constrained", "--level", "2", "-n", "1")
    done = modebench("eval", *asked, "-o", "run")
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("error: --constrained needs a model of hf/")
    assert not (tmp_path / "run").exists()


def test_a_missing_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(EngineUnavailable, match=r'pip install "modebench-toolkit\[constrained\]"'):
        engine().constraint()
