"""Tables, flips and verdicts: what is written while the answers pass by again."""

from __future__ import annotations

from collections import Counter

import pytest

from jobs.kit.testing import MemoryAnswers, artifact_texts, table_rows
from jobs.paper_investigation.job import job
from jobs.paper_investigation.settings import PIPELINES
from runner.job import Task
from runner.scorecard import Metric, Scorecard, StreamedRow, Verdict
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

REPLIES = {
    "PMC1": '["rs1", "CYP2C9*2", "NAT2 slow acetylator"]',
    # read by the default rules only
    "PMC1/mcq_drug:1": "The answer is B.",
    # read as an "a" by the old rules only, where the answer is a
    "PMC1/mcq_variant:1": "no idea what a b is",
    # a bound answers a value under the old rules only
    "PMC1/study_param:1": '{"p_value": "< 0.03", "significance": "yes"}',
    "PMC1/mcq_drug:2": "c",
}


@pytest.fixture
def card() -> Scorecard:
    data = dataset(
        {"PMC1": ["rs1", "CYP2C9*2", "rs7"]},
        [
            choice("PMC1", "rs1", "1"),
            choice("PMC1", "rs1, CYP2C9*2", "2"),
            choice("PMC1", "rs1", "1", pipeline="mcq_variant", correct="a"),
            study("PMC1", "rs1", "1"),
        ],
        texts={"PMC1": "Carriers of rs1 and CYP2C9*2 were compared."},
    )
    return job.score(data, MemoryAnswers.of_run(job, data, answer))


def answer(task: Task) -> str:
    return REPLIES[task.key]


def metrics(card: Scorecard) -> dict[str, Metric]:
    return {metric.path: metric for metric in card.models["model"]}


def test_flips_sum_to_the_change_of_each_pipeline(card: Scorecard) -> None:
    found = metrics(card)
    changes: Counter[object] = Counter()
    for row in table_rows(card, "flips"):
        changes[row["pipeline"]] += int(bool(row["other_correct"])) - int(
            bool(row["correct"])
        )
    assert sum(map(abs, changes.values())) == 3
    for name in PIPELINES:
        to_right = found[f"pipeline.{name}.to_right~rules_clinpgx"].value or 0
        to_wrong = found[f"pipeline.{name}.to_wrong~rules_clinpgx"].value or 0
        assert changes[name] == to_right - to_wrong


def test_flips_name_what_each_rule_set_read(card: Scorecard) -> None:
    by_pipeline = {row["pipeline"]: row for row in table_rows(card, "flips")}
    prose = by_pipeline["mcq_drug"]
    assert (prose["parsed"], prose["rule"], prose["other_parsed"]) == (
        "b",
        "stated",
        "",
    )
    assert prose["reply"] == "The answer is B."
    bound = by_pipeline["study_param"]
    assert (bound["correct"], bound["other_correct"]) == (False, True)


def test_same_id_in_two_files_is_two_questions(card: Scorecard) -> None:
    ids = [
        (row["pipeline"], row["question_id"]) for row in table_rows(card, "questions")
    ]
    assert len(set(ids)) == len(ids) == 4


def test_variants_table_holds_truth_and_inventions(card: Scorecard) -> None:
    rows = {row["variant"]: row for row in table_rows(card, "variants")}
    assert list(rows) == ["rs1", "CYP2C9*2", "rs7", "NAT2 slow acetylator"]
    assert [row["class"] for row in rows.values()] == [
        "rsID",
        "star_allele",
        "rsID",
        "phenotype",
    ]
    assert [row["recalled"] for row in rows.values()] == [True, True, False, False]
    assert [row["grounded"] for row in rows.values()] == [True, True, False, None]
    assert rows["rs1"]["questions"] == 4
    assert rows["CYP2C9*2"]["questions"] == 1


def test_grounding_is_counted_by_class_for_truth_and_lists(card: Scorecard) -> None:
    found = metrics(card)
    truth = found["grounding.truth.rsID"]
    assert (truth.value, truth.n) == (1 / 2, 2)
    predicted = found["grounding.predicted.rsID"]
    assert (predicted.value, predicted.n) == (1.0, 1)
    assert "grounding.predicted.phenotype" not in found
    assert "predicted variants not in the text: model 0" in card.summary


