"""Recorded runs of real models, imported and scored: every published figure."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from jobs.metrics import round12
from jobs.paper_investigation.importing import importer
from jobs.paper_investigation.load import load
from jobs.paper_investigation.scoring import score
from jobs.paper_investigation.settings import Settings
from jobs.testing import MemoryAnswers, tabulated, written
from runner.scorecard import Metric, Scorecard

pytestmark = pytest.mark.realdata

ScoreOf: TypeAlias = Callable[[str, str], Scorecard]

OPUS = "anthropic/claude-opus-4-6"
GPT_5_2 = "gpt-5.2"
SONNET = "anthropic/claude-sonnet-4-5-20250929"
HAIKU = "anthropic/claude-haiku-4-5-20251001"
MINI = "gpt-4o-mini"
GPT_5 = "gpt-5"
GPT_4O = "gpt-4o"
GEMINI = "gemini/gemini-2.5-pro"

LARGE = "paper_investigation/20260213_053253_all_models"
SMALL = "paper_investigation/20260213_031950_all_models"
SMALLEST = "paper_investigation/20260213_043720_all_models"
EXTRACTION = "variant_extraction/20260212_184211_all_models_VE"
MCQ = "mcq/20260213_020814_mc_study_all_models"
STUDY = "study_param/20260213_020814_mc_study_all_models"


@pytest.fixture(scope="module")
def folder(realdata: Path) -> Path:
    return realdata / "clinpgx_qa"


@pytest.fixture(scope="module")
def score_of(folder: Path) -> ScoreOf:
    """The scorecard of a recorded run under a profile, made once."""

    @functools.cache
    def made(run: str, profile: str) -> Scorecard:
        settings = Settings.model_validate({"profile": profile})
        files = tuple(sorted((folder / run).glob("*.jsonl")))
        answers = importer.read(files, settings, model=None, form=None, replicates={})
        return score(load(settings), MemoryAnswers.of_import(answers))

    return made


def metric(card: Scorecard, model: str, path: str) -> Metric:
    (found,) = (each for each in card.models[model] if each.path == path)
    return found


def value(card: Scorecard, model: str, path: str) -> float | None:
    return metric(card, model, path).value


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def agreement(card: Scorecard, profile: str) -> dict[str, tuple[int, int]]:
    return {
        str(row["fact"]): (int(row["agreeing"] or 0), int(row["compared"] or 0))
        for row in tabulated(card, "agreement")
        if row["profile"] == profile
    }


# 10.1: the old profile reproduces what is recorded


@pytest.mark.parametrize(
    ("run", "verdicts", "papers"),
    [(SMALL, 666, 27), (SMALLEST, 292, 10), (LARGE, 4399, 360)],
)
def test_every_verdict_recall_and_score_comes_out_as_recorded(
    score_of: ScoreOf, run: str, verdicts: int, papers: int
) -> None:
    assert agreement(score_of(run, "clinpgx-qa"), "clinpgx-qa") == {
        "variant_recall": (papers, papers),
        "paper_score": (papers, papers),
        "correct": (verdicts, verdicts),
    }


@pytest.mark.parametrize("run", [SMALL, SMALLEST, LARGE])
def test_response_files_hold_the_recorded_lists_and_accuracies(
    folder: Path, score_of: ScoreOf, run: str
) -> None:
    files = written(score_of(run, "clinpgx-qa"))
    for path in (folder / run).glob("*_responses.jsonl"):
        ours = [json.loads(line) for line in files[path.name].splitlines()]
        for made, stored in zip(ours, rows(path), strict=True):
            for name in (
                "pmcid",
                "model",
                "ground_truth_variants",
                "predicted_variants",
                "recalled_variants",
                "variant_recall",
                "paper_score",
            ):
                assert made[name] == stored[name]
            accuracies = {
                variant: result["question_accuracy"]
                for variant, result in stored["variant_results"].items()
            }
            assert accuracies == {
                variant: result["question_accuracy"]
                for variant, result in made["variant_results"].items()
            }


@pytest.mark.parametrize("run", [SMALL, SMALLEST])
def test_investigation_summaries_are_byte_identical_but_for_the_last_path(
    folder: Path, score_of: ScoreOf, run: str
) -> None:
    files = written(score_of(run, "clinpgx-qa"))
    summaries = sorted((folder / run).glob("*_summary.txt"))
    assert len(summaries) == 5
    for path in summaries:
        assert but_for_the_path(files[path.name]) == but_for_the_path(path.read_text())


def test_extraction_results_are_read_from_the_raw_replies_as_recorded(
    folder: Path, score_of: ScoreOf
) -> None:
    card = score_of(EXTRACTION, "clinpgx-qa")
    files = written(card)
    for path in (folder / EXTRACTION).glob("*_eval_results.jsonl"):
        ours = [json.loads(line) for line in files[path.name].splitlines()]
        for made, stored in zip(ours, rows(path), strict=True):
            assert {name: made[name] for name in stored} == stored
    assert set(agreement(card, "clinpgx-qa").values()) == {(30, 30)}


def test_extraction_summaries_are_byte_identical_but_for_the_last_path(
    folder: Path, score_of: ScoreOf
) -> None:
    files = written(score_of(EXTRACTION, "clinpgx-qa"))
    summaries = sorted((folder / EXTRACTION).glob("*_summary.txt"))
    assert len(summaries) == 6
    for path in summaries:
        assert but_for_the_path(files[path.name]) == but_for_the_path(path.read_text())


@pytest.mark.parametrize(("run", "count", "answers"), [(MCQ, 21, 210), (STUDY, 7, 70)])
def test_stand_alone_answers_are_read_and_judged_as_recorded(
    folder: Path, score_of: ScoreOf, run: str, count: int, answers: int
) -> None:
    card = score_of(run, "clinpgx-qa")
    files = written(card)
    paths = sorted((folder / run).glob("*_eval_results.jsonl"))
    assert len(paths) == count
    for path in paths:
        ours = [json.loads(line) for line in files[path.name].splitlines()]
        for made, stored in zip(ours, rows(path), strict=True):
            stored["question_id"] = str(stored["question_id"])
            assert {name: made.get(name) for name in stored} == stored
    assert set(agreement(card, "clinpgx-qa").values()) == {(answers, answers)}


@pytest.mark.parametrize(("run", "count"), [(MCQ, 21), (STUDY, 7)])
def test_stand_alone_summaries_are_identical_up_to_the_first_example(
    folder: Path, score_of: ScoreOf, run: str, count: int
) -> None:
    files = written(score_of(run, "clinpgx-qa"))
    summaries = sorted((folder / run).glob("*_summary.txt"))
    assert len(summaries) == count
    for path in summaries:
        assert head(files[path.name]) == head(path.read_text())


def but_for_the_path(text: str) -> str:
    body, _, last = text.rpartition("Eval results saved to ")
    assert last.endswith("_eval_results.jsonl\n")
    return body


def head(text: str) -> str:
    return text[: text.index("Example")]


# 10.2: five models on 72 papers, under both profiles


@pytest.mark.parametrize(
    ("model", "recall", "default", "profile", "accuracy", "papers", "pooled"),
    [
        (
            OPUS,
            0.8224041005291005,
            0.48873879335684894,
            0.48873879335684894,
            0.894748273970835,
            41,
            0.510421928004798,
        ),
        (
            GPT_5_2,
            0.7936673280423281,
            0.4625195886610817,
            0.4625195886610817,
            0.8656811342592592,
            40,
            0.4813526920427775,
        ),
        (
            SONNET,
            0.7003848003848003,
            0.4217837560459088,
            0.4217837560459088,
            0.86494578460039,
            38,
            0.4575307387079032,
        ),
        (
            HAIKU,
            0.6706785113035113,
            0.4023431565036228,
            0.4027546791373676,
            0.8004382235350281,
            38,
            0.42291632106551064,
        ),
        (
            MINI,
            0.5516354016354017,
            0.2823529554568741,
            0.2823529554568741,
            0.8210116010689991,
            28,
            0.31935668556585367,
        ),
    ],
)
def test_headline_of_the_large_run(
    score_of: ScoreOf,
    *,
    model: str,
    recall: float,
    default: float,
    profile: float,
    accuracy: float,
    papers: int,
    pooled: float,
) -> None:
    ours, theirs = score_of(LARGE, "siftlog"), score_of(LARGE, "clinpgx-qa")
    assert value(ours, model, "papers_scored") == 72
    assert value(ours, model, "papers_skipped") == 0
    assert value(ours, model, "avg_variant_recall") == recall
    assert value(theirs, model, "avg_variant_recall") == recall
    assert value(ours, model, "avg_paper_score") == default
    assert value(theirs, model, "avg_paper_score") == profile
    assert value(ours, model, "avg_question_acc") == accuracy
    assert value(ours, model, "papers_with_questions") == papers
    assert value(theirs, model, "avg_question_acc~pooled_per_paper_zeros") == pooled
    assert value(ours, model, "avg_paper_score~rules_clinpgx") == profile


@pytest.mark.parametrize(
    ("model", "fractions", "total"),
    [
        (OPUS, "285/312 286/288 52/52 271/331", "894/983"),
        (GPT_5_2, "276/308 278/284 49/50 252/323", "855/965"),
        (SONNET, "222/256 230/232 36/36 199/255", "687/779"),
        (HAIKU, "247/304 268/280 41/50 238/319", "794/953"),
        (MINI, "181/224 189/210 37/50 170/235", "577/719"),
    ],
)
def test_right_and_asked_by_pipeline_under_both_rule_sets(
    score_of: ScoreOf, model: str, fractions: str, total: str
) -> None:
    for profile in ("siftlog", "clinpgx-qa"):
        card = score_of(LARGE, profile)
        *pipelines, whole = (
            f"{value(card, model, f'pipeline.{name}.correct')}/"
            f"{value(card, model, f'pipeline.{name}.questions')}"
            for name in (
                "mcq_variant",
                "mcq_drug",
                "mcq_phenotype",
                "study_param",
                "TOTAL",
            )
        )
        assert " ".join(pipelines) == fractions
        assert whole == total


def test_two_verdicts_flip_and_both_are_haikus(score_of: ScoreOf) -> None:
    flips = tabulated(score_of(LARGE, "siftlog"), "flips")
    assert [
        (row["model"], row["pmcid"], row["variant"], row["correct"]) for row in flips
    ] == [
        (HAIKU, "PMC12166262", "rs8140869", True),
        (HAIKU, "PMC1975838", "rs1799853", False),
    ]
    assert [row["expected"] for row in flips] == [
        "p=< 0.05, sig=yes",
        "p== 0.001, sig=yes",
    ]


@pytest.mark.parametrize(
    ("model", "not_asked", "micro", "precision", "with_questions"),
    [
        (OPUS, 108, 0.8368794326241135, 0.44245861868112335, 0.8582730029681249),
        (GPT_5_2, 102, 0.8085106382978723, 0.4321066276364733, 0.8325352595899471),
        (HAIKU, 72, 0.6950354609929078, 0.39414887128260384, 0.7623344017963379),
        (SONNET, 82, 0.648936170212766, 0.4065498664379728, 0.7991692219817219),
        (MINI, 75, 0.5921985815602837, 0.3364247803831137, 0.7260504568891049),
    ],
)
def test_alternatives_of_the_large_run(
    score_of: ScoreOf,
    *,
    model: str,
    not_asked: int,
    micro: float,
    precision: float,
    with_questions: float,
) -> None:
    card = score_of(LARGE, "siftlog")
    assert value(card, model, "recalled_not_asked") == not_asked
    assert value(card, model, "avg_variant_recall~micro") == micro
    assert value(card, model, "avg_precision") == precision
    path = "avg_paper_score~papers_with_questions"
    assert value(card, model, path) == with_questions


@pytest.mark.parametrize(
    ("profile", "worst", "best"),
    [
        (
            "siftlog",
            ["PMC11949125", "PMC12104603", "PMC12227894"],
            ["PMC12191353", "PMC12405907", "PMC3260990"],
        ),
        (
            "clinpgx-qa",
            ["PMC3093392", "PMC11949125", "PMC2668081"],
            ["PMC3260990", "PMC4594719", "PMC6092108"],
        ),
    ],
)
def test_worst_and_best_papers_of_opus(
    score_of: ScoreOf, profile: str, worst: list[str], best: list[str]
) -> None:
    files = written(score_of(LARGE, profile))
    text = files["anthropic_claude-opus-4-6_paper_investigation_summary.txt"]
    named = [line.split()[1] for line in text.splitlines() if line.startswith("  [")]
    assert (named[:3], named[3:]) == (worst, best)


# 10.3: intervals and pairs


@pytest.mark.parametrize(
    ("model", "recall", "score_ends", "accuracy", "pooled"),
    [
        (
            OPUS,
            (0.738188244048, 0.899822255291),
            (0.387241568609, 0.585788768555),
            (0.863392366278, 0.92360607188),
            (0.879250275838, 0.933274957515),
        ),
        (
            GPT_5_2,
            (0.707386326058, 0.875105406746),
            (0.359859303236, 0.559933749908),
            (0.828284138352, 0.897909244452),
            (0.849994477172, 0.913240141335),
        ),
        (
            SONNET,
            (0.603735720298, 0.793054540945),
            (0.322221067738, 0.521648328836),
            (0.831318593993, 0.895800002439),
            (0.850646344396, 0.909899057004),
        ),
        (
            HAIKU,
            (0.568357233045, 0.77163100499),
            (0.30981435065, 0.494062844735),
            (0.760003069935, 0.835325143511),
            (0.80407311949, 0.856075336221),
        ),
        (
            MINI,
            (0.453888024591, 0.645823525433),
            (0.20000416706, 0.36967984251),
            (0.778994524705, 0.862090792706),
            (0.776643134258, 0.830190608481),
        ),
    ],
)
def test_intervals_of_the_large_run_to_twelve_digits(
    score_of: ScoreOf,
    *,
    model: str,
    recall: tuple[float, float],
    score_ends: tuple[float, float],
    accuracy: tuple[float, float],
    pooled: tuple[float, float],
) -> None:
    card = score_of(LARGE, "siftlog")
    for path, ends in (
        ("avg_variant_recall", recall),
        ("avg_paper_score", score_ends),
        ("avg_question_acc", accuracy),
        ("avg_question_acc~questions_pooled", pooled),
        ("pipeline.TOTAL.accuracy", pooled),
    ):
        found = metric(card, model, path)
        assert (found.lo, found.hi) == ends


@pytest.mark.parametrize(
    ("left", "right", "difference", "ends", "results", "sign_p"),
    [
        (
            OPUS,
            GPT_5_2,
            0.0262192046957672,
            (0.00895295678553, 0.0468840422454),
            (20, 2, 50),
            0.00012111663818359375,
        ),
        (
            OPUS,
            SONNET,
            0.06695503731094009,
            (0.0227442323783, 0.120107417804),
            (23, 5, 44),
            0.0009122341871261597,
        ),
        (
            HAIKU,
            SONNET,
            -0.019440599542286045,
            (-0.0741627492625, 0.0392655692292),
            (10, 26, 36),
            0.011330984183587134,
        ),
        (
            HAIKU,
            MINI,
            0.11999020104674868,
            (0.0495991300447, 0.193722410859),
            (25, 10, 37),
            0.016673847800120715,
        ),
        (
            SONNET,
            GPT_5_2,
            -0.0407358326151729,
            (-0.0949530530274, 0.00394222775039),
            (13, 13, 46),
            1.0,
        ),
        (
            SONNET,
            MINI,
            0.1394308005890347,
            (0.0590942606753, 0.220672977561),
            (28, 6, 38),
            None,
        ),
    ],
)
def test_pairs_of_the_large_run(
    score_of: ScoreOf,
    *,
    left: str,
    right: str,
    difference: float,
    ends: tuple[float, float],
    results: tuple[int, int, int],
    sign_p: float | None,
) -> None:
    pairs = tabulated(score_of(LARGE, "siftlog"), "pairs")
    (pair,) = (p for p in pairs if (p["model_a"], p["model_b"]) == (left, right))
    assert (pair["papers"], pair["papers_only_a"], pair["papers_only_b"]) == (72, 0, 0)
    assert pair["avg_paper_score_difference"] == difference
    assert (pair["avg_paper_score_lo"], pair["avg_paper_score_hi"]) == ends
    assert (pair["wins"], pair["losses"], pair["ties"]) == results
    if sign_p is not None:
        assert pair["sign_p"] == round12(sign_p)
    assert pair["recall_part"] is not None
    assert pair["accuracy_part"] is not None
    parts = float(pair["recall_part"]) + float(pair["accuracy_part"])
    assert parts == pytest.approx(difference, rel=0, abs=1e-12)


# 10.4: the small runs


def test_small_run_of_sonnet_gains_one_answer_from_prose(score_of: ScoreOf) -> None:
    ours, theirs = score_of(SMALL, "siftlog"), score_of(SMALL, "clinpgx-qa")
    assert value(theirs, SONNET, "avg_paper_score") == 0.4235867446393762
    assert value(ours, SONNET, "avg_paper_score") == 0.42671174463937617
    assert value(theirs, SONNET, "pipeline.TOTAL.correct") == 67
    assert value(ours, SONNET, "pipeline.TOTAL.correct") == 68
    assert value(ours, SONNET, "pipeline.TOTAL.questions") == 111
    assert [
        row["paper_score"]
        for row in tabulated(ours, "papers")
        if row["model"] == SONNET
    ] == [0.765625, 0.32407407407407407, 0.6666666666666666, 0.0, 0.3771929824561403]


def test_smallest_run_counts_the_last_line_and_skips_what_has_no_list(
    score_of: ScoreOf,
) -> None:
    ours, theirs = score_of(SMALLEST, "siftlog"), score_of(SMALLEST, "clinpgx-qa")
    assert value(ours, OPUS, "avg_paper_score") == 0.6196676587301587
    assert value(ours, OPUS, "pipeline.TOTAL.correct") == 55
    assert value(ours, OPUS, "pipeline.TOTAL.questions") == 82
    assert value(theirs, OPUS, "avg_paper_score") == 0.6092509920634921
    for card in (ours, theirs):
        assert value(card, GPT_5_2, "papers_scored") == 0
        assert value(card, GPT_5_2, "papers_skipped.unknown_skip") == 2
        assert value(card, GPT_5_2, "avg_paper_score") is None
    name = "gpt-5.2_paper_investigation_summary.txt"
    assert "Avg Paper Score:      n/a" in written(ours)[name]
    assert "Avg Paper Score:      0.000" in written(theirs)[name]


# 10.5: extraction alone


@pytest.mark.parametrize(
    ("model", "recall", "precision", "n", "f1", "counts"),
    [
        (OPUS, 0.8, 0.530147058823529, 4, 0.497047619047619, (14, 49, 1)),
        (
            HAIKU,
            0.733333333333333,
            0.452903225806452,
            5,
            0.502020202020202,
            (13, 53, 2),
        ),
        (SONNET, 0.8, 0.529551820728291, 4, 0.496181818181818, (14, 51, 1)),
        (
            GPT_4O,
            0.666666666666667,
            0.755555555555556,
            4,
            0.550505050505051,
            (12, 9, 3),
        ),
        (
            GPT_5_2,
            0.666666666666667,
            0.631160572337043,
            4,
            0.448512820512821,
            (12, 44, 3),
        ),
        # one of its five lists is empty, so four have a precision
        (
            GPT_5,
            0.733333333333333,
            0.479551820728291,
            4,
            0.446181818181818,
            (13, 52, 2),
        ),
    ],
)
def test_extraction_run(
    score_of: ScoreOf,
    *,
    model: str,
    recall: float,
    precision: float,
    n: int,
    f1: float,
    counts: tuple[int, int, int],
) -> None:
    card = score_of(EXTRACTION, "siftlog")
    for path, expected in (
        ("avg_variant_recall", recall),
        ("avg_precision", precision),
        ("avg_f1", f1),
    ):
        assert value(card, model, path) == pytest.approx(expected, rel=1e-14)
    assert metric(card, model, "avg_precision").n_defined == n
    assert hits(card, model, "MICRO-AVG") == counts


def test_extraction_run_by_class_and_under_the_old_lists(score_of: ScoreOf) -> None:
    card = score_of(EXTRACTION, "siftlog")
    assert hits(card, OPUS, "phenotype") == (5, 6, 0)
    assert hits(card, OPUS, "rsID") == (9, 32, 1)
    assert hits(card, OPUS, "star_allele") == (0, 11, 0)
    old = score_of(EXTRACTION, "clinpgx-qa")
    assert value(old, SONNET, "avg_variant_recall") == 0.6
    assert value(card, SONNET, "avg_variant_recall~rules_clinpgx") == 0.6


def hits(card: Scorecard, model: str, name: str) -> tuple[float | None, ...]:
    return tuple(
        value(card, model, f"class.{name}.{each}") for each in ("tp", "fp", "fn")
    )


# 10.6: questions alone


@pytest.mark.parametrize(
    ("model", "right"),
    [
        (HAIKU, (7, 10, 4)),
        (OPUS, (8, 10, 7)),
        (SONNET, (6, 10, 6)),
        (MINI, (5, 10, 6)),
        (GPT_5_2, (10, 10, 6)),
        (GPT_5, (10, 10, 5)),
        (GEMINI, (0, 0, 0)),
    ],
)
def test_stand_alone_choices_under_both_profiles(
    score_of: ScoreOf, model: str, right: tuple[int, int, int]
) -> None:
    for profile in ("siftlog", "clinpgx-qa"):
        card = score_of(MCQ, profile)
        assert right == tuple(
            value(card, model, f"pipeline.{name}.correct")
            for name in ("mcq_variant", "mcq_drug", "mcq_phenotype")
        )


def test_unparsed_stand_alone_choices(score_of: ScoreOf) -> None:
    path = "pipeline.mcq_phenotype.unparsed"
    assert value(score_of(MCQ, "clinpgx-qa"), HAIKU, path) == 1
    assert value(score_of(MCQ, "siftlog"), HAIKU, path) == 0
    card = score_of(MCQ, "siftlog")
    assert value(card, GEMINI, "replies.empty") == 30
    assert "30 of 30 replies are empty" in card.summary
    assert "reasoning" in card.summary


@pytest.mark.parametrize(
    ("model", "right"),
    [
        (HAIKU, 7),
        (OPUS, 7),
        (SONNET, 8),
        (MINI, 8),
        (GPT_5_2, 7),
        (GPT_5, 7),
        (GEMINI, 0),
    ],
)
def test_stand_alone_study_parameters_under_both_profiles(
    score_of: ScoreOf, model: str, right: int
) -> None:
    for profile in ("siftlog", "clinpgx-qa"):
        card = score_of(STUDY, profile)
        assert value(card, model, "pipeline.study_param.correct") == right
        assert value(card, model, "pipeline.study_param.questions") == 10
        unparsed = value(card, model, "pipeline.study_param.unparsed")
        assert unparsed == (10 if model == GEMINI else 0)


# 10.7: what models list, looked up in the texts that are at hand


@pytest.mark.parametrize(
    ("model", "rsid", "star"),
    [
        (HAIKU, (187, 187), (60, 67)),
        (OPUS, (194, 195), (62, 66)),
        (SONNET, (173, 176), (75, 86)),
        (MINI, (111, 112), (50, 58)),
        (GPT_5_2, (188, 189), (55, 57)),
    ],
)
def test_predictions_of_the_large_run_that_stand_in_the_text(
    grounded: Scorecard, model: str, rsid: tuple[int, int], star: tuple[int, int]
) -> None:
    for name, (found, judged) in (("rsID", rsid), ("star_allele", star)):
        share = metric(grounded, model, f"grounding.predicted.{name}")
        assert (share.value, share.n) == (found / judged, judged)


@pytest.fixture(scope="module")
def grounded(folder: Path) -> Scorecard:
    """The large run, scored with bench and papers at hand."""
    settings = Settings(papers=folder / "papers", bench=folder / "variant_bench.jsonl")
    files = tuple(sorted((folder / LARGE).glob("*.jsonl")))
    answers = importer.read(files, settings, model=None, form=None, replicates={})
    return score(load(settings), MemoryAnswers.of_import(answers))
