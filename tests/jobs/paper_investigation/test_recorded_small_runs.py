"""Small runs, stand-alone files, the data: what commands print, known numbers.

Imported under the old rules, recorded answers give the files that lie beside them.

Every figure here was computed independently of this project; the commands must print
it, not some function. Where the recorded programs printed a file, ours is that file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.paper_investigation.recorded import (
    GEMINI,
    GPT,
    HAIKU,
    JOB,
    MINI,
    OPUS,
    RUNS,
    SONNET,
    Recorded,
)
from tests.processes import siftlog

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(300)]

# -- the small runs --------------------------------------------------------------------


def test_the_first_small_run(recorded: Recorded) -> None:
    profile, default = recorded.profile("r031950"), recorded.scored("r031950")
    assert profile.value(SONNET, "avg_paper_score") == 0.4235867446393762
    assert default.value(SONNET, "avg_paper_score") == 0.42671174463937617
    assert profile.value(SONNET, "pipeline.TOTAL.correct") == 67
    assert default.value(SONNET, "pipeline.TOTAL.correct") == 68
    assert default.value(SONNET, "pipeline.TOTAL.questions") == 111
    name = "anthropic_claude-sonnet-4-5-20250929_paper_investigation_responses.jsonl"
    lines = (default.folder / name).read_text().splitlines()
    assert [json.loads(line)["paper_score"] for line in lines] == [
        *(0.765625, 0.32407407407407407, 0.6666666666666666, 0.0),
        0.3771929824561403,
    ]


def test_the_second_small_run(recorded: Recorded) -> None:
    profile, default = recorded.profile("r043720"), recorded.scored("r043720")
    assert profile.value(OPUS, "avg_paper_score") == 0.6092509920634921
    assert default.value(OPUS, "avg_paper_score") == 0.6196676587301587
    assert default.value(OPUS, "pipeline.TOTAL.correct") == 55
    assert default.value(OPUS, "pipeline.TOTAL.questions") == 82
    assert default.value(GPT, "avg_paper_score") is None
    for scored in (default, profile):
        assert scored.value(GPT, "papers_scored") == 0
        assert scored.value(GPT, "papers_skipped.unknown_skip") == 2
    name = "gpt-5.2_paper_investigation_summary.txt"
    assert "Avg Paper Score:      n/a" in (default.folder / name).read_text()
    assert "Avg Paper Score:      0.000" in (profile.folder / name).read_text()


EXTRACTION = {
    OPUS: (0.8, 0.5301470588235293, 4, 0.49704761904761907, "14/49/1"),
    HAIKU: (0.7333333333333333, 0.45290322580645165, 5, 0.502020202020202, "13/53/2"),
    SONNET: (0.8, 0.5295518207282912, 4, 0.49618181818181817, "14/51/1"),
    "gpt-4o": (0.6666666666666666, 0.7555555555555555, 4, 0.5505050505050505, "12/9/3"),
    GPT: (0.6666666666666666, 0.6311605723370429, 4, 0.44851282051282054, "12/44/3"),
    "gpt-5": (
        0.7333333333333333,
        0.47955182072829133,
        4,
        0.4461818181818182,
        "13/52/2",
    ),
}


@pytest.mark.parametrize("model", EXTRACTION)
def test_extraction_alone(recorded: Recorded, model: str) -> None:
    scored = recorded.scored("extract")
    recall, precision, n, f1, counts = EXTRACTION[model]
    paths = ("avg_variant_recall", "avg_precision", "avg_f1")
    # the known figures were summed from left to right, ours exactly: an ulp apart
    means = pytest.approx((recall, precision, f1), abs=2e-16)
    assert tuple(scored.value(model, path) for path in paths) == means
    assert scored.metric(model, "avg_precision")["n_defined"] == n
    micro = [scored.value(model, f"class.MICRO-AVG.{c}") for c in ("tp", "fp", "fn")]
    assert "/".join(map(str, micro)) == counts
    if model == SONNET:
        profile = recorded.profile("extract")
        assert profile.value(model, "avg_variant_recall") == 0.6
    if model == OPUS:
        expected = {"phenotype": "5/6/0", "rsID": "9/32/1", "star_allele": "0/11/0"}
        for name, counts in expected.items():
            found = [
                scored.value(model, f"class.{name}.{c}") for c in ("tp", "fp", "fn")
            ]
            assert "/".join(map(str, found)) == counts


ALONE = {
    HAIKU: (7, 10, 4, 7),
    OPUS: (8, 10, 7, 7),
    SONNET: (6, 10, 6, 8),
    MINI: (5, 10, 6, 8),
    GPT: (10, 10, 6, 7),
    "gpt-5": (10, 10, 5, 7),
    GEMINI: (0, 0, 0, 0),
}


@pytest.mark.parametrize("model", ALONE)
def test_questions_alone_under_both_rule_sets(recorded: Recorded, model: str) -> None:
    for rules in (recorded.scored, recorded.profile):
        mcq, study = rules("mcq"), rules("study")
        found = [
            mcq.value(model, f"pipeline.mcq_{name}.correct")
            for name in ("variant", "drug", "phenotype")
        ]
        found.append(study.value(model, "pipeline.study_param.correct"))
        assert tuple(found) == ALONE[model]
        assert study.value(model, "pipeline.study_param.questions") == 10


def test_empty_replies_are_told_with_what_to_do(recorded: Recorded) -> None:
    scored = recorded.scored("mcq")
    assert scored.value(GEMINI, "replies.empty") == 30
    unparsed = "pipeline.study_param.unparsed"
    assert recorded.scored("study").value(GEMINI, unparsed) == 10
    assert recorded.profile("study").value(GEMINI, unparsed) == 10
    assert recorded.scored("study").value(HAIKU, unparsed) == 0
    said = siftlog("score", "mcq", "--no-record", cwd=recorded.cwd).stdout
    assert "30 of 30 replies are empty" in said
    assert "max_tokens_reasoning" in said
    unparsed = "pipeline.mcq_phenotype.unparsed"
    assert scored.value(HAIKU, unparsed) == 0
    assert recorded.profile("mcq").value(HAIKU, unparsed) == 1


# -- data and grounding ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "numbers"),
    [
        (
            "clinpgx_qa",
            (
                "1123 3718 3605 51 42 2586 797 80 78 64 34 414 90 170 140 266 174 406 "
                "664 334 70 30 275 289 81 82 20 23 5"
            ),
        ),
        ("autogkb_benchmark", "10 36 289 414 140"),
    ],
)
def test_prepare_check_prints_the_numbers_of_the_real_data(
    realdata: Path, tmp_path: Path, source: str, numbers: str
) -> None:
    clinpgx = realdata / "clinpgx_qa"
    done = siftlog(
        *("prepare", JOB, "check", "--json"),
        *("--bench", realdata / source / "variant_bench.jsonl"),
        *("--papers", clinpgx / "papers"),
        *("--questions", clinpgx / "derived_questions"),
        *("--sentence-bench", realdata / source / "sentence_bench.jsonl"),
        cwd=tmp_path,
    )
    said = set(_numbers(json.loads(done.stdout)))
    assert {int(n) for n in numbers.split()} <= said


def _numbers(value: object) -> Iterator[int]:
    """Every whole number in a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, int):
        yield value


