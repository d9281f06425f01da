"""Sentences with a marked predicate as sequences of tokens."""

import numpy as np

from keras_bert.tasks.span_classification.features import span_in_words
from keras_bert.tasks.tagging.features import TaggedSequences


class PredicateSequences(TaggedSequences):
    """`TaggedSequences` of `PredicateWords`, whose predicate is repeated as the second text.

    Attribute: `predicates`, for each example its `LabelledSpan` in words.

    Raises:
        InputError: a predicate begins or ends inside a word, or there is no room for one.
    """

    def marked_tokens(self, examples):
        self.predicates = [
            span_in_words(example.predicate, example, sentence.starts, sentence.ends)
            for example, sentence in zip(examples, self.sentences, strict=True)
        ]
        marked = [
            np.r_[0, np.cumsum(sentence.sizes)][[predicate.start, predicate.end]]
            for predicate, sentence in zip(self.predicates, self.sentences, strict=True)
        ]
        return np.array(marked, np.int32).reshape(-1, 2)
