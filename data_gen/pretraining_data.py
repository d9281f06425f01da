"""From text to a folder of pre-training rows: the Beam job.

    windows ── scan ──▶ blocks ── plan ──▶ items ── write a shard each ──▶ statistics ──▶ card

Only descriptors, hashes and counts go from worker to worker; text, tokens and rows never do.
"""

import math
import os

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import AsSingleton, TaggedOutput

from data_gen import documents, duplicates, runner, tfds_metadata, work_items
from data_gen.card_picture import draw_card
from data_gen.dataset_card import WriteCard
from data_gen.output_folder import OutputFolder
from data_gen.progress import Progress
from data_gen.reading import Reading
from data_gen.settings import Settings
from data_gen.shards import WriteShard
from data_gen.statistics import AddStatistics, Statistics
from data_gen.unigrams import CountUnigrams, add_up
from keras_bert.errors import InputError
from keras_bert.text.vocabulary_files import open_vocabulary, read_counts

ITEM_BYTES = 2 << 20
# Each worker is a process that loads TensorFlow: it must have enough to do for that to pay. Bytes
# of text, times the copies that are made of it.
_BYTES_A_WORKER = 64 << 20


def make_pretraining_data(
    *,
    input,
    vocab,
    output,
    form=None,
    objective="mlm-nsp",
    masking="static",
    mask_unit=None,
    replacement="uniform",
    max_length=128,
    max_predictions=20,
    masked_rate=0.15,
    short_rate=None,
    dupe_factor=None,
    eval_fraction=0.02,
    seed=0,
    lowercase=None,
    pad=False,
    compression=None,
    bad_lines="error",
    text_field="text",
    min_characters=0,
    max_characters=None,
    min_letters=0.0,
    max_repeated_lines=1.0,
    drop_duplicates=False,
    item_bytes=ITEM_BYTES,
    force=False,
    beam_options=(),
):
    """Makes a folder of pre-training rows from text, and returns its `DatasetCard`.

    Args:
        input: paths or globs of text or Parquet files, or tfds:NAME/CONFIG:SPLIT of a prepared
            dataset; one or a list (see `data_gen.documents`).
        vocab: the path of a `vocab.txt` or of a folder with a vocabulary (of byte-pair encoding:
            `vocab.json` and `merges.txt`), or a `Vocabulary`.
        output: the folder to make, on any file system of Beam's.
        form: of text files, "book", "lines" or "jsonl" (see `data_gen.forms`); None tells it from
            each file.
        objective: "mlm-nsp" (BERT: two segments, masked tokens and next sentence), "mlm" (one
            segment of whole sentences, masked tokens) or "span" (as "mlm", with spans of words
            masked and their boundaries stored: SpanBERT).
        masking: "static": rows are masked here; "dynamic": in training, anew in each epoch.
        mask_unit: "token" or "whole-word"; None is "token" (and "span" for the objective "span").
        replacement: what stands in for a tenth of the masked tokens: any piece, "uniform" (as in
            BERT's code), or in proportion to the "unigram" counts of the corpus (as in its paper's
            description): for static masks those that the vocabulary has beside it (see
            `keras_bert.text.piece_counts`), or else those of this text, which is gone through
            first; for dynamic masks those of this text, from the card.
        max_length: tokens in a row, special ones counted in.
        max_predictions: masked tokens in a row, at most.
        masked_rate: the share of a row's tokens that is masked.
        short_rate: the share of rows that are made for a random shorter length; None is 0.1 for
            "mlm-nsp", as in BERT, and 0 for the others.
        dupe_factor: how many times the text is gone through, with other segments and masks each
            time; None is 5 for static masks and 1 for dynamic ones. The eval split has one copy.
        eval_fraction: the share of the documents that is held out as the eval split. The choice
            depends on the documents alone, not on the seed.
        seed: not negative. The same text, settings and seed give the same bytes in the same shards.
        lowercase: False for a cased vocabulary. None is what the folder of the vocabulary says,
            and True where nothing says; another case than the folder's is refused.
        pad: write padded rows that google-research/bert reads (static masks only).
        compression: None or "gzip".
        bad_lines, text_field, min_characters, max_characters, min_letters, max_repeated_lines,
            drop_duplicates: what of the input is read (see `data_gen.reading.Reading`).
        item_bytes: bytes of text that make one shard, before copies.
        force: replace finished data that an earlier run left in `output`.
        beam_options: Beam's own flags, a list of strings. Without any, as many local processes
            work as there are processors and the input is worth.

    Raises `InputError` for bad input, settings, options or output; no COMPLETED is written then.
    """
    if mask_unit is None:
        mask_unit = "span" if objective == "span" else "token"
    if short_rate is None:
        short_rate = 0.1 if objective == "mlm-nsp" else 0.0
    if dupe_factor is None:
        dupe_factor = 5 if masking == "static" else 1
    vocabulary, lowercase = open_vocabulary(vocab, lowercase=lowercase)
    if replacement == "unigram" and vocabulary is not vocab:
        vocabulary.counts = read_counts(vocab, vocabulary)
    settings = Settings(
        vocabulary=vocabulary,
        lowercase=lowercase,
        objective=objective,
        masking=masking,
        mask_unit=mask_unit,
        replacement=replacement,
        max_length=max_length,
        max_predictions=max_predictions,
        masked_rate=masked_rate,
        short_rate=short_rate,
        dupe_factor=dupe_factor,
        eval_fraction=eval_fraction,
        pad=pad,
        compression=compression,
        seed=seed,
        item_bytes=item_bytes,
        reading=Reading(
            bad_lines=bad_lines,
            text_field=text_field,
            min_characters=min_characters,
            max_characters=max_characters,
            min_letters=min_letters,
            max_repeated_lines=max_repeated_lines,
            drop_duplicates=drop_duplicates,
        ),
        output=str(output).rstrip("/"),
    )
    settings.check()
    patterns = [input] if isinstance(input, str | os.PathLike) else input
    patterns = [str(pattern) for pattern in patterns]
    windows = documents.find(patterns, form)
    work = sum(window.size for window in windows) * settings.dupe_factor
    workers = min(max(1, math.ceil(work / _BYTES_A_WORKER)), os.cpu_count() or 1)
    folder = OutputFolder(output, force=force)
    try:
        for name, text in vocabulary.files().items():
            folder.write(name, text)
        with Progress(folder):
            runner.run(
                lambda pipeline: add_steps(
                    pipeline, windows=windows, settings=settings, input=patterns
                ),
                [f"--direct_num_workers={workers}", *beam_options],
            )
        card = folder.card()
        if compression is None:  # tfds has no compressed records
            folder.write(tfds_metadata.INFO, tfds_metadata.info(card))
            folder.write(tfds_metadata.FEATURES, tfds_metadata.features(settings.spec))
        draw_card(card, vocabulary, folder)
        folder.finish()
    except InputError:
        folder.discard()
        raise
    return card


