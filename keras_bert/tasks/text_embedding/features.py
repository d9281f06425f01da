"""Sequences of texts that belong together, and batches in which no text is twice."""

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import counted
from keras_bert.base.settings import as_list
from keras_bert.checkpoints import find_model_folder, load_task
from keras_bert.inputs.batches import (
    bucket_lengths,
    distinct_batches,
    file_batches,
    label_batches,
)
from keras_bert.inputs.framing import frame
from keras_bert.inputs.tokenized_examples import PAD_TO, TokenizedExamples, tokenized
from keras_bert.programs import COMPILES_EACH_SHAPE
from keras_bert.readers.text_groups import FORM_NAMES
from keras_bert.tasks.multiple_choice.features import grouped_by_example
from keras_bert.tasks.text_embedding import DOCUMENT, LABELS, PAIRS, QUERY, TEXTS, TRIPLET


class GroupSequences(TokenizedExamples):
    """Examples of one text or several, ragged ids (N, None, None).

    A batch of B examples has inputs of (B, n, S), n the most texts of an example. `lengths` are
    those of an example's longest text, and `encoder_sequences` its number of texts.

    Args:
        examples: a list of examples.
        ids: the ids.
        texts: for each example the numbers of its texts, by which batches have no text twice; ()
            if they may.
        needed: what the task trains on, for the error if the examples are something else.
        least: the texts that some example must have in training.
        guides: float32 (U + 1, G), a guide's vectors of different texts behind one of zeros, or
            None. The labels are then numbers of these vectors, and those of a batch the vectors.
        file_weights: the weight of each file in training, by which a batch is of one file; empty
            if it has examples of all.
        options: see `TokenizedExamples`.
    """

    shapes_follow_from_length = False

    def __init__(
        self,
        examples,
        ids,
        *,
        texts,
        needed,
        least=1,
        guides=None,
        file_weights=(),
        **options,
    ):
        self.texts, self._needed, self._least = texts, needed, least
        self._guides = None if guides is None else tf.constant(guides)
        self._file_weights = file_weights
        super().__init__(examples, [ids], **options)

    def targets(self, numbers):
        targets = super().targets(numbers)
        if self._guides is None:
            return targets
        vectors = tf.gather(self._guides, targets[0]["embedding"])  # (B, n, G)
        return {"embedding": vectors}, *targets[1:]

    def sequence_tokens(self):
        """int (N,): the tokens of each example's longest text."""
        return tf.reduce_max(self.segments[0].row_lengths(axis=2), axis=1).numpy()

    @property
    def encoder_sequences(self):
        return self.segments[0].row_lengths().numpy()

    def inputs(self, ids, *columns):
        """The encoder's inputs by name, each (B, n, S); also in a graph."""
        sequences = frame(
            [ids.values],
            tokenizer=self._tokenizer,
            names=self._input_names,
            max_length=self._max_length,
            multiple_of=self._pad_to,
        )
        inputs = grouped_by_example(sequences, ids.row_lengths())
        for name, column in zip(self.columns, columns, strict=True):
            inputs[name] = tf.ensure_shape(column.to_tensor(), [None, None])
        return inputs

    def epoch_batches(self, *, count, seed, epoch):
        if not self.labels:
            raise InputError(
                f"{self.examples[0].source.name} has "
                f"{FORM_NAMES.get(self.examples[0].form, 'texts to find')}, and the model trains "
                f"on {self._needed}."
            )
        if max(self.encoder_sequences) < self._least:
            raise InputError.naming(
                "{} has no negatives, which {loss} triplet needs. Name their column, as in {}, or "
                "use {loss} in-batch-negatives.",
                self.examples[0].source.name,
                argument("fields", '"anchor=…,positive=…,negatives=…"'),
            )
        if self._file_weights:
            batches = self._batches_of_files(count=count, seed=seed, epoch=epoch)
        else:
            every = np.arange(len(self))
            batches = self._batches_of(every, count=count, seed=seed, epoch=epoch)
        if any(self.texts) and min(map(len, batches)) < 2:
            raise InputError(
                f"{self.examples[0].source.name}: too many rows share a text, so that a batch "
                "would have a single row, with no other to tell it from. Remove repeated rows, or "
                "use a smaller `batch_size` (--batch-size)."
            )
        return batches

    def _batches_of(self, numbers, *, count, seed, epoch):
        """The batches of one pass over the examples with these numbers (M,)."""
        options = {"count": count, "seed": seed, "epoch": epoch}
        if self.examples[0].form == LABELS:
            batches = label_batches(self.labels["embedding"][numbers, 0], **options)
        else:
            batches = distinct_batches([self.texts[number] for number in numbers], **options)
        return [numbers[batch] for batch in batches]

    def _batches_of_files(self, *, count, seed, epoch):
        sources = {}
        for number, example in enumerate(self.examples):
            sources.setdefault(id(example.source), (example.source.name, []))[1].append(number)
        if len(sources) != len(self._file_weights):
            raise InputError.naming(
                "{file_weights} and the files of {train} must be as many. Received: {} and {}.",
                counted(len(self._file_weights), "weight"),
                counted(len(sources), "file"),
            )
        batches, counts = file_batches(
            [np.array(numbers) for _, numbers in sources.values()],
            self._file_weights,
            lambda numbers, **options: self._batches_of(numbers, seed=seed, **options),
            count=count,
            seed=seed,
            epoch=epoch,
        )
        for (name, _), file_count in zip(sources.values(), counts, strict=True):
            if not file_count:
                raise InputError.naming(
                    "By {file_weights}, {} would have none of the {:,} batches of an epoch. Give "
                    "it a larger weight, or use a smaller {batch_size}.",
                    name,
                    count,
                )
        return batches

    def training_batches(self, *, steps, seed, epochs=1, first_step=0):
        self.epoch_batches(count=steps, seed=seed, epoch=first_step // steps)  # raises now
        return super().training_batches(
            steps=steps, seed=seed, epochs=epochs, first_step=first_step
        )


def group_sequences(task, examples, *, max_length, labelled):
    """The `GroupSequences` of a `TextEmbedder`, with the prompts in front of the texts.

    Labelled examples of another form than the task trains on have no labels: they are for metrics.
    """
    repeats = 2 if labelled and examples[0].form == TEXTS else 1  # with two dropout masks
    texts = [[*example.texts] * repeats for example in examples]
    prompts = [task.prompts_of(example) * repeats for example in examples]
    counts = [len(example_texts) for example_texts in texts]
    flat = [text for example_texts in texts for text in example_texts]
    flat_prompts = [prompt for example_texts in prompts for prompt in example_texts]
    ids = tf.RaggedTensor.from_row_lengths(ids_of(task, flat, flat_prompts, max_length), counts)
    columns = {}
    if task.HEAD_INPUTS:
        skipped = prompt_tokens(task, flat_prompts)
        columns["prompt_tokens"] = tf.RaggedTensor.from_row_lengths(skipped, counts)
    is_trained_on = labelled and examples[0].form == task.form
    labels, guides = {}, None
    if is_trained_on and task.settings.guide is not None:
        labels["embedding"], guides = _guides(task.settings.guide, examples, counts)
    elif is_trained_on:
        labels["embedding"] = _labels(examples, counts)
    return GroupSequences(
        examples,
        ids,
        texts=_numbers(texts) if examples[0].form in (PAIRS, TEXTS) else [()] * len(examples),
        needed=FORM_NAMES[task.form],
        least=3 if task.settings.loss == TRIPLET else 1,
        guides=guides,
        file_weights=as_list(task.settings.file_weights),
        labels=labels,
        columns=columns,
        **task.framing(max_length),
    )


def inputs_of_texts(task, texts, *, skipped, max_length):
    """-> (the inputs of a task by name for single texts (B,), each (B, 1, S), how many are cut).

    Also in a graph. Texts have their prompts already.

    Args:
        task: the `TextEmbedder`.
        texts: strings (B,).
        skipped: int32 (), the tokens of the prompt (see `prompt_tokens`).
        max_length: tokens per sequence; longer texts are cut.
    """
    ids = task.tokenizer.tokenize(lowercased(task, texts))
    room = task.tokenizer.template.room(max_length)
    inputs = frame(
        [ids],
        tokenizer=task.tokenizer,
        names=task.encoder.input_names,
        max_length=max_length,
        multiple_of=bucket_lengths(max_length)[0] if COMPILES_EACH_SHAPE else PAD_TO,
    )
    inputs = {name: x[:, None] for name, x in inputs.items()}
    if task.HEAD_INPUTS:
        inputs["prompt_tokens"] = tf.fill([tf.shape(texts)[0], 1], skipped)
    return inputs, tf.reduce_sum(tf.cast(ids.row_lengths() > room, tf.int32))


def ids_of(task, texts, prompts, max_length):
    """The ids of texts, each behind its prompt: ragged int32 (N, None), at most `max_length`."""
    texts = [f"{prompt}{text}" for prompt, text in zip(prompts, texts, strict=True)]
    return tokenized(lowercased(task, texts), task.tokenizer, max_length)


def lowercased(task, texts):
    """Texts as the task tokenizes them: strings, or in a graph a tensor of them."""
    if not task.settings.lowercase:
        return texts
    if not tf.is_tensor(texts):
        texts = tf.constant([text.encode("utf-8", "replace") for text in texts], tf.string)
    return tf.strings.lower(texts, encoding="utf-8")


def prompt_tokens(task, prompts):
    """How many tokens at the beginning of a sequence each prompt (N,) has, int32 (N,).

    With the special ones there, as sentence-transformers counts them: those of the prompt alone
    without the last special one; 0 without a prompt. Also in a graph.
    """
    prompts = tf.convert_to_tensor(prompts, tf.string)
    counts = tf.cast(task.tokenizer.tokenize(lowercased(task, prompts)).row_lengths(), tf.int32)
    before = task.tokenizer.template.before(0, texts=1)
    return tf.where(tf.strings.length(prompts) > 0, counts + before, 0)


def _numbers(texts):
    """The numbers of each example's different texts, from 0 in their order."""
    numbers = {}
    return [{numbers.setdefault(text, len(numbers)) for text in group} for group in texts]


def _labels(examples, counts):
    """float32 (N, 1), the labels, or (N, n), 1 for each text that an example has.

    Labels that are strings have numbers, from 0 in their order.
    """
    if examples[0].form == LABELS:
        numbers = {}
        return np.array(
            [[numbers.setdefault(example.label, len(numbers))] for example in examples], np.float32
        )
    if examples[0].label is not None:
        return np.array([[example.label] for example in examples], np.float32)
    return (np.arange(max(counts)) < np.array(counts)[:, None]).astype(np.float32)


def _guides(folder, examples, counts):
    """-> (int32 (N, n), the number of each text's vector from 1, float32 (U + 1, G), the vectors).

    Of a text that an example has not, the number is 0, and its vector is 0. The vectors are those
    of a guide, which encodes anchors as queries and other texts as documents, each once.
    """
    guide = load_task(find_model_folder(folder))
    if "text-vectors" not in guide.OFFERS:
        raise InputError.naming(
            "{guide} is {}, a model of the task {}. Expected one with vectors of texts: a folder "
            "of sentence-transformers, or a model that was fine-tuned with {task} text-embedding.",
            folder,
            guide.TASK_TYPE,
        )
    places = {}
    numbers = np.zeros((len(examples), max(counts)), np.int32)
    for row, example in enumerate(examples):
        for column, text in enumerate(example.texts):
            key = (DOCUMENT if column else QUERY, text)
            numbers[row, column] = places.setdefault(key, len(places) + 1)
    vectors = np.zeros((len(places) + 1, guide.size_of(None)), np.float32)
    for role, encode in ((QUERY, guide.encode_query), (DOCUMENT, guide.encode_document)):
        texts = {text: place for (its_role, text), place in places.items() if its_role == role}
        vectors[[*texts.values()]] = encode([*texts])
    return numbers, vectors
