"""The contract of result files: what a job writes imports back to the same scorecard.

Each job scores its shipped sample, its own result files are imported with the command,
and both scorecards are compared: every metric with value, n, interval and definition.
What a file cannot hold is named here, case by case; nothing else may differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.commands import command
from tests.contract.jobs.data import sample
from tests.contract.jobs.jobs import recorded

PAPERS = sample("paper-investigation")
PAPER_DATA: Sequence[object] = (
    *("--bench", PAPERS / "variant_bench.jsonl", "--papers", PAPERS / "papers"),
    *("--questions", PAPERS / "questions"),
    *("--sentence-bench", PAPERS / "sentence_bench.jsonl"),
)
PROPERTIES = sample("property-extraction")
PROPERTY_DATA: Sequence[object] = (
    *("--truth", PROPERTIES / "truth.csv", "--rubric", PROPERTIES / "rubric.csv"),
    *("--clusters", PROPERTIES / "clusters.json"),
    *("--unit-table", PROPERTIES / "units.csv", "--papers", PROPERTIES / "papers"),
)


def sorted_files(folder: Path, pattern: str) -> list[Path]:
    """Files by name: models then come in the order of the run."""
    return sorted(folder.glob(pattern))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job's sample, and the command that imports the files of its scoring."""

    job: str
    run: Sequence[object]
    files: Callable[[Path], Sequence[object]]  #: words of the import, by the scoring
    absent: str = r"(?!)"
    """Metrics that the files do not hold: of the run's own search or configurations."""


def flat(*words: str) -> Sequence[object]:
    files = sorted((PAPERS / "replies").iterdir())
    return "import", "paper-investigation", *files, *PAPER_DATA, *words


def run(job: str, *words: str) -> Sequence[object]:
    """A run of the sample by all of its recorded models."""
    models = (word for model in recorded(job) for word in ("--model", model))
    return "run", job, *models, *words


CASES = {
    "paper-investigation": Case(
        job="paper-investigation",
        run=flat(),
        files=lambda own: [*sorted_files(own, "*_responses.jsonl"), *PAPER_DATA],
    ),
    "paper-investigation, ask all": Case(
        job="paper-investigation",
        run=flat("--ask", "all"),
        files=lambda own: [
            *sorted_files(own, "*_responses.jsonl"),
            *PAPER_DATA,
            "--ask",
            "all",
        ],
        # files hold the questions that were asked
        absent="questions_not_asked",
    ),
    "paper-investigation, extract": Case(
        job="paper-investigation",
        run=flat("--mode", "extract"),
        files=lambda own: [
            *sorted_files(own, "*_variant_eval_results.jsonl"),
            *(*PAPER_DATA, "--mode", "extract"),
        ],
    ),
    "paper-investigation, questions": Case(
        job="paper-investigation",
        run=flat("--mode", "questions"),
        files=lambda own: [
            *sorted_files(own, "*_eval_results.jsonl"),
            *(*PAPER_DATA, "--mode", "questions"),
        ],
    ),
    "paper-investigation, clinpgx-qa": Case(
        job="paper-investigation",
        run=flat("--profile", "clinpgx-qa"),
        files=lambda own: [
            *sorted_files(own, "*_responses.jsonl"),
            *(*PAPER_DATA, "--profile", "clinpgx-qa"),
        ],
    ),
    "screening": Case(
        job="screening",
        run=run("screening"),
        files=lambda own: [
            *("--decisions", own / "decisions.csv"),
            *("--validation-set", sample("screening") / "set"),
        ],
    ),
    "evidence-retrieval": Case(
        job="evidence-retrieval",
        run=run("evidence-retrieval"),
        files=lambda own: [
            *("--per-query", own / "per_query.csv", own / "per_query_lists.csv"),
        ],
        # configurations beside the headline's have files of their own
        absent=r"config\..*",
    ),
    "review-benchmark": Case(
        job="review-benchmark",
        run=run("review-benchmark"),
        files=lambda own: [
            *sorted((own / "results").rglob("*.json")),
            *("--truth", sample("review-benchmark") / "truth"),
        ],
        # an import knows that a paper was left out, not by which step of its agent
        absent=r"lost\.(not_retrieved|date_filtered|unscored|below_threshold|excluded)",
    ),
    "property-extraction": Case(
        job="property-extraction",
        run=run("property-extraction"),
        files=lambda own: ["--preds", own / "predictions.csv", *PROPERTY_DATA],
    ),
    "property-extraction, a failed paper": Case(
        job="property-extraction",
        run=run("property-extraction", "--partial", "fail"),
        files=lambda own: ["--preds", own / "predictions.csv", *PROPERTY_DATA],
    ),
}


