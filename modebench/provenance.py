"""What a run was made with: versions, machine, code."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from modebench import __version__

PACKAGES = ("numpy", "pandas", "scipy", "torch", "transformers", "tokenizers", "vllm", "openai")


def versions() -> dict[str, Any]:
    """Time of creation, versions, platform, and the state of the code's git checkout where it is one."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "modebench": __version__,
            "python": platform.python_version(),
            **{name: found for name in PACKAGES if (found := _installed(name))},
        },
        "platform": platform.platform(),
        "git": _git(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


def placeless_json(document: Any, *folders: Path) -> str:
    """A document as indented JSON that calls folders by their names alone.

    Where a folder lay on the machine that made a result says nothing elsewhere.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    for folder in folders:
        text = text.replace(f"{folder.absolute().parent}/", "")
    return text


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    """Commit and cleanliness of the checkout that holds this package; None for an installed wheel."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    try:
        commit = _run(root, "rev-parse", "HEAD").strip()
        return {"commit": commit, "dirty": bool(_run(root, "status", "--porcelain").strip())}
    except (OSError, subprocess.CalledProcessError):
        return None


def _run(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout
