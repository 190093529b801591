"""The packaged tiny policy, and what a model folder says about how it is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modebench.domains import DOMAINS
from modebench.errors import InputError
from modebench.sampling import parse_model
from modebench.tiny import PROFILE_FILE, model_defaults, tiny_folder
from modebench.training.config import DataConfig
from modebench.training.profiles import profile_layer
from tests.conftest import Command


def test_model_strings() -> None:
    assert parse_model("tiny") == ("hf", str(tiny_folder()))
    assert parse_model("hf/tiny") == ("hf", str(tiny_folder()))
    assert parse_model("vllm/tiny") == ("vllm", str(tiny_folder()))
    assert parse_model("hf/org/tiny") == ("hf", "org/tiny")


def test_the_package_holds_an_ordinary_small_folder() -> None:
    names = {path.name for path in tiny_folder().iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", PROFILE_FILE} <= names
    assert sum(path.stat().st_size for path in tiny_folder().iterdir()) < 8 * 2**20


def test_the_folder_is_what_pretraining_would_write() -> None:
    """Another word or setting in the code asks for another policy."""
    from transformers import AutoTokenizer

    from modebench.pretraining.folder import PROFILE
    from modebench.pretraining.tokenizer import make_tokenizer

    packaged, made = AutoTokenizer.from_pretrained(tiny_folder()), make_tokenizer()
    assert packaged.get_vocab() == made.get_vocab()
    assert packaged.chat_template == made.chat_template
    assert (tiny_folder() / PROFILE_FILE).read_text() == PROFILE


def test_its_card_has_every_domain_and_level() -> None:
    card = (tiny_folder() / "README.md").read_text()
    for domain in DOMAINS:
        for level in (1, 2, 3, 4, 5):
            assert f"| {domain} | {level} |" in card


@pytest.mark.parametrize("domain", DOMAINS)
def test_its_profile_leaves_room_for_the_longest_answer(domain: str) -> None:
    """Too small a limit reads as accuracy 0."""
    from transformers import AutoTokenizer

    from modebench.compact import compact_answer
    from modebench.domains import get_domain
    from modebench.tasks import load_tasks

    layer = profile_layer(str(tiny_folder()), 10**6, DataConfig(domains=(domain,)))
    limit = layer["rollout.max_completion_length"].value
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder())
    longest = 0
    for task in load_tasks(domain, 1, "train").tasks[::8]:
        for solution in get_domain(domain).solutions(task.reference, 1):
            ids = tokenizer(compact_answer(solution.answer), add_special_tokens=False).input_ids
            longest = max(longest, len(ids) + 1)
    assert longest <= limit


def test_a_run_on_more_than_level_1_of_one_domain_has_the_general_limit() -> None:
    one = profile_layer(str(tiny_folder()), 10**6, DataConfig(domains=("graph",)))
    both = profile_layer(str(tiny_folder()), 10**6, DataConfig(domains=("graph", "python")))
    higher = profile_layer(str(tiny_folder()), 10**6, DataConfig(domains=("graph",), levels=(1, 2)))
    name = "rollout.max_completion_length"
    assert one[name].value < both[name].value == higher[name].value
    assert not any(key.startswith("level1.") for key in {**one, **both, **higher})


def test_defaults_of_a_folder(tmp_path: Path) -> None:
    assert model_defaults(tmp_path) == {}
    (tmp_path / PROFILE_FILE).write_text("rollout: {profile: plain, max_completion_length: 9}\n")
    assert model_defaults(tmp_path) == {"profile": "plain", "max_tokens": 9}
    (tmp_path / PROFILE_FILE).write_text("optimizer: {learning_rate: 1}\n")
    assert model_defaults(tmp_path) == {}
    for broken in ("- a list", "rollout: 3", "rollout: [", "a: b: c"):
        (tmp_path / PROFILE_FILE).write_text(broken)
        with pytest.raises(InputError, match="YAML mapping"):
            model_defaults(tmp_path)


def test_it_is_asked_in_its_own_profile_unless_told_otherwise(tmp_path: Path, modebench: Command) -> None:
    asked = ["eval", "-m", "tiny", "--domain", "graph", "--limit", "2", "-k", "2", "--threads", "1"]
    done = modebench(*asked, "-o", "own")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "own" / "run.json").read_text())
    assert manifest["model"] == "tiny"
    assert manifest["profile"] == "compact"
    assert manifest["origins"]["profile"] == manifest["origins"]["max_tokens"] == "model"
    told = modebench(*asked, "--profile", "plain", "--dry-run")
    assert "'plain'  (command line)" in told.stdout


def test_bare_training_works_and_its_checkpoints_know_how_they_are_asked(
    tmp_path: Path, modebench: Command
) -> None:
    small = ["data.limit=4", "eval.limit=2", "eval.samples=2", "eval.dev_limit=0", "rollout.num_prompts=2"]
    sets = [piece for text in small for piece in ("--set", text)]
    done = modebench(
        "train",
        "--method",
        "re_dr",
        "--model",
        "tiny",
        "--domain",
        "graph",
        "--steps",
        "2",
        *sets,
        "-o",
        "run",
    )
    assert done.returncode == 0, done.stderr
    [last] = sorted((tmp_path / "run" / "checkpoints").glob("step-000002"))
    assert (last / PROFILE_FILE).read_bytes() == (tiny_folder() / PROFILE_FILE).read_bytes()
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(metrics) == 2
    fewer = modebench("train", "--method", "dr_grpo", "--model", "tiny", "--domain", "graph", "--dry-run")
    assert fewer.returncode == 0, fewer.stderr
    assert "replay" not in fewer.stdout
