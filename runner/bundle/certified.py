"""States certificates of screening in a redacted bundle, and computes them again.

A certificate names people, records and the library, and has copies of label logs. What
it proves follows from numbers (`runner.certificates.CertificateFrames`). A redacted
bundle has these, what the certificate states, and a commitment to its file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from runner.bundle.frame import FRAME, decoded_frame, encoded_frame
from runner.bundle.redaction import Redactor
from runner.certificates import Stated, certificate_frames
from runner.errors import RunnerError
from store.runs import CERTIFICATES, RunFolder, certificates_in

STATED: Final = "stated.json"


class StatedCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `certificates/N/stated.json`."""

    stated: Stated
    commitment: str  #: hex, to the SHA-256 of `certificate.json`, in hex


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateContent:
    """A certificate before anything is redacted."""

    sha256: str  #: of `certificate.json`, in hex
    frame: Any
    stated: Stated

    def redacted(self, name: str, redactor: Redactor) -> dict[str, bytes]:
        """Return its files in a redacted bundle.

        Args:
            name: of its folder, such as `certificates/1`.
            redactor: of the bundle.
        """
        frame = encoded_frame(self.frame, redactor, ())
        redactor.commit.at = name
        commitment = redactor.commit.place(f"{name}/sha256", self.sha256.encode())
        stated = StatedCertificate(stated=self.stated, commitment=commitment.hex())
        return {
            f"{name}/{FRAME}": frame,
            f"{name}/{STATED}": msgspec.json.encode(stated),
        }


def certificate_contents(folder: RunFolder) -> dict[str, CertificateContent]:
    """Return the certificates of a run, by folder.

    Raises:
        RunnerError: one is not sound.
    """
    contents = {}
    for path in certificates_in(folder.path):
        frames = certificate_frames()
        content = path.read_bytes()
        try:
            frame = frames.of(path)
            stated = frames.stated(frame)
        except ValueError as error:
            raise RunnerError(
                f"{path} cannot be computed again ({error}): siftlog verify {path} "
                "checks it."
            ) from error
        document = msgspec.json.decode(content)
        for name, value in stated.items():
            if document.get(name) != value:
                raise RunnerError(
                    f"{path} states {document.get(name)} as its {name}, and its steps "
                    f"give {value}: siftlog verify {path} checks it."
                )
        contents[f"{CERTIFICATES}/{path.parent.name}"] = CertificateContent(
            sha256=hashlib.sha256(content).hexdigest(), frame=frame, stated=stated
        )
    return contents


def certified_folders(folder: Path) -> list[Path]:
    """Return the folders of certificates in an unpacked redacted bundle."""
    return sorted(path.parent for path in (folder / CERTIFICATES).glob(f"*/{STATED}"))


def wrong_certificates(folder: Path) -> Iterator[str]:
    """Compute the certificates of an unpacked redacted bundle again.

    Yields:
        `NUMBER: SENTENCE` for each value that came out differently.
    """
    for path in certified_folders(folder):
        frames = certificate_frames()
        try:
            content = msgspec.json.decode(
                (path / STATED).read_bytes(), type=StatedCertificate
            )
            frame = decoded_frame((path / FRAME).read_bytes(), frames.frame)
            computed = frames.stated(frame)
        except (OSError, ValueError, IndexError) as error:
            yield f"{path.name}: cannot be computed ({error})"
            continue
        for name in sorted({*computed, *content.stated}):
            if computed.get(name) != content.stated.get(name):
                yield (
                    f"{path.name}: {name} is {content.stated.get(name)}, and the steps "
                    f"of the screening give {computed.get(name)}"
                )
