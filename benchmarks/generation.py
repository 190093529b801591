"""Speed of the transformers engine against ``model.generate`` of transformers.

Both draw K samples for the same prompts with the same loaded model, data type, threads, temperature
and token limit, in the same process, in turns. What is printed is the ratio of response tokens a
second (end token counted, padding not), one a round, and their median: by the clock, and by the
processor time of this process, which is the one to read on a busy machine (with one thread; idle
threads of a pool count as busy). The rival gets all prompts
in one call with ``num_return_sequences=K``; it neither gives every sample a seed of its own nor
reports log-probabilities, and the engine does both.

    python benchmarks/generation.py --model "$(python scripts/fetch_smollm2.py)"

``--full-length`` keeps end tokens from ending anything, so that both decode the same number of steps.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import Any, NamedTuple

import torch

from modebench.domains import DOMAINS, get_domain
from modebench.prompts import build_messages
from modebench.sampling.base import GenerationSettings, Group
from modebench.sampling.decoding import Decoder
from modebench.sampling.transformers import TransformersEngine, load_engine
from modebench.tasks import Task


def make_groups(count: int, samples: int, first_seed: int) -> list[Group]:
    """`count` groups over the domains in turn, level 1, with `samples` seeds each."""
    names = list(DOMAINS)
    groups = []
    for index in range(count):
        name = names[index % len(names)]
        domain = get_domain(name)
        reference = domain.generate(random.Random(index), 1)
        task = Task(f"{name}/{index}", name, 1, "eval", domain.problem(reference, 1), reference)
        seeds = range(first_seed + index * samples, first_seed + (index + 1) * samples)
        groups.append(Group(task, build_messages(task), tuple(seeds)))
    return groups


def run_engine(engine: TransformersEngine, groups: list[Group], settings: GenerationSettings) -> int:
    """Response tokens of all groups."""
    samples = [sample for _, drawn in engine.generate(groups, settings) for sample in drawn]
    return sum(sample.output_tokens or 0 for sample in samples)


def run_rival(
    engine: TransformersEngine, groups: list[Group], settings: GenerationSettings, end_ids: list[int]
) -> int:
    """Response tokens of the same request through ``model.generate``."""
    prompts = [engine.prompt_ids(group.messages) for group in groups]
    width = max(map(len, prompts))
    ids_GT = torch.tensor([[0] * (width - len(ids)) + ids for ids in prompts])
    mask_GT = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts])
    output_BS = engine.model.generate(
        ids_GT.to(engine.model.device),
        attention_mask=mask_GT.to(engine.model.device),
        do_sample=True,
        temperature=settings.temperature,
        top_k=0,
        top_p=1.0,
        num_return_sequences=len(groups[0].seeds),
        max_new_tokens=settings.max_tokens,
        eos_token_id=end_ids or None,
        pad_token_id=engine.end_token_ids[0],
    )
    tokens = 0
    for row in output_BS[:, width:].tolist():
        ends = [place for place, token in enumerate(row) if token in end_ids]
        tokens += ends[0] + 1 if ends else len(row)
    return tokens


class Speed(NamedTuple):
    """Tokens, seconds by the clock and seconds of processor time of one call."""

    tokens: int
    clock: float
    processor: float

    def __str__(self) -> str:
        return (
            f"{self.tokens} tokens in {self.clock:.1f} s ({self.tokens / self.clock:.1f}/s), "
            f"{self.processor:.1f} s of processor ({self.tokens / self.processor:.1f}/s)"
        )


def timed(call: Any, *arguments: Any) -> Speed:
    clock, processor = time.perf_counter(), time.process_time()
    tokens = call(*arguments)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return Speed(tokens, time.perf_counter() - clock, time.process_time() - processor)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="model folder or hub id")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--full-length", action="store_true", help="end tokens do not end a response")
    parser.add_argument("--engine-only", action="store_true", help="for choosing --prompts")
    return parser.parse_args()


def main() -> None:
    args = options()
    engine = load_engine(
        args.model, dtype=args.dtype, threads=args.threads, groups_per_batch=max(1, args.prompts)
    )
    end_ids = [] if args.full_length else engine.end_token_ids
    engine._decoder = Decoder(engine.model, end_ids, engine._text)
    # The rival would take end tokens from here where it is given none.
    engine.model.generation_config.eos_token_id = end_ids or None
    settings = GenerationSettings(max_tokens=args.max_tokens)
    told = engine.describe()
    print(", ".join(f"{key} {told[key]}" for key in ("dtype", "device", "threads", "torch", "transformers")))
    print(f"{args.prompts} prompts x {args.samples} samples, at most {args.max_tokens} tokens each")
    run_engine(engine, make_groups(1, 1, 0), GenerationSettings(max_tokens=2))  # first-call costs
    by_clock, by_processor = [], []
    for round_ in range(args.rounds):
        groups = make_groups(args.prompts, args.samples, 10_000 * (round_ + 1))
        ours = timed(run_engine, engine, groups, settings)
        print(f"round {round_ + 1}: engine   {ours}", flush=True)
        if args.engine_only:
            continue
        torch.manual_seed(round_)
        rival = timed(run_rival, engine, groups, settings, end_ids)
        share = ours.tokens / rival.tokens
        by_clock.append(share * rival.clock / ours.clock)
        by_processor.append(share * rival.processor / ours.processor)
        print(f"         generate {rival}", flush=True)
        print(f"         ratio {by_clock[-1]:.2f} by the clock, {by_processor[-1]:.2f} by processor time")
    if by_clock:
        clock, processor = statistics.median(by_clock), statistics.median(by_processor)
        print(f"median ratio {clock:.2f} by the clock, {processor:.2f} by processor time")


if __name__ == "__main__":
    main()
