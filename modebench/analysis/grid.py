"""A table of strings, set as text, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

DASH = "–"
INDENT = "\N{NO-BREAK SPACE}" * 2  # kept by Markdown and HTML
LAYOUTS = ("text", "markdown", "latex", "html")


class Grid(NamedTuple):
    """A table as strings.

    Attributes:
        header: column titles.
        rows: one list of texts a cell, its chance rows below it.
        overall: the row of means of the cells; None when there is one cell or none.
        notes: lines that belong under the table.
        left: which columns are set flush left, those that name the cell.
    """

    header: list[str]
    rows: list[list[str]]
    overall: list[str] | None
    notes: list[str]
    left: list[bool]


def render_grid(grid: Grid, layout: str = "text") -> str:
    """A table in one of `LAYOUTS`; LaTeX needs the booktabs package.

    Raises:
        ValueError: another layout.
    """
    setters = {"text": _text, "markdown": _markdown, "latex": _latex, "html": _html}
    if layout not in setters:
        raise ValueError(f"unknown layout {layout!r}; expected one of {LAYOUTS}")
    return setters[layout](grid)


def _text(grid: Grid) -> str:
    body = [*grid.rows, *([grid.overall] if grid.overall else [])]
    widths = [max(map(len, column)) for column in zip(grid.header, *body, strict=True)]
    rule = "─" * (sum(widths) + 2 * (len(widths) - 1))

    def line(row: Sequence[str]) -> str:
        sides = (
            text.ljust(width) if left else text.rjust(width)
            for text, width, left in zip(row, widths, grid.left, strict=True)
        )
        return "  ".join(sides).rstrip()

    lines = [line(grid.header), rule, *map(line, grid.rows)]
    if grid.overall:
        lines += [rule, line(grid.overall)]
    return "\n".join([*lines, "", *grid.notes])


def _markdown(grid: Grid) -> str:
    sides = ["---" if left else "---:" for left in grid.left]
    body = [*grid.rows, *([grid.overall] if grid.overall else [])]
    lines = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        for row in [grid.header, sides, *body]
    ]
    return "\n".join([*lines, "", *(note.replace("*:", "\\*:") + "  " for note in grid.notes)]).rstrip()


def _latex(grid: Grid) -> str:
    sides = "".join("l" if left else "r" for left in grid.left)

    def line(row: Sequence[str]) -> str:
        return " & ".join(map(_latex_text, row)) + r" \\"

    lines = [
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        line(grid.header),
        r"\midrule",
        *map(line, grid.rows),
    ]
    if grid.overall:
        lines += [r"\midrule", line(grid.overall)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, *(f"% {note}" for note in grid.notes)])


def _html(grid: Grid) -> str:
    def line(row: Sequence[str], kind: str = "", tag: str = "td") -> str:
        cells = (
            f"<{tag}{' class=left' if left else ''}>{escape(text)}</{tag}>"
            for text, left in zip(row, grid.left, strict=True)
        )
        return f"<tr{kind}>{''.join(cells)}</tr>"

    kinds = (" class=chance" if row[0].startswith(INDENT) else "" for row in grid.rows)
    lines = [line(grid.header, tag="th"), *map(line, grid.rows, kinds)]
    if grid.overall:
        lines.append(line(grid.overall, " class=overall"))
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in grid.notes)
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>{notes}'


def _latex_text(text: str) -> str:
    signs = {"\\": r"\textbackslash{}", "×": r"$\times$", DASH: "--", "~": r"\textasciitilde{}"}
    signs |= {"≥": r"$\geq$", "−": "$-$", "†": r"\dag{}", "\N{NO-BREAK SPACE}": "~"}
    signs |= {"^": r"\textasciicircum{}"} | {sign: "\\" + sign for sign in "&%$#_{}"}
    return "".join(signs.get(letter, letter) for letter in text)
