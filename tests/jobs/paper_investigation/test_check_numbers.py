"""What the shipped commands print on real recorded answers, against known numbers.

Every figure here was computed independently of this project; the commands must print
it, not some function. Where the recorded programs printed a file, ours is that file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import siftlog

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(300)]

JOB = "paper-investigation"
OPUS, HAIKU = "anthropic/claude-opus-4-6", "anthropic/claude-haiku-4-5-20251001"
SONNET, MINI, GPT = "anthropic/claude-sonnet-4-5-20250929", "gpt-4o-mini", "gpt-5.2"
GEMINI = "gemini/gemini-2.5-pro"
LARGE = "20260213_053253_all_models"

RUNS = {
    "r031950": ("paper_investigation/20260213_031950_all_models/*responses.jsonl", ()),
    "r043720": ("paper_investigation/20260213_043720_all_models/*responses.jsonl", ()),
    "r053253": (f"paper_investigation/{LARGE}/*responses.jsonl", ()),
    "extract": ("variant_extraction/*/*eval_results.jsonl", ("--mode=extract",)),
    "mcq": ("mcq/*/*eval_results.jsonl", ("--mode=questions",)),
    "study": ("study_param/*/*eval_results.jsonl", ("--mode=questions",)),
}


@dataclass(frozen=True)
class Scored:
    """One scoring as the command printed and wrote it."""

    folder: Path
    said: dict[str, object]

    def value(self, model: str, path: str) -> object:
        return self.metric(model, path)["value"]

    def metric(self, model: str, path: str) -> dict[str, object]:
        return self.said["models"][model]["metrics"][path]

    def table(self, name: str) -> list[dict[str, str]]:
        with (self.folder / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def agreement(self, profile: str) -> dict[str, tuple[int, int]]:
        """Recorded facts against ours: how many compared, how many equal."""
        return {
            row["fact"]: (int(row["compared"]), int(row["agreeing"]))
            for row in self.table("agreement")
            if row["profile"] == profile
        }


class Recorded:
    """The real files, imported once each; scored under any settings."""

    def __init__(self, cwd: Path, realdata: Path) -> None:
        self.cwd = cwd
        self.source = realdata / "clinpgx_qa"
        self._scored: dict[tuple[str, ...], Scored] = {}

    def scored(self, run: str, *words: str) -> Scored:
        if (run, *words) not in self._scored:
            folder = self.cwd / "runs" / run
            if not folder.exists():
                pattern, mode = RUNS[run]
                files = sorted(self.source.glob(pattern))
                imports = ("import", JOB, *files, *mode, f"--run-id={run}")
                siftlog(*imports, "--no-score", cwd=self.cwd)
            done = siftlog("score", run, *words, "--json", cwd=self.cwd)
            said = json.loads(done.stdout)
            target = folder / "scores" / str(said["scoring"])
            self._scored[run, *words] = Scored(folder=target, said=said)
        return self._scored[run, *words]

    def profile(self, run: str) -> Scored:
        return self.scored(run, "--set", "profile=clinpgx-qa")


@pytest.fixture(scope="module")
def recorded(realdata: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("recorded"), realdata)


# -- the profile reproduces what was recorded ------------------------------------------


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
    metrics = [recorded.scored("r053253").metric(model, path) for path in paths]
    assert [(m["lo"], m["hi"]) for m in metrics] == INTERVALS[model]


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
    table = recorded.scored("r053253").table("pairs")
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


def test_empty_replies_are_told_with_what_to_do(recorded: Recorded) -> None:
    scored = recorded.scored("mcq")
    assert scored.value(GEMINI, "replies.empty") == 30
    assert recorded.scored("study").value(GEMINI, "pipeline.study_param.unparsed") == 10
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
    assert launch == {"event": "launch", "run": "real"}
    assert end["tasks"]["planned"] == end["tasks"]["completed"] + 1089
    assert end["tasks"]["skipped"] == 1089
    assert end["attempts"]["answered"] == end["tasks"]["completed"] > 300
    said = json.loads(siftlog("score", "real", "--json", cwd=tmp_path).stdout)
    metrics = said["models"]["baseline/lexical"]["metrics"]
    assert metrics["papers_scored"]["value"] == 34
    assert said["missing"] == said["stale"] == 0
