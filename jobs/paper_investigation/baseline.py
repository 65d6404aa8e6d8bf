"""Answers offline as `baseline/lexical`, from the words of the request alone.

It is the lower bound of every experiment and the first run without key or network. It
sees the request only, costs nothing, and always gives the same reply.

Indexing is the costly step, so the last few papers are cached: a model's questions
about a paper are consecutive.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jobs.paper_investigation.data import LETTERS, NOT_FOUND
from jobs.paper_investigation.variants import plain_signs
from runner.messages import ChatRequest

_PAPER = re.compile(
    r"<paper-(?P<mark>[0-9a-f]{8}) [^\n]*>\n(?P<text>.*)\n</paper-(?P=mark)>",
    re.DOTALL,
)
_BLOCK = re.compile(
    r"(?P<number>[^\n]*\d\W*\n)?"
    r"<question-(?P<mark>[0-9a-f]{8})>\n(?P<text>.*?)\n</question-(?P=mark)>",
    re.DOTALL,
)
_OPTION = re.compile(r"[a-d]\) (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicePrompt:
    """A multiple-choice question."""

    sentence: str  #: with its gap
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPrompt:
    """A study-parameter question: its fields by their label in the prompt."""

    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPrompt:
    """Parsed contents of a request."""

    paper: str  #: "" in a closed-book request
    questions: tuple[ChoicePrompt | StudyPrompt, ...]  #: none: list the variants
    is_batch: bool
    is_structured: bool  #: the reply should follow the schema


def read_prompt(request: ChatRequest) -> ReadPrompt:
    """Parse the paper and the questions in a request of this job."""
    # by delimiters, not by parts: a request received over HTTP has no parts
    user_text = next(m.text for m in request.messages if m.role == "user")
    paper = _PAPER.search(user_text)
    blocks = tuple(_BLOCK.finditer(user_text, paper.end() if paper else 0))
    return ReadPrompt(
        paper=paper["text"] if paper else "",
        questions=tuple(_question(block["text"]) for block in blocks),
        is_batch=any(block["number"] for block in blocks),
        is_structured=request.schema is not None,
    )


def _question(text: str) -> ChoicePrompt | StudyPrompt:
    first, *rest = text.split("\n")
    if first.startswith('"'):
        options = (_OPTION.fullmatch(line) for line in rest)
        return ChoicePrompt(
            sentence=first.strip('"'), options=tuple(o[1] for o in options if o)
        )
    pairs = (line.partition(": ") for line in (first, *rest))
    return StudyPrompt(fields={label: value for label, _, value in pairs})


# Genes end in a digit or in a digit and a letter, except for two that are often
# studied.
GENE = r"(?!rs\d)(?:tpmt|dpyd|[a-z]{2,6}\d[a-z0-9]*)"
STAR = r"\*\d+(?:xn|[a-z])?(?![a-z0-9%]|\.\d)"
HLA_STAR = r"\*\d{2,3}(?::\d{2,3})+"

_HLA_GENE = r"d[rqp][ab]\d?|[abc]"
_MENTION = re.compile(
    rf"\b(?:hla-)?(?P<hla>{_HLA_GENE})(?P<type>{HLA_STAR})"
    rf"|\b(?P<gene>{GENE})(?: ?(?P<allele>{STAR}))?"
    rf"|(?<!\w)(?P<bare>{HLA_STAR}|{STAR})"
)


def spell_out(text: str) -> str:
    """Return *text* with the last gene before it added to each bare allele."""
    gene = ""

    def spelt(mention: re.Match[str]) -> str:
        nonlocal gene
        if mention["hla"]:
            gene = f"hla-{mention['hla']}"
        elif mention["gene"]:
            gene = mention["gene"]
        return gene + (mention["type"] or mention["allele"] or mention["bare"] or "")

    return _MENTION.sub(spelt, text)


CACHED_PAPERS = 8

_REFERENCES = re.compile(
    r"^#+ *(?:\d+\.? *)?(?:references|bibliography|literature cited)\b.*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
# Markdown writes "*CYP2C9* *2" and "CYP3A5**3*"; a star before a digit is part of an
# allele, any other star is emphasis or a footnote mark.
_ESCAPE = re.compile(r"\\([*_<>|])")
_DOUBLED_STAR = re.compile(r"\*{2,}(?=\d)")
_EMPHASIS = re.compile(r"\*+(?!\d)")

_SENTENCE_END = re.compile(
    r"(?<!et al\.)(?<!\bvs\.)(?<!e\.g\.)(?<!i\.e\.)(?<=[.!?])"
    r"\s+(?=[a-z(\[*\"])"
)
_RULE_ROW = re.compile(r"\|[\s:|-]+")
_CAPTION = re.compile(r"\btable\b")
_CATEGORY = re.compile(r"^[a-z /-]+:\s*(?=[a-z])")
_TOKEN = re.compile(r"[a-z0-9]+(?:[*:.-][a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A sentence, heading or table row, folded to plain lower case."""

    text: str  #: of a row: "header: cell; header: cell"
    tokens: frozenset[str]  #: of a row: those of the table's caption as well
    is_prominent: bool  #: of the title, the abstract or a table


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageIndex:
    """A paper's passages up to its reference list."""

    text: str  #: folded, whole
    passages: tuple[Passage, ...]
    weights: Mapping[str, float]  #: inverse document frequency by word
    passages_by_word: Mapping[str, tuple[int, ...]]  #: indices of passages by word


