"""Help: in sections, within 80 columns, the commonest first, coloured on a terminal."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from runner.cli.command_table import COMMANDS, OLD_SPELLINGS, SECTIONS, cli
from runner.cli.help import LongCommand
from tests import processes
from tests.commands import command, siftlog
from tests.processes import SIFTLOG, environment
from tests.terminals import on_terminal

COLUMNS = 80
MANY = 20
"""Visible options from which a command shows some only."""


def _commands() -> Iterator[tuple[list[str], click.Command]]:
    """Every command with its words, those of groups too."""
    frame = click.Context(cli, info_name="siftlog")
    for name in cli.list_commands(frame):
        top = cli.get_command(frame, name)
        assert top is not None
        yield [name], top
        if isinstance(top, click.Group):
            yield from (
                ([name, member], top.commands[member]) for member in top.commands
            )


EVERY = list(_commands())
LONG = [(words, each) for words, each in EVERY if isinstance(each, LongCommand)]


def _visible(each: click.Command) -> list[click.Option]:
    return [p for p in each.params if isinstance(p, click.Option) and not p.hidden]


@pytest.mark.parametrize("words", [[], *(words for words, _ in EVERY)], ids=" ".join)
def test_help_fits_a_terminal_and_no_line_is_cut(words: list[str]) -> None:
    done = command(*words, "--help")
    assert done.code == 0
    assert done.out.startswith("Usage: siftlog")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert not [line for line in lines if line.endswith("...") and "[" not in line]


def test_the_ten_commonest_commands_come_first_and_all_are_in_a_section() -> None:
    done = command("--help")
    titles = [
        line for line in done.out.splitlines() if re.match(r"[A-Z][a-z ]+$", line)
    ]
    assert titles == [*SECTIONS, "Options"]
    assert len(SECTIONS["Most used"]) == 10
    placed = [name for section in SECTIONS.values() for name in section]
    assert len(placed) == len(set(placed))
    known = cli.list_commands(click.Context(cli))
    assert {*known} <= {*placed}
    listed = re.findall(r"^  ([a-z][a-z-]*)  +\S", done.out, re.MULTILINE)
    assert listed == [name for name in placed if name in known]


@pytest.mark.parametrize(("words", "each"), EVERY, ids=lambda value: str(value)[:20])
def test_a_command_with_many_options_shows_those_that_people_use(
    words: list[str], each: click.Command
) -> None:
    assert isinstance(each, LongCommand) == (len(_visible(each)) > MANY), words


@pytest.mark.parametrize(("words", "each"), LONG, ids=lambda value: str(value)[:20])
def test_the_long_help_shows_every_option_once_and_in_a_section(
    words: list[str], each: LongCommand
) -> None:
    short, long = command(*words, "--help").out, command(*words, "--help-all").out
    assert max(map(len, long.splitlines())) <= COLUMNS
    shown = re.findall(r"^  (?:-h, )?(--[\w-]+)", long, re.MULTILINE)
    names = [option.opts[0] for option in _visible(each)]
    assert sorted(shown) == sorted([*names, "--help"])
    assert re.findall(
        r"^  (--[\w-]+)", long.split("Other options")[1], re.MULTILINE
    ) == ["--help-all"]
    everyday = re.findall(r"^  (--[\w-]+)", short, re.MULTILINE)
    assert 10 <= len(everyday) - 1 <= 16
    more = len(names) - len(everyday)
    assert f"{more} more options: siftlog {' '.join(words)} --help-all" in short


@pytest.mark.parametrize("name", ["resume", "fork"])
def test_options_that_a_run_keeps_have_no_default_of_their_own(name: str) -> None:
    (taken,) = (each for words, each in EVERY if words == [name])
    options = {option.name: option.help or "" for option in _visible(taken)}
    for kept in ("concurrency", "timeout_s", "stop_if"):
        assert options[kept].endswith("[default: the run's]")


def test_run_shows_fifteen_options() -> None:
    short = command("run", "--help").out
    assert len(re.findall(r"^  --(?!help)", short, re.MULTILINE)) == 15


@pytest.mark.parametrize("words", [[], *(words for words, _ in EVERY)], ids=" ".join)
def test_every_command_tells_the_version(words: list[str]) -> None:
    done = command(*words, "--version")
    assert (done.code, done.out) == (0, command("--version").out)
    assert done.out.startswith("siftlog, version ")


@pytest.mark.parametrize(
    ("variables", "is_coloured"),
    [("", True), ("NO_COLOR=1", False), ("TERM=dumb", False), ("NO_COLOR=", True)],
)
def test_colours_are_where_a_terminal_has_them(
    tmp_path: Path, variables: str, is_coloured: bool
) -> None:
    words = ("env", "TERM=xterm", variables, "SIFTLOG", "run", "--help")
    with on_terminal(words, cwd=tmp_path) as terminal:
        shown = terminal.read_until(b"more options: siftlog run --help-all")
    assert b"more options" in shown
    assert (b"\x1b[" in shown) == is_coloured


def test_a_pipe_gets_no_colours(tmp_path: Path) -> None:
    done = subprocess.run(
        [SIFTLOG, "--help"],
        cwd=tmp_path,
        env=environment({"TERM": "xterm"}),
        capture_output=True,
        check=True,
    )
    assert b"\x1b" not in done.stdout


def test_old_spellings_keep_working_and_name_the_new_one(tmp_path: Path) -> None:
    listed = command("--help").out
    for name in OLD_SPELLINGS:
        assert name not in COMMANDS
        assert f"  {name} " not in listed
    done = siftlog("generate", "ask", "--limit=1", "--run-id=r", cwd=tmp_path)
    assert "note: siftlog generate is now siftlog run JOB --no-score.\n" in done.stderr
    assert not (tmp_path / "runs/r/scores").exists()
    old = siftlog("estimate", "ask", "--json", cwd=tmp_path)
    new = siftlog("run", "ask", "--dry-run", "--json", cwd=tmp_path)
    assert old.stdout == new.stdout
    note = "note: siftlog estimate JOB is now siftlog run JOB --dry-run.\n"
    assert (old.stderr.count(note), new.stderr.count("note: ")) == (1, 0)
    old = siftlog("estimate", "--from", "r", cwd=tmp_path)
    new = siftlog("estimate", "r", cwd=tmp_path)
    assert old.stdout == new.stdout
    assert (
        "note: siftlog estimate --from RUN is now siftlog estimate RUN." in old.stderr
    )
    assert new.stderr == ""


def test_a_dry_run_counts_tokens_as_estimate_did(tmp_path: Path) -> None:
    words = ("ask", "--limit=1", "--count-tokens", "--model=openai/gpt-4o-mini")
    # in processes of their own: litellm sets a variable when it is imported
    old = processes.siftlog("estimate", *words, cwd=tmp_path)
    new = processes.siftlog("run", *words, "--dry-run", cwd=tmp_path)
    assert old.stdout == new.stdout
    assert "tokens are counted as litellm does" in new.stdout
    assert not (tmp_path / "runs").exists()
