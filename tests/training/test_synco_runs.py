"""SynCo on the packaged policy: two policies in one run, one checkpoint, one resume."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from modebench.cli.errors import exit_code
from modebench.tiny import tiny_folder
from modebench.training.batch import Group
from modebench.training.part import Part
from modebench.training.settings import from_values
from modebench.training.setup import open_trainer, plan
from modebench.training.synco import SYNTHESIZER
from tests.training.child import Place
from tests.training.test_resume import equal, kill_after_step

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {
    "method": "synco", "model": "tiny", "steps": 3, "data.domains": "python_factors", "data.limit": 4,
    "synco.slots": 8, "synco.size": 2, "synco.every": 1, "eval.every": 0, "eval.limit": 1, "eval.samples": 2,
    "eval.dev_limit": 0, "checkpoint.every": 1, "checkpoint.keep": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Prompts(Part):
    """Keeps the prompts of everything that was solved."""

    name: ClassVar[str] = "prompts"
    only_observes: ClassVar[bool] = True
    seen: tuple[list[tuple[int, ...]], ...] = ([],)

    def observe(self, groups: Sequence[Group], state: Any) -> None:
        self.seen[0].extend(group.prompt_ids for group in groups)


def train(path: Path, **more: Any) -> list[str]:
    """One run; the prompts that the reasoner was shown."""
    trainer = open_trainer(plan([from_values(SMALL | more, "test")]), path)
    prompts = Prompts(seen=([],))
    trainer.method = replace(trainer.method, parts=(*trainer.method.parts, prompts))
    assert trainer.run()
    return [str(trainer.policy.tokenizer.decode(ids)) for ids in prompts.seen[0]]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def weights(run: Path, step: int, agent: str = "") -> bytes:
    place = Path("agents") / agent if agent else Path()
    return (run / f"checkpoints/step-{step:06d}" / place / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    path = tmp_path_factory.mktemp("synco") / "joint"
    return path, train(path)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("synco") / "frozen"
    train(path, **{"synco.source": "frozen"})
    return path


def test_both_policies_begin_alike_and_learn(joint: tuple[Path, list[str]]) -> None:
    run, _ = joint
    assert weights(run, 0) == weights(run, 0, SYNTHESIZER)
    assert len({weights(run, 3), weights(run, 3, SYNTHESIZER), weights(run, 0)}) == 3
    steps = lines(run / "metrics.jsonl")
    assert steps[-1]["total/updates"] == steps[-1]["total/synthesizer_updates"] == 3
    proposed = lines(run / "tasks.jsonl")
    assert len(proposed) == steps[-1]["total/proposed"] == 24
    asked = [line for line in proposed if line["size"] is not None]
    assert steps[-1]["total/rollouts"] == 24 + 2 * len(asked)
    assert steps[-1]["total/discarded"] == 0
    assert asked == [line for line in proposed if line["valid"]] != []
    for number, step in enumerate(steps, 1):
        own = [line for line in proposed if line["step"] == number]
        assert step["synco/valid"] == sum(line["valid"] for line in own) / 8
        assert step["synco/write/reward"] == pytest.approx(sum(line["reward"] for line in own) / 8)
        assert step["synco/write/with_gradient"] == (len({line["reward"] for line in own}) > 1)


def test_no_words_of_a_card_are_ever_shown_to_the_reasoner(joint: tuple[Path, list[str]]) -> None:
    run, prompts = joint
    proposed = lines(run / "tasks.jsonl")
    assert len(prompts) == sum(line["valid"] for line in proposed)
    for line in proposed:
        if not line["valid"]:
            continue
        card = json.loads(line["text"])
        assert any(card["problem"] in prompt for prompt in prompts)
        for name, text in card.items():
            assert not any(name in prompt for prompt in prompts if name != "problem")
            assert name == "problem" or not any(text in prompt for prompt in prompts), name


def test_the_frozen_arm_differs_in_the_synthesizers_update_alone(
    joint: tuple[Path, list[str]], frozen: Path
) -> None:
    assert weights(frozen, 3, SYNTHESIZER) == weights(frozen, 0, SYNTHESIZER)
    assert weights(frozen, 1) == weights(joint[0], 1)
    [first, second] = [
        [line for line in lines(run / "tasks.jsonl") if line["step"] == 1] for run in (joint[0], frozen)
    ]
    assert first == second
    contexts = [
        json.loads((frozen / f"checkpoints/step-{step:06d}/trainer.json").read_text())["method"]["synco"]
        for step in (1, 2, 3)
    ]
    assert len({json.dumps(each["contexts"]) for each in contexts}) == 3
    steps = lines(frozen / "metrics.jsonl")
    assert steps[-1]["total/synthesizer_updates"] == 0
    assert steps[-1]["total/discarded"] == 24


@pytest.mark.parametrize("source", ["random", "static"])
def test_the_arms_without_a_second_policy(joint: tuple[Path, list[str]], tmp_path: Path, source: str) -> None:
    more = {"synco.pool": str(joint[0])} if source == "static" else {}
    train(tmp_path / "run", **{"synco.source": source, "steps": 1, **more})
    assert not (tmp_path / "run/checkpoints/step-000001/agents").exists()
    proposed = lines(tmp_path / "run/tasks.jsonl")
    assert {line["form"] for line in proposed} == {"law" if source == "random" else "card"}
    if source == "static":
        recorded = [line for line in lines(joint[0] / "tasks.jsonl") if line["valid"]]
        assert len(proposed) == sum(line["step"] == 1 for line in recorded)
        references = [line["reference"] for line in recorded]
        assert all(line["reference"] in references for line in proposed)
    assert weights(tmp_path / "run", 1) != weights(tmp_path / "run", 0)


def test_a_model_that_is_asked_in_words(place: Place, tmp_path: Path) -> None:
    """It writes nothing that can be read: the reasoner has no step, the synthesizer no gradient."""
    model = tmp_path / "model"
    shutil.copytree(place.model, model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8192}))
    more = {"model": f"hf/{model}", "rollout.profile": "direct", "rollout.max_completion_length": 8}
    assert train(tmp_path / "run", **more, **{"steps": 1, "synco.max_tokens": 16}) == []
    proposed = lines(tmp_path / "run/tasks.jsonl")
    assert {line["failure"] for line in proposed} <= {"unreadable", "truncated"}
    assert [line["reward"] for line in proposed] == [-0.5] * 8
    [step] = lines(tmp_path / "run/metrics.jsonl")
    assert (step["synco/groups"], step["total/updates"], step["synthesizer/grad_norm"]) == (0, 0, 0)
    assert weights(tmp_path / "run", 1) == weights(tmp_path / "run", 0)


def test_killed_and_resumed_both_policies_and_the_memory_are_the_same(place: Place, tmp_path: Path) -> None:
    shutil.copytree(tiny_folder(), tmp_path / "model")
    chosen = {
        name: value
        for name, value in (SMALL | {"checkpoint.every": 2}).items()
        if name not in ("method", "model", "steps", "data.domains")
    }
    asked = ["--method", "synco", "--model", f"hf/{tmp_path}/model", "--domain", "python", "--steps", "4"]
    asked += [piece for name, value in chosen.items() for piece in ("--set", f"{name}={value}")]
    whole = place.train(tmp_path, *asked, "-o", "whole")
    assert whole.wait() == 0, whole.text
    killed = place.train(tmp_path, *asked, "-o", "run", fault=kill_after_step, given=3)
    assert killed.wait() == -signal.SIGKILL, killed.text
    resumed = place.train(tmp_path, "--resume", "run")
    assert resumed.wait() == 0, resumed.text
    last = Path("checkpoints/step-000004")
    for name in (
        Path("metrics.jsonl"),
        Path("tasks.jsonl"),
        last / "trainer.json",
        last / "model.safetensors",
        last / "agents" / SYNTHESIZER / "model.safetensors",
    ):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "run" / name).read_bytes(), name
    states = [torch.load(tmp_path / run / last / "trainer.pt", weights_only=True) for run in ("whole", "run")]
    assert equal(*states)
    assert states[0]["agents"][SYNTHESIZER]["state"]
    memory = json.loads((tmp_path / "run" / last / "trainer.json").read_text())["method"]["synco"]
    assert len(memory["memory"]) == 32


@pytest.mark.slow
def test_two_processes_write_and_solve_what_one_does(tmp_path: Path) -> None:
    chosen = SMALL | {"synco.slots": 16, "run.device": "cpu", "run.threads": 1}
    asked = ["--method", "synco", "--model", "tiny", "--domain", "python", "--steps", "1"]
    for name, value in chosen.items():
        if name not in ("method", "model", "steps", "data.domains"):
            asked += ["--set", f"{name}={value}"]
    launchers: dict[str, list[str]] = {
        "one": [],
        "two": ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"],
    }
    for run, launcher in launchers.items():
        subprocess.run(
            [sys.executable, *launcher, "-m", "modebench", "train", *asked, "-o", str(tmp_path / run)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            check=True,
            timeout=900,
        )
    assert json.loads((tmp_path / "two/summary.json").read_text())["processes"] == 2
    first, second = (lines(tmp_path / run / "tasks.jsonl") for run in launchers)
    assert first == second
    assert len({line["reward"] for line in first}) > 1
    for agent in ("", SYNTHESIZER):
        place = Path("checkpoints/step-000001") / (f"agents/{agent}" if agent else "") / "model.safetensors"
        one, two = (load_file(tmp_path / run / place) for run in launchers)
        before = load_file(tiny_folder() / "model.safetensors")
        moved = sum(float((one[name] - before[name]).square().sum()) for name in one) ** 0.5
        apart = sum(float((one[name] - two[name]).square().sum()) for name in one) ** 0.5
        # Where a gradient is rounding alone, the first step of AdamW has its sign.
        assert apart < 0.05 * moved


def test_the_tasks_of_every_kept_checkpoint_are_asked_again(
    joint: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """results/teachability.py: further rollouts come from the policy that the tasks met."""
    main = runpy.run_path(str(ROOT / "results" / "teachability.py"))["main"]
    sweep, work, out = joint[0].parent, tmp_path / "asked", tmp_path / "results"
    arguments = [str(sweep), str(out), "--work", str(work), "--samples", "6", "--draws", "20"]
    assert exit_code(lambda: main(arguments)) == 0
    asked = pd.read_csv(out / "asked.csv")
    proposed = pd.DataFrame(lines(joint[0] / "tasks.jsonl"))
    valid = proposed[proposed["valid"] & proposed["size"].notna()]
    assert len(asked) == len(valid) > 0
    assert set(asked["step"]) == set(valid["step"])
    assert set(asked["rollouts"]) == {4}  # behind the first two, which are as many as were logged
    for step in set(asked["step"]):
        manifest = json.loads((work / f"joint/step-{step - 1:06d}/evaluation/run.json").read_text())
        assert manifest["model"].endswith(f"checkpoints/step-{step - 1:06d}")
    teach = asked["teachability"] > 0
    assert (teach == (asked["same"] == 1)).all()
    before = (out / "table.csv").read_bytes()
    assert exit_code(lambda: main(arguments)) == 0  # evaluations that are there are not made again
    assert (out / "table.csv").read_bytes() == before
    assert "teachability" in (out / "table.md").read_text()


def test_asking_again_needs_tasks_that_were_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(ROOT / "results" / "teachability.py"))["main"]
    (tmp_path / "empty").mkdir()
    assert exit_code(lambda: main([str(tmp_path / "empty"), str(tmp_path / "out")])) == 2
    assert capsys.readouterr().err.startswith("error: ")