def words(text: str) -> frozenset[str]:
    """Return the distinct words of a folded text; an allele is one word."""
    return frozenset(_TOKEN.findall(text))


def fold(text: str) -> str:
    """Convert to lower case and plain signs, without emphasis, alleles spelt out."""
    return spell_out(_plain(text))


def _plain(text: str) -> str:
    text = _ESCAPE.sub(r"\1", plain_signs(text).casefold())
    return _EMPHASIS.sub("", _DOUBLED_STAR.sub("*", text))


def names(field: str) -> tuple[str, ...]:
    """Split a folded field at commas, without categories."""
    return tuple(_CATEGORY.sub("", part.strip()) for part in field.split(","))


def occurs(name: str, text: str) -> bool:
    """Return whether a folded *name* occurs in a folded *text* as whole words."""
    return position(name, text) is not None


def position(name: str, text: str) -> int | None:
    """Return the index of a folded *name* in *text* as whole words, or None."""
    start = text.find(name) if name else -1
    while start >= 0:
        end = start + len(name)
        if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            return start
        start = text.find(name, start + 1)
    return None


@functools.lru_cache(maxsize=CACHED_PAPERS)
def index(text: str) -> PassageIndex:
    """Index a paper's text."""
    passages = tuple(_passages(_plain(_REFERENCES.sub("", text))))
    passages_by_word: dict[str, list[int]] = {}
    for number, passage in enumerate(passages):
        for word in passage.tokens:
            passages_by_word.setdefault(word, []).append(number)
    count = len(passages)
    return PassageIndex(
        text="\n".join(passage.text for passage in passages),
        passages=passages,
        weights={
            word: math.log(1 + count / len(at)) for word, at in passages_by_word.items()
        },
        passages_by_word={word: tuple(at) for word, at in passages_by_word.items()},
    )


def overlap(paper: PassageIndex, query_words: Iterable[str]) -> dict[int, float]:
    """Return, by passage, the share of the weight of *query_words* that it has.

    A word that is not in the paper weighs as much as one that occurs once. Shares are
    rounded, so that the last digit of a logarithm does not break ties.
    """
    once = math.log(1 + len(paper.passages))
    weights = {word: paper.weights.get(word, once) for word in sorted(query_words)}
    total = sum(weights.values())
    scores: dict[int, float] = {}
    for word, weight in weights.items():
        for number in paper.passages_by_word.get(word, ()):
            scores[number] = scores.get(number, 0.0) + weight / total
    return {number: round(share, 9) for number, share in scores.items()}


def _passages(text: str) -> Iterator[Passage]:
    lines = [line.strip() for line in text.split("\n")]
    section = "title"
    caption = ""
    blocks = itertools.groupby(
        (line for line in lines if line), key=lambda line: line.startswith("|")
    )
    for is_table, block in blocks:
        if is_table:
            yield from _rows(list(block), words(spell_out(caption)))
            continue
        for line in block:
            if line.startswith("#"):
                section = _section(line, section)
            if _CAPTION.search(line):
                caption = line
            for sentence in _SENTENCE_END.split(line.lstrip("# ")):
                text = spell_out(sentence)
                yield Passage(
                    text=text,
                    tokens=words(text),
                    is_prominent=section in {"title", "abstract"},
                )


