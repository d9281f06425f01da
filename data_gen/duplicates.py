"""Finds documents that are alike to the letter; of each, one is kept. Only hashes are shuffled."""

from collections import Counter

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput

from data_gen.documents import blocks
from data_gen.statistics import Statistics

HASHES, STATISTICS = "hashes", "statistics"


class Scan(beam.DoFn):
    """Windows -> blocks, and on the side (hash of a document, (block, its number there))."""

    def __init__(self, **options):
        super().__init__()
        self._options = options

    def process(self, window):
        digests = []
        for block in blocks(window, digests=digests, **self._options):
            yield block
            place = (block.digest, *_key(block))
            for digest, number in Counter(digests).items():
                yield TaggedOutput(HASHES, (digest, (place, number)))


class DropDuplicates(beam.PTransform):
    """(Blocks, hashes) of `Scan` -> blocks that know what is read elsewhere, and `Statistics`.

    The copy that is kept is in the block that comes first by its own hash, so that the names of the
    files have no say in it; within a block the first one is kept, when it is read.
    """

    def expand(self, scanned):
        found, hashes = scanned
        copies = (
            hashes
            | "ByHash" >> beam.GroupByKey()
            | "Copies" >> beam.FlatMap(_copies).with_outputs(STATISTICS, main="dropped")
        )
        joined = (
            {
                "blocks": found | "ByPlace" >> beam.Map(lambda b: (_key(b), b)),
                "dropped": copies["dropped"],
            }
            | "Join" >> beam.CoGroupByKey()
            | "Mark" >> beam.FlatMap(_mark)
        )
        return joined, copies[STATISTICS]


def _key(block):
    return block.path, block.start


def _copies(grouped):
    """(hash, its places) -> (key of a block, hash) for all places but the first."""
    digest, places = grouped
    places = sorted(places)
    number = sum(number for _, number in places)
    if number > 1:
        for (_, *key), _ in places[1:]:
            yield tuple(key), digest
        counters = Counter(dropped_duplicates=number - 1)
        yield TaggedOutput(STATISTICS, Statistics(counters=counters))


def _mark(joined):
    _, groups = joined
    dropped = tuple(sorted(groups["dropped"]))
    for block in groups["blocks"]:
        yield block._replace(dropped=dropped)
