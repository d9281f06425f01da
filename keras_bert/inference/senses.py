"""Word senses: the mean vector of each sense, and the sense whose vector is nearest to a word's.

Shapes: N marked words, K senses, D the size of a vector.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy.stats import pearsonr, spearmanr

from keras_bert.base import files
from keras_bert.base.errors import InputError, argument
from keras_bert.base.ownership import check_output_file
from keras_bert.base.settings import takes
from keras_bert.base.version import __version__
from keras_bert.checkpoints import find_model_folder
from keras_bert.checkpoints.model_folder import fingerprint_of_folder
from keras_bert.inference.embed import open_embedder, open_model
from keras_bert.inference.nearest import unit_vectors
from keras_bert.inference.vector_settings import SensesSettings, WordSimilaritySettings
from keras_bert.readers import TextFileSettings
from keras_bert.readers.marked_words import read_marked_words, read_rated_pairs
from keras_bert.readers.texts import TextSource

_MARK = "keras_bert.senses"  # the key of our metadata in a safetensors file
_TOGETHER = 1024  # words whose sense is predicted together


class Sense(NamedTuple):
    """A sense of a word, such as "bank%river" of "bank", and its number of training examples."""

    word: str
    name: str
    examples: int


class PredictedSense(NamedTuple):
    """The sense of a word in a text, and the cosine of the word's vector and that of the sense."""

    line: int
    text: str
    word: str
    sense: str
    similarity: float


