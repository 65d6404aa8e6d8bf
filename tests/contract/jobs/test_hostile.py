"""Text from outside commands nothing: not a terminal, not a browser, not a figure.

Papers, questions and replies hold control characters, text that runs from right to
left, HTML, formulas and words without end.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.messages import Content, Request
from tests.contract.jobs.jobs import JobCase, SampleRun, run
from tests.jobs.kit.report.reported import Page

TERMINAL = "\x1b[2J\x1b]0;owned\x07\r\x9b31m\u202egnp.exe\u2066"
MARKUP = "--></td></style><script>alert(1)</script><img src=x onerror=alert(1)>"
HOSTILE = f"{TERMINAL} {MARKUP} =HYPERLINK(1) $\\frac{{$ {'w' * 300}"


def hostile_reply(text: str) -> str:
    """A reply whose longer texts end in hostile ones, or one that is nothing else."""
    try:
        return json.dumps(_ending(json.loads(text)))
    except ValueError:
        return f"{text}\n{HOSTILE}"


def _ending(value: Any) -> Any:
    match value:
        case dict():
            return {key: _ending(own) for key, own in value.items()}
        case list():
            return [_ending(own) for own in value]
        case str() if len(value) > 12:  # what is shorter is mostly a choice of words
            return f"{value} {HOSTILE}"
    return value


def hostile_run(
    case: JobCase, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> SampleRun:
    """A run on hostile texts, some of whose replies are hostile too."""
    words = case.texts(folder, lambda text: f"{text} {HOSTILE}" if text else text)
    answer, number = case.job.baseline, iter(range(10**9))

    def baseline(request: Request) -> Content:
        content, n = answer(request), next(number)
        if not isinstance(content, str):
            return content
        return HOSTILE if n % 7 == 3 else hostile_reply(content)

    monkeypatch.setattr(case.job, "baseline", baseline)
    return run(folder, *words)


def assert_harmless(text: str, where: str) -> None:
    """No character of it commands a terminal, or turns what is read around."""
    commands = {
        letter for letter in text if not letter.isprintable() and letter != "\n"
    }
    assert commands == set(), where


@pytest.mark.usefixtures("one_format")
def test_nothing_from_outside_is_more_than_text(
    case: JobCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hostile_run(case, tmp_path, monkeypatch)
    assert made.done.code in {0, 3}, made.done.err
    items = list(case.items())
    shown = {
        "status": made.command("status"),
        "tasks": made.command("tasks", "--limit", 50),
        "explain": made.command("explain", *items[:3], items[-1]),
        "scores": made.command("scores"),
        "prompts": made.command("prompts", "--json"),
    }
    for verb, done in {"run": made.done, **shown}.items():
        assert "Traceback" not in done.err
        assert done.code in {0, 3}, done.err
        assert_harmless(done.out + done.err, verb)
    assert "gnp.exe" in shown["explain"].out
    report = (made.scoring() / "report.html").read_text("utf-8")
    Page(report).assert_closed()
    assert_harmless(report, "report")
    assert "figure could not be drawn" not in report
    texts = [
        each for kind in ("txt", "md") for each in made.scoring().rglob(f"*.{kind}")
    ]
    for path in texts:
        assert_harmless(path.read_text("utf-8"), path.name)
    for path in (made.scoring() / "figures").glob("*.svg"):
        picture = path.read_text("utf-8")
        assert "<script" not in picture
        assert "<img" not in picture
        assert picture.count("-->") == picture.count("<!--")
