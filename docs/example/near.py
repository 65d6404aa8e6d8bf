"""near: the job participants, with a measure of its own."""

import participants

import siftlog
from jobs.kit.evaluation import SourceMeasures
from jobs.kit.measurements import MeasuredValue, share
from jobs.kit.measures import ValueMeasure
from jobs.kit.questions import Questions

TENTH = 0.1


def errors(dataset: Questions, answers: siftlog.Answers) -> dict[str, list[float]]:
    """By model: how far each number is from the truth, as a share of it."""
    found: dict[str, list[float]] = {model: [] for model in answers.models}
    for family in answers.families():
        for answer in family:
            row = dataset.rows.get(answer.task.key)
            read = job.read(answer.chat.text) if answer.chat else None
            if row and row.enrolled and read is not None:
                error = abs(read - row.enrolled) / row.enrolled
                found[answer.task.model].append(error)
    return found


def near(errors: list[float]) -> MeasuredValue:
    return share(sum(error <= TENTH for error in errors), len(errors))


class Near(participants.Participants):
    further = SourceMeasures(
        source=list[float],
        collect=errors,
        measures={
            "near": ValueMeasure(
                "Near the truth",
                "Share of the numbers within a tenth of the truth",
                "higher",
                of=near,
                definition="near@1(numbers within 10 % of the truth / numbers read)",
            )
        },
    )


job = Near()
