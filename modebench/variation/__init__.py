"""Compact texts, variations and option removal for the five domains, found by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from modebench.variation.base import CompactError, NotExecutable, Operator, Unsolvable, Variation
from modebench.verifiers.registry import ALIASES, DOMAINS

if TYPE_CHECKING:  # the type checker holds every module against the protocol here
    import modebench.variation.countdown as countdown
    import modebench.variation.graph_coloring as graph_coloring
    import modebench.variation.mathir as mathir
    import modebench.variation.pantry_plan as pantry_plan
    import modebench.variation.python_factors as python_factors

    _CHECKED: tuple[Variation, ...] = (graph_coloring, countdown, python_factors, mathir, pantry_plan)

__all__ = ["CompactError", "NotExecutable", "Operator", "Unsolvable", "Variation", "get_variation"]


def get_variation(domain: str) -> Variation:
    """The variation module of a domain, by name or alias.

    Raises:
        ValueError: the domain has none.
    """
    full = ALIASES.get(domain, domain)
    if full not in DOMAINS:
        raise ValueError(f"domain {domain!r} has no variations; domains that have: {', '.join(DOMAINS)}")
    return cast(Variation, import_module(f"{__name__}.{full}"))
