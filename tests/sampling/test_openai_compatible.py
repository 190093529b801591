"""The endpoint engine against a server that misbehaves; rows are those of the survey of harness faults in
`tests/test_survey_of_faults.py`."""

from __future__ import annotations

import json
import logging
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import modebench as mb
from modebench.config import EvalConfig, Selection
from modebench.errors import UsageError
from modebench.evaluation import create_run, evaluate, finish, generate, task_seeds
from modebench.prompts import build_messages
from modebench.runs import RunFolder
from modebench.sampling import EngineOptions, openai_compatible
from modebench.sampling.base import EngineUnavailable, GenerationSettings, Group
from modebench.sampling.mock import MockEngine
from modebench.sampling.openai_compatible import OpenAICompatibleEngine
from tests.sampling.stub_server import Body, StubServer, choice_of

KEY = "sk-this-must-never-be-seen-anywhere"
SMALL = EvalConfig(selection=Selection(domains=("countdown", "graph"), limit=5), samples=8)
STORM = {"429": 0.5, "broken": 0.2, "hang": 0.05, "500": 0.02, "drop": 0.02, "empty": 0.02}


@pytest.fixture(autouse=True)
def _key_and_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(openai_compatible, "_FIRST_WAIT", 0.002)
    monkeypatch.setattr(openai_compatible, "_LONGEST_WAIT", 0.02)


def engine(stub: StubServer, **options: Any) -> OpenAICompatibleEngine:
    options = {"concurrency": 8, "timeout": 60.0, **options}
    return OpenAICompatibleEngine("m", EngineOptions(base_url=stub.url, **options))


def lines(run: RunFolder) -> list[dict[str, Any]]:
    return list(run.responses())


def right_answer(body: Body, seed: int) -> str:
    """What a model without collapse would answer to the Countdown task of this request."""
    [task] = [task for task in mb.load_tasks("countdown") if task.problem == body["messages"][-1]["content"]]
    [(_, [sample])] = MockEngine("uniform").generate([Group(task, (), (seed,))], SMALL.settings)
    return sample.response


def assert_complete(run: RunFolder, config: EvalConfig = SMALL) -> None:
    """Exactly K distinct samples of every task, each with the seed that belongs to it."""
    asked = {
        (task.id, index): seed
        for tasks in config.selection.load()
        for task in tasks
        for index, seed in enumerate(task_seeds(config, task.id, config.samples))
    }
    records = lines(run)
    assert {(record["task_id"], record["sample"]): record["seed"] for record in records} == asked
    assert len(records) == len(asked) == len({record["response"] for record in records})
    assert all(record["error"] is None for record in records)


def test_a_storm_of_faults_ends_with_exactly_k_distinct_samples(tmp_path: Path) -> None:
    """Row 24: rate limits and every other passing fault are waited out."""
    with StubServer(faults=STORM) as stub:
        run = evaluate(engine(stub, retries=200, timeout=0.5), tmp_path / "run", SMALL)
    assert set(stub.met) == {*STORM, "none"}
    assert_complete(run.folder)
    assert run.folder.manifest["status"] == "success"
    assert all(record["response"] == f"\\boxed{{{record['seed']}}}" for record in lines(run.folder))


def test_never_more_in_flight_than_allowed() -> None:
    """Row 24: a bounded number of requests, also while some are tried again."""
    groups = groups_of(SMALL)[:4]
    for allowed in (1, 3):
        with StubServer(faults={"429": 0.3, "broken": 0.2}, delay=0.02) as stub:
            list(engine(stub, concurrency=allowed, retries=50).generate(groups, SMALL.settings))
        # A busy machine may start its threads too late to reach the limit.
        assert min(2, allowed) <= stub.most_at_once <= allowed


def groups_of(config: EvalConfig) -> list[Group]:
    return [
        Group(task, build_messages(task), tuple(task_seeds(config, task.id, config.samples)))
        for tasks in config.selection.load()
        for task in tasks
    ]


