"""Grammars in requests: to vLLM's servers alone, and only where the server is seen to heed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from modebench.config import EvalConfig, Selection
from modebench.domains.grammars import grammar_of
from modebench.evaluation import create_run, evaluate
from modebench.sampling import EngineOptions
from modebench.sampling.base import EngineUnavailable
from modebench.sampling.openai_compatible import OpenAICompatibleEngine
from tests.sampling.stub_server import Body, StubServer


def engine(stub: StubServer) -> OpenAICompatibleEngine:
    return OpenAICompatibleEngine("m", EngineOptions(base_url=stub.url, concurrency=2, retries=0))


def grammars_known(body: Body, key: str) -> tuple[int, str] | None:
    """What a server that knows the field says to a grammar that is none."""
    grammar = body.get("structured_outputs", {}).get("grammar", "root ::=")
    return None if grammar.startswith("root ::=") else (400, "invalid grammar")


HELD = EvalConfig(
    selection=Selection(domains=("pantry", "graph"), levels=(2,), limit=1), samples=2, constrained=True
)


def test_a_grammar_goes_into_the_request_of_its_task_alone(tmp_path: Path) -> None:
    with StubServer(owner="vllm", refuse=grammars_known) as stub:
        run = evaluate(engine(stub), tmp_path / "run", HELD)
    constraint = run.folder.manifest["engine"]["constraint"]
    assert constraint == {"library": "vLLM's structured outputs", "version": None}  # the stub does not tell
    probe, *asked = stub.bodies
    assert probe["structured_outputs"] == {"grammar": "no grammar"}
    tasks = {task.problem: task for tasks in HELD.selection.load() for task in tasks}
    for body in asked:
        grammar = grammar_of(tasks[body["messages"][-1]["content"]])
        assert body.get("structured_outputs") == (None if grammar is None else {"grammar": grammar})
    assert sum("structured_outputs" in body for body in asked) == 2
    assert len(asked) == 4


def test_a_server_that_would_ignore_a_grammar_is_refused(tmp_path: Path) -> None:
    with (
        StubServer(owner="vllm") as stub,
        pytest.raises(EngineUnavailable, match="ignores structured_outputs"),
    ):
        create_run(tmp_path / "run", engine(stub), "m", HELD)
    with StubServer(owner="me", refuse=grammars_known) as stub:
        with pytest.raises(
            EngineUnavailable, match=r"--constrained needs a vLLM server, http\S+ is none \(me\)"
        ):
            create_run(tmp_path / "run", engine(stub), "m", HELD)
        assert not stub.bodies
    burning = StubServer(owner="vllm", refuse=lambda body, key: (500, "on fire"))
    with burning as stub, pytest.raises(EngineUnavailable, match=r"gives no answer.*on fire"):
        create_run(tmp_path / "run", engine(stub), "m", HELD)
    assert not (tmp_path / "run").exists()
