"""Some of the outputs are as they were taken; `make golden` compares all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.cli.command_table import OLD_SPELLINGS
from tests.golden import manifest
from tests.golden.__main__ import ROOT, all_cases, main, wanted_cases
from tests.golden.cases import COMMANDS, Case
from tests.golden.manifest import Difference, entry_of
from tests.golden.samples import realdata_folder
from tests.golden.taking import Tree, content, take

SHORT = ("helps/lists", "errors/prompts", "errors/broken-logs", "runs/killed")
"""Cases that take some seconds together."""


@pytest.mark.timeout(300)
def test_some_outputs_are_as_they_were() -> None:
    patterns = [f"{name}/*" for name in SHORT]
    made = take(Tree(root=ROOT), wanted_cases(Tree(root=ROOT), patterns))
    entries = manifest.read_manifest()
    before = {k: v for k, v in entries.items() if manifest.is_wanted(k, patterns)}
    texts = manifest.read_texts()
    found = [
        f"{each.kind} {each.name}\n"
        + manifest.shown(each.name, texts.get(each.name), made.get(each.name))
        for each in manifest.differences(before, made)
    ]
    assert not found, "\n".join(found)
    assert {name.rpartition("/")[0] for name in before} >= set(SHORT)


def test_the_texts_are_those_of_the_manifest() -> None:
    entries, texts = manifest.read_manifest(), manifest.read_texts()
    assert {name: entry_of(text) for name, text in texts.items()} == {
        name: entry
        for name, entry in entries.items()
        if not name.startswith(manifest.HASH_ONLY)
    }


def test_every_case_has_outputs_and_every_output_a_case() -> None:
    cases = {case.name for case in all_cases(Tree(root=ROOT))}
    entries = manifest.read_manifest()
    assert {c for c in cases if any(e.startswith(f"{c}/") for e in entries)} == cases
    has_data = realdata_folder(ROOT) is not None
    for name in entries:
        if name.startswith(manifest.HASH_ONLY) and not has_data:
            continue  # nothing says which of its cases there are
        parts = name.split("/")
        assert {"/".join(parts[:2]), "/".join(parts[:3])} & cases, name


def test_every_command_has_its_help_in_the_manifest() -> None:
    text = manifest.read_texts()["helps/commands/--help"]
    listed = re.findall(r"^  ([a-z][a-z-]*) +[A-Z]", text, flags=re.MULTILINE)
    old = set(OLD_SPELLINGS)
    assert set(listed) == {command.split()[0] for command in COMMANDS} - old


def test_a_changed_a_missing_and_a_new_output_are_named() -> None:
    before = {name: entry_of(name) for name in ("a/same", "a/changed", "a/gone")}
    after = {"a/same": "a/same", "a/changed": "x", "a/new": "a/new"}
    assert list(manifest.differences(before, after)) == [
        Difference(name="a/changed", kind="changed"),
        Difference(name="a/gone", kind="missing"),
        Difference(name="a/new", kind="new"),
    ]
    lines = manifest.shown("a/changed", "one\ntwo\n", "one\nthree\n").splitlines()
    assert lines[-2:] == ["-two", "+three"]


def test_manifest_and_texts_come_back_as_they_were_written(tmp_path: Path) -> None:
    texts = {"b/é": "ü\n", "a/x": "", "realdata/y": "secret"}
    path = tmp_path / "texts.tar.xz"
    manifest.write_texts(texts, path)
    assert manifest.read_texts(path) == {"b/é": "ü\n", "a/x": ""}
    entries = {name: entry_of(text) for name, text in texts.items()}
    manifest.write_manifest(entries, tmp_path / "manifest.txt")
    assert manifest.read_manifest(tmp_path / "manifest.txt") == entries


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("samples/*/imports/*", {"samples/x/imports"}),
        ("samples/*", {"samples/x/imports", "samples/x/replies"}),
        ("runs/done/status*", {"runs/done"}),
        ("*--help", {"samples/x/imports", "samples/x/replies", "runs/done"}),
        ("nothing/*", set()),
    ],
)
def test_a_pattern_makes_the_cases_that_it_may_fit(
    pattern: str, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("samples/x/imports", "samples/x/replies", "runs/done")
    cases = [Case(name=name, steps=()) for name in names]
    monkeypatch.setattr("tests.golden.__main__.all_cases", lambda _: cases)
    found = wanted_cases(Tree(root=ROOT), [pattern])
    assert {case.name for case in found} == expected


def test_a_file_is_read_by_what_it_holds(tmp_path: Path) -> None:
    image = b"\x89PNG\r\n\x1a\n" + bytes(8) + b"\0\0\0\x02\0\0\0\x03"
    (tmp_path / "a.png").write_bytes(image)
    (tmp_path / "b.txt").write_bytes(b"\xff is no UTF-8")
    assert content(tmp_path / "a.png") == "PNG 2x3\n"
    assert content(tmp_path / "b.txt") == "\\xff is no UTF-8"


def test_an_output_that_differs_gives_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.golden.__main__.take", lambda *_, **__: {"a/b": "x"})
    monkeypatch.setattr(manifest, "read_manifest", lambda: {"a/b": entry_of("y")})
    monkeypatch.setattr(manifest, "read_texts", lambda: {"a/b": "y"})
    assert main(["check"]) == 1
    assert "changed  a/b" in capsys.readouterr().out
    monkeypatch.setattr(manifest, "read_manifest", lambda: {"a/b": entry_of("x")})
    assert main(["check"]) == 0
