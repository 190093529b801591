"""The report page: what it holds, that model texts stay texts, and how it behaves in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from modebench.analysis.report import Report, pack, render_report
from modebench.analysis.report_figures import report_figures
from modebench.analysis.summary import summary_document, tidy
from tests.browser import opened

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "</pre></details><h1 id=hacked>x</h1>",
    "--><!-- <svg onload=window.hacked=3>",
    "@@data@@ @@script@@ @@nothing@@",
    "'\"`&lt;b&gt; javascript:window.hacked=4",
    "lone \ud800 surrogate, nul \x00, bidi \u202e, newline \u2028",
]


def table(responses: list[list[str]], **columns: object) -> pd.DataFrame:
    """A prompt a list; a response that starts with ``A`` or ``B`` is right, in the mode of that letter."""
    rows = [
        {
            "task_id": f"t{number}",
            "domain": "countdown" if number % 2 == 0 else "mathir",
            "level": 1,
            "split": "eval",
            "sample": sample,
            "status": "correct" if text[:1] in ("A", "B") else "incorrect",
            "mode": text[:1] if text[:1] in ("A", "B") else None,
            "detail": None if text[:1] in ("A", "B") else "does not hold",
            "response": text,
            "finish_reason": "length" if text.endswith("…") else "stop",
            "modes": 4.0,
        }
        for number, texts in enumerate(responses)
        for sample, text in enumerate(texts)
    ]
    # As objects: pandas' own texts cannot hold a lone surrogate, which a model can write.
    fields = {name: pd.Series([row[name] for row in rows], dtype=object) for name in rows[0]}
    return pd.DataFrame(fields).astype({"level": int, "sample": int, "modes": float}).assign(**columns)


def report(samples: pd.DataFrame, **changes: Any) -> Report:
    by = ["domain", "level"]
    document = summary_document(samples, by=by)
    content: dict[str, Any] = {
        "title": "A report",
        "samples": samples,
        "document": document,
        "figures": report_figures(samples, tidy(document["cells"], 30)),
        "problems": {("countdown", 1, "t0"): "Reach 24."},
        "settings": {"run a": {"model": "m", "seed": 0}, "run b": {"model": "m", "seed": 1}},
        "remarks": [],
        "notes": [],
        "version": "1",
    }
    return Report(**content | changes)


def data_of(page: str) -> dict[str, Any]:
    [found] = re.findall(
        r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', page
    )
    content: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found)))
    return content


class Tags(HTMLParser):
    """Counts the elements of a page, and collects its attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def unpacked(data: dict[str, Any]) -> list[tuple[Any, ...]]:
    """(run, task, domain, status, mode, text, detail, cut) of every sample."""

    def name(names: list[str], code: int) -> str | None:
        return None if code < 0 else names[code]

    rows, at = [], 0
    for run, task, count in data["prompts"]:
        identity = (data["runs"][run], data["tasks"][task][0], data["domains"][data["tasks"][task][1]])
        for i in range(at, at + count):
            columns = (("modes", "mode"), ("texts", "text"), ("details", "detail"))
            texts = [name(data[names], data[codes][i]) for names, codes in columns]
            rows.append((*identity, data["statuses"][data["status"][i]], *texts, i in data["cut"]))
        at += count
    return rows


def test_packing_loses_nothing_and_keeps_the_order() -> None:
    samples = table([["A1", "wrong", "B…"], ["A1", "A1"]], run="x")
    both = pd.concat([samples, samples.assign(run="y").iloc[::-1]])
    expected = [
        ("x", "t0", "countdown", "correct", "A", "A1", None, False),
        ("x", "t0", "countdown", "incorrect", None, "wrong", "does not hold", False),
        ("x", "t0", "countdown", "correct", "B", "B…", None, True),
        ("x", "t1", "mathir", "correct", "A", "A1", None, False),
        ("x", "t1", "mathir", "correct", "A", "A1", None, False),
    ]
    data = pack(both, {("countdown", 1, "t0"): "Reach 24."})
    assert unpacked(data)[:5] == expected
    assert sorted(unpacked(data)[5:], key=str) == sorted((("y", *row[1:]) for row in expected), key=str)
    assert data["texts"] == ["A1", "wrong", "B…"]
    assert data["tasks"] == [
        ["t0", 0, 1, "Reach 24.", 4],
        ["t1", 1, 1, "(the text of this task is not known)", 4],
    ]


def test_samples_without_optional_columns_are_packed_too() -> None:
    bare = table([["A"]])[["task_id", "domain", "level", "sample", "status", "mode"]]
    data = pack(bare, {})
    assert (data["text"], data["detail"], data["cut"], data["runs"]) == ([-1], [-1], [], [""])
    assert data["tasks"][0][4] is None
    assert pack(bare.iloc[:0], {})["prompts"] == []


def test_the_page_carries_everything_inline_and_may_open_no_connection() -> None:
    page = render_report(report(table([["A1", "B2"], ["A", "x"]])))
    tags = Tags(page)
    assert tags.tags.count("img") == 4
    sources = [value for name, value in tags.attributes if name in ("src", "href")]
    assert all(value and value.startswith(("data:image/svg+xml;base64,", "#")) for value in sources)
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'",
        "img-src data:",
        "style-src 'unsafe-inline'",
        f"script-src 'sha256-{digest}'",
    ]
    assert unpacked(data_of(page))[0][5] == "A1"


