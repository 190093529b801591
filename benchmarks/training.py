"""Speed of a training step against TRL's GRPOTrainer.

Both train the same random Llama with Dr. GRPO in one process, on the same tasks, with the same number of
rollouts, temperature, token limit, optimizer and threads, in turns. Two ratios are printed, by the clock and
by the processor time of this process (the one to read on a busy machine):

* update: loss, gradient and optimizer step on the same rollouts, of the same lengths and advantages;
* step: rollouts, rewards and update, as `GRPOTrainer.train` and the parts of our loop do them. Responses are
  judged, and then every other one is called right: a random model would be paid nothing, and what has no
  gradient costs us no backward pass.

TRL runs with gradient checkpointing off and micro-batches of `--trl-batch` rollouts; trackers, evaluation and
checkpoints are off in both. Of a step of TRL counts what lies between the ends of two steps.

    make .venv-trl/.installed && PYTHONPATH=. .venv-trl/bin/python benchmarks/training.py
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import numpy as np
import torch
import transformers
import trl

from modebench.evaluation import sample_seed
from modebench.sampling.base import GenerationSettings
from modebench.tasks import Task, load_tasks
from modebench.training import policy
from modebench.training.batch import Group, Rollout
from modebench.training.loss import backward
from modebench.training.methods import build
from modebench.training.policy import Policy
from modebench.training.reward import trl_reward, trl_rows
from modebench.training.sampling import rollouts
from tests.sampling.tiny_models import tiny_tokenizer

LEARNING_RATE = 1e-5


class Cost(NamedTuple):
    """Seconds by the clock and of processor time."""

    clock: float
    processor: float

    @classmethod
    def of(cls, call: Callable[[], Any]) -> Cost:
        clock, processor = time.perf_counter(), time.process_time()
        call()
        return cls(time.perf_counter() - clock, time.process_time() - processor)

    def __str__(self) -> str:
        return f"{self.clock:7.2f} s by the clock, {self.processor:7.2f} s of processor"


def make_model(folder: Path, hidden: int, layers: int, vocabulary: int) -> None:
    """A random Llama with head dimension 32, and a tokenizer of characters."""
    tokenizer = tiny_tokenizer()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=max(vocabulary, len(tokenizer)),
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32,
        num_key_value_heads=hidden // 32,
        max_position_embeddings=4096,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=None,
        tie_word_embeddings=True,
    )
    tokenizer.pad_token = tokenizer.eos_token
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def make_trainer(folder: Path, tasks: Sequence[Task], args: argparse.Namespace, steps: int) -> Any:
    """TRL's trainer for the same work."""
    config = trl.GRPOConfig(
        output_dir=str(folder / "trl"),
        loss_type="dr_grpo",
        scale_rewards="none",
        beta=0.0,
        temperature=1.0,
        max_completion_length=args.max_tokens,
        num_generations=args.group_size,
        per_device_train_batch_size=args.trl_batch,
        gradient_accumulation_steps=args.prompts * args.group_size // args.trl_batch,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        max_steps=steps,
        gradient_checkpointing=False,
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        logging_steps=1000,
        disable_tqdm=True,
    )
    rows = trl_rows(tasks, "plain")
    return trl.GRPOTrainer(
        model=str(folder),
        args=config,
        reward_funcs=half_right_for_trl,
        train_dataset=datasets.Dataset.from_list(rows),
    )


def random_groups(tasks: Sequence[Task], asked: Policy, args: argparse.Namespace) -> list[Group]:
    """Responses of random tokens, 4 to `--max-tokens` long, half of every group right."""
    draw = np.random.default_rng(0)
    groups = []
    for task in tasks:
        drawn = []
        for place in range(args.group_size):
            length = int(draw.integers(4, args.max_tokens + 1))
            ids = tuple(draw.integers(5, 100, size=length).tolist())
            right = float(place % 2)
            drawn.append(Rollout(ids, (-1.0,) * length, "", "stop", place, right, "correct", None))
        groups.append(Group(task, asked.prompt_ids(task), tuple(drawn)))
    return groups


