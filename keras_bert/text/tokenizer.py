"""The tokenizer: strings to ids and offsets, in the graph, for jobs, training and serving alike."""

import functools
import pkgutil
import re
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
import tensorflow as tf

from keras_bert.base.formatting import counted, html_table
from keras_bert.text.encodings.encoding import to_source
from keras_bert.text.encodings.steps import SPACE_CLASS
from keras_bert.text.ragged import row_ids
from keras_bert.text.template import BERT_TEMPLATE, Template
from keras_bert.text.vocabulary import MASK, SpecialTokens, Vocabulary
from keras_bert.text.vocabulary_files import open_folder, open_vocabulary, write_folder

_ANY_LENGTH = 1 << 30


class Tokens(NamedTuple):
    """The result of `Tokenizer.tokenize_with_offsets`. All are ragged (B, None), one row per text.

    `starts` and `ends` count characters (code points, as Python does) of the input string,
    `byte_starts` and `byte_ends` its bytes in UTF-8; ends are exclusive. The end-of-word mark of
    byte-pair encoding, if it is a token alone, is empty, at the end of its word. So is white
    space that is a token of a byte-level vocabulary; white space at the ends of its other tokens is
    left out. In bytes that are not all UTF-8, characters are those of the string without the
    invalid bytes; byte offsets are those of the bytes themselves.
    """

    ids: tf.RaggedTensor  # int32
    starts: tf.RaggedTensor  # int32
    ends: tf.RaggedTensor  # int32
    byte_starts: tf.RaggedTensor  # int32
    byte_ends: tf.RaggedTensor  # int32
    word_starts: tf.RaggedTensor  # bool


_TEXTS, _TOKENS = 3, 60  # that are shown


class TokenizedTexts(Tokens):
    """`Tokens` with their texts and vocabulary, which a notebook shows as a table."""

    _texts: tf.Tensor
    _vocabulary: Vocabulary

    def __repr__(self):
        count = counted(int(self.ids.nrows()), "text")
        shown = " | ".join(" ".join(tokens) for tokens in self._tokens())
        shown += " …" if self._left() else ""
        return f"Tokens({count}, {counted(len(self.ids.flat_values), 'token')}: {shown})"

    def _repr_html_(self):
        shown = []
        for number, tokens in enumerate(self._tokens()):
            text = self._texts[number].numpy().decode("utf-8", errors="ignore")
            columns = (self.ids, self.starts, self.ends)
            ids, starts, ends = (column[number].numpy().tolist() for column in columns)
            rows = [
                (token, id, text[start:end], f"{start} to {end}")
                # Up to the last token that is shown.
                for token, id, start, end in zip(tokens, ids, starts, ends, strict=False)
            ]
            shown.append(
                html_table(rows, header=("token", "id", "in the text", "at"), caption=text)
            )
        left = [f"<p>… and {counted(self._left(), 'token')} more</p>"] if self._left() else []
        return "\n".join(shown + left)

    def _left(self):
        """How many tokens are not shown."""
        return len(self.ids.flat_values) - sum(map(len, self._tokens()))

    def _tokens(self):
        """The first tokens of the first texts, lists of str."""
        shown = (row.numpy()[:_TOKENS].tolist() for row in self.ids[:_TEXTS])
        return [[self._vocabulary.token_name(id) for id in ids] for ids in shown]