def add_steps(pipeline, *, windows, settings, input):
    """Adds the steps of the job to a pipeline."""
    blocks, statistics = _scan(pipeline, windows, settings)
    planned = (
        blocks
        | "Together" >> beam.GroupBy(lambda block: 0)
        | "Plan" >> beam.ParDo(Plan(settings)).with_outputs(Plan.STATISTICS, main="items")
    )
    items = (
        planned["items"]
        # Keys in the order of the items, which a local runner deals out to its workers in turn.
        | "ByIndex" >> beam.Map(lambda item: ((item.split, item.index), item))
        | "SpreadItems" >> beam.GroupByKey()
        | "Items" >> beam.FlatMap(lambda keyed: keyed[1])
    )
    counted = {}
    if settings.needs_unigrams:
        counted["unigrams"] = AsSingleton(
            items
            | "CountUnigrams" >> beam.ParDo(CountUnigrams(settings))
            | "AddUnigrams" >> beam.CombineGlobally(add_up)
        )
    written = items | "WriteShard" >> beam.ParDo(WriteShard(settings), **counted)
    _ = (
        (written, planned[Plan.STATISTICS], *statistics)
        | "Statistics" >> beam.Flatten()
        | "AddUp" >> beam.CombineGlobally(AddStatistics())
        | "WriteCard" >> beam.ParDo(WriteCard(settings, input))
    )


def _scan(pipeline, windows, settings):
    """The blocks of the input, and a list of PCollections of `Statistics` of it."""
    options = {
        "reading": settings.reading,
        "block_bytes": max(1, settings.item_bytes // 8),
        "eval_below": work_items.eval_limit(settings.eval_fraction),
    }
    spread = pipeline | "Windows" >> beam.Create(windows) | "SpreadWindows" >> beam.Reshuffle()
    if not settings.reading.drop_duplicates:
        return spread | "Scan" >> beam.FlatMap(documents.blocks, **options), []
    scanned = spread | "Scan" >> beam.ParDo(duplicates.Scan(**options)).with_outputs(
        duplicates.HASHES, main="blocks"
    )
    found = (scanned["blocks"], scanned[duplicates.HASHES])
    blocks, statistics = found | "DropDuplicates" >> duplicates.DropDuplicates()
    return blocks, [statistics]


class Plan(beam.DoFn):
    """All blocks of a job -> its work items, and `Statistics` of the input on the side."""

    STATISTICS = "statistics"

    def __init__(self, settings):
        super().__init__()
        self._item_bytes = settings.item_bytes
        self._eval_below = work_items.eval_limit(settings.eval_fraction)

    def process(self, keyed):
        blocks = list(keyed[1])
        items = work_items.plan(blocks, item_bytes=self._item_bytes, eval_below=self._eval_below)
        yield from items
        counters = Statistics().counters
        for item in items:
            counters[f"{item.split}/shards"] += 1
        for _, form in {(block.path, block.form) for block in blocks}:
            counters[f"files_of_form_{form}"] += 1
        for block in blocks:
            counters["documents"] += block.documents
            counters["bytes_of_text"] += block.size
            counters.update(dict(block.counts))
        for name, value in counters.items():
            Metrics.counter("pretraining_data", name).inc(value)
        yield TaggedOutput(self.STATISTICS, Statistics(counters=counters))
