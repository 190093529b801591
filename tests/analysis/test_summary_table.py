import csv
import io
import json

import pandas as pd
import pytest

from modebench.analysis import format_table, render, summarize, summary_document
from modebench.analysis.summary import tidy


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
    with pytest.raises(ValueError, match="unknown format 'yaml'"):
        render(samples, "yaml")


@pytest.fixture
def with_chance(samples):
    rows = samples.drop_duplicates(["level", "task_id"])[["task_id", "domain", "level", "split"]]
    hard = (rows["level"] == 2).to_numpy()
    chance = rows.assign(
        shuffled_counts=[[2, 2]] * len(rows),
        shuffled_graded=8,
        space=[None if level2 else 10 for level2 in hard],
        right=[None if level2 else {1: 2} for level2 in hard],
        constant_right=hard,
        constant_answer="x",
        constant_exact=~hard,
    )
    return summary_document(samples, chance=chance)


def test_chance_rows_stand_indented_below_their_cell(with_chance):
    lines = format_table(with_chance).splitlines()[2:10]
    assert [line.split()[:2] for line in lines[:7]] == [
        ["countdown", "1"],
        ["own", "answers"],
        ["uniform", "answers"],
        ["best", "constant"],
        ["countdown", "2"],
        ["own", "answers"],
        ["best", "constant"],
    ]
    assert all(line.startswith("\N{NO-BREAK SPACE}" * 2) for line in (*lines[1:4], *lines[5:7]))
    # 4 of 8 right in two modes: PCMD 1 - 4/12; 2 of 10 answers right: pass@8 1 - 0.8^8
    assert lines[1].split()[3:] == ["0.500", "1.000", "2.000", "0.667"]
    assert lines[2].split()[2:] == ["0.200", "0.832", "1.139", "0.500"]
    assert lines[3].split()[3:] == ["0.000", "0.000", "0.000"]
    assert lines[6].split()[3:] == ["≥1.000", "≥1.000", "≥1.000", "0.000"]


def test_chance_rows_can_be_hidden(with_chance):
    for form in ("text", "markdown", "latex", "html"):
        assert "own answers shuffled" in render(with_chance, form).replace("~", " ")
        assert "own answers shuffled" not in render(with_chance, form, chance=False)
    assert "chance.shuffled.accuracy" in render(with_chance, "csv", chance=False)
    assert "indented" not in format_table(with_chance, columns=["accuracy"])
    assert "indented" not in format_table(with_chance, columns=["level", "tokens"])


def test_chance_rows_survive_the_tidy_table(with_chance):
    text = format_table(tidy(with_chance["cells"], 30))
    assert "own answers shuffled" in text
    assert "0.667" in text


def test_numbers_on_distinct_streams_stand_below_their_cell(make_samples):
    copied = make_samples(["ABC.ABC.", ".CAB.CAB", "BBA.BBA."] * 20)  # the second half repeats the first
    document = summary_document(copied, distinct_streams=True)
    assert document["streams"]["distinct"] == 4
    cell, row = format_table(document, chance=False).splitlines()[2:4]
    assert cell.split()[2] == "60×8"
    assert row.strip().startswith("on 4 distinct streams of 8")
    # "ABC." and ".CAB" differ in every pair, "BBA." in two of three
    assert "0.750 [" in row
    assert "0.889 [" in row
    assert "(60)" in row
    assert "0.889" not in cell
    assert "indented" not in format_table(document)
