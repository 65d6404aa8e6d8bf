"""When a predicted value is the true one, by the kind of its property."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobs.property_extraction.rubric import Kind
from jobs.property_extraction.settings import Settings
from jobs.property_extraction.values.categorical import categorical_rule
from jobs.property_extraction.values.comparison import Compared, Edge, Rule, Stated
from jobs.property_extraction.values.composition import (
    composition_rule,
    is_pymatgen_installed,
)
from jobs.property_extraction.values.number import Number
from jobs.property_extraction.values.quantities import Quantities
from jobs.property_extraction.values.space_group import SpaceGroups
from jobs.property_extraction.values.texts import Keyed
from jobs.property_extraction.values.unit import Conversion, StatedUnit
from jobs.property_extraction.values.unit_reader import UnitReader
from jobs.property_extraction.values.unit_row import UnitRow
from runner.errors import DatasetError


class Comparer:
    """Compares values by the settings of a scoring; distinct texts are read once.

    Matching asks for the edges of a group, an explanation for single pairs; both follow
    one rule.

    Raises:
        DatasetError: compositions shall be compared, and pymatgen is not installed.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clusters: Mapping[str, Mapping[str, str]] | None = None,
        space_groups: Mapping[str, int] | None = None,
        unit_table: Iterable[UnitRow] = (),
    ) -> None:
        self._units = UnitReader(unit_table)
        self._quantities = Quantities(
            self._units, numbers=settings.numbers, rule=settings.units
        )
        groups = SpaceGroups(space_groups)
        self._rules: dict[Kind, Rule] = {
            Kind.SI: self._quantities,
            Kind.CATEGORICAL: categorical_rule(
                clusters or {}, rule=settings.categorical, keys=settings.cluster_keys
            ),
            Kind.SPACE_GROUP: Keyed(lambda _, text: groups.number(text)),
            Kind.EXACT: Keyed(lambda _, text: text.strip()),
        }
        if _compares_compositions(settings):
            self._rules[Kind.PYMATGEN] = composition_rule(
                unparsed=settings.unparsed_composition
            )

    @property
    def has_pint(self) -> bool:
        """Whether pint is there; without it most unit names are unknown."""
        return self._units.has_pint

    def left_out(self, kind: Kind) -> bool:
        """Whether properties of a kind cannot be compared, and are in no count."""
        return kind not in self._rules

    def number(self, text: str) -> Number:
        """What number a value states."""
        return self._quantities.number(text)

    def unit(self, text: str) -> StatedUnit:
        """What a unit cell says."""
        return self._units.read(text)

    def conversion(self, prediction: str, truth: str) -> Conversion:
        """How a predicted value is told in the unit of the truth, from unit cells."""
        return self._quantities.conversion(prediction, truth)

    def compare(
        self, kind: Kind, name: str, prediction: Stated, truth: Stated
    ) -> Compared:
        """Compare one pair of a property."""
        if self.left_out(kind):
            return Compared(reason="left_out")
        return self._rules[kind].compare(name, prediction, truth)

    def edges(
        self,
        kind: Kind,
        name: str,
        predictions: Sequence[Stated],
        truths: Sequence[Stated],
    ) -> Iterator[Edge]:
        """All pairs of a group that match, by prediction and then truth."""
        if self.left_out(kind):
            return iter(())
        return self._rules[kind].edges(name, predictions, truths)

    def value_hits(
        self, predictions: Sequence[Stated], truths: Sequence[Stated]
    ) -> Iterator[Edge]:
        """All pairs of equal numbers in units that were checked, whatever the names."""
        return self._quantities.checked_edges(predictions, truths)


def _compares_compositions(settings: Settings) -> bool:
    if settings.pymatgen == "on" and not is_pymatgen_installed():
        raise DatasetError(
            "pymatgen=on: comparing compositions needs pymatgen (install "
            "siftlog[materials], or leave them out by pymatgen=leave_out)."
        )
    return settings.pymatgen != "leave_out" and is_pymatgen_installed()
