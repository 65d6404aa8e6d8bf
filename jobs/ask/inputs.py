"""Loads the items of a run, and keeps their texts in a temporary file.

Texts of thousands of papers do not fit into memory. `load` reads each once and writes
it to an unnamed temporary file, from which an item is read again on demand.
"""

from __future__ import annotations

import glob
import hashlib
import os
import pickle
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Final

from jobs.ask.prompts import WORDING, constant_prompts
from jobs.ask.recipe import Recipe
from jobs.ask.settings import AskSettings, recipe_of, recipe_source
from jobs.kit.fields.gold import GoldValues, read_gold
from jobs.kit.fields.parsing import AnswerQuote
from jobs.kit.grounding import PaperText, ground
from jobs.kit.inputs.chunks import Chunk, Chunking, split
from jobs.kit.inputs.documents import TextSpan
from jobs.kit.inputs.item_rows import is_table, table_rows
from jobs.kit.inputs.items import Item, read_items, source_files
from jobs.kit.inputs.pdf import page_images
from jobs.kit.inputs.rows import InputFindings
from runner.errors import DatasetError, UsageError
from runner.fingerprint import files_of, input_hashes, manifest
from runner.job import InputFile, ModelLimits
from runner.messages import ImagePart
from runner.prompts import PromptBook
from runner.scorecard import Finding

SAMPLE: Final = Path(str(files("jobs.ask") / "sample"))

CACHED_ITEMS: Final = 64
"""Number of items whose text is in memory; consecutive calls and replies are about the
same ones."""


