"""Python factors: references and answers."""

from __future__ import annotations

import random
from typing import Any

from tests.reference.texts import BLANKS, edit, guesses, nonsense

# fmt: off
TOKENS = (
    "n", "n", "n", "2", "3", "0", "7", "10", "0x", "0o", "0b1", "0B2", "0XfF", "1_0", "1__0", "_1", "00",
    "007", "1e", "1e3", "1.", ".5", "1j", "10000", "10001", "9_999", "0x2710", "0x2711", "+", "-", "*", "//",
    "%", "/", "**", "~", "^", "&", "==", "!=", "<", "<=", ">", ">=", "<>", "=", ":=", "<<", "->", "@", "(",
    ")", "(", ")", "[", "]", "{", "}", ",", ":", " if ", " else ", "if", "else", "and", "or", "not", " and ",
    " or ", " not ", " in ", " is ", "not in", "lambda", "lambda n:", "lambda: ", "lambda k=2:",
    "lambda *a,b=1,**k:2", "yield", "await n", "async", "for", "None", "True", "print", "x", "N", "__debug__",
    "n.real", "n[0]", "n()", "f''", "''", "b''", "...", "*n", "**n", ";", "#", "\\\n", "\\\r\n", "\\", " ",
    " ", "\t", "\x0c", "\x0b", "\n", "\r", "\xa0", "\x00", "ｎ", "𝑛", "ⁿ", "ñ", "２", "²", "if(n)else",
    "2if n%2==0else 3",
)
PARAMETERS = (
    "x", "n", "z", "y=2", "w=n//2", "n=0", "k=n", "*", "*a", "*n", "**k", "**n", "/", "", "x=(2,)",
    "d=lambda:n", "é", "ﬁ", "fi", "_", "None", "__debug__", "x:int", "if", "*a=1", "(x)", "print",
    "x=1 if n else 2", "y=lambda q:q", "ｎ",
)
CASES = (
    4, 6, 8, 9, 10, 12, 14, 15, 16, 18, 20, 21, 24, 25, 27, 28, 30, 33, 35, 36, 42, 45, 49, 60, 77, 91, 96,
    210, 961, 1000,
)
# fmt: on


def reference(rng: random.Random, level: int) -> dict[str, Any]:
    cases = rng.sample(CASES, rng.choice((2, 2, 3, 4, 4, 4, 6, 8)))
    if rng.random() < 0.06:
        cases[rng.randrange(len(cases))] = rng.choice((2, 3, 5, 7, 97, 997, 1001, 1002, 4, cases[0]))
    result: dict[str, Any] = {
        "verifier": "python_factor_function",
        "python_version": "factor-v1",
        "cases": rng.choice((cases, sorted(cases))),
    }
    if rng.random() < 0.5:
        result |= {
            "num_modes": 32,
            "source": "test",
            "instance_id": "t-0",
            "num_externally_certified_modes": 2,
        }
    return result


def expression(rng: random.Random, depth: int) -> str:
    """A random expression of the allowed language, often not an integer, sometimes dividing by zero."""
    kind = rng.random()
    if depth <= 0 or kind < 0.25:
        return rng.choice(("n", "n", "2", "3", "4", "0", "7", "1", "10", "0x10", "1_0"))
    below = [expression(rng, depth - 1) for _ in range(3)]
    if kind < 0.40:
        return f"{below[0]}{rng.choice(('+', '-', '*', '//', '%', ' - ', ' // '))}{below[1]}"
    if kind < 0.56:
        return f"{below[0]} if {below[1]} else {below[2]}"
    if kind < 0.68:
        chain = rng.choice(("==", "<", ">=", "!=", "<=", ">", " == "))
        more = f"{rng.choice(('<', '==', '>'))}{below[2]}" if rng.random() < 0.3 else ""
        return f"{below[0]}{chain}{below[1]}{more}"
    if kind < 0.78:
        return f" {rng.choice(('and', 'or'))} ".join(below[: rng.randint(2, 3)])
    if kind < 0.85:
        return f"{rng.choice(('-', '+', 'not ', '--', 'not not '))}{below[0]}"
    if kind < 0.96:
        return f"({below[0]})"
    return f"(lambda {parameters(rng)}: {below[0]})"


def parameters(rng: random.Random) -> str:
    """A parameter list, one that CPython accepts about half of the time."""
    if rng.random() < 0.5:
        names = rng.sample(("x", "y", "z", "n", "w", "é"), 5)
        default = rng.choice(("1", "n", "n//2", "lambda: n", "2 if n else 3"))
        split = rng.randint(0, 3)
        parts = names[:split]
        if parts and rng.random() < 0.4:
            parts.insert(rng.randint(1, len(parts)), "/")
        if parts and parts[-1] != "/" and rng.random() < 0.4:
            parts[-1] += f"={default}"
        if rng.random() < 0.5:
            parts += rng.choice(
                ([f"*{names[3]}"], ["*", names[3]], [f"*{names[3]}", f"{names[4]}={default}"])
            )
        if rng.random() < 0.3:
            parts.append("**k")
        return rng.choice((",", ", ")).join(parts) + rng.choice(("", "", "", ","))
    return rng.choice((",", ", ")).join(rng.choice(PARAMETERS) for _ in range(rng.randint(0, 5)))


def _factor(rng: random.Random, case: int) -> int:
    divisors = [d for d in range(2, min(case, 1001)) if case % d == 0]
    return rng.choice(divisors) if divisors else 2


