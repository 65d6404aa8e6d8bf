"""Typing mistakes: one sentence with the nearest name, and where help is."""

from __future__ import annotations

import socket
from pathlib import Path

import click
import pytest

from runner.cli.command_table import cli
from runner.model_names import nearest_models
from tests.commands import siftlog

FILES = {
    "option.toml": 'modle = "x"\n',
    "table.toml": '[modls."x"]\nconcurrency = 3\n',
    "of-model.toml": 'model = ["x"]\n[models.x]\nconcurency = 3\n',
    "settings.toml": "[setings]\nseed = 3\n",
    "setting.toml": "[settings]\nsede = 3\n",
    "idle.toml": (
        'model = ["openai/gpt-4o-mini"]\n[models."gpt-4o-mini"]\nconcurrency = 3\n'
    ),
    "matrix.toml": '[[job]]\njob = "screening"\n',
    "matrix-option.toml": 'modle = "x"\n[[jobs]]\njob = "screening"\n',
    "matrix-job.toml": '[[jobs]]\njob = "screning"\n',
    "recipe.toml": '[fild.dose]\ntype = "number"\n',
}

SENTENCES = {
    # commands, and what they take
    "help stauts": "siftlog has no command 'stauts'; did you mean 'status'?",
    "stauts r": "siftlog has no command 'stauts'; did you mean 'status'?",
    "xyz": "siftlog has no command 'xyz'; see siftlog --help.",
    "cache lst": "cache has no command 'lst'; did you mean 'list'?",
    "status": "status needs RUN; see siftlog status --help.",
    "status r s": (
        "status takes no further word: leave out 's', or see siftlog status --help."
    ),
    # options
    "status r --jsno": "status has no option --jsno; did you mean '--json'?",
    "status r --xyz": "status has no option --xyz; see siftlog status --help.",
    "simulate --prot 3": "simulate has no option --prot; did you mean '--port'?",
    "run ask --concurency 3": (
        "ask has no setting 'concurency'; did you mean 'concurrency'?"
    ),
    "run ask --detatch": (
        "ask has no setting 'detatch'; did you mean 'detach' or 'batch'?"
    ),
    "score weekend --fail-undr 3": (
        "ask has no setting 'fail_undr'; did you mean 'fail-under'?"
    ),
    "run ask --budget": "--budget needs a value; see siftlog COMMAND --help.",
    "simulate --rps-after 3": (
        "--rps-after needs 2 values; see siftlog COMMAND --help."
    ),
    # values of options
    "export weekend --to inspct x": (
        "--to: 'inspct' is not one of inspect, hugging-face, every-eval-ever, mlflow, "
        "ro-crate; did you mean 'inspect'?"
    ),
    "run ask --rpm x": "--rpm: 'x' is not a number; see siftlog run --help.",
    "run ask --concurrency x": (
        "--concurrency: 'x' is not a whole number; see siftlog run --help."
    ),
    "simulate --port 99999": (
        "--port: 99999 is not between 0 and 65535; see siftlog simulate --help."
    ),
    "serve --port x": "--port: 'x' is not a whole number; see siftlog serve --help.",
    "tasks r --limit 0": "--limit: 0 is not at least 1; see siftlog tasks --help.",
    "export r task": (
        "[tasks|answers|scores]: 'task' is not one of tasks, answers, scores; did you "
        "mean 'tasks'?"
    ),
    "export r --format xml": (
        "--format: 'xml' is not one of jsonl, csv, parquet, xlsx; see siftlog export "
        "--help."
    ),
    "simulate --dialect opnai": ("There is no dialect 'opnai'; did you mean 'openai'?"),
    "diff weekend monday": (
        "diff compares two scorings of one run, by their numbers, and 'monday' is no "
        "number; siftlog compare weekend monday compares runs."
    ),
    # jobs and runs
    "run screning": "There is no job 'screning'; did you mean 'screening'?",
    "run Screening": "There is no job 'Screening'; did you mean 'screening'?",
    "jobs prop": "There is no job 'prop'; did you mean 'property-extraction'?",
    "run recpe.toml": "recpe.toml does not exist; did you mean 'recipe.toml'?",
    "run recipe.tml": "There is no job 'recipe.tml'; did you mean 'recipe.toml'?",
    "simulate --job screning": (
        "There is no job 'screning'; did you mean 'screening'?"
    ),
    "prompts screning": (
        "There is no run and no job 'screning'; did you mean 'screening'?"
    ),
    "estimate screning": (
        "There is no run and no job 'screning'; did you mean 'screening'?"
    ),
    "explain screning x": (
        "There is no run and no job 'screning'; did you mean 'screening'?"
    ),
    "prepare review-benchmark coverge": (
        "review-benchmark cannot prepare 'coverge'; did you mean 'coverage'?"
    ),
    "status weekned": (
        "no run in runs has the id or prefix 'weekned': did you mean 'weekend'?"
    ),
    "status xyz": (
        "no run in runs has the id or prefix 'xyz': list runs with 'siftlog runs'"
    ),
    # models
    "run ask --model gpt-4o-mini": (
        "No provider is known for the model 'gpt-4o-mini': did you mean "
        "'openai/gpt-4o-mini'? Otherwise give --base-url for an OpenAI-compatible "
        "endpoint, or choose PROVIDER/NAME with a provider that litellm knows (openai, "
        "anthropic, gemini, ...), baseline/lexical or recorded:FILE."
    ),
    "run ask --model opnai/gpt-4o-mini --budget 1": (
        "A budget needs the price of opnai/gpt-4o-mini, which is unknown; did you mean "
        "'openai/gpt-4o-mini'? Otherwise check the name with siftlog models --filter, "
        "or give the price with --price IN,OUT (dollars per million tokens; 0,0 if it "
        "is free)."
    ),
    "limits weekend --model lexcal --rpm 3": (
        "there is no model 'lexcal' here: did you mean 'baseline/lexical'?"
    ),
    # settings, and files
    "run screening --set sede=3": (
        "screening has no setting 'sede'; did you mean 'seed'?"
    ),
    "score weekend --set paprs=x": (
        "ask has no setting 'paprs'; did you mean 'papers'?"
    ),
    "run screening --config option.toml": (
        "There is no option 'modle' (settings of the job go under [settings]); did you "
        "mean 'model'?"
    ),
    "run screening --config table.toml": (
        "There is no option 'modls' (settings of the job go under [settings]); did you "
        "mean 'models'?"
    ),
    "run screening --config of-model.toml": (
        "There is no option 'concurency' under [models.x]; did you mean 'concurrency'?"
    ),
    "run screening --config settings.toml": (
        "There is no option 'setings' (settings of the job go under [settings]); did "
        "you mean 'settings'?"
    ),
    "run screening --config setting.toml": (
        "screening has no setting 'sede'; did you mean 'seed'?"
    ),
    "run screening --config idle.toml": (
        "[models.'gpt-4o-mini'] configures a model that the run does not use; did you "
        "mean 'openai/gpt-4o-mini'?"
    ),
    "run-all matrix.toml": ("matrix.toml, [[jobs]], jobs: missing; rename [[job]]."),
    "run-all matrix-option.toml": (
        "matrix-option.toml, the top, modle: there is no such option; did you mean "
        "'model'?"
    ),
    "run-all matrix-job.toml": (
        "matrix-job.toml, [[jobs]] 1, job: There is no job 'screning'; did you mean "
        "'screening'?"
    ),
    "run recipe.toml": (
        "recipe.toml: the recipe has no key 'fild' (did you mean 'fields'?)."
    ),
    # metrics, filters, events
    "score weekend --no-report --fail-under micro.accurcy=0.5": (
        "There is no metric micro.accurcy; did you mean 'micro.accuracy' or "
        "'macro.accuracy'?"
    ),
    "tasks weekend --filter stat:failed": (
        "there is no key 'stat': did you mean 'state'?"
    ),
    "tasks weekend --filter state:faild": (
        "there is no state 'faild': did you mean 'failed'?"
    ),
    "events weekend --kind run_strted": (
        "No event is called run_strted; did you mean 'run_started'?"
    ),
}


