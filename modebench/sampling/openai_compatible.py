"""Any server that speaks the OpenAI protocol: ``openai/NAME --base-url URL``.

One request a sample, each with its own seed: servers are known to ignore ``n``, and to give the choices of
a request one seed. Requests run in a bounded number of threads, and each is tried again, after the time
that the server names or one that doubles, until it succeeds, is refused for good, or the tries are used up.
Only the messages, the seed and the sampling settings leave the process; never a task's reference.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from modebench.errors import UsageError
from modebench.sampling import EngineOptions
from modebench.sampling.base import EngineUnavailable, GenerationSettings, Group, Sample
from modebench.sampling.chat import plain_text
from modebench.sampling.replies import FaultyReply, read_reply
from modebench.sampling.workers import in_threads

OPENAI_URL = "https://api.openai.com/v1"
# What each server would silently do to the distribution, switched off: its own defaults, or those stored
# with the model. Servers are told apart by the `owned_by` of the models that they list. vLLM's row is tried;
# of the others only the names were read in the sources of those servers.
NEUTRAL_FIELDS: dict[str, dict[str, float]] = {
    "vllm": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
    "sglang": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
    "llamacpp": {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
    # llama-cpp-python
    "me": {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
}
_FIRST_WAIT, _LONGEST_WAIT, _LONGEST_RETRY_AFTER = 0.5, 30.0, 300.0
_PREFLIGHT_SECONDS = 10.0
_PASSING_STATUSES = (408, 409, 425, 429)
_HOPELESS_STATUSES = (401, 404)
_ERROR_CHARACTERS = 300

_log = logging.getLogger(__name__)


class _GaveUp(Exception):  # noqa: N818 - a decision
    """Nothing that could still be asked would succeed; one line."""


class _Request(NamedTuple):
    """The samples `places` of one group, in one request while the server gives as many as asked."""

    group: int
    places: tuple[int, ...]


class OpenAICompatibleEngine:
    """Draws samples from a server.

    Args:
        name: the model's name there.
        options: URL, name of the variable that holds the key, concurrency and so on.

    Raises:
        EngineUnavailable: the `openai` package, the key or the server is missing, or the key is refused.
        UsageError: an option out of range, or a URL that carries credentials.
    """

    groups_per_batch = None

    def __init__(self, name: str, options: EngineOptions) -> None:
        _check(options)
        try:
            import openai
        except ImportError as error:
            raise EngineUnavailable(
                f'openai models need the openai package ({error}): pip install "modebench-toolkit[openai]"'
            ) from error
        self.name, self.options = name, options
        self.url = (options.base_url or OPENAI_URL).rstrip("/")
        self._secret = os.environ.get(options.api_key_env, "").strip()
        if not self._secret and (self.url == OPENAI_URL or options.api_key_env != "OPENAI_API_KEY"):
            raise EngineUnavailable(f"the environment variable {options.api_key_env} holds no key")
        self._openai = openai
        self._client = openai.OpenAI(
            # Local servers want none, the client does.
            api_key=self._secret or "none",
            base_url=self.url,
            timeout=options.timeout,
            max_retries=0,
        )
        self.server = self._preflight()
        self._failures_in_a_row = 0
        self._lock = threading.Lock()

    def describe(self) -> dict[str, Any]:
        """Provenance: server, endpoint, what is sent beside the settings."""
        return {
            "engine": "openai_compatible",
            "model": self.name,
            "base_url": self.url,
            "server": self.server,
            "endpoint": "chat/completions" if self.options.chat_template else "completions",
            "extra_fields": self._extra_fields(),
            "samples_per_request": self.options.samples_per_request,
            "openai": self._openai.__version__,
        }

    def constraint(self) -> dict[str, Any]:
        """What enforces grammars: the structured outputs of a vLLM server.

        Servers ignore fields that they do not know, so one is sent that nothing can accept.

        Raises:
            EngineUnavailable: the server is none of vLLM's, or an old one that ignores the field.
        """
        if self.server != "vllm":
            raise EngineUnavailable(f"--constrained needs a vLLM server, {self.url} is none ({self.server})")
        refused = {"structured_outputs": {"grammar": "no grammar"}}
        try:
            self._client.completions.create(
                model=self.name, prompt="x", max_tokens=1, seed=0, extra_body=refused
            )
        except self._openai.BadRequestError:
            return {"library": "vLLM's structured outputs", "version": self._version()}
        except self._openai.OpenAIError as error:
            raise EngineUnavailable(f"{self.url} gives no answer: {self._one_line(error)}") from None
        raise EngineUnavailable(f"the vLLM server at {self.url} is too old: it ignores structured_outputs")

    def _version(self) -> str | None:
        """vLLM's version, which its server tells beside the protocol."""
        url = f"{self.url.removesuffix('/v1')}/version"
        try:
            found = self._client.get(url, cast_to=object)
        except self._openai.OpenAIError:
            return None
        return str(found["version"]) if isinstance(found, dict) and "version" in found else None

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        """Yield (index into `groups`, samples in seed order), each group as it is complete.

        A sample that could not be had carries `error`. Where the key or the model is refused, or as many
        requests in a row failed as twice `concurrency`, the rest is given up with a warning.
        """
        size = self.options.samples_per_request
        requests = [
            _Request(index, tuple(range(start, min(start + size, len(group.seeds)))))
            for index, group in enumerate(groups)
            for start in range(0, len(group.seeds), size)
        ]
        unfinished: dict[int, dict[int, Sample]] = {}

        def ask(request: _Request) -> list[Sample]:
            return self._answer(groups[request.group], request.places, settings)

        try:
            for number, samples in in_threads(ask, requests, self.options.concurrency):
                index, places = requests[number]
                found = unfinished.setdefault(index, {})
                found.update(zip(places, samples, strict=True))
                if len(found) == len(groups[index].seeds):
                    yield index, [found[place] for place in sorted(unfinished.pop(index))]
        except _GaveUp as reason:
            _log.warning("giving up: %s", reason)
            lost = Sample("", "error", error=f"not asked: {reason}")
            for index, found in unfinished.items():
                yield index, [found.get(place, lost) for place in range(len(groups[index].seeds))]

    def _answer(self, group: Group, places: Sequence[int], settings: GenerationSettings) -> list[Sample]:
        """As many samples as places: asked for together, those that did not come asked for again."""
        samples: list[Sample] = []
        while len(samples) < len(places):
            rest = [group.seeds[place] for place in places[len(samples) :]]
            body = self._body(group, rest[0], len(rest), settings)
            try:
                samples += self._persist(body, rest[0], len(rest))
                self._note(None)
            except _Refused as error:
                self._note(str(error))
                samples += [Sample("", "error", error=str(error))] * len(rest)
        return samples

    def _body(self, group: Group, seed: int, count: int, settings: GenerationSettings) -> dict[str, Any]:
        """The arguments of one request: all that leaves this process."""
        chat = self.options.chat_template
        messages = [dict(message) for message in group.messages]
        extra = self._extra_fields() | ({"top_k": settings.top_k} if settings.top_k else {})
        extra |= {"structured_outputs": {"grammar": group.grammar}} if group.grammar is not None else {}
        # OpenAI's own chat models refuse the older name, most other servers know no other.
        limit = "max_completion_tokens" if chat and self.url == OPENAI_URL else "max_tokens"
        return {
            "model": self.name,
            **({"messages": messages} if chat else {"prompt": plain_text(group.messages)}),
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            limit: settings.max_tokens,
            "seed": seed,
            **({"n": count} if count > 1 else {}),
            **({"stop": list(settings.stop)} if settings.stop else {}),
            "extra_body": extra,
        }

    def _extra_fields(self) -> dict[str, Any]:
        return NEUTRAL_FIELDS.get(self.server or "", {}) | dict(self.options.extra_body or {})

    def _persist(self, body: Mapping[str, Any], seed: int, count: int) -> list[Sample]:
        """The samples of one request, tried until there are some."""
        rng = random.Random(seed)
        api = self._client.chat.completions if self.options.chat_template else self._client.completions
        for attempt in range(self.options.retries + 1):
            try:
                return read_reply(api.with_raw_response.create(**body).http_response.content, count)
            except (FaultyReply, self._openai.OpenAIError) as error:
                problem, wait = self._judged(error)
            if attempt < self.options.retries:
                doubled = min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT)
                time.sleep(doubled * rng.uniform(0.5, 1.0) if wait is None else wait)
        raise _Refused(f"{self.options.retries + 1} tries failed, the last: {problem}")

    def _judged(self, error: Exception) -> tuple[str, float | None]:
        """What went wrong, and the seconds that the server asks to wait.

        Raises:
            _Refused: another try of this request cannot succeed.
            _GaveUp: no request can.
        """
        problem = self._one_line(error)
        if not isinstance(error, self._openai.APIStatusError):
            return problem, None
        status = error.status_code
        if status in _HOPELESS_STATUSES or error.code == "insufficient_quota":
            raise _GaveUp(problem)
        if status < 500 and status not in _PASSING_STATUSES:
            hint = " (a server that refuses long seeds: --seed-bits 31)" if "seed" in problem else ""
            raise _Refused(problem + hint)
        return problem, _seconds(error.response.headers.get("retry-after"))

    def _note(self, problem: str | None) -> None:
        """Count requests that failed one after another."""
        with self._lock:
            self._failures_in_a_row = self._failures_in_a_row + 1 if problem else 0
            if self._failures_in_a_row >= 2 * self.options.concurrency:
                raise _GaveUp(f"{self._failures_in_a_row} requests in a row failed, the last: {problem}")

    def _preflight(self) -> str | None:
        """Who serves the model, as far as the list of models tells; None where it does not.

        Raises:
            EngineUnavailable: nobody answers, or the key is refused.
        """
        client = self._client.with_options(
            timeout=min(self.options.timeout, _PREFLIGHT_SECONDS), max_retries=min(self.options.retries, 2)
        )
        try:
            models = client.models.list().data
        except self._openai.AuthenticationError as error:
            raise EngineUnavailable(
                f"{self.url} refuses the key in {self.options.api_key_env}: {self._one_line(error)}"
            ) from None
        # Not to be taken for a server that has no list: what is sent depends on who serves.
        except (
            self._openai.APIConnectionError,
            self._openai.RateLimitError,
            self._openai.InternalServerError,
        ) as error:
            answers = isinstance(error, self._openai.APIStatusError)
            problem = (
                f"the server at {self.url} cannot list its models"
                if answers
                else f"no server answers at {self.url}"
            )
            raise EngineUnavailable(f"{problem}: {self._one_line(error)}") from None
        except Exception:  # not every server lists its models, and what it sends may be anything
            return None
        owners = {model.id: model.owned_by for model in models or []}
        owner = owners.get(self.name) or next(iter(owners.values()), None)
        return owner if isinstance(owner, str) else None

    def _one_line(self, error: Exception) -> str:
        """An error's message on one line, without the key, whatever the server put into it."""
        cause = error.__cause__ if isinstance(error, self._openai.APIConnectionError) else None
        text = f"{error} ({cause})" if cause is not None and str(cause) else str(error)
        text = " ".join((text or type(error).__name__).split())
        if self._secret:
            text = text.replace(self._secret, "[key]")
        return text if len(text) <= _ERROR_CHARACTERS else text[: _ERROR_CHARACTERS - 1] + "…"


