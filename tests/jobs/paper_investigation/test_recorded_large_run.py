"""Five models on 72 papers: what the commands print against known numbers."""

from __future__ import annotations

import pytest

from tests.jobs.paper_investigation.recorded import (
    GPT,
    HAIKU,
    MINI,
    OPUS,
    SONNET,
    Recorded,
    Scored,
)

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(300)]

# -- the large run, default rules ------------------------------------------------------

LARGE_RUN = [
    (OPUS, 0.8224041005291005, 0.48873879335684894, 0.894748273970835, 41),
    (GPT, 0.7936673280423281, 0.4625195886610817, 0.8656811342592592, 40),
    (SONNET, 0.7003848003848003, 0.4217837560459088, 0.86494578460039, 38),
    (HAIKU, 0.6706785113035113, 0.4023431565036228, 0.8004382235350281, 38),
    (MINI, 0.5516354016354017, 0.2823529554568741, 0.8210116010689991, 28),
]


@pytest.mark.parametrize("row", LARGE_RUN, ids=lambda row: row[0])
def test_headline_of_the_large_run(
    recorded: Recorded, row: tuple[str, float, float, float, int]
) -> None:
    model, recall, score, accuracy, papers = row
    scored = recorded.scored("r053253")
    assert scored.value(model, "avg_variant_recall") == recall
    assert scored.value(model, "avg_paper_score") == score
    assert scored.value(model, "avg_question_acc") == accuracy
    assert scored.metric(model, "avg_question_acc")["n_defined"] == papers
    assert scored.value(model, "papers_scored") == 72
    profile = recorded.profile("r053253").value(model, "avg_paper_score")
    assert profile == (0.4027546791373676 if model == HAIKU else score)
    assert scored.value(model, "avg_paper_score~rules_clinpgx") == profile
    assert scored.value(model, "papers_with_questions") == papers
    assert scored.value(model, "papers_skipped") == 0


NAMED = {
    "avg_question_acc~pooled_per_paper_zeros": {
        OPUS: 0.510421928004798,
        GPT: 0.4813526920427775,
        SONNET: 0.4575307387079032,
        HAIKU: 0.42291632106551064,
        MINI: 0.31935668556585367,
    },
    "avg_variant_recall~micro": {
        OPUS: 0.8368794326241135,
        GPT: 0.8085106382978723,
        HAIKU: 0.6950354609929078,
        SONNET: 0.648936170212766,
        MINI: 0.5921985815602837,
    },
    "avg_precision": {
        OPUS: 0.44245861868112335,
        GPT: 0.4321066276364733,
        HAIKU: 0.39414887128260384,
        SONNET: 0.4065498664379728,
        MINI: 0.3364247803831137,
    },
    "avg_paper_score~papers_with_questions": {
        OPUS: 0.8582730029681249,
        GPT: 0.8325352595899471,
        SONNET: 0.7991692219817219,
        HAIKU: 0.7623344017963379,
        MINI: 0.7260504568891049,
    },
    "recalled_not_asked": {OPUS: 108, GPT: 102, SONNET: 82, MINI: 75, HAIKU: 72},
}


@pytest.mark.parametrize("path", NAMED)
def test_named_alternatives_of_the_large_run(recorded: Recorded, path: str) -> None:
    # the first is the mean that the old summaries print, so it is the profile's
    run = recorded.profile if path.endswith("zeros") else recorded.scored
    found = {model: run("r053253").value(model, path) for model in NAMED[path]}
    assert found == pytest.approx(NAMED[path], abs=1e-15)


PIPELINES = {
    OPUS: "285/312 286/288 52/52 271/331 894/983",
    GPT: "276/308 278/284 49/50 252/323 855/965",
    SONNET: "222/256 230/232 36/36 199/255 687/779",
    HAIKU: "247/304 268/280 41/50 238/319 794/953",
    MINI: "181/224 189/210 37/50 170/235 577/719",
}


@pytest.mark.parametrize("model", PIPELINES)
def test_pipelines_of_the_large_run(recorded: Recorded, model: str) -> None:
    names = ("mcq_variant", "mcq_drug", "mcq_phenotype", "study_param", "TOTAL")
    for scored in (recorded.scored("r053253"), recorded.profile("r053253")):
        found = [
            f"{scored.value(model, f'pipeline.{name}.correct')}/"
            f"{scored.value(model, f'pipeline.{name}.questions')}"
            for name in names
        ]
        assert " ".join(found) == PIPELINES[model]


def test_the_two_flips_of_the_large_run_are_listed(recorded: Recorded) -> None:
    flips = recorded.scored("r053253").table("flips")
    assert [row["expected"] for row in flips] == [
        "p=< 0.05, sig=yes",
        "p== 0.001, sig=yes",
    ]
    assert [
        (
            row["model"],
            row["pmcid"],
            row["variant"],
            row["correct"],
            row["other_correct"],
        )
        for row in flips
    ] == [
        (HAIKU, "PMC12166262", "rs8140869", "true", "false"),
        (HAIKU, "PMC1975838", "rs1799853", "false", "true"),
    ]