def test_a_run_over_the_real_papers_with_the_baseline(
    realdata: Path, tmp_path: Path
) -> None:
    source = realdata / "clinpgx_qa"
    done = siftlog(
        *("run", JOB, "--bench", source / "variant_bench.jsonl", "--run-id=real"),
        *("--papers", source / "papers", "--questions", source / "derived_questions"),
        "--json",
        cwd=tmp_path,
    )
    launch, end = map(json.loads, done.stdout.splitlines())
    assert launch == {"schema": "siftlog.launch/1", "event": "launch", "run": "real"}
    assert end["tasks"]["planned"] == end["tasks"]["completed"] + 1089
    assert end["tasks"]["skipped"] == 1089
    assert end["attempts"]["answered"] == end["tasks"]["completed"] > 300
    said = json.loads(siftlog("score", "real", "--json", cwd=tmp_path).stdout)
    metrics = said["models"]["baseline/lexical"]["metrics"]
    assert metrics["papers_scored"]["value"] == 34
    assert said["missing"] == said["stale"] == 0


@pytest.mark.parametrize(
    ("run", "verdicts"), [("r031950", 666), ("r043720", 292), ("r053253", 4399)]
)
def test_the_profile_gives_every_recorded_verdict_recall_and_score(
    recorded: Recorded, run: str, verdicts: int
) -> None:
    agreement = recorded.profile(run).agreement("clinpgx-qa")
    assert agreement["correct"] == (verdicts, verdicts)
    for fact in ("variant_recall", "paper_score"):
        compared, agreeing = agreement[fact]
        assert compared == agreeing > 0


