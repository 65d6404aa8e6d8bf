"""participants: how many people did a trial enrol?"""

import re
from collections.abc import Mapping

from jobs.kit.inputs import cells
from jobs.kit.inputs.rows import RowModel
from jobs.kit.questions import QuestionJob


class Trial(RowModel):
    id: cells.Filled
    abstract: cells.Filled
    enrolled: cells.Count | None = None


class Participants(QuestionJob):
    """How many people did a trial enrol?"""

    name, version, Row = "participants", "1", Trial
    question = "How many people did this trial enrol? Answer with one number only."
    show, truth = ("abstract",), "enrolled"

    def read(self, text: str) -> int | None:
        numbers = re.findall(r"\d+", text.replace(",", ""))
        return int(numbers[0]) if len(numbers) == 1 else None

    def offline(self, texts: Mapping[str, str]) -> str:
        found = re.search(r"([\d,]+) (patients|adults|women)", texts["abstract"])
        return found[1] if found else "not reported"


job = Participants()
