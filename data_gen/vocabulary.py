"""The job that learns a vocabulary: workers count words, then it is learned from the counts.

Words are counted by the tokenizer's own normalization and splitting, so that the vocabulary is
learned from exactly the words that the tokenizer will see.
"""

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics
from apache_beam.pvalue import AsSingleton
from apache_beam.transforms.window import GlobalWindows

from data_gen import documents, files, runner
from data_gen.files import clear_leftovers, new_file
from data_gen.settings import VocabularySettings
from data_gen.text_files import skipped_lines
from keras_bert.base.errors import InputError
from keras_bert.base.files import system_errors, temporary_name
from keras_bert.base.ownership import (
    check_output_file,
    check_output_folder,
    held_names,
    reject_input_as_output,
)
from keras_bert.base.settings import takes
from keras_bert.base.signals import interruption_message
from keras_bert.text import vocabulary_files
from keras_bert.text.learners import (
    learn_bpe,
    learn_byte_level_bpe,
    learn_wordpiece,
    learn_words,
)
from keras_bert.text.unigram_learner import learn_unigram
from keras_bert.text.vocabularies.bpe import BpeVocabulary
from keras_bert.text.vocabularies.byte_level import ByteLevelVocabulary, to_letters
from keras_bert.text.vocabularies.unigram import UnigramVocabulary
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import TOKENIZER_FILES, VOCAB_TXT, Vocabulary
from keras_bert.text.vocabulary_files import (
    load_vocabulary,
    output_texts,
    parse_vocabulary,
    write_vocabulary,
)

# A worker is a process that loads TensorFlow, which pays only with enough work for it.
_BYTES_PER_WORKER = 32 << 20
_CHARACTERS_AT_ONCE = 1 << 18


class _Algorithm(NamedTuple):
    """How a vocabulary is learned."""

    learn: Callable[..., Vocabulary]  # from the counts of words
    vocabulary: type[Vocabulary]  # which it makes
    words: str = "bert"  # how a text is split: "bert", "byte-level" or "white-space"
    has_alphabet: bool = True  # of characters, with a limit
    folds: bool = True  # whether a vocabulary may be uncased
    learns_case: bool = False  # whether the learner folds the case, and not the splitting


_ALGORITHMS = {
    "wordpiece": _Algorithm(learn_wordpiece, WordPieceVocabulary),
    "bpe": _Algorithm(learn_bpe, BpeVocabulary),
    "byte-level-bpe": _Algorithm(
        learn_byte_level_bpe,
        ByteLevelVocabulary,
        words="byte-level",
        has_alphabet=False,
        folds=False,
    ),
    "unigram": _Algorithm(learn_unigram, UnigramVocabulary, words="white-space", learns_case=True),
    "words": _Algorithm(learn_words, WordPieceVocabulary),
}


class LearnedVocabulary(NamedTuple):
    """The result of `learn_vocabulary`: the vocabulary and the numbers of words."""

    vocabulary: Vocabulary  # with counts
    words: int  # in the text
    distinct_words: int
    skipped_lines: dict[str, int]  # reason -> number


@takes(VocabularySettings)
def learn_vocabulary(
    *, lowercase=None, beam_options=(), report=None, **settings
) -> LearnedVocabulary:
    """Learns a vocabulary from text files and writes it, unless it is there already.

    Args:
        **settings: the fields of `VocabularySettings`.
        lowercase: False is `cased`; True is the default.
        beam_options: Beam's own flags, a list of strings. The default is as many local processes
            as there are processors and enough input for.
        report: a function that is called with a line of text if nothing had to be written.

    `input` may be one path. Paths may be of any of Beam's file systems. A folder of byte-pair
    encoding has `vocab.json`, `merges.txt`, and the other files of a Hugging Face tokenizer. The
    counts of the tokens are written next to it (see `keras_bert.text.vocabulary_files`).

    Returns:
        The `vocabulary` with its counts, the numbers of `words` and `distinct_words` in the text,
        and `skipped_lines` by reason. It depends on the text alone, not on workers or the order of
        files.

    Raises:
        InputError: unreadable input, invalid settings, or an output that exists.
        KeyboardInterrupt: it was interrupted; nothing was written.
    """
    settings = VocabularySettings.of(settings)
    lowercase = settings.check_case(lowercase)
    if not _ALGORITHMS[settings.algorithm].folds:
        if lowercase:
            raise InputError("`lowercase` has no meaning for byte-level BPE, which keeps the case.")
        lowercase = False
    lowercase = lowercase is not False
    output = settings.output.rstrip("/")
    is_there = _is_there(output, settings)
    with interruption_message(
        lambda: "Interrupted. Nothing was written. Run the command again to start over."
    ):
        counts, counters = _count(output, settings, lowercase, beam_options)
        vocabulary = _learn(counts, settings, lowercase)
        for path in (output, *output_texts(output, vocabulary, lowercase=lowercase)):
            clear_leftovers(path)
        if is_there:
            _reject_another(output, vocabulary, lowercase=lowercase)
            if report is not None:
                report(f"{output} is finished already: the same was learned now.")
        else:
            _write_vocabulary(output, vocabulary, lowercase=lowercase)
    return LearnedVocabulary(
        vocabulary,
        words=counters["words"],
        distinct_words=counters["distinct_words"],
        skipped_lines=skipped_lines(counters),
    )