@pytest.mark.parametrize(
    ("run", "facts", "rows"),
    [
        ("extract", {"predicted", "true_positives", "recall", "parse_failure"}, 30),
        ("mcq", {"prediction_parsed", "correct"}, 210),
        ("study", {"response_p_value", "p_value_correct", "both_correct"}, 70),
    ],
)
def test_the_profile_gives_every_recorded_row_of_the_stand_alone_files(
    recorded: Recorded, run: str, facts: set[str], rows: int
) -> None:
    agreement = recorded.profile(run).agreement("clinpgx-qa")
    assert facts <= set(agreement)
    assert set(agreement.values()) == {(rows, rows)}


@pytest.mark.parametrize("run", ["r031950", "r043720", "extract"])
def test_summaries_are_the_recorded_ones_up_to_the_path_in_the_last_line(
    recorded: Recorded, run: str
) -> None:
    folder = (recorded.source / RUNS[run][0]).parent
    there = sorted(folder.parent.glob(f"{folder.name}/*_summary.txt"))
    assert len(there) in {5, 6}
    for path in there:
        ours = (recorded.profile(run).folder / path.name).read_bytes()
        assert ours.splitlines()[:-1] == path.read_bytes().splitlines()[:-1], path.name


@pytest.mark.parametrize(("run", "count"), [("mcq", 21), ("study", 7)])
def test_stand_alone_summaries_are_the_recorded_ones_up_to_the_examples(
    recorded: Recorded, run: str, count: int
) -> None:
    there = sorted(
        (recorded.source / run.replace("study", "study_param")).glob("*/*.txt")
    )
    assert len(there) == count
    for path in there:
        ours = (recorded.profile(run).folder / path.name).read_text()
        assert ours.split("\nExample")[0] == path.read_text().split("\nExample")[0]


INVESTIGATED = ("pmcid", "model", "ground_truth_variants", "predicted_variants")
JUDGED = ("recalled_variants", "variant_recall", "paper_score")


@pytest.mark.parametrize(
    ("run", "count"), [("r031950", 7), ("r043720", 5), ("r053253", 5)]
)
def test_response_files_hold_the_recorded_lists_and_accuracies(
    recorded: Recorded, run: str, count: int
) -> None:
    for made, stored in made_and_stored(recorded, run, count):
        for name in (*INVESTIGATED, *JUDGED):
            assert made[name] == stored[name], (made["pmcid"], name)
        assert accuracies(made) == accuracies(stored)


def accuracies(row: dict[str, Any]) -> dict[str, float | None]:
    return {v: r["question_accuracy"] for v, r in row["variant_results"].items()}


@pytest.mark.parametrize(("run", "count"), [("extract", 6), ("mcq", 21), ("study", 7)])
def test_stand_alone_files_hold_every_recorded_field(
    recorded: Recorded, run: str, count: int
) -> None:
    for made, stored in made_and_stored(recorded, run, count):
        if "question_id" in stored:
            # an id is text here, whatever JSON wrote it as
            stored["question_id"] = str(stored["question_id"])
        assert {name: made.get(name) for name in stored} == stored


def made_and_stored(
    recorded: Recorded, run: str, count: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each row of our files beside that of the *count* recorded ones."""
    there = sorted(recorded.source.glob(RUNS[run][0]))
    assert len(there) == count
    for path in there:
        ours = rows(recorded.profile(run).folder / path.name)
        yield from zip(ours, rows(path), strict=True)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
