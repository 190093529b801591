"""The examples of the page about variations hold."""

from __future__ import annotations

import re
from pathlib import Path

from modebench.variation import get_variation

PAGE = (Path(__file__).parents[2] / "docs" / "variation.md").read_text(encoding="utf-8")


def test_the_example_runs() -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})


def test_the_texts_are_canonical() -> None:
    rows = re.findall(r"^\| (\w+) \| `([^`]+)` \|", PAGE, re.MULTILINE)
    texts = {domain: text for domain, text in rows if any(character.isdigit() for character in text)}
    assert len(texts) == 5
    for domain, text in texts.items():
        module = get_variation(domain)
        assert module.write(module.parse(text)) == text


def test_every_operator_is_described() -> None:
    for domain in ("graph", "countdown", "python", "mathir", "pantry"):
        for operator in get_variation(domain).operators:
            assert f"`{operator.name}`" in PAGE
