"""From samples to numbers: estimators of diversity and accuracy, intervals, cells, tables.

    samples (long table) -> prompt_table -> summarize / summary_document -> format_table / render

Estimators of one prompt are in `diversity` and `pass_at_k`, intervals over prompts in `intervals`, the
independence test of the samples in `duplicates` and `streams`, chance rows in `chance`, curves in `curves`.
Nothing here knows a model or a domain.
"""

from modebench.analysis.prompts import prompt_table
from modebench.analysis.summary import summarize, summary_document
from modebench.analysis.table import format_table, render

__all__ = ["format_table", "prompt_table", "render", "summarize", "summary_document"]
