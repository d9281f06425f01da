"""The tokenizer: strings to ids, in the graph, for the jobs, training and serving alike."""

import re
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Self

import tensorflow as tf

from keras_bert.text.bpe import BytePairEncoding
from keras_bert.text.normalization import normalize
from keras_bert.text.offsets import Tokens, to_source
from keras_bert.text.template import BERT_TEMPLATE, Template
from keras_bert.text.tokenized_texts import TokenizedTexts
from keras_bert.text.vocabulary import SpecialTokens, Vocabulary
from keras_bert.text.vocabulary_files import open_folder, open_vocabulary, write_folder
from keras_bert.text.wordpiece import WordPiece

_ALGORITHMS = {"wordpiece": WordPiece, "bpe": BytePairEncoding}


class Tokenizer(tf.Module):
    """Exactly the ids of the original BERT tokenizer (google-research/bert, `tokenization.py`).

    With a vocabulary of byte-pair encoding, its words are encoded by merges instead.

    Works eagerly, in `tf.data` and in an exported graph, on batches: a thousand texts at a time
    are some thirty times faster than one by one. "[MASK]" and its like written in a text are
    ordinary text. Bytes that are not UTF-8 are dropped.

    Args:
        vocabulary: `Vocabulary`.
        lowercase: True for uncased models: lower case, accents dropped.
        template: the `Template` by which texts become rows; BERT's by default.
    """

    def __init__(
        self, vocabulary: Vocabulary, *, lowercase: bool, template: Template = BERT_TEMPLATE
    ):
        super().__init__()
        self.vocabulary = vocabulary
        self.lowercase = lowercase
        self.template = template
        self._pieces = _ALGORITHMS[vocabulary.algorithm](vocabulary)

    @classmethod
    def from_vocab(
        cls, vocabulary: Vocabulary | str | PathLike[str], lowercase: bool | None = None
    ) -> Self:
        """From a `Vocabulary`, or the path of a `vocab.txt` or of a folder with a vocabulary.

        Where `lowercase` is None, it is as the folder says, and True where nothing does. The
        template is the folder's, and BERT's where there is none.

        Raises `InputError` where it cannot be opened so (see `open_vocabulary`).
        """
        vocabulary, lowercase, template = open_vocabulary(vocabulary, lowercase=lowercase)
        return cls(vocabulary, lowercase=lowercase, template=template)

    @classmethod
    def from_folder(cls, folder: str | PathLike[str]) -> Self:
        """From a Hugging Face tokenizer folder, BERT's or one that `save` wrote."""
        vocabulary, lowercase, template = open_folder(folder)
        return cls(vocabulary, lowercase=lowercase, template=template)

    @property
    def special_tokens(self) -> SpecialTokens:
        """The special tokens by what they are for, such as `special_tokens.mask`."""
        return self.vocabulary.special_tokens

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __repr__(self):
        case = "uncased" if self.lowercase else "cased"
        return f"Tokenizer({len(self):,} pieces, {self.vocabulary.algorithm}, {case})"

    def __reduce__(self):  # a graph does not travel; its arguments do
        return _rebuild, (type(self), self.vocabulary, self.lowercase, self.template)

    def tokenize(self, texts: Sequence[str | bytes] | tf.Tensor) -> tf.RaggedTensor:
        """Texts (B,), a list of str or bytes or a string tensor -> ids, ragged int32 (B, None).

        No special tokens are added. An empty text gives an empty row.
        """
        ids, _, _ = self._pieces(normalize(_as_tensor(texts), lowercase=self.lowercase))
        return ids

    def tokenize_with_offsets(self, texts: Sequence[str | bytes] | tf.Tensor) -> Tokens:
        """Texts (B,) -> `Tokens`: ids and where each token stands in the given string.

        Outside of graphs they are a `TokenizedTexts`, which a notebook shows as a table.
        """
        texts = _as_tensor(texts)
        ids, starts, ends = self._pieces(normalize(texts, lowercase=self.lowercase))
        starts, ends, byte_starts, byte_ends = to_source(
            texts, starts, ends, lowercase=self.lowercase
        )
        return TokenizedTexts.of(
            texts,
            self.vocabulary,
            ids=ids,
            starts=starts,
            ends=ends,
            byte_starts=byte_starts,
            byte_ends=byte_ends,
            word_starts=self._pieces.word_starts(ids),
        )

    def detokenize(self, ids: Iterable[int]) -> str:
        """Ids (T,) -> str: pieces joined to words, words parted by one space."""
        return self.vocabulary.join([int(id) for id in ids])

    def save(self, folder: str | PathLike[str]) -> None:
        """Writes a tokenizer folder that Hugging Face's `AutoTokenizer` opens with the same ids."""
        write_folder(folder, self.vocabulary, lowercase=self.lowercase, template=self.template)


def _rebuild(cls, vocabulary, lowercase, template):
    return cls(vocabulary, lowercase=lowercase, template=template)


def _as_tensor(texts):
    if not tf.is_tensor(texts):
        if isinstance(texts, list | tuple):
            texts = [_encode(text) if isinstance(text, str) else text for text in texts]
        texts = tf.convert_to_tensor(texts, dtype=tf.string)
    if texts.dtype != tf.string or texts.shape.rank != 1:
        raise ValueError(
            "The tokenizer takes a batch of texts: a list of strings or a string tensor of shape "
            f"(B,). Received: dtype={texts.dtype.name}, shape={texts.shape}"
        )
    return texts


def _encode(text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # Half of a surrogate pair (a cut JSON string) has no UTF-8. U+FFFD is dropped like a bad
        # byte, and counts as one character, so that offsets stay those of the given string.
        return re.sub("[\ud800-\udfff]", "\ufffd", text).encode("utf-8")
