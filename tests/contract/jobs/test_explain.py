"""`explain` has a page for every item of a run, which prints and quotes its texts."""

from __future__ import annotations

from store.printable import printable
from tests.contract.jobs.jobs import JobCase, SampleRuns

FOOT = "The whole run over trivial baselines:"
"""What ends all pages together."""


def test_every_item_has_a_page(case: JobCase, sample_runs: SampleRuns) -> None:
    items = case.items()
    assert len(items) > 3
    done = sample_runs.of(case).command("explain", *items)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert all(line == printable(line) for line in lines)
    assert all(any(item in line for line in lines) for item in items)


def test_a_page_is_the_same_alone_and_among_others(
    case: JobCase, sample_runs: SampleRuns
) -> None:
    run, items = sample_runs.of(case), case.items()[:2]
    together = run.command("explain", *items).out
    pages = [run.command("explain", item).out.partition(FOOT)[0] for item in items]
    assert len({*pages}) == 2
    assert all(page.strip() in together for page in pages)
    assert together.count(FOOT) == 1


def test_an_item_that_is_not_there_is_refused_in_a_sentence(
    case: JobCase, sample_runs: SampleRuns
) -> None:
    item = f"{case.items()[0]}9\x1b[2J"
    done = sample_runs.of(case).command("explain", item)
    assert done.code in {1, 2}
    assert done.out == ""
    assert done.err.startswith("siftlog: ")
    assert done.err.count("\n") == 1
    assert done.err.rstrip("\n").isprintable()
    assert "\x1b" not in done.err
