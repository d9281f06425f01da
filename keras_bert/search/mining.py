"""Hard negatives: texts that are found for an anchor, without its positives."""

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute as pc

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.base.progress import ProgressBar
from keras_bert.base.settings import takes
from keras_bert.inference.table_files import check_table_output, write_table
from keras_bert.readers import TableSettings
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.sources import is_file
from keras_bert.readers.text_groups import FORM_NAMES, PAIRS
from keras_bert.search.embedders import open_embedder
from keras_bert.search.index import Index, load_index
from keras_bert.search.mining_settings import LABELS, LIST, RANDOM, MineSettings
from keras_bert.search.ranking import Snapshot
from keras_bert.search.reranking import Reranker
from keras_bert.tasks.text_embedding.metrics import pair_similarities
from keras_bert.tasks.text_embedding.text_embedder import TextEmbedder

# Anchors that are searched for, and whose pairs are scored, together.
_TOGETHER = 1024
# Why a candidate is rejected, in the order of the rules. The first is not a setting.
RULES = ("own", "margin", "relative_margin", "max_score", "min_score", "range_min")
_REASONS = {
    "own": "equal to the anchor, or to a positive or negative of it",
    "margin": "by the margin",
    "relative_margin": "by the relative margin",
    "max_score": "with a higher score than allowed",
    "min_score": "with a lower score than allowed",
    "range_min": "with a rank that is skipped",
}


class Candidate(NamedTuple):
    """A text that may become a negative of an anchor, and its score."""

    score: float
    text: str


@dataclass(frozen=True, kw_only=True)
class MinedNegatives:
    """The result of `mine_negatives`.

    Attributes:
        rows: the rows of the table, dictionaries.
        pairs: how many different pairs of an anchor and a positive there are.
        negatives: how many negatives the anchors have together.
        rejected: {rule of `RULES`: candidates that it rejected, and no rule before it}.
        short: how many pairs have fewer negatives than asked for, and `without`, how many have
            none.
        positive_score, negative_score: the mean scores; None without negatives.
    """

    rows: list[dict[str, Any]]
    pairs: int
    negatives: int
    rejected: dict[str, int]
    short: int
    without: int
    positive_score: float | None
    negative_score: float | None

    def __len__(self):
        return len(self.rows)

    def lines(self) -> list[str]:
        """Sentences for the user on what was found and what was rejected."""
        lines = [f"{counted(self.pairs, 'pair')}, {counted(self.negatives, 'negative')}."]
        if self.negatives:
            lines[0] = (
                f"{lines[0][:-1]}; mean score of the positives {self.positive_score:.3f}, of the "
                f"negatives {self.negative_score:.3f}."
            )
        if self.rejected:
            parts = [f"{count:,} {_REASONS[rule]}" for rule, count in self.rejected.items()]
            lines.append(f"Rejected candidates: {', '.join(parts)}.")
        if self.short:
            lines.append(
                f"{counted(self.short, 'pair')} with fewer negatives than asked for, "
                f"{self.without:,} of them with none. A larger `range_max` (--range-max) or a "
                "smaller margin finds more."
            )
        return lines


@takes(MineSettings)
def mine_negatives(*, progress=False, report=None, **settings) -> MinedNegatives:
    """Finds hard negatives of pairs, and writes them in the columns that training reads.

    The candidates of an anchor are the texts that a model finds for it: its first `range_max` with
    the most positives that an anchor has (see `MineSettings.last_rank`). Rejected are the anchor's
    own positives, its own negatives, the anchor itself and texts that are equal to one of them, and
    then, with s the lowest score of its positives, those above s - margin, above
    s - |s| relative_margin, above `max_score` or below `min_score`. Of those that are left, in the
    order of their scores, the first `range_min` are skipped, and the negatives chosen. These are
    the rules of `mine_hard_negatives` of sentence-transformers; the relative margin is that of
    NV-Retriever (Moreira et al. 2024).

    Scores are the similarities of the index or model, or those of a cross-encoder. The search is
    that of the index. With passages, a negative is the best passage of a text, and no passage of a
    text that contains a positive. Every pair stays, also with fewer negatives or none, which
    training takes.

    Args:
        **settings: the fields of `MineSettings`.
        progress: show a progress bar on the standard error stream.
        report: called with each line on how files were read.

    `index` may also be an `Index`, `model` a `TextEmbedder`, `data` and `corpus` data in memory,
    and `filter_by` a task or a function of a list of pairs (anchor, text) to a score for each.

    Returns:
        The `MinedNegatives`, whose `rows` are also written to `output`, if there is one.

    Raises InputError: on bad input, or if the output is there already, or cannot be written.
    """
    given = MineSettings.of(settings)
    if given.output is not None:
        inputs = (given.data, given.index, given.model, given.corpus, given.filter_by)
        inputs = [path for path in inputs if is_file(path)]
        options = {"inputs": inputs, "force": given.force, "command": "mine-negatives"}
        check_table_output(given.output, **options)
    scores_of = given.filter_by
    if scores_of is not None and (is_file(scores_of) or hasattr(scores_of, "TASK_TYPE")):
        scores_of = Reranker(scores_of, batch_size=given.batch_size).scores
    embedder, indexes = _open(given, report=report, progress=progress)
    anchors = _read(given, report)
    texts = [*dict.fromkeys(text for anchor in anchors.values() for text in anchor.negatives)]
    corpus = _Corpus(embedder, indexes, texts, batch_size=given.batch_size, progress=progress)
    mined = _mine(given, anchors, corpus, scores_of, progress=progress)
    if given.output is not None:
        write_table(iter(mined.rows), given.output, command="mine-negatives")
    return mined


