"""The words near others by their vectors: neighbours, analogies, similarity as people rate it."""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import spearmanr

from keras_bert.base.errors import InputError
from keras_bert.base.files import check_regular
from keras_bert.base.formatting import counted
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder, load
from keras_bert.inference.vector_settings import NearestSettings
from keras_bert.layers.embeddings import embedding_table
from keras_bert.readers.rated_pairs import RatedPairs
from keras_bert.search.vectors import most_similar

_TOGETHER = 256  # analogies that are answered by one matrix product


class Neighbour(NamedTuple):
    """A token (its `Vocabulary.token_name`), and the cosine of its vector."""

    word: str
    similarity: float


@takes(NearestSettings)
def nearest(**settings) -> list[Neighbour] | dict[str, Any]:
    """The neighbours of a word or of an analogy, or the metrics of a file.

    For several questions to one model, use `WordVectors`, which loads it once.

    Args:
        **settings: the fields of `NearestSettings`.

    `model` may also be a task, or a `WordVectors`.

    Returns:
        For `word` and `analogy` a list of `Neighbour`, a word and the cosine of its vector, the
        most similar first. For `analogies` and `pairs` a dictionary: see
        `WordVectors.evaluate_analogies` and `WordVectors.evaluate_similarity`.

    Raises:
        InputError: the model cannot be loaded, the vocabulary does not have a word, or a file is
            invalid.
    """
    settings = NearestSettings.of(settings)
    model = settings.model
    vectors = model if isinstance(model, WordVectors) else WordVectors.of(model)
    if settings.word is not None:
        return vectors.nearest(settings.word, top_k=settings.top_k)
    if settings.analogy is not None:
        return vectors.analogy(*settings.analogy, top_k=settings.top_k)
    if settings.analogies is not None:
        return vectors.evaluate_analogies(settings.analogies)
    return vectors.evaluate_similarity(settings.pairs)