def mapping(rng: random.Random, cases: list[int]) -> str:
    """A right program: by case, or by trial division."""
    if rng.random() < 0.35:
        primes = rng.choice(
            ((2, 3, 5), (2, 3, 5, 7), (3, 2, 7), (2, 3, 5, 7, 11, 13), (2, 3, 5, 7, 11, 13, 17))
        )
        tests = [rng.choice((f"{p} if n%{p}==0 else ", f"{p} if not n%{p} else ")) for p in primes]
        return "".join(tests) + rng.choice(("7", "31", "n//2", "1"))
    body = "".join(f"{_factor(rng, case)} if n=={case} else " for case in cases[:-1])
    if rng.random() < 0.25:
        body = "".join(f"(n=={case})*{_factor(rng, case)}+" for case in cases[:-1])
        return body + f"(n=={cases[-1]})*{_factor(rng, cases[-1])}"
    return body + str(_factor(rng, cases[-1]))


def dress(rng: random.Random, body: str) -> str:
    """A body as a program, mostly a plain lambda of n."""
    head = "lambda n: "
    if rng.random() < 0.25:
        head = rng.choice(
            (
                *(
                    "lambda n:",
                    "lambda  n : ",
                    "lambda\tn:",
                    "lambda n,: ",
                    "lambda n, : ",
                    "(lambda n: ",
                    "\\lambda n: ",
                    "λ n: ",
                ),
                *(
                    "\\lambda\\,n: ",
                    "\\lambda\\, n: ",
                    "\\lambda\\ n: ",
                    "\\lambda{}n:",
                    "lambda x: ",
                    "lambda ｎ: ",
                    "lambda 𝑛:",
                ),
                *(
                    "lambda n=2: ",
                    "lambda *n: ",
                    "lambda **n: ",
                    "lambda n, /: ",
                    "lambda *, n: ",
                    "lambda n, m=1: ",
                    "lambda: ",
                ),
                *(
                    "f = lambda n: ",
                    "lambda n: lambda n: ",
                    "# c\nlambda n: ",
                    "\\\nlambda n: ",
                    "((lambda n: ",
                    "lambda\nn: ",
                ),
                *(
                    "def f(n): return ",
                    "lambda n:\n",
                    "(lambda\nn\n:\n",
                    "lambda(n): ",
                    "lambda n: (",
                    "lambda n: \\\n",
                    "Lambda n: ",
                ),
                *(
                    f"lambda{rng.choice(BLANKS)}n{rng.choice(BLANKS)}:{rng.choice(BLANKS)}",
                    f"lambda {parameters(rng)}: ",
                ),
            )
        )
    text = head + body
    missing = text.count("(") - text.count(")")
    text += ")" * missing if missing > 0 and rng.random() < 0.9 else ""
    if rng.random() < 0.08:
        text += rng.choice(
            (
                " # done",
                "#",
                "\n# c",
                "\n\n#x\n ",
                "\\",
                "\\\n",
                ";",
                ",",
                " ",
                ")",
                "(12)",
                "\n2",
                " \\\n",
                "\f",
            )
        )
    return text


def _sized(rng: random.Random) -> str:
    """Programs around the limits: 64 nodes, 240 characters, 10,000, deep nesting."""
    return rng.choice(
        (
            lambda: "+".join(["n"] * rng.randint(13, 17)) + rng.choice(("", "-n*0", "+-1", "//n")),
            lambda: "2 if n%2==0 else " * rng.randint(5, 7) + "3",
            lambda: "not " * rng.randint(25, 33) + "n",
            lambda: "-" * rng.randint(26, 31) + "n",
            lambda: "(" * rng.choice((10, 100, 112, 113)) + "2" + ")" * rng.choice((10, 100, 112, 113)),
            lambda: "2" + " " * rng.randint(225, 232),
            lambda: "2 #" + "x" * rng.randint(224, 232),
            lambda: rng.choice(
                ("10000", "10001", "0x2710", "0x2711", "0b10011100010000", "1_0_0_0_1", "0o23420", "0" * 200)
            ),
            lambda: "9" * rng.choice((5, 100, 229, 230)) + "*0+2",
            lambda: "n*" * rng.randint(10, 14) + "n%n+2",
            lambda: "lambda n: " * rng.randint(1, 20) + "n",
            lambda: f"(lambda {','.join('abcdefghijklm'[: rng.randint(1, 13)])}: n) and 2",
            lambda: "n" + "<n" * rng.randint(18, 22),
            lambda: "n or " * rng.randint(26, 31) + "n",
        )
    )()


def answer(rng: random.Random, reference: dict[str, Any], level: int) -> str:
    cases = reference.get("cases")
    usable = (
        isinstance(cases, list) and 0 < len(cases) < 10 and all(type(v) is int and v < 5000 for v in cases)
    )
    cases = list(cases) if usable else [12, 18]
    kind = rng.randrange(14)
    if kind < 4:
        return dress(rng, mapping(rng, cases))
    if kind < 7:
        return dress(rng, expression(rng, rng.randint(1, 5)))
    if kind == 7:
        return dress(
            rng, f"{expression(rng, 2)} {rng.choice(('and', 'or', 'if n else'))} {mapping(rng, cases)}"
        )
    if kind < 10:
        return edit(rng, dress(rng, mapping(rng, cases)), TOKENS, rng.randint(1, 3))
    if kind == 10:
        return dress(rng, "".join(rng.choice(TOKENS) for _ in range(rng.randint(1, 8))))
    if kind == 11:
        return guesses(rng, [dress(rng, mapping(rng, cases)), dress(rng, "2")])
    if kind == 12:
        return nonsense(rng, TOKENS)
    return dress(rng, _sized(rng))