@pytest.fixture(scope="module")
def cwd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files that hold mistakes, and a run."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    siftlog("run", "ask", "--limit=2", "--run-id=weekend", "--no-report", cwd=folder)
    return folder


@pytest.mark.parametrize("line", SENTENCES)
def test_a_mistake_is_answered_with_the_nearest_name(cwd: Path, line: str) -> None:
    done = siftlog(*line.split(), cwd=cwd, check=False)
    said = [text for text in done.stderr.splitlines() if text.startswith("siftlog: ")]
    assert said == [f"siftlog: {SENTENCES[line]}"]
    assert done.returncode in {1, 2, 6}
    assert "Usage:" not in done.stderr


def test_a_port_that_another_process_has_is_a_sentence(cwd: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = siftlog("simulate", f"--port={port}", cwd=cwd, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"siftlog: Port {port} cannot be served (Address already in use): choose "
        "another with --port, or 0 for any that is free.\n"
    )


@pytest.mark.parametrize(
    ("word", "model"),
    [
        ("gpt-4o-mini", "openai/gpt-4o-mini"),
        ("gpt4o-mini", "openai/gpt-4o-mini"),
        ("openai/gpt-4o-mni", "openai/gpt-4o-mini"),
        ("gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        ("deepseek-chat", "deepseek/deepseek-chat"),
        ("text-embedding-3-small", "openai/text-embedding-3-small"),
        ("lexical", "baseline/lexical"),
        ("baselin/lexical", "baseline/lexical"),
    ],
)
def test_a_model_without_its_provider_is_known(word: str, model: str) -> None:
    assert nearest_models(word) == [model]


@pytest.mark.parametrize("word", ["openai/gpt-4o-mini", "my-model", "xyz"])
def test_a_model_that_is_right_or_like_no_other_has_no_near_one(word: str) -> None:
    assert nearest_models(word) == []


def test_a_model_is_not_doubted_where_its_endpoint_is_given(cwd: Path) -> None:
    words = ("run", "ask", "--model=gpt4o-mini", "--base-url=http://127.0.0.1:9/v1")
    done = siftlog(*words, "--budget=1", cwd=cwd, check=False)
    assert "which is unknown; check the name" in done.stderr


@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_every_command_answers_an_unknown_option_with_a_sentence(
    cwd: Path, name: str
) -> None:
    done = siftlog(name, "--nonsense-option", "x", "y", cwd=cwd, check=False)
    assert done.returncode in {1, 2}
    assert done.stdout == ""
    (said,) = done.stderr.splitlines()
    assert said.startswith("siftlog: ")
