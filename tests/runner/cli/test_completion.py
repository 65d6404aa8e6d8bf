"""What the process answers to a shell by click's protocol; what shells make of it."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from runner.cli.candidates import setting_names
from runner.model_names import model_names
from runner.registry import job_names, load_job
from tests.commands import command, siftlog
from tests.processes import SIFTLOG, environment
from tests.terminals import on_terminal

CPU_S = 0.3
"""Processor time of a completion; its wall time is also that of other work."""


@pytest.fixture(scope="module")
def cwd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, a recipe and a file of another kind."""
    folder = tmp_path_factory.mktemp("completing")
    words = ("run", "ask", "--limit=1", "--no-report")
    siftlog(*words, "--run-id=first", cwd=folder)
    siftlog(*words, "--run-id=second", cwd=folder)
    config = folder / "runs/first/run.toml"
    config.write_text(config.read_text().replace("baseline/lexical", "local/mine"))
    os.utime(folder / "runs/first", (1, 1))
    (folder / "mine.toml").touch()
    (folder / "notes.md").touch()
    return folder


def _answer(cwd: Path, line: str, of: str = "fish") -> list[str]:
    """The lines that the process answers for a line of words."""
    word = line.rpartition(" ")[2]
    done = subprocess.run(
        [SIFTLOG],
        cwd=cwd,
        env=environment(
            {
                "_SIFTLOG_COMPLETE": f"{of}_complete",
                "COMP_WORDS": line,
                "COMP_CWORD": word,
                "COMP_LINE": line,
                "COMP_WORD": word,
            }
        ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def _words(cwd: Path, line: str) -> list[str]:
    """The words that complete a line; `file` for names of files."""
    rows = (row.split("\t") for row in _answer(cwd, line) if row)
    return [row[0] if row[0] in {"file", "dir"} else row[1] for row in rows]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("siftlog resu", ["resume"]),
        ("siftlog gener", []),  # an old spelling
        ("siftlog cache pr", ["prune"]),
        ("siftlog run scr", ["screening"]),
        ("siftlog run mi", ["mine.toml"]),
        ("siftlog run no", ["file"]),
        ("siftlog generate scr", ["screening"]),
        ("siftlog status ", ["last", "second", "first"]),
        ("siftlog status --runs-dir nowhere ", ["file"]),
        ("siftlog status --runs-dir runs fi", ["first"]),
        ("siftlog compare second fi", ["first"]),
        ("siftlog prompts s", ["second", "screening"]),
        ("siftlog run screening --set show_i", ["show_ids="]),
        ("siftlog run screening --show-i", ["--show-ids"]),
        ("siftlog run screening --tables ", ["file"]),
        ("siftlog run mine.toml --set pap", ["papers="]),
        ("siftlog score second --set pap", ["papers="]),
        ("siftlog score last --set pap", ["papers="]),
        ("siftlog run ask --model lo", ["local/mine"]),
        ("siftlog run ask --model=lo", ["--model=local/mine"]),
        ("siftlog pause first --model ", ["local/mine"]),
        ("siftlog run ask --model gemin", ["gemini/"]),
        ("siftlog run ask --api c", ["chat"]),
        ("siftlog run ask --dry", ["--dry-run"]),
        ("siftlog run --config ", ["file"]),
        ("siftlog run --no-cache scr", ["screening"]),
        ("siftlog export first an", ["answers"]),
        ("siftlog completion z", ["zsh"]),
        ("siftlog nonsense ", []),
        ("siftlog run nonsense --set ", ["file"]),
        ("siftlog run 'unclosed", ["file"]),
    ],
)
def test_a_line_is_completed(cwd: Path, line: str, words: list[str]) -> None:
    assert _words(cwd, line) == words


def test_a_provider_is_followed_by_its_models(cwd: Path) -> None:
    models = _words(cwd, "siftlog run ask --model openai/gpt-4o")
    assert "openai/gpt-4o-mini" in models
    assert {*models} == {n for n in model_names() if n.startswith("openai/gpt-4o")}


def test_items_of_a_run_are_completed(cwd: Path) -> None:
    (item,) = _words(cwd, "siftlog show second ")
    assert item
    assert _words(cwd, f"siftlog explain second {item[:3]}") == [item]
    assert _words(cwd, "siftlog show second nonsense") == ["file"]


def test_every_command_is_offered_with_its_line_of_help(cwd: Path) -> None:
    rows = [row.split("\t") for row in _answer(cwd, "siftlog ")]
    assert ["plain", "status", "Show the status of a run."] in rows
    assert all(text for _, _, text in rows)


