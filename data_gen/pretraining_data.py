"""From text to a folder of pre-training examples: the Beam job.

    windows ── scan ──▶ blocks ── plan ──▶ items ── write a shard each ──▶ statistics ──▶ card

Only descriptors, hashes and counts are sent from worker to worker; text, tokens and examples never.
"""

from collections import Counter

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import AsSingleton, TaggedOutput

from data_gen import documents, runner, shards
from data_gen.data_folder import FEATURES, INFO, NewDataFolder, features, info
from data_gen.dataset_card import (
    Statistics,
    WriteCard,
    add_statistics,
    draw_card,
    load_matplotlib,
    make_card,
)
from data_gen.files import fingerprint
from data_gen.settings import DataSettings
from data_gen.shards import CountUnigrams, WriteShard, add_up
from keras_bert.base.errors import InputError
from keras_bert.base.ownership import reject_input_as_output
from keras_bert.base.settings import takes
from keras_bert.base.signals import interruption_message
from keras_bert.records import PAIRED, DatasetCard, compact, padded
from keras_bert.records.masking import Masker
from keras_bert.text.template import BERT_TEMPLATE, Template
from keras_bert.text.vocabulary import BERT_TOKENS, Vocabulary
from keras_bert.text.vocabulary_files import folder_texts, open_vocabulary, read_counts

# A worker is a process that loads TensorFlow, which pays only with enough work for it: bytes of
# text, times the copies that are made of it.
_BYTES_PER_WORKER = 64 << 20


class Job(DataSettings):
    """The objects that every worker receives: complete settings, vocabulary and template.

    Use `Job.from_settings`.
    """

    vocabulary: Vocabulary
    lowercase: bool
    template: Template

    def __post_init__(self, *arguments):
        """The settings are checked already."""

    @classmethod
    def from_settings(cls, settings, *, vocabulary=None, lowercase=None):
        """Opens the vocabulary, and fills in the defaults that depend on other settings.

        Args:
            settings: `DataSettings`.
            vocabulary: a `Vocabulary` in place of `settings.vocab`.
            lowercase: True or False in place of `settings.cased`.

        Raises:
            InputError: the vocabulary cannot be read, or has another case.
        """
        source = settings.vocab if vocabulary is None else vocabulary
        opened, lowercase, template = open_vocabulary(
            source, lowercase=settings.check_case(lowercase)
        )
        texts = 2 if settings.objective in PAIRED else 1
        if settings.pad and template.segments(texts) != tuple(range(texts)):
            raise InputError.naming(
                "Padded examples separate their texts by the segment ids 0 and 1, which the "
                "template {} of the vocabulary does not have. Leave {pad} out.",
                template,
            )
        if settings.replacement == "unigram" and vocabulary is None:
            opened.counts = read_counts(settings.vocab, opened)
        fields = settings.filled().part(DataSettings)
        fields["output"] = fields["output"].rstrip("/")
        return cls(**fields, vocabulary=opened, lowercase=lowercase, template=template)

    @property
    def max_tokens(self):
        """The maximum tokens of text in an example: what the special tokens leave."""
        return self.template.room(self.max_length, texts=2 if self.objective in PAIRED else 1)

    @property
    def spec(self):
        """The `FeatureSpec` of the examples."""
        if self.pad:
            return padded(
                objective=self.objective,
                max_length=self.max_length,
                max_predictions=self.max_predictions,
            )
        return compact(objective=self.objective, masking=self.masking)

    @property
    def replacement_counts(self):
        """The source of the counts that static replacements follow: "vocabulary", "text", None."""
        if self.masking == "dynamic" or self.replacement != "unigram":
            return None
        return "text" if self.vocabulary.counts is None else "vocabulary"

    def masker(self, unigrams=None):
        """The `Masker` of static masks; None if training masks (dynamic).

        `unigrams` (V,) are the counts of the tokens if `replacement_counts` is "text".
        """
        if self.masking == "dynamic":
            return None
        if self.replacement_counts == "vocabulary":
            unigrams = self.vocabulary.counts
        return Masker(
            vocabulary=self.vocabulary,
            unit=self.mask_unit,
            rate=self.mlm_probability,
            max_predictions=self.max_predictions,
            unigram_counts=unigrams,
        )


