"""The tiny policy's tokenizer: every text comes back, numbers and words are single tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modebench.pretraining.tokenizer import END, make_tokenizer, vocabulary, words
from modebench.strategies import STRATEGIES

TOKENIZER = make_tokenizer()


def tokens(text: str) -> list[str]:
    return TOKENIZER.convert_ids_to_tokens(TOKENIZER(text, add_special_tokens=False).input_ids)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_printable_text_comes_back(text: str) -> None:
    ids = TOKENIZER(text, add_special_tokens=False).input_ids
    assert TOKENIZER.unk_token_id not in ids
    assert TOKENIZER.decode(ids) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C3,12,9=17", ["C", "3", ",", "12", ",", "9", "=", "17"]),
        ("131", ["1", "3", "1"]),
        ("1234", ["1", "2", "3", "4"]),
        ("05", ["0", "5"]),
        ("lambda n: 2 if n==30 else 7", ["lambda n: ", "2", " if n==", "30", " else ", "7"]),
        ("Ma*x+b=c-bA/aB", ["M", "a*x+b=c", "-b", "A", "/a", "B"]),
        ("al5bb6", ["al", "5", "bb", "6"]),
        ("G3ABC:13|C|2B", ["G", "3", "A", "B", "C", ":", "13", "|", "C", "|", "2", "B"]),
    ],
)
def test_exact_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_advice_is_one_token() -> None:
    for strategies in STRATEGIES.values():
        for strategy in strategies:
            assert tokens(f"{strategy.advice}\n\nC3") == [strategy.advice, "\n\n", "C", "3"]


def test_ids_are_different_and_the_end_is_known() -> None:
    known = vocabulary(words())
    assert len(set(known)) == len(known) == len(TOKENIZER)
    assert TOKENIZER.eos_token == TOKENIZER.pad_token == END


def test_a_prompt_ends_with_its_mark() -> None:
    rendered = TOKENIZER.apply_chat_template(
        [{"role": "user", "content": "C3,9,12=6"}], tokenize=False, add_generation_prompt=True
    )
    assert rendered == "C3,9,12=6>"
