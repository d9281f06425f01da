"""One label for each word (Devlin et al. 2018, section 5.3)."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import counted, listed, percent, quoted
from keras_bert.heads.classification import labelled_head
from keras_bert.layers import Tensor
from keras_bert.readers import COUNT, ERROR, REPAIR
from keras_bert.readers.schemes import (
    BIO,
    SCHEMES,
    InvalidTags,
    converted,
    labels_of,
    name_chunks,
    read_chunks,
    scheme_of,
    scheme_of_labels,
    spans_of,
    transitions,
)
from keras_bert.tasks.exported_predictions import tagged_words_prediction
from keras_bert.tasks.losses import CountedAccuracy, cross_entropy_by_weight
from keras_bert.tasks.raw_data import rows_with_labels
from keras_bert.tasks.summed_metrics import SummedMetrics
from keras_bert.tasks.tagging import ALL, FIRST, LAST, TaggerSettings
from keras_bert.tasks.tagging.crf import CrfLoss, LinearChainCrf
from keras_bert.tasks.tagging.decode import (
    describe_tagging_error,
    probabilities_of_words,
    tagger_predictions,
    tagging_errors,
)
from keras_bert.tasks.tagging.metrics import (
    chunk_metrics,
    summed_chunks,
    summed_words,
    word_metrics,
)
from keras_bert.tasks.task import Task


@keras.saving.register_keras_serializable(package="keras_bert")
class Tagger(Task):
    """An encoder with a linear layer over every token's output, with one logit per label.

    Takes the encoder's dictionary and returns `logits` (B, S, C): B batch, S tokens, C labels. The
    head is that of Hugging Face's BertForTokenClassification: dropout, then the layer. Labels are
    `logits` (B, S) numbers; sample weights of the same name and shape are 1 at tokens that count
    and 0 at padding and at tokens without a label. A pooler is not used; a model folder keeps it
    under `keras_bert.`, because that class has none.

    Labels such as O, B-PER and I-PER name chunks; then `scheme` is "bio", "bioes", "bilou", "bmes"
    or "bmewo", predictions have entities, and the metric is F1 by conlleval's rules. Otherwise it
    is None, and the metric is the accuracy of words.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        labels: the names of the labels in the order of the logits, each once; at least two.
        **settings: see `TaggerSettings`. With `crf` the tokens whose weight is not 0 are the words
            whose labels the loss is of.

    Attributes: `labels` (a tuple), `scheme`, `settings`, `classifier` (the `Dense`), `dropout` (the
    `Dropout`), `crf` (the `LinearChainCrf`, or None).

    Raises:
        ValueError: the labels are fewer than two or not unique.
        InputError: a setting is invalid, or `crf` is combined with several tokens per word.
    """

    TASK_TYPE = "tagger"
    READS_WORDS = True
    HEADS: tuple[str, ...] = ("classifier",)
    MIN_LABELS = 2
    SETTINGS: type[Any] = TaggerSettings
    FEATURES = "keras_bert.tasks.tagging.features:tagged_sequences"
    SIGNATURES = "keras_bert.tasks.tagging.signatures:tagger_signatures"
    exported_prediction = tagged_words_prediction
    TEACHES: Any = "logits"
    ANSWER = "tags"
    METRIC = "accuracy"
    SHOWN = {"loss": "loss", "accuracy": "accuracy"}

    def defaults_for(self, settings: Any) -> dict[str, Any]:
        names = ("label_subwords", "aggregation")
        chosen = dict(zip(names, self._word_tokens(settings), strict=True))
        words = {name: value for name, value in chosen.items() if name in self.SETTINGS.names()}
        return {**super().defaults_for(settings), **words}

    @property
    def word_tokens(self) -> tuple[str, str]:
        """(The tokens of a word that are trained on its tag, what its tag is predicted from.)"""
        return self._word_tokens(self.settings)

    def _word_tokens(self, settings):
        whole = LAST if self.config.is_causal else FIRST  # the token that sees most of a word
        trained = settings.label_subwords or whole
        predicted = settings.aggregation or (whole if trained == ALL else trained)
        if settings.crf and trained != predicted:
            raise InputError.naming(
                "{crf} needs one token per word, the first or the last one. Received: "
                "{label_subwords} {}, {aggregation} {}.",
                settings.label_subwords,
                settings.aggregation,
            )
        return trained, predicted

    @property
    def scheme(self) -> str | None:
        """The scheme of the labels, or None."""
        return scheme_of_labels(self.labels)

    def make_head(self) -> None:
        if self.scheme is not None:
            self.METRIC = "f1"
            self.SHOWN = {**self.SHOWN, "f1": "F1"}
        self.make_classifier()
        self.crf = None
        if self.settings.crf:
            allowed = transitions(self.labels, self.scheme)
            self.crf = LinearChainCrf(transitions=allowed, name="crf")
            self.HEADS = (*self.HEADS, "crf")

    def make_classifier(self) -> None:
        """Makes the layers from the encoder's outputs to the logits."""
        self.transform = self.new_token_transform()
        self.dropout, self.classifier = labelled_head(
            self.encoder, len(self.labels), dropout=self.head_dropout
        )

    def token_vectors(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> Tensor:
        """The inputs of the linear layer, (B, S, D): the encoder's outputs after dropout."""
        x = encoded["sequence_output"]
        return self.dropout(x if self.transform is None else self.transform(x))

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        logits = self.classifier(self.token_vectors(encoded, inputs))  # (B, S, C)
        return {"logits": logits if self.crf is None else self.crf(logits)}

    @property
    def _by_one_token(self):
        """Whether the tag of a word is predicted from the one token that is trained on it."""
        trained, predicted = self.word_tokens
        return trained == predicted  # no other value is common to both

    def default_losses(self) -> dict[str, Any]:
        """Nats per word that counts: cross-entropy, or the loss of the CRF."""
        crf = self.crf
        return {"logits": cross_entropy_by_weight() if crf is None else CrfLoss(crf)}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        if self.crf is None:
            super().compile_from_config(config)
            return
        # The loss of this task's own layer, and not a new one from the config.
        config = keras.saving.deserialize_keras_object({**config, "loss": None})
        self.compile(**{**config, "loss": self.compiled_losses()})
        self.optimizer.build(self.trainable_variables)

    def default_metrics(self) -> dict[str, Any]:
        """`accuracy`, the fraction of tokens that count whose label has the highest logit.

        None if that is not the fraction of words, which `official_metrics` returns: with `crf`
        whole sequences are predicted, and otherwise words may be tagged by all of their tokens.
        """
        if self.crf is not None or not self._by_one_token:
            return {}
        return {"logits": [CountedAccuracy()]}

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        inferred_arguments: dict[str, Any] | None = None,
        schema: dict[str, Any] | None = None,
        labelled: bool = True,
        scheme: str | None = None,
        invalid_tags: str = REPAIR,
        unknown_labels: str = COUNT,
        **columns: Any,
    ) -> Any:
        """`TaggedWords` of CoNLL, CoNLL-U, JSON Lines or plain lines, or of a sequence.

        See `keras_bert.readers.sentences.TaggedSource`, and `CheckedSentences` for how tags
        are checked.
        """
        from keras_bert.readers.sentences import TaggedSource

        labels = (inferred_arguments or {}).get("labels")
        source = TaggedSource(data, labels=labels, schema=schema, need_labels=labelled, **columns)
        return CheckedSentences(
            source,
            labels=labels,
            scheme=scheme,
            invalid_tags=invalid_tags,
            unknown_labels=unknown_labels,
            labelled=labelled,
        )

    @classmethod
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        """The tags that occur, or all tags of a scheme for the kinds of chunks that occur."""
        labels = sorted({tag for example in examples for tag in example.tags})
        scheme = scheme_of(example.tags for example in examples)
        if scheme is not None:
            kinds = {span.kind for example in examples for span in spans_of(example.tags)}
            labels = labels_of(kinds, scheme)
        if len(labels) < cls.MIN_LABELS:
            raise InputError(
                f'{examples[0].source.name} has only one tag ("{labels[0]}"). A tagger needs two '
                "or more."
            )
        return {"labels": labels}

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        words = sum(len(example.words) for example in train)
        scheme = scheme_of_labels(inferred_arguments["labels"])
        if scheme is None:
            labels = inferred_arguments["labels"]
            described = f"{counted(len(labels), 'tag')} ({listed(labels)})"
        else:
            spans = Counter(span.kind for e in train for span in spans_of(e.tags))
            counts = (f"{kind or 'without kind'}: {spans[kind]:,}" for kind in sorted(spans))
            described = f"chunks of the scheme {scheme} ({listed(counts)})"
        return (
            f"{counted(len(train), 'training sentence')} of {counted(words, 'word')} and "
            f"{counted(len(dev), 'dev sentence')}; {described}."
        )

    def context_size(self, *, max_length: int | None = None) -> int:
        # If each has a single token.
        settings = self.settings
        return (max_length or settings.max_length) if settings.document_context else 0

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """See `tagger_predictions`."""
        return tagger_predictions(
            outputs["logits"],
            sequences,
            labels=self.labels,
            scheme=self.scheme,
            aggregation=self.word_tokens[1],
            crf=self.crf,
        )

    def taught_answers(self, outputs: dict[str, Any], sequences: Any) -> np.ndarray:
        """The logarithms of each word's probabilities: (W, C)."""
        probabilities = probabilities_of_words(
            outputs["logits"],
            sequences,
            count=len(self.labels),
            aggregation=self.word_tokens[1],
        )
        return np.log(np.maximum(probabilities, 1e-30))

    def with_answer(self, example: Any, prediction: dict[str, Any]) -> Any:
        words = {"words": tuple(prediction["words"]), "starts": tuple(prediction["starts"])}
        given = {} if example.words is not None else words
        return dataclasses.replace(example, tags=tuple(prediction["tags"]), **given)

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """See `chunk_metrics`, or `word_metrics` if the tags have no scheme."""
        expected, predicted = _tags(predictions, examples)
        scores = [prediction["scores"] for prediction in predictions]
        if self.scheme is None:
            return word_metrics(expected, predicted, scores, labels=self.labels)
        return self.scheme_metrics(expected, predicted, scores, scheme=self.scheme)

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> SummedMetrics:
        if self.scheme is None:
            return summed_words(*_tags(predictions, examples), labels=self.labels)
        return self.summed_scheme_metrics(*_tags(predictions, examples), scheme=self.scheme)

    scheme_metrics = staticmethod(chunk_metrics)
    summed_scheme_metrics = staticmethod(summed_chunks)

    def answer_of(self, prediction: dict[str, Any]) -> Any:
        tags = prediction["tags"]
        return tags if self.scheme is None else [[*span] for span in spans_of(tags)]

    def labels_of(self, example: Any) -> Sequence[str]:
        return example.tags or ()

    @classmethod
    def with_labels(cls, x: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        _, rows, tags = rows_with_labels(x, y)
        rows = [row if isinstance(row, dict) else {"words": row} for row in rows]
        return [{**row, "tags": tag} for row, tag in zip(rows, tags, strict=True)], {}

    def check_class_weight(self) -> None:
        self._check_weights("class_weight")

    def check_sample_weight(self) -> None:
        self._check_weights("sample_weight")

    def _check_weights(self, name):
        if self.crf is not None:
            raise InputError.naming(
                "{} has no effect with {crf}, whose loss is that of whole sequences.",
                argument(name),
            )

    errors = staticmethod(tagging_errors)
    describe_error = staticmethod(describe_tagging_error)

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        if "f1" not in metrics:
            macro = percent(metrics["macro_f1"])
            return f"accuracy {percent(metrics['accuracy'])} of words, macro F1 {macro}"
        return (
            f"F1 {percent(metrics['f1'])} by conlleval's rules (precision "
            f"{percent(metrics['precision'])}, recall {percent(metrics['recall'])}), strict F1 "
            f"{percent(metrics['strict_f1'])}; accuracy {percent(metrics['accuracy'])} of words"
        )

    def check_export(self) -> None:
        if self.settings.document_context:
            raise InputError.naming(
                "A tagger with {document_context} cannot be exported: it reads the sentences "
                "around each one, which a served text does not have. Use {predict}, or train it "
                "with {document_context=False}."
            )


def _tags(predictions, examples):
    """-> (the expected tags of each sentence, the predicted ones)."""
    return [example.tags for example in examples], [p["tags"] for p in predictions]


class CheckedSentences:
    """The sentences of a source, with their tags in the scheme of the model.

    A file whose tags are needed is read completely before the first sentence, as its scheme, which
    may not be the model's, is detected from all tags. Invalid tags are replaced by those of the
    chunks that conlleval reads.

    Args:
        source: a `TaggedSource`.
        labels: those of the model, or None.
        scheme: that of the resulting tags, or None for that of the model or the file.
        invalid_tags, unknown_labels: see `TaggerSettings`.
        labelled: whether tags are needed; otherwise the model need not have them.

    Attributes: those of the source.

    Raises:
        InputError: a tag is rejected, or `scheme` is not the model's.
    """

    def __init__(self, source, *, labels, scheme, invalid_tags, unknown_labels, labelled):
        self.name, self.kind, self.labelled = source.name, source.kind, source.labelled
        self.schema, self.description = source.schema, source.description
        self.error, self.shown = source.error, source.shown
        self.location, self.label = source.location, source.label
        self._source = source
        self._labels = None if labels is None else frozenset(labels)
        self._scheme = None if labels is None else scheme_of_labels(labels)
        if labels is not None and scheme not in (None, self._scheme):
            has = f"the scheme {self._scheme}" if self._scheme else "no scheme"
            raise InputError.naming(
                "The model's tags have {}; {scheme} is a setting of training.", has
            )
        self._wanted = scheme or self._scheme
        self._broken = InvalidTags(reject=invalid_tags == ERROR)
        rejects = source.labelled and invalid_tags == ERROR
        self._reads_all = labels is None or labelled or rejects
        self._counts_unknown = unknown_labels == COUNT
        self._rejects_unknown = labelled and labels is not None
        self._with_spaces, self._first_with_spaces, self._spelling = 0, None, None

    def __iter__(self):
        sentences = self._source
        if self._reads_all:
            sentences = list(sentences)
            if self._labels is None or self._scheme is not None:
                is_training = self._labels is None
                detected, self._spelling = read_chunks(
                    sentences, name=self.name, need_scheme=is_training
                )
                self._scheme = detected or self._scheme
        if self._labels is None:
            if self._scheme is None and self._wanted is not None:
                raise InputError.naming(
                    "{} has tags that do not name chunks, as B-PER and O do, so they have no "
                    "{scheme}.",
                    self.name,
                )
            older = self._scheme is not None and self._scheme not in SCHEMES
            self._wanted = self._wanted or (BIO if older else self._scheme)
        return (self._checked(sentence) for sentence in sentences)

    def notes(self):
        """Lines for the user on what was left out, invalid tags and words with spaces, so far."""
        lines = [*self._source.notes(), *([self._spelling] if self._spelling else [])]
        lines += self._broken.notes()
        if self._with_spaces:
            sentence, word = self._first_with_spaces
            lines.append(
                f"{self.name}: {counted(self._with_spaces, 'word')} with spaces, the first one in "
                f"line {sentence.line_of(word)} ({quoted([sentence.words[word]])}); each has one "
                "tag."
            )
        return lines

    def _checked(self, sentence):
        spaces = [word for word, text in enumerate(sentence.words or ()) if " " in text]
        if spaces and self._first_with_spaces is None:
            self._first_with_spaces = sentence, spaces[0]
        self._with_spaces += len(spaces)
        tags = sentence.tags
        if tags is not None:
            if self._scheme is not None and name_chunks(tags):
                self._broken.count(sentence, self._scheme)
                tags = tuple(converted(tags, self._wanted))
            if self._rejects_unknown:
                self._reject_unknown(sentence, tags)
        return dataclasses.replace(sentence, tags=tags, source=self)

    def _reject_unknown(self, sentence, tags):
        may_count = self._scheme is None or name_chunks(tags)
        if self._counts_unknown and may_count:
            return
        advice = " The model's tags name chunks, and those of this file do not."
        for word, tag in enumerate(tags):
            if tag not in self._labels:
                raise sentence.error(
                    f'the model does not have the tag "{tag}". '
                    f"Its tags are {quoted(sorted(self._labels))}."
                    f"{'' if may_count else advice}",
                    word=word,
                )
