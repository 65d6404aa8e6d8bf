"""What the verb watch says to somebody who asks for what there is not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.processes import environment, siftlog
from tests.store.logs import written
from tests.store.samples import RUN_STARTED
from tui import watch as module
from tui.render.colours import DARK, MONOCHROME
from tui.watch import watch


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plain", "--inline"), "two ways to watch"),
        (("--rate", "3"), "'3' is not one of"),
        (("--keymap", "nothing.toml"), "does not exist"),
        (("--replay", "10x"), "--replay needs a whole screen"),
        (("--at", "5"), "add --replay 10x"),
        (("--plain", "nobody"), "no run in runs has the id or prefix 'nobody'"),
    ],
)
def test_what_cannot_be_is_a_sentence(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = siftlog("watch", *words, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_all_bindings_are_printed_as_a_keymap(tmp_path: Path) -> None:
    text = siftlog("watch", "--print-keymap", cwd=tmp_path).stdout
    assert '"tasks.filter" = "slash"' in text


@pytest.mark.parametrize(
    ("variables", "words", "expected"),
    [
        ({}, (), DARK.name),
        ({"NO_COLOR": "1"}, (), MONOCHROME.name),
        ({"NO_COLOR": "1"}, ("--theme", "light"), "siftlog-light"),
        ({"TEXTUAL_THEME": "nord"}, (), "nord"),
        ({"TEXTUAL_THEME": "nord"}, ("--theme", "contrast"), "siftlog-contrast"),
        ({}, ("--theme", "siftlog-monochrome"), MONOCHROME.name),
        ({"TEXTUAL_THEME": "mauve"}, (), "There is no theme 'mauve'"),
        ({"TERM": "dumb"}, (), "lines"),
        ({"CI": "true"}, (), "lines"),
        ({"CI": "true", "TEXTUAL_DRIVER": "some:Driver"}, (), DARK.name),
    ],
)
def test_terminal_and_words_decide_what_is_shown(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    words: tuple[str, ...],
    expected: str,
) -> None:
    shown: list[object] = []
    monkeypatch.setattr(module, "_is_terminal", lambda: True)
    monkeypatch.setattr(module, "_say", lambda *_: shown.append("lines"))
    monkeypatch.setattr(module, "_show", lambda *given, **_: shown.append(given[3]))
    monkeypatch.setattr(module, "_read_keymap", lambda _: {})
    known = environment(None)
    known.pop("TERM", None)
    alone = {**dict.fromkeys(("TEXTUAL_THEME", "NO_COLOR", "CI")), **known, **variables}
    done = CliRunner().invoke(watch, words, env=alone)
    assert expected in (*shown, done.output) or expected in done.output


def test_a_replay_has_a_speed_and_a_beginning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown: list[tuple[object, object]] = []

    def show_past(*_: object, speed: float, begin: str, **__: object) -> None:
        shown.append((speed, begin))

    monkeypatch.setattr(module, "_is_terminal", lambda: True)
    monkeypatch.setattr(module, "_show_past", show_past)
    monkeypatch.setattr(module, "_read_keymap", lambda _: {})
    run = tmp_path / "r1"
    run.mkdir()
    written(run / "log.db", [RUN_STARTED])
    known = {"CI": None, "TERM": "xterm"}

    def replayed(*words: str) -> str:
        return CliRunner().invoke(watch, [str(run), *words], env=known).output

    replayed("--replay", "20x")
    replayed("--replay=max", "--at=-10m")
    assert shown == [(20.0, "1"), (math.inf, "-10m")]
    assert "is not a speed" in replayed("--replay", "fast")
    assert "needs a whole screen" in replayed("--replay", "2x", "--inline")
