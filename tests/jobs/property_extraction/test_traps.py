"""Where to find the test of each numbered trap of the job.

The numbers are those of the job's specification. This module holds no trap itself: it
is the index, and fails where a test that it names is gone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.trap_index import Index, gone

HERE = Path(__file__).parent
TRAPS = 34

ASKED = "test_plan.py"
BUILT = "aliases/test_building.py"
CANDIDATES = "aliases/test_candidates.py"
CURATED = "test_curated_files.py"
FILE = "aliases/test_alias_set.py"
GIVEN = "aliases/test_given_aliases.py"
IMPORTED = "test_prediction_files.py"
LINT = "test_lint.py"
MATCHED = "test_matching.py"
MODELS = "test_papers.py"
NUMBERS = "values/test_printed_numbers.py"
QUANTITIES = "values/test_comparison.py"
QUOTES = "test_grounding.py"
REPLIES = "test_parsing.py"
TEXTS = "values/test_comparison.py"
UNITS = "values/test_units.py"
VERDICTS = "test_parsing.py"
VERIFIED = "test_name_verification.py"

INDEX: Index = {
    1: ((MATCHED, "test_trap_1_greedy_loses_a_pair_that_the_best_matching_keeps"),),
    2: (
        (QUANTITIES, "test_the_border_is_inclusive_in_decimals"),
        (QUANTITIES, "test_strict_numbers_have_the_border_of_binary_rounding"),
    ),
    3: (
        (NUMBERS, "test_a_number_is_read_as_papers_print_it"),
        (NUMBERS, "test_strict_reads_decimals_after_dropping_brackets"),
    ),
    4: ((NUMBERS, "test_what_is_more_or_less_than_a_number_has_no_value"),),
    5: (
        (CURATED, "test_only_an_empty_cell_is_missing_unless_pandas_is_asked"),
        (IMPORTED, "test_fields_go_by_several_names_and_others_are_kept"),
    ),
    # any case of it; and as a value of the truth
    6: (
        (TEXTS, "test_a_model_can_say_that_there_is_no_value"),
        (MODELS, "test_a_value_that_says_there_is_none_is_a_value_in_the_truth"),
    ),
    7: ((TEXTS, "test_categories_match_by_the_rule_that_was_set"),),
    8: ((TEXTS, "test_categories_match_by_the_rule_that_was_set"),),
    9: ((TEXTS, "test_keys_that_fold_together_with_two_categories_stand_for_none"),),
    10: (
        (UNITS, "test_letters_of_materials_are_no_ampere_and_no_boltzmann_constant"),
        (UNITS, "test_what_the_grammar_does_not_know_is_no_unit"),
    ),
    11: (
        (UNITS, "test_a_unit_is_told_in_another"),
        (UNITS, "test_units_of_other_dimensions_are_incompatible"),
        (QUANTITIES, "test_units_are_converted_before_numbers_are_compared"),
    ),
    12: (
        (TEXTS, "test_a_space_group_is_known_however_its_symbol_is_printed"),
        (TEXTS, "test_symbols_match_by_their_number_and_unknown_ones_never"),
    ),
    13: (
        (TEXTS, "test_compositions_match_whatever_the_order_of_elements"),
        (TEXTS, "test_unparsed_compositions_can_be_no_match"),
    ),
    14: (
        (MODELS, "test_what_cannot_be_compared_is_in_no_denominator"),
        (
            "values/test_comparison_values_without_extras.py",
            "test_without_pymatgen_compositions_are_left_out",
        ),
        (
            "test_row_outcomes.py",
            "test_compositions_that_are_left_out_are_told_with_their_denominators",
        ),
    ),
    15: (
        (IMPORTED, "test_any_name_is_scored_and_none_names_a_file"),
        (IMPORTED, "test_what_a_scoring_wrote_is_read_back_as_it_was_meant"),
        (FILE, "test_every_name_survives_both_forms"),
    ),
    16: ((MODELS, "test_names_that_differ_in_a_blank_are_two"),),
    17: (
        (
            CANDIDATES,
            "test_a_right_name_is_looked_at_and_never_drafted_unless_all_are_kept",
        ),
        (
            BUILT,
            "test_a_right_name_is_never_renamed_even_where_its_own_alias_was_dropped",
        ),
        (
            MODELS,
            "test_a_name_that_is_right_in_one_paper_may_be_an_alias_nowhere_else",
        ),
    ),
    # clash, chain, cycle, self alias, chain into a cycle, scope
    18: (
        (BUILT, "test_of_rivals_the_one_wins_that_most_speaks_for"),
        (BUILT, "test_a_chain_of_any_depth_is_cut_short_and_its_path_told"),
        (BUILT, "test_names_that_stand_for_one_another_are_dropped_and_named"),
        (BUILT, "test_a_name_that_stands_for_itself_is_left_out_and_told"),
        (
            BUILT,
            "test_a_chain_into_a_circle_ends_there_and_its_target_is_told_to_be_unknown",
        ),
        (BUILT, "test_what_is_said_of_a_paper_goes_before_what_is_said_of_all"),
        (BUILT, "test_whatever_was_decided_one_step_renames_for_good"),
        (GIVEN, "test_what_cannot_be_meant_is_refused_with_its_rows"),
    ),
    19: (
        (MATCHED, "test_a_value_goes_to_the_row_that_needs_no_alias"),
        (MODELS, "test_an_alias_takes_no_value_from_the_right_name"),
    ),
    20: (
        (
            "aliases/test_preparing.py",
            "test_the_loop_gains_what_was_verified_and_leaves_no_trace_in_other_scorings",
        ),
        (
            "test_score.py",
            "test_whatever_lies_in_the_folder_of_a_scoring_the_next_one_is_the_same",
        ),
        (
            "test_check_aliases.py",
            "test_only_a_map_that_is_named_steers_the_next_score",
        ),
    ),
    21: (
        (
            "aliases/test_alias_set.py",
            "test_bookings_come_to_the_change_of_the_true_positives",
        ),
    ),
    # ties, the order of rows, hash seeds, the length of a lower-cased name
    22: (
        (
            CANDIDATES,
            "test_each_wrong_name_has_its_most_similar_targets_and_ties_go_by_name",
        ),
        (
            "test_row_outcomes.py",
            "test_the_order_of_rows_changes_no_metric",
        ),
        (
            "aliases/test_candidates.py",
            "test_another_hash_seed_gives_the_same_candidates_and_the_same_set",
        ),
        (
            "aliases/test_candidates.py",
            "test_similarity_is_that_of_the_lower_cased_names_to_the_last_digit",
        ),
    ),
    23: (
        (
            MODELS,
            "test_a_paper_without_wrong_or_without_missed_rows_offers_no_aliases",
        ),
        (MODELS, "test_without_papers_in_common_nothing_is_defined"),
        (
            IMPORTED,
            "test_a_file_that_is_off_is_told_in_a_sentence_and_nothing_is_written",
        ),
    ),
    24: (
        (VERDICTS, "test_a_verdict_is_a_truth_value_or_its_word"),
        (
            VERDICTS,
            "test_a_reply_that_says_both_or_nothing_is_a_failure_and_never_a_no",
        ),
        (
            VERIFIED,
            "test_finished_pairs_are_not_asked_again_and_scoring_twice_adds_no_column",
        ),
    ),
    25: (
        (VERIFIED, "test_files_are_named_by_the_model_and_none_leaves_its_folder"),
        (IMPORTED, "test_each_model_of_a_file_has_a_folder_of_its_own"),
    ),
    26: (
        (QUOTES, "test_a_quote_or_a_text_without_anything_is_none"),
        (
            QUOTES,
            "test_a_quote_of_two_characters_and_one_of_the_whole_paper_are_looked_up",
        ),
        (QUOTES, "test_parts_between_ellipses_must_stand_in_order_and_close_together"),
        (QUOTES, "test_an_ellipsis_alone_stands_nowhere"),
        (
            QUOTES,
            "test_what_typesetting_changed_is_found_as_it_stands_in_the_raw_text",
        ),
        (
            "test_second_quotes.py",
            "test_quotes_of_all_pieces_are_looked_up_in_the_whole_paper_and_asked_for_once",
        ),
    ),
    27: (
        (
            ASKED,
            "test_a_paper_stands_whole_in_its_block_and_instructions_in_it_are_data",
        ),
        (ASKED, "test_no_text_closes_its_own_block"),
    ),
    28: (
        (
            REPLIES,
            "test_a_reply_cut_short_tells_its_whole_objects_and_gives_them_if_asked_to",
        ),
    ),
    29: ((MATCHED, "test_trap_29_hundreds_of_values_of_one_name_pair_each_once"),),
    30: (
        (
            MATCHED,
            "test_trap_30_values_of_different_materials_meet_only_where_they_are_not_asked",
        ),
    ),
    31: (
        (
            MODELS,
            "test_equal_truth_rows_are_rows_of_their_own_where_models_are_paired",
        ),
    ),
    32: ((MODELS, "test_one_paper_bounds_next_to_nothing"),),
    33: ((LINT, "test_a_rubric_that_slipped_by_a_row_is_seen"),),
    # in the truth, and in predictions
    34: (
        (CURATED, "test_a_value_in_the_column_of_numbers_alone_is_blank"),
        (IMPORTED, "test_fields_go_by_several_names_and_others_are_kept"),
    ),
}


@pytest.mark.parametrize("number", range(1, TRAPS + 1))
def test_each_numbered_trap_has_a_test_that_exists(number: int) -> None:
    assert gone(INDEX[number], HERE) == []
