"""Makes the evaluation of a job whose measures are declared with `jobs.kit.measures`.

A redacted bundle has no reply and no text. It has a frame, from which anyone computes
the metrics again (`runner.evaluation`). Measures that are declared for a source are
functions of it, so the frame is the source of each model, and the documents that
intervals are drawn over. The job collects the sources, and the kit does all else:

    >>> from jobs.kit.metrics import Ratio
    >>> @dataclass(frozen=True, slots=True, kw_only=True)
    ... class Doses:
    ...     right: tuple[int, ...]  # by paper
    ...     judged: tuple[int, ...]
    >>> doses = SourceMeasures(
    ...     source=Doses,
    ...     measures={
    ...         "accuracy": RateMeasure(
    ...             "Accuracy",
    ...             "Share of doses that were answered right",
    ...             "higher",
    ...             of=lambda doses: Ratio(doses.right, doses.judged),
    ...             definition="accuracy@1(right / judged doses)",
    ...         )
    ...     },
    ... )
    >>> frame = SourceFrame(
    ...     models={"atlas": Doses(right=(1, 2), judged=(2, 2))},
    ...     documents=("p1", "p2"),
    ...     cluster="paper",
    ... )
    >>> (accuracy,) = doses.evaluation.metrics(frame)["atlas"]
    >>> accuracy.name, accuracy.value
    ('Accuracy', 0.75)

The scorecard of such a job has `models=doses.evaluation.metrics(frame)` and
`frame=lambda: frame`, and the job has `evaluation = doses.evaluation`. A `QuestionJob`
needs none of this: it names the measures that it adds as `further`.

A source is a dataclass of numbers, arrays and texts, or a list of them. Texts become
tokens in a redacted bundle, which sort like the texts, unless their field has the
metadata `STAYS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from jobs.kit.measurements import Measurement, with_intervals
from jobs.kit.measures import Measures, RateMeasure, ValueMeasure, measured
from jobs.kit.metrics import Resamples
from runner.evaluation import KEYS_STAY, STAYS, Evaluation
from runner.job import Answers
from runner.scorecard import Metric

Source = TypeVar("Source")
"""What the measures of one model are computed from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFrame(Generic[Source]):
    """What all metrics of a run are computed from."""

    models: Mapping[str, Source] = field(metadata=KEYS_STAY)
    documents: tuple[str, ...]
    """Names of the clusters that a `RateMeasure` has its numbers of, in their order."""
    cluster: str = field(metadata=STAYS)  #: what one of them is called, such as "paper"
    level: float = 0.95  #: of the intervals
    boot_b: int = 2000  #: bootstrap replicates; 0: no intervals
    boot_seed: int = 20260118

    @property
    def draws(self) -> Resamples:
        """The resamples of the documents."""
        return Resamples(
            self.documents,
            self.boot_b,
            self.boot_seed,
            level=self.level,
            cluster=self.cluster,
        )


@dataclass(frozen=True, kw_only=True)
class SourceMeasures(Generic[Source]):
    """Measures of one source, and how the source of each model is collected."""

    source: type[Source]
    measures: Mapping[str, ValueMeasure[Source] | RateMeasure[Source]]
    collect: Callable[[Any, Answers], Mapping[str, Source]] = lambda _, __: {}
    """Returns the sources by model, from the data set and the answers. A `QuestionJob`
    calls it; other jobs collect what they need in `score`."""

    def measurements(self, source: Source) -> Iterator[Measurement]:
        """The values of one model, without intervals."""
        return measured(self.measures, source)

    @property
    def evaluation(self) -> Evaluation[SourceFrame[Source]]:
        """Computes the metrics of all models from a `SourceFrame`."""
        frame: Any = SourceFrame
        return Evaluation(frame[self.source], self._metrics)

    def _metrics(self, frame: SourceFrame[Source]) -> Mapping[str, Sequence[Metric]]:
        words, draws = Measures(measures=self.measures), frame.draws
        return {
            model: words.describe(with_intervals(self.measurements(source), draws))
            for model, source in frame.models.items()
        }
