from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from modebench import splits
from modebench.domains import DOMAINS, get_domain
from modebench.errors import SplitError
from modebench.splits import SIZES, build_all, fresh_split, load_split, make_split, task_seed
from modebench.tasks import load_tasks

DATA = Path(splits.__file__).parent / "data"
LEVEL_1 = "418f346e6430663c029a9b5068a19a81cc66e531deea69b569c2e32a1d895c2a"
"""SHA-256 over the hashes of the level-1 splits."""


@pytest.mark.parametrize("domain", DOMAINS)
def test_frozen_splits_are_complete_and_disjoint(domain: str) -> None:
    parts = {split: load_split(domain, 1, split) for split in SIZES}
    assert {split: len(tasks) for split, tasks in parts.items()} == dict(SIZES)
    identities = [get_domain(domain).identity(task.reference) for tasks in parts.values() for task in tasks]
    assert len(set(identities)) == len(identities) == 640
    assert parts["eval"][7].id == f"{domain}/level1/eval/0007"
    assert parts["eval"].sha256 == load_tasks(domain).sha256


@pytest.mark.parametrize("domain", DOMAINS)
def test_frozen_tasks_follow_from_the_recorded_seed(domain: str) -> None:
    again = make_split(domain, 1, "eval", sizes={"eval": 16})
    frozen = load_split(domain).head(16)
    assert [t.reference for t in again] == [t.reference for t in frozen]
    assert [t.modes for t in again] == [t.modes for t in frozen]
    assert again.name == f"{domain}/level1/eval@1"


def test_rebuilding_gives_the_shipped_hashes(tmp_path: Path) -> None:
    built = build_all(tmp_path, ["countdown", "python"], [1])
    shipped = json.loads((DATA / "splits.json").read_text())["splits"]
    rebuilt = json.loads((tmp_path / "splits.json").read_text())["splits"]
    assert rebuilt == {name: shipped[name] for name in built}
    first = {path.name: path.read_bytes() for path in (tmp_path / "level1").iterdir()}
    build_all(tmp_path, ["countdown", "python"], [1])
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "level1").iterdir()}


def test_rebuilding_one_cell_keeps_the_others(tmp_path: Path) -> None:
    build_all(tmp_path, ["python"], [1])
    built = build_all(tmp_path, ["python"], [4])
    shipped = json.loads((DATA / "splits.json").read_text())["splits"]
    rebuilt = json.loads((tmp_path / "splits.json").read_text())["splits"]
    assert len(rebuilt) == 6
    assert rebuilt == {name: shipped[name] for name in rebuilt}
    assert load_split("python", 4, "dev", tmp_path).sha256 == built["python_factors/level4/dev"].sha256


def test_level_1_is_what_it_was() -> None:
    """Runs that were made before other levels existed must keep their tasks."""
    digest = hashlib.sha256()
    for domain in DOMAINS:
        for split in SIZES:
            digest.update(load_split(domain, 1, split).sha256.encode())
    assert digest.hexdigest() == LEVEL_1


@pytest.mark.slow
def test_rebuilding_everything_gives_the_shipped_hashes(tmp_path: Path) -> None:
    build_all(tmp_path)
    assert (tmp_path / "splits.json").read_text() == (DATA / "splits.json").read_text()


def test_fresh_splits_have_their_own_ids(tmp_path: Path) -> None:
    tasks = fresh_split("python", 3, "dev", 5, seed=9)
    assert [task.id for task in tasks][:1] == ["python_factors/level3/dev@9/0000"]
    before = fresh_split("python", 3, "eval", 128, seed=9)
    assert not {t.problem for t in tasks} & {t.problem for t in before}
    with pytest.raises(SplitError, match="no split is called 'test'"):
        fresh_split("python", 3, "test", 5, seed=9)


def test_a_small_law_says_its_size() -> None:
    with pytest.raises(SplitError, match="countdown level 1 has 787 tasks in all, and 788 were asked for"):
        make_split("countdown", 1, "eval", sizes={"eval": 788})
    whole = make_split("countdown", 1, "eval", sizes={"eval": 787})
    assert len({task.problem for task in whole}) == 787


def test_a_law_of_unknown_size_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = get_domain("graph")
    fixed = load_split("graph")[0].reference
    monkeypatch.setattr(domain, "generate", lambda rng, level: fixed)
    monkeypatch.setattr(splits, "MAX_ATTEMPTS", 50)
    with pytest.raises(SplitError, match="no new task in 50 draws after 1 different"):
        make_split("graph", 1, "eval", sizes={"eval": 2})


