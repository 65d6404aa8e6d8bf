"""The files of OpenAI's form: what was uploaded, and the results of batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from runner.simulate.batch.exchange import NOT_FOUND, Refusal
from runner.simulate.batch.office import fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file."""

    id: str
    name: str
    purpose: Literal["batch", "batch_output"]
    created_us: int
    content: bytes

    def described(self) -> dict[str, Any]:
        """What OpenAI tells of it."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": self.created_us // 1_000_000,
            "expires_at": None,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }


class Files:
    """All files, each known by its id."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._files: dict[str, File] = {}
        self._made = 0

    def add(
        self,
        name: str,
        content: bytes,
        now_us: int,
        *,
        purpose: Literal["batch", "batch_output"],
    ) -> File:
        """Keep a new file."""
        file = File(
            id=f"file-{fresh(self._seed, self._made, now_us)}",
            name=name,
            purpose=purpose,
            created_us=now_us,
            content=content,
        )
        self._made += 1
        self._files[file.id] = file
        return file

    def find(self, file_id: str) -> File:
        """The file of that id; a `Refusal` where there is none."""
        try:
            return self._files[file_id]
        except KeyError:
            raise Refusal(
                f"There is no file with the id {file_id}.", status=NOT_FOUND
            ) from None

    def newest(self, purpose: str | None) -> list[str]:
        """The ids of all files, or of those with one purpose, the last one first."""
        return [
            file.id
            for file in reversed(self._files.values())
            if purpose in {None, file.purpose}
        ]

    def delete(self, file_id: str) -> None:
        """Forget a file; a `Refusal` where there is none."""
        del self._files[self.find(file_id).id]
