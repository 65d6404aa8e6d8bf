"""The check numbers of real data: links at full recall, sentences, grounding."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.paper_investigation.prepare_check import DataCheck, check_data
from jobs.paper_investigation.settings import InvestigationSettings

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def found(realdata: Path) -> DataCheck:
    folder = realdata / "clinpgx_qa"
    return check_data(
        InvestigationSettings(
            bench=folder / "variant_bench.jsonl",
            papers=folder / "papers",
            questions=folder / "derived_questions",
            sentence_bench=folder / "sentence_bench.jsonl",
        )
    )


def test_the_bench(found: DataCheck) -> None:
    bench = found.bench
    assert (bench.papers, bench.entries, bench.with_text) == (1123, 3718, 34)
    assert (bench.distinct_fold, bench.distinct_keep) == (3605, 3605)
    assert (bench.papers_with_repeats, bench.most_entries) == (51, 42)
    assert bench.classes == {
        "rsID": 2586,
        "HLA": 64,
        "star_allele": 797,
        "phenotype": 80,
        "other": 78,
    }
    assert bench.kinds == {
        "rsID": 2586,
        "star_allele": 568,
        "reference_allele": 230,
        "HLA": 64,
        "phenotype": 80,
        "activity": 22,
        "gene_presence": 21,
        "other_allele": 34,
    }


def test_the_questions(found: DataCheck) -> None:
    questions = found.questions
    assert list(questions.pipelines.values()) == [90, 90, 64, 170]
    assert (questions.total, questions.papers) == (414, 10)
    assert (questions.joined, questions.joined_in_truth) == (140, 140)


def test_full_recall_under_both_links(found: DataCheck) -> None:
    whole, split = found.links
    assert (whole.variants, split.variants) == (36, 36)
    assert (whole.variants_with_questions, split.variants_with_questions) == (20, 36)
    assert (whole.questions, whole.links, whole.links_capped) == (266, 266, 174)
    assert (split.questions, split.links, split.links_capped) == (406, 664, 334)
    assert (whole.most_questions, split.most_questions, split.cap) == (30, 70, 10)
    assert {
        pmcid: (whole.by_paper[pmcid], n) for pmcid, n in split.by_paper.items()
    } == {
        "PMC10946077": (0, 70),
        "PMC10993165": (50, 50),
        "PMC11603346": (0, 18),
        "PMC11971672": (0, 18),
        "PMC12038368": (14, 14),
        "PMC12331468": (60, 60),
        "PMC3584248": (0, 24),
        "PMC3839910": (60, 60),
        "PMC4916189": (54, 64),
        "PMC5508045": (28, 28),
    }


def test_the_sentences_of_both_sentence_benches(
    found: DataCheck, realdata: Path
) -> None:
    assert (found.sentences.found, found.sentences.checked) == (275, 289)
    folder, other = realdata / "clinpgx_qa", realdata / "autogkb_benchmark"
    again = check_data(
        InvestigationSettings(
            bench=other / "variant_bench.jsonl",
            papers=folder / "papers",
            questions=folder / "derived_questions",
            sentence_bench=other / "sentence_bench.jsonl",
        )
    )
    assert (again.sentences.found, again.sentences.checked) == (289, 289)
    assert (again.bench.papers, again.bench.distinct_fold) == (10, 36)


def test_the_truth_in_the_texts(found: DataCheck) -> None:
    assert found.grounding.judged == {"rsID": 82, "HLA": 5, "star_allele": 23}
    assert found.grounding.grounded == {"rsID": 81, "HLA": 5, "star_allele": 20}
