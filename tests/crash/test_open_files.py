"""A process that may open few files makes fewer calls, and says why."""

from __future__ import annotations

import asyncio
import errno
import subprocess
from pathlib import Path

import aiohttp
import httpx
import pytest
from aiohttp.client_reqrep import ConnectionKey

from runner.clients.client import ClientOptions, Keyring
from runner.clients.http_client import HttpSender
from runner.errors import OutOfFiles
from runner.limits.breaker import Breaker
from tests.corpus import write_corpus
from tests.processes import SIFTLOG, environment, simulated, status


def _limited(files: int, *words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            "/bin/bash",
            "-c",
            f'ulimit -n {files}; exec "$0" "$@"',
            SIFTLOG,
            *map(str, words),
        ],
        cwd=cwd,
        env=environment(None),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_few_open_files_make_fewer_calls_and_no_failure(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 12)
    server = ("--latency-ms", 100, "--job", "paper-investigation")
    with simulated(*server, cwd=tmp_path) as url:
        done = _limited(
            64,
            *("run", "paper-investigation", *corpus, "--run-id=r", "--model=x"),
            f"--base-url={url}",
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    assert "this process may have 64 files open (ulimit -n)" in done.stderr
    assert "raise the limit with: ulimit -n 1024" in done.stderr
    seen = status(tmp_path, "r")
    assert seen["attempts"]["failed"] == 0
    assert seen["tasks"]["failed"] == 0
    # what was lowered for this process is not what the run is resumed with
    assert "concurrency = 256" in (tmp_path / "runs/r/run.toml").read_text()


def test_no_room_for_a_single_call_is_one_sentence(tmp_path: Path) -> None:
    done = _limited(
        28,
        *("run", "paper-investigation", "--run-id=r", "--model=x"),
        *("--base-url=http://127.0.0.1:9/v1", "--allow-unknown-price"),
        cwd=tmp_path,
    )
    assert done.returncode in {1, 2}
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert "(ulimit -n)" in last
    assert "ulimit -n " in last.partition("(ulimit -n)")[2]


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_what_this_process_cannot_open_is_no_fault_of_the_endpoint(code: int) -> None:
    key = ConnectionKey(
        host="h",
        port=1,
        is_ssl=False,
        ssl=True,
        proxy=None,
        proxy_auth=None,
        proxy_headers_hash=None,
        server_hostname=None,
    )
    error = aiohttp.ClientConnectorError(key, OSError(code, "Too many open files"))

    class Full:
        async def handle_async_request(self, _: httpx.Request) -> httpx.Response:
            raise error

        async def aclose(self) -> None:
            """Nothing is open."""

    async def main() -> None:
        sender = HttpSender("http://h/v1", ClientOptions(), Keyring())
        await sender.close()
        sender._transport = Full()  # type: ignore[assignment]
        with pytest.raises(OutOfFiles, match="too many files are open here") as raised:
            await sender.send(httpx.Request("POST", "http://h/v1"))
        assert not raised.value.was_sent
        breaker = Breaker("http://h/v1")
        for _ in range(100):
            breaker.failed(raised.value, 0.0)
        assert not breaker.statistics().is_open

    asyncio.run(main())
