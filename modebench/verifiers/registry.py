"""From a task and a response to a verdict: which verifier, checked references, caching."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Protocol, cast

from modebench.tasks import Task
from modebench.verifiers.extraction import MAX_RESPONSE_CHARACTERS
from modebench.verifiers.reference import canonical_text, parse_reference
from modebench.verifiers.verdict import InvalidReference, Reading, Verdict, malformed

DOMAINS = ("graph_coloring", "countdown", "python_factors", "mathir", "pantry_plan")
ALIASES = {"graph": "graph_coloring", "python": "python_factors", "pantry": "pantry_plan"}
READINGS: tuple[Reading, ...] = ("published", "clean")
CACHED_REFERENCES = 1_024

Answerable = Task | Mapping[str, Any]
"""A `Task`, or a mapping with ``domain``, ``level`` and ``reference`` (or ``answer``, as in the
published files), where the reference is an object or JSON text."""


class Verifier(Protocol):
    """What a domain's verifier module offers; a plug-in domain has it as its ``verifier``."""

    def compile_reference(self, reference: Mapping[str, Any], level: int) -> Any:
        """A checked, reusable form of a reference; raises `InvalidReference`."""

    def judge(self, spec: Any, response: str) -> Verdict:
        """The `published` verdict; total for any `response` of at most 131,072 characters."""


class CleanVerifier(Protocol):
    """What a domain offers for the `clean` reading; a plug-in domain has it as its ``clean_verifier``."""

    def judge(self, spec: Any, response: str, truncated: bool = False) -> Verdict:
        """The `clean` verdict, from the reference that `Verifier.compile_reference` returned; total."""


def canonical_domain(name: object) -> str:
    """The canonical name of a domain, aliases resolved.

    Raises:
        InvalidReference: not a name of a built-in or installed domain.
    """
    if isinstance(name, str):
        name = ALIASES.get(name, name)
        if name in DOMAINS or name in installed_domains():
            return name
    raise InvalidReference(
        "domain", f"unknown domain {name!r}; known: {', '.join((*DOMAINS, *installed_domains()))}"
    )


def canonical_level(level: object) -> int:
    """1 to 5 from an integer, ``"3"`` or ``"level3"``.

    Raises:
        InvalidReference: anything else, booleans included.
    """
    if isinstance(level, str) and level.removeprefix("level") in {"1", "2", "3", "4", "5"}:
        return int(level.removeprefix("level"))
    if type(level) is int and 1 <= level <= 5:
        return level
    raise InvalidReference("level", f"must be 1 to 5, not {level!r}")


@cache
def installed_domains() -> dict[str, Any]:
    """Installed third-party domains by name (entry points ``modebench.domains``), not yet loaded.

    Looked up once a process: a search through all installed packages takes tens of milliseconds.
    """
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group="modebench.domains")}


@cache
def verifier_of(domain: str) -> Verifier:
    """The verifier of a canonical domain name."""
    if domain in DOMAINS:
        return cast(Verifier, import_module(f"modebench.verifiers.{domain}"))
    return cast(Verifier, installed_domains()[domain].load().verifier)


@cache
def clean_verifier_of(domain: str) -> CleanVerifier:
    """The `clean` verifier of a canonical domain name.

    Raises:
        ValueError: an installed domain that has none.
    """
    if domain in DOMAINS:
        return cast(CleanVerifier, import_module(f"modebench.verifiers.clean.{domain}"))
    verifier = getattr(installed_domains()[domain].load(), "clean_verifier", None)
    if verifier is None:
        raise ValueError(f"domain {domain!r} has no clean reading")
    return cast(CleanVerifier, verifier)


@lru_cache(maxsize=CACHED_REFERENCES)
def _compiled(domain: str, level: int, text: str) -> Any:
    return verifier_of(domain).compile_reference(parse_reference(text), level)


def compiled(task: Answerable) -> tuple[str, Any]:
    """Canonical domain and checked reference of a task; cached by the reference's text.

    Raises:
        InvalidReference: naming the field.
    """
    if isinstance(task, Task):
        domain, level, reference = cast(Any, task.domain), cast(Any, task.level), cast(Any, task)
    elif isinstance(task, Mapping):
        domain, level = task.get("domain"), task.get("level")
        field = "reference" if "reference" in task else "answer"
        if field not in task:
            raise InvalidReference("reference", "is missing")
        reference = task[field]
    else:
        raise InvalidReference("task", f"must be a Task or a mapping, not {type(task).__name__}")
    name = canonical_domain(domain)
    return name, _compiled(name, canonical_level(level), _text(reference))


def _text(reference: object) -> str:
    if type(reference) is dict:
        try:
            # Version 2 has no back-references: the bytes depend on the value alone. Much faster than JSON.
            return _text_of_marshalled(marshal.dumps(reference, 2))
        except (ValueError, RecursionError):
            return canonical_text(reference)
    if not isinstance(reference, Task):
        return canonical_text(reference)
    try:
        return reference.reference_json
    except (TypeError, ValueError, RecursionError):
        return canonical_text(reference.reference)  # raises, naming the problem


@lru_cache(maxsize=CACHED_REFERENCES)
def _text_of_marshalled(reference: bytes) -> str:
    return canonical_text(marshal.loads(reference))


def forget_references() -> None:
    """Drop every cached reference: to measure cold speed, or to give the memory back."""
    _compiled.cache_clear()
    _text_of_marshalled.cache_clear()


def check_task(task: Answerable) -> None:
    """Raise `InvalidReference` where a task cannot be executed against."""
    compiled(task)


def verify(
    task: Answerable, response: str, reading: Reading = "published", truncated: bool = False
) -> Verdict:
    """Judge one response.

    Args:
        task: a `Task`, or a mapping with ``domain``, ``level`` and ``reference`` or ``answer``.
        response: exactly the text to judge; reasoning is split off before, by the harness.
        reading: ``published`` reproduces the reference implementation of arXiv:2610.11064; ``clean`` forgives
            formatting, refuses lists of guesses, and counts a solution once however it is spelled.
        truncated: the response was cut at a length limit; then an answer that was still being written at
            its end is malformed in the ``clean`` reading. ``published`` does not look at it.

    Returns:
        status, mode and detail. Text that is not a string, or longer than 131,072 characters, is
        malformed.

    Raises:
        InvalidReference: the task's reference cannot be executed against; names the field.
        ValueError: unknown reading.

    >>> task = {"domain": "countdown", "level": 1,
    ...         "reference": {"verifier": "countdown", "numbers": [3, 6, 9], "target": 18}}
    >>> verify(task, "so the answer is \\\\boxed{9 + (6 + 3)}")
    Verdict(status='correct', mode='countdown:add(9,add(3,6))', detail=None)
    >>> verify(task, "Answer: $9 + (6 + 3)$", reading="clean").mode
    'countdown:clean:sum(+3,+6,+9)'
    """
    if reading not in READINGS:
        raise ValueError(f"unknown reading {reading!r}; known: {', '.join(READINGS)}")
    domain, spec = compiled(task)
    if not isinstance(response, str):
        return malformed(f"not text but {type(response).__name__}")
    if len(response) > MAX_RESPONSE_CHARACTERS:
        return malformed(f"longer than {MAX_RESPONSE_CHARACTERS} characters")
    if reading == "clean":
        return clean_verifier_of(domain).judge(spec, response, truncated)
    return verifier_of(domain).judge(spec, response)
