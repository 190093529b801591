"""Planted faults: each small change of the code must make the suite fail.

    python tests/mutations/run.py [--only TEXT]

Every mutation is applied to a copy of the project, alone, and the named tests must fail there (and
pass on the unchanged copy). Exit code 1 when a fault survives.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("modebench", "tests", "docs", "pyproject.toml", "README.md")


class Mutation(NamedTuple):
    """One planted fault: in `file`, the text `old` (found once) becomes `new`; `tests` must notice."""

    file: str
    old: str
    new: str
    tests: str


CONFORMANCE = "tests/verifiers/test_conformance.py"
ESTIMATORS = "tests/analysis/test_estimators_exact.py"
FAULTS = "tests/training/test_known_faults.py"
REPLAY = "tests/training/test_replay.py"
LIKELIHOOD = "tests/training/test_likelihood.py"
LOSS = "tests/training/test_loss.py"
DAPO = "tests/training/test_dapo.py"
DIVERGENCE = "tests/training/test_divergence.py"
RECIPE = "tests/training/test_recipe.py"
SELECTION = "tests/training/test_token_selection.py"
DROPOUT = "tests/training/test_dropout.py"
RLEP = "tests/training/test_rlep.py"
GAPO = "tests/training/test_gapo.py"
SETPO = "tests/training/test_setpo.py"
UCPO = "tests/training/test_ucpo.py"
SEMANTIC = "tests/training/test_semantic_maxent.py"
COMBINING = "tests/training/test_combining.py"
BALANCE = "tests/training/test_strategy_balance.py"
MEI = "tests/training/test_mei.py"
COUPLING = "tests/training/test_coupling.py"
COACHING = "tests/training/test_coaching.py"
PREFIXES = "tests/test_coaching.py"
SVS = "tests/training/test_svs.py"
SYNCO = "tests/training/test_synco.py"
TEACHING = "tests/synthesis/test_teaching.py"
CARDS = "tests/synthesis/test_cards.py"
VARIANTS = "tests/synthesis/test_variants.py"
NOVELTY = "tests/synthesis/test_novelty.py"
MEMORY = "tests/synthesis/test_memory.py"
TEACHABILITY = "tests/analysis/test_teachability.py"
MUTATIONS = (
    Mutation("verifiers/extraction.py", "text.rfind(_BOX)", "text.find(_BOX)", CONFORMANCE),
    Mutation("verifiers/extraction.py", "SHORT_LINE = Surface(160", "SHORT_LINE = Surface(161", CONFORMANCE),
    Mutation("verifiers/extraction.py", '"answer|plan|recipe"', '"answer|plan"', CONFORMANCE),
    Mutation("verifiers/extraction.py", 'or "<" in candidate ', "", CONFORMANCE),
    Mutation("verifiers/graph_coloring.py", "if count == spec.n or", "if count != spec.n or", CONFORMANCE),
    Mutation("verifiers/graph_coloring.py", "colours[u] == colours[v]", "colours[u] != colours[v]", CONFORMANCE),
    Mutation("verifiers/countdown.py", "and right < left", "and right > left", CONFORMANCE),
    Mutation("verifiers/countdown.py", 'item in "+*"', 'item in "+*-"', CONFORMANCE),
    Mutation("verifiers/countdown.py", "= 4_300", "= 4_299", "tests/verifiers"),
    Mutation("verifiers/countdown.py", "_MAX_PARENTHESES = 200", "_MAX_PARENTHESES = 199", "tests/verifiers"),
    Mutation("verifiers/python_factors.py", "1 < output < case", "1 <= output < case", CONFORMANCE),
    Mutation("verifiers/python_factors.py", "MAX_NODES = 64", "MAX_NODES = 65", CONFORMANCE),
    Mutation("verifiers/python_factors.py", "MAX_LITERAL = 10_000", "MAX_LITERAL = 10_001", "tests/verifiers"),
    Mutation("verifiers/mathir_solution.py", "constant == 0 and slope != 0", "slope != 0", "tests/verifiers/test_mathir_solution.py"),
    Mutation("verifiers/clean/extraction.py", "depth[start:] < depth[start - 1]", "depth[start:] <= depth[start - 1]", "tests/verifiers/clean"),
    Mutation("verifiers/python_expression.py", '"%": (6,', '"%": (5,', "tests/verifiers"),
    Mutation("verifiers/python_expression.py", 'CHAIN = {"or": 1, "and": 2}', 'CHAIN = {"or": 2, "and": 1}', "tests/verifiers"),
    Mutation("verifiers/mathir.py", "_MAX_DEPTH = 6", "_MAX_DEPTH = 7", CONFORMANCE),
    Mutation("verifiers/mathir.py", "if moved.text in seen:", "if moved.text in ():", CONFORMANCE),
    Mutation("verifiers/rational.py", "xyzpqrstuvw", "xyzqprstuvw", CONFORMANCE),
    Mutation("verifiers/rational.py", "if q[max(q)] < 0:", "if q[min(q)] < 0:", CONFORMANCE),
    Mutation("verifiers/pantry_plan.py", "total > high", "total >= high", CONFORMANCE),
    Mutation("verifiers/pantry_plan.py", "or grams % item.step", "", "tests/verifiers/test_pantry_plan.py"),
    Mutation("verifiers/pantry_plan.py", "key = tuple(sorted(support))", "key = tuple(support)[::-1]", "tests/verifiers"),
    Mutation("verifiers/registry.py", "type(level) is int", "isinstance(level, int)", "tests/verifiers"),
    Mutation("reasoning.py", "None if opened else kept", "kept", "tests/test_runs.py"),
    Mutation("evaluation.py", "{run_seed}|{step}|{task_id}|{sample}", "{run_seed}|{step}|{task_id}", "tests/test_evaluation.py"),
    Mutation("evaluation.py", "if not done >> index & 1", "if True", "tests/test_evaluation.py"),
    Mutation("analysis/diversity.py", "(counts * (counts - 1)).sum", "(counts * counts).sum", ESTIMATORS),
    Mutation("analysis/diversity.py", "(2 * n - 3) * l2**2", "(2 * n - 2) * l2**2", ESTIMATORS),
    Mutation("analysis/diversity.py", "_same_pairs(c), k * (k - 1))", "_same_pairs(c), n * (n - 1))", ESTIMATORS),
    Mutation("analysis/pass_at_k.py", "np.maximum(left - i, 0)", "np.maximum(left, 0)", ESTIMATORS),
    Mutation("chance.py", "order[place - 1]", "order[place]", "tests/test_chance.py"),
    Mutation("analysis/sign_flip.py", "np.abs(sums) >= ", "sums >= ", "tests/analysis/test_compare.py"),
    Mutation("analysis/sign_flip.py", "(len(p) - np.arange(len(p)))", "len(p)", "tests/analysis/test_compare.py"),
    Mutation("analysis/pairing.py", "(in_a == 0) & (in_b > 0)", "(in_a == 0) & (in_b >= 0)", "tests/analysis/test_compare.py"),
    Mutation("analysis/intervals.py", "z2 / (4 * draws**2)", "z2 / (2 * draws**2)", "tests/analysis/test_intervals.py"),
    Mutation("training/packing.py", "range(start, start + len(response) - 1)", "range(start + 1, start + len(response))", LIKELIHOOD),
    Mutation("training/packing.py", "(key_N1S == query_NS1)", "(key_N1S <= query_NS1)", LIKELIHOOD),
    Mutation("training/likelihood.py", "torch.float32)) / temperature", "torch.float32))", LIKELIHOOD),
    Mutation("training/loss.py", "clamp(1 - epsilon, 1 + epsilon_high)", "clamp(1 - epsilon, 1 + epsilon)", LOSS),
    Mutation("training/loss.py", "for live in (True, False):", "for live in (True,):", LOSS),
    Mutation("training/loss.py", "(advantage_K > 0) & high_K | (advantage_K < 0) & low_K", "high_K | low_K", LOSS),
    Mutation("training/policy.py", '"drop" in name or ', "", "tests/training/test_policy.py"),
    Mutation("training/sampling.py", ' and response.finish_reason == "stop"', "", "tests/training/test_sampling.py"),
    Mutation("training/advantages.py", "std(ddof=self.ddof)", "std(ddof=1)", "tests/training/test_advantages.py"),
    Mutation("training/advantages.py", "np.ptp(advantage_G) == 0", "not advantage_G.any()", FAULTS),
    Mutation("training/advantages.py", "advantage_G / mean - 1", "advantage_G / mean", FAULTS),
    Mutation("training/surrogates.py", "float(counts)", "1.0", FAULTS),
    Mutation("training/surrogates.py", " if row.weight_T.any()]", "]", FAULTS),
    Mutation("training/surrogates.py", "1 / (len(lengths) * max(length, 1))", "1 / (rollouts * max(length, 1))", FAULTS),
    Mutation("training/surrogates.py", "above_T | below_T", "above_T", SELECTION),
    Mutation("training/loss.py", "torch.cat(means).detach()", "torch.cat(means)", DAPO),
    Mutation("training/divergence.py", "reference_CV.exp() * _middle", "logp_CV.exp() * _middle", DIVERGENCE),
    Mutation("training/divergence.py", "(reference_K - logp_K).expm1() - (reference_K", "(logp_K - reference_K).expm1() - (reference_K", DIVERGENCE),
    Mutation("training/divergence.py", "difference_K / 2 - _middle", "difference_K - _middle", DIVERGENCE),
    Mutation("training/likelihood.py", '"entropy" in wanted', "False", DIVERGENCE),
    Mutation("training/token_selection.py", "values_K[counts_K].mean()", "values_K.mean()", SELECTION),
    Mutation("training/token_selection.py", "counts_K & ~np.concatenate", "counts_K | ~np.concatenate", SELECTION),
    Mutation("training/token_selection.py", "weight_K.sum() / left_K.sum()", "1.0", SELECTION),
    Mutation("training/dapo.py", "if group.mixed", "if group.reward_G.any()", DAPO),
    Mutation("training/dapo.py", "self.max_length - buffer - length_G", "self.max_length - length_G", DAPO),
    Mutation("training/recipe.py", "if number > 0:", "if number > 1:", RECIPE),
    Mutation("training/recipe.py", 'coached.get(row.group, row.group) if unit == "group" else index', "index", RECIPE),
    Mutation("training/recipe.py", "for place, group in enumerate(groups) if group.prefix", "for place, group in enumerate(()) if group.prefix", COACHING),
    Mutation("training/recipe.py", "method.normalise([rows[index] for index in part], state)", "[rows[index] for index in part]", RECIPE),
    Mutation("training/method.py", "state.changed.clear()", "pass", RECIPE),
    Mutation("training/method.py", "~np.isfinite(group.reward_G))[0]", "np.isfinite(group.reward_G))[0]", FAULTS),
    Mutation("training/dropout.py", "surprisal_G - surprisal_G.mean()", "surprisal_G", DROPOUT),
    Mutation("training/dropout.py", "rest >= -TOLERANCE", "rest > TOLERANCE", DROPOUT),
    Mutation("training/dropout.py", "| (kept_G & ~self._targeted(advantage_G))", "", DROPOUT),
    Mutation("training/dropout.py", "if np.ptp(advantage_N) == 0:", "if False:", DROPOUT),
    Mutation("training/dropout.py", "surprisal_N.min() - surprisal_N", "surprisal_N - surprisal_N.max()", DROPOUT),
    Mutation("training/dropout.py", "left_G &= np.abs(push_G) > TOLERANCE", "pass", DROPOUT),
    Mutation("training/dropout.py", "rows = np.flatnonzero(kept_G)", "rows = np.arange(len(kept_G))", DROPOUT),
    Mutation("training/dropout.py", "if not advantage_G.any():", "if False:", DROPOUT),
    Mutation("training/dropout.py", "state.updates += 1", "pass", DROPOUT),
    Mutation("training/rlep.py", "replace=False)]", "replace=True)]", RLEP),
    Mutation("training/rlep.py", " and rollout.reward > 0", "", RLEP),
    Mutation("training/rlep.py", ' or record.get("finish_reason") == "length"', "", RLEP),
    Mutation("training/rlep.py", 'if saved["source"] != self.source:', "if False:", RLEP),
    Mutation("training/rlep.py", "self.updates += 1", "pass", RLEP),
    Mutation("training/rlep.py", "Rollout(tokens, (), ", "Rollout(tokens, (-1.0,) * len(tokens), ", RLEP),
    Mutation("training/gapo.py", "counts[mode] / len(modes)", "counts[mode] / group.size", GAPO),
    Mutation("training/gapo.py", "+ 1 / support", "", GAPO),
    Mutation("training/ucpo.py", "tau * len(rollouts) * inverse", "tau * inverse", UCPO),
    Mutation("training/ucpo.py", "np.mean if self.rarity", "np.sum if self.rarity", UCPO),
    Mutation("training/ucpo.py", "np.maximum(self._shares", "np.minimum(self._shares", UCPO),
    Mutation("training/setpo.py", "np.fill_diagonal(terms_SS, 0.0)", "pass", SETPO),
    Mutation("training/setpo.py", "rollout.mode if rollout.reward > 0 else None", "rollout.mode", SETPO),
    Mutation("training/setpo.py", "unit_GE.T, 0.0, 1.0)", "unit_GE.T, -1.0, 1.0)", SETPO),
    Mutation("training/semantic_maxent.py", "(len(known) + 1)", "len(known)", SEMANTIC),
    Mutation("training/semantic_maxent.py", "counts - Counter([rollout.mode])", "counts", SEMANTIC),
    Mutation("training/semantic_maxent.py", "[*p.values(), unseen]", "p.values()", SEMANTIC),
    Mutation("training/method.py", "rollouts=group.rollouts + joined) if joined", "rollouts=group.rollouts) if joined", RLEP),
    Mutation("training/methods.py", "key=lambda part: part.stage", "key=lambda part: 0", COMBINING),
    Mutation("training/combining.py", "if trait in other.provides:", "if False:", COMBINING),
    Mutation("training/replay.py", "for mode in sorted(found)", "for mode in found", REPLAY),
    Mutation("training/replay.py", "sorted(found[mode])", "sorted(found[mode], key=len)", "tests/training/test_training_vectors.py"),
    Mutation("training/replay.py", "rollout.reward > 0 and ", "", REPLAY),
    Mutation("training/replay.py", ' and rollout.finish_reason != "length"', "", REPLAY),
    Mutation("training/replay.py", "self.cursor = (start + taken) % len(keys)", "self.cursor = start + taken", REPLAY),
    Mutation("training/replay.py", "keys = sorted(self.banks)", "keys = list(self.banks)", REPLAY),
    Mutation("training/replay.py", "next_banks(len(groups))", "next_banks(1)", REPLAY),
    Mutation("training/replay.py", "* share / len(scheduled)", "* share", REPLAY),
    Mutation("training/replay.py", "1 / (size * length)", "1 / length", REPLAY),
    Mutation("training/replay.py", 'if self.control == "zero"', "if False", "tests/training/test_controls.py"),
    Mutation("training/replay.py", 'self.updates = saved["seed"], saved["cursor"], saved["updates"]', 'self.updates = self.seed, saved["cursor"], saved["updates"]', REPLAY),
    Mutation("training/strategy_balance.py", "share_M - 1 / m, share_M", "share_M, share_M", BALANCE),
    Mutation("training/strategy_balance.py", "share_M * (over_M - (", "share_M * (over_M + (", BALANCE),
    Mutation("training/strategy_balance.py", "-scale * slope / len(own)", "scale * slope / len(own)", BALANCE),
    Mutation("training/strategy_balance.py", "slope / len(own)", "slope", BALANCE),
    Mutation("training/strategy_balance.py", "rollout.reward > 0, group.prefix", "True, group.prefix", BALANCE),
    Mutation("training/strategy_balance.py", 'if row.term != "fresh" or', 'if', BALANCE),
    Mutation("training/strategy_balance.py", "seen.logp_T - seen.reference_T", "seen.logp_T", BALANCE),
    Mutation("training/strategy_balance.py", "row.group if group.prefix is None else group.task.id", "row.group", BALANCE),
    Mutation("training/strategy_balance.py", "np.mean(weights)) / (1 - 1 / m)", "np.mean(weights))", BALANCE),
    Mutation("training/residuals.py", "alpha=-1", "alpha=1", MEI),
    Mutation("training/mei.py", "weight_G**2 * np.diag", "weight_G * np.diag", MEI),
    Mutation("training/mei.py", "if each[1].sum() > 1", "if each[1].sum() > 0", MEI),
    Mutation("training/loss.py", "found.add([part[member] for member in members]", "found.add(members", MEI),
    Mutation("training/coupling.py", "(kernel_NN > 0) & ", "", COUPLING),
    Mutation("training/coupling.py", "expected = one * other / pairs if pairs else 0.0", "expected = 0.0", COUPLING),
    Mutation("training/coaching.py", "divmod(asked.size, len(prefixes))", "divmod(asked.size, 1)", COACHING),
    Mutation("training/coaching.py", 'if saved["source"] != self.source:', "if False:", COACHING),
    Mutation("training/sampling.py", "policy.profile, prefix=text)", "policy.profile)", COACHING),
    Mutation("coaching.py", "for last in pieces[place:]", "for last in pieces[place : place + 1]", PREFIXES),
    Mutation("coaching.py", "if prefix.applies(task) and ", "if not prefix.applies(task) and ", PREFIXES),
    Mutation("coach_model.py", "if problem is None and advices:", "if advices:", PREFIXES),
    Mutation("analysis/coach_check.py", 'found["value"] <= margin', 'found["value"] <= 1', PREFIXES),
    Mutation("training/svs.py", "in_band(len(right), group.size, self.lower, self.upper)", "in_band(len(right), group.size, self.reward_lower, self.reward_upper)", SVS),
    Mutation("training/svs.py", "in_band(_right(group), group.size, self.reward_lower, self.reward_upper)", "in_band(_right(group), group.size, self.lower, self.upper)", SVS),
    Mutation("training/svs.py", "answers[: self.max_solutions]", "answers", SVS),
    Mutation("training/svs.py", "if draft.key is None:", "if draft.key is not None and draft.failure:", SVS),
    Mutation("training/svs.py", "if len(known) == group.size and max(known) > 0", "if len(known) == group.size", SVS),
    Mutation("training/svs.py", "start += group.size", "start += 1", SVS),
    Mutation("training/svs.py", "failure = failure or \"held_out\"", "pass", SVS),
    Mutation("training/svs.py", "if draft.key is not None and not draft.is_copy}", "if draft.key is not None and draft.failure is None}", SVS),
    Mutation("training/svs.py", "known[max(0, len(known) - window) :]", "known[:window]", SVS),
    Mutation("training/svs.py", "*(group for group in answers.values() if group.mixed)", "*answers.values()", SVS),
    Mutation("training/svs.py", "return mixed if self.empty", "return mixed if True or self.empty", SVS),
    Mutation("training/synco.py", "if self.step % every == 0:", "if True:", SYNCO),
    Mutation("training/synco.py", "paid_G[place] *= self.unboxed", "pass", SYNCO),
    Mutation("training/synco.py", "if self.source == \"joint\" and written", "if written", SYNCO),
    Mutation("training/synco.py", "and len(answered) == len(tasks):", "and True:", SYNCO),
    Mutation("training/synco.py", "return REJECTED", "return 0.0", SYNCO),
    Mutation("training/synco.py", "state.gates.recent.add(domain, grade.fields[\"problem\"])", "pass", SYNCO),
    Mutation("training/synco.py", "state.memory.add(_interaction(draft, proposal))", "pass", SYNCO),
    Mutation("training/synco.py", "(self.step - 1) % len", "self.step % len", SYNCO),
    Mutation("training/synco.py", "mode_teachability(mu, len(modes), group.size, self.slope)", "mode_teachability(mu, 1, group.size, self.slope)", SYNCO),
    Mutation("training/synco.py", "self.gates.recent.add(domain, text)", "pass", SYNCO),
    Mutation("training/synco_tasks.py", "if checked.rejection is None:", "if True:", SYNCO),
    Mutation("synthesis/teaching.py", "(value - 0.5) / 0.5", "value", TEACHING),
    Mutation("synthesis/teaching.py", "gate(quality) * gate(reliability) * worth", "gate(quality) * worth", TEACHING),
    Mutation("synthesis/teaching.py", "1 - slope * 2 * (mu - 0.5)", "1 - slope * (mu - 0.5)", TEACHING),
    Mutation("synthesis/cards.py", "1.0 if solution == final else DIFFERENT", "1.0", CARDS),
    Mutation("synthesis/cards.py", "if solution is None or final is None:", "if solution is None:", CARDS),
    Mutation("synthesis/cards.py", "task.rejection if complete else \"unreadable\"", "task.rejection", CARDS),
    Mutation("synthesis/cards.py", "elif novelty < LEAST_NOVELTY:", "elif novelty <= 0:", CARDS),
    Mutation("synthesis/cards.py", "return None not in (reference.get(\"partial_colors\") or [None])", "return False", CARDS),
    Mutation("synthesis/novelty.py", "1.0 if known_form == form else jaccard(own, known)", "jaccard(own, known)", NOVELTY),
    Mutation("synthesis/novelty.py", "if known_domain == domain:", "if True:", NOVELTY),
    Mutation("synthesis/novelty.py", "HELD_OUT = (\"eval\", \"dev\")", "HELD_OUT = (\"eval\",)", NOVELTY),
    Mutation("synthesis/memory.py", "_counts(rates[-_COUNTED:])", "_counts(rates)", MEMORY),
    Mutation("synthesis/memory.py", "(each.domain, each.level) == (domain, level)", "True", MEMORY),
    Mutation("synthesis/memory.py", "rate < TOO_HARD", "rate <= TOO_HARD", "modebench/synthesis/memory.py"),
    Mutation("synthesis/writing.py", 'forms = (f"{_BOX}{{{answer}}}", answer)', 'forms = (f"{_BOX}{{{answer}}}",)', "tests/synthesis/test_writing.py"),
    Mutation("synthesis/variants.py", "if failure is None and _size(", "if False and _size(", VARIANTS),
    Mutation("synthesis/variants.py", "failure: Failure | None = free_failure(task, solution, reference)", "failure: Failure | None = None", VARIANTS),
    Mutation("synthesis/variants.py", "if failure is None and _leaks(", "if False and _leaks(", VARIANTS),
    Mutation("analysis/teachability.py", "early = place < wanted[prompt]", "early = place <= wanted[prompt]", TEACHABILITY),
    Mutation("analysis/teachability.py", "right_left, left, size), left", "fresh, first, size), left", TEACHABILITY),
    Mutation("analysis/teachability.py", "(fresh > 0) & (fresh < size)", "fresh > 0", TEACHABILITY),
    Mutation("analysis/teachability.py", "1 - all_wrong - all_right", "1 - all_wrong", TEACHABILITY),
)  # fmt: skip


def main() -> None:
    """Check every mutation and say which survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="only mutations whose file or text holds this")
    only = parser.parse_args().only
    chosen = [m for m in MUTATIONS if only in m.file or only in m.old]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
        for tests in sorted({mutation.tests for mutation in chosen}):
            if not passes(copy, tests):
                raise SystemExit(f"{tests} fails without any planted fault")
        survivors = [mutation for mutation in chosen if not caught(copy, mutation)]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} planted faults caught")
    sys.exit(1 if survivors else 0)


def caught(copy: Path, mutation: Mutation) -> bool:
    """Whether the tests fail with the fault in place; the file is restored."""
    file = copy / "modebench" / mutation.file
    code = file.read_text()
    if code.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.file} holds {mutation.old!r} {code.count(mutation.old)} times, not once")
    file.write_text(code.replace(mutation.old, mutation.new))
    try:
        noticed = not passes(copy, mutation.tests)
    finally:
        file.write_text(code)
    print(
        f"{'caught  ' if noticed else 'SURVIVED'}  {mutation.file}: {mutation.old} -> {mutation.new}",
        flush=True,
    )
    return noticed


def passes(copy: Path, tests: str) -> bool:
    """Whether the tests pass in the copy, which is what is imported there."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-m", "not slow and not gpu", tests]
    return subprocess.run(command, cwd=copy, capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
