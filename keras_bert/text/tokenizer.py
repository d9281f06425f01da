"""The tokenizer: strings to ids, in the graph, for the jobs, training and serving alike."""

import re
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Self

import tensorflow as tf

from keras_bert.base.formatting import counted, html_table, percent
from keras_bert.text.bpe import BytePairEncoding
from keras_bert.text.normalization import normalize
from keras_bert.text.offsets import Tokens, to_source
from keras_bert.text.template import BERT_TEMPLATE, Template
from keras_bert.text.vocabulary import SpecialTokens, Vocabulary
from keras_bert.text.vocabulary_files import open_folder, open_vocabulary, write_folder
from keras_bert.text.wordpiece import WordPiece

# From this share on; a model cannot tell one [UNK] from another.
_MUCH = 0.05


def note_on_unknown(unknown, tokens, *, which=""):
    """A sentence where many of so many tokens are [UNK], else None.

    Args:
        unknown: how many are.
        tokens: how many there are.
        which: says in the sentence whose they are ("dev").
    """
    if unknown <= _MUCH * tokens:
        return None
    return (
        f"{percent(unknown / tokens)} of the {which + ' ' if which else ''}tokens are [UNK]: the "
        "vocabulary does not have these words, nor parts of them."
    )


_TEXTS, _TOKENS = 3, 60  # that are shown


class TokenizedTexts(Tokens):
    """`Tokens` that know their texts and vocabulary, and so what they look like."""

    @classmethod
    def of(cls, texts, vocabulary, **fields):
        """`Tokens` of these texts (B,); in a graph, where nobody looks at them, plain ones."""
        if not tf.executing_eagerly():
            return Tokens(**fields)
        tokens = cls(**fields)
        tokens._texts, tokens._vocabulary = texts, vocabulary
        return tokens

    def __repr__(self):
        count = counted(int(self.ids.nrows()), "text")
        shown = " | ".join(" ".join(pieces) for pieces in self._pieces())
        shown += " …" if self._left() else ""
        return f"Tokens({count}, {counted(len(self.ids.flat_values), 'token')}: {shown})"

    def _repr_html_(self):
        shown = []
        for number, pieces in enumerate(self._pieces()):
            text = self._texts[number].numpy().decode("utf-8", errors="ignore")
            columns = (self.ids, self.starts, self.ends)
            ids, starts, ends = (column[number].numpy().tolist() for column in columns)
            rows = [
                (piece, id, text[start:end], f"{start} to {end}")
                # As far as pieces are shown.
                for piece, id, start, end in zip(pieces, ids, starts, ends, strict=False)
            ]
            shown.append(
                html_table(rows, header=("piece", "id", "in the text", "at"), caption=text)
            )
        left = [f"<p>… and {counted(self._left(), 'token')} more</p>"] if self._left() else []
        return "\n".join(shown + left)

    def _left(self):
        """How many tokens are not shown."""
        return len(self.ids.flat_values) - sum(map(len, self._pieces()))

    def _pieces(self):
        """The first pieces of the first texts, lists of str."""
        shown = (row.numpy()[:_TOKENS].tolist() for row in self.ids[:_TEXTS])
        return [[self._vocabulary.piece_name(id) for id in ids] for ids in shown]


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