class SenseVectors:
    """The mean vectors of senses, and what is needed to find that of a word in a new text.

    Attributes:
        senses: K `Sense`s.
        vectors: float32 (K, D), the mean of the vectors of each sense's words.
        forms: word form in lower case -> the words that it was seen as.
        layers: the layers that the vectors are made of.
        metrics: see `senses`; {} if it was loaded.
        model: the folder, or the pair of an encoder and its tokenizer, that makes the vectors.
    """

    def __init__(
        self,
        senses: Sequence[Sense],
        vectors: Any,
        forms: dict[str, set[str]],
        *,
        layers: str,
        model: Any,
        metrics: dict[str, Any] | None = None,
    ):
        self.senses = senses
        self.vectors = np.asarray(vectors, np.float32)
        self.forms = forms
        self.layers = layers
        self.model = model
        self.metrics = metrics or {}

    @classmethod
    def _from_marked_words(cls, words, vectors, **others):
        """Takes the `MarkedWord`s of a file, with senses, and their vectors (N, D)."""
        numbers, forms = {}, defaultdict(set)
        index = np.array([numbers.setdefault((w.word, w.sense), len(numbers)) for w in words])
        for word in words:
            forms[word.form].add(word.word)
        counts = np.bincount(index)
        means = np.zeros((len(numbers), vectors.shape[1]))
        np.add.at(means, index, vectors)
        senses = [Sense(*key, int(count)) for key, count in zip(numbers, counts, strict=True)]
        forms = {form: sorted(names) for form, names in forms.items()}
        return cls(senses, means / counts[:, None], forms, **others), index

    def candidates(self, form: str) -> list[int]:
        """The numbers of the senses of a word form; of an unknown one, all senses."""
        words = self.forms.get(form.casefold())
        return [n for n, sense in enumerate(self.senses) if words is None or sense.word in words]

    def most_frequent(self, form: str) -> int:
        """The number of the candidate with most examples; of several, the first in the file."""
        return max(self.candidates(form), key=lambda number: self.senses[number].examples)

    def nearest(self, form: str, vector: np.ndarray) -> tuple[int, float]:
        """The number of the candidate with the nearest vector, and its cosine."""
        candidates = self.candidates(form)
        cosines = unit_vectors(self.vectors[candidates]) @ unit_vectors(vector)
        best = int(np.argmax(cosines))
        return candidates[best], float(cosines[best])

    def predict(
        self,
        text: Any = None,
        *,
        data: Any = None,
        report: Callable[[str], None] | None = None,
        **columns: Any,
    ) -> Iterator[PredictedSense]:
        """Yields the `PredictedSense` of each text's marked word, in order.

        A word form that was not among the training examples may have any sense.

        Args:
            text: a text, or several, with a word marked as in "the **bank** of the river".
            data: in place of it, a file of them.
            report: called with a line on how the file was read.
            columns: `text_column`, `header`, `missing` and `keep_na` of a file.

        Raises:
            InputError: a text does not have one marked word, or the file cannot be read.
        """
        if (text is None) == (data is None):
            raise InputError.naming("Pass either {text} or {data}.")
        given = [text] if isinstance(text, str) else text
        words = read_marked_words(
            given if data is None else data, need_senses=False, report=report, **columns
        )
        return self._predicted(words)

    @cached_property
    def _embedder(self):
        return open_embedder(self.model, layers=self.layers, tokens="subwords")

    def _predicted(self, words):
        while some := list(islice(words, _TOGETHER)):
            for word, vector in zip(some, _vectors(self._embedder, some), strict=True):
                number, similarity = self.nearest(word.form, vector)
                yield PredictedSense(
                    word.line,
                    word.text,
                    word.text[word.start : word.end],
                    self.senses[number].name,
                    round(similarity, 6),
                )

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes a safetensors file, which replaces one of sense vectors; returns its `Path`.

        Raises:
            InputError: the name ends otherwise, another file has it, or the model is not a folder.
        """
        path = Path(path)
        _check_output(path, self.model)
        folder = Path(find_model_folder(self.model)).resolve()
        metadata = {
            "version": __version__,
            "model": str(self.model if "://" in str(self.model) else folder),
            "fingerprint": fingerprint_of_folder(folder),
            "layers": self.layers,
            "senses": self.senses,
            "forms": self.forms,
        }
        with files.new_file(path) as temporary:
            text = json.dumps(metadata, ensure_ascii=False)
            save_file({"vectors": self.vectors}, temporary, metadata={_MARK: text})
        return path

    @classmethod
    def load(cls, path: str | PathLike[str], *, model: Any = None) -> Self:
        """From what `save` wrote.

        Args:
            path: the file.
            model: the folder, if it has moved, or a pair of an encoder and its tokenizer.

        Raises:
            InputError: it is another file, or the folder does not have the model of these vectors.
        """
        stored = _metadata(path)
        if stored is None:
            raise InputError(
                f"{path} does not contain sense vectors. Expected an output of `senses`."
            )
        metadata, vectors = stored
        model = metadata["model"] if model is None else model
        if not isinstance(model, tuple):
            folder = Path(find_model_folder(model))
            if fingerprint_of_folder(folder) != metadata["fingerprint"]:
                raise InputError(
                    f"The sense vectors of {path} were made with another model than that of "
                    f"{model}. Pass the same one."
                )
        senses = [Sense(*sense) for sense in metadata["senses"]]
        return cls(senses, vectors, metadata["forms"], layers=metadata["layers"], model=model)


def _check_output(path, model, *, inputs=()):
    if path.suffix != ".safetensors":
        raise InputError(
            f"Sense vectors are saved as a safetensors file. {path} should end in .safetensors."
        )
    is_ours = lambda path: _metadata(path) is not None  # noqa: E731
    check_output_file(path, is_ours=is_ours, inputs=inputs, force=True)
    if isinstance(model, tuple):
        raise InputError(
            "Only sense vectors of a model folder can be saved. Received: a pair of an encoder and "
            "its tokenizer."
        )


def _metadata(path):
    """(our metadata, vectors) of a safetensors file; None of another file."""
    if not Path(path).is_file():
        raise InputError(f"There is no file {path}. Give an output of `senses`.")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_MARK)
            return None if text is None else (json.loads(text), file.get_tensor("vectors"))
    except (SafetensorError, ValueError):
        return None


@takes(SensesSettings)
def senses(*, report=None, **settings) -> SenseVectors:
    """Learns the vectors of word senses, and measures how well they tell senses apart.

    A word's vector is the mean of those of its subword tokens, and a sense's the mean of those of
    its words. The sense of a word in a new text is that with the nearest vector, by the cosine,
    among the senses of the word (Jurafsky and Martin, Speech and Language Processing, section on
    contextual embeddings and word sense). Senses such as "bank%river" name their word, as the sense
    keys of WordNet do; of others, it is the marked word as it is, in lower case.

        found = kb.senses(model="folder", train="senses.tsv", output="senses.safetensors")
        found.metrics, list(found.predict("They sat on the **bank** and fished."))

    Args:
        **settings: the fields of `SensesSettings`.
        report: called with a line on how each file was read.

    `model` may also be a pair of an encoder and its tokenizer, and `train` and `dev` lists of
    (text, sense).

    Returns:
        A `SenseVectors` of the most accurate layers (of several, the lowest). Its `metrics` are
        `accuracy`, a dictionary with the accuracy by layers; `most_frequent_sense`, that of always
        predicting the sense with most training examples; `layers`; and the numbers `examples`, that
        were predicted, `words` and `senses`. Without `dev`, each example of `train` is predicted
        from the others; the most frequent sense is that of all of them.

    Raises:
        InputError: a text does not have one marked word, a file is invalid, or the model has too
            few layers.
    """
    settings = SensesSettings.of(settings)
    if settings.output is not None:
        _check_output(Path(settings.output), settings.model, inputs=settings.paths())
    model = open_model(settings.model)
    columns = {**settings.part(TextFileSettings), "label_column": settings.label_column}
    train = _read("train", settings.train, columns, report)
    dev = None if settings.dev is None else _read("dev", settings.dev, columns, report)
    count = model[0].config.num_hidden_states
    choices = settings.all_layers or ["first", *(f"layer-{n}" for n in range(1, count))]
    accuracy, best = {}, None
    for layers in choices:
        embedder = open_embedder(model, layers=layers, tokens="subwords")
        vectors = _vectors(embedder, train)
        sense_vectors, index = SenseVectors._from_marked_words(
            train, vectors, layers=layers, model=settings.model
        )
        if dev is None:
            correct = _leave_one_out(sense_vectors, train, vectors, index)
        else:
            nearest = zip(dev, _vectors(embedder, dev), strict=True)
            numbers = [sense_vectors.nearest(word.form, vector)[0] for word, vector in nearest]
            correct = _are_right(sense_vectors, dev, numbers)
        accuracy[layers] = round(float(np.mean(correct)), 6)
        if best is None or accuracy[layers] > accuracy[best.layers]:
            best = sense_vectors
    predicted = train if dev is None else dev
    frequent = [best.most_frequent(word.form) for word in predicted]
    best.metrics = {
        "accuracy": accuracy,
        "most_frequent_sense": round(float(np.mean(_are_right(best, predicted, frequent))), 6),
        "layers": best.layers,
        "examples": len(predicted),
        "words": len({sense.word for sense in best.senses}),
        "senses": len(best.senses),
    }
    if settings.output is not None:
        best.save(settings.output)
    return best


def _read(name, data, columns, report):
    if isinstance(data, list | tuple):  # which has no columns
        columns = {}
    words = list(read_marked_words(data, report=report, **columns))
    if not words:
        raise InputError.naming(
            "{} has no examples. Expected texts with a marked word and its sense.", argument(name)
        )
    return words


def _vectors(embedder, words):
    """The vector of each `MarkedWord`, float32 (N, D): the mean over its subword tokens."""
    texts = TextSource([word.text for word in words], need_labels=False)
    vectors = np.empty((len(words), embedder.width), np.float32)
    for number, (word, tokens) in enumerate(zip(words, embedder(texts), strict=True)):
        is_in_word = (tokens.ends > word.start) & (tokens.starts < word.end)
        if not is_in_word.any():
            raise InputError(
                f"The marked word {word.text[word.start : word.end]!r} of line {word.line} has no "
                "token. Mark a word."
            )
        vectors[number] = tokens.vectors[is_in_word].mean(axis=0)
    return vectors


def _leave_one_out(sense_vectors, words, vectors, index):
    """Whether each word's sense is right, with its own vector taken out of the mean: a list."""
    correct = []
    for word, vector, expected in zip(words, vectors, index, strict=True):
        candidates = np.array(sense_vectors.candidates(word.form))
        means = sense_vectors.vectors[candidates].astype(np.float64)
        rest = sense_vectors.senses[expected].examples - 1
        is_expected = candidates == expected
        means[is_expected] = (means[is_expected] * (rest + 1) - vector) / max(rest, 1)
        cosines = unit_vectors(means) @ unit_vectors(vector.astype(np.float64))
        if not rest:  # nothing is left of a sense with a single example
            cosines[is_expected] = -np.inf
        best = int(np.argmax(cosines))
        correct.append(bool(np.isfinite(cosines[best])) and int(candidates[best]) == expected)
    return correct


