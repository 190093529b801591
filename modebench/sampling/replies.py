"""What OpenAI-compatible servers reply, read without trust.

Nothing of a reply is taken for granted: not that it is JSON, not the number of choices, not the types.
What cannot be read as a completion raises `FaultyReply`, and the request is sent again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from modebench.sampling.base import FinishReason, Sample

# Names that servers give to the three ways in which a response ends.
_FINISHES: dict[Any, FinishReason] = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "end_turn": "stop", "stop_sequence": "stop",
    "length": "length", "max_tokens": "length", "content_filter": "content_filter",
}  # fmt: skip
# With these a server says that it broke the response off for reasons of its own.
_BROKEN_OFF = ("error", "abort")


class FaultyReply(Exception):  # noqa: N818 - a reply, not an exception, is what is faulty
    """A reply with status 200 that is no completion; one line."""


def read_reply(content: bytes, asked: int) -> list[Sample]:
    """The samples of a reply to one request of `asked` choices: one at least, `asked` at most.

    Fewer than asked are returned as they are (many servers ignore ``n``); the caller asks for the rest.
    Tokens that the reply counts are shared out equally among its choices, so that sums over samples are
    those of the bill.

    Raises:
        FaultyReply: not JSON, no choices, more than asked, a choice without text, or one broken off.
    """
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        raise FaultyReply(f"the reply is not JSON: {content[:80]!r}") from None
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices:
        raise FaultyReply(f"the reply has no choices: {content[:200]!r}")
    if len(choices) > asked:
        raise FaultyReply(f"{asked} choices were asked for, {len(choices)} came")
    usage = reply.get("usage")
    tokens_in, tokens_out = (
        _shares(usage, name, len(choices)) for name in ("prompt_tokens", "completion_tokens")
    )
    return [_sample(*parts) for parts in zip(choices, tokens_in, tokens_out, strict=True)]


def _sample(choice: Any, input_tokens: int | None, output_tokens: int | None) -> Sample:
    if not isinstance(choice, Mapping):
        raise FaultyReply(f"a choice is {choice!r}, expected an object")
    finish = choice.get("finish_reason")
    if finish in _BROKEN_OFF:
        raise FaultyReply(f"the server broke the response off (finish_reason {finish})")
    response, reasoning = _texts(choice)
    return Sample(
        response=response,
        finish_reason=_FINISHES.get(finish, "unknown") if isinstance(finish, str) else "unknown",
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        reasoning=reasoning,
    )


def _texts(choice: Mapping[str, Any]) -> tuple[str, str | None]:
    """Response and separate reasoning of a choice of either endpoint.

    Reasoning stands in ``reasoning_content`` (DeepSeek, SGLang, vLLM until 0.11) or ``reasoning``
    (OpenRouter, vLLM since); tags inside the response are the harness's to split off. A model that
    thought until its last token has no content, and one that refused has its refusal as its response.
    """
    message = choice.get("message", choice)
    if not isinstance(message, Mapping):
        raise FaultyReply(f"a message is {message!r}, expected an object")
    fields = ("reasoning_content", "reasoning")
    reasoning = next((text for name in fields if isinstance(text := message.get(name), str) and text), None)
    text = message.get("content" if "message" in choice else "text")
    if text is None:
        text = message.get("refusal")
    if text is None and (reasoning is not None or "content" in message):
        text = ""
    if not isinstance(text, str):
        raise FaultyReply(f"a choice has no text but {text!r}")
    return text, reasoning


def _shares(usage: Any, name: str, choices: int) -> list[int] | list[None]:
    """A count of `usage` in as many whole parts as there are choices; None where it is not known."""
    count = usage.get(name) if isinstance(usage, Mapping) else None
    if type(count) is not int or count < 0:
        return [None] * choices
    return [count // choices + (place < count % choices) for place in range(choices)]
