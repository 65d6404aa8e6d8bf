"""Names that stand for one another in a circle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components


def loops(targets: Mapping[str, Collection[str]]) -> tuple[frozenset[str], ...]:
    """The strongly connected components of two names or more, by their lowest name.

    Args:
        targets: of each name, what it stands for; of itself does not count.
    """
    edges = [(name, target) for name, own in targets.items() for target in own]
    names = sorted({name for edge in edges for name in edge})
    place = {name: at for at, name in enumerate(names)}
    rows = [place[name] for name, _ in edges]
    columns = [place[target] for _, target in edges]
    graph = csr_array(
        (np.ones(len(edges), np.int8), (rows, columns)), shape=(len(names),) * 2
    )
    _, labels = connected_components(graph, connection="strong")
    components: defaultdict[int, list[str]] = defaultdict(list)
    for name, label in zip(names, labels.tolist(), strict=True):
        components[label].append(name)
    return tuple(frozenset(own) for own in components.values() if len(own) > 1)
