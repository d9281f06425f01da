"""Search by words: BM25 (Robertson et al. 1994), in the form of Lucene.

The score of a passage is the sum over the words of the query, one that comes twice counted twice,

    idf(w) * f / (f + k1 * (1 - b + b * length / mean length)),
    idf(w) = log(1 + (N - n + 0.5) / (n + 0.5)),

with f the times that the passage has w, n the passages with w, and N all of them, in the whole
index and without what was deleted. A segment has, of W words in P passages:

    words.parquet      the W words, in order
    word_begins.npy    int64 (W + 1,), where the passages of each word begin
    word_passages.npy  int32, the passages of the first word, of the second, and so on
    word_counts.npy    int32, how often each has it
    word_lengths.npy   int32 (P,), the words of each passage
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
import tensorflow as tf
from pyarrow import parquet

from keras_bert.base.errors import InputError
from keras_bert.readers.sources import TextFile
from keras_bert.search.vectors import Best
from keras_bert.text.normalization import WordSplitter, normalize

K1, B = 1.5, 0.75
WORDS_FILE = "words.parquet"
_BEGINS, _PASSAGES, _COUNTS, _LENGTHS = (
    *("word_begins.npy", "word_passages.npy", "word_counts.npy", "word_lengths.npy"),
)
_TEXTS_TOGETHER = 1024


class WordReader:
    """Which words of a text are indexed: those of BERT's basic tokenizer, in lower case.

    Accents are dropped, each CJK character is a word, and punctuation marks are left out.

    Args:
        stop_words: words that are left out.
        stemming: a language of the package snowballstemmer, by whose stems words are replaced;
            None leaves them as they are.

    Raises InputError: the package is missing, or does not have the language.
    """

    def __init__(self, *, stop_words: Sequence[str] = (), stemming: str | None = None):
        self._split, self._stop_words, self._stem = WordSplitter(), {*stop_words}, None
        if stemming is not None:
            self._stem = _stemmer(stemming)
        self._forms: dict[bytes, str | None] = {}

    def __call__(self, texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
        """The words of all texts (B,), one after another, and how many each has, int64 (B,)."""
        words, counts = [], []
        for first in range(0, len(texts), _TEXTS_TOGETHER):
            some = [t.encode("utf-8", "replace") for t in texts[first : first + _TEXTS_TOGETHER]]
            normalized = normalize(tf.constant(some, tf.string), lowercase=True)
            starts, ends = self._split(normalized)
            splits = starts.row_splits.numpy()
            starts, ends = starts.values.numpy().tolist(), ends.values.numpy().tolist()
            for text, begin, end in zip(normalized.numpy(), splits[:-1], splits[1:], strict=True):
                spans = zip(starts[begin:end], ends[begin:end], strict=True)
                found = [self._form(text[start:stop]) for start, stop in spans]
                found = [word for word in found if word]
                words += found
                counts.append(len(found))
        return words, np.array(counts, np.int64)

    def _form(self, word):
        """Returns what is indexed of a word, "" if it is left out."""
        form = self._forms.get(word)
        if form is None:
            form = word.decode()
            if form in self._stop_words or not any(map(str.isalnum, form)):
                form = ""
            elif self._stem is not None:
                form = self._stem(form)
            if len(self._forms) > 1 << 20:
                self._forms.clear()
            self._forms[word] = form
        return form


def _stemmer(language):
    try:
        import snowballstemmer
    except ImportError:
        raise InputError.naming(
            "{stemming} needs the package snowballstemmer: pip install snowballstemmer."
        ) from None
    if language not in snowballstemmer.algorithms():
        raise InputError.naming(
            "There is no {stemming} {!r}. Choose from: {}.",
            language,
            ", ".join(snowballstemmer.algorithms()),
        )
    return snowballstemmer.stemmer(language).stemWord


def about_words(settings: Any) -> dict[str, Any]:
    """Returns what segments.json says of the words of an index with these `IndexSettings`."""
    stop_words = stop_words_of(settings.stop_words)
    return {"k1": K1, "b": B, "stop_words": stop_words, "stemming": settings.stemming}


def stop_words_of(name: str | None) -> list[str]:
    """The words of the setting `stop_words`: those of scikit-learn's English list, or of a file."""
    if name is None:
        return []
    if name == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return sorted(ENGLISH_STOP_WORDS)
    return sorted({line.strip().lower() for _, line in TextFile(name).lines() if line.strip()})


