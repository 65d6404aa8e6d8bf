"""Where to find the test of each numbered trap of the job.

The numbers are those of the job's specification. This module holds no trap itself: it
is the index, and fails where a test that it names is gone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.trap_index import Index, gone

HERE = Path(__file__).parent
TRAPS = 28

INPUTS = "test_inputs.py"
PROMPTS = "test_prompts.py"
REPLIES = "test_parsing.py"
STAGED = "test_predictions.py"
MEASURES = "test_results.py"
IMPORTS = "test_importer.py"
SCORING = "test_job.py"

INDEX: Index = {
    # a shared paper without abstract, a blank abstract
    1: ((INPUTS, "test_a_blank_abstract_is_missing_and_relates_nothing"),),
    2: (
        (
            "test_same_bytes.py",
            "test_the_shipped_set_is_what_prepare_writes_on_this_machine",
        ),
        ("test_same_bytes.py", "test_rows_in_another_order_give_the_same_set"),
    ),
    3: (
        (
            "test_sampling.py",
            "test_a_larger_draw_begins_with_the_smaller_one",
        ),
    ),
    # leading zeros, ids that look like numbers
    4: ((INPUTS, "test_ids_are_texts_and_so_is_their_order"),),
    5: ((INPUTS, "test_rows_that_repeat_or_cite_nothing_are_counted_and_collapsed"),),
    6: (
        (INPUTS, "test_a_blank_abstract_is_missing_and_relates_nothing"),
        (INPUTS, "test_no_other_word_is_missing"),
    ),
    7: (
        (INPUTS, "test_a_review_without_a_row_stays_in_the_graph"),
        (
            "test_explain_inputs.py",
            "test_a_review_without_a_row_of_its_own_is_told",
        ),
    ),
    # a self-citation; a candidate of two related reviews
    8: (
        (
            "test_graph.py",
            "test_neighbourhoods_are_those_of_the_definitions",
        ),
    ),
    9: (
        (
            "test_graph.py",
            "test_neighbourhoods_are_those_of_the_definitions",
        ),
    ),
    10: ((INPUTS, "test_nothing_to_analyse_divides_by_nothing"),),
    11: ((INPUTS, "test_exclusions_bring_texts_and_never_become_random"),),
    12: ((PROMPTS, "test_nothing_behind_the_word_of_results_is_ever_told"),),
    13: ((PROMPTS, "test_a_text_can_neither_close_its_block_nor_add_a_line"),),
    14: ((REPLIES, "test_the_first_rule_that_applies_decides"),),
    15: ((REPLIES, "test_a_probability_is_read_as_it_was_meant_or_counted"),),
    16: (
        (STAGED, "test_the_last_readable_stage_decides_and_nothing_else_excludes"),
        (SCORING, "test_a_stage_that_cannot_be_read_or_fails_excludes_nobody"),
    ),
    17: ((MEASURES, "test_a_review_of_one_class_has_no_ranking_and_means_say_so"),),
    18: ((MEASURES, "test_all_scores_tied_are_read_by_id_as_text"),),
    19: ((MEASURES, "test_a_tenth_of_less_than_ten_records_is_none"),),
    20: ((MEASURES, "test_only_reviews_with_both_kinds_compare_them"),),
    # ids in the order of text
    21: ((INPUTS, "test_ids_are_texts_and_so_is_their_order"),),
    22: ((INPUTS, "test_exclusions_bring_texts_and_never_become_random"),),
    23: (
        (
            "test_contamination.py",
            "test_an_implied_share_outside_its_bounds_is_not_identified",
        ),
    ),
    24: (
        (IMPORTS, "test_a_row_that_is_off_is_named"),
        (IMPORTS, "test_a_set_is_not_contradicted_nor_added_to"),
    ),
    # rescoring and a changed parser make no call
    25: (
        (
            "test_baseline.py",
            "test_a_run_asks_once_and_is_read_as_often_as_one_likes",
        ),
        (SCORING, "test_thresholds_and_readings_are_chosen_after_the_fact"),
    ),
    26: ((MEASURES, "test_who_ended_early_ranks_below_every_survivor"),),
    27: ((MEASURES, "test_both_orders_of_two_models_give_mirrored_results"),),
    28: ((INPUTS, "test_a_bad_table_is_one_sentence_and_nothing_is_written"),),
}


@pytest.mark.parametrize("number", range(1, TRAPS + 1))
def test_each_numbered_trap_has_a_test_that_exists(number: int) -> None:
    assert gone(INDEX[number], HERE) == []
