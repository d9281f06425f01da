"""What every task is: an encoder, a head, and the losses and metrics that belong to the head."""

import keras

from keras_bert.encoder import check_names
from keras_bert.errors import InputError


class Task(keras.Model):
    """A functional Keras model of an encoder and a head, with dictionaries in and out.

    A subclass builds its layers, then calls `super().__init__`, then is an ordinary `keras.Model`
    that `fit`, `evaluate` and `predict` work on:

        class Classifier(Task):
            ARCHITECTURE = "BertForSequenceClassification"

            def __init__(self, encoder, tokenizer=None, *, labels, name="classifier"):
                inputs = self.feature_inputs()
                pooled = encoder(inputs)["pooled_output"]  # (B, D)
                head = keras.layers.Dense(len(labels), name="classifier_head")
                super().__init__(
                    inputs=inputs,
                    outputs={"logits": head(pooled)},
                    encoder=encoder,
                    tokenizer=tokenizer,
                    name=name,
                )
                self.classifier_head = head

    A subclass sets `ARCHITECTURE`, defines `default_losses` and `default_metrics`, and extends
    `get_config` by its own arguments. Attributes: `encoder`, `tokenizer` (or None: then the task
    takes token ids only), `config` (the encoder's `BertConfig`).
    """

    # The class name that Hugging Face's config.json has under "architectures" for these weights.
    ARCHITECTURE = None

    def __init__(self, *, inputs, outputs, encoder, tokenizer, name):
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.encoder = encoder
        self.tokenizer = tokenizer

    def call(self, inputs, training=None, mask=None):
        # Keras takes the inputs of a dictionary with a name too many by alphabetical order.
        return super().call(check_names(inputs, self.input), training=training, mask=mask)

    @staticmethod
    def feature_inputs():
        """The three inputs of every encoder, as symbolic (B, S) int32 tensors by name."""
        return {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in ("input_ids", "input_mask", "segment_ids")
        }

    @property
    def config(self):
        """The encoder's `BertConfig`."""
        return self.encoder.config

    def default_losses(self):
        """Returns the loss of each output, by the output's name."""
        return {}

    def default_metrics(self):
        """Returns the metrics of each output by the output's name; sample weights apply to them."""
        return {}

    def compile_defaults(self, optimizer, **options):
        """`compile` with the task's own losses and metrics; `options` go to `compile`.

        The optimizer is built for what is trainable now. As after every `compile`, call it again
        where that has changed.
        """
        self.compile(
            optimizer=optimizer,
            loss=self.default_losses(),
            weighted_metrics=self.default_metrics(),
            **options,
        )
        if not self.optimizer.built:
            # Built in the first step, it would have TensorFlow trace that step a second time.
            self.optimizer.build(self.trainable_variables)

    def dataset(self, data, **options):
        """The training batches of data of the task's own kind, where it can read any.

        Raises InputError: it cannot; `fit` takes batches that are made in another way.
        """
        raise InputError(
            f"A {type(self).__name__} reads no files; give `fit` batches of {', '.join(self.input)}"
            f" with labels for {', '.join(self.output)}."
        )

    def save(self, filepath, overwrite=True, **options):
        """Writes the task as a model folder, or as Keras's own file where the name ends so.

        A model folder (config.json, model.safetensors and the tokenizer's files, such as vocab.txt)
        is what every command reads. A name that ends in .keras or .h5 is saved as Keras saves any
        model, without the tokenizer.
        """
        if str(filepath).endswith((".keras", ".h5")):
            super().save(filepath, overwrite=overwrite, **options)
            return
        from keras_bert.checkpoints import save_folder

        save_folder(self, self.tokenizer, filepath, **options)

    def export(self, filepath, **options):
        """Writes a SavedModel that takes strings under `filepath`, in its next version folder."""
        from keras_bert.export import export_task

        return export_task(self, filepath, **options)

    def get_config(self):
        # A functional model's own config is its graph, which cannot be given to our constructors.
        return {"encoder": keras.saving.serialize_keras_object(self.encoder), "name": self.name}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        config["encoder"] = keras.saving.deserialize_keras_object(
            config["encoder"], custom_objects=custom_objects
        )
        return cls(**config)
