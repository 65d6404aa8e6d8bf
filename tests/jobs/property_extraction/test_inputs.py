"""The job's page: its commands run from the top, and print what stands below them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from jobs.property_extraction.inputs import SAMPLE
from tests.commands import command

PAGE = (Path(__file__).parents[3] / "docs/property-extraction.md").read_text("utf-8")
OWN_PAPERS = ("gt.csv", "openai/")
"""Words of commands that are about files of the reader's."""

REPORTS = frozenset({"run", "import", "score"})


def commands() -> list[list[str]]:
    """The commands of the page, in its order, on the sample alone."""
    joined = PAGE.replace("\\\n", " ").replace("$SAMPLE", str(SAMPLE))
    lines = re.findall(r"^    siftlog (.*)$", joined, re.MULTILINE)
    own = [line for line in lines if not any(word in line for word in OWN_PAPERS)]
    return [shlex.split(line, comments=True) for line in own]


def test_the_page_shows_what_its_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAMPLE / "replies", "replies")
    shutil.copy(SAMPLE / "candidates.csv", ".")
    printed = ""
    for words in commands():
        quick = ["--no-report"] if words[0] in REPORTS else []
        done = command(*words, *quick)
        assert done.code == 0, (words, done.err)
        printed += done.out
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(shown) == 2
    assert [block for block in shown if block not in printed] == []
