"""The bases of tasks over whole texts: a pooling, and sequences of one or two texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.heads.pooling import POOLINGS, encoder_outputs, pooled
from keras_bert.layers import Tensor
from keras_bert.readers.text_notes import text_warnings
from keras_bert.tasks.classification import WINDOWS
from keras_bert.tasks.classification.decode import pooled_windows
from keras_bert.tasks.exported_predictions import whole_text_prediction
from keras_bert.tasks.raw_data import new_name, rows_with_labels
from keras_bert.tasks.task import Task


class PooledTask(Task):
    """A task whose head reads one vector per sequence; see `keras_bert.heads.pooling.pooled`.

    Raises:
        InputError: it reads [CLS] of a causal encoder.
    """

    def defaults_for(self, settings: Any) -> dict[str, Any]:
        pooling = settings.pooling or self.encoder.default_pooling
        return {**super().defaults_for(settings), "pooling": pooling}

    def make_head(self) -> None:
        """Sets what depends on the pooling."""
        encoder, pooling = self.encoder, self.settings.pooling
        if "cls" in POOLINGS[pooling]:
            if encoder.config.is_causal:
                usable = [name for name, parts in POOLINGS.items() if "cls" not in parts]
                raise InputError.naming(
                    "{pooling} cannot be {} for a causal encoder, whose first token sees no other "
                    "token and is the same for every text. Choose from: {}.",
                    pooling,
                    ", ".join(usable),
                )
            self.transform = self.new_transform()
        elif self._transforms_any_pooling:
            self.transform = self.new_transform()
        if {"cls", "last"}.issuperset(POOLINGS[pooling]) and self.reader.bilstm is None:
            encoder.require("single-token-pooling")
        self.ENCODER_OUTPUTS = encoder_outputs(pooling)
        self.HEAD_READS = ("input_mask",) if "sequence_output" in self.ENCODER_OUTPUTS else ()

    @classmethod
    def reads_first_token(cls, *, pooling: str | None = None, **settings: Any) -> bool:
        return pooling is not None and "cls" in POOLINGS[pooling]

    def is_standard(self) -> bool:
        return super().is_standard() and self.settings.pooling == self._class_names.pooling

    @property
    def _class_names(self):
        return self.encoder.tensor_names(self.config).names_for(self.TASK_TYPE)

    @property
    def _transforms_any_pooling(self):
        """Whether `transform` is over the pooled vector, of the encoder's size."""
        is_single = len(POOLINGS[self.settings.pooling]) == 1
        return is_single and self._class_names.transforms_any_pooling

    @classmethod
    def settings_in_config(cls, config_json: dict[str, Any]) -> dict[str, Any]:
        # Hugging Face's classes read [CLS], as do folders older than this setting.
        return {"pooling": "cls"}

    def text_vector(self, selected: dict[str, Any], inputs: dict[str, Tensor]) -> Tensor:
        """`vector` of the result of the reader's `select`, and of `inputs_of_head`, by name."""
        return self.vector(self.read_vectors(selected, inputs), inputs.get("input_mask"))

    def vector(self, encoded: dict[str, Any], mask: Tensor | None) -> Tensor:
        """The vector that the head reads: (B, D), or (B, n D) of n parts."""
        pooling, transform = self.settings.pooling, self.transform
        if transform is not None and self._class_names.drops_before_transform:
            encoded = {**encoded, "first_output": self.dropout(encoded["first_output"])}
        if transform is not None and self._transforms_any_pooling:
            return transform(pooled(encoded, mask, pooling=pooling, transform=None))
        return pooled(encoded, mask, pooling=pooling, transform=transform)


class TextTask(PooledTask):
    """A task whose examples are `LabelledText`s of one text or two (`text_names`).

    With `both_orders` a pair is read in both orders, and the head reads the sum of the two vectors,
    as for similarity in Radford et al. 2018 (section 3.3). Inputs are then (B, 2, S).

    With `long_texts` windows a text of any length is read in overlapping windows. Each is trained
    on with the text's label and an equal part of its weight, and a prediction is made from the mean
    or the maximum (`window_pooling`) of their outputs.

    Raises InputError for `both_orders` of single texts, and for windows of pairs.
    """

    FEATURES = "keras_bert.inputs.tokenized_examples:text_sequences"
    SIGNATURES = "keras_bert.tasks.classification.signatures:text_signatures"
    exported_prediction = whole_text_prediction

    def make_head(self) -> None:
        if self.reads_windows and len(self.text_names) != 1:
            raise InputError.naming(
                "{long_texts} windows is for single texts. Of a pair the longer text is cut until "
                "both fit. Leave it out, or give a larger {max_length}."
            )
        if self.both_orders:
            if len(self.text_names) != 2:
                raise InputError.naming("{both_orders} is for pairs of texts. Leave it out.")
            self.SEQUENCE_AXES = (2,)
        super().make_head()

    @property
    def both_orders(self) -> bool:
        """Whether each pair is read in both orders."""
        return getattr(self.settings, "both_orders", False)

    @property
    def reads_windows(self) -> bool:
        """Whether a text that is too long is read in windows."""
        return getattr(self.settings, "long_texts", None) == WINDOWS

    def of_examples(self, outputs: Any, sequences: Any) -> Any:
        """The outputs (R, …) of R sequences as those of their N examples, (N, …)."""
        if not self.reads_windows:
            return outputs
        windows, pooling = sequences.example_of_sequence, self.settings.window_pooling
        return pooled_windows(outputs, windows, pooling=pooling)

    def taught_answers(self, outputs: dict[str, Any], sequences: Any) -> np.ndarray:
        return self.of_examples(outputs[self.TEACHES], sequences)

    def is_standard(self) -> bool:
        return super().is_standard() and not self.both_orders

    def vector(self, encoded: dict[str, Any], mask: Tensor | None) -> Tensor:
        if not self.both_orders:
            return super().vector(encoded, mask)
        both = super().vector(encoded, None if mask is None else self.to_sequences(mask))
        return ops.sum(ops.reshape(both, (-1, 2, both.shape[-1])), axis=1)  # (B, D)

    @classmethod
    def notes(cls, examples: Sequence[Any]) -> list[str]:
        return text_warnings(examples)

    @classmethod
    def with_labels(cls, x: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        names, rows, labels = rows_with_labels(x, y)
        rows = zip(rows, labels, strict=True)
        if names is None:
            return [(*row, y) if isinstance(row, list | tuple) else (row, y) for row, y in rows], {}
        column = new_name("label", names)
        return [{**row, column: y} for row, y in rows], {"label_column": column}

    def targets(
        self, examples: Sequence[Any]
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """(labels, weights) of examples, each by the output's name; the weights may be empty."""
        raise NotImplementedError
