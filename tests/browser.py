"""A headless Chromium for the tests that look at a page; they are skipped, with the reason, without one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WAIT = 120_000
"""Milliseconds after which a page counts as stuck; a busy machine is no failure."""


class Page:
    """An opened page and what went wrong on it.

    Attributes:
        page: playwright's page.
        errors: script errors and console messages of error level.
        requests: addresses that it asked for, other than inline data.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "console",
            lambda message: self.errors.append(message.text)
            if message.type in ("error", "warning")
            else None,
        )
        page.on("request", lambda request: self.requests.append(request.url))

    def wait_for_text(self, selector: str, text: str) -> None:
        """Wait until an element holds exactly this text."""
        sync_api = pytest.importorskip("playwright.sync_api")
        sync_api.expect(self.page.locator(selector)).to_have_text(text, timeout=WAIT)

    def fetched(self) -> list[str]:
        return [url for url in self.requests if not url.startswith(("data:", "blob:"))]


@contextmanager
def opened(file: Path, scheme: str = "light") -> Iterator[Page]:
    """The page of a file, once its script is done."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    with playwright.sync_playwright() as started:
        if program is None and not Path(started.chromium.executable_path).exists():
            pytest.skip("no Chromium found: install the system package chromium or run `playwright install`")
        browser = started.chromium.launch(executable_path=program, args=_FLAGS)
        try:
            page = Page(browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme))
            page.page.set_default_timeout(WAIT)
            page.page.goto(file.absolute().as_uri())
            page.page.wait_for_selector("html[data-ready=true]", timeout=WAIT)
            yield page
        finally:
            browser.close()
