"""Types of the public names. Made by `make types`; a test compares."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_bert.config import BertConfig as BertConfig
from keras_bert.embeddings.text_embedding import TextEmbedding
from keras_bert.encoder import BertEncoder as BertEncoder
from keras_bert.errors import InputError as InputError
from keras_bert.inference.fill_mask import Candidate
from keras_bert.layers.scalar_mix import ScalarMix as ScalarMix
from keras_bert.mixed_encoder import MixedEncoder as MixedEncoder
from keras_bert.samples.quickstart import QuickstartSizes
from keras_bert.tasks.classification.classifier import Classifier as Classifier
from keras_bert.tasks.classification.pair_classifier import PairClassifier as PairClassifier
from keras_bert.tasks.classification.regressor import Regressor as Regressor
from keras_bert.tasks.multiple_choice.multiple_choice import MultipleChoice as MultipleChoice
from keras_bert.tasks.pretraining.fill_mask import FillMask as FillMask
from keras_bert.tasks.pretraining.pretrainer import Pretrainer as Pretrainer
from keras_bert.tasks.pretraining.sentence_order_pretrainer import (
    SentenceOrderPretrainer as SentenceOrderPretrainer,
)
from keras_bert.tasks.pretraining.span_pretrainer import SpanPretrainer as SpanPretrainer
from keras_bert.tasks.question_answering.question_answerer import (
    QuestionAnswerer as QuestionAnswerer,
)
from keras_bert.tasks.span_classification.relation_classifier import (
    RelationClassifier as RelationClassifier,
)
from keras_bert.tasks.span_classification.span_classifier import SpanClassifier as SpanClassifier
from keras_bert.tasks.tagging.tagger import Tagger as Tagger
from keras_bert.text.bpe_vocabulary import BpeVocabulary as BpeVocabulary
from keras_bert.text.tokenizer import Tokenizer as Tokenizer
from keras_bert.text.vocabulary import Vocabulary as Vocabulary
from keras_bert.text.wordpiece_vocabulary import WordPieceVocabulary as WordPieceVocabulary

__version__: str
__all__ = [
    "BertConfig",
    "BertEncoder",
    "BpeVocabulary",
    "Classifier",
    "FillMask",
    "InputError",
    "MixedEncoder",
    "MultipleChoice",
    "PairClassifier",
    "Pretrainer",
    "QuestionAnswerer",
    "Regressor",
    "RelationClassifier",
    "ScalarMix",
    "SentenceOrderPretrainer",
    "SpanClassifier",
    "SpanPretrainer",
    "Tagger",
    "Tokenizer",
    "Vocabulary",
    "WordPieceVocabulary",
    "diagnose",
    "draw_attention",
    "draw_contexts",
    "draw_run",
    "draw_similarity",
    "embed",
    "embed_to_file",
    "evaluate",
    "fill_mask",
    "finetune",
    "load",
    "predict",
    "pretrain",
    "push",
    "quickstart",
    "sweep",
]

def diagnose() -> dict[str, Any]: ...
def draw_attention(
    *,
    model: object,
    text: str,
    output: str | os.PathLike[str],
    layer: int | None = ...,
    head: int | None = ...,
) -> Path: ...
def draw_contexts(
    *,
    model: object,
    word: str,
    texts: Sequence[str],
    output: str | os.PathLike[str],
    groups: Sequence[str] | None = ...,
    layers: str = ...,
) -> Path: ...
def draw_run(run: str | os.PathLike[str]) -> list[Path]: ...
def draw_similarity(
    *,
    model: object,
    pairs: Sequence[tuple[str, str]],
    output: str | os.PathLike[str],
    layers: str = ...,
) -> Path: ...
def embed(
    *,
    text_column: str | None = ...,
    header: bool | None = ...,
    model: object,
    data: object = ...,
    layers: str = ...,
    tokens: str = ...,
    max_length: int | None = ...,
    batch_size: int = ...,
    text: str | Sequence[str] | None = ...,
    report: Callable[[str], None] | None = ...,
) -> Iterator[TextEmbedding]: ...
def embed_to_file(
    *,
    text_column: str | None = ...,
    header: bool | None = ...,
    model: object,
    data: object,
    layers: str = ...,
    tokens: str = ...,
    max_length: int | None = ...,
    batch_size: int = ...,
    output: object,
    force: bool = ...,
    progress: bool = ...,
    report: Callable[[str], None] | None = ...,
) -> dict[str, int]: ...
def evaluate(
    *,
    model: object,
    max_length: int | None = ...,
    batch_size: int = ...,
    data: object,
    errors: int = ...,
    text_column: str | None = ...,
    header: bool | None = ...,
    label_column: str | None = ...,
    fields: str | None = ...,
    glue: str | None = ...,
    report: Callable[[str], None] | None = ...,
    **of_other_kinds: Any,
) -> dict[str, Any]: ...
def fill_mask(*, model: object, text: str, top: int = ...) -> list[list[Candidate]]: ...
def finetune(
    *,
    output: str | os.PathLike[str],
    batch_size: int = ...,
    warmup: float = ...,
    weight_decay: float = ...,
    seed: int = ...,
    dtype: str = ...,
    steps_per_execution: int = ...,
    checkpoint_every: int = ...,
    deterministic: bool = ...,
    force: bool = ...,
    task: str = ...,
    model: str | os.PathLike[str] | None = ...,
    architecture: str | None = ...,
    vocab: str | os.PathLike[str] | None = ...,
    cased: bool = ...,
    train: str | os.PathLike[str],
    dev: str | os.PathLike[str],
    epochs: int = ...,
    learning_rate: float | None = ...,
    frozen: bool = ...,
    scalar_mix: bool = ...,
    scalar_mix_l2: float = ...,
    scalar_mix_layer_norm: bool = ...,
    schedule: str = ...,
    train_layers: int | None = ...,
    layer_decay: float = ...,
    gradual_unfreezing: bool = ...,
    patience: int | None = ...,
    keep: str = ...,
    seeds: int = ...,
    max_length: int | None = ...,
    dropout: float | None = ...,
    pooling: str = ...,
    multi_label: bool = ...,
    threshold: float = ...,
    class_weights: str = ...,
    figure: str | None = ...,
    text_column: str | None = ...,
    header: bool | None = ...,
    label_column: str | None = ...,
    fields: str | None = ...,
    glue: str | None = ...,
    report: Callable[[str], None] | None = ...,
    **of_other_kinds: Any,
) -> dict[str, Any]: ...
def load(
    folder: str | os.PathLike[str], *, dtype: Any = ...
) -> tuple[BertEncoder, Tokenizer | None]: ...
def predict(
    *,
    model: object,
    max_length: int | None = ...,
    batch_size: int = ...,
    data: object = ...,
    text_column: str | None = ...,
    header: bool | None = ...,
    label_column: str | None = ...,
    fields: str | None = ...,
    glue: str | None = ...,
    text: str | Sequence[str] | None = ...,
    report: Callable[[str], None] | None = ...,
    **of_other_kinds: Any,
) -> Iterator[dict[str, Any]]: ...
def pretrain(
    *,
    output: str | os.PathLike[str],
    batch_size: int = ...,
    warmup: float = ...,
    weight_decay: float = ...,
    seed: int = ...,
    dtype: str = ...,
    steps_per_execution: int = ...,
    checkpoint_every: int = ...,
    deterministic: bool = ...,
    force: bool = ...,
    data: str | os.PathLike[str],
    vocab: str | os.PathLike[str],
    steps: int,
    architecture: str | None = ...,
    model: str | os.PathLike[str] | None = ...,
    learning_rate: float = ...,
    eval_every: int | None = ...,
    eval_batches: int | None = ...,
    span_boundary_weight: float | None = ...,
    max_span_length: int | None = ...,
    report: Callable[[str], None] | None = ...,
) -> dict[str, Any]: ...
def push(
    *,
    model: str | os.PathLike[str],
    to: str,
    private: bool = ...,
    revision: str | None = ...,
    message: str = ...,
) -> str: ...
def quickstart(
    output: str | os.PathLike[str],
    *,
    seed: int = ...,
    force: bool = ...,
    sizes: QuickstartSizes | None = ...,
    report: Callable[[str], None] | None = ...,
) -> dict[str, Any]: ...
def sweep(
    *,
    output: str | os.PathLike[str],
    batch_size: int | Sequence[int] = ...,
    warmup: float = ...,
    weight_decay: float = ...,
    seed: int = ...,
    dtype: str = ...,
    steps_per_execution: int = ...,
    checkpoint_every: int = ...,
    deterministic: bool = ...,
    force: bool = ...,
    task: str = ...,
    model: str | os.PathLike[str] | None = ...,
    architecture: str | None = ...,
    vocab: str | os.PathLike[str] | None = ...,
    cased: bool = ...,
    train: str | os.PathLike[str],
    dev: str | os.PathLike[str],
    epochs: int | Sequence[int] = ...,
    learning_rate: float | Sequence[float] = ...,
    frozen: bool = ...,
    scalar_mix: bool = ...,
    scalar_mix_l2: float = ...,
    scalar_mix_layer_norm: bool = ...,
    schedule: str = ...,
    train_layers: int | None = ...,
    layer_decay: float = ...,
    gradual_unfreezing: bool = ...,
    patience: int | None = ...,
    keep: str = ...,
    max_length: int | None = ...,
    dropout: float | None = ...,
    pooling: str = ...,
    multi_label: bool = ...,
    threshold: float = ...,
    class_weights: str = ...,
    figure: str | None = ...,
    text_column: str | None = ...,
    header: bool | None = ...,
    label_column: str | None = ...,
    fields: str | None = ...,
    glue: str | None = ...,
    report: Callable[[str], None] | None = ...,
    **of_other_kinds: Any,
) -> dict[str, Any]: ...
