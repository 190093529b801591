"""``modebench methods``: the training methods, their parts, formulas, defaults and sources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from modebench.training.method import Method


@click.command("methods")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option(
    "--pairs", is_flag=True, help="Which parts go with which methods and with each other, and why not."
)
def command(name: str | None, as_json: bool, pairs: bool) -> int:
    """List the training methods, or show NAME with all its options and their defaults.

    Options are changed with `--set PART.OPTION=VALUE`, and parts added with `--add PART`, where a method is
    trained.
    """
    from modebench.training.methods import all_methods, all_parts, get_method

    if pairs:
        from modebench.training.combining import pair_table

        click.echo(pair_table(all_methods(), all_parts()))
        return 0
    if name is not None:
        method = get_method(name)
        click.echo(json.dumps(_record(method), indent=2, ensure_ascii=False) if as_json else page_of(method))
        return 0
    methods = all_methods()
    if as_json:
        records = [_record(method) for method in methods.values()]
        click.echo(json.dumps(records, indent=2, ensure_ascii=False))
        return 0
    width = max(len(key) for key in methods)
    for key, method in methods.items():
        click.echo(f"{key:<{width}}  {method.name}: {method.formula}")
        click.echo(f"{'':<{width}}  {method.source}")
    click.echo(f"\nparts for --add: {', '.join(all_parts())}; options: modebench methods NAME")
    return 0


def _record(method: Method) -> dict[str, Any]:
    options = method.options()
    return {
        "id": method.id,
        "name": method.name,
        "parts": list(options),
        "formula": method.formula,
        "defaults": options,
        "source": method.source,
    }


def page_of(method: Method) -> str:
    """What ``modebench methods NAME`` prints."""
    options = method.options()
    lines = [
        f"{method.name} ({method.id})",
        f"formula  {method.formula}",
        f"source   {method.source}",
        f"parts    {', '.join(options)}",
        "defaults",
    ]
    for part, values in options.items():
        lines += [f"  {part}.{option}={_text(value)}" for option, value in values.items()]
    return "\n".join(lines)


def _text(value: object) -> str:
    return "none" if value is None else str(value)
