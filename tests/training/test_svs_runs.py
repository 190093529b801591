"""Whole runs of SVS on the packaged policy: resumed, at a budget, and on two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from modebench.errors import UsageError
from modebench.training.folder import TrainingFolder
from modebench.training.settings import from_values
from modebench.training.setup import open_trainer, plan, recorded
from tests.sampling.tiny_models import EOS, tiny_model, tiny_tokenizer

ROOT = Path(__file__).parents[2]
SMALL = {
    "method": "svs",
    "model": "tiny",
    "data.domains": "graph_coloring",
    "rollout.num_prompts": 4,
    "rollout.group_size": 8,
    "svs.upper": 0.75,  # so that there is something in the band
    "eval.every": 0,
    "eval.limit": 1,
    "eval.samples": 2,
    "eval.dev_limit": 0,
    "checkpoint.every": 0,
    "checkpoint.keep": 0,
}


def planned(**changes: Any) -> Any:
    names = {name.replace("__", "."): value for name, value in changes.items()}
    return plan([from_values(SMALL | names, "test")])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_resumed_run_is_the_undisturbed_one(tmp_path: Path) -> None:
    asked = planned(steps=2, svs__form="menu")
    assert open_trainer(asked, tmp_path / "whole").run()
    first = open_trainer(asked, tmp_path / "run")
    first.on_step = lambda step, steps, metrics: setattr(first.stop, "made", step == 1)
    assert not first.run()
    with (tmp_path / "run/tasks.jsonl").open("a") as file:  # as a killed process leaves it
        file.write(json.dumps({"step": 2, "part": "svs"}) + '\n{"step": 2, "pa')
    assert open_trainer(recorded(TrainingFolder.open(tmp_path / "run")), tmp_path / "run", resume=True).run()
    last = "checkpoints/step-000002"
    for name in ("metrics.jsonl", "tasks.jsonl", f"{last}/model.safetensors", f"{last}/trainer.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    made, steps = lines(tmp_path / "whole/tasks.jsonl"), lines(tmp_path / "whole/metrics.jsonl")
    assert len(made) == steps[-1]["total/proposed"] > 0
    assert {record["step"] for record in made} <= {1, 2}
    own = 2 * 4 * 8
    solving = sum(record["size"] or 0 for record in made)
    assert steps[-1]["total/rollouts"] == own + len(made) + solving
    assert steps[0]["svs/proposed"] == sum(record["step"] == 1 for record in made)
    assert any(record["valid"] and record["reward"] == 1 for record in made)
    assert all(record["size"] is None for record in made if record["failure"] is not None)


def save_guesser(folder: Path) -> Path:
    """A model that is asked in words and guesses a plan of two to four ingredients, or a letter of a menu."""
    plans = [bits for number in range(64) if 2 <= (bits := f"{number:06b}").count("1") <= 4]
    letters = [f"\\boxed{{{letter}}}" for letter in "ABC"]
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens(plans + letters)
    model = tiny_model("llama", len(tokenizer), positions=2048)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" not in name:
                weight.zero_()  # the layers add nothing: what comes next depends on the last token alone
        embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
        embedding[:, 0] = 1
        embedding[tokenizer.convert_tokens_to_ids(plans + letters)] = torch.eye(embedding.shape[1])[1]
        head[tokenizer.convert_tokens_to_ids(plans), 0] = 2.0
        head[tokenizer.convert_tokens_to_ids(letters), 0] = 2.4
        head[EOS, 1] = 3.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_model_that_is_asked_in_words_makes_tasks_and_learns_from_them(tmp_path: Path) -> None:
    model = save_guesser(tmp_path / "model")
    asked = planned(
        steps=1, model=f"hf/{model}", data__domains="pantry_plan", rollout__profile="direct",
        rollout__max_completion_length=4, rollout__num_prompts=8, svs__form="menu", svs__max_length=4,
    )  # fmt: skip
    assert open_trainer(asked, tmp_path / "run").run()
    [step], made = lines(tmp_path / "run/metrics.jsonl"), lines(tmp_path / "run/tasks.jsonl")
    assert step["accuracy"] > 0
    assert len(made) == step["svs/proposed"] == 8 * step["svs/sources"] > 0
    assert any(record["valid"] and 0 < record["correct"] < record["size"] for record in made)
    assert any(record["failure"] == "unreadable" and record["reward"] == 0 for record in made)
    assert step["svs/with_gradient"] > 0
    assert step["svs/write/with_gradient"] > 0
    assert step["total/updates"] == 1
    first, last = (tmp_path / f"run/checkpoints/step-{n:06d}/model.safetensors" for n in (0, 1))
    assert first.read_bytes() != last.read_bytes()


@pytest.mark.parametrize("form", ["template", "none"])
def test_a_run_ends_when_its_budget_is_spent(form: str, tmp_path: Path) -> None:
    # Own tasks of a step have 32 rollouts, so the last step is cut.
    trainer = open_trainer(planned(steps=9, budget=80, svs__form=form), tmp_path / "run")
    assert trainer.run()
    steps = lines(tmp_path / "run/metrics.jsonl")
    assert steps[-1]["total/rollouts"] == 80
    assert len(steps) < 9
    assert (tmp_path / f"run/eval/step-{len(steps):06d}/summary.json").is_file()
    assert trainer._done


def test_a_schedule_that_needs_its_last_step_is_refused() -> None:
    with pytest.raises(UsageError, match=r"optimizer\.schedule is cosine, .* with svs the budget"):
        planned(budget=80, optimizer__schedule="cosine")
    with pytest.raises(UsageError, match="budget is 4, expected at least 8"):
        planned(budget=4)


@pytest.mark.slow
def test_two_processes_make_the_tasks_that_one_makes(tmp_path: Path) -> None:
    for processes in (1, 2):
        launcher = [sys.executable]
        if processes > 1:
            launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
        sets = [piece for name, value in SMALL.items() if name not in ("method", "model", "data.domains")
                for piece in ("--set", f"{name}={value}")]  # fmt: skip
        done = subprocess.run(
            [*launcher, "-m", "modebench", "train", "--method", "svs", "--model", "tiny", "--domain", "graph",
             "--steps", "2", *sets, "-o", tmp_path / str(processes)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=900,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    one, two = (lines(tmp_path / name / "tasks.jsonl") for name in ("1", "2"))
    assert one
    # Decoded in other batches and trained with another order of sums: the first step is of the same policy.
    assert [each for each in one if each["step"] == 1] == [each for each in two if each["step"] == 1]
