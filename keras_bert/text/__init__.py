"""Vocabularies and tokenizers: from strings to ids, the same way in every stage.

Importing this package loads neither TensorFlow nor TensorFlow Text, which only the tokenizer needs.
"""

from keras_bert.base import lazy_names

_HOMES = {
    "Vocabulary": "keras_bert.text.vocabulary",
    "WordPieceVocabulary": "keras_bert.text.vocabularies.wordpiece",
    "BpeVocabulary": "keras_bert.text.vocabularies.bpe",
    "GptVocabulary": "keras_bert.text.vocabularies.bpe",
    "ByteLevelVocabulary": "keras_bert.text.vocabularies.byte_level",
    "UnigramVocabulary": "keras_bert.text.vocabularies.unigram",
    "load_vocabulary": "keras_bert.text.vocabulary_files",
    "learn_wordpiece": "keras_bert.text.learners",
    "learn_words": "keras_bert.text.learners",
    "learn_bpe": "keras_bert.text.learners",
    "learn_byte_level_bpe": "keras_bert.text.learners",
    "learn_unigram": "keras_bert.text.unigram_learner",
    "Tokenizer": "keras_bert.text.tokenizer",
    "Tokens": "keras_bert.text.tokenizer",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
