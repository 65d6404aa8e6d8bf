"""Checks certificates by the function that an installed package offers.

The package registers it as an entry point of the group `siftlog.certificates`, under
the kind of the certificate, and under `KIND-frame` the `CertificateFrames` by which
redacted bundles state certificates without texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from runner.errors import UsageError
from runner.installed import entry_points

GROUP: Final = "siftlog.certificates"


class CheckedCertificate(Protocol):
    """The check of a certificate."""

    @property
    def name(self) -> str:
        """The file, as messages name it."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing differs."""

    @property
    def problems(self) -> Sequence[str]:
        """Return a sentence for each difference."""

    @property
    def sentence(self) -> str:
        """Return what a sound certificate proves."""

    @property
    def as_json(self) -> dict[str, Any]:
        """All of it, for `--json`."""


class CheckCertificate(Protocol):
    """The function of an entry point."""

    def __call__(self, path: Path, *, is_bundled: bool) -> CheckedCertificate:
        """Compute a certificate again."""
        ...


def checked_certificate(path: Path, *, is_bundled: bool = False) -> CheckedCertificate:
    """Check a certificate.

    Args:
        path: of `certificate.json`.
        is_bundled: it is in the folder of an unpacked bundle, whose inputs are the only
            files that may be read.

    Raises:
        UsageError: no installed package checks it.
    """
    for point in entry_points(group=GROUP, name="screening"):
        check: CheckCertificate = point.load()
        return check(path, is_bundled=is_bundled)
    raise UsageError(
        f"{path} cannot be checked without siftlog's jobs: install siftlog again."
    )


Frame = TypeVar("Frame")


Stated: TypeAlias = Mapping[str, bool | int | float]
"""Numbers that a certificate states, by name."""


@dataclass(frozen=True, slots=True)
class CertificateFrames(Generic[Frame]):
    """Computes the statement of a certificate from numbers."""

    frame: type[Frame]
    """A dataclass, of the types that `runner.evaluation.Evaluation.frame` may have."""
    of: Callable[[Path], Frame]
    """Returns the frame of a `certificate.json`, from the files that it names; raises
    `ValueError` if they give none."""
    stated: Callable[[Frame], Stated]
    """Returns numbers of the certificate by name, as `certificate.json` has them;
    raises `ValueError` if the frame contradicts itself."""


def certificate_frames() -> CertificateFrames[Any]:
    """Return how certificates are stated without texts.

    Raises:
        UsageError: no installed package does it.
    """
    for point in entry_points(group=GROUP, name="screening-frame"):
        frames: CertificateFrames[Any] = point.load()
        return frames
    raise UsageError("certificates need siftlog's jobs: install siftlog again.")
