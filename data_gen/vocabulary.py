"""The job that learns a vocabulary: workers count words, then it is learned from the counts.

Words are counted by the tokenizer's own normalization and splitting, so that the vocabulary is
learned from exactly the words that the tokenizer will see.
"""

import contextlib
import math
import os
from collections import Counter
from typing import NamedTuple

import apache_beam as beam
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows

from data_gen import documents, runner
from data_gen.text_files import skipped_lines
from keras_bert.errors import InputError
from keras_bert.text.bpe_learner import learn_bpe
from keras_bert.text.piece_counts import counts_path
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.vocabulary_files import output_texts, write_vocabulary
from keras_bert.text.wordpiece_learner import learn_wordpiece

ALGORITHMS = ("wordpiece", "bpe")

# Each worker is a process that loads TensorFlow: it must have enough to do for that to pay.
_BYTES_A_WORKER = 32 << 20


class LearnedVocabulary(NamedTuple):
    """What `learn_vocabulary` returns: the vocabulary and what it was learned from."""

    vocabulary: Vocabulary  # knows its counts
    words: int  # in the text
    distinct_words: int
    skipped_lines: dict[str, int]  # reason -> number


def learn_vocabulary(
    *,
    input,
    output,
    size,
    algorithm="wordpiece",
    lowercase=True,
    min_frequency=1,
    alphabet_limit=1000,
    unused=0,
    max_words=1_000_000,
    bad_lines="error",
    force=False,
    beam_options=(),
):
    """Learns a vocabulary from text files and writes it.

    Args:
        input: paths or globs of text files (see `data_gen.documents`), one or a list.
        output: where to write it, any path that Beam's file systems know: for WordPiece the
            `vocab.txt`, for byte-pair encoding a folder (`vocab.json`, `merges.txt`, and what makes
            it a tokenizer folder of Hugging Face's). The counts of the pieces are written beside it
            (see `keras_bert.text.piece_counts`).
        size: how many pieces, the special ones counted in.
        algorithm: "wordpiece" or "bpe".
        lowercase: True for an uncased vocabulary (lower case, accents dropped).
        min_frequency, alphabet_limit, unused: as for `learn_wordpiece`.
        max_words: how many different words are held in memory, by a worker that counts and by the
            learner: the most frequent ones of the text are learned from, ties by code points.
        bad_lines: "error" or "skip", for lines that are not UTF-8 and the like.
        force: write over an output that exists.
        beam_options: Beam's own flags, a list of strings. Without any, as many local processes
            count as there are processors and the input is worth.

    Returns `LearnedVocabulary`. Raises `InputError` for input that cannot be read and for an output
    that exists. The result depends on the text alone, not on workers or the order of files.
    """
    _check(
        algorithm=algorithm,
        size=size,
        min_frequency=min_frequency,
        alphabet_limit=alphabet_limit,
        unused=unused,
        max_words=max_words,
    )
    output = str(output).rstrip("/")
    beside = counts_path(output, is_folder=algorithm == "bpe")
    for path in (output, beside):
        if not force and FileSystems.exists(path):
            raise InputError(f"{path} exists already; give another name, or --force to replace it.")
    if os.path.exists(output) and os.path.isdir(output) != (algorithm == "bpe"):
        what = "a file" if algorithm == "bpe" else "a folder"
        wanted = "a folder" if algorithm == "bpe" else "a file"
        raise InputError(f"{output} is {what}; {algorithm} writes {wanted}, so give another name.")
    patterns = [input] if isinstance(input, str | os.PathLike) else input
    windows = documents.find([str(pattern) for pattern in patterns])
    workers = math.ceil(sum(window.size for window in windows) / _BYTES_A_WORKER)
    workers = min(workers, os.cpu_count() or 1)
    aside = f"{output}.words.part"

    def count(pipeline):
        _ = (
            pipeline
            | "Texts" >> documents.ReadTexts(windows, bad_lines=bad_lines)
            | "CountWords" >> beam.ParDo(CountWords(lowercase=lowercase, max_words=max_words))
            | "AddUp" >> beam.CombinePerKey(sum)
            | "MostFrequent" >> beam.combiners.Top.Of(max_words, key=_by_count)
            | "Write" >> beam.Map(_write_counts, path=aside)
        )

    try:
        counters = runner.run(count, [f"--direct_num_workers={workers}", *beam_options])
        counts = _read_counts(aside)
    finally:
        if FileSystems.exists(aside):
            FileSystems.delete([aside])
    learn = {"wordpiece": learn_wordpiece, "bpe": learn_bpe}[algorithm]
    vocabulary = learn(
        counts,
        size=size,
        min_frequency=min_frequency,
        alphabet_limit=alphabet_limit,
        unused=unused,
    )
    if "://" not in output:
        write_vocabulary(output, vocabulary, lowercase=lowercase)
    else:
        for path, text in output_texts(output, vocabulary, lowercase=lowercase).items():
            _write(path, text)
    return LearnedVocabulary(
        vocabulary,
        words=counters["words"],
        distinct_words=counters["distinct_words"],
        skipped_lines=skipped_lines(counters),
    )


