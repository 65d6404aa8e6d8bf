"""explain by the command, on the shipped sample."""

from __future__ import annotations

import json
from pathlib import Path

from tests.processes import siftlog


def test_command_explains_a_review_before_there_is_a_set(tmp_path: Path) -> None:
    chosen = json.loads(siftlog("explain", "screening", "--json", cwd=tmp_path).stdout)
    assert chosen["n_included"] in range(10, 21)
    # a switch does not take the id that follows it
    words = ("explain", "screening", "--ascii", chosen["review"])
    page = siftlog(*words, cwd=tmp_path).stdout
    assert page.isascii()
    assert page.startswith(f"{chosen['review']}  {chosen['title']}\n")
    assert f"\n   {chosen['candidates_sha256']}\n" in page
    wrong = siftlog("explain", "screening", "980", cwd=tmp_path, check=False)
    assert wrong.returncode == 1
    assert "No review '980' cites any paper; the nearest are 980" in wrong.stderr
    assert list(tmp_path.iterdir()) == []


def test_pages_of_other_jobs_are_for_people_alone(tmp_path: Path) -> None:
    words = ("explain", "evidence-retrieval", "post_13", "--json")
    refused = siftlog(*words, cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert "leave out --json" in refused.stderr
