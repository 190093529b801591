"""Replies of servers: every shape of a completion is read, everything else is refused in one way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modebench.sampling.replies import FaultyReply, read_reply


def reply(*choices: Any, **fields: Any) -> bytes:
    return json.dumps({"choices": list(choices), **fields}).encode()


def message(finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    return {"finish_reason": finish, "message": fields}


def test_both_endpoints_and_both_reasoning_fields() -> None:
    for choice, response, reasoning in [
        ({"finish_reason": "stop", "text": "a"}, "a", None),
        (message(content="a"), "a", None),
        (message(content="a", reasoning_content="r"), "a", "r"),
        (message(content="a", reasoning="r", reasoning_content=None), "a", "r"),
        (message(content="a", reasoning=""), "a", None),
        (message(content=None, reasoning="r"), "", "r"),
        (message(content=None, refusal="I won't"), "I won't", None),
        (message(content=None), "", None),
    ]:
        [sample] = read_reply(reply(choice), 1)
        assert (sample.response, sample.reasoning) == (response, reasoning)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("stop", "stop"), ("length", "length"), ("max_tokens", "length"), ("eos_token", "stop"),
        ("content_filter", "content_filter"), ("tool_calls", "unknown"), (None, "unknown"), (3, "unknown"),
    ],
)  # fmt: skip
def test_finish_reasons(given: Any, read: str) -> None:
    assert read_reply(reply(message(given, content="a")), 1)[0].finish_reason == read


def test_tokens_are_shared_so_that_they_add_up_to_the_bill() -> None:
    """Row 30: cached input tokens are part of the input tokens, and are not counted again."""
    usage = {"prompt_tokens": 10, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 9}}
    samples = read_reply(reply(*[message(content="a")] * 3, usage=usage), 3)
    assert [sample.input_tokens for sample in samples] == [4, 3, 3]
    assert [sample.output_tokens for sample in samples] == [3, 3, 2]
    for unknown in ({}, {"usage": None}, {"usage": {"prompt_tokens": "10", "completion_tokens": True}}):
        [sample] = read_reply(reply(message(content="a"), **unknown), 1)
        assert (sample.input_tokens, sample.output_tokens) == (None, None)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"null", b"[]", b"{}", b"<html>", b"\xff", b'{"choices": []}', b'{"choices": {"a": 1}}',
        reply(None), reply({}), reply(message()), reply(message(content=3)), reply({"message": "text"}),
        reply({"text": None}), reply(message("error", content="half")), reply(message("abort", content="h")),
        reply(message(content="a"), message(content="b")), b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_completion_is_faulty(content: bytes) -> None:
    with pytest.raises(FaultyReply):
        read_reply(content, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "text", "usage", "prompt_tokens", "finish_reason"]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(JSON)
def test_any_json_is_read_or_faulty(value: Any) -> None:
    try:
        samples = read_reply(json.dumps(value).encode(), 2)
    except FaultyReply:
        return
    assert 1 <= len(samples) <= 2
    for sample in samples:
        assert isinstance(sample.response, str)
        assert sample.error is None
