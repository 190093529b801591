"""Twenty kills at random points: a resumed run ends in the bytes of an undisturbed one."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FILES = ("responses.jsonl", "verdicts.published.jsonl", "chance.published.jsonl", "summary.json")


def asked(model: str) -> list[str]:
    size = (
        ["-n", "6", "-k", "4", "--max-tokens", "24"] if model.startswith("hf/") else ["-n", "40", "-k", "16"]
    )
    return ["-m", model, "--domain", "mathir,countdown,pantry", *size, "--threads", "1"]


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "modebench", "eval", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def killed_until_done(folder: Path, arguments: list[str], kills: int, seconds: float) -> None:
    """Run, killing at a random moment `kills` times, then to the end."""
    rng = random.Random(folder.name)
    for _ in range(kills):
        resuming = (folder / "run" / "run.json").exists()
        process = start(folder, *(["--resume", "run"] if resuming else [*arguments, "-o", "run"]))
        time.sleep(rng.uniform(0, seconds))
        process.send_signal(signal.SIGKILL)
        process.wait()
    resuming = (folder / "run" / "run.json").exists()
    assert start(folder, *(["--resume", "run"] if resuming else [*arguments, "-o", "run"])).wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["mock", "hf"])
def test_twenty_kills(tmp_path: Path, engine: str) -> None:
    model = "mock/random"
    if engine == "hf":
        pytest.importorskip("transformers")
        from tests.sampling.tiny_models import save_tiny

        model = f"hf/{save_tiny(tmp_path / 'model', 'llama', positions=2_048)}"
    began = time.monotonic()
    assert start(tmp_path, *asked(model), "-o", "whole").wait() == 0
    assert '"error":null' in (tmp_path / "whole" / "responses.jsonl").read_text()
    seconds = time.monotonic() - began
    for number, kills in enumerate((5, 5, 5, 5)):
        folder = tmp_path / f"{engine}-{number}"
        folder.mkdir()
        killed_until_done(folder, asked(model), kills, seconds)
        for name in FILES:
            assert (folder / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
