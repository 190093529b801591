"""Prompts: the template once, the begin-of-sequence token at most once."""

from __future__ import annotations

from typing import Any

import pytest

from modebench.sampling.chat import ChatFormat

from .tiny_models import BOS, END, EOS, TEMPLATE, TEMPLATE_WITH_BOS, TURN, tiny_tokenizer

MESSAGES: list[Any] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "1 + 1?"}]


@pytest.mark.parametrize("template", [TEMPLATE, TEMPLATE_WITH_BOS, None])
def test_bos_exactly_once(template: str | None) -> None:
    chat = ChatFormat(tiny_tokenizer(template=template))
    ids = chat.prompt_ids(MESSAGES)
    assert ids[0] == BOS
    assert ids.count(BOS) == 1


def test_a_tokenizer_that_adds_no_bos_gets_none_from_us() -> None:
    assert BOS not in ChatFormat(tiny_tokenizer(adds_bos=False)).prompt_ids(MESSAGES)
    assert BOS not in ChatFormat(tiny_tokenizer(adds_bos=False, template=None)).prompt_ids(MESSAGES)


def test_bos_that_is_also_the_turn_marker_is_placed_by_the_template_alone() -> None:
    tokenizer = tiny_tokenizer(adds_bos=False)
    tokenizer.bos_token = "<turn>"
    ids = ChatFormat(tokenizer).prompt_ids(MESSAGES)
    assert ids[0] == TURN
    assert ids.count(TURN) == 3


def test_the_template_is_rendered_once_with_the_generation_prompt() -> None:
    chat = ChatFormat(tiny_tokenizer())
    text = "<turn>system\nbe brief<end>\n<turn>user\n1 + 1?<end>\n<turn>assistant\n"
    assert chat.render(MESSAGES) == text
    assert tiny_tokenizer().decode(chat.prompt_ids(MESSAGES)[1:]) == text
    assert chat.describe()["prompt_format"] == "chat template"


def test_plain_text_without_a_template_or_on_request() -> None:
    for chat in (ChatFormat(tiny_tokenizer(template=None)), ChatFormat(tiny_tokenizer(), use_template=False)):
        assert chat.render(MESSAGES) == "be brief\n\n1 + 1?"
        assert "plain text" in chat.describe()["prompt_format"]
        assert chat.end_of_turn_id() is None


def test_a_prompt_is_never_closed_by_an_end_token() -> None:
    from tokenizers import processors

    tokenizer = tiny_tokenizer(template=None)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", BOS), ("</s>", EOS)]
    )
    ids = ChatFormat(tokenizer).prompt_ids(MESSAGES)
    assert ids[0] == BOS
    assert EOS not in ids


def test_end_of_turn_is_read_off_the_template() -> None:
    assert ChatFormat(tiny_tokenizer()).end_of_turn_id() == END
    plain = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    assert ChatFormat(tiny_tokenizer(template=plain)).end_of_turn_id() is None


def test_a_template_that_refuses_a_role_says_so_in_one_line() -> None:
    strict = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    with pytest.raises(ValueError, match="roles system, user: no system role"):
        ChatFormat(tiny_tokenizer(template=strict)).render(MESSAGES)


def test_a_template_that_reads_the_clock_is_told_of() -> None:
    chat = ChatFormat(tiny_tokenizer(template="{{ strftime_now('%Y') }}" + TEMPLATE))
    assert chat.describe()["template_reads_clock"] is True
