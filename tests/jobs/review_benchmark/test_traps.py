"""Where to find the test of each numbered trap of the job.

The numbers are those of the job's specification. This module holds no trap itself: it
is the index, and fails where a test that it names is gone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.trap_index import Index, gone

HERE = Path(__file__).parent
TRAPS = 30

NORMAL = "test_matching.py"
RATIO = "test_lookup.py"
RULES = "test_matching.py"
TRUTH = "test_truth_files.py"
BENCHMARKS = "test_results.py"
MERGE = "database/test_writer.py"
PUBMED = "database/test_pubmed.py"
CANDIDATES = "database/test_reader.py"
RUNS = "database/test_reader.py"
HISTORY = "../kit/test_history.py"

INDEX: Index = {
    1: ((RULES, "test_a_pmid_counts_before_a_doi_that_comes_earlier"),),
    2: ((RATIO, "test_a_ratio_that_is_the_cutoff_itself_reaches_it"),),
    3: ((RULES, "test_the_likest_title_counts_and_of_equals_the_first"),),
    4: ((RATIO, "test_the_ratio_depends_on_which_title_comes_first"),),
    # nothing is left of a title of marks alone
    5: (
        (RATIO, "test_an_empty_title_is_alike_to_none"),
        (NORMAL, "test_marks_in_a_title_become_blanks_or_go"),
    ),
    6: (
        (RATIO, "test_long_titles_lose_their_likeness_to_the_shortcut_of_difflib"),
        (BENCHMARKS, "test_both_counts_are_told_where_autojunk_matters"),
    ),
    # of a text, and of the other values that JSON has
    7: (
        (NORMAL, "test_a_pmid_is_the_first_run_of_ascii_digits"),
        (TRUTH, "test_a_pmid_may_be_any_number_and_no_truth_value"),
    ),
    8: (
        (NORMAL, "test_a_doi_loses_its_resolver_and_its_capitals"),
        (NORMAL, "test_what_follows_a_doi_belongs_to_it"),
    ),
    9: ((BENCHMARKS, "test_nothing_included_is_a_result_without_a_precision"),),
    10: (
        (TRUTH, "test_both_forms_of_a_result_are_read"),
        (BENCHMARKS, "test_a_paper_in_both_lists_is_included_and_counts_once"),
    ),
    11: ((BENCHMARKS, "test_each_row_of_a_repeated_paper_counts_in_precision"),),
    12: (
        (RULES, "test_two_truth_papers_may_have_one_record_unless_claims_are_unique"),
    ),
    13: (
        (
            BENCHMARKS,
            "test_a_study_that_is_listed_twice_is_found_twice_in_one_record",
        ),
    ),
    14: ((TRUTH, "test_what_may_be_missing_reads_as_nothing"),),
    15: (
        (
            "test_plan.py",
            "test_a_conclusion_needs_papers_and_one_of_the_review_to_compare",
        ),
        (
            "test_verdicts.py",
            "test_what_has_no_conclusion_to_compare_with_is_left_out_and_said",
        ),
    ),
    16: ((MERGE, "test_a_pmid_joins_records_and_blanks_are_filled"),),
    17: ((MERGE, "test_a_doi_of_two_pmids_is_left_with_the_first"),),
    18: ((MERGE, "test_importing_a_file_twice_changes_nothing"),),
    19: (
        ("test_search_replies.py", "test_a_term_is_a_phrase_of_at_most_eight_words"),
        ("test_search_replies.py", "test_whatever_a_model_says_can_be_searched"),
    ),
    # PMIDs of cited papers, markup and MedlineDate; entity bombs
    20: (
        (PUBMED, "test_a_record_says_what_it_is_and_nothing_of_what_it_cites"),
        (PUBMED, "test_a_document_type_of_its_own_is_refused"),
    ),
    21: (
        (
            "test_parsing.py",
            "test_a_score_is_read_as_it_was_meant_or_counted",
        ),
    ),
    22: (
        (
            RUNS,
            "test_another_threshold_asks_for_other_conclusions_and_for_nothing_else",
        ),
    ),
    23: (
        (CANDIDATES, "test_the_review_itself_is_no_candidate_unless_it_is_asked_for"),
    ),
    24: ((CANDIDATES, "test_a_paper_without_a_year_fits_any_range_of_dates"),),
    # what a review found, and what an extraction is scored by
    25: (
        (
            "test_data.py",
            "test_no_prompt_knows_what_the_review_found",
        ),
        (
            "test_job.py",
            "test_truth_that_an_extraction_is_scored_by_is_in_no_prompt",
        ),
    ),
    26: (
        (RUNS, "test_a_run_knows_its_database_by_the_papers_in_it"),
        (
            CANDIDATES,
            "test_a_database_that_changes_meanwhile_is_searched_no_further",
        ),
    ),
    27: (
        (
            "test_verdicts.py",
            "test_sister_reviews_with_boilerplate_are_named_and_draw_no_line_alone",
        ),
    ),
    28: ((HISTORY, "test_runs_of_another_truth_or_matching_are_left_out"),),
    # an invented DOI; a PDF that hangs
    29: (
        (
            "extraction/test_checks.py",
            "test_an_invented_identifier_is_removed_and_never_guessed",
        ),
        (
            "test_rebuilt_reviews.py",
            "test_a_pdf_that_cannot_be_read_is_refused_in_one_sentence",
        ),
    ),
    30: ((RATIO, "test_pruning_finds_what_plain_difflib_finds"),),
}


@pytest.mark.parametrize("number", range(1, TRAPS + 1))
def test_each_numbered_trap_has_a_test_that_exists(number: int) -> None:
    assert gone(INDEX[number], HERE) == []
