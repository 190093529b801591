"""Faults that users of evaluation harnesses report, numbered, and the tests that keep them out of this one.

The numbers are those of a survey of public issue threads, ordered by danger to a measure of diversity.
Faults of graders for other kinds of tasks (rows 12, 13, 15 to 17) are the business of the verifier tests.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from modebench.config import EvalConfig, Selection
from modebench.evaluation import evaluate
from modebench.sampling import EngineOptions, load_engine
from modebench.tasks import load_tasks
from tests.conftest import Command
from tests.sampling.stub_server import Body, StubServer, choice_of

HERE = Path(__file__).parent
ENDPOINT, ENDPOINT_CLI = "sampling/test_openai_compatible.py", "cli/test_endpoints_cli.py"

# Row: (the fault, the tests that would notice it).
SURVEY: dict[int, tuple[str, dict[str, tuple[str, ...]]]] = {
    1: (
        "a cache of responses gives the repeats of a task one slot, and K samples become one",
        {
            "cli/test_cli.py": ("test_recorded_responses_replay",),
            ENDPOINT: ("test_identical_replies_are_reported",),
        },
    ),
    2: (
        "one seed, or the engine's default seed, for every repeat",
        {
            ENDPOINT: (
                "test_every_sample_has_its_own_seed_the_same_in_every_run",
                "test_identical_replies_are_reported",
            ),
            "test_evaluation.py": ("test_seed_is_63_bits_of_a_hash_and_depends_on_everything",),
        },
    ),
    3: (
        "a server ignores the number of choices asked for",
        {ENDPOINT: ("test_several_samples_a_request_are_counted_and_topped_up",)},
    ),
    4: (
        "many samples are asked for and one is taken, in silence; or K samples at temperature 0",
        {
            "cli/test_cli.py": ("test_wrong_uses_are_one_line_and_exit_2",),
            "test_evaluation.py": ("test_an_engine_that_returns_too_few_samples_is_refused",),
            ENDPOINT: ("test_several_samples_a_request_are_counted_and_topped_up",),
        },
    ),
    5: (
        "sampling values come from defaults that nobody chose: the server's, or those stored with the model",
        {
            ENDPOINT: ("test_the_servers_own_sampling_defaults_are_switched_off",),
            "sampling/test_transformers.py": ("test_describe_records_the_model_and_what_was_not_used",),
            "sampling/test_vllm_adapter.py": ("test_parameters_leave_nothing_to_stored_defaults",),
        },
    ),
    6: (
        "what was sampled with other settings is taken for what is asked now",
        {"test_survey_of_faults.py": ("test_other_settings_share_no_samples",)},
    ),
    7: (
        "a failed request becomes a wrong answer, a mode, or a smaller K",
        {
            ENDPOINT: ("test_what_is_refused_for_good_is_an_error_not_a_wrong_answer",),
            "analysis/test_estimator_properties.py": ("test_errors_change_their_own_rate_and_nothing_else",),
        },
    ),
    8: (
        "answers that were cut off are scored as wrong, and nobody is told",
        {ENDPOINT: ("test_truncation_is_counted_and_warned_of",)},
    ),
    9: (
        "the reasoning is graded in place of the answer",
        {
            ENDPOINT: ("test_reasoning_in_all_shapes_is_never_graded",),
            "test_evaluation.py": ("test_reasoning_is_taken_off_before_judging",),
        },
    ),
    10: (
        "stop strings that nobody asked for cut good answers",
        {
            "test_survey_of_faults.py": ("test_there_are_no_stop_strings_but_those_asked_for",),
            "sampling/test_transformers.py": ("test_stop_strings_cut_the_text_and_end_the_sample",),
        },
    ),
    11: (
        "two begin-of-sequence tokens, or none; no chat template, or one where there should be none",
        {
            "sampling/test_chat.py": (
                "test_bos_exactly_once",
                "test_plain_text_without_a_template_or_on_request",
            ),
            ENDPOINT: ("test_base_models_are_asked_at_the_completions_endpoint",),
        },
    ),
    14: (
        "text of the model is executed by the grader",
        {"verifiers/test_hostile.py": ("test_nothing_executes", "test_the_audit_would_notice")},
    ),
    18: (
        "a killed run is lost, or asks again for what it had",
        {
            "test_killing.py": ("test_twenty_kills",),
            ENDPOINT: ("test_a_partial_run_goes_on_where_it_stopped",),
            ENDPOINT_CLI: ("test_killed_and_resumed_it_asks_nothing_again_that_was_recorded",),
        },
    ),
    19: (
        "a number that JSON lacks ends a run after hours",
        {
            "test_runs.py": ("test_a_line_is_one_line_of_json_whatever_the_text",),
            "analysis/test_summary.py": ("test_documents_are_json_without_nan",),
            "test_survey_of_faults.py": ("test_numbers_that_json_lacks_are_null",),
        },
    ),
    20: (
        "results of an earlier state of the samples are shown",
        {"test_evaluation.py": ("test_changed_responses_make_verdicts_stale",)},
    ),
    21: (
        "ids or the order of tasks drift between a run and its resumption",
        {
            "test_splits.py": ("test_frozen_tasks_follow_from_the_recorded_seed",),
            "test_survey_of_faults.py": ("test_a_run_whose_tasks_have_changed_is_not_resumed",),
        },
    ),
    22: (
        "a release of vLLM takes other arguments",
        {"sampling/test_vllm_adapter.py": ("test_both_call_shapes_and_both_sets_of_arguments",)},
    ),
    23: (
        "running out of GPU memory loses what was finished",
        {"sampling/test_transformers.py": ("test_out_of_memory_halves_the_batch_and_changes_no_sample",)},
    ),
    24: (
        "rate limits: too much at once, no patience, the server's own waiting time ignored",
        {
            ENDPOINT: (
                "test_a_storm_of_faults_ends_with_exactly_k_distinct_samples",
                "test_never_more_in_flight_than_allowed",
                "test_retry_after_is_honoured_and_the_jitter_is_seeded",
            )
        },
    ),
    25: (
        "something is fetched from the network where there is none",
        {"test_survey_of_faults.py": ("test_an_evaluation_opens_no_connection",)},
    ),
    26: (
        "exit code 0 on failure",
        {
            ENDPOINT_CLI: ("test_missing_samples_are_exit_3_and_the_printed_command_finishes_the_run",),
            "cli/test_cli.py": ("test_wrong_uses_are_one_line_and_exit_2",),
        },
    ),
    27: (
        "help takes seconds, because everything is imported",
        {"cli/test_cli.py": ("test_importing_and_help_load_no_heavy_package",)},
    ),
    28: (
        "error bars that are too narrow, or zero",
        {
            "analysis/test_intervals.py": (
                "test_wilson_on_the_effective_size_covers",
                "test_t_over_prompts_covers_mean_pcmd",
                "test_agreement_at_an_end_of_the_range_is_not_certainty",
            )
        },
    ),
    29: (
        "the samples of a run can't be looked at where it is large, or without a browser",
        {"cli/test_cli.py": ("test_show_filters_responses",)},
    ),
    30: (
        "nobody knows what a run has cost",
        {
            ENDPOINT_CLI: ("test_tokens_and_cost_add_up_over_a_run",),
            "sampling/test_replies.py": ("test_tokens_are_shared_so_that_they_add_up_to_the_bill",),
        },
    ),
}
SMALL = EvalConfig(selection=Selection(domains=("countdown",), limit=3), samples=4)


@cache
def documented(file: str) -> dict[str, str]:
    """Names and docstrings of the tests of a file."""
    tree = ast.parse((HERE / file).read_text())
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("row", [*range(1, 12), 14, *range(18, 31)])
def test_every_row_has_tests(row: int) -> None:
    _, tests = SURVEY[row]
    assert tests
    for file, names in tests.items():
        assert set(names) <= set(documented(file)), file


@pytest.mark.parametrize("file", sorted({file for _, tests in SURVEY.values() for file in tests}))
def test_tests_that_name_a_row_are_listed_with_it(file: str) -> None:
    for name, text in documented(file).items():
        if text.startswith(("Row ", "Rows ")):
            numbers = text.partition(":")[0].removeprefix("Rows ").removeprefix("Row ")
            for row in map(int, numbers.split(" and ")):
                assert name in SURVEY[row][1].get(file, ()), (row, name)


def stub_run(stub: StubServer, folder: Path, config: EvalConfig = SMALL) -> list[dict[str, Any]]:
    """Evaluate against the stub; the response lines."""
    engine = load_engine("openai/m", EngineOptions(base_url=stub.url))
    return list(evaluate(engine, folder, config).folder.responses())


def test_other_settings_share_no_samples(modebench: Command, tmp_path: Path) -> None:
    """Row 6: with another temperature every sample is asked for anew, into another folder."""
    with StubServer() as stub:
        asked = ["-m", "openai/m", "--base-url", stub.url, "--domain", "countdown", "-n", 2, "-k", 4]
        for temperature in (0.7, 1.0):
            done = modebench("eval", *asked, "--temperature", temperature, "-o", f"T{temperature}")
            assert done.returncode == 0, done.stderr
        taken = modebench("eval", *asked, "--temperature", 1.3, "-o", "T1.0")
    assert sorted(body["temperature"] for body in stub.bodies) == [0.7] * 8 + [1.0] * 8
    assert taken.returncode == 2
    assert "output folder T1.0 is in use" in taken.stderr


def test_there_are_no_stop_strings_but_those_asked_for(tmp_path: Path) -> None:
    """Row 10: an answer with blank lines in it survives whole."""
    text = "First.\n\n\n\nThen:\n\n\\boxed{1}\n\n<|eot|>"

    def answer(body: Body, seed: int) -> Body:
        return choice_of(body, text)

    with StubServer(answer) as stub:
        lines = stub_run(stub, tmp_path / "run")
    assert {line["response"] for line in lines} == {text}
    assert not any("stop" in body for body in stub.bodies)


def test_numbers_that_json_lacks_are_null(tmp_path: Path) -> None:
    """Row 19: a log-probability that is not finite is recorded as unknown."""
    from modebench.runs import json_line

    line = json.loads(json_line({"logprob": float("-inf"), "entropy": float("nan"), "sample": 3}))
    assert line == {"logprob": None, "entropy": None, "sample": 3}


def test_a_run_whose_tasks_have_changed_is_not_resumed(modebench: Command, tmp_path: Path) -> None:
    """Row 21: the order and the content of the tasks are those of the run, or nothing is asked."""
    from modebench.tasks import write_tasks

    tasks = list(load_tasks("countdown").head(3))
    write_tasks(tmp_path / "tasks.jsonl", tasks)
    asked = ["-m", "mock/random", "--tasks", "tasks.jsonl", "-k", 2]
    assert modebench("eval", *asked, "-o", "run").returncode == 0
    write_tasks(tmp_path / "tasks.jsonl", tasks[::-1])
    again = modebench("eval", "--resume", "run")
    assert again.returncode == 2
    assert "are not those of the run any more" in again.stderr


def test_an_evaluation_opens_no_connection(tmp_path: Path) -> None:
    """Row 25: from the tasks to the table, nothing is asked of a network."""
    code = (
        "import socket, sys\n"
        "def refuse(*arguments, **options): raise RuntimeError('a connection was opened')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from modebench.cli import main\n"
        "sys.argv = ['modebench', 'eval', '-m', 'mock/uniform', '-n', '2', '-k', '2', '-o', 'run']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "success"