def test_seeds_and_sizes() -> None:
    one, two = (make_split("countdown", 1, "dev", seed=seed, sizes={"eval": 5, "dev": 5}) for seed in (5, 6))
    assert one[0].id == "countdown/level1/dev@5/0000"
    assert [t.reference for t in one] != [t.reference for t in two]
    alone = make_split("countdown", 1, "eval", seed=5, sizes={"eval": 5, "dev": 5})
    longer = make_split("countdown", 1, "eval", seed=5, sizes={"eval": 5, "dev": 50, "train": 50})
    assert [t.reference for t in alone] == [t.reference for t in longer]


def test_task_seeds_are_far_apart() -> None:
    text = b'[1,"countdown",1,"eval",0,0]'
    assert task_seed(1, "countdown", 1, "eval", 0, 0) == int(hashlib.sha256(text).hexdigest(), 16)
    variants = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0)]
    drawn = [task_seed(seed, "countdown", 1, "eval", index, attempt) for seed, index, attempt in variants]
    for p, q in combinations(drawn, 2):
        assert (p ^ q).bit_count() > 80


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(DATA / "splits.json", tmp_path)
    shutil.copytree(DATA / "level1", tmp_path / "level1")
    return tmp_path


def one_line(error: pytest.ExceptionInfo[SplitError]) -> bool:
    return "\n" not in str(error.value)


def test_an_edited_task_is_caught(copy: Path) -> None:
    file = copy / "level1" / "countdown.eval.jsonl.gz"
    rows = gzip.decompress(file.read_bytes()).decode().splitlines()
    row = json.loads(rows[3])
    row["reference"]["target"] += 1
    rows[3] = json.dumps(row)
    file.write_bytes(gzip.compress("\n".join(rows).encode()))
    with pytest.raises(SplitError, match=r"countdown/level1/eval: SHA-256 .* frozen was") as caught:
        load_split("countdown", folder=copy)
    assert one_line(caught)


def test_an_edited_prompt_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = get_domain("countdown")
    problem = domain.problem
    monkeypatch.setattr(domain, "problem", lambda reference, level: problem(reference, level) + " ")
    with pytest.raises(SplitError, match="code that writes prompts"):
        load_split("countdown")


@pytest.mark.parametrize(
    "damage", [b"", b"not gzip", gzip.compress(b"{}\n", mtime=0), gzip.compress(b"[1\n", mtime=0)]
)
def test_a_damaged_file_is_named(copy: Path, damage: bytes) -> None:
    (copy / "level1" / "countdown.eval.jsonl.gz").write_bytes(damage)
    with pytest.raises(SplitError, match=r"countdown/level1/eval: .*countdown\.eval\.jsonl\.gz") as caught:
        load_split("countdown", folder=copy)
    assert one_line(caught)


def test_a_missing_file_is_named(copy: Path) -> None:
    (copy / "level1" / "countdown.eval.jsonl.gz").unlink()
    with pytest.raises(SplitError, match=r"countdown\.eval\.jsonl\.gz"):
        load_split("countdown", folder=copy)
    (copy / "splits.json").write_text("{}")
    with pytest.raises(SplitError, match=r"splits\.json cannot be read"):
        load_split("countdown", folder=copy)


def test_unknown_splits_are_refused() -> None:
    with pytest.raises(SplitError, match="no split countdown/level1/test is frozen"):
        load_split("countdown", 1, "test")
    with pytest.raises(SplitError, match="no split countdown/level6/eval is frozen"):
        load_split("countdown", 6)
    with pytest.raises(SplitError, match="no split is called 'test'; splits: eval, dev, train"):
        make_split("countdown", 1, "test")
    with pytest.raises(ValueError, match="did you mean 'countdown'"):
        load_split("countdon")


def test_loading_is_light() -> None:
    code = (
        "import sys, time\n"
        "from modebench.splits import load_split\n"
        "spent = []\n"
        "for _ in range(3):\n"
        "    start = time.process_time()\n"
        "    load_split('pantry', 1, 'train')\n"
        "    spent.append(time.process_time() - start)\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'torch', 'sympy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert min(spent) < 0.2, spent\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