class Tokenizer(tf.Module):
    """Exactly the ids of the original BERT tokenizer (google-research/bert, `tokenization.py`).

    With a vocabulary of byte-pair encoding, its words are encoded by merges instead. With OpenAI
    GPT's or GPT-2's vocabulary the ids are those of transformers.

    Works eagerly, in `tf.data` and in an exported graph, on batches: a thousand texts at a time
    are some thirty times faster than one by one. A special token such as "[MASK]" in a text is
    ordinary text. Bytes that are not UTF-8 are dropped.

    Args:
        vocabulary: `Vocabulary`.
        lowercase: True for uncased models: lower case, accents dropped. Always True for OpenAI
            GPT's vocabularies, and False for byte-level ones.
        template: the `Template` by which texts become sequences; BERT's by default.

    Attributes: those; `input_names`, the inputs of the encoder that it was loaded with; and
    `skips_spaces`, whether the space before a word, if it is a token of its own, is no part of the
    word. It is for a model of words that was trained so, and not for one of another program.
    """

    input_names = ("input_ids", "input_mask", "segment_ids")
    skips_spaces = True

    def __init__(
        self, vocabulary: Vocabulary, *, lowercase: bool, template: Template = BERT_TEMPLATE
    ):
        super().__init__()
        if vocabulary.lowercase not in (None, lowercase):
            raise ValueError(
                f"`lowercase` must be {vocabulary.lowercase} for this kind of vocabulary "
                f"({vocabulary.algorithm}). Received: lowercase={lowercase}."
            )
        self.vocabulary = vocabulary
        self.lowercase = lowercase
        self.template = template
        encoding = pkgutil.resolve_name(vocabulary.ENCODING)
        self._tokens = encoding(vocabulary, lowercase=lowercase)

    @classmethod
    def from_vocab(
        cls, vocabulary: Vocabulary | str | PathLike[str], lowercase: bool | None = None
    ) -> Self:
        """From a `Vocabulary`, or the path of a `vocab.txt` or of a folder with a vocabulary.

        If `lowercase` is None, it is taken from the folder, and True if that has none. The
        template is the folder's, and BERT's if there is none.

        Raises `InputError` if it cannot be opened (see `open_vocabulary`).
        """
        vocabulary, lowercase, template = open_vocabulary(vocabulary, lowercase=lowercase)
        return cls(vocabulary, lowercase=lowercase, template=template)  # type: ignore[arg-type]

    @classmethod
    def from_folder(cls, folder: str | PathLike[str]) -> Self:
        """From a Hugging Face tokenizer folder, BERT's or one that `save` wrote."""
        vocabulary, lowercase, template = open_folder(folder)
        return cls(vocabulary, lowercase=lowercase, template=template)

    @property
    def special_tokens(self) -> SpecialTokens:
        """The special tokens by role, such as `special_tokens.mask`."""
        return self.vocabulary.special_tokens

    @property
    def ends_of_texts(self) -> tuple[str | None, str | None]:
        """The special tokens that begin and end a text in training; None if it has none.

        They are `bos` and `eos`, or those next to the text in the template.
        """
        parts, special = self.template.parts(1), self.special_tokens
        names = [part for part, _ in parts]
        text = names.index(0)
        before = names[text - 1] if text else None
        after = names[text + 1] if text + 1 < len(names) else None
        return special.bos or before, special.eos or after

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __repr__(self) -> str:
        case = "uncased" if self.lowercase else "cased"
        return f"Tokenizer({len(self):,} tokens, {self.vocabulary.algorithm}, {case})"

    def __reduce__(self) -> tuple[Any, ...]:  # a graph cannot be pickled; its arguments can
        make = functools.partial(type(self), lowercase=self.lowercase, template=self.template)
        state = {"input_names": tuple(self.input_names), "skips_spaces": self.skips_spaces}
        return make, (self.vocabulary,), state

    def __call__(
        self,
        texts: Sequence[str | bytes] | tf.Tensor,
        text_pairs: Sequence[str | bytes] | tf.Tensor | None = None,
        *,
        max_length: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Texts (B,), or pairs of them -> the encoder's inputs by name, int32 arrays (B, S).

        They have special tokens by the template, and padding to the longest sequence.

        Args:
            texts: a batch of texts.
            text_pairs: as many second texts, or None.
            max_length: tokens per sequence, to which longer texts are cut; None cuts nothing.
        """
        from keras_bert.inputs.framing import frame

        segments = [self.tokenize(part) for part in (texts, text_pairs) if part is not None]
        inputs = frame(
            segments, tokenizer=self, names=self.input_names, max_length=max_length or _ANY_LENGTH
        )
        return {name: x.numpy() for name, x in inputs.items()}

    def with_vocabulary(self, vocabulary: Vocabulary, *, template: Template | None = None) -> Self:
        """A copy with another vocabulary, and another template if one is given."""
        template = template or self.template
        copy = type(self)(vocabulary, lowercase=self.lowercase, template=template)
        copy.input_names, copy.skips_spaces = self.input_names, self.skips_spaces
        return copy

    def tokenize(self, texts: Sequence[str | bytes] | tf.Tensor) -> tf.RaggedTensor:
        """Texts (B,), a list of str or bytes or a string tensor -> ids, ragged int32 (B, None).

        No special tokens are added. An empty text has no ids.
        """
        return self._tokens.tokenize(self._tokens.normalize(_as_tensor(texts)))

    def tokenize_masked(self, texts: Sequence[str | bytes] | tf.Tensor) -> tf.RaggedTensor:
        """Texts (B,) in which a literal [MASK] is the mask token -> ids, ragged int32 (B, None).

        White space before it belongs to the mask token of a model that was trained so (`lstrip`).
        """
        mask = self.special_tokens.mask
        takes_space = any(
            token.lstrip for token in self.vocabulary.added_tokens if token.content == mask
        )
        parts = tf.strings.split(_as_tensor(texts), MASK)  # ragged (B, parts)
        place = tf.ragged.range(parts.row_lengths()).values
        follows = place > 0  # a mask is before it
        texts = parts.values
        if takes_space:
            is_before = place + 1 < tf.gather(parts.row_lengths(), row_ids(parts))
            texts = tf.where(
                is_before, tf.strings.regex_replace(texts, f"[{SPACE_CLASS}]+$", ""), texts
            )
        tokens = self.tokenize(texts)
        masks = tf.repeat(self.vocabulary.mask_id, tf.size(follows))[:, None]
        masks = tf.ragged.boolean_mask(masks, follows[:, None])
        return parts.with_values(tf.concat([masks, tokens], axis=1)).merge_dims(1, 2)

    def tokenize_with_offsets(self, texts: Sequence[str | bytes] | tf.Tensor) -> Tokens:
        """Texts (B,) -> `Tokens`: ids and the offsets of each token in the input string.

        Outside of graphs they are a `TokenizedTexts`, which a notebook shows as a table.
        """
        texts = _as_tensor(texts)
        normalize = self._tokens.normalize
        ids, starts, ends, word_starts = self._tokens.tokenize_with_offsets(normalize(texts))
        starts, ends, byte_starts, byte_ends = to_source(texts, starts, ends, normalize=normalize)
        if not tf.executing_eagerly():
            return Tokens(ids, starts, ends, byte_starts, byte_ends, word_starts)
        tokens = TokenizedTexts(ids, starts, ends, byte_starts, byte_ends, word_starts)
        tokens._texts, tokens._vocabulary = texts, self.vocabulary
        return tokens

    def unknown_words(self, texts: Sequence[str | bytes] | tf.Tensor) -> set[str]:
        """The parts of texts (B,) that are the token of unknown text, as they are normalized."""
        normalized = self._tokens.normalize(_as_tensor(texts))
        ids, starts, ends, _ = self._tokens.tokenize_with_offsets(normalized)
        rows, texts = row_ids(ids).numpy(), normalized.numpy()
        unknown = np.flatnonzero(ids.values.numpy() == self.vocabulary.unk_id)
        starts, ends = starts.values.numpy(), ends.values.numpy()
        words = {texts[rows[at]][starts[at] : ends[at]] for at in unknown}
        return {word.decode("utf-8", errors="ignore") for word in words}

    def detokenize(self, ids: Iterable[int]) -> str:
        """Ids (T,) -> str: tokens joined to words, words separated by one space.

        Byte-level tokens have their own white space.
        """
        return self.vocabulary.join([int(id) for id in ids])

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Writes a tokenizer folder that Hugging Face's `AutoTokenizer` opens with the same ids.

        Args:
            folder: the path. Other files than those of a tokenizer stay there.
            overwrite: replace the files of another tokenizer in the folder.

        Raises:
            InputError: the folder has another tokenizer, unless `overwrite`.
        """
        write_folder(
            folder,
            self.vocabulary,
            overwrite=overwrite,
            lowercase=self.lowercase,
            template=self.template,
            has_segments="segment_ids" in self.input_names,
        )


def _as_tensor(texts):
    if not tf.is_tensor(texts):
        if isinstance(texts, list | tuple):
            texts = [_encode(text) if isinstance(text, str) else text for text in texts]
        texts = tf.convert_to_tensor(texts, dtype=tf.string)
    if texts.dtype != tf.string or texts.shape.rank != 1:
        raise ValueError(
            "The tokenizer takes a batch of texts: a list of strings or a string tensor of shape "
            f"(B,). Received: dtype={texts.dtype.name}, shape={texts.shape}."
        )
    return texts


def _encode(text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # Half of a surrogate pair (a cut JSON string) has no UTF-8. U+FFFD is dropped like a bad
        # byte, and counts as one character, so that offsets stay those of the original string.
        return re.sub("[\ud800-\udfff]", "\ufffd", text).encode("utf-8")
