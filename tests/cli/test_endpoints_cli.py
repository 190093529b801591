"""The real command line against a server: exit codes, killing and resuming, tokens and prices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.sampling.stub_server import Body, StubServer

KEY = "sk-this-must-never-be-seen-anywhere"
TASKS = ["--domain", "countdown,graph", "-n", 5, "-k", 8]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)


def asked(stub: StubServer, *options: Any) -> list[Any]:
    return ["-m", "openai/m", "--base-url", stub.url, "--api-key-env", "MY_KEY", *TASKS, *options]


def recorded(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "responses.jsonl").read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def assert_complete(folder: Path) -> None:
    lines = [line for line in recorded(folder) if line["error"] is None]
    assert len({(line["task_id"], line["sample"]) for line in lines}) == len(lines) == 80
    assert len({line["response"] for line in lines}) == 80


def test_missing_samples_are_exit_3_and_the_printed_command_finishes_the_run(
    modebench: Command, tmp_path: Path
) -> None:
    """Row 26: a run that is not whole does not end with 0."""
    with StubServer(faults={"500": 0.3}) as stub:
        options = ["--retries", 0, "--error-budget", 1, "-o", "run"]
        partial = modebench("eval", *asked(stub, *options))
        assert partial.returncode == 3
        last = partial.stderr.splitlines()[-1]
        assert last.endswith("samples are missing; resume with: modebench eval --resume run")
        missing = int(last.split()[0])
        assert missing == sum(line["error"] is not None for line in recorded(tmp_path / "run")) > 0
        over = modebench("eval", *asked(stub, "--retries", 0, "-o", "over"))
        assert over.returncode == 1
        assert "resume with: modebench eval --resume over" in over.stderr
        stub.faults.clear()
        before = len(stub.seeds)
        done = modebench("eval", "--resume", "run")
        assert done.returncode == 0, done.stderr
        assert len(stub.seeds) == before + missing
    assert_complete(tmp_path / "run")


def test_a_refused_key_is_one_line_and_nothing_is_written(modebench: Command, tmp_path: Path) -> None:
    with StubServer() as stub:
        stub.list_status = 401
        refused = modebench("eval", *asked(stub))
    assert refused.returncode == 2
    assert "refuses the key in MY_KEY" in refused.stderr
    assert not any(tmp_path.iterdir())


def test_a_key_revoked_on_the_way_gives_a_loud_partial_result(modebench: Command, tmp_path: Path) -> None:
    with StubServer() as stub:
        stub.refuse = lambda body, key: (401, f"revoked: {key}") if len(stub.bodies) > 40 else None
        partial = modebench("eval", *asked(stub, "-o", "run"))
    assert partial.returncode == 1
    assert "giving up: Error code: 401" in partial.stderr
    assert "resume with: modebench eval --resume run" in partial.stderr
    assert partial.stdout
    written = "".join(path.read_text() for path in (tmp_path / "run").iterdir())
    assert KEY not in written + partial.stdout + partial.stderr


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_killed_and_resumed_it_asks_nothing_again_that_was_recorded(
    modebench: Command, tmp_path: Path, share: float
) -> None:
    """Row 18: kill -9 in the middle; the resumed run has exactly K samples a task."""
    with StubServer(delay=0.02) as stub:
        arguments = [sys.executable, "-m", "modebench", "eval", *map(str, asked(stub, "-o", "run"))]
        process = subprocess.Popen(
            arguments, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while len(stub.seeds) < 80 * share and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        before = {line["seed"] for line in recorded(tmp_path / "run")}
        sent = len(stub.seeds)
        assert len(before) < 80
        done = modebench("eval", "--resume", "run")
        assert done.returncode == 0, done.stderr
        assert not before & set(stub.seeds[sent:])
        assert len(stub.seeds[sent:]) == 80 - len(before)
    assert_complete(tmp_path / "run")


def test_an_interrupted_run_does_not_wait_for_a_hanging_server(tmp_path: Path) -> None:
    with StubServer(faults={"hang": 1.0}) as stub:
        arguments = [sys.executable, "-m", "modebench", "eval", *map(str, asked(stub, "-o", "run"))]
        process = subprocess.Popen(
            arguments,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while not stub.seeds:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        # The default timeout of a request is ten times as long.
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "resume with: modebench eval --resume run" in stderr


def test_tokens_and_cost_add_up_over_a_run(modebench: Command, tmp_path: Path) -> None:
    """Row 30: what was used and what it cost, after the fact; cached input is not counted twice."""
    prices = ["--price-in", 2.5, "--price-out", 10, "-o", "run"]
    with StubServer() as stub:
        done = modebench("eval", *asked(stub, *prices))
    assert done.stdout.splitlines()[-1] == "tokens: 8000 in, 560 out; cost 0.0256"
    usage = {"input_tokens": 8000, "output_tokens": 560, "uncounted_samples": 0}
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["usage"] == {**usage, "cost": pytest.approx(0.0256)}
    with StubServer() as stub:
        free = modebench("eval", *asked(stub, "--json"))
    assert json.loads(free.stdout)["usage"] == {**usage, "cost": None}


def test_a_whole_group_of_shapes_survives_the_command_line(modebench: Command, tmp_path: Path) -> None:
    """The extra body and the number of seed bits reach the server and the manifest."""
    with StubServer() as stub:
        extra = '{"chat_template_kwargs": {"enable_thinking": false}}'
        done = modebench("eval", *asked(stub, "--extra-body", extra, "--seed-bits", 31, "-o", "run"))
        assert done.returncode == 0, done.stderr

        def as_asked(body: Body) -> bool:
            return body["seed"] < 2**31 and body["chat_template_kwargs"] == {"enable_thinking": False}

        assert all(map(as_asked, stub.bodies))
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["engine_options"]["extra_body"] == json.loads(extra)
    assert manifest["seed_bits"] == 31


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--extra-body", "{"], "--extra-body"),
        (["--extra-body", "[1]"], "must be a JSON object"),
        (["--concurrency", "0"], "--concurrency must be at least 1, not 0"),
        (["--price-in", "-1"], "--price-in"),
        (["--seed-bits", "32"], "--seed-bits must be 31 or 63, not 32"),
        (["--base-url", "http://me:pw@127.0.0.1/v1"], "must not carry a key"),
        (["--api-key-env", "NOT_SET"], "the environment variable NOT_SET holds no key"),
    ],
)
def test_wrong_options_are_one_line_and_nothing_is_written(
    modebench: Command, tmp_path: Path, options: list[str], message: str
) -> None:
    done = modebench("eval", "-m", "openai/m", "--base-url", "http://127.0.0.1:9/v1", *options)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not any(tmp_path.iterdir())
