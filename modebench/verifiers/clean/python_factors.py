"""Python factors, `clean`: LaTeX around the lambda is forgiven, limits and execution are as published.

The mode is the vector of outputs, as published.
"""

from __future__ import annotations

import re

from modebench.verifiers.clean.extraction import answer, plain
from modebench.verifiers.python_factors import Spec, judge_program
from modebench.verifiers.verdict import Verdict, malformed

_LAMBDA = re.compile(r"\\lambda(?![A-Za-z])")
_WORD = re.compile(r"\\(?:text|mathrm|mathtt|texttt)\s*\{([^{}\\]*)\}")
_BLANKS = re.compile(r"[ \t]+")


def judge(spec: Spec, response: str, truncated: bool = False) -> Verdict:
    """The `clean` verdict on a response."""
    found = answer(response, truncated)
    if found is None:
        return malformed("no answer found")
    # Words come before LaTeX spacing goes, which would glue them to their neighbours.
    worded = _WORD.sub(r" \1 ", _LAMBDA.sub("lambda ", found))
    return judge_program(spec, _BLANKS.sub(" ", plain(worded)).strip())