def test_grounding_can_be_left_out() -> None:
    data = dataset({"PMC1": ["rs1"]}, grounding=False)
    card = job.score(data, MemoryAnswers.of_run(job, data, lambda _: '["rs1"]'))
    assert not [path for path in metrics(card) if path.startswith("grounding")]
    assert table_rows(card, "variants")[0]["grounded"] is None


def test_classes_are_counted_by_truth_for_hits_and_by_list_for_false_ones(
    card: Scorecard,
) -> None:
    found = metrics(card)
    counts = {
        name: tuple(found[f"class.{name}.{each}"].value for each in ("tp", "fp", "fn"))
        for name in ("rsID", "star_allele", "phenotype", "MICRO-AVG")
    }
    assert counts == {
        "rsID": (1, 0, 1),
        "star_allele": (1, 0, 0),
        "phenotype": (0, 1, 0),
        "MICRO-AVG": (2, 1, 1),
    }


def test_every_reply_has_a_verdict(card: Scorecard) -> None:
    verdicts = [each for each in card.details if isinstance(each, Verdict)]
    assert [verdict.task for verdict in verdicts] == [1, 2, 3, 4, 5]
    extraction, *questions = verdicts
    assert extraction.correct is None
    assert extraction.value == "rs1, CYP2C9*2, NAT2 slow acetylator"
    assert extraction.expected == "rs1, CYP2C9*2, rs7"
    by_key = {verdict.key: verdict for verdict in questions}
    assert by_key["PMC1/mcq_drug:1"].correct is True
    assert by_key["PMC1/mcq_drug:2"].correct is False
    assert by_key["PMC1/study_param:1"].value == "p=< 0.03, sig=yes"
    assert by_key["PMC1/study_param:1"].expected == "p== 0.03, sig=yes"


def test_details_can_be_read_again_and_come_out_the_same(card: Scorecard) -> None:
    assert list(card.details) == list(card.details)
    assert artifact_texts(card) == artifact_texts(card)


def test_rows_fit_the_columns_of_declared_tables(card: Scorecard) -> None:
    tables = {table.name: table for table in card.tables}
    assert list(tables) == [
        "models",
        "pairs",
        "papers",
        "variants",
        "questions",
        "skipped",
        "flips",
        "baselines",
    ]
    rows = [each for each in card.details if isinstance(each, StreamedRow)]
    assert {row.table for row in rows} <= set(tables)
    assert all(len(row.cells) == len(tables[row.table].columns) for row in rows)


def test_models_table_has_a_row_a_model_with_intervals(card: Scorecard) -> None:
    (row,) = table_rows(card, "models")
    assert row["model"] == "model"
    assert row["avg_paper_score"] == metrics(card)["avg_paper_score"].value
    assert row["pipeline.TOTAL.questions"] == 4


def test_paths_of_metrics_are_unique_and_all_are_defined(card: Scorecard) -> None:
    found = card.models["model"]
    assert len({metric.path for metric in found}) == len(found)
    assert all(metric.definition for metric in found)


def test_settings_of_the_scorecard_name_no_place(card: Scorecard) -> None:
    assert not {"bench", "papers", "questions", "sentence_bench"} & set(card.settings)
    assert card.settings["variant_link"] == "split"


def test_recall_is_reported_by_kind_and_without_reference_alleles() -> None:
    bench = {
        "PMC1": ["CYP2C19*1", "CYP2C19*2", "GSTM1 null"],
        "PMC2": ["CYP2C9*1", "G6PD deficiency"],
        "PMC3": ["CYP2C9*1"],
    }
    data = dataset(bench, mode="extract", texts=dict.fromkeys(bench, "Text."))
    said = {
        "PMC1": '["CYP2C19*2", "GSTM1 null"]',
        "PMC2": '["CYP2C9*1"]',
        "PMC3": "[]",
    }
    made = job.score(data, MemoryAnswers.of_run(job, data, lambda task: said[task.key]))
    found = metrics(made)
    by_kind = {
        path.split(".")[1]: (metric.value, metric.n)
        for path, metric in found.items()
        if path.startswith("kind.")
    }
    assert by_kind == {
        "star_allele": (1.0, 1),
        "reference_allele": (1 / 3, 3),
        "activity": (0.0, 1),
        "gene_presence": (1.0, 1),
    }
    others = found["avg_variant_recall~without_reference_alleles"]
    assert (others.value, others.n, others.n_defined) == (0.5, 3, 2)
    assert found["avg_variant_recall"].value == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert {row["kind"] for row in table_rows(made, "variants")} == set(by_kind)
