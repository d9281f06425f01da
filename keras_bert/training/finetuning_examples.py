"""What fine-tuning trains and evaluates on: labelled examples in memory, or a frozen encoder's
outputs for them, which are computed once for all epochs."""

import math
import os
import tempfile
from functools import cached_property

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.progress import ProgressBar
from keras_bert.inference.predict import empty_outputs, store_batch
from keras_bert.inputs.batches import SequenceBatches, planned_batches, sorted_batches
from keras_bert.tasks.global_mean import means_over, replica_count
from keras_bert.training.checkpoint import quality
from keras_bert.training.loop import BatchSource
from keras_bert.training.strategies.devices import Devices


class LabelledExamples(BatchSource):
    """Examples in memory, in batches of similar length.

    Args:
        model: what is trained, compiled: the task, or the head alone that `freeze` gives.
        task: the `Task` of the examples.
        train_examples, dev_examples: `TokenizedExamples`.
        plan: the `Plan` of the run.
        settings: the `FinetuneSettings`.
        computed: None, or a function that gives the `FrozenExamples` of both, for a head alone; it
            is called when there is something to train.
    """

    def __init__(self, model, task, train_examples, dev_examples, *, plan, settings, computed=None):
        self.model = model
        self.task = task
        self.train_examples = train_examples
        self.dev_examples = dev_examples
        self.plan = plan
        self.settings = settings
        self.computed = computed
        self._kept = None, None, None  # quality, step, outputs
        if computed is None:  # a head alone reads no tokens
            self.tokens_per_step = float(train_examples.lengths.sum() / plan.evaluate_every)

    def training(self, first_step):
        return self._splits[0].training_batches(
            steps=self.plan.evaluate_every,
            seed=self.settings.seed,
            epochs=self.settings.epochs,
            first_step=first_step,
        )

    def held_out_metrics(self, step):
        """Keras's metrics on the dev examples, and the official ones where the METRIC is one.

        Keras's leave out labels that the task does not have, which are errors: then, too.
        """
        metrics, outputs = self._evaluate()
        if self.task.METRIC not in metrics or self._has_unknown_labels:
            # Epochs are compared by the predictions that a folder of each would make.
            self.task.tune_threshold(outputs, self.dev_examples)
            predictions = self.task.decode(outputs, self.dev_examples)
            official = self.task.official_metrics(predictions, self.dev_examples.examples)
            metrics |= {name: v for name, v in official.items() if isinstance(v, float)}
        of_step, (of_kept, *_) = quality(metrics, self.task.METRIC), self._kept
        if self.settings.keep == "last" or of_kept is None or of_step > of_kept:
            self._kept = of_step, step, outputs
        return metrics

    def outputs_at(self, step):
        """The model's outputs on dev (as `Inference.outputs`) with its weights after `step` steps.

        The model has these weights now; an evaluation in this session is not computed again.
        """
        _, of_step, outputs = self._kept
        return outputs if step == of_step else self._evaluate()[1]

    @cached_property
    def _has_unknown_labels(self):
        return bool(self.task.unknown_labels(self.dev_examples.examples))

    @cached_property
    def _evaluate(self):
        return Evaluation(self.model, self._splits[1], batch_size=self.settings.batch_size)

    @cached_property
    def _splits(self):
        if self.computed is not None:
            return self.computed()
        return self.train_examples, self.dev_examples


class Evaluation:
    """The metrics of `model.evaluate` together with the outputs that they are computed from.

    Keras's own discards the outputs. Official metrics, threshold tuning and the end of a run need
    them; predicting again would do the same work, and trace another graph.

    Args:
        model: a compiled functional model with dictionaries in and out.
        examples: `SequenceBatches`.
        batch_size: sequences in a batch.
    """

    def __init__(self, model, examples, *, batch_size):
        devices = Devices()
        self._model = model
        self._count = len(examples)
        self._totals = examples.weight_totals
        self._loss = keras.metrics.Mean(name="loss")
        self._plan = devices.own_parts(examples.lengths, batch_size=batch_size)
        parts = planned_batches([part for step in self._plan for part in step], examples.batch)
        devices.prepare(model, parts)
        self._batches = devices.one_each(parts)
        self._step = devices.on_replicas(self._evaluate, parts.element_spec)

    def __call__(self):
        """Returns (metrics by name, outputs as of `Inference.outputs`)."""
        self._model.reset_metrics()
        self._loss.reset_state()
        outputs = empty_outputs(self._model.output, self._count)
        with means_over(self._model, self._totals, examples=self._count):
            for step, batch in zip(self._plan, self._batches, strict=True):
                for numbers, of_batch in zip(step, self._step(batch), strict=True):
                    store_batch(of_batch, numbers, into=outputs)
        metrics = {**self._model.get_metrics_result(), "loss": self._loss.result()}
        return {name: float(value) for name, value in metrics.items()}, outputs

    def _evaluate(self, inputs, labels, weights=None):
        """One batch: (B, …) by name -> the outputs; updates the metrics."""
        outputs = self._model(inputs, training=False)
        loss = self._model.compute_loss(inputs, labels, outputs, weights, training=False)
        loss = loss * replica_count()  # each replica has its part of the mean
        self._loss.update_state(loss, sample_weight=tf.shape(tf.nest.flatten(inputs)[0])[0])
        self._model.compute_metrics(inputs, labels, outputs, weights)
        return {name: tf.cast(values, tf.float32) for name, values in outputs.items()}