def _are_right(sense_vectors, words, numbers):
    """Whether each word has the sense of that number."""
    pairs = zip(words, numbers, strict=True)
    return [(word.word, word.sense) == sense_vectors.senses[number][:2] for word, number in pairs]


@takes(WordSimilaritySettings)
def word_similarity(*, report=None, **settings) -> list[float] | dict[str, Any]:
    """Compares two words in context: the cosine of their vectors.

        kb.word_similarity(
            model="folder", pairs=[("the **bank** of a river", "a **bank** lends money")]
        )
        kb.word_similarity(model="folder", pairs="cosimlex_en.tsv", layers="layer-8")

    Args:
        **settings: the fields of `WordSimilaritySettings`.
        report: called with a line on how the file was read.

    `model` may also be a pair of an encoder and its tokenizer. Two words in one text are marked
    both, and the text is given twice.

    Returns:
        For a list, one cosine per pair. For a file a dictionary: `spearman` and `pearson`, the
        correlations of cosines and ratings (None if one side is constant), and `pairs`, their
        number. Of CoSimLex also `change`, the uncentered Pearson correlation of the change of the
        similarity from the first context to the second, as SemEval 2020 had it (task 3, subtask 1).
        Of WiC also `accuracy`, of cosines above a `threshold` being of the same sense: the
        threshold is the best for these pairs, so that the accuracy is an upper bound.

    Raises:
        InputError: the file is invalid, its pairs are not rated, or there are fewer than two.
    """
    settings = WordSimilaritySettings.of(settings)
    embedder = open_embedder(settings.model, layers=settings.layers, tokens="subwords")
    description, pairs, layout = read_rated_pairs(settings.pairs, report=report)
    if not pairs:
        return []  # of a list; a file without any is an error
    words = [word for pair in pairs for word in (pair.first, pair.second)]
    vectors = unit_vectors(_vectors(embedder, words)).reshape(len(pairs), 2, -1)
    cosines = np.sum(vectors[:, 0] * vectors[:, 1], axis=1, dtype=np.float64)
    if description is None:
        return cosines.tolist()
    ratings = np.array([np.nan if pair.rating is None else pair.rating for pair in pairs])
    if len(pairs) < 2 or np.isnan(ratings).any():
        raise InputError(
            f"{settings.pairs} has {int(np.sum(~np.isnan(ratings)))} rated pairs of {len(pairs)}. "
            "A correlation needs two or more, and a rating of every pair."
        )
    is_constant = np.ptp(ratings) == 0 or np.ptp(cosines) == 0
    metrics = {
        "spearman": None if is_constant else float(spearmanr(ratings, cosines)[0]),
        "pearson": None if is_constant else float(pearsonr(ratings, cosines)[0]),
        "pairs": len(pairs),
    }
    if layout == "cosimlex":
        rated_changes, cosine_changes = (
            scores[1::2] - scores[::2] for scores in (ratings, cosines)
        )
        size = np.linalg.norm(rated_changes) * np.linalg.norm(cosine_changes)
        metrics["change"] = float(rated_changes @ cosine_changes / size) if size else None
    if layout == "wic":
        metrics |= _best_threshold(cosines, ratings)
    return metrics


def _best_threshold(cosines, ratings):
    """The `accuracy` of "above the `threshold` is 1", for the best of all thresholds."""
    order = np.argsort(cosines, kind="stable")
    rising, is_same = cosines[order], ratings[order] == 1
    # Below position n is 0, from n on 1.
    correct = np.concatenate([[0], np.cumsum(~is_same)]) + np.concatenate(
        [np.cumsum(is_same[::-1])[::-1], [0]]
    )
    edges = np.concatenate([[rising[0] - 1e-6], (rising[1:] + rising[:-1]) / 2, [rising[-1]]])
    between = np.concatenate([[True], rising[1:] > rising[:-1], [True]])
    best = int(np.argmax(np.where(between, correct, -1)))
    return {"accuracy": float(correct[best] / len(rising)), "threshold": float(edges[best])}
