"""Names, meanings and directions of the metrics of screening."""

from __future__ import annotations

from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from jobs.screening.decisions import OUTCOMES

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
    scopes={
        # all records, pooled: the plain case, which a name leaves out
        "all.": MeasurePart(name="", meaning="all records"),
        "near-miss.": MeasurePart(
            name="near misses",
            meaning="the negatives are papers of related reviews",
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
            name="undecided as excluded",
            meaning="undecided records count as excluded",
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
        "n": Measure(name="Records", meaning="Number of records"),
        "positives": Measure(
            name="Included papers", meaning="Number of papers that the reviews include"
        ),
        "reviews": Measure(name="Reviews", meaning="Number of reviews"),
        "decided": Measure(
            name="Decided records",
            meaning="Number of records that the model includes or excludes",
        ),
        "tp": Measure(
            name="True positives",
            meaning="Number of included papers that the model includes",
            direction="higher",
        ),
        "fp": Measure(
            name="False positives",
            meaning="Number of negatives that the model includes",
            direction="lower",
        ),
        "tn": Measure(
            name="True negatives",
            meaning="Number of negatives that the model excludes",
            direction="higher",
        ),
        "fn": Measure(
            name="False negatives",
            meaning="Number of included papers that the model excludes",
            direction="lower",
        ),
        "outcome.{outcome}": Measure(
            name="Records with outcome {outcome}",
            meaning="Number of records whose outcome is {outcome}",
        ),
        "imputed": Measure(
            name="Records ranked by decision",
            meaning="Number of records without a probability, which rank by decision",
        ),
        "coverage": Measure(
            name="Coverage",
            meaning="Share of records that the model decided",
            direction="higher",
        ),
        "sensitivity": Measure(
            name="Sensitivity",
            meaning="Of the papers that the reviews include, the share that the model "
            "includes among those that it decided",
            direction="higher",
        ),
        "as_include.sensitivity": Measure(
            name="Sensitivity, undecided as included",
            meaning="Of the papers that the reviews include, the share that is kept "
            "where a person reads whatever the model leaves undecided",
            direction="higher",
        ),
        "as_exclude.sensitivity": Measure(
            name="Sensitivity, undecided as excluded",
            meaning="Of the papers that the reviews include, the share that the model "
            "includes, with undecided papers lost",
            direction="higher",
        ),
        "specificity": Measure(
            name="Specificity",
            meaning="Of the negatives that the model decided, the share that it "
            "excludes",
            direction="higher",
        ),
        "as_include.specificity": Measure(
            name="Specificity, undecided as included",
            meaning="Of the negatives, the share that nobody has to read where a "
            "person reads whatever the model leaves undecided",
            direction="higher",
        ),
        "as_exclude.specificity": Measure(
            name="Specificity, undecided as excluded",
            meaning="Of the negatives, the share that is not included, with undecided "
            "records excluded",
            direction="higher",
        ),
        "fpr": Measure(
            name="False positive rate",
            meaning="Of the negatives that the model decided, the share that it "
            "includes",
            direction="lower",
        ),
        "precision": Measure(
            name="Precision",
            meaning="Of the papers that the model includes, the share that the reviews "
            "include",
            direction="higher",
        ),
        "npv": Measure(
            name="Negative predictive value",
            meaning="Of the papers that the model excludes, the share that the reviews "
            "do not include",
            direction="higher",
        ),
        "f1": Measure(
            name="F1",
            meaning="Harmonic mean of precision and sensitivity",
            direction="higher",
        ),
        "f2": Measure(
            name="F2",
            meaning="Harmonic mean of precision and sensitivity, with sensitivity "
            "weighted four times as much",
            direction="higher",
        ),
        "accuracy": Measure(
            name="Accuracy",
            meaning="Share of decided records with the right decision",
            direction="higher",
        ),
        "nnr": Measure(
            name="Number needed to read",
            meaning="Papers that the model includes for each one that the reviews "
            "include",
            direction="lower",
        ),
        "workload_reduction": Measure(
            name="Workload reduction",
            meaning="Share of decided records that the model excludes, rightly or "
            "wrongly",
        ),
        "balanced_accuracy": Measure(
            name="Balanced accuracy",
            meaning="Mean of sensitivity and specificity; chance is 0.5",
            direction="higher",
        ),
        "mcc": Measure(
            name="Matthews correlation",
            meaning="Correlation of decisions with the reviews' own; chance is 0",
            direction="higher",
        ),
        "kappa": Measure(
            name="Cohen's kappa",
            meaning="Agreement of decisions with the reviews' own beyond chance",
            direction="higher",
        ),
        "ac1": Measure(
            name="Gwet's AC1",
            meaning="Agreement of decisions with the reviews' own beyond chance, "
            "robust where one class is rare",
            direction="higher",
        ),
        "brier": Measure(
            name="Brier score",
            meaning="Mean squared distance of stated probabilities from the reviews' "
            "decisions",
            direction="lower",
        ),
        "ece10": Measure(
            name="Expected calibration error",
            meaning="Mean distance of stated probabilities from the share included, in "
            "ten bins",
            direction="lower",
        ),
        "ppv_at_{prevalence*}": Measure(
            name="Precision at prevalence {prevalence}",
            meaning="Precision that sensitivity and specificity give where a share of "
            "{prevalence} of all records is eligible",
            direction="higher",
        ),
        "wss{level*}": Measure(
            name="WSS at {level}%",
            meaning="Work saved over sampling: the share of reading saved, beyond "
            "chance, when a person reads in the model's order until {level}% of a "
            "review's papers are found",
            direction="higher",
        ),
        "tnr95": Measure(
            name="True negative rate at 95% recall",
            meaning="Share of negatives that rank below the place where 95% of a "
            "review's papers are found",
            direction="higher",
        ),
        "recall_at_{share*}pct": Measure(
            name="Recall in the first {share}%",
            meaning="Share of a review's papers in the first {share}% of the model's "
            "order",
            direction="higher",
        ),
        "atd": Measure(
            name="Average time to discovery",
            meaning="Mean rank of a review's papers as a share of its records",
            direction="lower",
        ),
        "last_relevant_rank": Measure(
            name="Rank of the last included paper",
            meaning="Records that a person reads in the model's order until the last "
            "paper of a review is found",
            direction="lower",
        ),
        "loss": Measure(
            name="Ranking loss",
            meaning="Distance of the model's order from the best one; 0 is the best "
            "order, 1 the worst",
            direction="lower",
        ),
        "ndcg": Measure(
            name="Normalised discounted cumulative gain",
            meaning="How near the model's order is to one with all included papers "
            "first, which has 1",
            direction="higher",
        ),
        "auroc": Measure(
            name="AUROC",
            meaning="How often an included paper ranks above a negative of its review; "
            "chance is 0.5",
            direction="higher",
        ),
        "ap": Measure(
            name="Average precision",
            meaning="Precision averaged over the ranks of a review's included papers; "
            "chance is the share included",
            direction="higher",
        ),
        "kinds.near-miss-random.specificity": Measure(
            name="Specificity, near misses minus random negatives",
            meaning="How much less often the model excludes papers of related reviews "
            "than papers of any other, as a mean over reviews that have both",
        ),
        "kinds.near-miss-true-excluded.specificity": Measure(
            name="Specificity, near misses minus true exclusions",
            meaning="How much more often the model excludes papers of related reviews "
            "than papers that the review excluded, as a mean over reviews with both",
        ),
        "kinds.random-true-excluded.specificity": Measure(
            name="Specificity, random negatives minus true exclusions",
            meaning="How much more often the model excludes papers of any other review "
            "than papers that the review excluded, as a mean over reviews with both",
        ),
        "contamination.implied": Measure(
            name="Implied eligible near misses",
            meaning="Share of near misses that would have to be eligible to explain "
            "how often the model includes them, under strong assumptions",
        ),
        "threshold95.{choice}.sensitivity": Measure(
            name="Sensitivity at a threshold for 95%, {choice}",
            meaning="Sensitivity where records are included from the largest "
            "probability that reaches 95% sensitivity; {choice}",
            direction="higher",
        ),
        "threshold95.{choice}.specificity": Measure(
            name="Specificity at a threshold for 95% sensitivity, {choice}",
            meaning="Specificity where records are included from the largest "
            "probability that reaches 95% sensitivity; {choice}",
            direction="higher",
        ),
        "threshold95.{choice}.threshold": Measure(
            name="Threshold for 95% sensitivity, {choice}",
            meaning="Largest probability of inclusion that reaches 95% sensitivity; "
            "{choice}",
        ),
        "reasons.agreement": Measure(
            name="Reason agreement",
            meaning="Of the right exclusions with a coded reason, the share for which "
            "the model gives the review's reason",
            direction="higher",
        ),
        "reasons.other": Measure(
            name="Exclusion reasons coded other",
            meaning="Right exclusions whose reason in the review has the code other",
        ),
        "reasons.uncoded": Measure(
            name="Exclusions without a reason",
            meaning="Right exclusions for which no reason of the review is known",
        ),
        "replicates.flip_rate": Measure(
            name="Flip rate",
            meaning="Share of records whose replicates do not all give one decision",
            direction="lower",
        ),
        "replicates.fleiss_kappa": Measure(
            name="Fleiss' kappa over replicates",
            meaning="Agreement of a model's replicates with one another beyond chance",
            direction="higher",
        ),
        "reply.parse.{rule*}": Measure(
            name="Unreadable replies, {rule}",
            meaning="Replies without a readable decision, for the reason {rule}",
            direction="lower",
        ),
        "reply.{rule*}": Measure(
            name="Replies noted as {rule}",
            meaning="Replies in which the reader noted {rule}",
        ),
        "skip.{reason*}": Measure(
            name="Skipped records, {reason}",
            meaning="Records that were not screened, for the reason {reason}",
        ),
        "parse_failure_rate": Measure(
            name="Unreadable replies",
            meaning="Share of replies without a readable decision, over all stages and "
            "replicates",
            direction="lower",
        ),
    },
)
