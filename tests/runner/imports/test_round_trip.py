"""A log that is imported, exported and imported again has the same replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.imports.forms import read_files, recognised
from tests.commands import command
from tests.runner.imports.foreign_files import eval_log, sample


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
