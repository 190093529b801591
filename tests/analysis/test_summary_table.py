import csv
import io
import json

import pandas as pd
import pytest

from modebench.analysis import format_table, render, summarize, summary_document


@pytest.fixture
def samples(make_samples):
    easy = make_samples(["AABB.AB?"] * 30, finish_reason="stop", response="r", modes=4)
    easy["response"] = easy["task_id"] + easy["sample"].astype(str)
    hard = make_samples(["A......!"] * 30, finish_reason="length").assign(level=2)
    return pd.concat([easy, hard])


def rows_of(text):
    return [line for line in text.splitlines() if line.startswith("countdown")]


def test_text_table(samples):
    text = format_table(summary_document(samples, reading="published", profile="tiny-compact"))
    lines = text.splitlines()
    titles = "domain level prompts×samples accuracy pass@8 modes@8 PCMD effective modes coverage"
    assert lines[0].split() == f"{titles} malformed truncated error duplicates".split()
    easy, hard = rows_of(text)
    assert "30×8" in easy
    assert "0.750 [" in easy
    assert "0.600 [" in easy
    assert "] (30)" in easy
    assert easy.split()[-4:] == ["12.5%", "0.0%", "0.0%", "0.0%"]
    assert "– (0)" in hard
    assert hard.split()[-2:] == ["12.5%", "–"]
    assert any(line.startswith("mean of cells") and "2 cells" in line for line in lines)
    assert "reading: published; profile: tiny-compact; 95% intervals: Wilson" in text
    assert "fewer than 30" in text
    assert "warning: truncated: domain countdown, level 2" in text
    widths = {len(line) for line in lines[: len(lines) - lines[::-1].index("") - 1] if set(line) == {"─"}}
    assert widths == {max(len(line) for line in lines[:6])}


def test_a_cell_with_few_eligible_prompts_is_marked(make_samples):
    (row,) = rows_of(format_table(make_samples(["AAB."] * 29)))
    assert "]* (29)" in row
    assert "3.00*" in row
    (row,) = rows_of(format_table(make_samples(["AAB."] * 30)))
    assert "*" not in row


def test_the_largest_k_at_hand_is_shown(make_samples):
    header = format_table(make_samples(["AAB."] * 3)).splitlines()[0]
    assert "pass@4" in header
    assert "modes@4" in header


def test_the_same_from_samples_document_and_tidy_table(samples):
    document = format_table(summary_document(samples))
    assert format_table(samples) == document
    from_tidy = rows_of(format_table(summarize(samples)))
    assert [row.split() for row in from_tidy] == [row.split() for row in rows_of(document)]


def test_chosen_columns(samples):
    text = format_table(samples, columns=["level", "hill_1", "tokens"])
    assert text.splitlines()[0].split() == ["level", "hill", "1", "tokens"]
    assert text.splitlines()[2].split()[0] == "1"
    assert "PCMD" not in text
    with pytest.raises(ValueError, match="no cell has"):
        format_table(samples, columns=["pass@3"])


def test_splits_appear_when_they_differ(make_samples):
    both = pd.concat([make_samples(["AB"]), make_samples(["AB"]).assign(level=2, split="dev")])
    assert "split" in format_table(both).splitlines()[0]


def test_repeated_warnings_are_one_line(make_samples):
    parts = [make_samples(["AB", "A"]).assign(level=level) for level in (1, 2, 3)]
    text = format_table(pd.concat(parts))
    assert text.count("warning:") == 1
    assert "(and 2 more cells)" in text


def test_empty(make_samples):
    assert format_table(make_samples([])).splitlines()[0].split()[0] == "domain"
    for form in ("markdown", "latex", "csv", "json"):
        assert isinstance(render(summary_document(make_samples([])), form), str)


def test_csv_is_complete(samples):
    rows = list(csv.DictReader(io.StringIO(render(samples, "csv"))))
    assert len(rows) == len(summarize(samples))
    row = next(r for r in rows if r["level"] == "1" and r["metric"] == "accuracy")
    assert float(row["value"]) == 0.75


def test_json_is_the_document(samples):
    document = summary_document(samples)
    assert json.loads(render(document, "json")) == document


def test_markdown(samples):
    lines = render(samples, "markdown").splitlines()
    assert lines[0].startswith("| domain | level | prompts×samples |")
    assert lines[1].startswith("| --- | --- | ---: |")
    assert len({line.count("|") for line in lines[:4]}) == 1


def test_latex(samples):
    odd = samples.assign(domain="python_factors")
    text = render(odd, "latex")
    assert text.startswith("\\begin{tabular}{llrrrrrrrrrrr}\n\\toprule")
    assert "python\\_factors & 1 & 30$\\times$8" in text
    assert "12.5\\%" in text
    assert "\\end{tabular}" in text


def test_unknown_format(samples):
    with pytest.raises(ValueError, match="unknown format 'html'"):
        render(samples, "html")
