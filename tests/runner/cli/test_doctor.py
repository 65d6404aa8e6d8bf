"""The verb that checks this machine, and what an endpoint does with requests."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from tests.processes import siftlog
from tests.wire_server import Heard, Said, saying

pytestmark = pytest.mark.asyncio

KEY = "sk-canary/0123456789"
NO_KEYS = {"OPENAI_API_KEY": "", "SIFTLOG_API_KEY_ENV": ""}


async def doctor(
    tmp_path: Path, *words: object, **variables: str
) -> CompletedProcess[str]:
    done: CompletedProcess[str] = await asyncio.to_thread(
        siftlog, "doctor", *words, cwd=tmp_path, check=False, env=NO_KEYS | variables
    )
    assert "Traceback" not in done.stderr
    assert KEY not in done.stdout + done.stderr
    return done


def wants_key(heard: Heard) -> Said:
    """Takes no key but `KEY`."""
    if heard.headers.get("authorization") == f"Bearer {KEY}":
        return Said(body={"object": "list", "data": []})
    message = f"Incorrect API key provided: {heard.headers.get('authorization')}"
    return Said(body={"error": {"message": message}}, status=401)


async def test_an_endpoint_that_refuses_the_key_blocks_and_says_what_to_do(
    tmp_path: Path,
) -> None:
    async with saying(wants_key) as server:
        without = await doctor(tmp_path, "--base-url", server.url)
        assert without.returncode == 1
        assert "blocks  endpoint" in without.stdout
        assert "--api-key-env" in without.stdout
        named = ("--base-url", server.url, "--api-key-env", "MY_KEY")
        wrong = await doctor(tmp_path, *named, MY_KEY="sk-other-0123456789")
        assert wrong.returncode == 1
        assert "refuses the key in MY_KEY (status 401)" in wrong.stdout
        assert "sk-other" not in wrong.stdout + wrong.stderr
        right = await doctor(tmp_path, *named, MY_KEY=KEY)
        assert right.returncode == 0
        assert "ok      endpoint" in right.stdout


@pytest.mark.parametrize(
    ("status", "code", "state"), [(404, 0, "note"), (503, 1, "blocks")]
)
async def test_a_list_of_models_that_does_not_come_is_no_ok(
    status: int, code: int, state: str, tmp_path: Path
) -> None:
    async with saying(Said(body={}, status=status)) as server:
        done = await doctor(tmp_path, "--base-url", server.url)
    assert done.returncode == code
    assert f"{state:7} endpoint" in done.stdout


async def test_a_probe_says_its_price_first_and_sends_nothing_unless_told(
    tmp_path: Path,
) -> None:
    async with saying(wants_key) as server:
        endpoint = ("--endpoint", server.url, "--model", "m")
        unknown = await doctor(tmp_path, *endpoint)
        assert (unknown.returncode, unknown.stdout) == (2, "")
        assert "price is unknown" in unknown.stderr
        assert "--yes" in unknown.stderr
        known = await doctor(tmp_path, *endpoint, "--price", "1,2")
        assert known.returncode == 2
        assert "at most $0." in known.stderr
        half = await doctor(tmp_path, "--endpoint", server.url)
        assert half.returncode == 2
        (tmp_path / "there.toml").touch()
        kept = await doctor(tmp_path, *endpoint, "--yes", "--write", "there.toml")
        assert kept.returncode == 2
        assert "there.toml exists already" in kept.stderr
        assert server.heard == []


async def test_a_probe_with_a_refused_key_ends_with_one_sentence(
    tmp_path: Path,
) -> None:
    async with saying(wants_key) as server:
        done = await doctor(
            tmp_path,
            *("--endpoint", server.url, "--model", "m", "--yes"),
            *("--api-key-env", "MY_KEY", "--write", "m.toml"),
            MY_KEY="sk-other-0123456789",
        )
        assert len(server.heard) == 1
    assert done.returncode == 1
    assert "check the key" in done.stdout
    assert "sk-other" not in done.stdout + done.stderr
    assert not (tmp_path / "m.toml").exists()


@pytest.mark.parametrize("name", ["plain", "tgi", "responses"])
async def test_a_run_goes_by_the_file_that_a_probe_wrote(
    name: str, tmp_path: Path
) -> None:
    async with running(SimulateOptions(dialect=name)) as url:
        done = await doctor(
            tmp_path,
            *("--endpoint", url, "--model", "mine", "--api-key-env", "MY_KEY"),
            *("--price", "0,0", "--write", "mine.toml", "--json"),
            MY_KEY=KEY,
        )
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["calls"] <= 8
        assert report["problem"] is None
        written = (tmp_path / "mine.toml").read_text()
        assert written == report["config"]
        block = tomllib.loads(written)["models"]["mine"]
        assert block["api_key_env"] == "MY_KEY"
        assert (block.get("api") == "responses") == (name == "responses")
        assert (block.get("temperature") == "none") == (name != "plain")
        run = await asyncio.to_thread(
            siftlog,
            *("run", "paper-investigation", "--config", "mine.toml", "--limit", "2"),
            *("--run-id", "r", "--no-score", "--no-report"),
            cwd=tmp_path,
            env=NO_KEYS | {"MY_KEY": KEY},
        )
        assert run.returncode == 0, run.stderr
