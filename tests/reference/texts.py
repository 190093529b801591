"""Text that breaks readers: blanks, digits, boxes, labels, fences, and random edits of all of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

# fmt: off
BLANKS = (
    " ", "  ", "\t", "\n", "\n\n", "\r", "\r\n", "\x0c", "\x0b", "\x1c", "\x1d", "\x1e", "\x1f", "\x85",
    "\xa0", "\u1680", "\u2000", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000",
)
# fmt: on
INVISIBLE = ("\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u180e", "\0", "\x7f", "\x1b")
# fmt: off
LOOKALIKES = (
    "−", "–", "—", "‐", "＋", "＊", "／", "∗", "⁄", "∕", "×", "÷", "·", "⋅", "＝", "；", "，", "：",
    "（", "）", "｛", "｝", "＼", "“", "”", "‘", "’", "′", "１", "２", "３", "٣", "۲", "²", "③", "Ⅲ",
    "½", "𝟑", "𝟚", "ｎ", "𝑛", "𝐧", "ⁿ", "п", "ο", "\u212a", "ſ", "İ", "ı", "ß", "ﬁ", "é", "e\u0301",
    "中", "😀", "𝛌", "λ",
)
# fmt: on
SURROGATES = ("\ud800", "\udc00", "\udfff", "\ud83d")
# fmt: off
LATEX = (
    "\\boxed", "\\boxed{", "\\boxed{}", "\\boxed {", "\\Boxed{", "\\fbox{", "\\text{", "\\left(", "\\right)",
    "\\times", "\\cdot", "\\div", "\\,", "\\ ", "\\;", "\\_", "\\%", "\\{", "\\}", "\\frac{1}{2}", "\\\\",
    "\\", "$", "$$", "\\(", "\\)", "\\[", "\\]", "\\lambda n:", "\\lambda\\,n:", "\\lambda\\ n:",
    "\\displaystyle",
)
MARKS = (
    "{", "}", "(", ")", "[", "]", "<", ">", "=", ";", ",", ".", ":", "|", "/", "*", "+", "-", "^", "_", "~",
    "!", "?", "&", "%", "#", "@", '"', "'", "`", "$", "\\", "**", "//", "==", "```", "...", "->",
    "<|im_end|>", "</s>",
)
LABEL_WORDS = (
    "answer", "Answer", "ANSWER", "anſwer", "expression", "coloring", "program", "function", "plan", "recipe",
    "colors", "missing colors", "digits", "color", "missing digit", "solution", "mask", "reply", "f",
)
LABEL_ENDS = (
    ":", " is", " is:", "=", " =", " :", " are", "is", "：", "\u2003:", " is\xa0", ": =", ":\n", ". ", "",
)
# fmt: on

Edit = Callable[[random.Random, str], str]


def label(rng: random.Random) -> str:
    """``The final answer is`` and its relatives."""
    blank = " " if rng.random() < 0.8 else rng.choice(BLANKS)
    words = [word for word in ("the", "final") if rng.random() < 0.4]
    text = blank.join([*words, rng.choice(LABEL_WORDS)]) + rng.choice(LABEL_ENDS)
    text = text.capitalize() if rng.random() < 0.3 else text
    return text + (" " if rng.random() < 0.7 else "")


def odd_piece(rng: random.Random) -> str:
    """One short piece of any of the families above."""
    return rng.choice(rng.choice((BLANKS, INVISIBLE, LOOKALIKES, LATEX, MARKS, SURROGATES, MARKS, BLANKS)))


def prose(rng: random.Random) -> str:
    """A line of reasoning, sometimes with digits, braces or a box of its own."""
    pieces = (
        *(
            "So we try",
            "Let me check:",
            "vertex 1 is 2",
            "3 + 4 = 7",
            "{a, b}",
            "Wait.",
            "\n",
            "<think>",
            "</think>",
        ),
        *(
            "that is",
            "Therefore",
            "first",
            "(see above)",
            "\\{1,2\\}",
            "中文推理",
            "no",
            "**",
            "n",
            "x",
            "}",
            "{",
        ),
    )
    return " ".join(rng.choice(pieces) for _ in range(rng.randint(1, 8)))


def edit(rng: random.Random, text: str, pieces: Sequence[str] = (), edits: int = 1) -> str:
    """Random insertions, deletions, replacements, repetitions and swaps."""
    for _ in range(edits):
        at = rng.randint(0, len(text))
        kind = rng.randrange(5)
        piece = rng.choice(pieces) if pieces and rng.random() < 0.6 else odd_piece(rng)
        if kind == 0:
            text = text[:at] + piece + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randint(1, 3) :]
        elif kind == 2:
            text = text[:at] + piece + text[at + 1 :]
        elif kind == 3:
            text = text[:at] + text[max(0, at - rng.randint(1, 6)) :]
        else:
            text = text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
    return text


def _two_boxes(rng: random.Random, text: str) -> str:
    other = rng.choice(("", "1", "no", edit(rng, text), "\\boxed{", "}"))
    boxes = [f"\\boxed{{{text}}}", f"\\boxed{{{other}}}"]
    rng.shuffle(boxes)
    return rng.choice(("", " ", "\n", " or ", prose(rng))).join(boxes)


def _broken_box(rng: random.Random, text: str) -> str:
    return rng.choice(
        (
            f"\\boxed{{{text}",
            f"\\boxed{{{text}}} \\boxed",
            f"\\boxed{{{text}}} \\boxed{{",
            f"\\boxed {{{text}}}",
            f"\\boxed\n{{{text}}}",
            f"\\boxed{{{text}}}}}",
            f"\\boxed{{{{{text}}}",
            f"\\boxedd{{{text}}}",
            f"\\boxed{{}} {text}",
            f"\\boxed[{text}]",
            f"\\boxed{text}",
            f"boxed{{{text}}}",
            f"\\\\boxed{{{text}}}",
            f"\\boxed{{\\boxed{{{text}}}}}",
            f"\\boxed{{\\text{{{text}}}}}",
            f"\\boxed{{{{{text}}}}}",
            f"\\boxed{{${text}$}}",
            f"\\boxed{{{text}}} so \\fbox{{1}}",
            f"\\boxed{{ }}{text}",
        )
    )


def _fence(rng: random.Random, text: str) -> str:
    language = rng.choice(
        ("", "python", "Python", "PYTHON", "mathir", "MathIR", "py", "text", "latex", "python3")
    )
    blank = rng.choice(("\n", " ", "", "\n\n", "\r\n", *BLANKS))
    closing = rng.choice(("```", "```", "```", "``", "````", "", "``` "))
    return f"```{language}{blank}{text}{rng.choice(('', blank))}{closing}"


def _quoted(rng: random.Random, text: str) -> str:
    pairs = (
        ("$", "$"),
        ("`", "`"),
        ('"', '"'),
        ("**", "**"),
        ("(", ")"),
        ("\\(", "\\)"),
        ("{", "}"),
        ("[", "]"),
    )
    left, right = rng.choice(
        (*pairs, ("<answer>", "</answer>"), ("\\fbox{", "}"), ("\\text{", "}"), ("“", "”"))
    )
    return f"{left}{text}{right}"


def _ending(rng: random.Random, text: str) -> str:
    return text + rng.choice(
        (".", ";", ",", ";;", "\n", " .", "!", "\\", "#", "# note", ")", "}", "\\boxed", ".")
    )


def _padded(rng: random.Random, text: str) -> str:
    """Blanks at both ends; sometimes up to a length at which a limit stands."""
    blank = rng.choice((*BLANKS, *INVISIBLE[:4]))
    if rng.random() < 0.5:
        return f"{blank}{text}{rng.choice(BLANKS)}"
    filler = rng.choice((" ", "0", "(", "#", "a", "\n", "+"))
    size = rng.choice((160, 161, 159, 200, 201, 240, 241, 512, 513)) - len(text)
    at = rng.randint(0, len(text))
    return text[:at] + filler * max(0, size) + text[at:]


def _case(rng: random.Random, text: str) -> str:
    return rng.choice((str.upper, str.title, str.swapcase, str.lower))(text)


def _box(rng: random.Random, text: str) -> str:
    return f"\\boxed{{{text}}}"


SURFACES: tuple[tuple[int, Edit], ...] = (
    (60, _box),
    (30, lambda rng, text: f"{prose(rng)} \\boxed{{{text}}}"),
    (10, lambda rng, text: f"\\boxed{{{text}}} {prose(rng)}"),
    (25, lambda rng, text: text),
    (12, lambda rng, text: label(rng) + text),
    (5, lambda rng, text: f"{prose(rng)}\n{text}"),
    (6, _two_boxes),
    (8, _broken_box),
    (6, _fence),
    (6, _quoted),
    (6, _ending),
    (6, _padded),
    (3, _case),
    (8, edit),
)
_WEIGHTS = [weight for weight, _ in SURFACES]
_EDITS = [change for _, change in SURFACES]


def surface(rng: random.Random, text: str) -> str:
    """An answer as a model may write it; up to three layers of dress."""
    for change in rng.choices(_EDITS, _WEIGHTS, k=rng.choice((1, 1, 1, 1, 1, 1, 2, 2, 3))):
        text = change(rng, text)
    return text


def guesses(rng: random.Random, answers: Sequence[str]) -> str:
    """Several answers in one response."""
    separator = rng.choice(
        (" = ", "=", " or ", ", ", ",", ";", "; ", "\n", " ", "\\\\", " \\text{or} ", "|", "}\\boxed{")
    )
    return separator.join(answers)


def nonsense(rng: random.Random, pieces: Sequence[str]) -> str:
    """A soup of an answer language's own pieces and of odd ones."""
    size = rng.randint(0, 12)
    return "".join(rng.choice(pieces) if rng.random() < 0.8 else odd_piece(rng) for _ in range(size))