def test_worst_and_best_papers_are_those_of_the_rules(recorded: Recorded) -> None:
    def listed(scored: Scored) -> list[str]:
        name = "anthropic_claude-opus-4-6_paper_investigation_summary.txt"
        text = (scored.folder / name).read_text()
        return [w for w in text[text.index("WORST") :].split() if w.startswith("PMC")]

    assert listed(recorded.scored("r053253")) == [
        *("PMC11949125", "PMC12104603", "PMC12227894"),
        *("PMC12191353", "PMC12405907", "PMC3260990"),
    ]
    assert listed(recorded.profile("r053253")) == [
        *("PMC3093392", "PMC11949125", "PMC2668081"),
        *("PMC3260990", "PMC4594719", "PMC6092108"),
    ]


# -- intervals and pairs ---------------------------------------------------------------

INTERVALS = {
    OPUS: [
        (0.738188244048, 0.899822255291),
        (0.387241568609, 0.585788768555),
        (0.863392366278, 0.92360607188),
        (0.879250275838, 0.933274957515),
    ],
    GPT: [
        (0.707386326058, 0.875105406746),
        (0.359859303236, 0.559933749908),
        (0.828284138352, 0.897909244452),
        (0.849994477172, 0.913240141335),
    ],
    SONNET: [
        (0.603735720298, 0.793054540945),
        (0.322221067738, 0.521648328836),
        (0.831318593993, 0.895800002439),
        (0.850646344396, 0.909899057004),
    ],
    HAIKU: [
        (0.568357233045, 0.77163100499),
        (0.30981435065, 0.494062844735),
        (0.760003069935, 0.835325143511),
        (0.80407311949, 0.856075336221),
    ],
    MINI: [
        (0.453888024591, 0.645823525433),
        (0.20000416706, 0.36967984251),
        (0.778994524705, 0.862090792706),
        (0.776643134258, 0.830190608481),
    ],
}


PERCENTILE = ("--set", "interval=percentile")
"""As published; the default adjusts intervals of 72 papers."""


@pytest.mark.parametrize("model", INTERVALS)
def test_intervals_of_the_large_run_to_twelve_digits(
    recorded: Recorded, model: str
) -> None:
    paths = (
        "avg_variant_recall",
        "avg_paper_score",
        "avg_question_acc",
        "avg_question_acc~questions_pooled",
    )
    large = recorded.scored("r053253", *PERCENTILE)
    metrics = [large.metric(model, path) for path in paths]
    assert [(m["lo"], m["hi"]) for m in metrics] == INTERVALS[model]
    total = large.metric(model, "pipeline.TOTAL.accuracy")
    assert (total["lo"], total["hi"]) == INTERVALS[model][-1]


PAIRS = [
    (
        OPUS,
        GPT,
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
        GPT,
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
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]} - {pair[1]}")
def test_paired_differences_of_the_large_run(
    recorded: Recorded, pair: tuple[object, ...]
) -> None:
    a, b, difference, ends, wins, sign_p = pair
    table = recorded.scored("r053253", *PERCENTILE).table("pairs")
    (row,) = [r for r in table if (r["model_a"], r["model_b"]) == (a, b)]
    found = float(row["avg_paper_score_difference"].lstrip("'"))
    assert found == pytest.approx(difference, abs=1e-15)
    lo, hi = row["avg_paper_score_lo"], row["avg_paper_score_hi"]
    assert (float(lo), float(hi)) == pytest.approx(ends, rel=1e-11)
    assert tuple(int(row[name]) for name in ("wins", "losses", "ties")) == wins
    assert row["papers"] == "72"
    if sign_p is not None:
        assert float(row["sign_p"]) == pytest.approx(sign_p, rel=1e-11)
    parts = float(row["recall_part"]) + float(row["accuracy_part"])
    assert parts == pytest.approx(found, abs=1e-12)


# -- what models list, looked up in the texts that are at hand -------------------------

FOUND = {
    HAIKU: ((187, 187), (60, 67)),
    OPUS: ((194, 195), (62, 66)),
    SONNET: ((173, 176), (75, 86)),
    MINI: ((111, 112), (50, 58)),
    GPT: ((188, 189), (55, 57)),
}


@pytest.mark.parametrize("model", FOUND)
def test_predictions_of_the_large_run_that_stand_in_the_text(
    recorded: Recorded, model: str
) -> None:
    scored = recorded.scored(
        *("r053253", "--set", f"papers={recorded.source / 'papers'}"),
        *("--set", f"bench={recorded.source / 'variant_bench.jsonl'}"),
    )
    for name, (found, n) in zip(("rsID", "star_allele"), FOUND[model], strict=True):
        share = scored.metric(model, f"grounding.predicted.{name}")
        assert (share["value"], share["n"]) == (found / n, n)
