"""Runs, folders of runs and files of judged samples as tables, and the columnar copies beside large files."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import modebench as mb
from modebench import columns as col
from modebench.cli.errors import exit_code
from modebench.config import EvalConfig, Selection
from modebench.errors import InputError, UsageError
from modebench.evaluation import evaluate, finish
from modebench.runs import RunFolder
from modebench.sampling.mock import MockEngine

CONFIG = EvalConfig(selection=Selection(domains=("countdown", "graph_coloring"), limit=3), samples=4)


@pytest.fixture
def run(tmp_path: Path) -> mb.samples.Run:
    return evaluate(MockEngine("random"), tmp_path / "run", CONFIG, model="mock/random")


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def judged(**fields: Any) -> dict[str, Any]:
    return {
        "task_id": "t", "domain": "countdown", "level": 1, "sample": 0, "status": "incorrect", "mode": None,
        **fields,
    }  # fmt: skip


@pytest.fixture
def eager_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(col, "_COPY_FROM", 1)


def test_samples_are_the_lines_of_the_files(run: mb.samples.Run) -> None:
    table = run.samples()
    lines = [json.loads(line) for line in run.folder.responses_path.read_text().splitlines()]
    verdicts = [json.loads(line) for line in run.folder.verdicts_path("published").read_text().splitlines()]
    assert len(table) == len(lines) == 24
    for name in ("task_id", "domain", "level", "sample", "response", "finish_reason"):
        assert table[name].tolist() == [line[name] for line in lines], name
    assert table["status"].tolist() == [line["status"] for line in verdicts]
    assert [m if isinstance(m, str) else None for m in table["mode"]] == [line["mode"] for line in verdicts]


def test_verdicts_are_found_in_any_order(run: mb.samples.Run) -> None:
    before = run.samples()
    path = run.folder.verdicts_path("published")
    path.write_text("\n".join(reversed(path.read_text().splitlines())) + "\n")
    pd.testing.assert_frame_equal(run.samples(), before)


def test_a_response_without_a_verdict_is_an_error(run: mb.samples.Run) -> None:
    path = run.folder.verdicts_path("published")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match=r"responses\.jsonl:24: sample: 3 of \S+ has no verdict"):
        run.samples()


def test_without_texts_the_numbers_are_the_same(run: mb.samples.Run) -> None:
    whole, lean = run.samples(), run.samples(texts=False)
    assert "response" not in lean
    assert lean.groupby("response_hash").ngroups == whole["response"].nunique()
    pd.testing.assert_frame_equal(mb.summarize(lean), mb.summarize(whole))


def test_a_folder_of_runs_is_searched_to_any_depth(tmp_path: Path) -> None:
    for seed, place in ((1, "a/one"), (2, "a/deep/er/two")):
        config = EvalConfig(selection=CONFIG.selection, samples=2, seed=seed, arm=f"arm{seed}")
        evaluate(MockEngine("random"), tmp_path / place, config, model=f"m{seed}")
    runs = mb.load_runs(tmp_path / "a")
    assert [run.path.name for run in runs] == ["two", "one"]
    table = runs.samples()
    assert table.groupby("model", observed=True).agg({"seed": "first", "arm": "first"}).to_dict() == {
        "seed": {"m1": 1, "m2": 2},
        "arm": {"m1": "arm1", "m2": "arm2"},
    }
    assert len(table) == 24
    assert set(table["step"]) == {0}
    assert table["domain"].cat.categories[:2].tolist() == ["graph_coloring", "countdown"]
    assert len(runs.prompts()) == 12
    assert len(runs.summary()["cells"]) == 4
    pd.testing.assert_frame_equal(mb.load_samples([tmp_path / "a"]), table)
    assert isinstance(runs[:1], mb.samples.Runs)


def test_a_bare_file(tmp_path: Path) -> None:
    path = write(
        tmp_path / "mine.jsonl",
        judged(status="correct", mode="m1", output_tokens=3),
        judged(sample=1, extra="kept out"),
        judged(sample=2, status="error", domain="my own"),
    )
    source = mb.load_run(path)
    table = source.samples()
    assert list(table["status"]) == ["correct", "incorrect", "error"]
    assert "extra" not in table
    assert "response" not in table
    assert np.isnan(table["output_tokens"][1])
    assert table["domain"].tolist() == ["countdown", "countdown", "my own"]
    assert source.summary()["cells"][0]["accuracy"]["value"] == 0.5
    assert len(source.prompts()) == 2
    assert mb.load_samples(path)["model"].unique().tolist() == ["mine"]


BAD_LINES = {
    "task_id": (judged(task_id=7), "task_id: must be text, not 7"),
    "sample": (judged(sample=-1), "sample: must be a count, not -1"),
    "truth": (judged(sample=True), "sample: must be a count, not True"),
    "domain": (judged(domain=None), "domain: is missing"),
    "level": (judged(level="one"), "level: must be a count, not 'one'"),
    "status": (judged(status="right"), "status: must be one of correct, incorrect, malformed, error, not"),
    "mode": (judged(status="correct"), "mode: a correct sample needs one, not None"),
    "tokens": (judged(output_tokens="many"), "output_tokens: must be a number, not 'many'"),
    "list": ([1], "record: must be a JSON object, not list"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_LINES)
def test_bad_lines_are_named(tmp_path: Path, name: str) -> None:
    record, problem = BAD_LINES[name]
    path = write(tmp_path / "bad.jsonl", judged(), record)
    with pytest.raises(InputError) as caught:
        mb.load_run(path).samples()
    assert f"bad.jsonl:2: {problem}" in str(caught.value)


def test_broken_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(judged()) + "\n\n{oops\n")
    with pytest.raises(InputError, match=r"bad\.jsonl:3: record: is not JSON"):
        mb.load_run(path).samples()


def test_what_python_writes_and_strict_parsers_refuse_is_read(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    odd = json.dumps(judged(response="\ud800", entropy=float("nan"), sample=1))
    path.write_text(json.dumps(judged(response="plain")) + "\n" + odd + "\n")
    table = mb.load_run(path).samples()
    assert table["response"].tolist() == ["plain", "\ud800"]
    assert "entropy" not in table


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run folder and no file at"):
        mb.load_run(tmp_path / "none")
    with pytest.raises(UsageError, match="holds none"):
        mb.load_runs(tmp_path)
    with pytest.raises(UsageError, match="no run is named"):
        mb.load_runs([])
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(UsageError, match="holds no samples"):
        mb.load_samples(tmp_path / "empty.jsonl")


@pytest.mark.usefixtures("eager_copies")
class TestCopies:
    def copies(self, run: mb.samples.Run) -> list[Path]:
        return sorted(run.path.glob("*.npz"))

    def test_a_copy_gives_the_same_table(self, run: mb.samples.Run) -> None:
        first = run.samples()
        assert [path.name for path in self.copies(run)] == ["responses.npz", "verdicts.published.npz"]
        pd.testing.assert_frame_equal(run.samples(), first)

    def test_the_copy_is_what_is_read(self, run: mb.samples.Run, monkeypatch: pytest.MonkeyPatch) -> None:
        first = run.samples(texts=False)

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("parsed the lines again")

        monkeypatch.setattr(col, "_parse", refuse)
        pd.testing.assert_frame_equal(run.samples(texts=False), first)

    def test_other_content_is_never_answered_from_it(self, run: mb.samples.Run) -> None:
        before = run.samples()
        path = run.folder.verdicts_path("published")
        stamp = path.stat()
        # same size, same time of change: only the bytes differ
        changed = path.read_text().replace('"status":"incorrect"', '"status":"malformed"', 1)
        assert len(changed) == stamp.st_size
        path.write_text(changed)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        assert (run.samples()["status"] != before["status"].tolist()).sum() == 1

    def test_a_resumed_run_is_read_anew(self, tmp_path: Path) -> None:
        run = evaluate(MockEngine("random"), tmp_path / "r", CONFIG)
        assert len(run.samples()) == 24
        log = run.folder.responses_path
        log.write_text("".join(log.read_text().splitlines(keepends=True)[:-4]))
        finish(RunFolder.open(run.path), MockEngine("random"))
        assert len(mb.load_run(run.path).samples()) == 24

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half", b"not a zip"])
    def test_a_damaged_copy_is_replaced(self, run: mb.samples.Run, content: bytes) -> None:
        first = run.samples()
        copy = self.copies(run)[0]
        good = copy.stat().st_size
        copy.write_bytes(content)
        pd.testing.assert_frame_equal(run.samples(), first)
        assert copy.stat().st_size == good

    def test_a_copy_with_a_flipped_byte_is_not_believed(self, run: mb.samples.Run) -> None:
        first = run.samples()
        copy = self.copies(run)[0]
        content = bytearray(copy.read_bytes())
        content[len(content) // 2] ^= 0xFF
        copy.write_bytes(content)
        pd.testing.assert_frame_equal(run.samples(), first)

    def test_a_folder_that_cannot_be_written_is_read(
        self, run: mb.samples.Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for copy in self.copies(run):
            copy.unlink()
        opened = Path.open

        def read_only(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if "w" in mode:
                raise PermissionError(f"read-only: {self}")
            return opened(self, mode, *args, **kwargs)

        monkeypatch.setattr(Path, "open", read_only)
        assert len(run.samples()) == 24
        assert not self.copies(run)

    def test_a_bare_file_gets_no_copy(self, tmp_path: Path) -> None:
        mb.load_run(write(tmp_path / "mine.jsonl", judged())).samples()
        assert [path.name for path in tmp_path.iterdir()] == ["mine.jsonl"]

    def test_readers_at_once_do_not_disturb_each_other(self, run: mb.samples.Run) -> None:
        want = run.samples()
        for copy in self.copies(run):
            copy.unlink()
        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(lambda _: mb.load_run(run.path).samples(), range(16)):
                pd.testing.assert_frame_equal(found, want)
        pd.testing.assert_frame_equal(run.samples(), want)

    def test_no_draft_is_left(self, run: mb.samples.Run) -> None:
        run.samples()
        assert not list(run.path.glob("*.part"))


def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "log.jsonl", judged())
    parse = col._parse

    def grow(*args: Any) -> Any:
        found = parse(*args)
        with path.open("a") as file:
            file.write(json.dumps(judged(sample=1)) + "\n")
        return found

    monkeypatch.setattr(col, "_parse", grow)
    with pytest.raises(UsageError, match="changed while it was read"):
        mb.load_run(path).samples()


def test_copies_do_not_travel_to_other_files(tmp_path: Path, eager_copies: None) -> None:
    one = evaluate(MockEngine("random"), tmp_path / "one", CONFIG)
    two = evaluate(MockEngine("collapsed"), tmp_path / "two", CONFIG)
    want = two.samples()
    one.samples()
    shutil.copy(one.path / "responses.npz", two.path / "responses.npz")
    pd.testing.assert_frame_equal(two.samples(), want)


def test_errors_reach_the_command_as_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "bad.jsonl", judged(level="x"))
    assert exit_code(lambda: mb.load_samples(path)) == 2
    assert capsys.readouterr().err == f"error: {path}:1: level: must be a count, not 'x'\n"