def test_numbers_settings_and_warnings_stand_on_the_page() -> None:
    samples = table([["A", "A"]] * 10)
    text = Tags(render_report(report(samples, remarks=["unfinished: run a was cancelled"]))).text
    assert "unfinished: run a was cancelled" in text
    assert "one-text: domain countdown, level 1" in text
    assert "1.000 [0.566, 1.000]" in text  # Wilson at 5 of 5 prompts
    assert "95% intervals: Wilson" in text
    assert re.search(r"run\s*seed\s*run a\s*0\s*run b\s*1\s*model\s*m", text)


def test_the_same_report_is_the_same_bytes() -> None:
    samples = table([["A1", "B2"], ["A", "x"]])
    assert render_report(report(samples)) == render_report(report(samples))


def test_hostile_texts_add_no_element_anywhere() -> None:
    samples = table([[text, "A" + text] for text in HOSTILE])
    samples["mode"] = samples["mode"].where(samples["mode"].isna(), samples["response"])
    plain = Tags(render_report(report(table([["x", "A"]] * len(HOSTILE)), remarks=["mild"], notes=["mild"])))
    nasty = HOSTILE[0] + HOSTILE[4] + "\ud800"
    page = render_report(
        report(
            samples,
            title=nasty,
            remarks=[nasty],
            notes=[nasty],
            settings={nasty: {"model": nasty, nasty: 1}, "b": {"model": "m"}},
            problems={("countdown", 1, "t0"): nasty},
        )
    )
    tags = Tags(page)
    assert tags.tags.count("script") == plain.tags.count("script") == 2
    assert set(tags.tags) == set(plain.tags)
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert [row[5] for row in unpacked(data_of(page))][::2] == HOSTILE
    assert nasty.replace("\ud800", "?") in tags.text


def test_figures_follow_from_what_differs(make_samples: Callable[..., pd.DataFrame]) -> None:
    def titles(**columns: list[Any]) -> list[str]:
        parts = [
            make_samples(["AB", "AA"], **dict(zip(columns, values, strict=True)))
            for values in zip(*columns.values(), strict=True)
        ]
        samples = pd.concat(parts, ignore_index=True)
        by = [name for name in columns if name != "run"]
        summary = tidy(summary_document(samples, by=[*by, "domain", "level"])["cells"], 30)
        return [figure.title for figure in report_figures(samples, summary)]

    always = ["pass@k", "modes@k", "Accuracy and diversity", "Mode spectrum"]
    assert titles(arm=["a"]) == always
    assert titles(step=[0, 1, 2]) == [*always, "Collapse curve"]
    assert titles(temperature=[0.5, 1.0, 1.5]) == [*always, "Temperature frontier"]
    assert titles(arm=["a", "b"], run=["a", "b"]) == [*always, "Modes of each prompt"]


def test_in_a_browser_the_page_works_and_the_filter_filters(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        render_report(report(table([["A1", "A1", "B2", "nonsense"], ["A3", "A3", "A3", "A3"]] * 60)))
    )
    with opened(tmp_path / "page.html", "dark") as shown:
        page = shown.page
        assert page.inner_text("#count") == "120 of 120 prompts"
        assert page.locator("#list > details").count() == 50
        page.click("#more")
        assert page.locator("#list > details").count() == 100
        sizes = page.eval_on_selector_all("img", "images => images.map(image => image.naturalWidth)")
        assert len(sizes) == 4
        assert min(sizes) > 100
        page.select_option("#status", label="incorrect")
        assert page.inner_text("#count") == "60 of 120 prompts"
        page.locator("#list > details summary").first.click()
        assert page.locator("#list pre").all_inner_texts() == ["Reach 24.", "nonsense"]
        page.select_option("#status", label="any")
        page.select_option("#domain", label="mathir")
        assert page.inner_text("#count") == "60 of 120 prompts"
        page.select_option("#domain", label="any")
        page.fill("#text", "B2")
        shown.wait_for_text("#count", "60 of 120 prompts")
        page.locator("#list > details summary").first.click()
        groups = page.locator("#list .group h3").all_inner_texts()
        assert [re.sub(r"\s+", " ", text).strip() for text in groups] == [
            "2 × correct A",
            "1 × correct B",
            "1 × incorrect",
        ]
        page.fill("#text", "Reach 24")
        shown.wait_for_text("#count", "1 of 120 prompts")
        assert shown.errors == []
        assert shown.fetched() == [(tmp_path / "page.html").as_uri()]


def test_in_a_browser_hostile_texts_stay_texts(tmp_path: Path) -> None:
    samples = table([[text, "A" + text] for text in HOSTILE], run=HOSTILE[1])
    problems = {("countdown", 1, "t0"): HOSTILE[0]}
    page = render_report(report(samples, title=HOSTILE[1], remarks=HOSTILE, problems=problems))
    (tmp_path / "page.html").write_text(page)
    with opened(tmp_path / "page.html") as shown:
        for summary in shown.page.locator("#list > details summary").all():
            summary.click()
        texts = shown.page.eval_on_selector_all("#list pre", "nodes => nodes.map(node => node.textContent)")
        for text in HOSTILE[:-1]:
            assert text in texts
            assert "A" + text in texts
        assert shown.page.evaluate("window.hacked") is None
        assert shown.page.locator("#hacked").count() == 0
        assert shown.errors == []


def test_no_samples_at_all_still_give_a_page(tmp_path: Path) -> None:
    nothing = table([["A"]]).iloc[:0]
    page = render_report(report(nothing, settings={}, figures=[]))
    assert "These samples come from files without settings." in page
    assert np.array(data_of(page)["prompts"]).size == 0
