"""Speed of the transformers engine against ``model.generate`` of transformers.

Both draw K samples for the same prompts with the same loaded model, data type, threads, temperature
and token limit, in the same process, in turns. What is printed is the ratio of response tokens a
second (end token counted, padding not), one a round, and their median. The rival gets all prompts
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
from typing import Any

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


def timed(call: Any, *arguments: Any) -> tuple[int, float]:
    """(tokens, seconds) of one call."""
    start = time.perf_counter()
    tokens = call(*arguments)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return tokens, time.perf_counter() - start


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
    ratios = []
    for round_ in range(args.rounds):
        groups = make_groups(args.prompts, args.samples, 10_000 * (round_ + 1))
        tokens, seconds = timed(run_engine, engine, groups, settings)
        line = f"round {round_ + 1}: engine {tokens} tokens in {seconds:.1f} s, {tokens / seconds:.1f}/s"
        if not args.engine_only:
            torch.manual_seed(round_)
            rival_tokens, rival_seconds = timed(run_rival, engine, groups, settings, end_ids)
            ratios.append(tokens / seconds / (rival_tokens / rival_seconds))
            line += f"; generate {rival_tokens} tokens in {rival_seconds:.1f} s, "
            line += f"{rival_tokens / rival_seconds:.1f}/s; ratio {ratios[-1]:.2f}"
        print(line, flush=True)
    if ratios:
        print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
