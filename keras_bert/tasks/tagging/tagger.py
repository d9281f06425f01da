"""One label for each word (Devlin et al. 2018, section 5.3)."""

from collections import Counter

import keras

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, percent
from keras_bert.heads.labelled import check_labels, labelled_head
from keras_bert.readers.schemes import (
    labels_of,
    scheme_of,
    scheme_of_labels,
    spans_of,
    transitions,
)
from keras_bert.readers.settings import ERROR, REPAIR
from keras_bert.tasks.settings import MAX_LENGTH
from keras_bert.tasks.tagging.crf import CrfLoss, LinearChainCrf
from keras_bert.tasks.tagging.decode import tagger_predictions, tagging_errors
from keras_bert.tasks.tagging.reading import CheckedSentences
from keras_bert.tasks.tagging.settings import ALL, FIRST, LAST, TaggerSettings
from keras_bert.tasks.task import Task


@keras.saving.register_keras_serializable(package="keras_bert")
class Tagger(Task):
    """An encoder with a linear layer over every token's output, one logit a label.

    Takes the encoder's dictionary and gives `logits` (B, S, C): B batch, S tokens in a row, C
    labels. The head is that of Hugging Face's BertForTokenClassification: dropout, then the layer.
    Labels are `logits` (B, S) numbers; sample weights of the same name and shape are 1 at tokens
    that count and 0 at padding and at pieces without a label. A pooler is not used; a model folder
    keeps it for us alone, because that class has none.

    Labels such as O, B-PER and I-PER name chunks; then `scheme` is "bio", "bioes", "bilou", "bmes"
    or "bmewo", answers have entities, and the figure is F1 by conlleval's rules. Otherwise it is
    None, and the figure is the accuracy of words.

    Args:
        encoder: an `Encoder`, such as a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
        labels: the names of the labels in the order of the logits, each once; at least two.
        dropout: the share of the outputs that is dropped in training. None is the config's
            `classifier_dropout`, or where that is None its `hidden_dropout_prob`.
        max_length: tokens in a row, [CLS] and [SEP] counted in; a longer sentence is split into
            windows. None is 128, or all positions of an encoder that has fewer.
        label_subwords: the pieces of a word that are trained on its tag: "first", "last" or "all".
            None is "first", or "last" over a causal encoder.
        aggregation: what a word's tag is taken from: "first" or "last", or the "mean" or
            "product" of all pieces' distributions. None is the piece that is trained; where all
            are, "first", or "last" over a causal encoder.
        document_context, crf: see `TaggerSettings`. With `crf` the tokens whose weight is not 0
            are the words, whose labels the loss is of.
        **between: `layer_mix` and `bilstm`, see `Task`.

    Attributes: `labels` (a tuple), `scheme`, `classifier` (the `Dense`), `dropout` (the `Dropout`),
    `crf_layer` and `bilstm_layer` (or None), and the arguments.

    Raises:
        ValueError: the labels are fewer than two or not unique, or `crf` is to go with several
            pieces of a word.
    """

    KIND = "tagger"
    HEADS = ("classifier",)
    MIN_LABELS = 2
    SETTINGS = TaggerSettings
    METRIC = "accuracy"
    SHOWN = {"loss": "loss", "accuracy": "accuracy"}

    def __init__(
        self,
        encoder,
        tokenizer=None,
        *,
        labels,
        dropout=None,
        max_length=None,
        label_subwords=None,
        aggregation=None,
        document_context=False,
        crf=False,
        name="tagger",
        **between,
    ):
        self.set_encoder(encoder, **between)
        self.labels = check_labels(labels, least=self.MIN_LABELS)
        self.scheme = scheme_of_labels(self.labels)
        self.max_length = max_length or encoder.default_max_length(MAX_LENGTH)
        whole = LAST if encoder.config.is_causal else FIRST  # the piece that sees most of a word
        self.label_subwords = label_subwords or whole
        trained = whole if self.label_subwords == ALL else self.label_subwords
        self.aggregation = aggregation or trained
        if crf and not self._by_one_token:
            raise ValueError(
                "`crf` is over the first pieces of words, or over the last ones. Received: "
                f"label_subwords={label_subwords!r}, aggregation={aggregation!r}"
            )
        self.document_context = document_context
        self.crf = crf
        if self.scheme is not None:
            self.METRIC = "f1"
            self.SHOWN = {**self.SHOWN, "f1": "F1"}
        self.dropout, self.classifier = labelled_head(encoder, len(self.labels), dropout=dropout)
        self.crf_layer = None
        if crf:
            allowed = transitions(self.labels, self.scheme)
            self.crf_layer = LinearChainCrf(transitions=allowed, name="crf")
            self.HEADS = (*self.HEADS, "crf_layer")
        super().__init__(tokenizer, name=name)

    def build_head(self, encoded, inputs):
        logits = self.classifier(self.dropout(encoded["sequence_output"]))  # (B, S, C)
        return {"logits": logits if self.crf_layer is None else self.crf_layer(logits)}

    @property
    def _by_one_token(self):
        """Whether the tag of a word is taken from the one piece that is trained to have it."""
        return self.label_subwords == self.aggregation  # no other value is common to both

    def default_losses(self):
        """Nats a word that counts: cross-entropy, or of whole sequences with `crf`."""
        if self.crf_layer is not None:
            return {"logits": CrfLoss(self.crf_layer)}
        return {
            "logits": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        }

    def compile_from_config(self, config):
        if self.crf_layer is None:
            super().compile_from_config(config)
            return
        # A loss out of a file would know nothing of this task's layer.
        config = keras.saving.deserialize_keras_object({**config, "loss": None})
        self.compile(**{**config, "loss": self.compiled_losses()})
        self.optimizer.build(self.trainable_variables)

    def default_metrics(self):
        """`accuracy`, the share of tokens that count whose label has the highest logit.

        None where that is not the fraction of words, which `official_metrics` gives: with `crf` it
        is sequences that are chosen, and else words may be tagged by all of their pieces, or all
        pieces counted.
        """
        if self.crf_layer is not None or not self._by_one_token:
            return {}
        return {"logits": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    @classmethod
    def read(
        cls,
        data,
        *,
        inferred_arguments=None,
        schema=None,
        labelled=True,
        scheme=None,
        invalid_tags=REPAIR,
        unknown_tags=ERROR,
        **columns,
    ):
        """`TaggedWords` of CoNLL, CoNLL-U, JSON Lines or plain lines, or of a sequence.

        See `keras_bert.readers.sentences.open_tagged_words`, and `CheckedSentences` for what
        is done with tags.
        """
        from keras_bert.readers.sentences import open_tagged_words

        labels = (inferred_arguments or {}).get("labels")
        source = open_tagged_words(
            data, labels=labels, schema=schema, need_tags=labelled, **columns
        )
        return CheckedSentences(
            source,
            labels=labels,
            scheme=scheme,
            invalid_tags=invalid_tags,
            unknown_tags=unknown_tags,
            labelled=labelled,
        )

    @classmethod
    def infer_arguments(cls, examples):
        """The tags that occur; of chunks, all that their scheme has for the kinds that occur."""
        labels = sorted({tag for example in examples for tag in example.tags})
        scheme = scheme_of(example.tags for example in examples)
        if scheme is not None:
            kinds = {span.kind for example in examples for span in spans_of(example.tags)}
            labels = labels_of(kinds, scheme)
        if len(labels) < cls.MIN_LABELS:
            raise InputError(
                f'{examples[0].source.name} has one tag only ("{labels[0]}"); a tagger needs two '
                "or more."
            )
        return {"labels": labels}

    @classmethod
    def summary(cls, train, dev, inferred_arguments):
        words = sum(len(example.words) for example in train)
        scheme = scheme_of_labels(inferred_arguments["labels"])
        if scheme is None:
            what = (
                f"{len(inferred_arguments['labels'])} tags ({listed(inferred_arguments['labels'])})"
            )
        else:
            spans = Counter(span.kind for e in train for span in spans_of(e.tags))
            what = f"chunks of the scheme {scheme} (" + (
                listed(f"{kind or 'of no kind'}: {spans[kind]:,}" for kind in sorted(spans)) + ")"
            )
        return (
            f"{counted(len(train), 'training sentence')} of {counted(words, 'word')} and "
            f"{counted(len(dev), 'dev sentence')}; {what}."
        )

    @classmethod
    def notes(cls, examples):
        return examples[0].source.notes()

    def features(self, examples, *, max_length=None, labelled=False):
        from keras_bert.tasks.tagging.features import tagged_sequences

        return tagged_sequences(
            examples,
            tokenizer=self.tokenizer,
            input_names=self.encoder.input_names,
            labels=self.labels,
            max_length=max_length or self.max_length,
            label_subwords=self.label_subwords,
            document_context=self.document_context,
            labelled=labelled,
            crf=self.crf,
        )

    def context_size(self, *, max_length=None):
        # As many as fill a row of a token each.
        return (max_length or self.max_length) if self.document_context else 0

    def decode(self, outputs, sequences):
        """See `tagger_predictions`."""
        return tagger_predictions(
            outputs["logits"],
            sequences,
            labels=self.labels,
            scheme=self.scheme,
            aggregation=self.aggregation,
            crf=self.crf_layer,
        )

    def official_metrics(self, predictions, examples):
        """See `chunk_metrics`, or `word_metrics` where the tags have no scheme."""
        from keras_bert.tasks.tagging.metrics import chunk_metrics, word_metrics

        expected = [example.tags for example in examples]
        found, scores = (
            [prediction[name] for prediction in predictions] for name in ("tags", "scores")
        )
        if self.scheme is None:
            return word_metrics(expected, found, scores, labels=self.labels)
        return chunk_metrics(expected, found, scores, scheme=self.scheme)

    def errors(self, predictions, examples):
        """See `tagging_errors`."""
        return tagging_errors(predictions, examples, scheme=self.scheme)

    @staticmethod
    def describe_metrics(metrics):
        if "f1" not in metrics:
            macro = percent(metrics["macro_f1"])
            return f"accuracy {percent(metrics['accuracy'])} of words, macro F1 {macro}"
        return (
            f"F1 {percent(metrics['f1'])} by conlleval's rules (precision "
            f"{percent(metrics['precision'])}, recall {percent(metrics['recall'])}), strictly "
            f"{percent(metrics['strict_f1'])}; accuracy {percent(metrics['accuracy'])} of words"
        )

    def signatures(self, *, max_length=None):
        from keras_bert.tasks.tagging.signatures import tagger_signatures

        return tagger_signatures(self, max_length=max_length or self.max_length)

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout.rate}