def _count(output, settings, lowercase, beam_options):
    """-> (word in UTF-8 -> count, of the most frequent words; the job's counters)."""
    windows = documents.find(settings.input)
    texts = documents.ReadTexts(
        windows, bad_lines=settings.bad_lines, text_field=settings.text_field
    )
    work = sum(window.size for window in windows)
    folder, slash, name = output.rpartition("/")
    temporary = f"{folder}{slash}{temporary_name(name)}"

    def count(pipeline):
        counts = (
            pipeline
            | "Texts" >> texts
            | "CountWords"
            >> beam.ParDo(
                CountWords(
                    lowercase=lowercase,
                    max_words=settings.max_words,
                    words=_ALGORITHMS[settings.algorithm].words,
                )
            )
            | "AddUp" >> beam.CombinePerKey(sum)
        )
        _ = (
            counts
            | "Frequent" >> Frequent(settings.max_words)
            | "MostFrequent" >> beam.combiners.Top.Of(settings.max_words, key=_by_count)
            | "Write" >> beam.Map(_write_counts, path=temporary, output=output)
        )

    try:
        with runner.Progress(None) as progress:
            counters = runner.run(
                count,
                [runner.workers(work, bytes_per_worker=_BYTES_PER_WORKER), *beam_options],
                progress=progress,
            )
        return _read_counts(temporary), counters
    finally:
        if FileSystems.exists(temporary):
            FileSystems.delete([temporary])


def _is_there(output, settings):
    """Whether there is a vocabulary that the job might make; `InputError` if it cannot be.

    A `vocab.txt` does not record how it was made: it is learned again and compared. With `force`,
    what is there must be a vocabulary with its counts, which this job writes.
    """
    algorithm = _ALGORITHMS[settings.algorithm]
    is_folder = algorithm.vocabulary.IS_FOLDER
    counts = vocabulary_files.counts_path(output, is_folder=is_folder)
    for path in (output, counts):
        reject_input_as_output(settings.input, path)
    if os.path.exists(output) and os.path.isdir(output) != is_folder:
        present, wanted = ("a file", "a folder") if is_folder else ("a folder", "a file")
        raise InputError(
            f"{output} is {present}; {settings.algorithm} writes {wanted}. Use another name."
        )
    existing = [path for path in (output, counts) if FileSystems.exists(path)]
    if settings.force and not files.is_local(output):
        _check_elsewhere(output, counts, inputs=settings.input, is_folder=is_folder)
    elif settings.force:
        check = check_output_folder if is_folder else check_output_file
        check(output, is_ours=_is_vocabulary, force=True)
        if not is_folder:
            check(counts, is_ours=lambda path: _is_vocabulary(Path(output)), force=True)
    if settings.force or not existing:
        return False
    paths = {name: f"{output}/{name}" for name in algorithm.vocabulary.FILES}
    if not is_folder:
        paths = {VOCAB_TXT: output}
    with contextlib.suppress(InputError):
        contents = {name: _bytes_of(path) for name, path in paths.items()}
        contents = {name: content for name, content in contents.items() if content is not None}
        if len(parse_vocabulary(contents, folder=output)) <= settings.size:
            return True
    raise _exists(existing[0])


def _check_elsewhere(output, counts, *, inputs, is_folder):
    """Checks an output on another file system by a copy, as `check_output_file` does here."""
    patterns = [f"{output}/**"] if is_folder else [output, counts]
    matches = FileSystems.match(patterns)
    there = [match.path for result in matches for match in result.metadata_list]
    if there and not {*there}.isdisjoint(window.path for window in documents.find(inputs)):
        raise InputError(f"The output {output} is also the input: give another output.")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, os.path.basename(output))
        for path in there:
            copied = Path(f"{copy}{path.removeprefix(output)}")
            if not path.startswith(output):
                copied = Path(vocabulary_files.counts_path(str(copy), is_folder=False))
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(_bytes_of(path))
        if there and not _is_vocabulary(copy):
            raise InputError(
                f"The output {output} is not a vocabulary with its counts that this command wrote: "
                "give another name."
            )


def _is_vocabulary(path):
    """Whether a file is a vocabulary with its counts, or a folder has one and nothing else."""
    try:
        if vocabulary_files.read_counts(path, load_vocabulary(path)) is None:
            return False
    except InputError:
        return False
    return path.is_file() or set(held_names(path)) <= {
        *TOKENIZER_FILES,
        vocabulary_files.COUNTS_FILE,
    }


def _bytes_of(path):
    """The content of a file; None if there is none."""
    if not FileSystems.exists(path):
        return None
    with files.open_file(path) as file:
        return file.read()