def scored(folder: Path, name: str, words: Sequence[object]) -> Path:
    """The folder of the first scoring."""
    own = ("--runs-dir", folder, "--run-id", name, "--no-report")
    done = command(*words, *own)
    scoring = folder / name / "scores" / "1"
    assert (scoring / "scorecard.json").exists(), done.err
    return scoring


def metrics(scoring: Path, absent: str) -> list[dict[str, Any]]:
    """Every metric of each model that both ways in can have, in the run's order."""
    card = json.loads((scoring / "scorecard.json").read_text("utf-8"))
    return [
        {
            path: metric
            for path, metric in model["metrics"].items()
            if not re.fullmatch(absent, path)
        }
        for model in card["models"].values()
    ]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_jobs_own_files_import_back_to_the_same_scorecard(
    case: Case, tmp_path: Path
) -> None:
    before = scored(tmp_path, "first", case.run)
    words = ("import", case.job, *case.files(before))
    second = scored(tmp_path, "second", words)
    one_way, other_way = metrics(before, case.absent), metrics(second, case.absent)
    assert len(one_way) == len(other_way) > 0
    for one, other in zip(one_way, other_way, strict=True):
        assert len(one) > 50
        assert one.keys() == other.keys()
        assert {
            path: (one[path], other[path]) for path in one if one[path] != other[path]
        } == {}
    if "," in next(name for name, each in CASES.items() if each is case):
        return  # a further mode of the same importer
    # a second import is a run of its own, equal to the first, and never goes into it
    third = scored(tmp_path, "third", words)
    assert metrics(third, "") == metrics(second, "")
    assert answers(tmp_path, "third") == answers(tmp_path, "second")
    again = command(*words, "--runs-dir", tmp_path, "--run-id", "second")
    assert again.code != 0
    assert "second" in again.err
    assert answers(tmp_path, "second") == answers(tmp_path, "third")
    assert {path.name for path in second.parent.iterdir()} == {"1"}


def answers(folder: Path, name: str) -> list[tuple[object, ...]]:
    """Each answer of a run once, in the order of the log."""
    limits = ("--json", "--limit", 100_000)
    done = command("tasks", name, "--runs-dir", folder, *limits)
    tasks = [json.loads(line) for line in done.out.splitlines()]
    keys = [
        tuple(task[each] for each in ("stage", "key", "model", "replicate", "state"))
        for task in tasks
    ]
    assert len({*keys}) == len(keys) > 0
    return keys


def records(path: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, path.read_text("utf-8").splitlines()))


def test_records_spell_predictions_as_the_reply_and_the_recalled_as_the_truth(
    tmp_path: Path,
) -> None:
    own = scored(tmp_path, "first", CASES["paper-investigation"].run)
    for path in sorted_files(own, "*_investigation_responses.jsonl"):
        for record in records(path):
            truth = {text.strip() for text in record["ground_truth_variants"]}
            recalled = set(record["recalled_variants"])
            assert recalled <= truth
            assert set(record["variant_results"]) <= recalled
            assert {"pmid", "article_title"} <= record.keys()
            for variant in record["predicted_variants"] or ():
                written = json.dumps(variant)[1:-1], variant
                assert any(each in record["raw_response"] for each in written)
            for result in record["variant_results"].values():
                for response in result["responses"]:
                    asked = response["question"]
                    is_mcq = response["source_pipeline"].startswith("mcq")
                    assert not is_mcq or asked["original_sentence"]


def test_a_plain_comparison_of_real_records_gives_the_recall_that_was_recorded(
    tmp_path: Path, realdata: Path
) -> None:
    folder = realdata / "clinpgx_qa" / "paper_investigation"
    path = max(folder.glob("*053253*/*haiku*_responses.jsonl"))
    own = scored(tmp_path, "real", ("import", "paper-investigation", path))
    (written,) = sorted_files(own, "*_investigation_responses.jsonl")
    pairs = list(zip(records(path), records(written), strict=True))
    assert len(pairs) == 72

    def plain(record: dict[str, Any]) -> float:
        truth = set(record["ground_truth_variants"])
        return len(truth & set(record["predicted_variants"])) / len(truth)

    for before, after in pairs:
        assert after["pmcid"] == before["pmcid"]
        assert plain(after) == plain(before)
        assert len({*after["recalled_variants"]}) >= len(before["recalled_variants"])
    # the two fields that a reader joins differ by no letter case of ours
    spelled = {text for _, after in pairs for text in after["predicted_variants"]}
    assert any(text != text.lower() for text in spelled)
