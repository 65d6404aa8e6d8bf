"""A log that is imported, exported and imported again has the same replies."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from runner.imports.forms import read_files, recognised
from tests.commands import command
from tests.runner.imports.foreign_files import eval_log, lines, sample


@pytest.mark.parametrize("form", ["inspect", "every-eval-ever"])
def test_replies_are_the_same_after_an_export_and_another_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    samples = [sample(number, epoch) for number in range(3) for epoch in (1, 2)]
    samples[1]["output"]["choices"][0]["stop_reason"] = "max_tokens"
    path = eval_log(tmp_path / "theirs.eval", *samples)
    imported = command("import", path, "--as", "theirs", "--no-report")
    assert imported.code == 0, imported.err
    exported = command("export", "theirs", "--to", form, "out")
    assert exported.code == 0, exported.err
    (ours,) = (
        file
        for file in (tmp_path / "out").rglob("*")
        if file.is_file() and recognised(file) == form
    )

    def replies(file: Path) -> list[object]:
        return [
            (
                *(reply.item, reply.epoch, reply.model, reply.text, reply.target),
                *(reply.usage, reply.latency_ms),
                reply.messages if form == "inspect" else (),
            )
            for _, reply in read_files([file])
        ]

    assert replies(ours) == replies(path)
    assert command("import", ours, "--as", "ours", "--no-report").code == 0
    compared = command("compare", "theirs", "ours", "--metric", "accuracy")
    assert "+0.000" in compared.out


def _exported(run: str, out: Path) -> Path:
    """Export a run of one model as Every Eval Ever; return the file of its samples."""
    done = command("export", run, "--to", "every-eval-ever", out)
    assert done.code == 0, done.err
    (samples,) = out.rglob("*_samples.jsonl")
    return samples


def _imported(path: Path, run: str) -> None:
    done = command("import", path, "--as", run, "--no-report")
    assert done.code in {0, 3}, done.err  # 3: there are failed calls


Scores = Mapping[tuple[str, int], Mapping[str, float]]


def _scores(path: Path) -> Scores:
    """Return the scores of a file by item and replicate."""
    seen: Counter[str] = Counter()
    scores: dict[tuple[str, int], Mapping[str, float]] = {}
    for _, reply in read_files([path]):
        seen[reply.item] += 1
        scores[reply.item, seen[reply.item]] = dict(reply.scores)
    return scores


SCORERS = ("exact", "f1", "a.b c/d", "replies")
"""Names of scorers; the last is also that of the job's verdicts."""

VALUES = st.sampled_from([0.0, 1.0, 0.3, 7.0, 5e-324]) | st.floats(-1e6, 1e6)


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Plain lines of several replies to each item, failures too."""
    reply = st.sampled_from(
        [{"reply": "It is 4"}, {"reply": ""}, {"error": "RateLimitError"}]
    )
    scores = st.dictionaries(st.sampled_from(SCORERS), VALUES, min_size=1)
    targets = [draw(st.sampled_from(["4", None])) for _ in range(6)]
    return [
        {
            "id": f"q{item}",
            "prompt": f"Say {item}",
            "model": "m/1",
            "target": target,
            "scores": draw(scores),
            **draw(reply),
        }
        for item, target in enumerate(targets)
        for _ in range(draw(st.integers(1, 3)))
    ]


FOLDERS = itertools.count()


@settings(max_examples=4, phases=[Phase.generate])
@given(rows())
def test_scores_of_another_tool_are_the_same_after_an_export_and_another_import(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp(f"scores{next(FOLDERS)}")
        patch.chdir(folder)
        theirs = lines(folder / "theirs.jsonl", *rows)
        _imported(theirs, "theirs")
        first = _exported("theirs", folder / "first")
        own = _scores(theirs)
        assert {
            reply: {name: of[name] for name in own[reply]}
            for reply, of in _scores(first).items()
        } == own
        _imported(first, "ours")
        second = _exported("ours", folder / "second")
        assert _scores(second) == _scores(first)


def test_means_of_scores_compare_equal_after_an_export_and_another_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    samples = [sample(number, epoch) for number in range(3) for epoch in (1, 2)]
    for number, each in enumerate(samples):
        each["scores"]["length"]["value"] = number**2
    del samples[2]["scores"]["length"]
    _imported(eval_log(tmp_path / "theirs.eval", *samples), "theirs")
    _imported(_exported("theirs", tmp_path / "out"), "ours")
    for metric in ("score.includes", "score.length"):
        compared = command("compare", "theirs", "ours", "--metric", metric)
        assert compared.code == 0, compared.err
        assert "differs by +0.000" in " ".join(compared.out.split())