@takes(DataSettings)
def pretraining_data(*, lowercase=None, beam_options=(), report=None, **settings) -> DatasetCard:
    """Makes a folder of pre-training examples from text.

    The same text, settings and seed give the same bytes in the same shards, whatever the files are
    called and however many workers there are. Nothing is done if the output is complete already.

    Args:
        **settings: the fields of `DataSettings`.
        lowercase: False is `cased`; True rejects a folder whose vocabulary is cased.
        beam_options: Beam's own flags, a list of strings. The default is as many local processes
            as there are processors and enough input for.
        report: a function that is called with a line of text if there is nothing to do, and
            if finished data is made again because a file is missing or damaged.

    `input` may be one path and `vocab` a `Vocabulary`.

    Returns:
        The `DatasetCard` of the folder: the settings, and what was read and written.

    Raises:
        InputError: bad input, settings, options or output; no COMPLETED is written then.
        KeyboardInterrupt: it was interrupted; the message has the number of shards written.
    """
    vocabulary = settings.get("vocab")
    if isinstance(vocabulary, Vocabulary):
        settings["vocab"] = "given"
    else:
        vocabulary = None
    settings = DataSettings.of(settings)
    job = Job.from_settings(settings, vocabulary=vocabulary, lowercase=lowercase)
    with runner.Progress("Listing the input") as progress:
        reject_input_as_output([*job.input, job.vocab], job.output)
        windows = documents.find(job.input, job.input_format)
        card = make_card(Statistics(), job=job)
        counts = job.vocabulary.counts if job.replacement_counts == "vocabulary" else None
        inputs = fingerprint(windows, counts)
        with NewDataFolder(job.output, force=job.force, card=card, inputs=inputs) as folder:
            if folder.finished:
                if report is not None:
                    report(f"The data in {folder.path} is finished already. Nothing to do.")
                return folder.card()
            if folder.damage is not None and report is not None:
                report(f"The data in {folder.path} is made again: {folder.damage}.")
            progress.follow(folder, files=len({window.path for window in windows}))
            with interruption_message(folder.interruption):
                return _make(job, windows, folder, progress, beam_options)


