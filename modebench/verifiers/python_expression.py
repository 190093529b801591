"""A small part of Python: one expression over integers, read and executed without Python.

Accepts exactly what CPython's grammar accepts of: integer literals, the name ``n``, unary + − not,
binary + − * // %, comparisons, and / or, conditionals, parentheses and lambdas (which can be
built but never called). Everything else is None. The parser is an operator-precedence loop with an
explicit stack, and text is at most a few hundred characters, so depth, time and memory are bounded
and do not depend on the interpreter that runs it.
"""

from __future__ import annotations

import keyword
import operator
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_KEYWORDS = frozenset(keyword.kwlist)
_FORBIDDEN_NAMES = frozenset({"False", "None", "True", "__debug__"})
_TOKEN = re.compile(
    r"(?P<int>0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|0(?![xXoObB])(?:_?0)*|[1-9](?:_?[0-9])*)"
    r"|(?P<name>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)"
    r"|(?P<sign>==|!=|<=|>=|//|\*\*|[-+*/%<>():,=])"
    r"|(?P<blank>[ \t\f]+|\\(?:\r\n|\r|\n)|\#[^\r\n]*)"
    r"|(?P<newline>\r\n|\r|\n)"
    r"|(?P<error>.)",
    re.DOTALL,
)

BINARY: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "+": (5, operator.add),
    "-": (5, operator.sub),
    "*": (6, operator.mul),
    "//": (6, operator.floordiv),
    "%": (6, operator.mod),
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PREFIX: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "not": operator.not_}
CHAIN = {"or": 1, "and": 2}
_NOT, _COMPARISON, _UNARY, _CONDITIONAL = 3, 4, 7, 0.5


@dataclass(frozen=True)
class Node:
    """A syntax tree.

    Attributes:
        kind: int, n, unary, binary, compare, or, and, if, lambda.
        nodes: size as CPython counts it (``ast.walk``), this node and all below it.
        children: operands in evaluation order; of a conditional: test, body, else; of a lambda: its
            default values, then its body.
        value: the integer, the operator function, or the comparison functions in order.
        parameters: a lambda's parameters as written, ``*``, ``/`` and ``=`` included.
    """

    kind: str
    nodes: int
    children: tuple[Node, ...] = ()
    value: Any = None
    parameters: tuple[str, ...] = ()


def evaluate(node: Node, n: int) -> object:
    """The value of a tree at `n`, with Python's semantics; a lambda is an opaque true value.

    Raises:
        ArithmeticError: division by zero.
        TypeError: arithmetic or order on a lambda.
    """
    kind, children = node.kind, node.children
    if kind == "n":
        return n
    if kind == "int":
        return node.value
    if kind == "if":
        return evaluate(children[1] if evaluate(children[0], n) else children[2], n)
    if kind == "binary":
        return node.value(evaluate(children[0], n), evaluate(children[1], n))
    if kind == "compare":
        return _compare(node, n)
    if kind == "unary":
        return node.value(evaluate(children[0], n))
    if kind == "lambda":
        for default in children[:-1]:
            evaluate(default, n)
        return object()
    value: object = None
    for child in children:
        value = evaluate(child, n)
        if bool(value) == (kind == "or"):
            break
    return value


def _compare(node: Node, n: int) -> object:
    left = evaluate(node.children[0], n)
    result: object = True
    for test, child in zip(node.value, node.children[1:], strict=True):
        right = evaluate(child, n)
        result = test(left, right)
        if not result:
            break
        left = right
    return result


def parse(text: str) -> Node | None:
    """The tree of one expression, or None where the text is anything else.

    `text` has no blanks at its ends. Names other than ``n`` are None, except as parameters of a
    nested lambda.
    """
    tokens = _tokens(text)
    return None if tokens is None else _Parser().run(tokens)


