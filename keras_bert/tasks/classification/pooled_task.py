"""The choice of the vector that heads over a whole text read: what their tasks have in common."""

from keras_bert.heads.labelled import pooled
from keras_bert.tasks.classification.settings import POOLINGS, settled_pooling
from keras_bert.tasks.task import Task


class PooledTask(Task):
    """A task whose head reads one vector of the whole row; see `keras_bert.heads.labelled.pooled`.

    A constructor calls `settle_pooling` before it calls ours.
    """

    ARCHITECTURE = "BertForSequenceClassification"
    READS = ("pooled_output",)

    def settle_pooling(self, pooling, config):
        """Sets `pooling`, None being what suits an encoder of that config, and what hangs on it."""
        self.pooling = settled_pooling(pooling, config)
        self.READS = self.reads(config, pooling=pooling)
        self.ARCHITECTURE = self.architecture(pooling=self.pooling)

    @classmethod
    def reads(cls, config, *, pooling=None, **settings):
        return POOLINGS[settled_pooling(pooling, config)]

    @classmethod
    def architecture(cls, *, pooling="cls", **settings):
        return cls.ARCHITECTURE if pooling == "cls" else "BertModel"

    @classmethod
    def settings_in_config(cls, values):
        # Hugging Face's classes, and folders from before there was a choice, read [CLS].
        return {"pooling": "cls"}

    def vector(self, encoded, inputs):
        """What the head reads: (B, D), or (B, n D) of n poolings."""
        return pooled(encoded, inputs, pooling=self.pooling)
