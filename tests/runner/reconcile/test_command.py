"""The command `siftlog reconcile` on a run against a simulated endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from runner.cli.console import CHECK_FAILED, DONE, ERROR, USAGE
from runner.cli.reconcile import LISTED
from runner.simulate.billing import LedgerLine
from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.dialects import dialect
from tests.runner.reconcile.invoices import Charged, charged_lines, litellm_record

JOB = "paper-investigation"
MODEL = "openai/sim-1"


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, list[Charged]]]:
    """A run of a few calls, and what it is rightly billed."""
    folder = tmp_path_factory.mktemp("reconciled")
    with dialect("litellm-proxy", job=JOB, bill_price="2,8,0.5") as endpoint:
        siftlog(
            *("run", JOB, "--run-id=r", f"--model={MODEL}", "--price=2,8,0.5"),
            *(f"--base-url={endpoint.base_url}", "--api-key-env=LOOPBACK_KEY"),
            *("--no-score", *write_corpus(folder / "corpus", 3)),
            cwd=folder,
            env={"LOOPBACK_KEY": "sk-loopback-0123456789abcdefghij"},
        )
        yield folder, charged_lines(endpoint.ledger.lines, (), _is_known)


def _is_known(line: LedgerLine | Any) -> bool:
    return bool(line.tells_usage)


def _write(folder: Path, lines: list[Charged]) -> Path:
    path = folder / "spend.jsonl"
    path.write_text("".join(f"{json.dumps(litellm_record(x))}\n" for x in lines))
    return path


def test_a_right_bill_ends_with_0(run: tuple[Path, list[Charged]]) -> None:
    folder, charged = run
    path = _write(folder, charged)
    done = siftlog("reconcile", "r", path, cwd=folder)
    assert done.returncode == DONE
    assert f"litellm, {len(charged)} lines" in done.stdout
    assert "Differences" not in done.stdout
    values = json.loads(siftlog("reconcile", "r", path, "--json", cwd=folder).stdout)
    assert values["schema"] == "siftlog.reconciliation/1"
    assert values["residual_usd"] == 0
    assert values["billed_usd"] == values["logged_usd"]
    assert values["billed_usd"] == float(sum(line.cost for line in charged))


def test_a_wrong_bill_ends_with_6_and_names_row_cause_and_call(
    run: tuple[Path, list[Charged]],
) -> None:
    folder, charged = run
    path = _write(folder, [*charged, charged[1]])
    done = siftlog("reconcile", "r", path, cwd=folder, check=False)
    assert done.returncode == CHECK_FAILED
    assert "double charge" in done.stdout
    done = siftlog("reconcile", "r", path, "--json", cwd=folder, check=False)
    values = json.loads(done.stdout)
    (difference,) = values["differences"]
    assert difference["cause"] == "double charge"
    assert difference["row"] in {2, len(charged) + 1}
    assert Decimal(str(difference["amount_usd"])) == charged[1].cost
    assert difference["call"]["model"] == MODEL
    assert values["residual_usd"] == 0


def test_a_long_list_says_how_many_more_there_are(
    run: tuple[Path, list[Charged]],
) -> None:
    folder, charged = run
    twice = [line for line in charged for _ in (1, 2)]
    done = siftlog("reconcile", "r", _write(folder, twice), cwd=folder, check=False)
    left = len(charged) - LISTED
    assert left > 0
    assert f"and {left:,} more: --json lists all" in done.stdout


def test_a_file_without_a_line_of_the_run_is_refused(
    run: tuple[Path, list[Charged]],
) -> None:
    folder, _ = run
    (folder / "old.csv").write_text(
        f"time,model,cost_usd\n2020-01-01T00:00:00Z,{MODEL},1\n"
        "2020-01-02T00:00:00Z,m,1\n"
    )
    done = siftlog("reconcile", "r", "old.csv", cwd=folder, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(
        f"siftlog: old.csv has no line of this run: it has m, {MODEL} from "
        "2020-01-01T00:00:00+00:00 to 2020-01-02T00:00:00+00:00, and the run called "
        f"{MODEL} from 20"
    )


def test_what_is_unexplained_is_the_residual(run: tuple[Path, list[Charged]]) -> None:
    folder, charged = run
    path = _write(folder, charged)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    records[0]["spend"] += 0.000000012347
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    done = siftlog("reconcile", "r", path, cwd=folder, check=False)
    assert done.returncode == CHECK_FAILED
    assert "0.000000012347" in done.stdout
    assert "unexplained" in done.stdout


def test_errors_are_one_sentence(run: tuple[Path, list[Charged]]) -> None:
    folder, _ = run
    path = folder / "other.csv"
    path.write_text("a,b\n1,2\n")
    done = siftlog("reconcile", "r", path, cwd=folder, check=False)
    assert done.returncode == ERROR
    assert done.stderr.startswith(f"siftlog: {path} row 2: no form of docs/reconcile")
    assert done.stderr.count("\n") == 1
    done = siftlog("reconcile", "none", path, cwd=folder, check=False)
    assert done.returncode == USAGE
    assert done.stderr.count("\n") == 1
