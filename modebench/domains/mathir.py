"""MathIR: solve a linear equation for x with commands from a lettered menu.

The mode is the sequence of equations that the commands pass through. Equations stay symbolic: the
values of the coefficients only decide whether a divisor is zero. Laws: arXiv:2610.11064.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import factorial
from typing import Any, NamedTuple

from modebench.domains.base import BOXED_SYSTEM, AnswerSpace, Constants, Reference, Solution, find_law
from modebench.laws import Cell
from modebench.laws import mathir as higher
from modebench.laws.mathir import FAMILIES, Family
from modebench.verifiers.mathir import Spec, State, compile_reference

name: str = "mathir"
aliases: tuple[str, ...] = ()


# Law --------------------------------------------------------------------------------------------


class Law(NamedTuple):
    """Parameters of a level.

    Attributes:
        text: the law in one sentence.
        families: names of the families, equally likely.
        coefficient: a and d are between this and its negative, and not 0.
        constant: b is between this and its negative.
        solution: x is an integer between this and its negative, and not 0; c follows.
        max_steps: most commands of an answer.
    """

    text: str
    families: tuple[str, ...]
    coefficient: int
    constant: int
    solution: int
    max_steps: int


LAWS = {
    1: Law(
        "one of 4 families of equations with an integer solution of -9 to 9, its 6 commands shuffled",
        families=("product", "quotient", "two_sided", "two_sided_minus"),
        coefficient=9,
        constant=12,
        solution=9,
        max_steps=4,
    )
}

TEXTS = {**{level: rules.text for level, rules in LAWS.items()}, **higher.TEXTS}
"""Every level's law; levels 2 to 5 stand in `modebench.laws.mathir`."""


def law(level: int) -> str:
    """The distribution of `level` in one sentence."""
    return find_law(TEXTS, level, name)