def write_words(folder: Path, words: Sequence[str], lengths: np.ndarray) -> None:
    """Writes the words of the passages of a segment.

    Args:
        folder: the segment's.
        words: those of all passages, one after another.
        lengths: int (P,), how many each has.
    """
    encoded = pyarrow.array(words, pyarrow.string()).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    codes = place[encoded.indices.to_numpy()] if len(order) else np.zeros(0, np.int64)
    passage = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    keys, counts = np.unique(codes * max(1, len(lengths)) + passage, return_counts=True)
    word, passage = np.divmod(keys, max(1, len(lengths)))
    table = pyarrow.table({"word": encoded.dictionary.take(pyarrow.array(order))})
    with open(folder / WORDS_FILE, "wb") as file:
        parquet.write_table(table, file, compression="zstd", use_dictionary=False)
    begins = np.searchsorted(word, np.arange(len(order) + 1))
    for name, array, dtype in (
        (_BEGINS, begins, np.int64),
        (_PASSAGES, passage, np.int32),
        (_COUNTS, counts, np.int32),
        (_LENGTHS, lengths, np.int32),
    ):
        np.save(folder / name, array.astype(dtype))


class _SegmentWords:
    """The words of one segment; `alive` is bool (P,), the passages that count, or None for all."""

    def __init__(self, segment, alive):
        table = parquet.read_table(segment.folder / WORDS_FILE)
        self._words = table.column("word").combine_chunks()
        arrays = (segment.arrays[name] for name in (_BEGINS, _PASSAGES, _COUNTS, _LENGTHS))
        self._begins, self._passages, self._counts, self.lengths = arrays
        self.alive = alive

    def occurrences(self, word):
        """The passages with a word, and how often each has it."""
        place = pc.index(self._words, word).as_py() if len(self._words) else -1
        begin, end = (0, 0) if place < 0 else (self._begins[place], self._begins[place + 1])
        passages, counts = np.array(self._passages[begin:end]), np.array(self._counts[begin:end])
        if self.alive is not None:
            is_alive = self.alive[passages]
            passages, counts = passages[is_alive], counts[is_alive]
        return passages, counts


class Bm25:
    """The scores of the passages of segments by words.

    Args:
        segments: a list of `Segment` with words.
        alive: for each bool (P,), the passages that count, or None for all.
        k1, b: see the module.
    """

    def __init__(self, segments: Sequence[Any], alive: Sequence[Any], *, k1: float, b: float):
        pairs = zip(segments, alive, strict=True)
        self._segments = [_SegmentWords(segment, mask) for segment, mask in pairs]
        self._k1, self._b = k1, b
        lengths = [s.lengths if s.alive is None else s.lengths[s.alive] for s in self._segments]
        self._count = sum(map(len, lengths))
        total = sum(int(segment_scores.sum(dtype=np.int64)) for segment_scores in lengths)
        self._mean = total / self._count if total else 1.0

    def scores(self, words: Sequence[str]) -> list[np.ndarray]:
        """The scores for the words of a query, of each segment float32 (P,)."""
        scores = [np.zeros(len(segment.lengths), np.float64) for segment in self._segments]
        for word in words:
            found = [segment.occurrences(word) for segment in self._segments]
            with_word = sum(len(passages) for passages, _ in found)
            idf = np.log1p((self._count - with_word + 0.5) / (with_word + 0.5))
            for segment, segment_scores, (passages, counts) in zip(
                self._segments, scores, found, strict=True
            ):
                lengths = segment.lengths[passages] / self._mean
                norm = self._k1 * (1 - self._b + self._b * lengths)
                segment_scores[passages] += idf * counts / (counts + norm)
        return [segment_scores.astype(np.float32) for segment_scores in scores]

    def best(self, words: Sequence[str], *, top_k: int, allowed: Sequence[Any], order: Any) -> Best:
        """The `Best` passages for the words of one query: those with one of the words.

        Args:
            words: of the query.
            top_k: k.
            allowed: for each segment bool (P,), which passages may be results, or None for all.
            order: see `keras_bert.search.vectors.most_similar`.
        """
        scores = [
            segment_scores if mask is None else np.where(mask, segment_scores, 0)
            for segment_scores, mask in zip(self.scores(words), allowed, strict=True)
        ]
        scores = np.concatenate([np.zeros(0, np.float32), *scores])
        rows = np.flatnonzero(scores > 0)
        if len(rows) > top_k:
            least = np.partition(scores[rows], -top_k)[-top_k]
            rows = rows[scores[rows] >= least]  # with all that equal the last one
        rows = rows[np.lexsort((np.asarray(order(rows)), -scores[rows]))][:top_k]
        return Best(rows[None], scores[rows][None])
