"""Tokenized texts as a person reads them."""

import tensorflow as tf

from keras_bert.base.formatting import counted
from keras_bert.base.html_table import html_table
from keras_bert.text.offsets import Tokens

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
