"""Settings in layers: from YAML and the command line to a typed configuration, each value with its origin."""

from __future__ import annotations

import re
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml

from modebench.errors import InputError, UsageError
from modebench.training.config import SECTIONS, TYPES, TrainConfig, values_of


@dataclass(frozen=True)
class Setting:
    """One value and where it came from.

    Attributes:
        value: as YAML reads it.
        origin: in words, e.g. ``command line``.
        file, line: of a YAML file.
    """

    value: Any
    origin: str
    file: Path | None = None
    line: int = 0

    def refuse(self, name: str, problem: str) -> InputError | UsageError:
        """The error that names the setting and its place."""
        if self.file is not None:
            return InputError(self.file, self.line, name, problem)
        return UsageError(f"{name} ({self.origin}) {problem}")


Layer = Mapping[str, Setting]
"""Dotted names to settings."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML whose numbers may be written 1e-6, as YAML 1.2 has it and PyYAML does not."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Its counterpart, which puts a text that `_Loader` would read as a number in quotes."""


for _side in (_Loader, _Dumper):
    _side.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
        list("-+0123456789."),
    )


def read_yaml(path: Path, origin: str) -> dict[str, Setting]:
    """The settings of a YAML file: nested mappings, or dotted names.

    Raises:
        UsageError: there is no such file.
        InputError: it is not YAML, not a mapping, or names a setting twice.
    """
    if not path.is_file():
        raise UsageError(f"no configuration file at {path}")
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        found: dict[str, Setting] = {}
        if node is not None:
            _collect(loader, node, "", path, origin, found)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(path, line, "record", f"is not YAML ({error.problem})") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(path, 1, "record", f"is not YAML ({error})") from None
    return found


def _collect(
    loader: _Loader, node: yaml.Node, prefix: str, path: Path, origin: str, found: dict[str, Setting]
) -> None:
    line = node.start_mark.line + 1
    if node.tag != "tag:yaml.org,2002:map":
        raise InputError(path, line, prefix.rstrip(".") or "record", "must be a mapping of settings")
    if prefix and not node.value:  # kept as a value, so that it does not pass unseen
        found[prefix.removesuffix(".")] = Setting({}, f"{origin}, line {line}", path, line)
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        name = prefix + str(loader.construct_object(key_node, deep=True))
        if isinstance(value_node, yaml.MappingNode):
            _collect(loader, value_node, f"{name}.", path, origin, found)
            continue
        if name in found:
            raise InputError(path, line, name, f"stands in line {found[name].line} already")
        value = loader.construct_object(value_node, deep=True)
        found[name] = Setting(value, f"{origin}, line {line}", path, line)


def from_assignments(texts: Iterable[str]) -> dict[str, Setting]:
    """The settings of ``--set name=value`` arguments; values are read as YAML.

    Raises:
        UsageError: one is not name=value.
    """
    found: dict[str, Setting] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {text!r} is not part.option=value")
        try:
            found[name.strip()] = Setting(yaml.load(value, _Loader), "command line")
        except yaml.YAMLError:
            found[name.strip()] = Setting(value, "command line")
    return found


def from_values(values: Mapping[str, Any], origin: str) -> dict[str, Setting]:
    """Settings of one origin; None is kept, it may be meant."""
    return {name: Setting(value, origin) for name, value in values.items()}


@dataclass(frozen=True)
class Resolved:
    """What the layers come to.

    Attributes:
        config: the trainer's part.
        parts: ``part.option`` to its setting: what is left for the method.
        origins: dotted name to origin, for everything in `config`.
    """

    config: TrainConfig
    parts: dict[str, Setting]
    origins: dict[str, str]


def resolve(layers: Sequence[Layer]) -> Resolved:
    """Merge layers, a later one winning, and convert the values to their types.

    Raises:
        UsageError, InputError: a value of another type, or a name that does not exist; says where.
    """
    merged: dict[str, Setting] = {}
    for layer in layers:
        merged.update(layer)
    values = values_of(TrainConfig())
    origins = dict.fromkeys(values, "default")
    parts: dict[str, Setting] = {}
    for name, setting in merged.items():
        if name in TYPES:
            values[name] = _convert(name, setting)
            origins[name] = setting.origin
        elif "." in name and name.partition(".")[0] not in SECTIONS:
            parts[name] = setting
        else:
            raise unknown(name, setting, TYPES)
    return Resolved(_build(TrainConfig, values, ""), parts, origins)


def unknown(name: str, setting: Setting, known: Collection[str]) -> InputError | UsageError:
    """The error for a name that does not exist, with the closest one that does."""
    part, dot, option = name.rpartition(".")
    options = [other.rpartition(".")[2] for other in known if dot and other.rpartition(".")[0] == part]
    if options:
        close = [f"{part}.{match}" for match in get_close_matches(option, options)]
    else:
        same = [other for other in known if other.rpartition(".")[2] == option]
        options = list(dict.fromkeys(other.partition(".")[0] for other in known))
        close = same or get_close_matches(name, known)
    hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(options)}"
    return setting.refuse(name, f"is not a setting{hint}")


def _build(config: Any, values: Mapping[str, Any], prefix: str) -> Any:
    return config(
        **{
            name: _build(hint, values, f"{prefix}{name}.") if is_dataclass(hint) else values[prefix + name]
            for name, hint in get_type_hints(config).items()
        }
    )


def _convert(name: str, setting: Setting) -> Any:
    """The value of a setting as its declared type."""
    try:
        return _as(TYPES[name], setting.value)
    except ValueError as error:
        raise setting.refuse(name, f"is {setting.value!r}, expected {error}") from None


def _as(hint: Any, value: Any) -> Any:
    """`value` as the type `hint`; ValueError says what was expected."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        [plain] = [argument for argument in arguments if argument is not type(None)]
        return None if value is None else _as(plain, value)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"one of {', '.join(map(str, arguments))}")
        return value
    if origin is tuple:
        members = value.split(",") if isinstance(value, str) else value
        members = members if isinstance(members, (list, tuple)) else [members]
        stripped = [member.strip() if isinstance(member, str) else member for member in members]
        return tuple(_as(arguments[0], member) for member in stripped if member != "")
    return _scalar(hint, value)


def _scalar(hint: Any, value: Any) -> Any:
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and type(value) is int:
        return value
    # Of a comma-separated list only texts are left.
    if hint is int and isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value, re.ASCII):
        return int(value)
    if hint is float and type(value) in (int, float) and isfinite(value):
        return float(value)
    if hint is str and isinstance(value, str):
        return value
    expected = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a text"}
    raise ValueError(expected[hint])


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names as nested mappings, tuples as lists: what a YAML file holds."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        *path, last = name.split(".")
        place = found
        for step in path:
            place = place.setdefault(step, {})
        place[last] = list(value) if isinstance(value, tuple) else value
    return found


def to_yaml(values: Mapping[str, Any]) -> str:
    """The text of a configuration file that `read_yaml` reads back to the same values."""
    return str(yaml.dump(nested(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True))
