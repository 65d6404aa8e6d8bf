"""`report.txt` says what was scored by what, every property, and each definition."""

from __future__ import annotations

from dataclasses import replace

from jobs.property_extraction.results import PropertyResults
from jobs.property_extraction.summary import report
from jobs.text_format import WIDTH, display_width
from store.events import Input
from tests.jobs.property_extraction.scored_rows import ALIAS, STATED, scored, truth

TRUTH_FILE = Input(setting="truth", path="/home/of/somebody/gt.csv", sha256="ab" * 32)


def lines(results: PropertyResults) -> list[str]:
    dataset = replace(results.dataset, rules=(TRUTH_FILE,))
    return report(replace(results, dataset=dataset)).text.splitlines()


def test_inputs_stand_by_name_and_hash_alone() -> None:
    told = lines(scored(STATED))
    assert any(line.split() == ["truth", "gt.csv", "ab" * 8] for line in told)
    assert not any("somebody" in line for line in told)


def test_every_property_and_every_metric_stands_in_it() -> None:
    results = scored(STATED, STATED, aliases=ALIAS)
    told = lines(results)
    assert told.count("Properties (3), by misses") == 2
    for name in results.columns["m1"].first.counts.names:
        assert sum(line.startswith(f"  {name} ") for line in told) >= 2
    definitions = told[told.index("Definitions") :]
    for metric in results.columns["m1"].metrics:
        assert any(line.startswith(f"  {metric.path}: ") for line in definitions)


def test_encompassment_stands_beside_who_vouches_for_the_aliases() -> None:
    told = lines(scored(STATED, aliases=ALIAS))
    at = told.index("Encompassment: misses whose name was found")
    assert told[at + 2] == f"  alias set {ALIAS.id} (1 human, 1 rejected)"


def test_names_of_any_length_fit_the_page() -> None:
    rows = (truth("P1", "a very long name " * 20, "1"), *scored(STATED).dataset.truth)
    for line in lines(scored(STATED, rows=rows)):
        assert display_width(line) <= WIDTH