def law_size(level: int) -> int | None:
    """Families times orders of the menu, because `identity` leaves out the values."""
    find_law(TEXTS, level, name)
    if level in higher.TEXTS:
        return higher.law_size(level)
    rules = find_law(LAWS, level, name)
    return sum(factorial(len(FAMILIES[family].commands)) for family in rules.families)


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference drawn from the law of `level`.

    At level 1 coefficients and solution are uniform, except that x / a is an integer and that the
    coefficients of x don't cancel.
    """
    find_law(TEXTS, level, name)
    if level in higher.TEXTS:
        return higher.generate(rng, level, cell)
    rules = find_law(LAWS, level, name)
    title = rng.choice(rules.families)
    family = FAMILIES[title]
    commands = rng.sample(family.commands, len(family.commands))
    bindings = _draw_bindings(rng, family, rules)
    return higher.reference(title, family, commands, bindings, rules.max_steps)


def _draw_bindings(rng: random.Random, family: Family, rules: Law) -> dict[str, int]:
    coefficients = _nonzero(rules.coefficient)
    solutions = _nonzero(rules.solution)
    a = rng.choice(coefficients)
    b = rng.randint(-rules.constant, rules.constant)
    if family.combined is None:
        x = rng.choice([value for value in solutions if value % a == 0])
        return {"a": a, "b": b, "c": x // a + b}
    of_a, of_d = family.combined
    x = rng.choice(solutions)
    if of_d == 0:
        return {"a": a, "b": b, "c": of_a * a * x + b}
    d = rng.choice([value for value in coefficients if of_a * a + of_d * value])
    return {"a": a, "b": b, "c": (of_a * a + of_d * d) * x + b, "d": d}


def _nonzero(limit: int) -> list[int]:
    return [value for value in range(-limit, limit + 1) if value]


def identity(reference: Reference) -> str:
    """Equation, menu in its order and number of steps.

    The values are left out: a mode doesn't depend on them, and where no divisor is zero the same
    commands solve both tasks. Splits that differ in the values alone would share their answers.
    """
    menu = " ".join(f"{letter}={_bare(command)}" for letter, command in reference["actions"].items())
    sides = f"{_bare(reference['initial_lhs'])}={_bare(reference['initial_rhs'])}"
    return f"{name}:{sides}:{reference.get('max_steps', 4)}:{menu}"


def _bare(text: str) -> str:
    return "".join(text.split())


# Prompt -----------------------------------------------------------------------------------------

_TOKENS = re.compile(r"[A-Za-z][A-Za-z0-9_]*|[(),]")
_VERBS = {"add": "add", "sub": "subtract", "mul": "multiply by", "div": "divide by"}
_SIGNS = {"add": (1, " + "), "sub": (1, " - "), "mul": (2, "*"), "div": (2, "/")}


def problem(reference: Reference, level: int) -> str:
    """The user message: equation, values, menu, what is refused."""
    find_law(TEXTS, level, name)
    equation = f"{_infix(reference['initial_lhs'])} = {_infix(reference['initial_rhs'])}"
    values = ", ".join(f"{letter} = {value}" for letter, value in reference["bindings"].items())
    menu = [f"{letter}: {_spoken(command)}" for letter, command in reference["actions"].items()]
    lines = [
        "Solve an equation for x with commands from a menu.",
        f"Equation: {equation}",
        f"Values: {values}. They are not put in: the equation keeps its letters.",
        "Menu:",
        *menu,
        "A command acts on both sides, and the result is simplified exactly. Choose 1 to "
        f"{reference.get('max_steps', 4)} commands, in order; a command may occur again. At the end one side "
        "must be exactly x, and the other side must not contain x.",
        "Refused are: multiplying or dividing by something that is zero or contains x, a command that brings "
        "back an equation seen before, the first one included, and a command after which some letter is "
        "multiplied by itself.",
        "Several sequences can be valid; give one of them.",
        "Answer with the capital letters of the commands, separated by semicolons, in \\boxed{}. Commands P "
        "and then Q would be \\boxed{P;Q}.",
    ]
    return "\n".join(lines)


def _spoken(command: str) -> str:
    """``sub(mul(d,x))`` as ``subtract d*x``."""
    operation, argument = _bare(command).removesuffix(";").removesuffix(")").split("(", 1)
    text = _infix(argument)
    return f"{_VERBS[operation]} {text if _TOKENS.fullmatch(text) else f'({text})'}"


def _infix(expression: str) -> str:
    """A prefix expression in ordinary notation, with the parentheses that it needs."""
    return _read(iter([*_TOKENS.findall(expression), ""]))[0]


def _read(tokens: Iterator[str]) -> tuple[str, int]:
    """Text and binding strength (1 sums, 2 products, 3 symbols) of the next expression."""
    head = next(tokens)
    if head not in _SIGNS and head != "neg":
        return head, 3
    next(tokens)
    left, left_strength = _read(tokens)
    next(tokens)
    if head == "neg":
        return f"-{left if left_strength == 3 else f'({left})'}", 1
    right, right_strength = _read(tokens)
    next(tokens)
    strength, sign = _SIGNS[head]
    left = left if left_strength >= strength else f"({left})"
    # The right operand of - and / must bind more tightly than the operator itself.
    right = right if right_strength >= strength + (head in ("sub", "div")) else f"({right})"
    return f"{left}{sign}{right}", strength


def system(level: int) -> str:
    """The system message: the reply format in one sentence."""
    find_law(TEXTS, level, name)
    return BOXED_SYSTEM


# Modes ------------------------------------------------------------------------------------------


def count_modes(reference: Reference, level: int) -> int:
    """Number of different equation sequences by which commands of the menu solve the equation."""
    return sum(1 for _ in solutions(reference, level))


def solutions(reference: Reference, level: int) -> Iterator[Solution]:
    """Every equation sequence once, fewer commands first, then in the order of the letters."""
    found = set()
    for mode, answer in _right_answers(reference, level):
        if mode not in found:
            found.add(mode)
            yield Solution(mode, answer)


def _right_answers(reference: Reference, level: int) -> list[Solution]:
    """Every letter sequence that solves the equation, in the order of `solutions`."""
    if reference["verifier"] != "mathir_action_menu":
        raise ValueError("reference.verifier: only menus have a finite list of modes")
    menu = _menu(compile_reference(reference, level), reference)
    place = {letter: number for number, letter in enumerate(reference["actions"])}
    found = [([menu.letters[command] for command in path], mode) for path, mode in _right_paths(menu)]
    found.sort(key=lambda pair: (len(pair[0]), [place[letter] for letter in pair[0]]))
    return [Solution(mode, _reply(letters)) for letters, mode in found]


@dataclass(frozen=True)
class _Menu:
    """A task up to the order of its commands and the values of its symbols.

    Equal menus have the same right paths: the values only decide which commands are refused for a zero,
    and such a refusal, checked first, shows at the initial equation as at any other.

    Attributes:
        sides: the initial equation.
        commands: the commands in alphabetical order.
        refused: why each is refused at the initial equation, or nothing.
        max_steps: most commands of an answer.
        task: one task of this menu.
        letters: its letter of each command.
    """

    sides: tuple[str, str]
    commands: tuple[str, ...]
    refused: tuple[str, ...]
    max_steps: int
    task: Spec = field(compare=False)
    letters: tuple[str, ...] = field(compare=False)


def _menu(task: Spec, reference: Reference) -> _Menu:
    commands = sorted((_bare(command), letter) for letter, command in reference["actions"].items())
    letters = tuple(letter for _, letter in commands)
    first = [task.move(task.start, letter) for letter in letters]
    return _Menu(
        sides=(_bare(reference["initial_lhs"]), _bare(reference["initial_rhs"])),
        commands=tuple(command for command, _ in commands),
        refused=tuple(moved if isinstance(moved, str) else "" for moved in first),
        max_steps=task.max_steps,
        task=task,
        letters=letters,
    )


@lru_cache(maxsize=256)
def _right_paths(menu: _Menu) -> list[tuple[tuple[int, ...], str]]:
    """Every sequence of commands, as their numbers in the menu, that solves the equation; with its mode."""
    task, right = menu.task, []
    paths: list[tuple[tuple[int, ...], tuple[State, ...]]] = [((), (task.start,))]
    for _ in range(task.max_steps):
        paths = [
            ((*path, command), (*states, state))
            for path, states in paths
            for command, letter in enumerate(menu.letters)
            if (state := task.step(states[-1], letter)) is not None and state not in states
        ]
        right += [(path, task.key(states[1:])) for path, states in paths if task.solved(states[-1])]
    return right


def _reply(letters: Sequence[str]) -> str:
    return f"\\boxed{{{';'.join(letters)}}}"


def listed(mode: str) -> bool:
    """Every correct mode is one of those counted."""
    return True


# Chance -----------------------------------------------------------------------------------------


def random_answer(rng: random.Random, reference: Reference, level: int) -> str:
    """Uniform over the letter sequences of every allowed length, letters may repeat."""
    letters = list(reference["actions"])
    lengths = range(1, reference.get("max_steps", 4) + 1)
    [length] = rng.choices(lengths, weights=[len(letters) ** length for length in lengths])
    return _reply(rng.choices(letters, k=length))


def answer_space(reference: Reference, level: int, modes: int) -> AnswerSpace:
    """The letter sequences of every allowed length; several of them can pass through the same equations."""
    lengths = range(1, reference.get("max_steps", 4) + 1)
    size = sum(len(reference["actions"]) ** length for length in lengths)
    answers = Counter(mode for mode, _ in _right_answers(reference, level))
    return AnswerSpace(size, Counter(answers.values()))


def constants(reference: Reference, level: int) -> Constants:
    """All right letter sequences."""
    return Constants([answer for _, answer in _right_answers(reference, level)], complete=True)
