"""The arguments of a predicate and their roles (Shi and Lin 2019): who did what to whom."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, percent
from keras_bert.heads.spans import WordMeans
from keras_bert.layers import Tensor
from keras_bert.readers import COUNT, REPAIR
from keras_bert.readers.predicates import VERB
from keras_bert.readers.schemes import scheme_of_labels, spans_of
from keras_bert.tasks.span_classification.decode import WordPositions
from keras_bert.tasks.tagging import SemanticRoleSettings
from keras_bert.tasks.tagging.metrics import role_metrics, summed_roles
from keras_bert.tasks.tagging.tagger import CheckedSentences, Tagger

# Units of the hidden layer over a token and the predicate, as in Shi and Lin 2019.
UNITS = 300


@keras.saving.register_keras_serializable(package="keras_bert")
class SemanticRoleTagger(Tagger):
    """A tagger of the arguments of one marked predicate (Shi and Lin 2019, section 3.2).

    A sequence is `[CLS] sentence [SEP] predicate [SEP]`, whatever the encoder's template. The
    head reads every token with the vector of the predicate in its sentence, [h_i; h_p], through a
    hidden layer with ReLU and a linear one, so that encoders without segment ids know the predicate
    too, and of two equal verbs the one that is meant.

    Takes the encoder's dictionary and `marked_starts` and `marked_ends` (B, 1) int32, the position
    of the predicate's first token and the one after its last (of the second text's, if the first
    does not have it in this window). Returns `logits` (B, S, C), as a `Tagger`, whose labels and
    sample weights it has.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        labels: tags of a scheme, such as O, B-A0, I-A0 and B-V.
        **settings: see `SemanticRoleSettings`.

    Attributes: those of a `Tagger`, `hidden` (the `Dense` layer of 300 units) and
    `predicate_vector` (the `WordMeans`).

    Raises:
        ValueError: the labels are fewer than two or not unique, or have no scheme.
    """

    TASK_TYPE = "semantic-roles"
    TEACHES = None
    HEAD_INPUTS = {"marked_starts": (1,), "marked_ends": (1,)}
    HEADS = ("hidden", "classifier")
    SETTINGS = SemanticRoleSettings
    SIGNATURES = "keras_bert.tasks.tagging.signatures:role_signatures"

    def checked_labels(self, labels: Sequence[str] | None, settings: Any) -> tuple[str, ...]:
        labels = super().checked_labels(labels, settings)
        if scheme_of_labels(labels) is None:
            raise ValueError(
                "`labels` must be tags such as O, B-A0 and I-A0, which name arguments. "
                f"Received: {labels!r}."
            )
        return labels

    def make_classifier(self) -> None:
        policy = self.encoder.layer_policy
        self.predicate_vector = WordMeans(
            last=self.config.is_causal, dtype=policy, name="predicate_vector"
        )
        self.hidden = keras.layers.Dense(UNITS, activation="relu", dtype=policy, name="hidden")
        super().make_classifier()

    def token_vectors(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> Tensor:
        tokens = super().token_vectors(encoded, inputs)  # (B, S, D)
        starts, ends = inputs["marked_starts"], inputs["marked_ends"]
        predicate = self.predicate_vector(tokens, starts, ends)  # (B, 1, D)
        predicate = predicate + ops.zeros_like(tokens)
        return self.hidden(ops.concatenate([tokens, predicate], axis=-1))  # (B, S, UNITS)

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        inferred_arguments: dict[str, Any] | None = None,
        schema: dict[str, Any] | None = None,
        labelled: bool = True,
        invalid_tags: str = REPAIR,
        unknown_labels: str = COUNT,
        **columns: Any,
    ) -> Any:
        """`PredicateWords` of CoNLL-2005, CoNLL-2012 or JSON Lines, or of a sequence.

        See `keras_bert.readers.predicates.PredicateSource`.
        """
        from keras_bert.readers.predicates import PredicateSource

        return CheckedSentences(
            PredicateSource(data, need_labels=labelled, **columns),
            labels=(inferred_arguments or {}).get("labels"),
            scheme=None,
            invalid_tags=invalid_tags,
            unknown_labels=unknown_labels,
            labelled=labelled,
        )

    @classmethod
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        """All tags of the scheme for the roles that occur."""
        if not examples:
            raise InputError("The training file has no predicates with arguments to learn from.")
        arguments = super().infer_arguments(examples)
        if scheme_of_labels(arguments["labels"]) is None:
            raise InputError(
                f"{examples[0].source.name} has tags that do not name arguments, as O, B-A0 and "
                f"I-A0 do. Received: {listed(arguments['labels'])}."
            )
        return arguments

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        roles = Counter(span.kind for example in train for span in spans_of(example.tags))
        counts = listed(f"{role}: {roles[role]:,}" for role in sorted(roles) if role != VERB)
        return (
            f"{counted(len(train), 'training predicate')} ({counts}) and "
            f"{counted(len(dev), 'dev predicate')}."
        )

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """Returns a `Tagger`'s predictions, with `predicate`, and `arguments` in place of entities.

        The predicate has `start` and `end` in characters of the text, `words` ([first, after the
        last]) and its `text`.
        """
        predictions = super().decode(outputs, sequences)
        for prediction, span in zip(predictions, sequences.predicates, strict=True):
            position = WordPositions(*(prediction[name] for name in WordPositions._fields))
            prediction["predicate"] = position.span(span.start, span.end)
            chunks = prediction.pop("entities")
            prediction["arguments"] = [chunk for chunk in chunks if chunk["label"] != VERB]
        return predictions

    scheme_metrics = staticmethod(role_metrics)
    summed_scheme_metrics = staticmethod(summed_roles)

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        return (
            f"F1 {percent(metrics['f1'])} of arguments by srl-eval's rules (precision "
            f"{percent(metrics['precision'])}, recall {percent(metrics['recall'])}); "
            f"{percent(metrics['perfect'])} of predicates without an error"
        )
