"""What makes a task itself in every log of a run, whatever its number there."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

_ENCODER = msgspec.json.Encoder()


def name_of(stage: str, key: str, model: str, replicate: int) -> bytes:
    """The 16 bytes under which the union finds a task."""
    identity = _ENCODER.encode((stage, key, model, replicate))
    return blake2b(identity, digest_size=16).digest()
