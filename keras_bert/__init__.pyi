"""Types of the public names. Made by `make types`; a test compares."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from data_gen.vocabulary import LearnedVocabulary
from keras_bert.base.errors import InputError as InputError
from keras_bert.encoders.bert.config import BertConfig as BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder as BertEncoder
from keras_bert.encoders.bilm.config import BilmConfig as BilmConfig
from keras_bert.encoders.bilm.encoder import BilmEncoder as BilmEncoder
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.gpt.config import Gpt2Config as Gpt2Config
from keras_bert.encoders.gpt.config import OpenAIGptConfig as OpenAIGptConfig
from keras_bert.encoders.gpt.encoder import GptEncoder as GptEncoder
from keras_bert.encoders.lstm.config import AwdLstmConfig as AwdLstmConfig
from keras_bert.encoders.lstm.encoder import AwdLstmEncoder as AwdLstmEncoder
from keras_bert.encoders.static.config import StaticConfig as StaticConfig
from keras_bert.encoders.static.encoder import StaticEncoder as StaticEncoder
from keras_bert.heads.layer_mix import ScalarMix as ScalarMix
from keras_bert.inference.embed import TextEmbedding
from keras_bert.inference.fill_mask import Candidate, FollowingText
from keras_bert.inference.generate import GeneratedText, TextProbability
from keras_bert.inference.nearest import Neighbour
from keras_bert.inference.nearest import WordVectors as WordVectors
from keras_bert.inference.senses import SenseVectors as SenseVectors
from keras_bert.inference.surprisal import TextSurprisal
from keras_bert.records.folder import DatasetCard
from keras_bert.records.inspection import Instance
from keras_bert.samples.quickstart import QuickstartSizes
from keras_bert.serving.serve import BackgroundServer as BackgroundServer
from keras_bert.tasks.classification.classifier import Classifier as Classifier
from keras_bert.tasks.classification.classifier import PairClassifier as PairClassifier
from keras_bert.tasks.classification.regressor import Regressor as Regressor
from keras_bert.tasks.coreference.coreference_resolver import (
    CoreferenceResolver as CoreferenceResolver,
)
from keras_bert.tasks.multiple_choice.multiple_choice import MultipleChoice as MultipleChoice
from keras_bert.tasks.pretraining.language_models import BidirectionalLM as BidirectionalLM
from keras_bert.tasks.pretraining.language_models import CausalLM as CausalLM
from keras_bert.tasks.pretraining.language_models import MaskedCausalLM as MaskedCausalLM
from keras_bert.tasks.pretraining.pretrainer import FillMask as FillMask
from keras_bert.tasks.pretraining.pretrainer import Pretrainer as Pretrainer
from keras_bert.tasks.pretraining.pretrainer import (
    SentenceOrderPretrainer as SentenceOrderPretrainer,
)
from keras_bert.tasks.pretraining.pretrainer import SpanPretrainer as SpanPretrainer
from keras_bert.tasks.pretraining.static_vectors import Cbow as Cbow
from keras_bert.tasks.pretraining.static_vectors import SkipGram as SkipGram
from keras_bert.tasks.question_answering.question_answerer import (
    QuestionAnswerer as QuestionAnswerer,
)
from keras_bert.tasks.semantic_roles.semantic_role_tagger import (
    SemanticRoleTagger as SemanticRoleTagger,
)
from keras_bert.tasks.span_classification.relation_classifier import (
    RelationClassifier as RelationClassifier,
)
from keras_bert.tasks.span_classification.span_classifier import SpanClassifier as SpanClassifier
from keras_bert.tasks.tagging.tagger import Tagger as Tagger
from keras_bert.tasks.task import Task
from keras_bert.text.gpt_vocabularies import ByteLevelVocabulary as ByteLevelVocabulary
from keras_bert.text.gpt_vocabularies import GptVocabulary as GptVocabulary
from keras_bert.text.tokenizer import Tokenizer as Tokenizer
from keras_bert.text.vocabulary import BpeVocabulary as BpeVocabulary
from keras_bert.text.vocabulary import Vocabulary as Vocabulary
from keras_bert.text.vocabulary import WordPieceVocabulary as WordPieceVocabulary

__version__: str
__all__ = [
    "AwdLstmConfig",
    "AwdLstmEncoder",
    "BackgroundServer",
    "BertConfig",
    "BertEncoder",
    "BidirectionalLM",
    "BilmConfig",
    "BilmEncoder",
    "BpeVocabulary",
    "ByteLevelVocabulary",
    "CausalLM",
    "Cbow",
    "Classifier",
    "CoreferenceResolver",
    "FillMask",
    "Gpt2Config",
    "GptEncoder",
    "GptVocabulary",
    "InputError",
    "MaskedCausalLM",
    "MultipleChoice",
    "OpenAIGptConfig",
    "PairClassifier",
    "Pretrainer",
    "QuestionAnswerer",
    "Regressor",
    "RelationClassifier",
    "ScalarMix",
    "SemanticRoleTagger",
    "SenseVectors",
    "SentenceOrderPretrainer",
    "SkipGram",
    "SpanClassifier",
    "SpanPretrainer",
    "StaticConfig",
    "StaticEncoder",
    "Tagger",
    "Tokenizer",
    "Vocabulary",
    "WordPieceVocabulary",
    "WordVectors",
    "ask",
    "convert",
    "diagnose",
    "draw_attention",
    "draw_contexts",
    "draw_run",
    "draw_similarity",
    "draw_surprisal",
    "embed",
    "embed_to_file",
    "evaluate",
    "export",
    "fill_mask",
    "finetune",
    "follows",
    "generate",
    "glue",
    "inspect",
    "learn_vocabulary",
    "load",
    "load_task",
    "load_vocabulary",
    "log_probability",
    "nearest",
    "next_tokens",
    "predict",
    "pretrain",
    "pretraining_data",
    "pseudo_perplexity",
    "push",
    "quickstart",
    "senses",
    "serve",
    "show_predictions",
    "surprisal",
    "sweep",
    "with_task_tokens",
    "word_similarity",
]

def ask(
    *,
    url: str,
    model: str,
    data: str | PathLike[str] | None = ...,
    version: int | None = ...,
    signature: str = ...,
    batch_size: int = ...,
    timeout: float = ...,
    metadata: bool = ...,
    text: str | Sequence[str] | None = ...,
    text_a: str | Sequence[str] | None = ...,
    text_b: str | Sequence[str] | None = ...,
    question: str | Sequence[str] | None = ...,
    context: str | Sequence[str] | None = ...,
) -> Iterator[dict[str, Any]]:
    """Yields the predictions of a served model: one dictionary per example, in order.

    The server is TensorFlow Serving (REST or gRPC) or `keras_bert.serve` (REST). A prediction has
    the outputs of the model's signature. If one of them is `lengths`, the number of words or spans,
    lists are cut to that length, without the padding to the other examples in the batch, and
    `lengths` is left out.

    With `metadata`, yields one dictionary: `versions`, and the `inputs` and `outputs` of the
    signature.

    Args:
        url: http://HOST:PORT for REST, grpc://HOST:PORT for gRPC.
        model: the name of the model on the server.
        data: the examples as JSON Lines: one object of the model's inputs per line; - is standard input
            (None: pass texts instead).
        version: the version of the model (None: the newest).
        signature: the signature of the model.
        batch_size: examples per request.
        timeout: seconds to wait for a response.
        metadata: print the versions, inputs and outputs of the model instead of predictions.
        text: text of an example; may be repeated (None: none).
        text_a: text a of an example; may be repeated (None: none).
        text_b: text b of an example; may be repeated (None: none).
        question: question of an example; may be repeated (None: none).
        context: context of an example; may be repeated (None: none).

    Raises:
        InputError: the address or an example is invalid, or (`ServerError`) the server cannot be
            reached or rejects a request; at the latest when that example is reached.
    """

def convert(
    input: str | PathLike[str],
    output: str | PathLike[str],
    *,
    to: str = ...,
    force: bool = ...,
    report: Callable[[str], None] | None = ...,
) -> dict[str, Any]:
    """Reads a model in any format and writes it in another, unless it is there already.

    Args:
        input: a Hugging Face folder, a Google checkpoint (its folder or prefix), a keras-nlp preset, an
            ELMo of AllenNLP (a folder with its options, weights and a vocab.txt), hf://owner/name, or a
            file of word vectors (word2vec, GloVe, fastText's .vec).
        output: the folder to write, or the file of word vectors.
        to: the format to write; every command here reads huggingface, keras-nlp and allennlp contain
            the encoder only, and word2vec (also fastText's .vec), word2vec-binary and glove are files
            of static vectors.
        force: replace an output that this command wrote before.
        report: a function that receives one line if nothing had to be written.

    Returns:
        A dictionary: `found` (the input's format), `wrote` (the name of the architecture),
        `left_out` (what the other format cannot express: tensors of other heads by the start of
        their names, or a task's architecture).

    Raises:
        InputError: the format is not supported, the input is broken, the model cannot be expressed
            in the other format, or the output is in use.
    """

def diagnose() -> dict[str, Any]:
    """Returns what `keras-bert doctor` prints.

    Returns:
        A dictionary: `sections`, title -> list of (name, value), `problems`, sentences that say
        what to fix, and `notes`, sentences about what may surprise in a program of one's own.
    """

def draw_attention(
    *,
    model: object,
    text: str,
    output: str | PathLike[str],
    layer: int | None = ...,
    head: int | None = ...,
) -> Path:
    """Draws the attention inside a text: of all heads, or of one head in large.

    Every row of a square is a token and the columns are the tokens that it attends to; a row sums
    to one. In the small squares the first token, [CLS], is at the top and on the left.

    Args:
        model: a model folder, or a pair of an encoder and its tokenizer.
        text: a text of up to 46 tokens.
        output: the PNG file to write.
        layer, head: which head to draw in large, both from 1; without them, a table of all layers
            by all heads.

    Returns the `Path` of the file.

    Raises:
        InputError: there is no such layer or head, the text has no tokens or too many, or see
            `save_picture`.
    """

def draw_contexts(
    *,
    model: object,
    word: str,
    texts: Sequence[str],
    output: str | PathLike[str],
    groups: Sequence[str] | None = ...,
    layers: str = ...,
) -> Path:
    """Draws the vectors of a word in several texts, as points of a plane.

    The plane is the one that shows most of their differences (principal components: Pearson 1901).

    Args:
        model: a model folder, or a pair of an encoder and its tokenizer.
        word: the word, which is in every text.
        texts: the texts, two or more.
        output: the PNG file to write.
        groups: None, or the name of each text's group (its sense of the word), for a colour; up to
            six of them.
        layers: which layers make a vector (see `Embedder`).

    Returns the `Path` of the file.

    Raises:
        InputError: a text lacks the word, there are more groups than colours, or see
            `save_picture`.
    """

def draw_run(run: str | PathLike[str]) -> list[Path]:
    """Draws the results in a run's metrics.json.

    For a pre-training run that is RUN/curves.png: losses with the unigram entropy, accuracies, the
    learning rate and the norm of the gradients, and the speed. For a run on labelled examples they
    are in RUN/pictures: `learning_curve.png` (the loss and the metric that selects the best epoch),
    and where the task has these metrics `confusion.png` (how often each label was predicted for
    each true one), `labels.png` (precision, recall and F1 of each label), `reliability.png`
    (accuracy by confidence). For several training-set sizes there is also `training_sizes.png` (the
    metric by the number of examples), and for several choices of layers `layers.png`, with standard
    deviations over seeds.

    Args:
        run: the output folder of a finished run.

    Returns the list of the files' paths.

    Raises:
        InputError: there are no results of such a run, or see
            `keras_bert.pictures.canvas.save_picture`.
    """

def draw_similarity(
    *,
    model: object,
    pairs: Sequence[tuple[str, str]],
    output: str | PathLike[str],
    layers: str = ...,
) -> Path:
    """Draws the cosines between the vectors of words in their contexts, as a table.

    Args:
        model: a model folder, or a pair of an encoder and its tokenizer.
        pairs: (text, word) for each row, two or more; the word is in the text.
        output: the PNG file to write.
        layers: which layers make a vector (see `Embedder`).

    Returns the `Path` of the file.

    Raises:
        InputError: a text lacks its word, or see `save_picture`.
    """

def draw_surprisal(
    *,
    output: str | PathLike[str],
    model: object = ...,
    text: str | None = ...,
    found: TextSurprisal | None = ...,
) -> Path:
    """Draws how surprising each token of a text is to a language model.

    Under each bar is a token, and its height is -log p of the token in nats: the loss of
    pre-training when this token is masked or, of a causal model, the next one. The dashed line is
    the mean, whose exp is the (pseudo-)perplexity.

    Args:
        output: the PNG file to write.
        model: what `surprisal` takes, such as a model folder.
        text: a text of up to 60 tokens.
        found: in place of both, what `kb.surprisal` yielded for a text.

    Returns the `Path` of the file.

    Raises:
        InputError: the text has no tokens or too many, the model has no language-model head, the
            name does not end in .png, or matplotlib is not installed.
    """

def embed(
    *,
    missing: str = ...,
    header: bool | None = ...,
    keep_na: bool = ...,
    text_column: str | None = ...,
    model: object,
    data: object = ...,
    text: str | Sequence[str] | None = ...,
    layers: str = ...,
    tokens: str = ...,
    max_length: int | None = ...,
    batch_size: int = ...,
    report: Callable[[str], None] | None = ...,
) -> Iterator[TextEmbedding]:
    """Yields one `TextEmbedding` per text, in order; memory does not grow with their number.

        for embedding in kb.embed(model="folder", text=["The bank of the river."], layers="last"):
            embedding.tokens, embedding.vectors, embedding.cls, embedding.mean

    Args:
        missing: what to do with a row that lacks a text or its label: leave it out and say its line, or
            raise an error.
        header: whether the first line of a CSV or TSV names its columns (None: yes for .csv; for .tsv
            where the first line holds a known name).
        keep_na: NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as in
            pandas.
        text_column: the column (its name, or its number from 1) or key of the text (None: that of
            training, else by the usual names, else the only possible one).
        model: a model folder, the output of a run, or hf://owner/name.
        data: a file: one text per line (.txt), CSV, TSV or JSON Lines; - is standard input (None: pass
            `text`).
        text: the texts (None: pass `data`).
        layers: the layers that make a vector: last, second-to-last, sum-last-4, concat-last-4, sum-all,
            mean-last-4, first or layer-K; first is the embedding layer, sum-all the sum of all layers
            above it.
        tokens: what has a vector in addition to the whole text: words, as the mean of their subword
            tokens or by the first one; subword tokens; or nothing.
        max_length: maximum sequence length, including [CLS] and [SEP]; a longer text is split into
            overlapping windows (None: all positions of the model).
        batch_size: maximum number of sequences per batch.
        report: a function that is called with a line on how the file was read.

    `model` may also be a pair of an encoder and its tokenizer, and `text` a single string.

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """

def embed_to_file(
    *,
    missing: str = ...,
    header: bool | None = ...,
    keep_na: bool = ...,
    text_column: str | None = ...,
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
) -> dict[str, int]:
    """Embeds texts and writes the vectors to a Parquet file.

    The file appears complete or not at all, and memory does not grow with the number of texts. If
    it already exists and was made from the same files with the same settings, nothing is done. See
    `ParquetFile` for its columns.

    Args:
        missing: what to do with a row that lacks a text or its label: leave it out and say its line, or
            raise an error.
        header: whether the first line of a CSV or TSV names its columns (None: yes for .csv; for .tsv
            where the first line holds a known name).
        keep_na: NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as in
            pandas.
        text_column: the column (its name, or its number from 1) or key of the text (None: that of
            training, else by the usual names, else the only possible one).
        model: a model folder, the output of a run, or hf://owner/name.
        data: one text per line (.txt), CSV, TSV or JSON Lines; - is standard input.
        layers: the layers that make a vector: last, second-to-last, sum-last-4, concat-last-4, sum-all,
            mean-last-4, first or layer-K; first is the embedding layer, sum-all the sum of all layers
            above it.
        tokens: what has a vector in addition to the whole text: words, as the mean of their subword
            tokens or by the first one; subword tokens; or nothing.
        max_length: maximum sequence length, including [CLS] and [SEP]; a longer text is split into
            overlapping windows (None: all positions of the model).
        batch_size: maximum number of sequences per batch.
        output: the file to write, NAME.parquet.
        force: replace an output that this command wrote before.
        progress: show a progress bar on the standard error stream.
        report: a function that is called with a line on how the file was read, and at the end with
            another one if the vocabulary does not fit the texts.

    `model` may also be a pair of an encoder and its tokenizer, and `data` a list of texts.

    Returns:
        A dictionary: `texts` and `tokens`, their numbers, and `width`, the size D of a vector.

    Raises:
        InputError: on bad input, or if `output` has another ending, already exists, or cannot be
            written.
    """

def evaluate(
    *,
    model: object,
    max_length: int | None = ...,
    batch_size: int = ...,
    data: object,
    show_errors: int = ...,
    missing: str = ...,
    header: bool | None = ...,
    keep_na: bool = ...,
    label_columns: str | Sequence[str] | None = ...,
    labels: str | Sequence[str] | None = ...,
    label_separator: str | None = ...,
    unknown_labels: str = ...,
    text_column: str | None = ...,
    label_column: str | None = ...,
    fields: str | None = ...,
    glue: str | None = ...,
    report: Callable[[str], None] | None = ...,
    **of_other_kinds: Any,
) -> dict[str, Any]:
    """Returns the official metrics of the task as a dictionary (see its `compute_metrics`).

    With `show_errors` it has `errors`, that many wrong predictions, the worst first: dictionaries
    of `line`, the text, `expected`, `predicted` and `score`, for `pandas.DataFrame(…)`. With `glue`
    it has `glue`, GLUE's own metrics of the task under GLUE's names.

    Args:
        model: a fine-tuned model folder, the output of finetune, or hf://owner/name.
        max_length: maximum sequence length, including [CLS] and [SEP] (None: as in training).
        batch_size: sequences per batch.
        data: the labelled examples; - is standard input.
        show_errors: show this many errors, the most confident first.
        missing: what to do with a row that lacks a text or its label: leave it out and say its line, or
            raise an error.
        header: whether the first line of a CSV or TSV names its columns (None: yes for .csv; for .tsv
            where the first line holds a known name).
        keep_na: NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as in
            pandas.
        label_columns: with --multi-label, the columns that have a 0 or 1 for one label each (None: the
            label column).
        labels: with --multi-label, the labels of lists of 0 and 1, in their order (None: lists have the
            labels themselves).
        label_separator: with --multi-label, what is between the labels of a cell (None: |).
        unknown_labels: what to do with a label or tag that the model does not have: count it as an
            error of the model, or raise an error.
        text_column: the column (its name, or its number from 1) or key of the text (None: that of
            training, else by the usual names, else the only possible one).
        label_column: the column (its name, or its number from 1) or key of the label (None: that of
            training, else by the usual names, else the only possible one).
        fields: the column (its name, or its number from 1), key or tfds feature of each part:
            text=sentence,label=label (None: those of training, else by the usual names, else the only
            possible ones).
        glue: the file is of this GLUE task, whose columns are known (MNLI-mm: the mismatched dev file)
            (None: not a file of GLUE).
        report: a function that is called with a line on how the file was read, and one per note.

    `model` may also be a task, and `data` a table in memory (a pandas DataFrame, a
    `datasets.Dataset`, a list of dictionaries), a `tf.data.Dataset`, or a sequence (for a
    classifier, of pairs of a text and its label). These are the arguments for a classifier; other
    tasks have their own on how a file is read (see
    `keras_bert.inference.settings.evaluate_settings`).

    A pre-trained model is evaluated on a data folder: `data` is then the folder, and arguments and
    metrics are those of `keras_bert.inference.evaluate.evaluate_records`.

    Raises:
        InputError: on bad input, and if the model has none of the labels.
    """

def export(
    *,
    model: str | PathLike[str],
    output: str | PathLike[str],
    max_length: int | None = ...,
    precision: str = ...,
    encoder: bool = ...,
    layers: str | None = ...,
    tokens: str | None = ...,
    top_k: int | None = ...,
    report: Callable[[str], None] | None = ...,
) -> Path:
    """Exports a model folder, or the output folder of a run.

    A fine-tuned model is exported with its task's predictions, a pre-trained one with the tokens
    for [MASK], and an encoder alone, or any with `encoder=True`, with embeddings.

    Args:
        model: a model folder, the output of a run, or hf://owner/name: fine-tuned, pre-trained
            (exported for [MASK]) or an encoder alone (for embeddings).
        output: the folder of all versions of this model, such as savedmodels/NAME, for a server; or
            NAME.tflite, a file for LiteRT that takes token ids.
        max_length: maximum length of a sequence, including [CLS] and [SEP] (None: those of training).
        precision: the precision of the stored weights; bfloat16 and float16 also compute in it, int8
            computes in float32.
        encoder: export the encoder's embeddings, not the predictions of the model's task.
        layers: for embeddings: the layers that a vector is made from, as in embed (None: last).
        tokens: for embeddings: what has a vector in addition to the text itself, as in embed (None:
            words-mean).
        top_k: for [MASK]: number of candidates each (None: 5).
        report: a function that receives one line on the cost of a precision, and on files that were
            not written.

    Returns:
        The path that was written: a version's folder, such as OUTPUT/1, or the file.

    Raises:
        InputError: `output` contains something else than versions of a SavedModel, `max_length` is
            over the model's positions, the precision does not suit the model, this kind of task
            has no export, or a setting does not apply to the model.
    """

def fill_mask(
    *, model: object, text: str, top_k: int = ..., head: str = ...
) -> list[list[Candidate]]:
    """Returns the most probable tokens at each [MASK] of a text.

    Several masks are predicted independently of one another. A token that begins with ## continues
    the word before it; in byte-pair encoding, one that ends in @@ is continued by the next.

    Args:
        model: a model folder with a masked-LM head, the output of pretrain, or hf://owner/name.
        text: a text with one or more [MASK].
        top_k: candidates per [MASK].
        head: the head that predicts: from the vector of each [MASK], or, of a model that was pre-
            trained on spans, from the tokens next to each run of [MASK].

    `model` may also be a `FillMask` or a `Pretrainer`. With the head "span-boundary" of a
    `SpanPretrainer`, a run of [MASK] is one span, whose tokens are predicted from the two tokens
    next to it and from their offsets in it (Joshi et al. 2020). [MASK] is the only special token
    that a text may contain, and only here: for every other function it is seven characters of text.

    Returns:
        One list of `Candidate` per [MASK], in the order of the text, the most probable first.

    Raises:
        InputError: the model does not have the head, the text has no [MASK] or is too long, or a
            span is longer than those that the span-boundary head was made for.
    """

def finetune(
    *,
    output: str | PathLike[str],
    batch_size: int = ...,
    warmup: float = ...,
    weight_decay: float = ...,
    schedule: str = ...,
    layer_decay: float = ...,
    seed: int = ...,
    dtype: str = ...,
    steps_per_execution: int = ...,
    checkpoint_every: int = ...,
    keep_checkpoints: int = ...,
    strategy: str = ...,
    deterministic: bool = ...,
    force: bool = ...,
    task: str = ...,
    model: str | PathLike[str] | None = ...,
    architecture: str | None = ...,
    vocab: str | PathLike[str] | None = ...,
    cased: bool = ...,
    train: object | Sequence[object],
    dev: object | Sequence[object],
    epochs: int = ...,
    learning_rate: float | None = ...,
    freeze_encoder: bool = ...,
    layers: str = ...,
    scalar_mix_l2: float = ...,
    scalar_mix_layer_norm: bool = ...,
    static_vectors: str | PathLike[str] | None = ...,
    freeze_static_vectors: bool = ...,
    train_layers: int | None = ...,
    gradual_unfreezing: bool = ...,
    patience: int | None = ...,
    keep: str = ...,
    num_seeds: int = ...,
    train_fraction: float | Sequence[float] = ...,
    baseline: str | None = ...,
    ensemble: bool = ...,
    max_length: int | None = ...,
    dropout: float | None = ...,
    bilstm: int | None = ...,
    lm_loss_weight: float = ...,
    pooling: str | None = ...,
    missing: str = ...,
    header: bool | None = ...,
    keep_na: bool = ...,
    multi_label: bool = ...,
    label_columns: str | Sequence[str] | None = ...,
    labels: str | Sequence[str] | None = ...,
    label_separator: str | None = ...,
    unknown_labels: str = ...,
    threshold: float = ...,
    class_weights: str = ...,
    hidden_layers: int = ...,
    metric: str | None = ...,
    text_column: str | None = ...,
    label_column: str | None = ...,
    fields: str | None = ...,
    glue: str | None = ...,
    report: Callable[[str], None] | None = ...,
    **of_other_kinds: Any,
) -> dict[str, Any]:
    """Fine-tunes an encoder on labelled examples, or resumes an interrupted run.

    Calling it again with the same arguments resumes exactly: with `deterministic` the weights equal
    those of an uninterrupted run bit for bit. A finished run is not repeated.

    Args:
        output: the run's folder, with model/, metrics.json, run.json, logs/ (TensorBoard) and
            checkpoints/.
        batch_size: examples per step.
        warmup: fraction of steps for linear learning-rate warm-up.
        weight_decay: weight decay; not applied to biases and LayerNorm.
        schedule: learning-rate decay after the warm-up: linear or cosine to 0, slanted-triangular
            (ULMFiT) to a 32nd, one-cycle (cosine warm-up and decay), or constant.
        layer_decay: layer-wise learning-rate decay: the rate of each layer is that of the layer above
            times this; heads have the full rate, embeddings the lowest (0.8 to 0.95 are usual for fine-
            tuning).
        seed: random seed; same seed and input, same result.
        dtype: dtype of the computation; weights are float32 either way.
        steps_per_execution: steps that a device runs before it reports; checkpoints and evaluations
            fall on multiples of it.
        checkpoint_every: steps between checkpoints.
        keep_checkpoints: number of newest checkpoints to keep until the run is finished; if the newest
            is damaged, the run resumes from the one before.
        strategy: the devices: one (none), all GPUs of this machine (mirrored), the machines of
            TF_CONFIG (multiworker), a TPU (tpu), or whichever is available (auto).
        deterministic: bit-identical weights in every run on this machine (slower; applies to the whole
            process).
        force: start over: delete what this command left in the output before.
        task: the task.
        model: the model to start from: a folder, the output of a run or hf://owner/name[@revision]
            (None: start from random weights).
        architecture: start from random weights instead: tiny, mini, small, medium, base, large (BERT),
            gpt-tiny, gpt-mini, gpt-small, gpt, gpt2-tiny, gpt2-mini, gpt2-small, gpt2, elmo-tiny, elmo-
            mini, elmo-small, elmo-medium, elmo, awd-lstm-tiny, awd-lstm-mini, awd-lstm, or a
            config.json (None: as the model).
        vocab: the vocabulary of an architecture: a vocab.txt, or a folder with a vocabulary (byte-pair
            encoding: vocab.json and merges.txt) (None: the model's).
        cased: the vocabulary of an architecture is cased: keep capitals and accents.
        train: the examples to train on: a file, several, or a glob; - is standard input.
        dev: the examples to evaluate on after each epoch, likewise.
        epochs: passes over the training data.
        learning_rate: learning rate at the end of the warm-up (None: 5e-5, which suits base sizes; 1e-3
            for the head of a frozen encoder).
        freeze_encoder: train the head alone: the encoder's outputs are computed once for all epochs.
        layers: the layers that the head reads: last, second-to-last, sum-last-4, concat-last-4, sum-
            all, mean-last-4, first, layer-K (first is the embedding layer), or a learned mix: mix-
            last-4, mix-all.
        scalar_mix_l2: L2 regularization of a learned mix toward equal weights.
        scalar_mix_layer_norm: normalize every layer before a learned mix.
        static_vectors: a model folder of static vectors, or a file of word vectors, of the model's own
            vocabulary: the head reads them concatenated with the encoder's output (None: none).
        freeze_static_vectors: keep the `static_vectors` as they are.
        train_layers: train only the last layers, this many, and the head; freeze the rest (None: the
            whole model).
        gradual_unfreezing: train the head alone in the first epoch, and unfreeze one more layer in each
            following epoch, from the last down (ULMFiT).
        patience: early stopping: epochs in a row without a better metric on the dev data (None: train
            all epochs).
        keep: keep the model of the epoch with the best metric on the dev data, or of the last epoch.
        num_seeds: repeat each run with this many consecutive seeds, in OUTPUT/runs/: reports mean and
            standard deviation, and keeps the model that is best on the dev data.
        train_fraction: train on a random part of the training examples: fractions up to 1, or counts
            above 1; with several, a run for each, for the score against the number of examples.
        baseline: make each run from this model, too: a folder, or random, which has the sizes of the
            model and random weights (None: none).
        ensemble: average the probabilities of all seeds' models: evaluates the ensemble on the dev
            data, and exports it as one SavedModel, in OUTPUT/ensemble/.
        max_length: maximum tokens per sequence, including [CLS] and [SEP] (None: 128, or the positions
            of the model if it has fewer).
        dropout: dropout rate of the head's input (None: from the model's config).
        bilstm: units per direction of a two-layer bidirectional LSTM over the encoder (None: none).
        lm_loss_weight: with a causal encoder, weight of an additional next-token loss on the same texts
            (0.5 in OpenAI GPT).
        pooling: what the head reads: [CLS] with the pooler, the mean of the tokens, both, the last
            token, the maximum over the tokens, or a concatenation of these (None: cls; mean for a model
            without a pooler, whose [CLS] was never trained; last for a causal model).
        missing: what to do with a row that lacks a text or its label: leave it out and say its line, or
            raise an error.
        header: whether the first line of a CSV or TSV names its columns (None: yes for .csv; for .tsv
            where the first line holds a known name).
        keep_na: NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as in
            pandas.
        multi_label: a text may have any number of labels: a list, or in a table separated by |.
        label_columns: with --multi-label, the columns that have a 0 or 1 for one label each (None: the
            label column).
        labels: with --multi-label, the labels of lists of 0 and 1, in their order (None: lists have the
            labels themselves).
        label_separator: with --multi-label, what is between the labels of a cell (None: |).
        unknown_labels: what to do with a label or tag that the model does not have: count it as an
            error of the model, or raise an error.
        threshold: with --multi-label, predict the labels whose probability is higher.
        class_weights: weights of training examples: none (all equal), balanced (all labels have the
            same total), or LABEL=WEIGHT,… (1 for others); with several labels per text, weights of each
            label.
        hidden_layers: hidden layers with ReLU between what the head reads and its linear layer, of the
            encoder's size.
        metric: the dev metric that selects the best epoch; f1 is that of the last of two labels (None:
            accuracy; micro_f1 with several labels per text).
        text_column: the column (its name, or its number from 1) or key of the text (None: that of
            training, else by the usual names, else the only possible one).
        label_column: the column (its name, or its number from 1) or key of the label (None: that of
            training, else by the usual names, else the only possible one).
        fields: the column (its name, or its number from 1), key or tfds feature of each part:
            text=sentence,label=label (None: those of training, else by the usual names, else the only
            possible ones).
        glue: the file is of this GLUE task, whose columns are known (MNLI-mm: the mismatched dev file)
            (None: not a file of GLUE).
        report: called with each line about the files and the training, such as `print`.

    `train` and `dev` may also be data in memory: a pandas DataFrame, a `datasets.Dataset`, a
    `tf.data.Dataset`, a list of dictionaries, or a sequence as the task's `dataset` takes it. Of
    these run.json has a hash: a run resumes with the same data only.

    These are the arguments for `task="classifier"`. Another task has its own settings in place of
    the classifier's (see `keras_bert.training.settings.finetune_settings(task)`).

    Returns:
        The contents of metrics.json: `kept` (the model that is kept, with its `step` and `epoch`),
        `best_metric` (the metric that selects it), `dev` (its official metrics), what was inferred
        from the training examples (such as `labels`), `train_examples`, `steps`, `parameters`,
        `trainable_parameters`, `seconds` and `history` (see
        `keras_bert.training.monitoring.history.History`). With a learned mix of layers also
        `scalar_mix`: its `layer_weights`, the lowest layer first, and `gamma`. With several seeds
        these are of the run that is best on the dev data, with the `mean` and `std` of the official
        metrics over all runs, and `runs` (see `keras_bert.training.finetune.run_series`). With
        several `train_fraction`s or a `baseline` there is `training_sizes` instead of `mean` and
        `std`: for "model" and "baseline" a list with, for each size, the number of
        `train_examples`, the `metrics` of the seeds that select a model, and their `mean` and
        `std`; and the model that is kept is not of the baseline. With `ensemble` there is
        `ensemble`: the official metrics of the average, whose SavedModel is in OUTPUT/ensemble.

    Raises:
        InputError: an argument or a file is invalid, the dev examples do not match the training
            examples, or the output folder contains something else.
    """

def follows(
    *, model: object, text_a: str | Sequence[str], text_b: str | Sequence[str]
) -> list[FollowingText]:
    """Returns the probabilities that texts follow others, by the second head of pre-training.

    A model that was pre-trained on next sentences was shown second texts of other documents (Devlin
    et al. 2018, section 3.1); one that was pre-trained on the order of sentences, the same two
    texts swapped (Lan et al. 2020), so that its probability is that of their order. The loss of a
    pair that is in order is the negative logarithm of its probability.

    Args:
        model: a model folder with a next-sentence or sentence-order head, the output of pretrain, or
            hf://owner/name.
        text_a: the first text, or several.
        text_b: the second text, or as many as first ones.

    `model` may also be a `Pretrainer`. Of a pair that is too long for the model, the longer text is
    cut at its end, as in pre-training.

    Returns:
        One `FollowingText` per pair, in order.

    Raises:
        InputError: the model has neither head, or there are not as many second texts as first ones.
    """

def generate(
    *,
    model: object,
    prompt: str | Sequence[str],
    max_tokens: int = ...,
    temperature: float | None = ...,
    top_k: int | None = ...,
    top_p: float | None = ...,
    seed: int = ...,
    jit_compile: bool = ...,
    on_text: Callable[[str], None] | None = ...,
) -> list[GeneratedText]:
    """Continues texts with a causal language model.

    Without `temperature`, `top_k` and `top_p` the next token is always the most probable one
    (greedy decoding). With any of them it is drawn at random: prompt n with the seed `seed` + n,
    so that it depends neither on the other prompts nor on how many there are. A text ends with the
    token that ends texts in training ([SEP], or GPT's end of text), after `max_tokens`, and where
    the model has no more positions.

    Args:
        model: a model folder with a causal LM, the output of pretrain, or hf://owner/name.
        prompt: the beginning of a text, or of several texts.
        max_tokens: maximum number of new tokens.
        temperature: draw tokens at random, from the probabilities of the logits divided by it: below 1
            prefers probable tokens (None: 1 with `top_k` or `top_p`; without them, always take the most
            probable token).
        top_k: draw from this many most probable tokens (None: all).
        top_p: draw from the most probable tokens that together have this probability (None: 1).
        seed: seed of the random choice; the same seed gives the same text.
        jit_compile: compile the generation with XLA: the first text takes a second or two longer, and a
            small model generates about twice as many tokens per second.
        on_text: called with each new part of the text as it is generated, for a single prompt.

    `model` may also be a `CausalLM`. Its vocabulary may have no capitals or accents; the text is
    then without them, too.

    Returns:
        One `GeneratedText` per prompt, in order. Its text goes on at the prompt: it begins with a
        space, or with the rest of the prompt's last word.

    Raises:
        InputError: the model is not a causal language model or cannot generate, a setting is out of
            its bounds, or a prompt is empty or too long.
    """

def glue(
    *,
    output: str | PathLike[str],
    batch_size: int | Sequence[int] = ...,
    warmup: float = ...,
    weight_decay: float = ...,
    schedule: str = ...,
    layer_decay: float = ...,
    seed: int = ...,
    dtype: str = ...,
    steps_per_execution: int = ...,
    checkpoint_every: int = ...,
    keep_checkpoints: int = ...,
    strategy: str = ...,
    deterministic: bool = ...,
    force: bool = ...,
    model: str | PathLike[str] | None = ...,
    architecture: str | None = ...,
    vocab: str | PathLike[str] | None = ...,
    cased: bool = ...,
    epochs: int | Sequence[int] = ...,
    learning_rate: float | Sequence[float] = ...,
    freeze_encoder: bool = ...,
    layers: str | Sequence[str] = ...,
    scalar_mix_l2: float = ...,
    scalar_mix_layer_norm: bool = ...,
    static_vectors: str | PathLike[str] | None = ...,
    freeze_static_vectors: bool = ...,
    train_layers: int | None = ...,
    gradual_unfreezing: bool = ...,
    patience: int | None = ...,
    keep: str = ...,
    num_seeds: int = ...,
    max_length: int | None = ...,
    dropout: float | None = ...,
    bilstm: int | None = ...,
    lm_loss_weight: float = ...,
    pooling: str | None = ...,
    data: str | PathLike[str],
    tasks: str | Sequence[str] = ...,
    quick: bool = ...,
    dev_only: bool = ...,
    report: Callable[[str], None] | None = ...,
) -> dict[str, Any]:
    """Fine-tunes and evaluates a model on all of GLUE (Wang et al. 2018), and writes a submission.

    For each task, `keras_bert.sweep` tries every combination of the grid in OUTPUT/runs/TASK; with
    several seeds, `keras_bert.finetune` repeats the best one in OUTPUT/runs/TASK-seeds. The model
    with the highest metric on the dev data predicts the test file. All files are read, and the
    expected time is measured and reported, before training starts. Calling it again with the same
    arguments resumes an interrupted run; what is finished is not repeated.

    Args:
        output: the folder of all runs, with metrics.json (the table), run.json, runs/ (a sweep per
            task), submission/ and submission.zip.
        batch_size: the batch sizes to try.
        warmup: fraction of steps for linear learning-rate warm-up.
        weight_decay: weight decay; not applied to biases and LayerNorm.
        schedule: learning-rate decay after the warm-up: linear or cosine to 0, slanted-triangular
            (ULMFiT) to a 32nd, one-cycle (cosine warm-up and decay), or constant.
        layer_decay: layer-wise learning-rate decay: the rate of each layer is that of the layer above
            times this; heads have the full rate, embeddings the lowest (0.8 to 0.95 are usual for fine-
            tuning).
        seed: random seed; same seed and input, same result.
        dtype: dtype of the computation; weights are float32 either way.
        steps_per_execution: steps that a device runs before it reports; checkpoints and evaluations
            fall on multiples of it.
        checkpoint_every: steps between checkpoints.
        keep_checkpoints: number of newest checkpoints to keep until the run is finished; if the newest
            is damaged, the run resumes from the one before.
        strategy: the devices: one (none), all GPUs of this machine (mirrored), the machines of
            TF_CONFIG (multiworker), a TPU (tpu), or whichever is available (auto).
        deterministic: bit-identical weights in every run on this machine (slower; applies to the whole
            process).
        force: start over: delete what this command left in the output before.
        model: the model to start from: a folder, the output of a run or hf://owner/name[@revision]
            (None: start from random weights).
        architecture: start from random weights instead: tiny, mini, small, medium, base, large (BERT),
            gpt-tiny, gpt-mini, gpt-small, gpt, gpt2-tiny, gpt2-mini, gpt2-small, gpt2, elmo-tiny, elmo-
            mini, elmo-small, elmo-medium, elmo, awd-lstm-tiny, awd-lstm-mini, awd-lstm, or a
            config.json (None: as the model).
        vocab: the vocabulary of an architecture: a vocab.txt, or a folder with a vocabulary (byte-pair
            encoding: vocab.json and merges.txt) (None: the model's).
        cased: the vocabulary of an architecture is cased: keep capitals and accents.
        epochs: the numbers of epochs to try.
        learning_rate: the learning rates to try.
        freeze_encoder: train the head alone: the encoder's outputs are computed once for all epochs.
        layers: the layers to try, as those of finetune; with several, the default is one rate (5e-5, or
            1e-3 with a frozen encoder), batch size (32) and number of epochs (3).
        scalar_mix_l2: L2 regularization of a learned mix toward equal weights.
        scalar_mix_layer_norm: normalize every layer before a learned mix.
        static_vectors: a model folder of static vectors, or a file of word vectors, of the model's own
            vocabulary: the head reads them concatenated with the encoder's output (None: none).
        freeze_static_vectors: keep the `static_vectors` as they are.
        train_layers: train only the last layers, this many, and the head; freeze the rest (None: the
            whole model).
        gradual_unfreezing: train the head alone in the first epoch, and unfreeze one more layer in each
            following epoch, from the last down (ULMFiT).
        patience: early stopping: epochs in a row without a better metric on the dev data (None: train
            all epochs).
        keep: keep the model of the epoch with the best metric on the dev data, or of the last epoch.
        num_seeds: train the best setting of each task with this many consecutive seeds: reports mean
            and standard deviation.
        max_length: maximum tokens per sequence, including [CLS] and [SEP] (None: 128, or the positions
            of the model if it has fewer).
        dropout: dropout rate of the head's input (None: from the model's config).
        bilstm: units per direction of a two-layer bidirectional LSTM over the encoder (None: none).
        lm_loss_weight: with a causal encoder, weight of an additional next-token loss on the same texts
            (0.5 in OpenAI GPT).
        pooling: what the head reads: [CLS] with the pooler, the mean of the tokens, both, the last
            token, the maximum over the tokens, or a concatenation of these (None: cls; mean for a model
            without a pooler, whose [CLS] was never trained; last for a causal model).
        data: GLUE's folder, as gluebenchmark.com gives it: CoLA/train.tsv and so on.
        tasks: the tasks to train; MNLI includes MNLI-mm and AX.
        quick: one setting per task in place of the grid: learning rate 3e-5, batches of 32, 3 epochs; a
            learning rate, batch size or epochs that are given count.
        dev_only: train and evaluate only: needs no test files and writes no submission.
        report: called with each line about the files and the training, such as `print`.

    Returns:
        The contents of metrics.json. `tasks` has for each task, and for MNLI-mm, GLUE's `metrics`
        of the model that is kept, by GLUE's names, on the dev data; their mean as `score`; and the
        `learning_rate`, `batch_size` and `epochs` of the model, the number of `runs` and their
        `seconds`. With several seeds it has `mean` and `std`, of the score over the seeds.
        `average` is GLUE's average of the scores, `with_wnli` and `without_wnli` (as the BERT paper
        has it), or None where a task is missing; with several seeds `mean` and `std` are of the
        average of each seed, for which MNLI counts with the matched accuracy. `submission` is the
        path of the zip, or None, and `missing` the submission files that it lacks.

    Raises:
        InputError: an argument, the model or a file is invalid (all missing files are named
            together), or the output folder contains something else.
    """

def inspect(path: str | PathLike[str], *, split: str = ..., count: int = ...) -> list[Instance]:
    """The first examples of a folder of pre-training data, in readable form.

        kb.inspect("data", count=2)  # shown as text, with the masked tokens marked

    Args:
        path: a folder that a data job made, or a shard in one.
        split: "train" or "eval".
        count: the number of examples.

    Returns:
        A list of `keras_bert.records.inspection.Instance`: the tokens of an example, each with the
        model's input, the original where it is masked, its segment and its span.

    Raises:
        InputError: there is no such folder, or it is not finished.
    """

def learn_vocabulary(
    *,
    input: str | Sequence[str],
    output: str | PathLike[str],
    size: int,
    algorithm: str = ...,
    cased: bool = ...,
    min_frequency: int = ...,
    alphabet_limit: int = ...,
    unused: int = ...,
    max_words: int = ...,
    bad_lines: str = ...,
    text_field: str = ...,
    force: bool = ...,
    lowercase: bool | None = ...,
    beam_options: Sequence[str] = ...,
    report: Callable[[str], None] | None = ...,
) -> LearnedVocabulary:
    """Learns a vocabulary from text files and writes it, unless it is there already.

    Args:
        input: text files, gzip too (books, one sentence per line, JSON Lines with a text field),
            Parquet files, or tfds:NAME/CONFIG:SPLIT of a prepared dataset.
        output: where to write the vocabulary: vocab.txt (and vocab.counts.tsv, the counts of its tokens
            in the text), or for byte-pair encoding a folder.
        size: number of tokens to learn, special tokens included.
        algorithm: wordpiece, as in BERT, byte-pair encoding of characters (bpe) or of bytes (always
            cased), as in GPT-2 and RoBERTa, or whole words, for static vectors.
        cased: keep capitals and accents.
        min_frequency: minimum count of a token in the text.
        alphabet_limit: number of different characters to keep, the most frequent ones; byte-level BPE
            has all 256 bytes.
        unused: slots for tokens that you add later, [unused0] ….
        max_words: number of different words in the memory of a worker and of the learner: the most
            frequent ones, ties by code points.
        bad_lines: lines that are not UTF-8, contain a NUL or are invalid JSON: "error" ends the job
            with file and line number, "skip" leaves them out and counts them.
        text_field: the field (JSON Lines), column (Parquet) or feature (tfds) of the text.
        force: replace the output if there is one.
        lowercase: False is `cased`; True is the default.
        beam_options: Beam's own flags, a list of strings. The default is as many local processes
            as there are processors and enough input for.
        report: a function that is called with a line of text where nothing had to be written.

    `input` may be one path. Paths may be of any of Beam's file systems. A folder of byte-pair
    encoding has `vocab.json`, `merges.txt`, and the other files of a Hugging Face tokenizer. The
    counts of the tokens are written next to it (see `keras_bert.text.vocabulary_files`).

    Returns:
        The `vocabulary` with its counts, the numbers of `words` and `distinct_words` in the text,
        and `skipped_lines` by reason. It depends on the text alone, not on workers or the order of
        files.

    Raises:
        InputError: unreadable input, invalid settings, or an output that exists.
        KeyboardInterrupt: it was interrupted; nothing was written.
    """

def load(folder: str | PathLike[str], *, dtype: Any = ...) -> tuple[Encoder, Tokenizer | None]:
    """Loads the encoder and tokenizer of a model folder.

    Heads that the folder contains too are left out (`load_task` loads them).

    Args:
        folder: a path with `config.json`, `model.safetensors` (or its shards) and a vocabulary
            (`vocab.txt`, `vocab.json` and `merges.txt`, or `tokenizer.json`), or the output
            of a run, which contains such a folder. Or a name, `hf://owner/name[@revision]`, the
            folder of a Google checkpoint, of a keras-hub preset or of AllenNLP's ELMo, or a file of
            word vectors.
        dtype: a dtype or policy for the encoder's layers, such as "mixed_bfloat16"; None is Keras's
            own setting.

    Returns:
        (`Encoder`, `Tokenizer`), such as a `BertEncoder`. The tokenizer is None, with a warning,
        where the folder of a model that is not BERT's has none.

    Raises:
        InputError: a file is missing or broken, the config asks for what the encoder cannot
            compute, a tensor is missing, unknown or of another shape, or the vocabulary is longer
            than the embedding.
    """

def load_task(folder: str | PathLike[str]) -> Task:
    """Loads the task in a folder, with its head; `config.json` names its kind.

    Args:
        folder: a model folder, the output of a run or a name, as `load` takes them.

    Returns:
        The task, such as a `Classifier`, with its tokenizer: ready for `predict`, `fit` after a
        `compile_defaults`, and `export`.

    Raises:
        InputError: as `load`, or the folder contains no supported task.
    """

def load_vocabulary(path: str | PathLike[str]) -> Vocabulary:
    """The `Vocabulary` in a `vocab.txt`, or in a folder of either algorithm, cased or not.

    Raises:
        InputError: there is none, or one of an unsupported kind.
    """

def log_probability(*, model: object, text: str | Sequence[str]) -> list[TextProbability]:
    """Returns how probable texts are to a causal language model.

    It is the sum of the log-probabilities of a text's tokens, each after those before it, without
    that of the text's end. `surprisal` has those of the single tokens, and says how long texts are
    read and when the first token counts as given.

    Args:
        model: a model folder with a causal LM, the output of pretrain, or hf://owner/name.
        text: the texts.

    `model` may also be a `CausalLM`.

    Returns:
        One `TextProbability` per text, in order: `log_probability` (nats), `tokens` and
        `perplexity`.

    Raises:
        InputError: the model is not a causal language model.
    """

def nearest(
    *,
    model: object,
    word: str | None = ...,
    analogy: str | Sequence[str] | None = ...,
    top_k: int = ...,
    analogies: str | PathLike[str] | None = ...,
    pairs: str | PathLike[str] | None = ...,
) -> list[Neighbour] | dict[str, Any]:
    """The neighbours of a word or of an analogy, or the metrics of a file.

    For several questions to one model, use `WordVectors`, which loads it once.

    Args:
        model: a model folder, such as one of static vectors, or a file of word vectors.
        word: the word whose neighbours are wanted (None: none).
        analogy: three words a b c: the words nearest to a - b + c, as king man woman (None: none).
        top_k: number of words.
        analogies: the accuracy on a file of analogies, four words per line, the last one to be found
            (None: none).
        pairs: the rank correlation with a file of rated pairs, two words and a number per line (None:
            none).

    `model` may also be a task, or a `WordVectors`.

    Returns:
        For `word` and `analogy` a list of `Neighbour`, a word and the cosine of its vector, the
        most similar first. For `analogies` and `pairs` a dictionary: see
        `WordVectors.evaluate_analogies` and `WordVectors.evaluate_similarity`.

    Raises:
        InputError: the model cannot be loaded, the vocabulary does not have a word, or a file is
            invalid.
    """

def next_tokens(*, model: object, prompt: str, top_k: int = ...) -> list[Candidate]:
    """Returns the most probable tokens after the beginning of a text.

    Args:
        model: a model folder with a causal LM, the output of pretrain, or hf://owner/name.
        prompt: the beginning of a text.
        top_k: number of candidates.

    `model` may also be a `CausalLM`. Tokens are named as in `fill_mask`.

    Returns:
        `Candidate` tuples (token, probability), the most probable first.

    Raises:
        InputError: as for `generate`.
    """

def predict(
    *,
    model: object,
    max_length: int | None = ...,
    batch_size: int = ...,
    data: object = ...,
    missing: str = ...,
    header: bool | None = ...,
    keep_na: bool = ...,
    label_columns: str | Sequence[str] | None = ...,
    labels: str | Sequence[str] | None = ...,
    label_separator: str | None = ...,
    unknown_labels: str = ...,
    text_column: str | None = ...,
    label_column: str | None = ...,
    fields: str | None = ...,
    glue: str | None = ...,
    text: str | Sequence[str] | None = ...,
    as_dataframe: bool = ...,
    report: Callable[[str], None] | None = ...,
    **of_other_kinds: Any,
) -> Any:
    """Yields one dictionary per example, in order (see the task's `decode`).

    Where a file has labels, they are included as `expected`. Labels are strings, as
    `keras_bert.readers.labels` writes numbers and truth values. A row without a text is left out,
    counted and reported with its line.

    Args:
        model: a fine-tuned model folder, the output of finetune, or hf://owner/name.
        max_length: maximum sequence length, including [CLS] and [SEP] (None: as in training).
        batch_size: sequences per batch.
        data: the examples, with or without labels; - is standard input (None: pass the examples
            themselves).
        missing: what to do with a row that lacks a text or its label: leave it out and say its line, or
            raise an error.
        header: whether the first line of a CSV or TSV names its columns (None: yes for .csv; for .tsv
            where the first line holds a known name).
        keep_na: NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as in
            pandas.
        label_columns: with --multi-label, the columns that have a 0 or 1 for one label each (None: the
            label column).
        labels: with --multi-label, the labels of lists of 0 and 1, in their order (None: lists have the
            labels themselves).
        label_separator: with --multi-label, what is between the labels of a cell (None: |).
        unknown_labels: what to do with a label or tag that the model does not have: count it as an
            error of the model, or raise an error.
        text_column: the column (its name, or its number from 1) or key of the text (None: that of
            training, else by the usual names, else the only possible one).
        label_column: the column (its name, or its number from 1) or key of the label (None: that of
            training, else by the usual names, else the only possible one).
        fields: the column (its name, or its number from 1), key or tfds feature of each part:
            text=sentence,label=label (None: those of training, else by the usual names, else the only
            possible ones).
        glue: the file is of this GLUE task, whose columns are known (MNLI-mm: the mismatched dev file)
            (None: not a file of GLUE).
        text: text of an example; repeat it for several examples (None: pass `data`).
        as_dataframe: return a pandas DataFrame with a row per example, and with the index of `data`
            where that is a DataFrame or a Series.
        report: a function that is called with a line on how the file was read, and at the end with
            others on what was left out, and if the vocabulary does not fit the text. Without it,
            what was left out, and a choice of columns by their content, are warnings.

    `model` may also be a task, and `data` a table in memory (a pandas DataFrame, a
    `datasets.Dataset`, a list of dictionaries), a `tf.data.Dataset`, or a sequence of texts. These
    are the arguments for a classifier; other tasks have their own in place of `text` and of those
    on how a file is read (see `keras_bert.inference.settings.predict_settings`).

    Returns:
        An iterator, or with `as_dataframe` a DataFrame.

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """

def pretrain(
    *,
    output: str | PathLike[str],
    batch_size: int | Sequence[int] = ...,
    warmup: float = ...,
    weight_decay: float | None = ...,
    schedule: str = ...,
    layer_decay: float = ...,
    seed: int = ...,
    dtype: str = ...,
    steps_per_execution: int = ...,
    checkpoint_every: int = ...,
    keep_checkpoints: int = ...,
    strategy: str = ...,
    deterministic: bool = ...,
    force: bool = ...,
    data: str | PathLike[str] | Sequence[str | PathLike[str]],
    vocab: str | PathLike[str],
    steps: int | Sequence[int] | None = ...,
    epochs: int | Sequence[int] | None = ...,
    minutes: float | Sequence[float] | None = ...,
    batch_tokens: int | Sequence[int] | None = ...,
    architecture: str | None = ...,
    model: str | PathLike[str] | None = ...,
    initialization: str | None = ...,
    learning_rate: float | None = ...,
    optimizer: str | None = ...,
    clip_norm: float = ...,
    gradient_accumulation: int = ...,
    eval_every: int | None = ...,
    eval_batches: int | None = ...,
    objective: str | None = ...,
    window: int | None = ...,
    negatives: int | None = ...,
    subsample: float | None = ...,
    causal_fraction: float = ...,
    span_boundary_weight: float | None = ...,
    max_span_length: int | None = ...,
    report: Callable[[str], None] | None = ...,
) -> dict[str, Any]:
    """Pre-trains an encoder, or resumes an interrupted run.

    The objective is that of the data: "mlm-nsp" trains masked tokens and next sentences (a
    `Pretrainer`, whose folder is a BertForPreTraining), "mlm-sop" masked tokens and the order of
    sentences (a `SentenceOrderPretrainer`, a BertForPreTraining for other programs), "mlm" masked
    tokens alone (a `FillMask`, whose folder is a BertForMaskedLM, without a pooler if it starts
    from random weights), "span" masked spans and their boundaries (a `SpanPretrainer`, a
    BertForMaskedLM for other programs). With `objective="causal-lm"` the data of any objective
    train a causal LM (a `CausalLM`, a BertLMHeadModel), and with `causal_fraction` the sequences of
    "mlm" are part masked, part causal (a `MaskedCausalLM`, a BertForMaskedLM for other programs).
    The default for an encoder that does not support the data's objective is its first one:
    "causal-lm" for "awd-lstm", "bidirectional-lm" (a `BidirectionalLM`) for "elmo", and
    "skip-gram" (a `SkipGram`, or with "cbow" a `Cbow`) for "static".

    Lists of `data`, `steps` (or `epochs` or `minutes`) and `batch_size` make phases, which follow
    one another with one optimizer and one schedule; each evaluates on its own folder's held-out
    examples.

    Calling it again with the same arguments resumes exactly: with `deterministic` the weights equal
    those of an uninterrupted run bit for bit. A finished run is not repeated.

    Args:
        output: the run's folder, with model/, metrics.json, run.json, logs/ (TensorBoard) and
            checkpoints/.
        batch_size: examples per step (per phase).
        warmup: fraction of steps for linear learning-rate warm-up.
        weight_decay: weight decay; not applied to biases and LayerNorm (None: 0.01; 0 for skip-gram and
            cbow).
        schedule: learning-rate decay after the warm-up: linear or cosine to 0, slanted-triangular
            (ULMFiT) to a 32nd, one-cycle (cosine warm-up and decay), or constant.
        layer_decay: layer-wise learning-rate decay: the rate of each layer is that of the layer above
            times this; heads have the full rate, embeddings the lowest (0.8 to 0.95 are usual for fine-
            tuning).
        seed: random seed; same seed and input, same result.
        dtype: dtype of the computation; weights are float32 either way.
        steps_per_execution: steps that a device runs before it reports; checkpoints and evaluations
            fall on multiples of it.
        checkpoint_every: steps between checkpoints.
        keep_checkpoints: number of newest checkpoints to keep until the run is finished; if the newest
            is damaged, the run resumes from the one before.
        strategy: the devices: one (none), all GPUs of this machine (mirrored), the machines of
            TF_CONFIG (multiworker), a TPU (tpu), or whichever is available (auto).
        deterministic: bit-identical weights in every run on this machine (slower; applies to the whole
            process).
        force: start over: delete what this command left in the output before.
        data: the folder written by keras-bert pretraining-data; several are phases of the run, one
            after another.
        vocab: the vocabulary of the data: a vocab.txt, or a folder with a vocabulary (byte-pair
            encoding: vocab.json and merges.txt).
        steps: optimizer steps (per phase) (None: give minutes).
        epochs: instead of steps: passes over the data (per phase) (None: give steps).
        minutes: instead of steps: the total training time; the number of steps, and with it the
            schedule, is planned at the start by measuring (per phase) (None: give steps).
        batch_tokens: instead of the batch size: tokens per step including padding; batches are of
            examples of similar length, as many as fit (per phase) (None: batch_size examples).
        architecture: start from random weights: tiny, mini, small, medium, base, large (BERT), gpt-
            tiny, gpt-mini, gpt-small, gpt, gpt2-tiny, gpt2-mini, gpt2-small, gpt2, elmo-tiny, elmo-
            mini, elmo-small, elmo-medium, elmo, awd-lstm-tiny, awd-lstm-mini, awd-lstm, or a
            config.json (None: tiny, where no model is given).
        model: start from the weights of a model folder, of a run's output, or of hf://owner/name (None:
            start from random weights).
        initialization: initialization of random weights: attention heads of the first layer attend to
            the neighbouring tokens (neighbours), which a masked LM otherwise learns only after
            thousands of steps, or to nothing in particular, as in BERT (bert) (None: neighbours, where
            no model is given).
        learning_rate: learning rate at the end of the warm-up (None: 5e-4; 0.1 for skip-gram and cbow).
        optimizer: AdamW, LAMB for batches of thousands of examples, or AdaGrad, which updates only the
            vectors of a batch (None: adamw; adagrad for skip-gram and cbow).
        clip_norm: global norm for gradient clipping; 0: no clipping.
        gradient_accumulation: split each step's batch into this many parts, computed one after another,
            to fit into memory.
        eval_every: steps between evaluations (None: at every checkpoint).
        eval_batches: evaluate on this many batches of the eval split (None: on all of it).
        objective: the objective of the data folder; or on the sequences of any folder causal-lm, which
            predicts the next token, bidirectional-lm, which predicts the next and the previous token
            (ELMo), or skip-gram or cbow, which train static vectors (None: the data folder's own, or
            the first that the encoder supports).
        window: skip-gram and cbow: contexts on either side of a token, up to this many (None: 5).
        negatives: skip-gram and cbow: random tokens for each prediction (None: 5).
        subsample: skip-gram and cbow: frequency above which tokens are left out at random; 0: none
            (None: 0.001).
        causal_fraction: fraction of each batch trained as a causal LM, the rest as a masked LM, on data
            of the objective mlm (GPT-BERT).
        span_boundary_weight: weight of the span-boundary loss relative to the masked-token loss, for
            the objective span; 0 trains without the head (None: 1).
        max_span_length: longest span that the span-boundary head predicts, in tokens; tokens further in
            are predicted by the masked LM alone (None: 20, or that of the model).
        report: called with each line about the start of the run, such as `print`.

    Returns:
        The contents of metrics.json: `steps`, `tokens`, `parameters`, `seconds`,
        `tokens_per_second` (without padding), `unigram_entropy` (nats per token: the loss of the
        unigram baseline), `eval_at_start`, `eval` and `train` (the last metrics; losses in nats),
        `eval_rows` (the number of held-out examples of `eval`), `history` (see
        `keras_bert.training.monitoring.history.History`) and `health` (`is_healthy` and a
        `sentence`). `eval` metrics are None without held-out examples. Metrics are named
        `OUTPUT_loss` and `OUTPUT_accuracy`; those of tokens also exist for masked, replaced and
        kept tokens (`masked_lm_kept_accuracy`), where there were any. `keras_bert.draw_run` draws
        their curves.

    Raises:
        InputError: an argument is invalid, or the output folder contains something else.
    """

def pretraining_data(
    *,
    input: str | Sequence[str],
    vocab: str | PathLike[str],
    output: str | PathLike[str],
    input_format: str | None = ...,
    objective: str = ...,
    masking: str = ...,
    mask_unit: str | None = ...,
    replacement: str = ...,
    max_length: int = ...,
    max_predictions: int | None = ...,
    mlm_probability: float = ...,
    short_seq_prob: float | None = ...,
    dupe_factor: int | None = ...,
    eval_fraction: float = ...,
    seed: int = ...,
    cased: bool = ...,
    pad: bool = ...,
    compression: str | None = ...,
    shard_bytes: int = ...,
    force: bool = ...,
    bad_lines: str = ...,
    text_field: str = ...,
    min_characters: int = ...,
    max_characters: int | None = ...,
    min_letters: float = ...,
    max_repeated_lines: float = ...,
    drop_duplicates: bool = ...,
    lowercase: bool | None = ...,
    beam_options: Sequence[str] = ...,
    report: Callable[[str], None] | None = ...,
) -> DatasetCard:
    """Makes a folder of pre-training examples from text.

    The same text, settings and seed give the same bytes in the same shards, whatever the files are
    called and however many workers there are. Nothing is done where the output is complete already.

    Args:
        input: text files, gzip too (books, one sentence per line, JSON Lines with a text field),
            Parquet files, or tfds:NAME/CONFIG:SPLIT of a prepared dataset.
        vocab: the vocabulary: a vocab.txt, or a folder with a vocabulary (byte-pair encoding:
            vocab.json and merges.txt).
        output: the folder to make.
        input_format: the format of text files: one book per file, one sentence per line with blank
            lines between documents, or JSON Lines (None: detected from the content of each file).
        objective: masked tokens and next sentence (BERT), masked tokens and the order of two
            consecutive segments (ALBERT), masked tokens alone in one segment of whole sentences, or
            masked spans of words with their boundaries (SpanBERT).
        masking: mask now, or in training, afresh in each epoch.
        mask_unit: what is masked as a unit for mlm-nsp, mlm-sop and mlm (None: token; span for the
            objective "span", and only there).
        replacement: how random replacements of masked tokens are drawn: uniformly, or by their
            frequency in the text, from vocab.counts.tsv next to the vocabulary or, without that file,
            from a first pass over the text (with dynamic masks: from the dataset card).
        max_length: maximum tokens per example, [CLS] and [SEP] included.
        max_predictions: maximum masked tokens per example (None: 20, or the length of shorter
            examples).
        mlm_probability: fraction of the tokens to mask.
        short_seq_prob: fraction of examples of a random shorter length (None: 0.1 for mlm-nsp and mlm-
            sop, else 0).
        dupe_factor: number of passes over the text, each with other segments and masks; the eval split
            has one (None: 5 for static masks, 1 for dynamic ones).
        eval_fraction: fraction of the documents to hold out, chosen by their content and not by the
            seed.
        seed: the same seed, text and settings give the same bytes in the same shards.
        cased: keep capitals and accents; a folder with a vocabulary has its own case.
        pad: write examples of a fixed length, with the features that google-research/bert reads (static
            masks only).
        compression: compress the shards (None: none).
        shard_bytes: bytes of text per shard, before copies.
        force: replace finished data in the output folder.
        bad_lines: lines that are not UTF-8, contain a NUL or are invalid JSON: "error" ends the job
            with file and line number, "skip" leaves them out and counts them.
        text_field: the field (JSON Lines), column (Parquet) or feature (tfds) of the text.
        min_characters: leave out documents that are shorter.
        max_characters: leave out documents that are longer (None: none).
        min_letters: leave out documents with a smaller fraction of letters (white space not counted).
        max_repeated_lines: leave out documents with a greater fraction of lines that repeat an earlier
            one.
        drop_duplicates: read only one of identical documents.
        lowercase: False is `cased`; True rejects a folder whose vocabulary is cased.
        beam_options: Beam's own flags, a list of strings. The default is as many local processes
            as there are processors and enough input for.
        report: a function that is called with a line of text where there is nothing to do, and
            where finished data is made again because a file is missing or damaged.

    `input` may be one path and `vocab` a `Vocabulary`.

    Returns:
        The `DatasetCard` of the folder: the settings, and what was read and written.

    Raises:
        InputError: bad input, settings, options or output; no COMPLETED is written then.
        KeyboardInterrupt: it was interrupted; the message has the number of shards written.
    """

def pseudo_perplexity(
    *,
    missing: str = ...,
    header: bool | None = ...,
    keep_na: bool = ...,
    text_column: str | None = ...,
    model: object,
    data: object = ...,
    text: str | Sequence[str] | None = ...,
    mask_rest_of_word: bool = ...,
    report: Callable[[str], None] | None = ...,
) -> float:
    """Returns the pseudo-perplexity of texts: exp of the mean surprisal of all their tokens.

        kb.pseudo_perplexity(model="folder", data="texts.txt")

    By a causal model it is the perplexity. It depends on the vocabulary: only models with the same
    one can be compared (Salazar et al. 2020, section 2.3).

    Args:
        missing: what to do with a row that lacks a text or its label: leave it out and say its line, or
            raise an error.
        header: whether the first line of a CSV or TSV names its columns (None: yes for .csv; for .tsv
            where the first line holds a known name).
        keep_na: NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as in
            pandas.
        text_column: the column (its name, or its number from 1) or key of the text (None: that of
            training, else by the usual names, else the only possible one).
        model: a model folder with a masked-LM head or a causal LM, the output of pretrain, or
            hf://owner/name.
        data: a file: one text per line (.txt), CSV, TSV or JSON Lines; - is standard input (None: pass
            `text`).
        text: the texts (None: pass `data`).
        mask_rest_of_word: also mask the tokens that follow in the same word, so that the end of a rare
            word does not give away its beginning (Kauf and Ivanova 2023); of a masked LM only.
        report: see `surprisal`.

    `model` and `text` may also be what `surprisal` takes.

    Returns:
        A number, 1 or more; NaN if the texts have no tokens.

    Raises:
        InputError: as for `surprisal`.
    """

def push(
    *,
    model: str | PathLike[str],
    to: str,
    private: bool = ...,
    revision: str | None = ...,
    message: str = ...,
) -> str:
    """Publishes a model folder under a name on the hub, in one commit, with its model card.

    The folder is opened first, with every check of loading it. Its config, weights, tokenizer and
    README.md are pushed, with the name on the hub put into the README.md; if there is none, a card
    is made from the config. Other files are not pushed, and other files on the hub are kept.

    Args:
        model: a model folder, or the output of a run.
        to: its name on the hub: owner/name.
        private: visible to you alone; an error if the repository exists and is public.
        revision: the branch to push to; created if needed (None: main).
        message: the commit message.

    Returns:
        The address of the commit.

    Raises:
        InputError: the folder is not a model folder, or one of its files is a link to a file
            outside; the name is invalid, is not yours to write, or is that of a public repository
            although `private` is asked for; or the hub cannot be reached.
    """

def quickstart(
    output: str | PathLike[str],
    *,
    seed: int = ...,
    force: bool = ...,
    sizes: QuickstartSizes | None = ...,
    report: Callable[[str], None] | None = ...,
) -> dict[str, Any]:
    """Runs the full pipeline in `output` and returns the results, as `results.json` holds them.

    An interrupted quickstart resumes: each step finds what it has written. A finished one is not
    repeated.

    Args:
        output: a new or empty folder for all results.
        seed: same seed, same input, same result.
        force: start over: delete what this command left in the output before.
        sizes: `QuickstartSizes`; None is the defaults. The same seed and sizes give the same run.
        report: a function that receives, line by line, what is done, by which command, and how long
            it took.

    Returns a dictionary: `sizes`, `seed`, `masked_lm` (`start`, `end` and `end_on_train`, the loss
    in nats per masked token, on held-out text before and after pre-training and on the training
    text; `unigram_entropy`, the loss of the unigram baseline), `tags` (for each number of tagged
    `sentences` the accuracy of a tagger that starts from `random` weights and from the `pretrained`
    ones, on so many unseen `words`), `spam` (`accuracy` of the filter on so many unseen
    `examples`), `answers` (`text`, `label`, `score` of each of SENTENCES), `savedmodel` (its
    folder), `seconds` (by step) and `total_seconds`, both of the last session.

    Raises InputError for an output folder that holds something else, or is in use.
    """

def senses(
    *,
    missing: str = ...,
    header: bool | None = ...,
    keep_na: bool = ...,
    text_column: str | None = ...,
    model: object,
    train: object,
    dev: object = ...,
    layers: str | Sequence[str] | None = ...,
    output: object = ...,
    label_column: str | None = ...,
    report: Callable[[str], None] | None = ...,
) -> SenseVectors:
    """Learns the vectors of word senses, and measures how well they tell senses apart.

    A word's vector is the mean of those of its subword tokens, and a sense's the mean of those of
    its words. The sense of a word in a new text is that with the nearest vector, by the cosine,
    among the senses of the word (Jurafsky and Martin, Speech and Language Processing, section on
    contextual embeddings and word sense). Senses such as "bank%river" name their word, as the sense
    keys of WordNet do; of others, it is the marked word as it is, in lower case.

        found = kb.senses(model="folder", train="senses.tsv", output="senses.safetensors")
        found.metrics, list(found.predict("They sat on the **bank** and fished."))

    Args:
        missing: what to do with a row that lacks a text or its label: leave it out and say its line, or
            raise an error.
        header: whether the first line of a CSV or TSV names its columns (None: yes for .csv; for .tsv
            where the first line holds a known name).
        keep_na: NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as in
            pandas.
        text_column: the column (its name, or its number from 1) or key of the text (None: that of
            training, else by the usual names, else the only possible one).
        model: a model folder, the output of a run, or hf://owner/name.
        train: texts with a marked word, as in the **bank** of the river, and its sense: a TSV, CSV or
            JSON Lines.
        dev: more of them, which the accuracy is measured on (None: each of `train`, without its own
            vector).
        layers: the layers that make a vector, or several of these to compare, as in `embed` (None:
            compare all layers).
        output: NAME.safetensors, which gets the sense vectors of the most accurate layers (None: not
            saved).
        label_column: the column (its name, or its number from 1) or key of the sense (None: that of
            training, else by the usual names, else the only possible one).
        report: called with a line on how each file was read.

    `model` may also be a pair of an encoder and its tokenizer, and `train` and `dev` lists of
    (text, sense).

    Returns:
        A `SenseVectors` of the most accurate layers (of several, the lowest). Its `metrics` are
        `accuracy`, a dictionary with the accuracy by layers; `most_frequent_sense`, that of always
        predicting the sense with most training examples; `layers`; and the numbers `examples`, that
        were predicted, `words` and `senses`. Without `dev`, each example of `train` is predicted
        from the others; the most frequent sense is that of all of them.

    Raises:
        InputError: a text does not have one marked word, a file is invalid, or the model has too
            few layers.
    """

def serve(
    *,
    models: str | Sequence[str],
    host: str = ...,
    allowed_hosts: str | Sequence[str] | None = ...,
    rest_port: int = ...,
    attention: str | PathLike[str] | None = ...,
    max_body: int = ...,
    max_batch: int = ...,
    max_requests: int = ...,
    timeout: float = ...,
    poll: float = ...,
    report: Callable[[str], None] = ...,
) -> None:
    """Serves exported models over REST, with a page to try them, until it is interrupted.

    It is for development: one process, without encryption or authentication. TensorFlow Serving
    takes the same folders and answers the same requests.

    Args:
        models: an exported model, or a folder of several; each has the name of its folder.
        host: the address to listen on; 0.0.0.0 is all addresses of this machine.
        allowed_hosts: more host names of this server, such as a proxy's; requests with any other host
            name are rejected; *.NAME means all names under NAME, * means any (None: localhost and
            `host`).
        rest_port: the port of REST and the page; 0 for a free one.
        attention: a model folder, not exported, whose attention the page shows (None: no attention).
        max_body: largest size of a request.
        max_batch: most examples in a request.
        max_requests: most connections, and requests, at a time.
        timeout: seconds for a request to arrive, to be computed, and for its response to be read.
        poll: seconds between checks for new version folders.
        report: a function that is called with each line of the server's log.

    Raises:
        InputError: a folder has no model that loads, two have the same name, or a port is in use.
    """

def show_predictions(
    predictions: Iterable[dict[str, Any]], *, texts: Iterable[str] | None = ...
) -> list[dict[str, Any]]:
    """Shows predictions of `kb.predict` in a notebook.

    Entities of a tagger, spans of a span classifier and answers to questions are marked in their
    texts; other predictions are a table.

    Args:
        predictions: what `kb.predict` yields, for any task.
        texts: the contexts of questions, one per prediction; other predictions have their text.

    Returns:
        The predictions as a list, which a notebook shows as HTML.
    """

def surprisal(
    *,
    missing: str = ...,
    header: bool | None = ...,
    keep_na: bool = ...,
    text_column: str | None = ...,
    model: object,
    data: object = ...,
    text: str | Sequence[str] | None = ...,
    mask_rest_of_word: bool = ...,
    report: Callable[[str], None] | None = ...,
) -> Iterator[TextSurprisal]:
    """Yields one `TextSurprisal` per text, in order: -log p of each of its tokens.

    A masked language model predicts each token from all others: it is replaced by [MASK] in a copy
    of the text (Salazar et al. 2020), so that a text of T tokens takes T sequences. A causal model
    predicts it from those before it, all of a text in one sequence; if its sequences begin with no
    special token, the first token of a text is given and left out. A text longer than the model's
    positions is split into overlapping windows, and each token is read in the one in which it has
    most context.

        for found in kb.surprisal(model="folder", text=["The bank of the river."]):
            found.tokens, found.surprisals, found.log_probability, found.perplexity

    Args:
        missing: what to do with a row that lacks a text or its label: leave it out and say its line, or
            raise an error.
        header: whether the first line of a CSV or TSV names its columns (None: yes for .csv; for .tsv
            where the first line holds a known name).
        keep_na: NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as in
            pandas.
        text_column: the column (its name, or its number from 1) or key of the text (None: that of
            training, else by the usual names, else the only possible one).
        model: a model folder with a masked-LM head or a causal LM, the output of pretrain, or
            hf://owner/name.
        data: a file: one text per line (.txt), CSV, TSV or JSON Lines; - is standard input (None: pass
            `text`).
        text: the texts (None: pass `data`).
        mask_rest_of_word: also mask the tokens that follow in the same word, so that the end of a rare
            word does not give away its beginning (Kauf and Ivanova 2023); of a masked LM only.
        report: a function that is called with a line on how the file was read, and at the end with
            another one if the vocabulary does not fit the text.

    `model` may also be a `FillMask`, a `Pretrainer` or a `CausalLM`, and `text` a single string.

    Raises:
        InputError: the model has no language-model head, `mask_rest_of_word` is given to a causal
            one, or on bad input, at the latest when its line is reached.
    """

def sweep(
    *,
    output: str | PathLike[str],
    batch_size: int | Sequence[int] = ...,
    warmup: float = ...,
    weight_decay: float = ...,
    schedule: str = ...,
    layer_decay: float = ...,
    seed: int = ...,
    dtype: str = ...,
    steps_per_execution: int = ...,
    checkpoint_every: int = ...,
    keep_checkpoints: int = ...,
    strategy: str = ...,
    deterministic: bool = ...,
    force: bool = ...,
    task: str = ...,
    model: str | PathLike[str] | None = ...,
    architecture: str | None = ...,
    vocab: str | PathLike[str] | None = ...,
    cased: bool = ...,
    train: object | Sequence[object],
    dev: object | Sequence[object],
    epochs: int | Sequence[int] = ...,
    learning_rate: float | Sequence[float] = ...,
    freeze_encoder: bool = ...,
    layers: str | Sequence[str] = ...,
    scalar_mix_l2: float = ...,
    scalar_mix_layer_norm: bool = ...,
    static_vectors: str | PathLike[str] | None = ...,
    freeze_static_vectors: bool = ...,
    train_layers: int | None = ...,
    gradual_unfreezing: bool = ...,
    patience: int | None = ...,
    keep: str = ...,
    num_seeds: int = ...,
    max_length: int | None = ...,
    dropout: float | None = ...,
    bilstm: int | None = ...,
    lm_loss_weight: float = ...,
    pooling: str | None = ...,
    missing: str = ...,
    header: bool | None = ...,
    keep_na: bool = ...,
    multi_label: bool = ...,
    label_columns: str | Sequence[str] | None = ...,
    labels: str | Sequence[str] | None = ...,
    label_separator: str | None = ...,
    unknown_labels: str = ...,
    threshold: float = ...,
    class_weights: str = ...,
    hidden_layers: int = ...,
    metric: str | None = ...,
    text_column: str | None = ...,
    label_column: str | None = ...,
    fields: str | None = ...,
    glue: str | None = ...,
    report: Callable[[str], None] | None = ...,
    **of_other_kinds: Any,
) -> dict[str, Any]:
    """Fine-tunes with every combination of learning rate, batch size, epochs, layers and seed.

    The model with the highest metric on the dev data is kept. Calling it again with the same
    arguments resumes the interrupted run; finished runs are not repeated.

    Args:
        output: the run's folder, with model/, metrics.json, run.json, logs/ (TensorBoard) and
            checkpoints/.
        batch_size: the batch sizes to try.
        warmup: fraction of steps for linear learning-rate warm-up.
        weight_decay: weight decay; not applied to biases and LayerNorm.
        schedule: learning-rate decay after the warm-up: linear or cosine to 0, slanted-triangular
            (ULMFiT) to a 32nd, one-cycle (cosine warm-up and decay), or constant.
        layer_decay: layer-wise learning-rate decay: the rate of each layer is that of the layer above
            times this; heads have the full rate, embeddings the lowest (0.8 to 0.95 are usual for fine-
            tuning).
        seed: random seed; same seed and input, same result.
        dtype: dtype of the computation; weights are float32 either way.
        steps_per_execution: steps that a device runs before it reports; checkpoints and evaluations
            fall on multiples of it.
        checkpoint_every: steps between checkpoints.
        keep_checkpoints: number of newest checkpoints to keep until the run is finished; if the newest
            is damaged, the run resumes from the one before.
        strategy: the devices: one (none), all GPUs of this machine (mirrored), the machines of
            TF_CONFIG (multiworker), a TPU (tpu), or whichever is available (auto).
        deterministic: bit-identical weights in every run on this machine (slower; applies to the whole
            process).
        force: start over: delete what this command left in the output before.
        task: the task.
        model: the model to start from: a folder, the output of a run or hf://owner/name[@revision]
            (None: start from random weights).
        architecture: start from random weights instead: tiny, mini, small, medium, base, large (BERT),
            gpt-tiny, gpt-mini, gpt-small, gpt, gpt2-tiny, gpt2-mini, gpt2-small, gpt2, elmo-tiny, elmo-
            mini, elmo-small, elmo-medium, elmo, awd-lstm-tiny, awd-lstm-mini, awd-lstm, or a
            config.json (None: as the model).
        vocab: the vocabulary of an architecture: a vocab.txt, or a folder with a vocabulary (byte-pair
            encoding: vocab.json and merges.txt) (None: the model's).
        cased: the vocabulary of an architecture is cased: keep capitals and accents.
        train: the examples to train on: a file, several, or a glob; - is standard input.
        dev: the examples to evaluate on after each epoch, likewise.
        epochs: the numbers of epochs to try.
        learning_rate: the learning rates to try.
        freeze_encoder: train the head alone: the encoder's outputs are computed once for all epochs.
        layers: the layers to try, as those of finetune; with several, the default is one rate (5e-5, or
            1e-3 with a frozen encoder), batch size (32) and number of epochs (3).
        scalar_mix_l2: L2 regularization of a learned mix toward equal weights.
        scalar_mix_layer_norm: normalize every layer before a learned mix.
        static_vectors: a model folder of static vectors, or a file of word vectors, of the model's own
            vocabulary: the head reads them concatenated with the encoder's output (None: none).
        freeze_static_vectors: keep the `static_vectors` as they are.
        train_layers: train only the last layers, this many, and the head; freeze the rest (None: the
            whole model).
        gradual_unfreezing: train the head alone in the first epoch, and unfreeze one more layer in each
            following epoch, from the last down (ULMFiT).
        patience: early stopping: epochs in a row without a better metric on the dev data (None: train
            all epochs).
        keep: keep the model of the epoch with the best metric on the dev data, or of the last epoch.
        num_seeds: repeat each run with this many consecutive seeds, in OUTPUT/runs/: reports mean and
            standard deviation, and keeps the model that is best on the dev data.
        max_length: maximum tokens per sequence, including [CLS] and [SEP] (None: 128, or the positions
            of the model if it has fewer).
        dropout: dropout rate of the head's input (None: from the model's config).
        bilstm: units per direction of a two-layer bidirectional LSTM over the encoder (None: none).
        lm_loss_weight: with a causal encoder, weight of an additional next-token loss on the same texts
            (0.5 in OpenAI GPT).
        pooling: what the head reads: [CLS] with the pooler, the mean of the tokens, both, the last
            token, the maximum over the tokens, or a concatenation of these (None: cls; mean for a model
            without a pooler, whose [CLS] was never trained; last for a causal model).
        missing: what to do with a row that lacks a text or its label: leave it out and say its line, or
            raise an error.
        header: whether the first line of a CSV or TSV names its columns (None: yes for .csv; for .tsv
            where the first line holds a known name).
        keep_na: NA, None, null and the like in a CSV or TSV are texts and labels, and not missing as in
            pandas.
        multi_label: a text may have any number of labels: a list, or in a table separated by |.
        label_columns: with --multi-label, the columns that have a 0 or 1 for one label each (None: the
            label column).
        labels: with --multi-label, the labels of lists of 0 and 1, in their order (None: lists have the
            labels themselves).
        label_separator: with --multi-label, what is between the labels of a cell (None: |).
        unknown_labels: what to do with a label or tag that the model does not have: count it as an
            error of the model, or raise an error.
        threshold: with --multi-label, predict the labels whose probability is higher.
        class_weights: weights of training examples: none (all equal), balanced (all labels have the
            same total), or LABEL=WEIGHT,… (1 for others); with several labels per text, weights of each
            label.
        hidden_layers: hidden layers with ReLU between what the head reads and its linear layer, of the
            encoder's size.
        metric: the dev metric that selects the best epoch; f1 is that of the last of two labels (None:
            accuracy; micro_f1 with several labels per text).
        text_column: the column (its name, or its number from 1) or key of the text (None: that of
            training, else by the usual names, else the only possible one).
        label_column: the column (its name, or its number from 1) or key of the label (None: that of
            training, else by the usual names, else the only possible one).
        fields: the column (its name, or its number from 1), key or tfds feature of each part:
            text=sentence,label=label (None: those of training, else by the usual names, else the only
            possible ones).
        glue: the file is of this GLUE task, whose columns are known (MNLI-mm: the mismatched dev file)
            (None: not a file of GLUE).
        report: called with each line about the files and the training, such as `print`.

    `train` and `dev` may also be data in memory, as for `keras_bert.finetune`.

    These are the arguments for `task="classifier"`. Another task has its own settings in place of
    the classifier's (see `keras_bert.training.settings.sweep_settings(task)`).

    Returns:
        The contents of metrics.json: the metrics of the best run, as from `keras_bert.finetune`,
        its name as `kept["run"]`, and `runs`: by name, each run's `learning_rate`, `batch_size` and
        `epochs` (and `layers` and `seed` of several), the `metric` that the runs are compared by,
        `kept`, `dev`, `steps` and `seconds`. With several `layers` also `by_layers`: for each of
        them the best combination's `learning_rate`, `batch_size` and `epochs`, the `metrics` of its
        seeds, and their `mean` and `std`.

    Raises:
        InputError: see `keras_bert.finetune`.
    """

def with_task_tokens(encoder: Encoder, tokenizer: Tokenizer) -> tuple[Encoder, Tokenizer]:
    """Gives a causal language model the special tokens that a task reads its texts with.

    A model whose sequences have no special tokens, such as `openai-gpt` and `gpt2`, gets `start`,
    `delimiter` and `extract` (Radford et al. 2018, section 3.3): `<start> a <delimiter> b
    <extract>`, where a task reads the state of the last. A model without a token for padding gets
    one; its config names it, since `transformers` reads the last token that is not padding, and so
    no text may end with it. New tokens are appended to the vocabulary, and rows with random weights
    to the embedding.

    Args:
        encoder: an `Encoder`.
        tokenizer: its `Tokenizer`.

    Returns:
        (encoder, tokenizer): the same two, where nothing is missing or the encoder is not causal.
    """

def word_similarity(
    *, model: object, pairs: object, layers: str = ..., report: Callable[[str], None] | None = ...
) -> list[float] | dict[str, Any]:
    """Compares two words in context: the cosine of their vectors.

        kb.word_similarity(
            model="folder", pairs=[("the **bank** of a river", "a **bank** lends money")]
        )
        kb.word_similarity(model="folder", pairs="cosimlex_en.tsv", layers="layer-8")

    Args:
        model: a model folder, the output of a run, or hf://owner/name.
        pairs: a file of rated pairs, in the layout of CoSimLex or WiC, or with two texts and a score;
            or a list of two texts each. A word is marked in each text.
        layers: the layers that make a vector, as in `embed`.
        report: called with a line on how the file was read.

    `model` may also be a pair of an encoder and its tokenizer. Two words in one text are marked
    both, and the text is given twice.

    Returns:
        For a list, one cosine per pair. For a file a dictionary: `spearman` and `pearson`, the
        correlations of cosines and ratings (None if one side is constant), and `pairs`, their
        number. Of CoSimLex also `change`, the uncentered Pearson correlation of the change of the
        similarity from the first context to the second, as SemEval 2020 had it (task 3, subtask 1).
        Of WiC also `accuracy`, of cosines above a `threshold` being of the same sense: the
        threshold is the best for these pairs, so that the accuracy is an upper bound.

    Raises:
        InputError: the file is invalid, its pairs are not rated, or there are fewer than two.
    """
