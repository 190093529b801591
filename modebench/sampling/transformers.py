"""The engine ``hf/…``: a causal language model of transformers, in this process.

Importing this file imports neither torch nor transformers; building an engine does.

What a run can rely on: every sample has a random stream of its own, made from its seed alone; with
the same seeds, the same groups in one batch, the same machine and one CPU thread, the responses are
identical byte for byte. In another batch composition (or after an out-of-memory retry) a token may
differ where rounding of the logits decides; see `modebench.sampling.decoding`.

Tokens, log-probabilities and `output_tokens` count the end token; the response text does not hold it.
Stop strings are looked for in the text without special tokens; the tokens of a stop string were
sampled, so they count too.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modebench.sampling.base import EngineUnavailable, GenerationSettings, Group, Message, Sample
from modebench.sampling.chat import ChatFormat

if TYPE_CHECKING:
    from modebench.sampling.constraints import Matchers
    from modebench.sampling.decoding import Rollout

# Groups decoded together where nothing is asked: 64 rows at 8 samples a group on a CPU, where more
# rows bring no more tokens a second (benchmarks/generation.py); a GPU is filled by several hundred.
CPU_GROUPS, GPU_GROUPS = 8, 64
DTYPES = ("float32", "bfloat16", "float16")
FINGERPRINT_READS, FINGERPRINT_BYTES = 64, 4096

_log = logging.getLogger(__name__)


class TransformersEngine:
    """Draws samples from a loaded model. `load_engine` builds one from a name.

    Args:
        model: a causal language model of transformers with an attention cache, on its device.
        tokenizer: its tokenizer.
        name: what `describe` calls the model.
        groups_per_batch: groups decoded together; None chooses by device.
        chat_template: False asks every model in plain text.
        origin: further provenance for `describe`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str = "in memory",
        groups_per_batch: int | None = None,
        chat_template: bool = True,
        origin: dict[str, Any] | None = None,
    ) -> None:
        from modebench.sampling.decoding import Decoder

        if groups_per_batch is not None and groups_per_batch < 1:
            raise ValueError(f"groups_per_batch is {groups_per_batch}, expected at least 1")
        default = GPU_GROUPS if model.device.type == "cuda" else CPU_GROUPS
        self.groups_per_batch = groups_per_batch or default
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.chat = ChatFormat(tokenizer, use_template=chat_template)
        self.end_token_ids = _end_token_ids(model, tokenizer, self.chat)
        self._origin = dict(origin or {})
        self._decoder = Decoder(model, self.end_token_ids, self._text)
        self._row_limit: int | None = None  # rows that fitted, once more did not
        self._known_matchers: Matchers | None = None

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of the prompt that these messages become.

        Raises:
            ValueError: the chat template refuses the messages.
        """
        return self.chat.prompt_ids(messages)

    def describe(self) -> dict[str, Any]:
        """Provenance: model, versions, prompt format, end tokens.

        ``model_generation_config`` holds the sampling values stored with the model, for the record:
        none of them is used, only its end tokens are.
        """
        import torch
        import transformers

        own = getattr(self.model, "generation_config", None)
        return {
            "engine": "transformers",
            "model": self.name,
            **self._origin,
            "architecture": type(self.model).__name__,
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "device": str(self.model.device),
            "threads": torch.get_num_threads(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            **self.chat.describe(),
            "end_token_ids": self.end_token_ids,
            "end_tokens": self.tokenizer.convert_ids_to_tokens(self.end_token_ids),
            "groups_per_batch": self.groups_per_batch,
            "model_generation_config": own.to_diff_dict() if own is not None else {},
        }

    def constraint(self) -> dict[str, Any]:
        """What enforces grammars: library and version.

        Raises:
            EngineUnavailable: llguidance is missing, or cannot read the tokenizer.
        """
        return self._matchers().describe()

    def _matchers(self) -> Matchers:
        """Made when first asked for: reading a vocabulary takes a second."""
        from modebench.sampling.constraints import Matchers

        if self._known_matchers is None:
            self._known_matchers = Matchers(self.tokenizer, self.end_token_ids)
        return self._known_matchers

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        """Yield (index into `groups`, samples in seed order), each group once.

        A sample that cannot be drawn (prompt longer than the model's context, logits that are not
        finite, memory short even for one row) carries `error`; its neighbours are unharmed.

        Raises:
            ValueError: settings out of range, or messages that the chat template refuses.
        """
        for index, rollouts in self.rollouts(groups, settings):
            yield index, [_sample(rollout) for rollout in rollouts]

    def rollouts(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Rollout]]]:
        """As `generate`, with token ids and their log-probabilities in place of samples."""
        _check(settings)
        for start in range(0, len(groups), self.groups_per_batch):
            stop = min(start + self.groups_per_batch, len(groups))
            batch = {at: self._rollouts_of(at, groups[at], settings) for at in range(start, stop)}
            queue = self._split([r for rollouts in batch.values() for r in rollouts if not r.done])
            while batch:
                for at in [at for at, rollouts in batch.items() if all(r.done for r in rollouts)]:
                    yield at, batch.pop(at)
                if queue:
                    rows = queue.pop(0)
                    queue = self._decode(rows, settings) + queue

    def _rollouts_of(self, at: int, group: Group, settings: GenerationSettings) -> list[Rollout]:
        """The rollouts of one group, finished at once where its prompt does not fit the model."""
        from modebench.sampling.decoding import Rollout

        ids = self.prompt_ids(group.messages)
        context = getattr(self.model.config, "max_position_embeddings", None)
        limit = settings.max_tokens if context is None else min(settings.max_tokens, context - len(ids))
        rollouts = [Rollout(at, i, ids, seed, limit) for i, seed in enumerate(group.seeds)]
        if group.grammar is not None:
            constraint = partial(self._matchers().start, group.grammar)
            for rollout in rollouts:
                rollout.constraint = constraint
        if not ids or limit < 1:
            problem = f"the prompt has {len(ids)} tokens, the model takes 1 to {context} with the response"
            for rollout in rollouts:
                rollout.finish("error", error=problem)
        return rollouts

    def _decode(self, rows: list[Rollout], settings: GenerationSettings) -> list[list[Rollout]]:
        """Decode one batch of rows; return what is still to be decoded, in smaller batches.

        Empty unless memory ran out. Rows that had finished by then are kept.
        """
        training = self.model.training
        self.model.eval()
        try:
            self._decoder.run(rows, settings)
            return []
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
        finally:
            self.model.train(training)
        # Out of the except block, so that the traceback no longer holds the tensors of the failed try.
        _free_memory()
        rest = [rollout for rollout in rows if not rollout.done]
        if len(rows) == 1:
            rest[0].finish("error", error="out of memory with a single sample")
            return []
        self._row_limit = len(rows) // 2
        _log.warning(
            "out of memory with %d samples at once; going on with %d (fewer groups per batch avoid this)",
            len(rows),
            self._row_limit,
        )
        return self._split(rest)

    def _split(self, rows: list[Rollout]) -> list[list[Rollout]]:
        """Cut rows into batches that fit, as far as is known."""
        size = self._row_limit or len(rows) or 1
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def _text(self, token_ids: list[int]) -> str:
        """Response text of token ids: decoded as a whole, special tokens left out."""
        return str(
            self.tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )


def load_engine(
    name: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    groups_per_batch: int | None = None,
    threads: int | None = None,
    revision: str | None = None,
    chat_template: bool = True,
) -> TransformersEngine:
    """Load a model folder or a hub id and wrap it as an engine.

    Args:
        name: a local folder, or a hub id such as ``Qwen/Qwen2.5-0.5B-Instruct``.
        dtype: ``float32``, ``bfloat16``, ``float16`` or ``auto``: float32 on a CPU (many CPUs emulate
            bfloat16, several times slower), as stored elsewhere.
        device: ``cpu``, ``cuda``, ``cuda:1`` or ``auto`` (cuda where there is one).
        groups_per_batch: groups decoded together; None chooses by device.
        threads: CPU threads of torch, for the whole process; None leaves them as they are.
        revision: branch, tag or commit of a hub model.
        chat_template: False asks the model in plain text even where it has a template.

    Raises:
        EngineUnavailable: torch or transformers, the model or the device is missing, or an argument
            is none of the above; one line, with the cure.
    """
    if dtype not in ("auto", *DTYPES):
        raise EngineUnavailable(f"dtype {dtype!r} is unknown, expected auto, {', '.join(DTYPES)}")
    source, folder = _locate(name)
    try:
        import torch
        import transformers
    except ImportError as error:
        raise EngineUnavailable(
            f'hf models need torch and transformers ({error}): pip install "modebench-toolkit[train]"'
        ) from error
    if threads is not None:
        torch.set_num_threads(threads)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto" and device.startswith("cpu"):
        dtype = "float32"
    # Code shipped with a model is never run, and never asked about at a prompt.
    options: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
    try:
        with _quiet_loading(transformers):
            # First and alone: where the name is wrong, this fails after one round of hub retries.
            options["config"] = transformers.AutoConfig.from_pretrained(source, **options)
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
            model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=dtype, **options)
        model = model.to(device).eval()
    except Exception as error:  # whatever a damaged folder, a typo or an absent device may raise
        raise EngineUnavailable(_loading_problem(name, folder, error)) from error
    if folder is None:
        origin = {"revision": getattr(model.config, "_commit_hash", None) or revision}
    else:
        origin = {"fingerprint": folder_fingerprint(folder)}
    return TransformersEngine(
        model,
        tokenizer,
        name=name,
        groups_per_batch=groups_per_batch,
        chat_template=chat_template,
        origin=origin,
    )


def folder_fingerprint(folder: Path) -> str:
    """SHA-256 that tells model folders apart without reading gigabytes.

    Covers every JSON and template file whole, and of each weights file the name, the size and 64
    pieces of 4 KiB spread evenly over it: enough to notice other weights of the same shape.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".jinja"):
            digest.update(f"{path.name}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
        elif path.suffix in (".safetensors", ".bin"):
            size = path.stat().st_size
            digest.update(f"{path.name} {size}\n".encode())
            with path.open("rb") as file:
                for piece in range(FINGERPRINT_READS):
                    file.seek(max(0, size - FINGERPRINT_BYTES) * piece // (FINGERPRINT_READS - 1))
                    digest.update(file.read(FINGERPRINT_BYTES))
    return digest.hexdigest()


def _locate(name: str) -> tuple[str, Path | None]:
    """What transformers is given, and the folder where it is a local one. Asks no network."""
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise EngineUnavailable(f"{name} is no model folder: it has no config.json")
        return str(path), path
    if path.exists():
        raise EngineUnavailable(f"{name} is a file, expected a model folder or a hub id")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", name):
        raise EngineUnavailable(f"there is no model folder {name}, and it is no hub id (owner/name)")
    return name, None


def _loading_problem(name: str, folder: Path | None, error: Exception) -> str:
    """One line on a model that did not load."""
    reason = " ".join(str(error).split()) or type(error).__name__
    reason = reason if len(reason) <= 300 else reason[:297] + "..."
    if folder is None:
        return f"no folder {name} here, and the hub model did not load: {reason}"
    return f"the model in {name} did not load: {reason}"


@contextlib.contextmanager
def _quiet_loading(transformers: Any) -> Iterator[None]:
    """Keep the bars of transformers off a stderr that is no terminal."""
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled() and not sys.stderr.isatty()
    if shown:
        bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def _end_token_ids(model: Any, tokenizer: Any, chat: ChatFormat) -> list[int]:
    """All tokens that end a response: the model's, the tokenizer's and the template's, sorted."""
    named = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    candidates = list(named) if isinstance(named, (list, tuple)) else [named]
    candidates += [tokenizer.eos_token_id, chat.end_of_turn_id()]
    return sorted({int(token) for token in candidates if token is not None})


def _check(settings: GenerationSettings) -> None:
    """Refuse settings that mean nothing."""
    ranges = {
        "temperature": (settings.temperature >= 0, "at least 0"),
        "top_p": (0 < settings.top_p <= 1, "above 0 and at most 1"),
        "top_k": (settings.top_k >= 0, "at least 0"),
        "max_tokens": (settings.max_tokens >= 1, "at least 1"),
        "stop": (all(settings.stop), "non-empty strings"),
    }
    for name, (valid, expected) in ranges.items():
        if not valid:
            raise ValueError(f"{name} is {getattr(settings, name)!r}, expected {expected}")


def _is_out_of_memory(error: RuntimeError) -> bool:
    import torch

    # The CPU's allocator has no exception class of its own.
    return isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in str(error)


def _free_memory() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _sample(rollout: Rollout) -> Sample:
    count = len(rollout.token_ids)
    if rollout.error is not None:
        return Sample("", "error", input_tokens=len(rollout.prompt_ids), error=rollout.error)
    return Sample(
        response=rollout.text or "",
        finish_reason=rollout.finish_reason,
        input_tokens=len(rollout.prompt_ids),
        output_tokens=count,
        logprob=sum(rollout.logp),
        entropy=sum(rollout.entropy) / count,
    )