class Ours:
    """Our side: the parts of the training loop in its order."""

    def __init__(self, folder: Path, args: argparse.Namespace) -> None:
        self.args = args
        self.policy = policy.load(str(folder), device="cpu", profile="plain")
        self.method = build("dr_grpo", max_completion_length=args.max_tokens)
        self.state = self.method.state(0)
        self.optimizer = torch.optim.AdamW(self.policy.model.parameters(), lr=LEARNING_RATE)

    def update(self, groups: Sequence[Group]) -> None:
        rows = self.method.credit(groups, self.state)
        method = self.method
        clip = {"epsilon": method.epsilon, "epsilon_high": method.epsilon_high}
        backward(self.policy.scorer, rows, temperature=1.0, **clip)
        torch.nn.utils.clip_grad_norm_(self.policy.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def step(self, tasks: Sequence[Task], number: int) -> None:
        seeds = [[sample_seed(0, number, t.id, n) for n in range(self.args.group_size)] for t in tasks]
        settings = GenerationSettings(max_tokens=self.args.max_tokens)
        drawn = rollouts(self.policy, tasks, seeds, settings, groups_per_batch=self.args.prompts)
        self.update([half_right(group) for group in drawn])


def half_right(group: Group) -> Group:
    paid = tuple(replace(each, reward=float(place % 2)) for place, each in enumerate(group.rollouts))
    return replace(group, rollouts=paid)


def half_right_for_trl(completions: list[Any], **columns: Any) -> list[float]:
    trl_reward(completions, **columns)
    return [float(place % 2) for place in range(len(completions))]


class StepEnds(transformers.TrainerCallback):
    """Notes when steps end."""

    def __init__(self) -> None:
        self.ends: list[Cost] = []

    def on_step_end(self, *given: Any, **named: Any) -> None:
        self.ends.append(Cost(time.perf_counter(), time.process_time()))


def trl_batch(groups: Sequence[Group]) -> dict[str, torch.Tensor]:
    """The groups in TRL's layout: prompts padded on the left, responses on the right."""
    rows = [(g.prompt_ids, r.token_ids, r.reward - g.reward_G.mean()) for g in groups for r in g.rollouts]
    widest, longest = max(len(p) for p, _, _ in rows), max(len(r) for _, r, _ in rows)
    batch = {
        "prompt_ids": torch.tensor([[0] * (widest - len(p)) + list(p) for p, _, _ in rows]),
        "prompt_mask": torch.tensor([[0] * (widest - len(p)) + [1] * len(p) for p, _, _ in rows]),
        "completion_ids": torch.tensor([list(r) + [0] * (longest - len(r)) for _, r, _ in rows]),
        "completion_mask": torch.tensor([[1] * len(r) + [0] * (longest - len(r)) for _, r, _ in rows]),
        "advantages": torch.tensor([a for _, _, a in rows], dtype=torch.float32),
    }
    return batch | {"num_items_in_batch": batch["completion_mask"].sum()}


def compare_updates(folder: Path, tasks: Sequence[Task], args: argparse.Namespace) -> None:
    """Print the ratios of the update alone."""
    ours, trainer = Ours(folder, args), make_trainer(folder, tasks, args, 1)
    groups = random_groups(tasks, ours.policy, args)
    batch = trl_batch(groups)
    optimizer = torch.optim.AdamW(trainer.model.parameters(), lr=LEARNING_RATE)
    size = args.trl_batch
    trainer.current_gradient_accumulation_steps = len(batch["advantages"]) // size
    trainer.model.train()

    def rival() -> None:
        for start in range(0, len(batch["advantages"]), size):
            part = {k: v[start : start + size] if v.dim() else v for k, v in batch.items()}
            trainer._compute_loss(trainer.model, part).backward()
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    widths = {len(group.prompt_ids) for group in groups}
    print(f"update: prompts of {min(widths)} to {max(widths)} tokens")
    compare("update", lambda: ours.update(groups), rival, args.rounds)


def compare(name: str, ours: Callable[[], Any], rival: Callable[[], Any], rounds: int) -> None:
    """Print costs and ratios of two calls, made in turns after one of each that does not count."""
    ours(), rival()
    pairs = [(Cost.of(ours), Cost.of(rival)) for _ in range(rounds)]
    for number, (mine, theirs) in enumerate(pairs, 1):
        print(f"{name} {number}: modebench {mine}\n{' ' * len(name)}    TRL       {theirs}", flush=True)
    print_ratios(name, pairs)


def print_ratios(name: str, pairs: Sequence[tuple[Cost, Cost]]) -> None:
    clock = statistics.median(theirs.clock / mine.clock for mine, theirs in pairs)
    processor = statistics.median(theirs.processor / mine.processor for mine, theirs in pairs)
    print(f"{name}: TRL / modebench {clock:.2f} by the clock, {processor:.2f} by processor time")


def compare_steps(folder: Path, tasks: Sequence[Task], args: argparse.Namespace) -> None:
    """Print the ratios of whole steps."""
    pairs = []
    for round_ in range(args.rounds):
        trainer, ends = make_trainer(folder, tasks, args, args.steps + 1), StepEnds()
        trainer.add_callback(ends)
        trainer.train()
        first, last = ends.ends[0], ends.ends[-1]
        theirs = Cost(last.clock - first.clock, last.processor - first.processor)
        mine = Cost.of(partial(run_steps, Ours(folder, args), tasks, args.steps))
        pairs.append((mine, theirs))
        print(f"step {round_ + 1}: modebench {mine}\n        TRL       {theirs}", flush=True)
    print_ratios("step", pairs)


def run_steps(ours: Ours, tasks: Sequence[Task], steps: int) -> None:
    for number in range(steps):
        ours.step(tasks, number)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--group-size", type=int, default=16)
    parser.add_argument("--max-tokens", type=int, default=24)
    parser.add_argument("--prompt-tokens", type=int, help="cut the problems to so many characters")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--trl-batch", type=int, default=64, help="must divide the number of rollouts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3, help="steps of a round")
    parser.add_argument("--only", choices=("update", "step"))
    return parser.parse_args()


def main() -> None:
    args = options()
    torch.set_num_threads(args.threads)
    tasks = list(load_tasks("graph_coloring", 1, "train").head(args.prompts))
    if args.prompt_tokens:
        cut = slice(None, args.prompt_tokens)
        tasks = [Task(t.id, t.domain, t.level, t.split, t.problem[cut], t.reference) for t in tasks]
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, TRL {trl.__version__}"
    print(f"{versions}, {args.threads} threads")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder, args.hidden, args.layers, args.vocabulary)
        if args.only != "step":
            compare_updates(folder, tasks, args)
        if args.only != "update":
            compare_steps(folder, tasks, args)


if __name__ == "__main__":
    main()