class WordVectors:
    """The vectors of a vocabulary's tokens, each divided by its Euclidean norm.

    A word is looked up as it is, in lower case if the vocabulary is uncased; one that is not a
    token has the mean of its tokens' vectors. Special tokens are never found.

    Args:
        table: (V, D), a vector per token.
        tokenizer: the `Tokenizer` of the tokens.
    """

    def __init__(self, table: Any, tokenizer: Any):
        table = np.asarray(table, np.float32)[: len(tokenizer)]
        self.table = unit_vectors(table)
        self.tokenizer = tokenizer
        self.vocabulary = tokenizer.vocabulary

    @classmethod
    def of(cls, model: Any) -> Self:
        """From a model folder, a run's output, a file of word vectors, or a task.

        Of an encoder that is not static, the token embedding is taken.

        Raises:
            InputError: it cannot be loaded, or has no tokenizer or no token embedding.
        """
        if hasattr(model, "encoder"):
            encoder, tokenizer = model.encoder, model.tokenizer
        else:
            encoder, tokenizer = load(find_model_folder(model))
        if tokenizer is None or encoder.token_embedding is None:
            raise InputError(f"{model} has no vector per token of a supported tokenizer.")
        return cls(embedding_table(encoder.token_embedding, dtype="float32"), tokenizer)

    def vector(self, word: str) -> np.ndarray:
        """The vector of a word, (D,), of length 1.

        Raises:
            InputError: the vocabulary has neither the word nor tokens of it.
        """
        ids = self._ids(word)
        if not ids:
            raise InputError(
                f"The vocabulary does not have the word {word!r}, nor tokens for all of it. Use "
                "another word."
            )
        return unit_vectors(self.table[ids].mean(axis=0))

    def nearest(self, word: str, *, top_k: int = 10) -> list[Neighbour]:
        """The tokens nearest to a word, the most similar first; without the word itself."""
        return self._nearest(self.vector(word), self._ids(word), top_k)

    def analogy(self, a: str, b: str, c: str, *, top_k: int = 10) -> list[Neighbour]:
        """The tokens nearest to a - b + c, without the three: king, man, woman -> queen.

        With vectors of length 1, this is 3CosAdd (Levy and Goldberg 2014).
        """
        vector = self.vector(a) - self.vector(b) + self.vector(c)
        ids = [id for word in (a, b, c) for id in self._ids(word)]
        return self._nearest(unit_vectors(vector), ids, top_k)

    def evaluate_analogies(self, path: str) -> dict[str, Any]:
        """The accuracy on a file of analogies, as questions-words.txt of word2vec.

        A line is four words a b c d; d must be the token nearest to b - a + c other than the three,
        among all of the vocabulary. A line that begins with ":" names a section. Questions with a
        word that is not a token are skipped.

        Returns:
            `accuracy` (None if all questions were skipped), `correct`, `questions`, `skipped`, and
            `sections`, a dictionary of the same by name.

        Raises:
            InputError: the file cannot be read, or a line does not have four words.
        """
        sections, current = {}, None
        for number, line in _lines(path):
            if line.startswith(":"):
                current = sections.setdefault(line[1:].strip(), [])
                continue
            words = line.split()
            if len(words) != 4:
                count = counted(len(words), "word")
                raise InputError(
                    f"Could not read {path} as analogies: line {number} has {count}. "
                    'Expected four, or ":" and the name of a section.'
                )
            if current is None:
                current = sections.setdefault("", [])
            current.append([self._token(word) for word in words])
        if not any(sections.values()):
            raise InputError(f"{path} has no analogies. Expected lines of four words.")
        counts = {name: self._answered(questions) for name, questions in sections.items()}
        total = np.sum(list(counts.values()), axis=0)
        result = _accuracy(*total)
        return {**result, "sections": {name: _accuracy(*count) for name, count in counts.items()}}

    def evaluate_similarity(self, path: str) -> dict[str, Any]:
        """Spearman's rank correlation of the cosines with a file of rated pairs.

        The file is a table with two words and a rating (see `keras_bert.readers.rated_pairs`).
        Pairs with an unknown word are skipped, and so are those without a rating.

        Returns:
            `spearman` and `p_value` (None if one side is constant, `p_value` also of two pairs),
            `pairs`, `skipped`, `unrated`, and `columns`, the names or numbers of the columns.

        Raises:
            InputError: the file cannot be read, several columns could be the rating, a rating is
                not a number, or fewer than two pairs have known words.
        """
        pairs, ratings, cosines, skipped, unrated = RatedPairs(path), [], [], 0, 0
        for pair in pairs:
            ids = self._ids(pair.first), self._ids(pair.second)
            if pair.rating is None:
                unrated += 1
            elif not all(ids):
                skipped += 1
            else:
                first, second = (unit_vectors(self.table[some].mean(axis=0)) for some in ids)
                ratings.append(pair.rating)
                cosines.append(float(first @ second))
        if len(ratings) < 2:
            raise InputError(
                f"{path} has {len(ratings)} rated pairs of words that the vocabulary has. A rank "
                "correlation needs two."
            )
        spearman = p_value = None
        if len(set(ratings)) > 1 and len(set(cosines)) > 1:
            spearman, p_value = map(float, spearmanr(ratings, cosines))
        return {
            "spearman": spearman,
            "p_value": p_value if len(ratings) > 2 else None,
            "pairs": len(ratings),
            "skipped": skipped,
            "unrated": unrated,
            "columns": pairs.columns,
        }

    def _token(self, word):
        """The id of a word that is a token, or None."""
        for form in (word, word.lower() if self.tokenizer.lowercase else word):
            if form in self.vocabulary:
                id = self.vocabulary.id(form)
                return None if id in self.vocabulary.special_ids else id
        return None

    def _ids(self, word):
        """The ids of a word, [] if there is no token for a part of it."""
        id = self._token(word)
        if id is not None:
            return [id]
        ids = self.tokenizer.tokenize([word])[0].numpy().tolist()
        return [] if self.vocabulary.unk_id in ids else ids

    def _nearest(self, vector, without, top_k):
        (ids,), (similarity,) = self._most_similar(vector[None], top_k, without)
        return [
            Neighbour(self.vocabulary.token_name(id), round(cosine, 6))
            for id, cosine in zip(ids.tolist(), similarity.tolist(), strict=True)
        ]

    def _most_similar(self, vectors, top_k, without=()):
        """The `Best` of the tokens that are not special, and not among the ids `without`."""
        allowed = np.ones(len(self.table), bool)
        allowed[[*without, *self.vocabulary.special_ids]] = False
        return most_similar(vectors, [self.table], top_k=top_k, allowed=[allowed])

    def _answered(self, questions):
        """-> (number of correct answers, of questions, of those that are skipped)."""
        answerable = np.array(
            [words for words in questions if None not in words], np.int64
        ).reshape(-1, 4)
        correct = 0
        for begin in range(0, len(answerable), _TOGETHER):
            some = answerable[begin : begin + _TOGETHER]
            a, b, c = (self.table[some[:, column]] for column in range(3))
            found = self._most_similar(b - a + c, 4).rows  # at most three are a, b and c
            is_other = (found[:, :, None] != some[:, None, :3]).all(axis=2)
            first = np.take_along_axis(found, is_other.argmax(axis=1)[:, None], axis=1)[:, 0]
            correct += int(((first == some[:, 3]) & is_other.any(axis=1)).sum())
        return correct, len(answerable), len(questions) - len(answerable)


def _accuracy(correct, questions, skipped):
    accuracy = round(int(correct) / int(questions), 6) if questions else None
    return {
        "accuracy": accuracy,
        "correct": int(correct),
        "questions": int(questions),
        "skipped": int(skipped),
    }


def unit_vectors(vectors):
    """Vectors (…, D) divided by their Euclidean norms; a vector of zeros stays one."""
    # In float64, in which the squares of a float32 neither vanish nor overflow.
    norms = np.sqrt(np.einsum("...d,...d->...", vectors, vectors, dtype=np.float64))[..., None]
    unit = np.empty_like(vectors)
    return np.divide(vectors, np.where(norms > 0, norms, 1.0), out=unit, casting="same_kind")


def _lines(path):
    """Yields (number from 1, text) of the lines of a file that are not empty."""
    check_regular(path)
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError:
                    raise InputError(f"{path}, line {number} is not UTF-8.") from None
                if text:
                    yield number, text
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