def _section(heading: str, current: str) -> str:
    """Return the section: the first heading is the title; abstracts end at the next."""
    if heading.startswith("# ") and current == "title":
        return "title"
    return "abstract" if "abstract" in heading else "body"


def _rows(lines: list[str], caption: frozenset[str]) -> Iterator[Passage]:
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if not _RULE_ROW.fullmatch(line)
    ]
    header = table[0] if table else []
    for row in table:
        cells = (
            f"{label}: {cell}" if label and row is not header else cell
            for label, cell in itertools.zip_longest(header, row, fillvalue="")
            if cell
        )
        text = spell_out("; ".join(cells))
        yield Passage(text=text, tokens=words(text) | caption, is_prominent=True)


_NAME = re.compile(
    rf"\b(?P<rsid>rs\d{{3,}})\b"
    rf"|\b(?P<hla>hla-\w+{HLA_STAR})"
    rf"|\b(?P<gene>{GENE})(?:(?P<star>{STAR})"
    r"|[ ,]+(?P<phenotype>(?:(?:ultra-?)?rapid|normal|extensive|intermediate|poor) "
    r"metaboli[sz]er|(?:slow|rapid|intermediate|fast) acetylator)s?\b)"
)


def find_variants(paper: PassageIndex) -> tuple[str, ...]:
    """Return the names to list, in the order of their first occurrence."""
    seen: dict[str, int] = {}
    prominent: set[str] = set()
    for passage in paper.passages:
        for name in _names(passage.text):
            seen[name] = seen.get(name, 0) + 1
            if passage.is_prominent:
                prominent.add(name)
    return tuple(name for name, n in seen.items() if n > 1 or name in prominent)


def _names(text: str) -> Iterator[str]:
    """Yield the names in a passage, in PharmGKB's spelling."""
    for match in _NAME.finditer(text):
        if match["rsid"]:
            yield match["rsid"]
        elif match["hla"]:
            yield match["hla"].upper()
        elif match["star"]:
            yield f"{match['gene']}{match['star']}".upper().replace("XN", "xN")
        else:
            phenotype = match["phenotype"].replace("ultra-", "ultra")
            phenotype = phenotype.replace("metaboliser", "metabolizer")
            yield f"{match['gene'].upper()} {phenotype}"


SAME_PASSAGE_BONUS = 0.5
"""Bonus of an option in the same passage as the sentence's rarest word: half of the
words' weight.

Otherwise a long option would win by common words alone.
"""

_NONE = re.compile(r"none of the (?:options|above|other)")


def choose(paper: PassageIndex, question: ChoicePrompt) -> str:
    """Return the letter of the best option; the first one in a tie."""
    sentence = words(fold(question.sentence))
    options = [fold(option) for option in question.options]
    shares = [
        _share(paper, sentence, option) if _mentions(paper, option) else 0.0
        for option in options
    ]
    for number, option in enumerate(options):
        if _NONE.match(option):
            others = options[:number] + options[number + 1 :]
            shares[number] = -1.0 if any(_mentions(paper, o) for o in others) else 2.0
    return LETTERS[shares.index(max(shares))]


def _mentions(paper: PassageIndex, option: str) -> bool:
    return any(occurs(name, paper.text) for name in names(option))


def _share(paper: PassageIndex, sentence: frozenset[str], option: str) -> float:
    """Return the best passage's share of the words' weight, with the bonus."""
    option_words = frozenset().union(*(words(name) for name in names(option)))
    scores = overlap(paper, sentence | option_words)
    rarest = _rarest(paper, sentence - option_words)
    if rarest:
        for number in paper.passages_by_word[rarest]:
            text = paper.passages[number].text
            if all(occurs(name, text) for name in names(option)):
                scores[number] += SAME_PASSAGE_BONUS
    return max(scores.values(), default=0.0)


def _rarest(paper: PassageIndex, sentence: frozenset[str]) -> str | None:
    indexed_words = (word for word in sentence if word in paper.weights)
    return max(
        indexed_words, key=lambda word: (paper.weights[word], word), default=None
    )


ENOUGH = 0.5
"""Share of the drug's and phenotype's words from which a passage is on topic."""

SIGNIFICANT = 0.05

