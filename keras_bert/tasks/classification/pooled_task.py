"""The choice of the vector that heads over a whole text read: what their tasks have in common."""

from keras_bert.base.errors import InputError
from keras_bert.heads.pooling import POOLINGS, encoder_outputs, pooled
from keras_bert.tasks.task import Task


class PooledTask(Task):
    """A task whose head reads one vector of the whole row; see `keras_bert.heads.pooling.pooled`.

    A constructor calls `set_pooling` before it calls `super().__init__`.
    """

    def set_pooling(self, pooling):
        """Sets `pooling`, None being the encoder's default, and what depends on it.

        Raises:
            ValueError: there is no such pooling, or it needs a pooler that the encoder lacks.
            InputError: [CLS] is to be read, and the encoder is causal.
        """
        encoder = self.encoder
        if pooling is not None and pooling not in POOLINGS:
            raise ValueError(
                f"`pooling` must be one of {', '.join(POOLINGS)}. Received: {pooling!r}"
            )
        self.pooling = pooling or encoder.default_pooling
        if "cls" in POOLINGS[self.pooling]:
            if encoder.config.is_causal:
                usable = [name for name, parts in POOLINGS.items() if "cls" not in parts]
                raise InputError(
                    f"`pooling` is {pooling}, but the encoder is causal: its first token sees no "
                    "other one, so that it is the same for every text. Choose from "
                    f"{', '.join(usable)}."
                )
            self.transform = encoder.head_transform(self.KIND)
            if encoder.lacks_head_transform(self.KIND):
                raise ValueError(
                    f"`{type(self).__name__}` with the pooling {self.pooling!r} needs an encoder "
                    "with a pooler. Received: an encoder whose weights came without one"
                )
        self.ENCODER_OUTPUTS = encoder_outputs(self.pooling)
        self.HEAD_READS = ("input_mask",) if "sequence_output" in self.ENCODER_OUTPUTS else ()

    @classmethod
    def reads_first_token(cls, *, pooling=None, **settings):
        """Whether a task with these settings asks for the first token, whatever the encoder."""
        return pooling is not None and "cls" in POOLINGS[pooling]

    def is_standard(self):
        names = self.encoder.tensor_names(self.config)
        pooling = names.names(names.class_of(self.KIND)).pooling
        return super().is_standard() and self.pooling == pooling

    @classmethod
    def settings_in_config(cls, values):
        # Hugging Face's classes, and folders from before there was a choice, read [CLS].
        return {"pooling": "cls"}

    def vector(self, encoded, mask):
        """What the head reads: (B, D), or (B, n D) of n parts."""
        return pooled(encoded, mask, pooling=self.pooling, transform=self.transform)
