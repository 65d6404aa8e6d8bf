"""The entry for programs that load no job: requests, responses, and how they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import click
import pytest

from runner import compute
from runner.cli import main as command_line


def response(printed: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    *records, end = (json.loads(line) for line in printed.splitlines())
    return records, end


def command_that_ends_with(
    monkeypatch: pytest.MonkeyPatch, code: int, sentence: str = ""
) -> None:
    @click.command()
    def score() -> int:
        click.echo('{"a": 1}')
        if sentence:
            click.echo(sentence, err=True)
        return code

    monkeypatch.setattr(command_line.cli, "get_command", lambda *_: score)


@pytest.mark.parametrize("code", [0, 3, 4, 6])
def test_a_judgement_of_the_run_comes_with_its_records(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    command_that_ends_with(monkeypatch, code, "siftlog: a note.")
    compute.respond(["score"])
    assert response(capsys.readouterr().out) == (
        [{"a": 1}],
        {"exit_code": code, "error": ""},
    )


@pytest.mark.parametrize("code", [1, 2, 5])
def test_any_other_code_is_an_error_with_the_last_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    command_that_ends_with(monkeypatch, code, "note\nsiftlog: No such run.")
    compute.respond(["score"])
    captured = capsys.readouterr()
    assert response(captured.out)[1] == {"exit_code": code, "error": "No such run"}
    assert not captured.err


def test_a_command_that_says_nothing_is_an_error_with_its_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command_that_ends_with(monkeypatch, 1)
    compute.respond(["score"])
    assert response(capsys.readouterr().out)[1]["error"] == (
        "siftlog score ended with code 1 and no output: run it yourself"
    )


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ("{", "the request is not JSON"),
        ("", "the request is not JSON"),
        ("[]", "the request needs a command"),
        ('{"command": "score"}', "the request needs a command"),
        ('{"command": "run", "arguments": []}', "the request needs a command"),
        ('{"command": "score", "arguments": "x"}', "the request needs a command"),
        ('{"command": "score", "arguments": [1]}', "the request needs a command"),
    ],
)
def test_what_is_no_request_is_refused_in_one_sentence(
    request_: str, sentence: str
) -> None:
    with pytest.raises(compute.RequestError, match=f"^{sentence}"):
        compute.read_request(request_)


def test_a_request_is_a_command_and_its_arguments() -> None:
    text = json.dumps({"command": "compare", "arguments": ["a b", "--json"]})
    assert compute.read_request(text) == ["compare", "a b", "--json"]


def test_the_process_answers_with_a_complete_response_also_where_it_refuses() -> None:
    done = subprocess.run(
        (sys.executable, "-P", "-m", "runner.compute", "{}"),
        capture_output=True,
        text=True,
        check=True,
    )
    records, end = response(done.stdout)
    assert not records
    assert end["exit_code"] == 2
    assert end["error"].startswith("the request needs a command")


def test_it_lowers_its_priority_before_it_loads_a_command() -> None:
    code = (
        "import os, sys; from runner import compute; "
        "compute.respond = lambda _: "
        "print(os.nice(0), 'runner.cli.main' in sys.modules); "
        'sys.argv[1:] = [\'{"command": "score", "arguments": []}\']; '
        "compute.main()"
    )
    done = subprocess.run(
        (sys.executable, "-P", "-c", code), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(min(os.nice(0) + 10, 19)), "False"]
