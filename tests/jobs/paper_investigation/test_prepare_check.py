"""prepare check: what it counts, and how it shows it."""

from __future__ import annotations

import json

from jobs.paper_investigation import prepare_check
from jobs.paper_investigation.inputs import with_sample
from jobs.paper_investigation.prepare_check import check_data
from jobs.paper_investigation.settings import InvestigationSettings
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

BENCH = {
    "PMC1": ["rs1", "RS1", "rs1", "CYP2C9*2", "HLA-A*01:01"],
    "PMC2": ["NAT2 slow acetylator", "GSTM1 null"],
}
QUESTIONS = (
    choice("PMC1", "rs1, CYP2C9*2", "1"),
    choice("PMC1", "rs1, rs9", "2"),
    choice("PMC1", "rs9", "3"),
    choice("PMC7", "rs1", "4"),
    choice("PMC2", "GSTM1 null", "5", sentence="Warfarin is ______."),
    study("PMC2", "GSTM1 null", "6", sentence="It was so (p = 0.03)."),
    study("PMC2", "GSTM1 null", "7", sentence="In 0.031 of cases."),
)
TEXTS = {"PMC1": "rs1 and CYP2C9 alleles *1 and *2.", "PMC2": "Text."}
DATA = dataset(BENCH, QUESTIONS, TEXTS)


def test_the_bench_is_counted_by_entries_and_by_variants() -> None:
    found = prepare_check.bench_facts(DATA)
    assert (found.papers, found.with_text, found.entries) == (2, 2, 7)
    assert (found.distinct_fold, found.distinct_keep) == (5, 6)
    assert (found.papers_with_repeats, found.most_entries) == (1, 5)
    assert found.classes == {
        "rsID": 1,
        "HLA": 1,
        "star_allele": 1,
        "phenotype": 1,
        "other": 1,
    }


def test_questions_that_need_a_look_are_named() -> None:
    found = prepare_check.question_facts(DATA)
    assert (found.total, found.papers) == (7, 3)
    assert (found.joined, found.joined_in_truth) == (2, 1)
    assert found.no_bench_paper == ("PMC7/mcq_drug:4",)
    assert found.unlinked == ("PMC1/mcq_drug:3",)
    assert found.leaks == ("PMC2/mcq_drug:5", "PMC2/study_param:6")


def test_full_recall_is_counted_under_both_links() -> None:
    whole, split = (prepare_check.link_facts(DATA, link) for link in ("whole", "split"))
    assert (whole.variants, split.variants) == (5, 5)
    assert (whole.variants_with_questions, split.variants_with_questions) == (1, 3)
    assert (whole.questions, split.questions) == (3, 5)
    assert (whole.links, split.links) == (3, 6)
    assert split.by_paper == {"PMC1": 2, "PMC7": 0, "PMC2": 3}


def test_the_cap_is_the_settings_own_or_the_profiles() -> None:
    assert prepare_check.link_facts(DATA, "split").cap == 10
    capped = dataset(BENCH, QUESTIONS, TEXTS, max_questions_per_variant=1)
    found = prepare_check.link_facts(capped, "split")
    assert (found.cap, found.questions, found.questions_capped) == (1, 5, 2)
    assert found.links_capped == 3


def test_truth_that_no_text_holds_is_named_as_it_is_spelt() -> None:
    found = prepare_check.grounding_facts(DATA)
    assert found.judged == {"rsID": 1, "HLA": 1, "star_allele": 1}
    assert found.grounded == {"rsID": 1, "HLA": 0, "star_allele": 1}
    assert found.ungrounded == ("PMC1: HLA-A*01:01",)


def test_without_grounding_or_sentences_nothing_is_looked_up() -> None:
    data = dataset(BENCH, QUESTIONS, TEXTS, grounding=False)
    assert sum(prepare_check.grounding_facts(data).judged.values()) == 0
    assert prepare_check.sentence_facts(data).checked == 0


def test_the_sample_has_nothing_to_complain_of() -> None:
    found = check_data(with_sample(InvestigationSettings()))
    assert (found.bench.papers, found.bench.with_text) == (10, 8)
    assert found.questions.total == 98
    assert (found.sentences.checked, found.sentences.found) == (87, 87)
    assert not found.questions.unlinked + found.questions.leaks
    assert not found.grounding.ungrounded


def test_both_renderings_tell_the_same() -> None:
    found = check_data(with_sample(InvestigationSettings()))
    again = json.loads(json.dumps(found.json))
    assert again["bench"]["entries"] == 39
    assert again["links"][1]["link"] == "split"
    assert again["links"][1]["links"] == 142
    assert "10 papers, 8 with text" in found.text
    assert "split" in found.text
    assert "rsID 9/9" in found.text


def test_long_lists_are_cut_in_the_text_and_whole_in_the_json() -> None:
    found = check_data(with_sample(InvestigationSettings(variant_link="whole")))
    assert len(found.questions.unlinked) == 24
    assert "24 questions name no truth variant" in found.text
    assert "and 14 more" in found.text