def test_every_sample_has_its_own_seed_the_same_in_every_run(tmp_path: Path) -> None:
    """Row 2: one seed for every repeat would make one response of K."""
    seeds = []
    for name in ("a", "b"):
        with StubServer() as stub:
            evaluate(engine(stub), tmp_path / name, SMALL)
        seeds.append(sorted(stub.seeds))
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == len(seeds[0]) == 80
    assert max(seeds[0]) >= 2**62


def test_what_is_sent_is_messages_settings_and_seed_never_the_reference(tmp_path: Path) -> None:
    config = replace(
        SMALL,
        selection=Selection(limit=4, levels=(1, 3)),
        samples=2,
        settings=GenerationSettings(temperature=0.7, top_p=0.9, top_k=5, max_tokens=33, stop=("##",)),
    )
    with StubServer() as stub:
        evaluate(engine(stub), tmp_path / "run", config)
    tasks = [task for tasks in config.selection.load() for task in tasks]
    chats = [list(build_messages(task)) for task in tasks]
    for body in stub.bodies:
        assert body.pop("messages") in chats
        assert type(body.pop("seed")) is int
        settings = {"temperature": 0.7, "top_p": 0.9, "top_k": 5, "max_tokens": 33, "stop": ["##"]}
        assert body == {"model": "m", **settings}
    everything = "\n".join(stub.received)
    for task in tasks:
        for form in (task.reference_json, json.dumps(task.reference)):
            assert form not in everything
            assert json.dumps(form)[1:-1] not in everything
        assert task.id not in everything
    assert "verifier" not in everything