@pytest.mark.parametrize("job", job_names())
def test_settings_read_from_the_source_are_those_of_the_job(job: str) -> None:
    fields = load_job(job).Settings.model_fields.items()
    assert setting_names(job) == {name: f.description or "" for name, f in fields}


def test_a_job_that_is_not_installed_has_no_settings() -> None:
    assert setting_names("nonsense") == {}


@pytest.mark.parametrize(
    "line",
    [
        *("siftlog ", "siftlog run ", "siftlog run evidence-retrieval --set "),
        *("siftlog status ", "siftlog show second ", "siftlog run ask --model openai/"),
        *("siftlog import ", "siftlog limits second --model ", "siftlog watch "),
    ],
)
def test_a_completion_answers_at_once(cwd: Path, line: str) -> None:
    def taken() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert _answer(cwd, line)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum((after.ru_utime, after.ru_stime, -before.ru_utime, -before.ru_stime))

    # a busy machine makes each slower, and none faster
    assert any(taken() < CPU_S for _ in range(10))


def test_a_line_that_cannot_be_completed_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / "runs/r").mkdir(parents=True)
    (tmp_path / "runs/r/log.db").write_text("no database")
    assert _answer(tmp_path, "siftlog show r ") == []
    assert _answer(tmp_path, "siftlog ", of="nonsense") == []


def test_names_that_a_terminal_would_act_on_are_left_out(tmp_path: Path) -> None:
    for name in ("good", "bad\x1b[31m"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "log.db").touch()
    assert sorted(_words(tmp_path, "siftlog status ")) == ["good", "last"]


SCRIPTS = {
    "bash": "PS1=; source <(SIFTLOG completion bash)",
    "zsh": (
        "PS1=; unsetopt beep; autoload -U compinit; compinit -u -D; "
        "source <(SIFTLOG completion zsh)"
    ),
}
SHELLS = {"bash": "bash --norc --noprofile -i", "zsh": "zsh -f -i", "fish": "fish"}

TYPED = [
    ("siftlog run scr", "siftlog run screening "),
    ("siftlog status sec", "siftlog status second "),
    ("siftlog run ask --model loc", "siftlog run ask --model local/mine "),
    ("siftlog run ask --model=loc", "siftlog run ask --model=local/mine "),
    ("siftlog run ask --model recor", "siftlog run ask --model recorded:"),
    ("siftlog run ask --model=recor", "siftlog run ask --model=recorded:"),
    (
        "siftlog run ask --model ollama/llama3:8",
        "siftlog run ask --model ollama/llama3:8b ",
    ),
    ("siftlog score last --set pap", "siftlog score last --set papers="),
    ("siftlog show first --fi", "siftlog show first --filter "),
    ("siftlog run --config no", "siftlog run --config notes.md "),
]


def _needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_is_one(shell: str, tmp_path: Path) -> None:
    _needs(shell)
    script = tmp_path / "script"
    script.write_text(command("completion", shell).out)
    subprocess.run([shell, "-n", script], check=True)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shell", SCRIPTS)
def test_words_are_completed_at_the_prompt_of_a_shell(shell: str, cwd: Path) -> None:
    _needs(shell)
    path = f"PATH={SIFTLOG.parent}:$PATH"
    with on_terminal(["exec env", path, "TERM=dumb", SHELLS[shell]], cwd=cwd) as screen:
        script = SCRIPTS[shell].replace("SIFTLOG", str(SIFTLOG))
        screen.type(f"{script}; echo rea''dy\n".encode())
        screen.read_until(b"\nready")
        for typed, completed in TYPED:
            before = len(screen.shown)
            screen.type(typed.encode() + b"\t")
            screen.read_until(completed.encode(), before)
            screen.type(b"X")  # stands behind the space, or where there is none
            shown = screen.read_until(b"X", before)[before:].decode()
            shown = shown.replace(" \x08", "")  # zsh shows that it may take it back
            assert f"{completed}X" in shown
            screen.type(b"\x15")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("siftlog run scr", "screening"),
        ("siftlog status ", "last\tthe newest run"),
        ("siftlog run ask --model=loc", "--model=local/mine"),
        ("siftlog run ask --model recor", "recorded:\treplies of a file or a run"),
        ("siftlog show first --fi", "--filter\tFilter of tasks, such as "),
        ("siftlog run --config no", "notes.md"),
    ],
)
def test_words_are_completed_in_fish(cwd: Path, line: str, answer: str) -> None:
    _needs("fish")
    done = subprocess.run(
        [
            *("fish", "--no-config", "-c"),
            f"siftlog completion fish | source; complete -C '{line}'",
        ],
        cwd=cwd,
        env={**environment(None), "PATH": f"{SIFTLOG.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(answer)
