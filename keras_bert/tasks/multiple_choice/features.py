"""Sequences of a multiple-choice task, one per choice, and the signatures of its exports."""

import functools

import numpy as np
import tensorflow as tf

from keras_bert.inputs.framing import frame
from keras_bert.inputs.tokenized_examples import PAD_TO, TokenizedExamples, tokenized
from keras_bert.tasks.signatures import (
    Signature,
    ids_signature,
    outputs_in_chunks,
    text_specs,
    traced_on_ids,
    warmup_texts,
)


class ChoiceSequences(TokenizedExamples):
    """Examples of a context (N, None) and choices (N, None, None), ragged ids.

    A batch of B examples has inputs of (B, n, S), n the most choices among them. `lengths` are
    those of an example's longest sequence, and `encoder_sequences` its number of choices.
    """

    shapes_follow_from_length = False

    def sequence_tokens(self):
        """int (N,): the tokens of each context with its longest choice."""
        context, choices = self.segments
        longest = tf.reduce_max(choices.row_lengths(axis=2), axis=1)
        return (context.row_lengths() + longest).numpy()

    @property
    def encoder_sequences(self):
        return self.segments[1].row_lengths().numpy()

    @classmethod
    def from_examples(cls, examples, *, labels, tokenizer, input_names, max_length):
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
    return grouped_by_example(sequences, choices.row_lengths())


def grouped_by_example(inputs, counts):
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
    return ChoiceSequences.from_examples(examples, labels=labels, **task.framing(max_length))


_ONE_MORE = [[0, 0], [0, 1]]  # padding at the end of the second axis


def choice_signatures(task, *, max_length):
    """The signatures of a `MultipleChoice`; the first is the default one.

    * `serving_default`: `context`, string (B,), and `choices`, string (B, n), padded with empty
      strings.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, n, S), for clients that tokenize.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `context`
      and any number of strings under `choices`.

    Each gives `label`, int32 (B,), the number of the most probable choice; `score`, float32 (B,),
    its probability; and `probabilities`, float32 (B, n), 0 for missing choices. The first and the
    last also give `choice`, string (B,).
    """

    @functools.partial(traced_on_ids, encoder=task.encoder, axes=3)
    def from_ids(**inputs):
        shape = tf.shape(inputs["input_ids"])  # (B, n, S)
        # One choice per example, so that an example with very many choices is computed in chunks.
        single = tf.stack([shape[0] * shape[1], 1, shape[2]])
        inputs = {name: tf.reshape(x, single) for name, x in inputs.items()}
        logits = tf.reshape(outputs_in_chunks(task, inputs)["logits"], shape[:2])  # (B, n)
        probabilities = tf.nn.softmax(logits, axis=-1)
        padded = tf.pad(probabilities, _ONE_MORE)  # so that there is always a choice
        best = tf.argmax(padded, axis=-1, output_type=tf.int32)
        return {
            "label": best,
            "score": tf.gather(padded, best, batch_dims=1),
            "probabilities": probabilities,
        }

    specs = [
        tf.TensorSpec([None], tf.string, name="context"),
        tf.TensorSpec([None, None], tf.string, name="choices"),
    ]

    @functools.partial(tf.function, input_signature=specs, autograph=False)
    def from_strings(context, choices):
        present = tf.RaggedTensor.from_tensor(choices, padding="")
        tokens = task.tokenizer.tokenize(present.values)
        batch = frame_choices(
            task.tokenizer.tokenize(context),
            present.with_values(tokens),
            tokenizer=task.tokenizer,
            names=task.encoder.input_names,
            max_length=max_length,
        )
        outputs = from_ids(**batch)
        width = tf.shape(choices)[1]  # more than n if every example has an empty choice
        missing = width - tf.shape(outputs["probabilities"])[1]
        outputs["probabilities"] = tf.pad(outputs["probabilities"], [[0, 0], [0, missing]])
        return {
            **outputs,
            "choice": tf.gather(tf.pad(choices, _ONE_MORE), outputs["label"], batch_dims=1),
        }

    def from_examples(examples):
        features = {
            "context": tf.io.FixedLenFeature([], tf.string),
            "choices": tf.io.RaggedFeature(tf.string),
        }
        parsed = tf.io.parse_example(examples, features)
        return from_strings(parsed["context"], parsed["choices"].to_tensor())

    short, long, batch = warmup_texts(max_length)
    warmup = [
        {"context": short, "choices": [["one", "two"]]},
        {"context": long, "choices": [["one", *long]]},
        {"context": batch, "choices": [["one", *long, "two", "three"]] * len(batch)},
    ]
    return {
        "serving_default": Signature(from_strings, specs, warmup),
        "ids": ids_signature(
            from_ids,
            encoder=task.encoder,
            tokenizer=task.tokenizer,
            axes=("B", "n", "S"),
        ),
        "examples": Signature(from_examples, text_specs(["examples"])),
    }