def _check(*, algorithm, **numbers):
    if algorithm not in ALGORITHMS:
        raise InputError(
            f"algorithm is {algorithm!r}; it must be one of {', '.join(ALGORITHMS)}. (Byte-level "
            "BPE, as GPT-2 and RoBERTa have, is not offered.)"
        )
    for name, value in numbers.items():
        least = 0 if name == "unused" else 1
        if value < least:
            raise InputError(f"{name} is {value}; it must be {least} or more.")


class CountWords(beam.DoFn):
    """str -> (word in UTF-8, count), as few elements as `max_words` words in memory allow."""

    def __init__(self, *, lowercase, max_words):
        super().__init__()
        self._lowercase = lowercase
        self._max_words = max_words
        self._words = Metrics.counter("vocabulary", "words")

    def setup(self):
        # TensorFlow is loaded where words are counted, not where the job is described.
        import tensorflow as tf

        from keras_bert.text.normalization import WordSplitter, normalize

        splitter = WordSplitter()

        self._split = lambda texts: splitter.words(
            normalize(tf.constant(texts), lowercase=self._lowercase)
        )

    def start_bundle(self):
        self._counts = Counter()

    def process(self, text):
        words = self._split(text.split("\n"))
        self._words.inc(len(words))
        self._counts.update(words)
        if len(self._counts) > self._max_words:
            yield from self._counts.items()
            self._counts.clear()

    def finish_bundle(self):
        for item in self._counts.items():
            yield GlobalWindows.windowed_value(item)


def _by_count(item):
    word, count = item
    return count, word


def _write_counts(counts, path):
    Metrics.counter("vocabulary", "distinct_words").inc(len(counts))
    _write(path, "".join(f"{word.decode('utf-8')}\t{count}\n" for word, count in counts))


def _read_counts(path):
    with FileSystems.open(path) as file:
        lines = file.read().decode("utf-8").split("\n")[:-1]
    return {word: int(count) for word, count in (line.split("\t") for line in lines)}


def _write(path, text):
    """Writes a file whole or not at all, through Beam's file systems."""
    aside = f"{path}.part"
    folder = os.path.dirname(path)
    try:
        if "://" not in path and folder:
            os.makedirs(folder, exist_ok=True)
        with FileSystems.create(aside) as file:
            file.write(text.encode("utf-8"))
        if FileSystems.exists(path):
            FileSystems.delete([path])
        FileSystems.rename([aside], [path])
    except (OSError, BeamIOError) as error:
        with contextlib.suppress(OSError, BeamIOError):
            FileSystems.delete([aside])
        raise InputError(f"{path} cannot be written: {error}") from None