def freeze(task):
    """Freezes a task's encoder; returns the models `features` and `head` over the task's weights.

    What remains to train is the head with everything that belongs to it, such as the pooler or a
    layer mix. `features` maps the task's inputs to what the head reads of the encoder, and `head`
    maps that (and the inputs that the head reads itself) to the task's outputs. Training the head
    trains the task.

    The features are hidden states by name (B batch, S sequence, D hidden size): `hidden_K` of each
    layer K of a learned mix, 0 being the embeddings, otherwise one: that of the task's choice of
    layers, which may be 4 D wide. They are (B, S, D), or
    (B, 1, D) where the head reads the first token alone; for examples of several sequences
    (B, n, S, D) or (B, n, 1, D).
    """
    encoder = task.encoder
    for group in encoder.layer_groups:
        for layer in group:
            layer.trainable = False
    inputs = task.feature_inputs()
    sequences = {name: task.to_sequences(x) for name, x in inputs.items()}
    outputs = task.encoder_outputs
    if "sequence_output" in outputs:  # which contains the first token, too
        outputs = ("sequence_output",)
    encoded = task.reader.select(encoder(sequences, outputs=outputs))
    reads_tokens = task.reader.reads_vectors or "sequence_output" in task.ENCODER_OUTPUTS
    states = encoded.get("hidden_states")
    if states is None and reads_tokens:
        states = [encoded["sequence_output"]]
    elif states is None:
        states = [keras.ops.expand_dims(encoded["first_output"], axis=1)]  # (B, 1, D)
    elif not reads_tokens:
        # Not `[:, :1]`, whose length Keras does not infer before there is a batch.
        states = [keras.ops.expand_dims(state[:, 0], axis=1) for state in states]
    numbers = task.reader.numbers if len(states) > 1 else [max(task.reader.numbers)]
    states = {
        f"hidden_{number}": task.to_examples(state, inputs)
        for number, state in zip(numbers, states, strict=True)
    }
    features = keras.Model(
        inputs,
        {name: keras.ops.cast(state, "float32") for name, state in states.items()},
        name="features",
    )
    read = {k: keras.Input(state.shape[1:], name=k) for k, state in states.items()}
    others = {
        name: keras.Input(x.shape[1:], dtype=x.dtype, name=name)
        for name, x in task.input.items()
        if name in task.inputs_of_head
    }
    hidden = [task.to_sequences(state) for state in read.values()]  # (R, S, D) each
    encoded = {"hidden_states": hidden}
    if task.reader.scalar_mix is None:
        encoded = {"sequence_output": hidden[0], "first_output": hidden[0][:, 0]}
    outputs = task.head(encoded, others)
    return features, keras.Model({**read, **others}, outputs, name="head")