def test_no_secret_in_any_file_or_message(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A server that repeats the key in its errors, a key refused, and a run that gives up."""

    def refuse(body: Body, key: str) -> tuple[int, str] | None:
        return (400, f"bad request by {key} {body['seed']}") if body["seed"] % 4 == 0 else None

    caplog.set_level(logging.DEBUG)
    with StubServer(refuse=refuse) as stub:
        client = engine(stub)
        run = evaluate(client, tmp_path / "run", SMALL)
        assert KEY in "".join(stub.received)
    errors = [record["error"] for record in lines(run.folder) if record["error"]]
    assert errors
    assert all("bad request by Bearer [key]" in error for error in errors)
    with (
        StubServer(refuse=lambda body, key: (401, f"Incorrect key {key}")) as stub,
        pytest.raises(UsageError, match="no responses yet"),
    ):
        evaluate(engine(stub), tmp_path / "refused", SMALL)
    with pytest.raises(EngineUnavailable) as problem:
        OpenAICompatibleEngine("m", EngineOptions(base_url="http://127.0.0.1:9/v1"))
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    shown = "".join(capfd.readouterr())
    for text in (written, shown, caplog.text, str(problem.value), json.dumps(client.describe())):
        assert KEY not in text


def test_what_is_refused_for_good_is_an_error_not_a_wrong_answer(tmp_path: Path) -> None:
    """Row 7: a failure has no verdict and no mode, and the diversity of the others stays what it is."""

    def right(body: Body, seed: int) -> Body:
        return choice_of(body, right_answer(body, seed))

    config = replace(SMALL, selection=Selection(domains=("countdown",), limit=5), error_budget=0.5)
    tables = {}
    for name, refuse in (
        ("whole", lambda body, key: None),
        ("fifth", lambda body, key: (400, "too long") if body["seed"] % 5 == 0 else None),
    ):
        with StubServer(right, refuse=refuse) as stub:
            tables[name] = evaluate(engine(stub), tmp_path / name, config).samples()
            assert len(stub.bodies) == 40  # a refusal is not tried again
    failed = tables["fifth"].status == "error"
    assert 2 <= failed.sum() <= 15
    assert tables["fifth"][failed]["mode"].isna().all()
    assert (tables["fifth"][~failed].status == "correct").all()
    both = tables["fifth"][~failed].merge(tables["whole"], on=["task_id", "sample"])
    assert both["mode_x"].tolist() == both["mode_y"].tolist()


@pytest.mark.parametrize("size", [2, 3, 8, 50])
@pytest.mark.parametrize("gives", ["all", "one", "two"])
def test_several_samples_a_request_are_counted_and_topped_up(tmp_path: Path, size: int, gives: str) -> None:
    """Rows 3 and 4: a server that ignores the number asked never leaves K' < K samples behind."""
    count = {"all": lambda n: n, "one": lambda n: 1, "two": lambda n: min(n, 2)}[gives]
    with StubServer(count=count, faults={"broken": 0.2}) as stub:
        run = evaluate(engine(stub, samples_per_request=size, retries=50), tmp_path / "run", SMALL)
    assert_complete(run.folder)
    assert all(body.get("n", 1) <= size for body in stub.bodies)
    if gives == "all":
        assert stub.met["none"] == 10 * -(-8 // size)


def test_more_choices_than_asked_are_a_fault(tmp_path: Path) -> None:
    with StubServer(count=lambda n: n + 1) as stub:
        run = evaluate(engine(stub, retries=2), tmp_path / "run", replace(SMALL, samples=1))
    assert {record["error"] for record in lines(run.folder)} == {
        "3 tries failed, the last: 1 choices were asked for, 2 came"
    }
    assert run.folder.manifest["status"] == "error"
    assert len(stub.bodies) == 30


def test_identical_replies_are_reported(tmp_path: Path) -> None:
    """Rows 1 and 2: a server whose K samples are one sample is not taken for a collapsed model in silence."""
    text = "no idea at all, but always in these same words, word by word by word"
    config = replace(SMALL, selection=Selection(domains=("countdown",), limit=20), samples=4)
    with StubServer(lambda body, seed: choice_of(body, text)) as stub:
        run = evaluate(engine(stub), tmp_path / "run", config)
    assert len(run.samples()) == 80
    assert any(warning.startswith("one-text") for warning in run.summary()["warnings"])


def test_truncation_is_counted_and_warned_of(tmp_path: Path) -> None:
    """Row 8: what was cut off is shown as cut off."""

    def cut(body: Body, seed: int) -> Body:
        return choice_of(
            body,
            f"<think>\\boxed{{{seed}}}" if seed % 10 < 3 else f"{seed}",
            "length" if seed % 10 < 3 else "stop",
        )

    with StubServer(cut) as stub:
        run = evaluate(engine(stub), tmp_path / "run", SMALL)
    short = [record for record in lines(run.folder) if record["seed"] % 10 < 3]
    assert {record["finish_reason"] for record in short} == {"length"}
    document = run.summary()
    assert sum(cell["counts"]["truncated"] for cell in document["cells"]) == len(short) > 10
    assert any(warning.startswith("truncated") for warning in document["warnings"])
    table = run.samples()
    assert (table[table.finish_reason == "length"].status == "malformed").all()


def test_reasoning_in_all_shapes_is_never_graded(tmp_path: Path) -> None:
    """Row 9: a boxed decoy in the reasoning, in each of the shapes in which servers send it."""

    def think(body: Body, seed: int) -> Body:
        right = right_answer(body, seed)
        decoy = "perhaps \\boxed{1 + 1}"
        shapes = [
            choice_of(body, f"<think>{decoy}</think>{right}"),
            choice_of(body, f"{decoy}</think>{right}"),
            choice_of(body, right, reasoning_content=decoy),
            choice_of(body, right, reasoning=decoy),
            choice_of(body, f"<think>{right}", "length"),
        ]
        return shapes[seed % 5]

    config = replace(SMALL, selection=Selection(domains=("countdown",), limit=5))
    with StubServer(think) as stub:
        run = evaluate(engine(stub), tmp_path / "run", config)
    statuses: dict[int, set[str]] = {}
    for record, status in zip(lines(run.folder), run.samples().status, strict=True):
        statuses.setdefault(record["seed"] % 5, set()).add(status)
        assert (record["reasoning"] == "perhaps \\boxed{1 + 1}") == (record["seed"] % 5 in (2, 3))
    assert statuses == {0: {"correct"}, 1: {"correct"}, 2: {"correct"}, 3: {"correct"}, 4: {"malformed"}}


def test_a_partial_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Row 18: a recorded sample is never asked for again, also where half of a group failed."""
    with StubServer(faults={"500": 0.3}) as stub:
        client = engine(stub, retries=0)
        run = create_run(tmp_path / "run", client, "openai/m", SMALL)
        missing = generate(run, client)
        assert 5 < missing < 75
        recorded = {record["seed"] for record in lines(run) if record["error"] is None}
        stub.faults.clear()
        before = len(stub.seeds)
        assert finish(RunFolder.open(run.path), client) == 0
        assert len(stub.seeds) - before == missing
        assert not recorded & set(stub.seeds[before:])
    assert_complete(run)


def test_a_key_revoked_gives_up_at_once_and_keeps_what_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with StubServer() as stub:
        stub.refuse = lambda body, key: (401, "key revoked") if len(stub.bodies) > 30 else None
        client = engine(stub, concurrency=2)
        run = create_run(tmp_path / "run", client, "openai/m", SMALL)
        missing = finish(run, client)
        assert missing == 80 - sum(record["error"] is None for record in lines(run)) >= 50
        assert len(stub.bodies) <= 30 + 2
        assert "giving up: Error code: 401" in caplog.text
        assert run.manifest["status"] == "error"
        stub.refuse = lambda body, key: None
        assert finish(RunFolder.open(run.path), client) == 0
    assert_complete(run)


def test_a_key_refused_from_the_start_is_said_in_one_line(tmp_path: Path) -> None:
    with StubServer(refuse=lambda body, key: (401, "wrong key")) as stub:
        client = engine(stub)
        with pytest.raises(UsageError, match="has no responses yet; go on with: modebench eval --resume"):
            evaluate(client, tmp_path / "run", SMALL)
        assert len(stub.bodies) <= client.options.concurrency
        stub.refuse = lambda body, key: None
        run = RunFolder.open(tmp_path / "run")
        assert run.manifest["status"] == "error"
        assert finish(run, client) == 0
    assert_complete(run)


def test_a_dead_server_is_not_asked_for_ever(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with StubServer(faults={"drop": 1.0}) as stub:
        client = engine(stub, concurrency=4, retries=1)
        run = create_run(tmp_path / "run", client, "openai/m", SMALL)
        assert finish(run, client) == 80
    assert "8 requests in a row failed" in caplog.text
    assert len(stub.bodies) <= 2 * (8 + 4)


def test_retry_after_is_honoured_and_the_jitter_is_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 24: the server's own time where it names one, else a doubling one with jitter."""
    monkeypatch.setattr(openai_compatible, "_FIRST_WAIT", 0.5)
    monkeypatch.setattr(openai_compatible, "_LONGEST_WAIT", 3.0)
    waits: list[float] = []
    monkeypatch.setattr(openai_compatible, "time", SimpleNamespace(sleep=waits.append))
    [group] = groups_of(replace(SMALL, selection=Selection(domains=("countdown",), limit=1), samples=1))
    for _ in range(2):
        with StubServer(faults={"429": 1.0}) as stub:
            list(engine(stub, retries=5, concurrency=1).generate([group], SMALL.settings))
    named, own = waits[0::2], waits[1::2]
    assert named[:2] == [0.01, 0.01]
    rng = random.Random(group.seeds[0])
    assert waits[:5] == waits[5:]
    jitters = [rng.uniform(0.5, 1.0) for _ in range(2)]
    assert own[:2] == [pytest.approx(1.0 * jitters[0]), pytest.approx(3.0 * jitters[1])]


def test_forms_of_retry_after() -> None:
    seconds = openai_compatible._seconds
    assert seconds(None) is None
    assert seconds("2.5") == 2.5
    assert seconds("soon") is None
    assert seconds("-3") == seconds("nan") == 0.0
    assert seconds("1e9") == 300.0
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert seconds(later) == pytest.approx(60, abs=5)


def test_base_models_are_asked_at_the_completions_endpoint(tmp_path: Path) -> None:
    """Row 11: a base model gets the plain prompt, and the manifest says so."""
    with StubServer() as stub:
        run = evaluate(engine(stub, chat_template=False), tmp_path / "run", SMALL)
    assert_complete(run.folder)
    assert set(stub.paths) == {"/v1/completions"}
    task = mb.load_tasks("countdown")[0]
    system, user = (message["content"] for message in build_messages(task))
    assert f"{system}\n\n{user}" in {body["prompt"] for body in stub.bodies}
    assert run.folder.manifest["engine"]["endpoint"] == "completions"


@pytest.mark.parametrize(
    ("owner", "fields"),
    [
        ("vllm", {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),
        ("llamacpp", {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0}),
        ("someone", {}),
    ],
)
def test_the_servers_own_sampling_defaults_are_switched_off(
    tmp_path: Path, owner: str, fields: dict[str, float]
) -> None:
    """Row 5: temperature and its like are never left to the server's or the model's defaults."""
    config = replace(SMALL, samples=1)
    with StubServer(owner=owner) as stub:
        run = evaluate(engine(stub, extra_body={"mine": [1]}), tmp_path / "run", config)
    standard = {"model", "messages", "temperature", "top_p", "max_tokens", "seed"}
    for body in stub.bodies:
        assert {name: value for name, value in body.items() if name not in standard} == fields | {"mine": [1]}
        assert body["temperature"] == 1.0
        assert body["top_p"] == 1.0
    assert run.folder.manifest["engine"]["extra_fields"] == fields | {"mine": [1]}
    assert run.folder.manifest["engine"]["server"] == owner


def test_seeds_of_31_bits_for_servers_that_refuse_more(tmp_path: Path) -> None:
    def refuse(body: Body, key: str) -> tuple[int, str] | None:
        return (422, "seed must be below 2**31") if body["seed"] >= 2**31 else None

    with StubServer(refuse=refuse) as stub:
        run = evaluate(engine(stub), tmp_path / "long", replace(SMALL, samples=1))
        assert all("--seed-bits 31" in record["error"] for record in lines(run.folder))
        short = replace(SMALL, seed_bits=31)
        assert_complete(evaluate(engine(stub), tmp_path / "short", short).folder, short)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "http://user:secret@host/v1"}, "--base-url must not carry a key"),
        ({"base_url": "http://host/v1?api_key=secret"}, "--base-url must not carry a key"),
        ({"base_url": "localhost:8000"}, "--base-url must be like"),
        ({"concurrency": 0}, "--concurrency must be at least 1, not 0"),
        ({"samples_per_request": 0}, "--samples-per-request"),
        ({"timeout": 0.0}, "--timeout"),
        ({"retries": -1}, "--retries"),
        ({"api_key_env": "sk-secret"}, "--api-key-env must name an environment variable"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as problem:
        OpenAICompatibleEngine("m", EngineOptions(**options))
    assert "secret" not in str(problem.value)


def test_a_missing_key_and_a_missing_server_are_said_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(EngineUnavailable, match=r"no server answers at http://127\.0\.0\.1:9/v1"):
        OpenAICompatibleEngine("m", EngineOptions(base_url="http://127.0.0.1:9/v1", retries=0))
    with pytest.raises(EngineUnavailable, match="the environment variable MY_KEY holds no key"):
        OpenAICompatibleEngine("m", EngineOptions(base_url="http://127.0.0.1:9/v1", api_key_env="MY_KEY"))
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EngineUnavailable, match="OPENAI_API_KEY holds no key"):
        OpenAICompatibleEngine("m", EngineOptions())
    with StubServer() as stub:  # a local server wants none
        list(engine(stub).generate(groups_of(replace(SMALL, samples=1)), SMALL.settings))
    assert "Bearer none" in stub.received[-1]


def test_a_server_that_fails_to_list_its_models_is_told_so() -> None:
    """`transformers serve` does, where the folder that it lists is missing."""
    with StubServer() as stub:
        stub.list_status = 500
        with pytest.raises(EngineUnavailable, match=r"the server at http\S+ cannot list its models: .*500"):
            engine(stub, retries=0)