# Reading.


@dataclass
class _Anchor:
    """An anchor: {positive: its own negatives}, and how many rows it has."""

    negatives: dict[str, list[str]]
    rows: int = 0

    @property
    def own_negatives(self) -> list[str]:
        """The negatives of all its positives, each once."""
        return [*dict.fromkeys(text for texts in self.negatives.values() for text in texts)]


def _read(given, report) -> dict[str, _Anchor]:
    """The anchors by their texts, in the order of the data."""
    columns = given.part(TableSettings) | {"fields": given.fields}
    source = TextEmbedder.read(given.data, **columns)
    report_source(source, report)
    anchors: dict[str, _Anchor] = {}
    for example in source:
        if example.form != PAIRS:
            raise InputError.naming(
                "{} has {}. Negatives are of anchors and positives: name their columns with "
                '{fields="anchor=…,positive=…"}.',
                source.name,
                FORM_NAMES.get(example.form, "documents and queries"),
            )
        text, positive, *negatives = example.texts
        anchor = anchors.setdefault(text, _Anchor({}))
        own = anchor.negatives.setdefault(positive, [])
        own += [negative for negative in negatives if negative not in own]
        anchor.rows += 1
    report_notes(source, report)
    if not anchors:
        raise InputError(f"{source.name} contains no examples.")
    return anchors


def _open(given, *, report, progress) -> tuple[TextEmbedder, list[Index]]:
    """The model, and the index of the candidates if it is not of the positives alone."""
    if given.index is not None:
        index = given.index
        if not isinstance(index, Index):
            index = load_index(index, embedder=given.model)
        return index.embedder, [index]
    embedder = open_embedder(given.model)
    if given.corpus is None:
        return embedder, []
    options = {"batch_size": given.batch_size, "progress": progress, "report": report}
    return embedder, [Index.build(embedder, given.corpus, **options)]


