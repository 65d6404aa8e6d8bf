"""A post ready for every configuration: what all models share about its sentences."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from jobs.evidence_retrieval.asking import orders
from jobs.evidence_retrieval.dataset import Dataset, Post, query_key
from jobs.evidence_retrieval.predicting.outputs import Cosines
from jobs.evidence_retrieval.stages.graph import edges
from jobs.evidence_retrieval.stages.likeness import lexical_likeness
from jobs.evidence_retrieval.stages.ordering import DECIMALS
from jobs.metrics.columns import Floats


class Pool:
    """A post with its criteria; columns of matrices are criteria.

    Whatever does not depend on a model is computed once and when it is asked for: the
    lexical scores, and the one graph that serves all criteria and configurations.
    """

    def __init__(self, dataset: Dataset, post: Post, cosines: Cosines | None) -> None:
        self.post = post
        self.keys = [query_key(post.id, each.id) for each in dataset.criteria]
        self.cosines = cosines
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self.post.sentences)

    @cached_property
    def lexical(self) -> Floats:
        """The bm25 score of each sentence (rows) for each criterion."""
        bm25 = orders.lexical(self._dataset, self.post)
        criteria = self._dataset.criteria
        table = np.empty((len(self), len(criteria)))
        for column, criterion in enumerate(criteria):
            table[:, column] = bm25.scores(criterion.text)
        return np.round(table, DECIMALS)

    @cached_property
    def weights(self) -> Floats:
        """The graph: by embedding where there is one, else by words."""
        if self.cosines is not None:
            return edges(self.cosines.between)
        return edges(lexical_likeness([each.text for each in self.post.sentences]))