def _tokens(text: str) -> list[tuple[str, str]] | None:
    """(kind, text) of every significant token; None on a character or layout that CPython refuses."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return None
    tokens: list[tuple[str, str]] = []
    depth = 0
    ended = indented = False
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match.group()
        if kind == "blank":
            if token[0] in " \t\f" and not tokens and not depth:
                indented = _indents(text, match.start(), token)
            continue
        if kind == "newline":
            ended = ended or (bool(tokens) and depth == 0)
            indented = indented and bool(tokens)
            continue
        if kind == "error" or ended or (indented and not tokens):
            return None
        depth += (token == "(") - (token == ")")
        if kind == "name" and not token.isascii():
            if not token.isidentifier():
                return None
            token = unicodedata.normalize("NFKC", token)
            kind = "identifier"
        elif kind == "name" and token in _KEYWORDS:
            kind = "keyword"
        elif kind == "name":
            kind = "identifier"
        tokens.append((str(kind), token))
    return tokens


def _indents(text: str, start: int, blank: str) -> bool:
    """Whether blanks before the first token indent it, which CPython refuses."""
    at_line_start = start == 0 or text[start - 1] in "\r\n"
    continued = at_line_start and re.search(r"\\(?:\r\n|\r|\n)$", text[:start]) is not None
    return at_line_start and not continued and not blank.endswith("\f")


@dataclass
class _Entry:
    """An open operator or bracket: its binding power and what it has gathered."""

    kind: str
    power: float
    value: Any = None
    count: int = 1
    names: list[str] = field(default_factory=list)
    defaults: int = 0


class _Parser:
    def __init__(self) -> None:
        self.operands: list[Node] = []
        self.open: list[_Entry] = [_Entry("bottom", -1)]
        self.after_operand = False

    def run(self, tokens: list[tuple[str, str]]) -> Node | None:
        for kind, token in tokens:
            if self.open[-1].kind == "parameters":
                accepted = self._parameter(kind, token)
            elif self.after_operand:
                accepted = self._operator(kind, token)
            else:
                accepted = self._operand(kind, token)
            if not accepted:
                return None
        if not self.after_operand or not self._reduce(_CONDITIONAL - 1) or self.open[-1].kind != "bottom":
            return None
        return self.operands[0]

    def _operand(self, kind: str, token: str) -> bool:
        top = self.open[-1]
        if kind == "int":
            self.operands.append(Node("int", 1, value=int(token, 0)))
            self.after_operand = True
        elif kind == "identifier":
            self.operands.append(Node("n", 2))
            self.after_operand = True
            return token == "n"
        elif token == "(":
            self.open.append(_Entry("(", -1))
        elif kind == "sign" and token in "+-":
            self.open.append(_Entry("unary", _UNARY, _PREFIX[token]))
        elif token == "not" and top.power < _COMPARISON:
            self.open.append(_Entry("unary", _NOT, _PREFIX[token]))
        elif token == "lambda" and top.kind in ("bottom", "(", "else", "lambda", "default"):
            self.open.append(_Entry("parameters", -1))
        else:
            return False
        return True

    def _operator(self, kind: str, token: str) -> bool:
        if kind == "identifier":
            return False
        if token in BINARY:
            power, function = BINARY[token]
            self._reduce(power - 1)
            self.open.append(_Entry("binary", power, function))
        elif token in COMPARE:
            self._reduce(_COMPARISON)
            self._chain("compare", _COMPARISON, COMPARE[token])
        elif token in CHAIN:
            self._reduce(CHAIN[token])
            self._chain(token, CHAIN[token], None)
        elif token in ("if", "else", ")", ",", ":"):
            return self._close(token)
        else:
            return False
        self.after_operand = False
        return True

    def _chain(self, kind: str, power: float, function: Any) -> None:
        """`a < b < c` and `a or b or c` are one node each."""
        if self.open[-1].kind != kind:
            self.open.append(_Entry(kind, power, []))
        self.open[-1].value.append(function)
        self.open[-1].count += 1

    def _close(self, token: str) -> bool:
        """Tokens that end a whole operand of what is open: if, else, ``)``, ``,`` and ``:``."""
        self.after_operand = token == ")"
        self._reduce(_CONDITIONAL)
        if token == "if":
            self.open.append(_Entry("if", _CONDITIONAL))
            return self.open[-2].kind != "if"
        if token == "else":
            entry = self.open[-1]
            accepted = entry.kind == "if"
            entry.kind = "else"
            return accepted
        self._reduce(_CONDITIONAL - 1)
        entry = self.open.pop()
        if token == ")":
            return entry.kind == "("
        if entry.kind != "default":
            return False
        self.open[-1].defaults += 1
        return self._parameter("sign", token)

    def _reduce(self, power: float) -> bool:
        """Close every entry that binds tighter than `power`; False at a conditional without else."""
        while self.open[-1].power > power:
            if self.open[-1].kind == "if":
                return False
            entry = self.open.pop()
            count = {"unary": 1, "binary": 2, "else": 3, "lambda": entry.defaults + 1}.get(
                entry.kind, entry.count
            )
            children = tuple(self.operands[-count:])
            del self.operands[-count:]
            self.operands.append(_node(entry, children))
        return True

    def _parameter(self, kind: str, token: str) -> bool:
        """One token of a lambda's parameter list."""
        entry = self.open[-1]
        names = entry.names
        if token == ":":
            self.open[-1] = _Entry("lambda", _CONDITIONAL - 0.25, names=names, defaults=entry.defaults)
            return _valid_parameters(names)
        if token == "=":
            names.append("=")
            self.open.append(_Entry("default", -1))
            return len(names) > 1 and names[-2].isidentifier()
        names.append(token)
        return kind == "identifier" or token in ("*", "**", "/", ",")


def _node(entry: _Entry, children: tuple[Node, ...]) -> Node:
    below = sum(child.nodes for child in children)
    kind, value = entry.kind, entry.value
    if kind == "else":
        body, test, other = children
        return Node("if", 1 + below, (test, body, other))
    if kind == "lambda":
        named = sum(name.isidentifier() for name in entry.names)
        return Node("lambda", 2 + named + below, children, parameters=tuple(entry.names))
    if kind == "compare":
        return Node(kind, 1 + len(value) + below, children, tuple(value))
    return Node(kind, 2 + below, children, value)


def _valid_parameters(names: list[str]) -> bool:
    """Whether a parameter list is one that CPython compiles: order, marks, no name twice."""
    identifiers = [name for name in names if name.isidentifier()]
    if len(set(identifiers)) != len(identifiers) or _FORBIDDEN_NAMES.intersection(identifiers):
        return False
    # One letter a token: p a parameter, d one with its default, ^ the double star.
    letters = "".join("p" if name.isidentifier() else name.replace("**", "^") for name in names)
    pieces = letters.replace("p=", "d").split(",")
    if pieces[-1] == "" and len(pieces) > 1:
        pieces.pop()
        if pieces[-1] == "*":
            return False
    elif pieces == [""]:
        return True
    return _valid_order(pieces)


def _valid_order(pieces: list[str]) -> bool:
    seen_slash = seen_star = seen_default = False
    for index, piece in enumerate(pieces):
        if piece == "/":
            if seen_slash or seen_star or index == 0:
                return False
            seen_slash = True
        elif piece in ("*", "*p"):
            following = pieces[index + 1] if index + 1 < len(pieces) else None
            if seen_star or (piece == "*" and following not in ("p", "d")):
                return False
            seen_star = True
        elif piece == "^p":
            return index == len(pieces) - 1
        elif piece == "p":
            if seen_default and not seen_star:
                return False
        elif piece == "d":
            seen_default = True
        else:
            return False
    return True
