"""Real predictions, scored by the command: totals, rates and how models compare.

What is asserted was counted beforehand, by other means, and is read from what the
command prints and writes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

import pytest

from jobs.property_extraction.prediction_files import read_predictions
from tests.commands import command
from tests.csv_files import rows
from tests.jobs.property_extraction.real_predictions import (
    CHAT,
    COUNTS,
    FREE,
    GEMINI,
    RealPredictions,
)

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(120)]

WORDS = ("precision", "recall", "f1")
MACRO = tuple(f"macro.{word}" for word in WORDS)

TOTALS = {
    (GEMINI, "siftlog"): (37, 66, 77), (GEMINI, "document"): (31, 83, 83),
    (GEMINI, "published"): (33, 81, 81), (CHAT, "siftlog"): (26, 308, 88),
    (CHAT, "document"): (26, 308, 88), (CHAT, "published"): (27, 307, 87),
    (FREE, "siftlog"): (2, 144, 34), (FREE, "document"): (2, 144, 34),
    (FREE, "published"): (2, 144, 34),
}  # fmt: skip

BY_PAPER = {
    GEMINI: {
        "Paper_1": (11, 24, 25), "Paper_12": (6, 7, 11), "Paper_14": (3, 2, 2),
        "Paper_3": (4, 15, 16), "Paper_6": (7, 8, 9), "Paper_9": (6, 10, 14),
    },
    CHAT: {
        "Paper_1": (11, 97, 25), "Paper_12": (4, 31, 13), "Paper_14": (1, 20, 4),
        "Paper_3": (5, 43, 15), "Paper_6": (3, 50, 13), "Paper_9": (2, 67, 18),
    },
}  # fmt: skip

FREE_RATES = (
    0.0136986301369863, 0.05555555555555555, 0.02197802197802198,
    0.00847457627118644, 0.01694915254237288, 0.011299435028248588,
)  # fmt: skip
RATES = {
    (GEMINI, "siftlog"): (
        0.3592233009708738, 0.32456140350877194, 0.34101382488479265,
        0.2941628264208909, 0.2836021505376344, 0.2874039938556067,
    ),
    (GEMINI, "published"): (0.2894736842105263,) * 3 + (0.2594086021505376,) * 3,
    (CHAT, "siftlog"): (
        0.07784431137724551, 0.22807017543859648, 0.11607142857142858,
        0.08383194583194582, 0.16555555555555554, 0.09902926389654078,
    ),
    (CHAT, "published"): (
        0.08083832335329341, 0.23684210526315788, 0.12053571428571429,
        0.08485758685758686, 0.16777777777777778, 0.10043277266847062,
    ),
    (FREE, "siftlog"): FREE_RATES, (FREE, "document"): FREE_RATES,
    (FREE, "published"): FREE_RATES,
}  # fmt: skip
PROPERTIES = {GEMINI: 62, CHAT: 75, FREE: 118}

ENDS = {
    GEMINI: (
        (0.2926829268292683, 0.463768115942029),
        (0.26921140939597316, 0.40425531914893614),
        (0.2807017543859649, 0.4262880562060887),
    ),
    CHAT: (
        (0.04709141274238227, 0.10140845070422536),
        (0.15178571428571427, 0.2795031055900621),
        (0.07213114754098361, 0.14814814814814814),
    ),
}

DIFFERENCES = {
    "precision": (0.20261831726555654, 0.40168421052631575),
    "recall": (0.016393442622950838, 0.2222222222222222),
    "f1": (0.14823429510254568, 0.33766233766233766),
}

STATUSES = {
    # value, bound, range, not a number
    (GEMINI, "siftlog", "numbers.si"): (61, 1, 2, 14),
    (GEMINI, "document", "numbers.si"): (53, 0, 0, 25),
    (FREE, "siftlog", "numbers"): (79, 0, 9, 58),
}
TP_UNITS = {GEMINI: (23, 1, 5, 8), CHAT: (18, 0, 6, 2)}
"""Matched pairs by the status of their units: same, converted, missing, none."""

ENCOMPASSED = {
    (GEMINI, "published"): (72, 72, 100.0),
    (GEMINI, "siftlog"): (70, 62, 88.57142857142857),
    (CHAT, "published"): (80, 34, 42.5),
    (CHAT, "siftlog"): (81, 35, 43.20987654320988),
    (FREE, "siftlog"): (31, 1, 3.225806451612903),
    (FREE, "document"): (31, 1, 3.225806451612903),
    (FREE, "published"): (31, 1, 3.225806451612903),
}
BY_VALUES = {
    GEMINI: 85.71428571428571, CHAT: 42.04545454545455, FREE: 2.9411764705882355
}  # fmt: skip


def about(value: object) -> object:
    return pytest.approx(value, abs=1e-12, rel=1e-12)


def printed(value: object) -> object:
    """What is drawn is printed with twelve digits."""
    return pytest.approx(value, abs=1e-11)


@pytest.mark.parametrize(("name", "profile"), TOTALS)
def test_every_profile_counts_what_was_counted_beforehand(
    real: RealPredictions, name: str, profile: str
) -> None:
    found = real.scored(name, "--profile", profile)
    assert found.counts == TOTALS[name, profile]
    assert found.alias_id == "e3b0c44298fc"
    if (name, profile) in RATES:
        assert found.values(*WORDS, *MACRO) == about(RATES[name, profile])
        assert found.metrics["macro.f1"]["n"] == PROPERTIES[name]
    if (name, profile) in ENCOMPASSED:
        words = ("misses", "name_matches", "encompassment")
        assert found.values(*words) == about(ENCOMPASSED[name, profile])


@pytest.mark.parametrize("name", [GEMINI, CHAT])
def test_the_files_of_the_first_scoring_say_the_same(
    real: RealPredictions, name: str
) -> None:
    folder = real.run(name) / "scores/1"
    by_paper = {
        row["refno"]: tuple(int(row[word]) for word in COUNTS)
        for row in rows(folder / "papers.csv")
    }
    assert by_paper == BY_PAPER[name]
    card = json.loads((folder / "scorecard.json").read_text("utf-8"))
    (model,) = card["models"].values()
    found = model["metrics"]
    assert tuple(found[word]["value"] for word in COUNTS) == TOTALS[name, "siftlog"]
    drawn = real.scored(name, "--set", "interval=percentile").metrics
    ends = tuple((drawn[word]["lo"], drawn[word]["hi"]) for word in WORDS)
    assert ends == tuple(map(printed, ENDS[name]))
    summed = rows(folder / "score_pr_summary.csv")
    assert len(summed) == PROPERTIES[name]
    assert sum(int(row["tp"]) for row in summed) == TOTALS[name, "siftlog"][0]
    statuses = [row["status"] for row in rows(folder / "score_pr_matches.csv")]
    assert (
        tuple(statuses.count(word.upper()) for word in COUNTS)
        == (TOTALS[name, "siftlog"])
    )


def test_inputs_hold_what_is_known_of_them(real: RealPredictions) -> None:
    folder = real.run(GEMINI) / "scores/1"
    truth = rows(folder / "gt_dump.csv")
    keys = Counter((row["refno"], row["property_name"]) for row in truth)
    assert len(truth) == 126
    assert len({row["refno"] for row in truth}) == 6
    assert sum(n > 1 for n in keys.values()) == 13
    card = json.loads((folder / "scorecard.json").read_text("utf-8"))
    dropped = [own["n"] for own in card["findings"] if own["code"] == "rubric_dropped"]
    assert dropped == [1]


def test_rows_that_are_left_out_are_counted(real: RealPredictions) -> None:
    gemini = real.scored(GEMINI)
    assert gemini.values("rows", "abstained") == (126, 11)
    assert real.scored(GEMINI, "--pymatgen", "on").values("abstained") == (12,)
    assert real.scored(CHAT).values("rows", "abstained") == (409, 0)
    assert real.scored(FREE).values("rows", "repeats") == (146, 28)


def test_means_may_leave_out_what_is_undefined(real: RealPredictions) -> None:
    found = real.scored(GEMINI).metrics
    precision, recall = found["macro.precision~defined"], found["macro.recall~defined"]
    assert (precision["value"], precision["n_defined"]) == (
        about(0.31996658312447784),
        57,
    )
    assert (recall["value"], recall["n_defined"]) == (about(0.2836021505376344), 62)


@pytest.fixture(scope="module")
def paired(real: RealPredictions) -> Mapping[str, Mapping[str, object]]:
    """The metrics of the one pair, Gemini minus the other."""
    done = command(
        *("compare", real.run(CHAT), real.run(GEMINI), "--json"),
        "--interval=percentile",
    )
    assert done.code == 0, done.err
    (pair,) = json.loads(done.out)["pairs"]
    found: Mapping[str, Mapping[str, object]] = pair["metrics"]
    return found


def test_models_differ_on_the_same_draws_of_papers(
    paired: Mapping[str, Mapping[str, object]],
) -> None:
    ends = {word: (paired[word]["lo"], paired[word]["hi"]) for word in WORDS}
    assert ends == {word: printed(own) for word, own in DIFFERENCES.items()}


def test_each_truth_row_is_found_by_both_one_or_none(
    paired: Mapping[str, Mapping[str, object]],
) -> None:
    found = paired["matched"]
    assert found["n"] == 114
    assert found["standing"] == {"wins": 18, "ties": 19 + 70, "losses": 7}
    beside = {"name": "McNemar", "p": printed(0.043285250663757324)}
    assert found["beside"] == beside


@pytest.mark.parametrize(("name", "profile", "path"), STATUSES)
def test_numbers_read_as_is_known(
    real: RealPredictions, name: str, profile: str, path: str
) -> None:
    words = ("value", "bound", "range", "not_a_number")
    found = real.scored(name, "--profile", profile)
    assert (
        found.values(*(f"{path}.{word}" for word in words))
        == STATUSES[name, profile, path]
    )


@pytest.mark.parametrize("name", [GEMINI, CHAT])
def test_units_of_matched_pairs_are_as_is_known(
    real: RealPredictions, name: str
) -> None:
    words = ("same", "converted", "missing", "unknown", "incompatible")
    found = real.scored(name)
    same, converted, missing, *others = found.values(*(f"units.tp.{w}" for w in words))
    assert others == [0, 0]
    kinds = [
        row["rubric"]
        for row in rows(real.run(name) / "scores/1/score_pr_rows.csv")
        if row["status"] == "TP"
    ]
    of_texts = kinds.count("categorical")
    assert (same, converted, missing, of_texts) == TP_UNITS[name]


def test_every_number_of_the_free_names_stands_in_its_quote(
    real: RealPredictions,
) -> None:
    found = real.scored(FREE).metrics
    assert (found["value_in_quote"]["value"], found["value_in_quote"]["n"]) == (1.0, 79)
    assert found["fabricated_quote_rate"]["value"] is None
    assert found["grounding.no_text"]["value"] == 146
    quotes = [row.quote for row in read_predictions(real.folder / FREE)]
    assert sum("..." in quote or "…" in quote for quote in quotes) == 29


@pytest.mark.parametrize("name", BY_VALUES)
def test_misses_are_weighed_by_their_values_too(
    real: RealPredictions, name: str
) -> None:
    (share,) = real.scored(name).values("encompassment~fn_values")
    assert share == about(BY_VALUES[name])