_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:\s*x\s*10\s*\^?\s*-?\s*\d+|e-?\d+)?"
_OPERATOR = r"[<>]=?|="
_P_VALUE = re.compile(
    r"\bp(?:[ -]?values?)?(?: \([^)]*\))?\s*"
    rf"(?:(?:\bof\b|\bwas\b|:)\s*(?P<after>{_OPERATOR})?|(?P<op>{_OPERATOR}))"
    rf"\s*(?P<number>{_NUMBER})"
)
_SIGNS = str.maketrans({"×": "x", "≤": "<=", "≥": ">=", **dict.fromkeys("⁻", "-")})
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWER = re.compile(r"\s*x\s*10\s*\^?\s*(-?)\s*(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PValue:
    start: int
    operator: str
    number: str

    @property
    def text(self) -> str:
        return f"{self.operator} {self.number}"

    @property
    def is_significant(self) -> bool:
        value = float(_POWER.sub(r"e\1\2", self.number))
        if self.operator.startswith("<"):
            return value <= SIGNIFICANT
        return self.operator == "=" and value < SIGNIFICANT


def find_study(paper: PassageIndex, question: StudyPrompt) -> tuple[str, str]:
    """Return the p-value as written and "yes" or "no", or "not found" twice."""
    variants = names(fold(question.fields.get("Variant", "")))
    best = max(
        _candidates(paper, variants, _topic_shares(paper, question)),
        key=lambda candidate: candidate[0],
        default=None,
    )
    if best is None:
        return NOT_FOUND, NOT_FOUND
    return best[1].text, "yes" if best[1].is_significant else "no"


def _topic_shares(paper: PassageIndex, question: StudyPrompt) -> dict[int, float]:
    """Return, by passage, the share of the drug's and the phenotype's words.

    If several drugs or phenotypes are named, one of each is enough; if none is, every
    passage matches.
    """
    fields = (fold(question.fields.get(label, "")) for label in ("Drug", "Phenotype"))
    shares = dict.fromkeys(range(len(paper.passages)), 0.0)
    for pair in itertools.product(*(names(field) for field in fields)):
        query_words = frozenset().union(*(words(name) for name in pair))
        fits = (
            overlap(paper, query_words) if query_words else dict.fromkeys(shares, 1.0)
        )
        for number, share in fits.items():
            shares[number] = max(shares[number], share)
    return shares


def _candidates(
    paper: PassageIndex, variants: tuple[str, ...], shares: dict[int, float]
) -> Iterator[tuple[float, _PValue]]:
    """Yield the nearest p-value of each matching passage, with its score."""
    for number, passage in enumerate(paper.passages):
        if shares[number] < ENOUGH:
            continue
        at = _first_position(variants, passage.text)
        values = list(_p_values(passage.text)) if at is not None else []
        if at is not None and values:
            yield shares[number], min(values, key=lambda value: abs(value.start - at))


def _first_position(variants: tuple[str, ...], text: str) -> int | None:
    starts = (position(variant, text) for variant in variants)
    return min((start for start in starts if start is not None), default=None)


def _p_values(text: str) -> Iterator[_PValue]:
    for match in _P_VALUE.finditer(text.translate(_SIGNS).translate(_RAISED)):
        yield _PValue(
            start=match.start(),
            operator=match["op"] or match["after"] or "=",
            number=match["number"],
        )


def baseline(request: ChatRequest) -> str:
    """Return the reply's text, as JSON of the schema or in the text format."""
    prompt = read_prompt(request)
    paper = index(prompt.paper)
    if not prompt.questions:
        variants = list(find_variants(paper))
        return _json({"variants": variants} if prompt.is_structured else variants)
    answers = [_answer(paper, question) for question in prompt.questions]
    if not prompt.is_batch:
        return _text(answers[0], structured=prompt.is_structured)
    numbered = list(enumerate(answers, start=1))
    if prompt.is_structured:
        return _json({"answers": [{"n": n, **answer} for n, answer in numbered]})
    return "\n".join(
        f"{n}. {_text(answer, structured=False)}" for n, answer in numbered
    )


def _answer(
    paper: PassageIndex, question: ChoicePrompt | StudyPrompt
) -> dict[str, str]:
    if isinstance(question, ChoicePrompt):
        return {"answer": choose(paper, question)}
    p_value, significance = find_study(paper, question)
    return {"p_value": p_value, "significance": significance}


def _text(answer: dict[str, str], *, structured: bool) -> str:
    """Format a letter without JSON in the text format; everything else is JSON."""
    letter = answer.get("answer")
    return letter if letter and not structured else _json(answer)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