class _Refused(Exception):  # noqa: N818 - what the server did
    """This request will not be answered; one line."""


def _check(options: EngineOptions) -> None:
    """Refuse options that mean nothing, and credentials where they would be written down."""
    ranges = {
        "--concurrency": (options.concurrency >= 1, options.concurrency, "at least 1"),
        "--samples-per-request": (
            options.samples_per_request >= 1, options.samples_per_request, "at least 1",
        ),
        "--timeout": (options.timeout > 0, options.timeout, "more than 0 seconds"),
        "--retries": (options.retries >= 0, options.retries, "at least 0"),
    }  # fmt: skip
    for option, (valid, given, expected) in ranges.items():
        if not valid:
            raise UsageError(f"{option} must be {expected}, not {given}")
    if not options.api_key_env.isidentifier():
        # What was given may be a key, and is not repeated.
        raise UsageError("--api-key-env must name an environment variable; it is not the key itself")
    url = urlsplit(options.base_url or OPENAI_URL)
    if url.username is not None or url.query:
        raise UsageError("--base-url must not carry a key or a query: name the key with --api-key-env")
    if url.scheme not in ("http", "https") or not url.hostname:
        raise UsageError(f"--base-url must be like http://host:8000/v1, not {options.base_url}")


def _seconds(retry_after: str | None) -> float | None:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3: a number or a date), None where there is none."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    # Not a number compares as false.
    return min(seconds, _LONGEST_RETRY_AFTER) if seconds >= 0 else 0.0
