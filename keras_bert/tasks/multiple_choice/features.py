"""Sequences of a multiple-choice task, one per choice."""

import numpy as np
import tensorflow as tf

from keras_bert.inputs.framing import frame
from keras_bert.inputs.tokenized_examples import PAD_TO, TokenizedExamples, tokenized


class ChoiceSequences(TokenizedExamples):
    """Examples of a context (N, None) and choices (N, None, None), ragged ids.

    A batch of B examples has inputs of (B, n, S), n the most choices among them. `lengths` are
    those of an example's longest sequence, and `encoder_sequences` its number of choices.
    """

    def sequence_tokens(self):
        """int (N,): the tokens of each context with its longest choice."""
        context, choices = self.segments
        longest = tf.reduce_max(choices.row_lengths(axis=2), axis=1)
        return (context.row_lengths() + longest).numpy()

    @property
    def encoder_sequences(self):
        return self.segments[1].row_lengths().numpy()

    @classmethod
    def of_examples(cls, examples, *, labels, tokenizer, input_names, max_length):
        """Tokenizes `LabelledChoices`."""
        choices = [choice for example in examples for choice in example.choices]
        counts = [len(example.choices) for example in examples]
        contexts = [example.context for example in examples]
        segments = [
            tokenized(contexts, tokenizer, max_length),
            tf.RaggedTensor.from_row_lengths(tokenized(choices, tokenizer, max_length), counts),
        ]
        return cls(
            examples,
            segments,
            labels=labels,
            tokenizer=tokenizer,
            input_names=input_names,
            max_length=max_length,
        )

    def inputs(self, context, choices):
        """The encoder's inputs by name, each (B, n, S); also in a graph."""
        return frame_choices(
            context,
            choices,
            tokenizer=self._tokenizer,
            names=self._input_names,
            max_length=self._max_length,
        )


def frame_choices(context, choices, *, tokenizer, names, max_length):
    """Ragged ids (B, None) and (B, None, None) -> the inputs by name, each int32 (B, n, S)."""
    contexts = tf.gather(context, choices.value_rowids())  # of each choice
    sequences = frame(
        [contexts, choices.values],
        tokenizer=tokenizer,
        names=names,
        max_length=max_length,
        multiple_of=PAD_TO,
    )
    return of_examples(sequences, choices.row_lengths())


def of_examples(inputs, counts):
    """The inputs of sequences by name, int32 (R, S), and the number of each example's sequences
    (B,) -> those of the examples, (B, n, S)."""
    grouped = {
        name: tf.RaggedTensor.from_row_lengths(x, counts).to_tensor() for name, x in inputs.items()
    }
    return {name: tf.ensure_shape(x, [None, None, None]) for name, x in grouped.items()}


def choice_sequences(task, examples, *, max_length, labelled):
    """The `ChoiceSequences` of a `MultipleChoice`."""
    labels = {}
    if labelled:
        labels = {"logits": np.array([example.label for example in examples], np.int32)}
    return ChoiceSequences.of_examples(examples, labels=labels, **task.framing(max_length))