class _Corpus:
    """The candidates: the texts of an index, and the positives that it lacks, as a second one.

    Args:
        embedder: the model.
        indexes: a list of an index, or of none.
        positives: all of them, each once.
        batch_size, progress: of the model.
    """

    def __init__(self, embedder, indexes, positives, *, batch_size, progress):
        self.embedder, self._options = embedder, {"batch_size": batch_size}
        self._indexes = [*indexes]  # a temporary one ends with its object
        self._snapshots = [Snapshot.open(index.folder) for index in indexes]
        self.by = self._snapshots[0].about["similarity"] if indexes else None
        self.by = self.by or embedder.settings.similarity
        # {positive: its vectors, float32 (n, D)}, one for each passage.
        self._vectors: dict[str, np.ndarray] = {}
        for snapshot in self._snapshots:
            self._vectors |= _vectors_in(snapshot, positives)
        missing = [text for text in positives if text not in self._vectors]
        self.has_passages = any(s.about["passages"] for s in self._snapshots)
        if missing:
            encoded = embedder.encode_document(missing, **self._options, progress=progress)
            self._vectors |= {text: encoded[n : n + 1] for n, text in enumerate(missing)}
            added = Index.build(None, missing, vectors=encoded, similarity=self.by)
            self._indexes.append(added)
            self._snapshots.append(Snapshot.open(added.folder))

    def encode(self, anchors: list[str]) -> np.ndarray:
        """The vectors of anchors, which are queries."""
        return self.embedder.encode_query(anchors, **self._options)

    def score_of_positive(self, vector: np.ndarray, positive: str) -> float:
        """The similarity of an anchor's vector and a positive, that of its best passage."""
        vectors = self._vectors[positive]
        repeated = np.repeat(vector[None], len(vectors), axis=0)
        return float(pair_similarities(repeated, vectors, by=self.by).max())

    def candidates(self, vectors: np.ndarray, depth: int) -> list[list[tuple[Candidate, str]]]:
        """For each vector the best `depth` pairs of a `Candidate` and the text that it is of.

        Both are equal but for a passage. No candidate comes twice.
        """
        each: list[dict[str, tuple[Candidate, str]]] = [{} for _ in vectors]
        for snapshot in self._snapshots:
            for found, candidates_of_vector in zip(
                each, self._found(snapshot, vectors, depth), strict=True
            ):
                for candidate, text in candidates_of_vector:
                    known = found.get(candidate.text)
                    if known is None or known[0].score < candidate.score:
                        found[candidate.text] = candidate, text
        order = lambda pair: (-pair[0].score, pair[0].text)  # noqa: E731
        return [sorted(found.values(), key=order)[:depth] for found in each]

    @staticmethod
    def _found(snapshot, vectors, depth):
        """The candidates of each vector in one index, `depth` different ones if there are."""
        count = depth
        while True:
            ranked, texts = snapshot.ranked(vectors, None, top_k=count), {}
            for hit in (hit for hits in ranked for hit in hits):
                if hit[1:] not in texts:
                    (row,) = snapshot.results([hit])
                    texts[hit[1:]] = row.get("passage", row["text"]), row["text"]
            each = [
                [(Candidate(hit.score, texts[hit[1:]][0]), texts[hit[1:]][1]) for hit in hits]
                for hits in ranked
            ]
            fewest = min(len({candidate.text for candidate, _ in found}) for found in each)
            if fewest >= depth or count >= snapshot.count:
                return each
            count *= 2  # texts are there several times


def _vectors_in(snapshot, texts):
    """{text: its vectors, float32 (n, D)} of those texts that an index has."""
    wanted, found = pyarrow.array(texts, pyarrow.string()), {}
    for segment in snapshot.segments:
        there, alive = segment.column("text"), segment.alive
        is_there = pc.is_in(there, value_set=wanted).to_numpy(zero_copy_only=False)
        is_there = is_there if alive is None else is_there & alive
        text_of_vector = segment.texts_of(np.arange(len(segment.vectors)))
        places: dict[int, list[int]] = {}
        for row in np.flatnonzero(is_there[text_of_vector]).tolist():
            places.setdefault(int(text_of_vector[row]), []).append(row)
        for number, rows in places.items():
            found.setdefault(there[number].as_py(), np.array(segment.vectors[rows], np.float32))
    return found


# Choosing.


def chosen(
    candidates: list[Candidate],
    *,
    own: frozenset[str] | set[str],
    lowest: float,
    settings: MineSettings,
    most_positives: int,
    anchor: str = "",
) -> tuple[list[Candidate], Counter]:
    """The negatives of an anchor, and how many candidates each of `RULES` rejected.

    Args:
        candidates: the highest score first.
        own: texts that do not count as negatives.
        lowest: the lowest score of its positives.
        settings: the `MineSettings`.
        most_positives: the most positives of an anchor.
        anchor: its text, of which a random choice depends.
    """
    rejected: Counter = Counter()
    limits = settings.highest_scores(lowest)
    left = []
    for candidate in candidates:
        above = (name for name, limit in limits.items() if candidate.score > limit)
        is_low = settings.min_score is not None and candidate.score < settings.min_score
        if candidate.text in own:
            rejected["own"] += 1
        elif (rule := next(above, "min_score" if is_low else None)) is not None:
            rejected[rule] += 1
        else:
            left.append(candidate)
    left = left[: settings.last_rank(most_positives)]
    if skipped := left[: settings.range_min]:
        rejected["range_min"] += len(skipped)
    left = left[settings.range_min :]
    if settings.choose == RANDOM and len(left) > settings.num_negatives:
        rng = np.random.default_rng([settings.seed, zlib.crc32(anchor.encode("utf-8", "replace"))])
        numbers = rng.choice(len(left), settings.num_negatives, replace=False)
        left = [left[number] for number in sorted(numbers)]
    return left[: settings.num_negatives], rejected