def _reject_another(output, vocabulary, *, lowercase):
    """Raises `InputError` unless `output` has what would be written."""
    for path, text in output_texts(output, vocabulary, lowercase=lowercase).items():
        if _bytes_of(path) != text.encode():
            raise _exists(output, " and differs from what was learned now")


def _exists(path, more=""):
    return InputError.naming(
        "{} exists already{}. Use another name, or {force=True} to replace it.", path, more
    )


def _learn(counts, settings, lowercase):
    algorithm = _ALGORITHMS[settings.algorithm]
    options = {name: getattr(settings, name) for name in ("size", "min_frequency", "unused")}
    if algorithm.has_alphabet:
        options["alphabet_limit"] = settings.alphabet_limit
    if algorithm.learns_case:
        options["lowercase"] = lowercase
    return algorithm.learn(counts, **options)


def _write_vocabulary(output, vocabulary, *, lowercase):
    if files.is_local(output):
        write_vocabulary(output, vocabulary, lowercase=lowercase)
        return
    for path, text in output_texts(output, vocabulary, lowercase=lowercase).items():
        with new_file(path) as file:
            file.write_text(text, encoding="utf-8", newline="")


class CountWords(beam.DoFn):
    """str -> (word in UTF-8, count), as few elements as `max_words` words in memory allow.

    `words` are "bert", normalized and split as BERT does, "byte-level", the letters of bytes
    (`to_letters`) as GPT-2 splits a text, or "white-space", what is between it.
    """

    def __init__(self, *, lowercase, max_words, words="bert"):
        super().__init__()
        self._splitting = words
        self._lowercase = lowercase
        self._max_words = max_words
        self._words = Metrics.counter("vocabulary", "words")

    def setup(self):
        # TensorFlow is loaded in a worker, not where the job is described.
        import tensorflow as tf

        from keras_bert.text.encodings.byte_level import byte_level_words
        from keras_bert.text.encodings.steps import words_between_white_space
        from keras_bert.text.normalization import WordSplitter, normalize, valid_utf8

        splitter = WordSplitter()
        self._split = {
            "bert": lambda texts: splitter.words(
                normalize(tf.constant(texts), lowercase=self._lowercase)
            ),
            "byte-level": lambda texts: [
                to_letters(word).encode("utf-8")
                for word in byte_level_words(valid_utf8(tf.constant(texts))).values.numpy()
            ],
            "white-space": lambda texts: words_between_white_space(
                valid_utf8(tf.constant(texts))
            ).values.numpy(),
        }[self._splitting]

    def start_bundle(self):
        self._counts = Counter()
        self._pending, self._size = [], 0

    def process(self, text):
        # A call of TensorFlow costs more than a short text, and files of one line are common.
        self._pending += text.split("\n")
        self._size += len(text)
        if self._size >= _CHARACTERS_AT_ONCE:
            self._count()
        if len(self._counts) > self._max_words:
            yield from self._counts.items()
            self._counts.clear()

    def finish_bundle(self):
        self._count()
        for item in self._counts.items():
            yield GlobalWindows.windowed_value(item)

    def _count(self):
        if not self._pending:  # nothing came after the last count
            return
        words = self._split(self._pending)
        self._pending, self._size = [], 0
        self._words.inc(len(words))
        self._counts.update(words)


class Frequent(beam.PTransform):
    """(word, count) -> those with the `number` highest counts, and with the same count as the last.

    The next step has all words that are left in one worker. A large text has hundreds of millions
    of different words, and most of them occur once.
    """

    def __init__(self, number):
        super().__init__()
        self._number = number

    def expand(self, counts):
        lowest = (
            counts
            | "Counts" >> beam.Values()
            | "WordsByCount" >> beam.combiners.Count.PerElement()
            | "Together" >> beam.combiners.ToList()
            | "Lowest" >> beam.Map(lowest_count, number=self._number)
        )
        return counts | "AtLeast" >> beam.Filter(_is_at_least, lowest=AsSingleton(lowest))


def lowest_count(words_by_count, *, number):
    """The highest count that, with all above it, so many words have; 0 if there are fewer."""
    words = 0
    for count, words_with_it in sorted(words_by_count, reverse=True):
        words += words_with_it
        if words >= number:
            return count
    return 0


def _is_at_least(item, lowest):
    return item[1] >= lowest


def _by_count(item):
    word, count = item
    return count, word


def _write_counts(counts, path, output):
    """Writes the counts of words to `path`, a temporary file for `output`."""
    Metrics.counter("vocabulary", "distinct_words").inc(len(counts))
    with system_errors(output):
        if files.is_local(path):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with FileSystems.create(path) as file:
            file.writelines(b"%b\t%d\n" % pair for pair in counts)


def _read_counts(path):
    with FileSystems.open(path) as file:
        lines = file.read().decode("utf-8").split("\n")[:-1]
    return {word: int(count) for word, count in (line.split("\t") for line in lines)}
