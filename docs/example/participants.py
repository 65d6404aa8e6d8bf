"""participants: how many people did a trial enrol?"""

import re

import siftlog
from siftlog import cells


class Trial(siftlog.RowModel):
    id: cells.Filled
    abstract: cells.Filled
    enrolled: cells.Count | None = None


class Participants(siftlog.QuestionJob):
    """How many people did a trial enrol?"""

    Row, show, truth = Trial, ("abstract",), "enrolled"
    question = "How many people did this trial enrol? Answer with one number only."

    def read(self, text: str) -> int | None:
        numbers = re.findall(r"\d+", text.replace(",", ""))
        return int(numbers[0]) if len(numbers) == 1 else None

    def offline(self, texts: dict[str, str]) -> str:
        found = re.search(r"([\d,]+) (patients|adults|women)", texts["abstract"])
        return found[1] if found else "not reported"