def _mine(given, anchors, corpus, scores_of, *, progress) -> MinedNegatives:
    most = max(anchor.rows for anchor in anchors.values())
    depth, texts = given.last_rank(most) + most, [*anchors]
    rejected: Counter = Counter()
    found: dict[str, list[Candidate]] = {}
    positive_scores, negative_scores = [], []
    with ProgressBar("Mining", unit="anchors", total=len(texts), enabled=progress) as bar:
        for start in range(0, len(texts), _TOGETHER):
            some = texts[start : start + _TOGETHER]
            scored = _scored(some, anchors, corpus, scores_of, depth)
            for text, candidates, positives, own in scored:
                negatives, rejected_of_anchor = chosen(
                    candidates,
                    own=own,
                    lowest=min(positives.values()),
                    settings=given,
                    most_positives=most,
                    anchor=text,
                )
                rejected += rejected_of_anchor
                found[text] = negatives
                positive_scores += positives.values()
                negative_scores += [negative.score for negative in negatives]
            bar.update(start + len(some))
    missing = [
        given.num_negatives - len(found[text])
        for text, anchor in anchors.items()
        for _ in anchor.negatives
    ]
    return MinedNegatives(
        rows=[*_rows(given.format, anchors, found)],
        pairs=len(missing),
        negatives=len(negative_scores),
        rejected={rule: rejected[rule] for rule in RULES if rejected[rule]},
        short=sum(number > 0 for number in missing),
        without=sum(number == given.num_negatives for number in missing),
        positive_score=float(np.mean(positive_scores)) if negative_scores else None,
        negative_score=float(np.mean(negative_scores)) if negative_scores else None,
    )


def _scored(texts, anchors, corpus, scores_of, depth) -> Iterator[tuple[str, list, dict, set]]:
    """Yields (anchor, its candidates, {positive: score}, texts that do not count as negatives).

    The candidate with the highest score is the first.
    """
    vectors = corpus.encode(texts)
    each = []
    for text, vector, pairs in zip(texts, vectors, corpus.candidates(vectors, depth), strict=True):
        positives = {p: corpus.score_of_positive(vector, p) for p in anchors[text].negatives}
        own = {text, *positives, *anchors[text].own_negatives}
        if corpus.has_passages:
            own |= {other.text for other, whole in pairs if any(p in whole for p in positives)}
        each.append((text, [candidate for candidate, _ in pairs], positives, own))
    if scores_of is None:
        yield from each
        return
    pairs = [(text, other.text) for text, others, _, _ in each for other in others]
    pairs = [
        *dict.fromkeys(pairs + [(text, p) for text, _, positives, _ in each for p in positives])
    ]
    scores = np.asarray(scores_of(pairs), np.float64).reshape(-1)
    if len(scores) != len(pairs) or not np.isfinite(scores).all():
        raise InputError.naming(
            "{filter_by} must give a finite number for each of {}. Received: {}.",
            counted(len(pairs), "pair"),
            listed(map(str, scores[:3])),
        )
    score_of_pair = dict(zip(pairs, scores.tolist(), strict=True))
    for text, others, positives, own in each:
        again = [Candidate(score_of_pair[text, other.text], other.text) for other in others]
        again.sort(key=lambda candidate: (-candidate.score, candidate.text))
        yield text, again, {positive: score_of_pair[text, positive] for positive in positives}, own


# Rows.


def _rows(format, anchors, found) -> Iterator[dict[str, Any]]:
    """The rows of the table, all with the same columns."""
    if format == LABELS:
        for text, anchor in anchors.items():
            negatives = [*anchor.own_negatives, *(negative.text for negative in found[text])]
            for label, passages in ((1, anchor.negatives), (0, negatives)):
                for passage in passages:
                    yield {"query": text, "passage": passage, "label": label}
        return
    rows = [
        (text, positive, [*own, *(negative.text for negative in found[text])])
        for text, anchor in anchors.items()
        for positive, own in anchor.negatives.items()
    ]
    most = max(len(negatives) for _, _, negatives in rows)
    for text, positive, negatives in rows:
        row = {"anchor": text, "positive": positive}
        if format == LIST:
            yield {**row, "negatives": negatives}
        else:
            negatives += [None] * (most - len(negatives))
            yield row | {f"negative_{n}": one for n, one in enumerate(negatives, start=1)}
