"""Sweep files: arms, domains and seeds, with the settings of training that they share.

Beside settings of training, which all runs take, a sweep file has::

    domains: [python_factors, countdown]     # or with settings: {countdown: {data.limit: 64}, …}
    seeds: [0, 1, 2, 3, 4]
    budget: 25600                            # rollouts of every run, in place of steps
    grid: {optimizer.learning_rate: [1e-4, 3e-4]}
    arms:                                    # or a list of methods
      dr_grpo: {method: dr_grpo}
      re_dr: {method: re_dr, set: {replay.capacity: 4}, grid: {replay.coefficient: [1, 5]}, add: [PART]}

Every value of a grid's list makes an arm, which is named after it (``re_dr-coefficient=5``); several lists
make all combinations. Settings of an arm win over those of its domain, and these over the common ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from modebench.domains import get_domain
from modebench.errors import UsageError
from modebench.results import BASE
from modebench.training.part import suggestion
from modebench.training.settings import Setting, read_yaml

Settings = dict[str, Setting]

_OWN = ("domains", "seeds", "budget", "grid", "arms")
_FIELDS = ("method", "add", "set", "grid")
_DECIDED = {"method": "arms", "data.domains": "domains", "run.seed": "seeds", "run.arm": "arms"}
"""Settings that a sweep makes, and what decides them."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=+-]*")
"""Names of arms, which are names of folders too."""


@dataclass(frozen=True)
class SweepFile:
    """What a sweep file asks for.

    Attributes:
        path: the file.
        common: settings of all runs.
        domains: further settings, by full name of the domain.
        seeds: run seeds.
        arms: further settings, by arm, the grids resolved.
        budget: rollouts of every run; None where steps say it.
    """

    path: Path
    common: Settings
    domains: dict[str, Settings]
    seeds: tuple[int, ...]
    arms: dict[str, Settings]
    budget: Setting | None


def read_sweep(path: Path) -> SweepFile:
    """A sweep file.

    Raises:
        UsageError: there is no such file, or it names no domain, seed or arm.
        InputError: something in it is not as the module says; names line and field.
    """
    own: dict[str, Settings] = {name: {} for name in _OWN}
    common: Settings = {}
    for name, setting in read_yaml(path, path.name).items():
        head, _, rest = name.partition(".")
        if head in own:
            own[head][rest] = setting
        else:
            common[name] = _free(name, setting)
    for needed in ("domains", "seeds", "arms"):
        if not own[needed]:
            raise UsageError(f"{path} has no {needed}; a sweep has domains, seeds and arms")
    budget = _alone("budget", own["budget"]) if own["budget"] else None
    if budget is not None and (type(budget.value) is not int or budget.value < 1):
        raise budget.refuse("budget", f"is {budget.value!r}, expected a number of rollouts")
    seeds = _alone("seeds", own["seeds"])
    if not all(type(seed) is int for seed in _members("seeds", seeds)):
        raise seeds.refuse("seeds", f"is {seeds.value!r}, expected whole numbers")
    grid = {name: _free(name, setting) for name, setting in own["grid"].items()}
    return SweepFile(
        path, common, _domains(own["domains"]), tuple(seeds.value), _arms(own["arms"], grid), budget
    )


def _free(name: str, setting: Setting) -> Setting:
    """A setting that the sweep does not decide."""
    if name in _DECIDED:
        raise setting.refuse(name, f"is decided by {_DECIDED[name]} in a sweep")
    return setting


def _alone(name: str, given: Settings) -> Setting:
    """What stands under a name that is no mapping."""
    if "" not in given:
        raise next(iter(given.values())).refuse(name, "must not be a mapping")
    return given[""]


def _members(name: str, setting: Setting) -> list[Any]:
    """The members of a list, which must be some and different."""
    members = setting.value
    if not isinstance(members, list) or not members:
        raise setting.refuse(name, f"is {members!r}, expected a list")
    for place, member in enumerate(members):
        if member in members[:place]:
            raise setting.refuse(name, f"names {member!r} twice")
    return members


def _domains(given: Settings) -> dict[str, Settings]:
    """Settings by full name, of a list of domains or a mapping from domains to settings."""
    if "" in given:
        members = _members("domains", given[""])
        given = {str(member): replace(given[""], value={}) for member in members}
    found: dict[str, Settings] = {}
    for place, setting in given.items():
        name, _, option = place.partition(".")
        try:
            own = found.setdefault(get_domain(name).name, {})
        except ValueError as error:
            raise setting.refuse("domains", str(error)) from None
        if option:
            own[option] = _free(option, setting)
        elif setting.value != {}:
            raise setting.refuse(f"domains.{name}", f"is {setting.value!r}, expected a mapping of settings")
    return found


def _arms(given: Settings, shared: Settings) -> dict[str, Settings]:
    """Settings by arm, of a list of methods or a mapping from arms to their fields, with `shared` grids."""
    if "" in given:
        members = _members("arms", given[""])
        given = {f"{member}.method": replace(given[""], value=member) for member in members}
    arms: dict[str, dict[str, Settings]] = {}
    for place, setting in given.items():
        arm, _, rest = place.partition(".")
        field, _, option = rest.partition(".")
        if not _NAME.fullmatch(arm) or arm == BASE:
            raise setting.refuse(
                f"arms.{arm}", f"cannot be the name of an arm ({BASE} is the untrained policy)"
            )
        if field not in _FIELDS:
            hint = suggestion(field, _FIELDS) if field else f"expected a mapping of {', '.join(_FIELDS)}"
            raise setting.refuse(f"arms.{place}", f"is not a field of an arm; {hint}")
        arms.setdefault(arm, {name: {} for name in _FIELDS})[field][option] = setting
    return {
        name: settings
        for arm, fields in arms.items()
        for name, settings in _expanded(arm, fields, shared).items()
    }


def _expanded(arm: str, fields: dict[str, Settings], shared: Settings) -> dict[str, Settings]:
    """One arm, or one for every combination of its grid and the shared one."""
    settings = {
        name: _alone(f"arms.{arm}.{name}", fields[name]) for name in ("method", "add") if fields[name]
    }
    for kind in ("set", "grid"):
        for option, setting in fields[kind].items():
            if not option:
                raise setting.refuse(f"arms.{arm}.{kind}", "must be a mapping of settings")
            _free(option, setting)
    if "method" not in settings:
        some = next(setting for named in fields.values() for setting in named.values())
        raise some.refuse(f"arms.{arm}", "has no method")
    settings |= fields["set"]
    grid = shared | fields["grid"]
    for name in grid.keys() & settings.keys():
        raise grid[name].refuse(name, f"stands in a grid and in the settings of arm {arm}")
    found = {}
    for values in product(*(_members(name, setting) for name, setting in grid.items())):
        chosen = {name: replace(grid[name], value=value) for name, value in zip(grid, values, strict=True)}
        found["-".join([arm, *map(_label, chosen, chosen.values())])] = settings | chosen
    return found


def _label(name: str, setting: Setting) -> str:
    """What a value of a grid adds to the name of its arm."""
    value = setting.value
    text = "+".join(map(str, value)) if isinstance(value, list) else str(value)
    if not _NAME.fullmatch(text):
        raise setting.refuse(name, f"{value!r} cannot be a part of an arm's name, so not a value of a grid")
    return f"{name.rpartition('.')[2]}={text}"
