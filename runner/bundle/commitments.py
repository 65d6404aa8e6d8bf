"""Commits to values with a salt, so that each can be opened alone, later.

    commitment = SHA-256(domain, salt, length of the place, place, value)

A place is where the value stands, such as `event/17/payload`; with it hashed, an
opening for one place proves nothing at another. The place of a value that stands in
many places (a paper in twenty prompts, the key of an item) is only its sort, `part` or
`key`, so that equal values have one commitment.

Salts have 32 bytes and follow from the author's secret by HMAC-SHA-256 (RFC 2104, a
pseudorandom function), so that a secret of 32 bytes opens a million values, and an
opened salt says nothing about others. They also depend on the bundled log and scoring:
a secret that is used again for other content gives other salts.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, Self

from runner.errors import RunnerError, UsageError

SALT_BYTES: Final = 32
HASH_BYTES: Final = 32
SECRET_SCHEMA: Final = "siftlog.redaction-secret/1"  # noqa: S105 - no password

_COMMITMENT: Final = b"siftlog commitment 1\0"
_SALT: Final = b"siftlog salt 1\0"
_LENGTH: Final = struct.Struct("<Q")


def commitment_of(place: str, salt: bytes, value: bytes) -> bytes:
    """Return the commitment to a value: 32 bytes.

    The encoding is injective: the salt has a fixed length, the place its length before.
    """
    name = place.encode()
    parts = (_COMMITMENT, salt, _LENGTH.pack(len(name)), name, value)
    return hashlib.sha256(b"".join(parts)).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What proves a value to whoever has the redacted bundle."""

    at: str  #: the part of the bundle that holds the commitment, such as "event/17"
    place: str  #: that was committed to
    salt: bytes
    value: bytes

    @property
    def commitment(self) -> bytes:
        """The commitment that the bundle must hold."""
        return commitment_of(self.place, self.salt, self.value)

    @property
    def text(self) -> str | None:
        """The value as text; None: it is not UTF-8."""
        try:
            return self.value.decode()
        except UnicodeDecodeError:
            return None

    def as_json(self) -> dict[str, str]:
        """Return the opening for a disclosure file."""
        text = self.text
        value = (
            {"base64": b64encode(self.value).decode()}
            if text is None
            else {"text": text}
        )
        return {"at": self.at, "place": self.place, "salt": self.salt.hex(), **value}

    @classmethod
    def of_json(cls, fields: Any) -> Self:  # noqa: ANN401 - of any file
        """Return the opening in a disclosure file.

        Raises:
            ValueError: it is none.
        """
        try:
            value = (
                fields["text"].encode()
                if "text" in fields
                else b64decode(fields["base64"], validate=True)
            )
            salt = bytes.fromhex(fields["salt"])
            at, place = str(fields["at"]), str(fields["place"])
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"an opening lacks a field ({error})") from error
        if len(salt) != SALT_BYTES:
            raise ValueError(f"a salt has {len(salt)} bytes instead of {SALT_BYTES}")
        return cls(at=at, place=place, salt=salt, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionSecret:
    """The author's secret of one redacted bundle; it opens every value."""

    run: str
    scoring: int
    key: bytes = field(repr=False)

    @classmethod
    def at(cls, path: Path, run: str, scoring: int) -> Self:
        """Return the secret in a file, or write a new one.

        An existing file is never replaced: bundles that were handed out depend on it.

        Raises:
            UsageError: the file has the secret of another bundle, or is no secret.
            RunnerError: it cannot be written.
        """
        if path.exists():
            secret = cls.read(path)
            if (secret.run, secret.scoring) != (run, scoring):
                raise UsageError(
                    f"{path} is the secret of scoring {secret.scoring} of "
                    f"{secret.run}: name another --secret."
                )
            return secret
        secret = cls(run=run, scoring=scoring, key=secrets.token_bytes(SALT_BYTES))
        content = {
            "schema": SECRET_SCHEMA,
            "run": run,
            "scoring": scoring,
            "key": secret.key.hex(),
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(path, flags, 0o600), "w") as file:
                file.write(json.dumps(content, indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunnerError(
                f"{path} cannot be written ({error.strerror}): name another --secret."
            ) from error
        return secret

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the secret in a file.

        Raises:
            UsageError: there is none.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["schema"] != SECRET_SCHEMA:
                raise ValueError(content["schema"])  # noqa: TRY301 - one message for all
            key = bytes.fromhex(content["key"])
            secret = cls(run=content["run"], scoring=content["scoring"], key=key)
        except OSError as error:
            raise UsageError(
                f"{path}, the secret of the bundle, cannot be read ({error.strerror}): "
                "restore it or name it with --secret; without it nothing can be "
                "disclosed."
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{path} is no secret of a redacted bundle: name with --secret the "
                "file that siftlog bundle --redact wrote."
            ) from error
        if len(secret.key) != SALT_BYTES:
            raise UsageError(f"{path} has no key of {SALT_BYTES} bytes: restore it.")
        return secret


Note = Callable[[str, str, bytes, bytes], None]
"""Receives the part of the bundle, place, salt and value of each commitment."""


class Commitments(Protocol):
    """Commits to values; `SaltedCommitter` in earnest."""

    at: str  #: the part of the bundle that is being redacted

    def place(self, place: str, value: bytes) -> bytes:
        """Commit to the value of one place."""
        ...

    def shared(self, sort: str, value: bytes) -> bytes:
        """Commit to a value that may stand in many places; equal for equal values."""
        ...


@dataclass(slots=True)
class SaltedCommitter:
    """Commits to the values of one bundle."""

    secret: RedactionSecret
    context: bytes  #: hash of what is bundled
    note: Note | None = None  #: None: nobody listens
    at: str = ""  #: the part of the bundle that is being redacted

    def place(self, place: str, value: bytes) -> bytes:
        """Commit to the value of one place."""
        return self._commit(place, self._salt(b"P", place.encode()), value)

    def shared(self, sort: str, value: bytes) -> bytes:
        """Commit to a value that may stand in many places; equal for equal values."""
        discriminator = sort.encode() + b"\0" + hashlib.sha256(value).digest()
        return self._commit(sort, self._salt(b"S", discriminator), value)

    def _salt(self, kind: bytes, name: bytes) -> bytes:
        message = _SALT + self.context + kind + name
        return hmac.digest(self.secret.key, message, "sha256")

    def _commit(self, place: str, salt: bytes, value: bytes) -> bytes:
        if self.note is not None:
            self.note(self.at, place, salt, value)
        return commitment_of(place, salt, value)
