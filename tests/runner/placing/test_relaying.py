"""Requests to a run are handed on, and what concerns all of it is done at once."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec
import pytest

from runner.limits.limiter import Limits
from runner.shards.broker import BrokerServer
from runner.shards.placed_tasks import CommandRelay
from store.control import Command, Payload, send_command
from store.runs import RunFolder


class _Server:
    """Writes down what it is to do."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.limits: dict[str, Limits] = {}
        self.added_pico = 0

    def relay(self, line: bytes) -> None:
        self.lines.append(msgspec.json.decode(line, type=Command).id)

    def set_limits(self, model: str, limits: Limits) -> None:
        self.limits[model] = limits

    def add_budget(self, pico: int) -> None:
        self.added_pico += pico


class _Site:
    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self.server = _Server()
        self.closed = 0
        self.relay = CommandRelay(
            folder=self.folder,
            server=cast("BrokerServer", self.server),
            close=self._close,
            limits={"a": Limits(concurrency=8, rpm=60.0), "b": Limits(concurrency=8)},
        )

    def _close(self) -> None:
        self.closed += 1

    def ask(self, kind: str, payload: Payload | None = None) -> str:
        command = Command.new(kind, payload or {}, at_us=1, expected_state=None)
        send_command(self.folder, command)
        return command.id


@pytest.fixture
def site(tmp_path: Path) -> _Site:
    return _Site(tmp_path)


def test_every_request_is_handed_on_once(site: _Site) -> None:
    asked = [site.ask("pause"), site.ask("resume")]
    site.relay.listen()
    site.relay.listen()
    assert site.server.lines == asked
    assert not site.closed


@pytest.mark.parametrize("kind", ["drain", "cancel"])
def test_a_run_that_is_told_to_end_has_no_shard_placed_any_more(
    site: _Site, kind: str
) -> None:
    asked = site.ask(kind)
    site.relay.listen()
    assert site.closed == 1
    assert site.server.lines == [asked]


def test_of_what_stood_there_before_only_what_waits_for_an_answer_is_done(
    site: _Site,
) -> None:
    asked = [site.ask(kind, {"add_usd": 1.0}) for kind in ("drain", "budget", "budget")]
    site.relay.take_up({asked[0], asked[2]})
    site.relay.listen()
    assert site.server.lines == asked
    assert (site.closed, site.server.added_pico) == (0, 1_000_000_000_000)


def test_limits_of_one_model_or_of_all_are_those_of_all_shards_together(
    site: _Site,
) -> None:
    site.ask("limits", {"model": "a", "tpm": 1000.0})
    site.ask("limits", {"rpm": 120.0})
    site.ask("limits", {"rpm": -1.0})
    site.relay.listen()
    assert site.server.limits == {
        "a": Limits(concurrency=8, rpm=120.0, tpm=1000.0),
        "b": Limits(concurrency=8, rpm=120.0),
    }


def test_money_that_is_added_can_be_lent_and_what_is_no_money_cannot(
    site: _Site,
) -> None:
    for usd in (0.5, -1.0, "much"):
        site.ask("budget", {"add_usd": usd})
    site.relay.listen()
    assert site.server.added_pico == 500_000_000_000
