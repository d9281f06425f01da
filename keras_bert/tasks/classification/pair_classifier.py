"""A label for two texts: entailment, paraphrase (Devlin et al. 2018, section 4.1)."""

import keras

from keras_bert.readers.labelled_texts import PAIR
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.classification.settings import PairClassifierSettings


@keras.saving.register_keras_serializable(package="keras_bert")
class PairClassifier(Classifier):
    """A `Classifier` of rows `[CLS] a [SEP] b [SEP]`; its arguments and its head are that one's."""

    KIND = "pair-classifier"
    SETTINGS = PairClassifierSettings
    TEXTS = PAIR

    def __init__(self, encoder, tokenizer=None, *, name="pair_classifier", **options):
        super().__init__(encoder, tokenizer, name=name, **options)
