"""From chat messages to the token ids of a prompt, and from sampled text to where it stops.

A prompt is rendered to text once, by the tokenizer's own chat template, and that text is tokenised
without adding special tokens: a template that prints the begin-of-sequence token must not get a
second one, and one that leaves it out must not lose it. Nothing here imports torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from modebench.sampling.base import Message

_PROBE = "modebench-end-of-turn-probe"


class ChatFormat:
    """How one tokenizer turns messages into prompt ids.

    With a chat template: the template, once. Without one (or with `use_template` false): the contents
    joined by blank lines, then the special tokens that the tokenizer always adds.
    """

    def __init__(self, tokenizer: Any, use_template: bool = True) -> None:
        self._tokenizer = tokenizer
        self.template: str | None = _template_of(tokenizer) if use_template else None
        self._adds_bos = _adds_bos(tokenizer)

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt as text, special tokens of the template included.

        Raises:
            ValueError: the template refuses these messages (some know no system role).
        """
        if self.template is None:
            return plain_text(messages)
        try:
            text = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
            )
        except Exception as error:
            roles = ", ".join(message["role"] for message in messages)
            raise ValueError(f"the chat template refused messages with roles {roles}: {error}") from error
        return str(text)

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of the prompt, begin-of-sequence token at most once."""
        text = self.render(messages)
        if self.template is None:
            ids = _tokenise(self._tokenizer, text, special=True)
            # Some tokenizers close every text; a prompt that is already closed has no continuation.
            if len(ids) > 1 and ids[-1] == self._tokenizer.eos_token_id:
                ids.pop()
            return ids
        ids = _tokenise(self._tokenizer, text, special=False)
        bos = self._tokenizer.bos_token_id
        # Only a tokenizer that adds the token by itself wants it. Others (SmolLM2) merely name one of
        # their turn markers so, and the template has placed that already.
        if self._adds_bos and ids[:1] != [bos]:
            ids.insert(0, bos)
        return ids

    def end_of_turn_id(self) -> int | None:
        """The special token that the template puts right behind an assistant's words, if any.

        Some models name only an end-of-text token as their end, and would run on into the next turn.
        """
        if self.template is None:
            return None
        turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": _PROBE}]
        try:
            text = str(self._tokenizer.apply_chat_template(turns, tokenize=False))
        except Exception:  # a template may refuse anything; then it tells nothing
            return None
        ids = _tokenise(self._tokenizer, text.rpartition(_PROBE)[2], special=False)
        return ids[0] if ids and ids[0] in self._tokenizer.all_special_ids else None

    def describe(self) -> dict[str, Any]:
        """Provenance: kind of prompt and SHA-256 of the template."""
        if self.template is None:
            return {"prompt_format": "plain text (no chat template)", "template_sha256": None}
        return {
            "prompt_format": "chat template",
            "template_sha256": hashlib.sha256(self.template.encode()).hexdigest(),
            # Such a prompt changes with the calendar.
            "template_reads_clock": "strftime_now" in self.template,
        }


def plain_text(messages: Sequence[Message]) -> str:
    """The prompt of a model without a chat: the contents, joined by blank lines."""
    return "\n\n".join(message["content"] for message in messages)


def cut_at_stop(text: str, stops: Sequence[str]) -> str | None:
    """`text` up to the earliest stop string, None when it holds none.

    >>> cut_at_stop("a = 1;; b", [";", ";;"])
    'a = 1'
    >>> cut_at_stop("a", [";"]) is None
    True
    """
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else None


def _template_of(tokenizer: Any) -> str | None:
    if not tokenizer.chat_template:
        return None
    if isinstance(tokenizer.chat_template, Mapping):
        # Several named templates: the tokenizer knows which of them is the plain chat.
        return str(tokenizer.get_chat_template())
    return str(tokenizer.chat_template)


def _tokenise(tokenizer: Any, text: str, *, special: bool) -> list[int]:
    return [int(token) for token in tokenizer(text, add_special_tokens=special)["input_ids"]]


def _adds_bos(tokenizer: Any) -> bool:
    """Whether the tokenizer puts its begin-of-sequence token before every text by itself."""
    if tokenizer.bos_token_id is None:
        return False
    first = [_tokenise(tokenizer, "a", special=special)[:1] for special in (True, False)]
    return first[0] == [tokenizer.bos_token_id] and first[1] != first[0]