class ItemStore(Mapping[str, Item]):
    """Items by key, in their order; their content is in a temporary file."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._file = tempfile.TemporaryFile(buffering=1 << 20)  # noqa: SIM115 - as long as the data set
        weakref.finalize(self, self._file.close)
        self._places: dict[str, tuple[int, int]] = {}
        for item in items:
            if item.key in self._places:
                raise DatasetError(
                    f"{item.where}: id {item.key!r} also occurs in "
                    f"{self._read(item.key).where} (ids must be unique; rename one)."
                )
            packed = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
            self._places[item.key] = (self._file.tell(), len(packed))
            self._file.write(packed)
        self._file.flush()
        self._cached = lru_cache(maxsize=CACHED_ITEMS)(self._read)

    def _read(self, key: str) -> Item:
        start, size = self._places[key]
        self._file.flush()
        # no shared position: several threads and processes may read
        item: Item = pickle.loads(os.pread(self._file.fileno(), size, start))  # noqa: S301 - written above
        return item

    def __getitem__(self, key: str) -> Item:
        """Return an item; raise `KeyError` if there is none."""
        return self._cached(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class AskDataset:
    """Inputs of a run."""

    def __init__(
        self,
        *,
        settings: AskSettings,
        recipe: Recipe,
        items: Mapping[str, Item],
        prompts: PromptBook,
        gold: GoldValues | None = None,
        findings: tuple[Finding, ...] = (),
    ) -> None:
        self.settings = settings
        self.recipe = recipe
        self.items = items  #: by key, in the order of the papers
        self.prompts = prompts
        self.gold = gold  #: None: no gold values
        self.findings = findings
        self.constants = constant_prompts(recipe)  #: by number of the request
        self._papers = lru_cache(CACHED_ITEMS)(self._paper)
        self._chunked = lru_cache(CACHED_ITEMS)(self._chunks)

    def paper(self, key: str) -> PaperText:
        """Return an item's text in the forms that quotes are searched in."""
        return self._papers(key)

    def chunks(self, key: str) -> tuple[Chunk, ...]:
        """Return the chunks of an item's text; one if it is short enough."""
        return self._chunked(key)

    def _paper(self, key: str) -> PaperText:
        return PaperText(self.items[key].document.text)

    def _chunks(self, key: str) -> tuple[Chunk, ...]:
        return split(self.items[key].document.text, self.chunking)

    @property
    def chunking(self) -> Chunking | None:
        """Length of chunks; None: texts are not split."""
        tokens = self.settings.chunk
        if tokens is not None:
            return Chunking(tokens=tokens, overlap=tokens // 10)
        return self.recipe.chunk

    def _pdf(self, key: str) -> Path | None:
        """Return the PDF of an item, if its pages are sent as images."""
        path = self.items[key].path
        is_seen = self.settings.vision or self.recipe.vision
        is_pdf = path is not None and path.suffix.lower() == ".pdf"
        return path if is_seen and is_pdf else None

    def is_blank(self, key: str) -> bool:
        """Return whether an item has no text and no pages."""
        return not self.items[key].document.text.strip() and self._pdf(key) is None

    def images(self, key: str, span: TextSpan | None = None) -> tuple[ImagePart, ...]:
        """Return the pages of a PDF, or of a part of its text, if they are sent."""
        path = self._pdf(key)
        if path is None:
            return ()
        # read when a task needs them: images of all papers would not fit into memory
        pages = self.items[key].document.page
        return page_images(
            path,
            first=1 if span is None else pages(span.start),
            last=None if span is None else pages(span.end - 1),
        )

    def located(self, key: str, quote: AnswerQuote) -> AnswerQuote:
        """Return a quote with its position in an item's text."""
        match = ground(self.paper(key), quote.text)
        if match.start is None:
            return AnswerQuote(text=quote.text, level=match.level)
        place = self.items[key].document.place(match.start)
        return AnswerQuote(
            text=quote.text,
            level=match.level,
            start=match.start,
            end=match.end,
            page=place.page,
            section=place.section,
        )


def with_sample(settings: AskSettings) -> AskSettings:
    """Return settings with the shipped papers and recipe if they name neither."""
    named = (settings.papers, settings.recipe, settings.recipe_text, settings.question)
    if any(named):
        return settings
    return settings.model_copy(
        update={
            "recipe": SAMPLE / "recipe.toml",
            "gold": settings.gold or SAMPLE / "gold.csv",
        }
    )


def require(settings: AskSettings) -> None:
    """Raise `UsageError` for settings without papers or questions."""
    recipe = recipe_of(settings)
    if not settings.papers and recipe.items is None:
        name = recipe_source(settings)[1]
        raise UsageError(
            "No papers are named: give --papers FOLDER or FILE."
            if settings.question
            else f'{name} names no papers: write items = "papers/" in it, or give '
            "--papers FOLDER."
        )


def fit(settings: AskSettings, limits: Mapping[str, ModelLimits]) -> AskSettings:
    """Return the settings that a run records.

    The recipe becomes text, its paths become absolute, and the maximum prompt length is
    the shortest context among the models.
    """
    text, name = recipe_source(settings)
    known = [limit.context_tokens for limit in limits.values() if limit.context_tokens]
    return settings.model_copy(
        update={
            "papers": sources(settings),
            "gold": gold_file(settings),
            "recipe": None,
            "recipe_text": text,
            "recipe_name": name,
            "recipe_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "question": (),
            "type": (),
            "context_tokens": settings.context_tokens or min(known, default=None),
        }
    )


def sources(settings: AskSettings) -> tuple[Path, ...]:
    """Return the folders and files of the papers; a glob becomes the matching files."""
    named = settings.papers
    if not named:
        recipe = recipe_of(settings)
        named = () if recipe.items is None else (_relative(settings, recipe.items),)
    return tuple(
        file
        for path in named
        for file in (
            source_files(path, InputFindings())
            if glob.has_magic(str(path)) and not path.exists()
            else [path]
        )
    )


def gold_file(settings: AskSettings) -> Path | None:
    """Return the file of gold labels, if the settings or the recipe name one."""
    recipe = recipe_of(settings)
    if settings.gold is not None or recipe.gold is None:
        return settings.gold
    return _relative(settings, recipe.gold)


def _relative(settings: AskSettings, path: str) -> Path:
    """Return a path of the recipe, which is relative to the recipe's folder."""
    folder = Path() if settings.recipe is None else settings.recipe.parent
    return (folder / path).resolve()


def inputs(settings: AskSettings) -> tuple[InputFile, ...]:
    """Return the papers and the other files that `load` reads.

    A recorded recipe is a setting; only a new file is an input.
    """
    files = {
        "recipe": settings.recipe,
        "gold": gold_file(settings),
        "prompts": settings.prompts,
    }
    papers = sources(settings)
    return (
        *map(_papers_input, papers),
        *(
            InputFile(setting="document", path=path)
            for path in _named_documents(settings, papers)
        ),
        *(
            InputFile(setting=name, path=path)
            for name, path in files.items()
            if path is not None
        ),
    )


def _papers_input(path: Path) -> InputFile:
    """Return a source of papers; for a folder, only the files that are read count.

    A folder with other contents, such as the runs, would change while a run is in
    progress.
    """
    if not path.is_dir():
        return InputFile(setting="papers", path=path)
    papers = source_files(path, InputFindings())
    if papers == files_of(path):
        return InputFile(setting="papers", path=path)
    hashes = input_hashes(InputFile(setting="papers", path=paper) for paper in papers)
    entries = ((Path(paper.path).name, paper.sha256) for paper in hashes)
    digest = hashlib.sha256(manifest(entries)).hexdigest()
    return InputFile(setting="papers", path=path, sha256=digest)


def _named_documents(settings: AskSettings, papers: Iterable[Path]) -> tuple[Path, ...]:
    """Return the files that a column of a table names."""
    column = settings.document or recipe_of(settings).document
    if column is None:
        return ()
    names = (
        path.parent / row.cells[column].strip()
        for path in papers
        if path.is_file() and is_table(path)
        for row in table_rows(path)
        if row.cells.get(column, "").strip()
    )
    files = islice(dict.fromkeys(names), settings.limit or None)
    return tuple(file for file in files if file.is_file())


def load(settings: AskSettings) -> AskDataset:
    """Read the recipe, all items and their gold values."""
    recipe = recipe_of(settings)
    findings = InputFindings()
    items = ItemStore(_items(settings, recipe, findings))
    gold = read_gold(
        items,
        recipe.every_field,
        gold_file(settings),
        id_column=settings.id or recipe.id,
        is_part=settings.limit > 0,
    )
    return AskDataset(
        settings=settings,
        recipe=recipe,
        items=items,
        gold=gold,
        prompts=WORDING.book(settings.prompts),
        findings=findings.findings(),
    )


def _items(
    settings: AskSettings, recipe: Recipe, findings: InputFindings
) -> Iterator[Item]:
    named = sources(settings)
    if not named:
        require(settings)
    template = settings.text or recipe.text
    items = (
        _checked(item, recipe, template)
        for source in named
        for item in read_items(
            source,
            id=settings.id or recipe.id,
            text=template,
            document=settings.document or recipe.document,
            limit=settings.limit or None,
            max_pages=settings.max_pages,
            vision=settings.vision or recipe.vision,
            findings=findings,
        )
    )
    return islice(items, settings.limit or None)


def _checked(item: Item, recipe: Recipe, template: str | None) -> Item:
    """Refuse fields that could be confused with columns, and prompts with gold."""
    if item.row is None:
        return item
    for name, spec in recipe.every_field.items():
        if spec.gold is None and name in item.fields and name != "file":
            raise DatasetError(
                f"{item.file}: the field {name!r} has the name of a column (rename the "
                f"field, or write gold = {name!r} if the column has its right values)."
            )
        column = spec.gold
        if column and template and (f"{{{column}}}" in template or column == template):
            raise DatasetError(
                f"{item.file}: the text shows the column {column!r}, which has the "
                f"right values of the field {name!r} (remove it from text)."
            )
    return item
