"""Where to find the test of each numbered trap of the job.

The numbers are those of the job's specification. This module holds no trap itself: it
is the index, and fails where a test that it names is gone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.trap_index import Index, gone

HERE = Path(__file__).parent
TRAPS = 35

INDEX: Index = {
    # blank gold is a negative, not a gold id ""
    1: (
        (
            "test_queries.py",
            "test_blank_gold_is_a_negative_and_no_gold_of_the_name_nothing",
        ),
        (
            "../kit/inputs/test_files.py",
            "test_a_blank_cell_is_an_empty_list_and_not_a_list_of_a_blank_id",
        ),
    ),
    # a positive with empty gold, and gold that is never retrieved: 0 in means
    2: (
        (
            "test_queries_measuring_traps.py",
            "test_a_positive_without_gold_or_hits_counts_0_in_every_mean",
        ),
    ),
    3: (
        (
            "test_queries_measuring_traps.py",
            "test_a_positive_without_gold_or_hits_counts_0_in_every_mean",
        ),
        (
            "test_consistency_rows.py",
            "test_gold_outside_of_the_list_is_told_with_the_query",
        ),
    ),
    # K above the pool, K = 0
    4: (("test_queries_measuring_traps.py", "test_k_of_0_and_beyond_the_pool"),),
    # a pool of one: its rerank is skipped
    5: (
        (
            "test_plan.py",
            "test_one_candidate_is_not_ordered_however_long_the_post",
        ),
        (
            "predictions/test_scoring_input.py",
            "test_one_sentence_is_ranked_without_a_call_and_is_no_failure",
        ),
    ),
    # p exactly at a threshold; isotonic zeros with tau_neg 0
    6: (
        (
            "test_queries_measuring_traps.py",
            "test_a_probability_at_a_threshold_follows_the_named_edge",
        ),
        (
            "predictions/test_gate.py",
            "test_calibrated_zeros_at_a_threshold_of_zero_under_both_edges",
        ),
        (
            "test_consistency_rows.py",
            "test_states_under_both_edges_where_p_is_0_and_so_is_tau_neg",
        ),
    ),
    # ranking metrics ignore negatives even if their columns are filled
    7: (
        (
            "test_queries_measuring_traps.py",
            "test_ranking_measures_ignore_what_negatives_list",
        ),
        (
            "test_queries_measuring_traps.py",
            "test_given_numbers_on_negatives_are_not_averaged",
        ),
    ),
    # ragged rows
    8: (
        (
            "test_queries.py",
            "test_ragged_rows_are_refused_unless_they_are_allowed_and_counted",
        ),
        (
            "test_import_records.py",
            "test_published_sample_is_refused_unless_ragged_rows_are_allowed",
        ),
    ),
    # one class in a fold or criterion
    9: (
        (
            "test_queries_measuring_traps.py",
            "test_one_class_in_a_fold_is_undefined_there_and_counted",
        ),
        (
            "test_queries_measuring_traps.py",
            "test_criteria_stand_in_natural_order_and_one_class_is_undefined",
        ),
        (
            "predictions/test_scoring_input.py",
            "test_one_class_in_a_fold_leaves_it_without_states",
        ),
    ),
    # criteria in natural order, clusters in that of their text
    10: (
        ("test_inputs.py", "test_numbers_in_ids_are_ordered_as_numbers"),
        (
            "test_queries_measuring_traps.py",
            "test_posts_are_drawn_in_the_order_of_their_text",
        ),
    ),
    # a post in two folds
    11: (
        ("test_inputs.py", "test_folds_that_cannot_be_used_are_refused"),
        ("test_leakage.py", "test_a_post_in_two_parts_or_two_folds_is_caught"),
    ),
    # sentence post_1_2 against posts post_1 and post
    12: (
        (
            "test_queries.py",
            "test_sentence_p_1_belongs_to_post_p_and_p_1_0_to_post_p_1",
        ),
        (
            "test_inputs.py",
            "test_the_post_of_a_uid_ends_at_its_last_underscore",
        ),
    ),
    # lists of one score keep their order, and so does their trec form
    13: (
        (
            "test_queries.py",
            "test_equal_scores_keep_the_order_that_was_given",
        ),
        (
            "test_queries_measuring_traps.py",
            "test_a_list_is_taken_as_it_is_and_so_is_its_trec_form",
        ),
    ),
    # scores of 1e4 under a softmax
    14: (
        ("predictions/test_stages.py", "test_large_scores_do_not_overflow"),
        (
            "predictions/test_classifier.py",
            "test_scores_of_ten_thousand_do_not_overflow",
        ),
    ),
    # gamma 1.0 with rounding
    15: (
        ("predictions/test_stages.py", "test_k_by_mass"),
        (
            "predictions/test_stages.py",
            "test_a_gamma_of_one_takes_all_whatever_the_rounding",
        ),
    ),
    # tau_pos inf, written and read back
    16: (
        (
            "test_queries_measuring_traps.py",
            "test_nobody_is_pos_under_an_infinite_threshold_and_it_is_written_so",
        ),
        (
            "test_import_records.py",
            "test_threshold_that_nobody_reaches_is_written_inf_and_read_back",
        ),
        (
            "verification/test_verifying_rows.py",
            "test_tau_pos_of_inf_is_read_back_as_it_is_written",
        ),
    ),
    # percent or fraction: the integer one, the decimal one, a comma, a boolean
    17: (
        (
            "test_parsing.py",
            "test_a_probability_is_percent_unless_it_can_only_be_a_fraction",
        ),
        ("test_parsing.py", "test_a_probability_that_is_none"),
    ),
    # [[3]], "S3", sentences 0 and 99, repeats
    18: (
        ("test_parsing.py", "test_sentences_are_listed_in_several_ways"),
        (
            "test_parsing.py",
            "test_what_names_no_sentence_is_dropped_and_counted",
        ),
    ),
    # two objects, prose around one, braces in strings, a cut reply
    19: (
        (
            "test_parsing.py",
            "test_the_answer_is_found_wherever_it_stands",
        ),
        ("test_parsing.py", "test_a_cut_reply_is_not_repaired"),
    ),
    # an instruction in a sentence, the marker in the text
    20: (
        (
            "test_baseline.py",
            "test_an_instruction_in_a_sentence_is_a_sentence",
        ),
        (
            "test_prompts.py",
            "test_a_mark_that_the_text_has_is_hashed_again",
        ),
    ),
    # a batch that lacks or invents a criterion
    21: (
        (
            "test_parsing.py",
            "test_a_batch_may_miss_repeat_and_invent_criteria",
        ),
        (
            "test_plan.py",
            "test_criteria_that_a_batch_left_out_or_failed_on_are_asked_alone_once",
        ),
    ),
    # windows after a kill
    22: (
        (
            "test_plan_evidence_run.py",
            "test_whatever_the_crashes_the_windows_end_as_if_there_were_none",
        ),
    ),
    # gold scrambled, posts removed
    23: (
        (
            "predictions/test_scoring_input.py",
            "test_scrambled_test_gold_changes_no_byte_of_the_fold",
        ),
        (
            "predictions/test_nested.py",
            "test_without_the_test_posts_the_same_is_fitted",
        ),
        (
            "test_planted_mistakes.py",
            "test_a_gate_that_learns_from_its_test_posts_is_caught",
        ),
    ),
    # TUNE never meets TEST, with two posts a fold
    24: (
        (
            "predictions/test_classifier.py",
            "test_tuning_posts_are_others_than_test_posts_with_two_posts_a_fold",
        ),
        (
            "predictions/test_nested.py",
            "test_two_posts_a_fold_keep_tune_and_test_apart",
        ),
    ),
    # hash seeds, file order, threads
    25: (
        (
            "predictions/test_scoring_input.py",
            "test_neither_hash_seeds_nor_threads_change_a_byte",
        ),
        (
            "predictions/test_scoring_input.py",
            "test_the_order_of_files_changes_nothing",
        ),
        (
            "test_score_scoring_artifacts.py",
            "test_hash_seeds_do_not_reach_a_scorecard",
        ),
    ),
    # two models, one with missing queries
    26: (
        (
            "predictions/test_scoring_input.py",
            "test_two_models_of_which_one_lacks_queries",
        ),
        (
            "test_queries_measuring_traps.py",
            "test_models_are_compared_on_what_both_have_answered",
        ),
    ),
    # a stored file of other keys does not pass
    27: (
        (
            "test_against.py",
            "test_a_file_of_other_keys_fails_an_import_that_is_kept_nevertheless",
        ),
        (
            "verification/test_verifying_lists.py",
            "test_a_file_of_other_keys_does_not_pass",
        ),
    ),
    # a stored map@1 above recall@1 is the other denominator
    28: (
        (
            "verification/test_verifying_lists.py",
            "test_its_average_precision_is_recognised_under_our_own_definitions",
        ),
        ("test_check_numbers.py", "test_the_other_definition_is_told_with_both_values"),
    ),
    # duplicate rows
    29: (
        ("test_import_records.py", "test_file_that_is_off_leaves_no_run"),
        (
            "test_queries.py",
            "test_row_that_is_off_is_refused_with_line_column_and_what_to_do",
        ),
    ),
    # a post without a positive in F1 per post
    30: (
        (
            "test_queries_measuring_traps.py",
            "test_an_empty_post_counts_0_1_or_not_at_all_each_under_its_name",
        ),
    ),
    # a spread over one defined fold
    31: (
        (
            "test_queries_measuring_traps.py",
            "test_a_spread_over_one_defined_fold_is_undefined",
        ),
    ),
    # a replicate without positives
    32: (
        (
            "test_queries_measuring_traps.py",
            "test_draws_without_positives_are_dropped_and_said",
        ),
    ),
    # recorded embeddings of another length
    33: (
        (
            "test_parsing.py",
            "test_vectors_recorded_with_a_broken_length",
        ),
        (
            "predictions/test_rankings_merging.py",
            "test_vectors_stay_as_cosines_and_bad_ones_not_at_all",
        ),
    ),
    # unjudged posts
    34: (
        (
            "predictions/test_scoring_input.py",
            "test_unjudged_posts_are_predicted_and_left_out",
        ),
        (
            "test_queries_measuring_traps.py",
            "test_unjudged_queries_are_predicted_and_in_no_metric",
        ),
    ),
    # configurations that differ in a late stage only share every call
    35: (
        (
            "test_plan.py",
            "test_configurations_that_differ_in_a_late_stage_share_every_call",
        ),
    ),
}


@pytest.mark.parametrize("number", range(1, TRAPS + 1))
def test_each_numbered_trap_has_a_test_that_exists(number: int) -> None:
    assert gone(INDEX[number], HERE) == []
