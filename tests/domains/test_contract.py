"""What holds for every domain."""

from __future__ import annotations

import inspect
import random
import subprocess
import sys
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.domains import ALIASES, DOMAINS, get_domain
from modebench.verifiers import verify

SECTIONS = [
    "law",
    "law_size",
    "generate",
    "identity",
    "problem",
    "system",
    "count_modes",
    "solutions",
    "random_answer",
    "answer_space",
    "constants",
]
seeds = st.integers(0, 2**64 - 1)
every_domain = pytest.mark.parametrize("name", DOMAINS)


def supports(name: str, modes: int) -> bool:
    """The published range of mode counts."""
    low, high = {
        "graph_coloring": (4, 24),
        "countdown": (2, 8),
        "python_factors": (16, 10**6),
        "mathir": (5, 5),
        "pantry_plan": (8, 64),
    }[name]
    return low <= modes <= high


@every_domain
def test_names(name: str) -> None:
    domain = get_domain(name)
    assert domain.name == name
    assert all(get_domain(alias) is domain for alias in domain.aliases)
    assert sorted(domain.aliases) == sorted(alias for alias, full in ALIASES.items() if full == name)


@every_domain
def test_sections_stand_in_one_order(name: str) -> None:
    module = get_domain(name)
    lines = [inspect.getsourcelines(getattr(module, section))[1] for section in SECTIONS]
    assert lines == sorted(lines)


@every_domain
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_modes_are_exactly_those_listed(name: str, seed: int) -> None:
    domain = get_domain(name)
    reference = domain.generate(random.Random(seed), 1)
    listed = list(islice(domain.solutions(reference, 1), 400))
    modes = domain.count_modes(reference, 1)
    assert supports(name, modes)
    assert len({solution.mode for solution in listed}) == len(listed) == min(modes, 400)
    task = {"domain": name, "level": 1, "reference": reference}
    for mode, answer in listed[:20] + random.Random(seed).sample(listed, min(20, len(listed))):
        verdict = verify(task, answer)
        assert (verdict.status, verdict.mode) == ("correct", mode)


@every_domain
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_random_answers_are_well_formed_and_modes_complete(name: str, seed: int) -> None:
    """A random answer is never malformed, and a correct one has a listed mode."""
    domain = get_domain(name)
    rng = random.Random(seed)
    reference = domain.generate(rng, 1)
    modes = {solution.mode for solution in domain.solutions(reference, 1)}
    task = {"domain": name, "level": 1, "reference": reference}
    for _ in range(20):
        verdict = verify(task, domain.random_answer(rng, reference, 1))
        assert verdict.status in ("correct", "incorrect")
        assert verdict.mode is None or verdict.mode in modes


@every_domain
def test_all_randomness_comes_from_the_generator(name: str) -> None:
    domain = get_domain(name)
    state = random.getstate()
    drawn = []
    for _ in range(2):
        rng = random.Random(7)
        reference = domain.generate(rng, 1)
        drawn.append(
            (reference, domain.random_answer(rng, reference, 1), list(domain.solutions(reference, 1)))
        )
    assert drawn[0] == drawn[1]
    assert random.getstate() == state


@every_domain
def test_identity_tells_tasks_apart(name: str) -> None:
    domain = get_domain(name)
    rng = random.Random(1)
    references = [domain.generate(rng, 1) for _ in range(30)]
    by_identity: dict[str, list[object]] = {}
    for reference in references:
        by_identity.setdefault(domain.identity(reference), []).append(reference)
    assert len(by_identity) > 20
    if name != "mathir":
        assert all(group.count(group[0]) == len(group) for group in by_identity.values())


@every_domain
def test_prompts_say_what_is_needed(name: str) -> None:
    domain = get_domain(name)
    reference = domain.generate(random.Random(3), 1)
    problem = domain.problem(reference, 1)
    boxed = "\\boxed{}" in problem and "\\boxed{}" in domain.system(1)
    assert boxed == (name != "pantry_plan")
    assert "<|" not in problem
    assert problem == problem.strip()


@every_domain
@pytest.mark.parametrize("level", [0, 6])
def test_levels_without_a_law_are_refused(name: str, level: int) -> None:
    domain = get_domain(name)
    reference = domain.generate(random.Random(3), 1)
    calls = [
        lambda: domain.law(level),
        lambda: domain.law_size(level),
        lambda: domain.generate(random.Random(0), level),
        lambda: domain.problem(reference, level),
        lambda: domain.system(level),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match=rf"^{name} has no law of level {level}; its levels are: 1, 2, 3, 4, 5$"
        ):
            call()


def test_unknown_domain_gets_a_suggestion() -> None:
    with pytest.raises(ValueError, match="did you mean 'countdown'") as caught:
        get_domain("countdwon")
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="domains: graph_coloring, countdown"):
        get_domain("qqqqqqqq")


def test_installed_domains_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "sudoku"

        def load(self) -> str:
            return "the sudoku module"

    monkeypatch.setattr("modebench.domains.installed_domains", lambda: {"sudoku": Point()})
    assert get_domain("sudoku") == "the sudoku module"
    with pytest.raises(ValueError, match="did you mean 'sudoku'"):
        get_domain("sudoko")


def test_importing_domains_is_light() -> None:
    code = (
        "import sys, modebench.domains as d; assert 'modebench.domains.countdown' not in sys.modules; "
        "[d.get_domain(n) for n in d.DOMAINS]; "
        "print(sorted({'numpy', 'pandas', 'scipy', 'torch', 'sympy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