def _make(job, windows, folder, progress, beam_options):
    """Runs the job into its folder, and returns the dataset card."""
    work = sum(window.size for window in windows) * job.dupe_factor
    texts = job.vocabulary.files()
    is_bert = (job.template, job.vocabulary.special_tokens) == (BERT_TEMPLATE, BERT_TOKENS)
    if not is_bert:  # the data folder can be used as a vocabulary, too
        texts = folder_texts(job.vocabulary, lowercase=job.lowercase, template=job.template)
    for name, text in texts.items():
        folder.write(name, text)
    runner.run(
        lambda pipeline: add_steps(pipeline, windows=windows, job=job),
        [runner.workers(work, bytes_per_worker=_BYTES_PER_WORKER), *beam_options],
        meanwhile=load_matplotlib,
        progress=progress,
    )
    card = folder.card()
    if job.compression is None:  # tfds has no compressed records
        folder.write(INFO, info(card))
        folder.write(FEATURES, features(job.spec))
    draw_card(card, job.vocabulary, folder)
    folder.finish()
    return card


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
        # Keys in the order of the items, which a local runner distributes round-robin.
        | "ByIndex" >> beam.Map(lambda item: ((item.split, item.index), item))
        | "SpreadItems" >> beam.GroupByKey()
        | "Items" >> beam.FlatMap(lambda keyed: keyed[1])
    )
    counts = {}
    if job.replacement_counts == "text":
        counts["unigrams"] = AsSingleton(
            items
            | "CountUnigrams" >> beam.ParDo(CountUnigrams(job))
            | "AddUnigrams" >> beam.CombineGlobally(add_up)
        )
    written = items | "WriteShard" >> beam.ParDo(WriteShard(job), **counts)
    _ = (
        (written, planned[Plan.STATISTICS], *statistics)
        | "Statistics" >> beam.Flatten()
        | "AddUp" >> beam.CombineGlobally(add_statistics)
        | "WriteCard" >> beam.ParDo(WriteCard(job))
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
    scanned = spread | "Scan" >> beam.ParDo(Scan(**options)).with_outputs(
        Scan.HASHES, main="blocks"
    )
    blocks, statistics = (
        scanned["blocks"],
        scanned[Scan.HASHES],
    ) | "DropDuplicates" >> DropDuplicates()
    return blocks, [statistics]


class Plan(beam.DoFn):
    """All blocks of a job -> its work items, and the side output STATISTICS of the input."""

    STATISTICS = "statistics"

    def __init__(self, job):
        super().__init__()
        self._shard_bytes = job.shard_bytes
        self._eval_below = shards.eval_limit(job.eval_fraction)

    def process(self, keyed):
        blocks = list(keyed[1])
        items = shards.plan(blocks, shard_bytes=self._shard_bytes, eval_below=self._eval_below)
        yield from items
        counters = Counter(f"{item.split}/shards" for item in items)
        for _, format in {(block.path, block.format) for block in blocks}:
            counters[f"files_of_form_{format}"] += 1
        for block in blocks:
            counters["documents"] += block.documents
            counters["bytes_of_text"] += block.size
            counters.update(dict(block.counts))
        for name, value in counters.items():
            Metrics.counter("pretraining_data", name).inc(value)
        yield TaggedOutput(self.STATISTICS, Statistics(counters=counters))


class Scan(beam.DoFn):
    """Windows -> blocks, and the side output HASHES: (hash of a document, (block, count there))."""

    HASHES = "hashes"

    def __init__(self, **options):
        super().__init__()
        self._options = options

    def process(self, window):
        digests = []
        for block in documents.blocks(window, digests=digests, **self._options):
            yield block
            key = (block.digest, *_key(block))
            for digest, number in Counter(digests).items():
                yield TaggedOutput(self.HASHES, (digest, (key, number)))


class DropDuplicates(beam.PTransform):
    """(Blocks, hashes) of `Scan` -> blocks with `dropped`, and `Statistics`.

    The copy that is kept is in the block whose own hash comes first, so that the names of the files
    do not matter; within a block it is the first one, when the block is read.
    """

    def expand(self, scanned):
        blocks, hashes = scanned
        copies = (
            hashes
            | "ByHash" >> beam.GroupByKey()
            | "Copies" >> beam.FlatMap(_copies).with_outputs("statistics", main="dropped")
        )
        joined = (
            {
                "blocks": blocks | "ByPlace" >> beam.Map(lambda block: (_key(block), block)),
                "dropped": copies["dropped"],
            }
            | "Join" >> beam.CoGroupByKey()
            | "Mark" >> beam.FlatMap(_mark)
        )
        return joined, copies["statistics"]


def _key(block):
    return block.path, block.start


def _copies(grouped):
    """(hash, its blocks) -> (key of a block, hash) for all blocks but the first."""
    digest, blocks = grouped
    blocks = sorted(blocks)
    number = sum(number for _, number in blocks)
    if number > 1:
        for (_, *key), _ in blocks[1:]:
            yield tuple(key), digest
        yield TaggedOutput("statistics", Statistics(Counter(dropped_duplicates=number - 1)))


def _mark(joined):
    _, groups = joined
    dropped = tuple(sorted(groups["dropped"]))
    for block in groups["blocks"]:
        yield block._replace(dropped=dropped)
