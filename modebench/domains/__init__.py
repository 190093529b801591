"""The five domains, found by name; a module is imported when it is asked for.

Third-party domains are entry points of the group ``modebench.domains``.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, cast

from modebench.domains.base import CountedDomain, Domain
from modebench.verifiers.registry import ALIASES, DOMAINS, installed_domains

if TYPE_CHECKING:  # the type checker holds every module against the protocol here
    import modebench.domains.countdown as countdown
    import modebench.domains.graph_coloring as graph_coloring
    import modebench.domains.mathir as mathir
    import modebench.domains.pantry_plan as pantry_plan
    import modebench.domains.python_factors as python_factors

    _CHECKED: tuple[Domain, ...] = (graph_coloring, countdown, python_factors, mathir, pantry_plan)
    _COUNTED: tuple[CountedDomain, ...] = (graph_coloring, countdown, python_factors, mathir, pantry_plan)

__all__ = ["ALIASES", "DOMAINS", "Domain", "get_domain"]


def get_domain(name: str) -> Domain:
    """The domain with this name or alias: a built-in one, else an installed entry point.

    Raises:
        ValueError: no domain has that name.
    """
    full = ALIASES.get(name, name)
    if full in DOMAINS:
        return cast(Domain, import_module(f"{__name__}.{full}"))
    installed = installed_domains()
    if name in installed:
        return cast(Domain, installed[name].load())
    names = [*DOMAINS, *sorted(installed)]
    close = get_close_matches(name, [*names, *ALIASES], n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"no domain is called {name!r}; {hint}domains: {', '.join(names)}")
