"""The tokenizer of the tiny policy: characters, two-digit numbers and fixed words.

A text is cut into fixed words where one begins, the longest first; a run of exactly two digits is one token,
and everything else is characters. ``decode(encode(text)) == text`` for every text of printable ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from modebench.domains import DOMAINS
from modebench.strategies import STRATEGIES
from modebench.synthesis.compact import (
    CARD_FIELDS,
    DIFFICULTIES,
    INTENTS,
    NOTES,
    REJECTIONS,
    strategy_names,
)
from modebench.variation import get_variation
from modebench.variation.pantry_text import FOODS, TAGS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

END, UNKNOWN = "<end>", "<unknown>"
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}"
"""A prompt ends with ``>``."""
LENGTH = 512
"""Longest text of the policy, tokens."""

_MATHIR = (
    *("a*x+b=c", "x/a+b=c", "a*x+b=d*x+c", "a*x+b=c-d*x"),
    *("+b", "-b", "*a", "/a", "-c", "-b/a", "-a*b", "-d*x", "+d*x"),
    *("/(a-d)", "/(a+d)", "-(d*x+b)", "-(b-d*x)"),
)
_PYTHON = ("lambda n: ", " if n==", " else ")


def words() -> list[str]:
    """The fixed words, longest first."""
    joints = ['{"' + CARD_FIELDS[0] + '":"', '"}', *(f'","{field}":"' for field in CARD_FIELDS[1:])]
    asked = ["menu:", "free:", "card:", ",rejected=", ",often=", ",rare=", ",weak=", "=", "\n\n"]
    advice = [strategy.advice for strategies in STRATEGIES.values() for strategy in strategies]
    operators = [operator.name for domain in DOMAINS for operator in get_variation(domain).operators]
    told = [*DIFFICULTIES, *INTENTS, *NOTES, *REJECTIONS, *strategy_names(), *DOMAINS]
    found = {*_MATHIR, *_PYTHON, *FOODS.values(), *TAGS.values(), *joints, *asked, *advice, *operators, *told}
    return sorted((word for word in found if len(word) > 1), key=lambda word: (-len(word), word))


def vocabulary(fixed: Iterable[str]) -> list[str]:
    """All tokens in the order of their ids: special ones, characters, numbers, words."""
    characters = ["\n", *(chr(code) for code in range(32, 127))]
    return [END, UNKNOWN, *characters, *(str(number) for number in range(10, 100)), *fixed]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer, as transformers saves and loads it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    fixed = words()
    tokens = {token: number for number, token in enumerate(vocabulary(fixed))}
    tokenizer = Tokenizer(models.WordLevel(tokens, unk_token=UNKNOWN))
    pieces = [*map(re.escape, fixed), r"(?<!\d)[1-9]\d(?!\d)", r"[\s\S]"]
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("|".join(pieces)), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=END,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
        model_max_length=LENGTH,
    )
    fast.chat_template = TEMPLATE
    return fast
