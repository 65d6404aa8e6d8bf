"""Names, meanings and directions of the metrics of screening."""

from __future__ import annotations

from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from jobs.screening.decisions import OUTCOMES
from jobs.screening.ranking import RANKING, RECALL_AT, THRESHOLD_RATES, THRESHOLDS, WSS
from jobs.screening.rates import COUNTS, PREDICTED, RATES, READING_WORDS
from jobs.screening.results import REASONS, REPLICATES, REPLIES
from jobs.screening.strata import CALIBRATION, CONTAMINATION, KINDS

MEASURES = Measures(
    headlines=(
        "all.micro.sensitivity",
        "all.micro.as_include.sensitivity",
        "all.micro.specificity",
        "near-miss.micro.specificity",
        "random.micro.specificity",
        "true-excluded.micro.specificity",
        "all.micro.coverage",
        "all.macro.wss95",
        "all.macro.auroc",
    ),
    operational=(
        "all.micro.n",
        "all.micro.reviews",
        "all.micro.decided",
        "all.micro.coverage",
        "all.micro.coverage~wilson",
        "all.micro.imputed",
        "all.micro.outcome.{outcome}",
        "reply.{rule*}",
        "skip.{reason*}",
        "parse_failure_rate",
        "replicates.{figure}",
    ),
    scopes={
        # all records, pooled: the default, which names leave out
        "all.": MeasurePart(name="", meaning="all records"),
        "near-miss.": MeasurePart(
            name="near misses", meaning="the negatives are papers of related reviews"
        ),
        "random.": MeasurePart(
            name="random negatives",
            meaning="the negatives are papers of any other review",
        ),
        "true-excluded.": MeasurePart(
            name="true exclusions",
            meaning="the negatives are papers that the reviews excluded",
        ),
        "{stratum}.": MeasurePart(
            name="{stratum}", meaning="the negatives are of the kind {stratum}"
        ),
        "micro.": MeasurePart(name="", meaning="all reviews pooled"),
        "macro.": MeasurePart(name="mean over reviews"),
        "as_include.": MeasurePart(
            name="undecided as included",
            meaning="undecided records count as included, as if a person read them",
        ),
        "as_exclude.": MeasurePart(
            name="undecided as excluded", meaning="undecided records count as excluded"
        ),
    },
    forms={
        **BASELINE_FORMS,
        "~wilson": MeasurePart(
            name="Wilson interval",
            meaning="with an interval that takes records as independent",
        ),
        "~std": MeasurePart(
            name="standard deviation",
            meaning="standard deviation over reviews",
            direction="neither",
        ),
    },
    slots={
        "outcome": {word: word for word in OUTCOMES},
        "choice": {
            "in_sample": "threshold chosen on the same records",
            "leave_one_out": "threshold chosen on the other reviews",
        },
    },
    measures={
        **COUNTS,
        **RATES,
        **READING_WORDS,
        **CALIBRATION,
        **PREDICTED,
        "wss{level*}": WSS,
        "recall_at_{share*}pct": RECALL_AT,
        **RANKING,
        **{f"kinds.{a}-{b}.specificity": gap for (a, b), gap in KINDS.items()},
        **CONTAMINATION,
        **THRESHOLD_RATES,
        **THRESHOLDS,
        **REASONS,
        **REPLICATES,
        # the first matching pattern wins
        "reply.parse.{rule*}": Measure(
            "Unreadable replies, {rule}",
            "Replies without a readable decision, for the reason {rule}",
            "lower",
        ),
        **REPLIES,
    },
)
