"""From text to a folder of pre-training rows: the Beam job.

    windows ── scan ──▶ blocks ── plan ──▶ items ── write a shard each ──▶ statistics ──▶ card

Only descriptors, hashes and counts go from worker to worker; text, tokens and rows never do.
"""

import math
import os

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import AsSingleton, TaggedOutput

from data_gen import documents, duplicates, output_folder, runner, shards
from data_gen.dataset_card import WriteCard, draw_card, load_matplotlib, make_card
from data_gen.files import fingerprint
from data_gen.job import Job
from data_gen.output_folder import OutputFolder
from data_gen.runner import Progress
from data_gen.settings import DataSettings
from data_gen.shards import CountUnigrams, WriteShard, add_up
from data_gen.statistics import AddStatistics, Statistics
from keras_bert.base.files import reject_input_as_output
from keras_bert.base.settings import takes
from keras_bert.base.signals import says
from keras_bert.text.template import BERT_TEMPLATE
from keras_bert.text.vocabulary import BERT_TOKENS, Vocabulary
from keras_bert.text.vocabulary_files import folder_texts

# Each worker is a process that loads TensorFlow: it must have enough to do for that to pay. Bytes
# of text, times the copies that are made of it.
_BYTES_A_WORKER = 64 << 20


@takes(DataSettings)
def make_pretraining_data(*, lowercase=None, beam_options=(), report=None, **settings):
    """Makes a folder of pre-training rows from text, and returns its `DatasetCard`.

    The same text, settings and seed give the same bytes in the same shards, whatever the files are
    called and however many workers there are. Where they lie in the output already, nothing is
    done.

    Args:
        {settings}
        lowercase: False says what `cased` says; True refuses a folder whose vocabulary is cased.
        beam_options: Beam's own flags, a list of strings. Without any, as many local processes
            work as there are processors and the input is worth.
        report: a function that is told in one line where there is nothing to do, and where
            finished data is made again because a file of it is missing or has lost something.

    `input` may be one path and `vocab` a `Vocabulary`.

    Raises:
        InputError: bad input, settings, options or output; no COMPLETED is written then.
        KeyboardInterrupt: it was stopped; says how far it had come.
    """
    vocabulary = settings.get("vocab")
    if isinstance(vocabulary, Vocabulary):
        settings["vocab"] = "given"
    else:
        vocabulary = None
    settings = DataSettings.of(settings)
    job = Job.of_settings(settings, vocabulary=vocabulary, lowercase=lowercase)
    with Progress() as progress:
        reject_input_as_output([*job.input, job.vocab], job.output)
        windows = documents.find(job.input, job.input_format)
        made = make_card(Statistics(), settings=job, input=job.input)
        counts = job.vocabulary.counts if job.replacement_counts == "vocabulary" else None
        inputs = fingerprint(windows, counts)
        with OutputFolder(job.output, force=job.force, card=made, inputs=inputs) as folder:
            if folder.finished:
                if report is not None:
                    report(f"The data in {folder.path} is finished already; nothing is done.")
                return folder.card()
            if folder.damage is not None and report is not None:
                report(f"The data in {folder.path} is made again: {folder.damage}.")
            progress.follow(folder, files=len({window.path for window in windows}))
            with says(lambda: _how_far(folder)):
                return _make(job, windows, folder, beam_options)


def _make(job, windows, folder, beam_options):
    """Runs the job into its folder, and returns the dataset card."""
    work = sum(window.size for window in windows) * job.dupe_factor
    workers = min(max(1, math.ceil(work / _BYTES_A_WORKER)), os.cpu_count() or 1)
    texts = job.vocabulary.files()
    is_bert = (job.template, job.vocabulary.special_tokens) == (BERT_TEMPLATE, BERT_TOKENS)
    if not is_bert:  # so that the folder can be given as a vocabulary, too
        texts = folder_texts(job.vocabulary, lowercase=job.lowercase, template=job.template)
    for name, text in texts.items():
        folder.write(name, text)
    runner.run(
        lambda pipeline: add_steps(pipeline, windows=windows, job=job),
        [f"--direct_num_workers={workers}", *beam_options],
        meanwhile=load_matplotlib,
    )
    card = folder.card()
    if job.compression is None:  # tfds has no compressed records
        folder.write(output_folder.INFO, output_folder.info(card))
        folder.write(output_folder.FEATURES, output_folder.features(job.spec))
    draw_card(card, job.vocabulary, folder)
    folder.finish()
    return card


def _how_far(folder):
    finished, total = folder.shards()
    of_all = f"{finished} of {total}" if total else "no"
    return (
        f"stopped with {of_all} shards written to {folder.path}; the same command begins anew and "
        "replaces them."
    )


def add_steps(pipeline, *, windows, job):
    """Adds the steps of a job to a pipeline."""
    blocks, statistics = _scan(pipeline, windows, job)
    planned = (
        blocks
        | "Together" >> beam.GroupBy(lambda block: 0)
        | "Plan" >> beam.ParDo(Plan(job)).with_outputs(Plan.STATISTICS, main="items")
    )
    items = (
        planned["items"]
        # Keys in the order of the items, which a local runner deals out to its workers in turn.
        | "ByIndex" >> beam.Map(lambda item: ((item.split, item.index), item))
        | "SpreadItems" >> beam.GroupByKey()
        | "Items" >> beam.FlatMap(lambda keyed: keyed[1])
    )
    counted = {}
    if job.needs_unigrams:
        counted["unigrams"] = AsSingleton(
            items
            | "CountUnigrams" >> beam.ParDo(CountUnigrams(job))
            | "AddUnigrams" >> beam.CombineGlobally(add_up)
        )
    written = items | "WriteShard" >> beam.ParDo(WriteShard(job), **counted)
    _ = (
        (written, planned[Plan.STATISTICS], *statistics)
        | "Statistics" >> beam.Flatten()
        | "AddUp" >> beam.CombineGlobally(AddStatistics())
        | "WriteCard" >> beam.ParDo(WriteCard(job, job.input))
    )


def _scan(pipeline, windows, job):
    """The blocks of the input, and a list of PCollections of `Statistics` of it."""
    options = {
        "reading": job.reading,
        "block_bytes": max(1, job.shard_bytes // 8),
        "eval_below": shards.eval_limit(job.eval_fraction),
    }
    spread = pipeline | "Windows" >> beam.Create(windows) | "SpreadWindows" >> beam.Reshuffle()
    if not job.reading.drop_duplicates:
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

    def __init__(self, job):
        super().__init__()
        self._shard_bytes = job.shard_bytes
        self._eval_below = shards.eval_limit(job.eval_fraction)

    def process(self, keyed):
        blocks = list(keyed[1])
        items = shards.plan(blocks, shard_bytes=self._shard_bytes, eval_below=self._eval_below)
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