class FrozenExamples(SequenceBatches):
    """Examples whose batches contain a frozen encoder's outputs for them.

    Batches have the same sequences as those of the examples given. The features take 4 bytes per
    number (for a classifier D numbers per sequence), in an unnamed file that is mapped into memory
    and disappears with the process.

    Args:
        examples: `TokenizedExamples`.
        features, head: the models that `freeze` gives.
        batch_size: sequences in a step of the encoder.
        folder: where the file is made; None is the system's temporary folder.
        on_batch: a function that is called after each batch with the number of its sequences.

    Raises:
        InputError: the disk has no room for the file.
    """

    def __init__(self, examples, features, head, *, batch_size, folder=None, on_batch=None):
        super().__init__(examples.lengths)
        self._examples = examples
        self._others = [name for name in head.input if name not in features.output]
        # Stored per sequence of the encoder: a vector for every token, or for [CLS] alone. An
        # example of several sequences has an axis for them.
        shape = next(iter(features.output.values())).shape  # (B, S, D) or (B, n, S, D)
        self._of_tokens = shape[-2] is None
        vectors = examples.lengths if self._of_tokens else np.ones_like(examples.lengths)
        axes = [examples.encoder_sequences, vectors]
        self._shapes = np.stack(axes[4 - len(shape) :], axis=1)  # (N, 1 or 2)
        self._sizes = self._shapes.prod(axis=1)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._stores = {
            name: _mapped_array((int(self._sizes.sum()), state.shape[-1]), folder)
            for name, state in features.output.items()
        }
        self._compute(features, batch_size, on_batch)

    def _compute(self, features, batch_size, on_batch):
        """Fills the stores."""
        read = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in features.input.items()}
        # Not `predict`, in which each replica of a strategy would compute the same.
        compute = tf.function(
            lambda inputs: features(inputs, training=False), [read], autograph=False
        )
        for numbers in sorted_batches(self.lengths, batch_size=batch_size):
            inputs = self._examples.inputs(*self._examples.take(tf.constant(numbers, tf.int32)))
            states = compute({name: inputs[name] for name in read})
            for name, store in self._stores.items():
                for number, state in zip(numbers, states[name].numpy(), strict=True):
                    vectors = state[self._inside(number)].reshape(-1, store.shape[-1])
                    store[self._starts[number] :][: len(vectors)] = vectors
            if on_batch is not None:
                on_batch(len(numbers))

    @property
    def weight_totals(self):
        return self._examples.weight_totals

    def batch(self, numbers):
        axes = self._shapes.shape[1]
        batch, shape = {}, tf.constant([1])
        if self._of_tokens or axes > 1 or self._others:
            inputs = self._examples.inputs(*self._examples.take(numbers))
            batch = {name: inputs[name] for name in self._others}
            shape = tf.shape(inputs["input_ids"])[1:]  # (S,) or (n, S)
            if not self._of_tokens:
                shape = tf.concat([shape[:-1], [1]], axis=0)
        return {**batch, **self._states(numbers, shape)}, *self._examples.targets(numbers)

    def _states(self, numbers, shape):
        """The features by name, padded to a shape."""
        read = tf.numpy_function(self._read, [numbers, shape], [tf.float32] * len(self._stores))
        axes = self._shapes.shape[1]
        return {
            name: tf.ensure_shape(states, [None] * (1 + axes) + [store.shape[-1]])
            for (name, store), states in zip(self._stores.items(), read, strict=True)
        }

    def _read(self, numbers, shape):
        """A list of (B, S, D) or (B, n, S, D), in the order of names; 0 at padding."""
        batches = []
        for store in self._stores.values():
            batch = np.zeros((len(numbers), *shape, store.shape[-1]), np.float32)
            for padded, number in zip(batch, numbers, strict=True):
                vectors = store[self._starts[number] :][: self._sizes[number]]
                padded[self._inside(number)] = vectors.reshape(*self._shapes[number], -1)
            batches.append(batch)
        return batches

    def _inside(self, number):
        """The slices of an example's padded array that are not padding."""
        return tuple(map(slice, self._shapes[number]))


def compute_once(splits, features, head, *, batch_size, folder):
    """The `FrozenExamples` of several `TokenizedExamples`, with a progress bar."""
    total = sum(len(examples) for examples in splits)
    with ProgressBar("computing features", unit="examples", total=total, line_seconds=10) as bar:
        return [
            FrozenExamples(
                examples,
                features,
                head,
                batch_size=batch_size,
                folder=folder,
                on_batch=lambda count: bar.update(advance=count),
            )
            for examples in splits
        ]


def _mapped_array(shape, folder):
    """A float32 array in an unnamed file."""
    size = 4 * math.prod(shape)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            # Taken now: a full disk under a mapped file would end the process without a message.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise InputError(
                f"Could not reserve {size / 2**20:,.0f} MiB for a frozen encoder's outputs in "
                f"{folder or tempfile.gettempdir()}: {error.strerror}."
            ) from error
        return np.memmap(file, np.float32, mode="w+", shape=shape)
