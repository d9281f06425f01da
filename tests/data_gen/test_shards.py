"""What a worker sends on about the shards that it wrote."""

import os

import numpy as np
import pytest
from apache_beam.transforms.window import WindowedValue

from data_gen import work_items
from data_gen.documents import blocks, find
from data_gen.output_folder import IN_PROGRESS, OutputFolder
from data_gen.reading import Reading
from data_gen.settings import Settings
from data_gen.shards import WriteShard
from data_gen.unigrams import CountUnigrams
from keras_bert.errors import InputError


@pytest.fixture
def settings(corpus, tmp_path):
    return Settings(
        vocabulary=corpus.vocabulary, lowercase=True, objective="mlm-nsp", masking="static",
        mask_unit="token", replacement="uniform", max_length=128, max_predictions=20,
        masked_rate=0.15, short_rate=0.1, dupe_factor=1, eval_fraction=0.1, pad=False,
        compression=None, seed=0, item_bytes=5_000, reading=Reading(), output=str(tmp_path),
    )  # fmt: skip


def items_of(corpus_files, settings):
    eval_below = work_items.eval_limit(settings.eval_fraction)
    found = [
        block
        for window in find(corpus_files, "lines")
        for block in blocks(window, block_bytes=1_000, eval_below=eval_below)
    ]
    return work_items.plan(found, item_bytes=settings.item_bytes, eval_below=eval_below)


def test_a_bundle_sends_one_count_of_the_pieces_however_many_items_it_has(corpus_files, settings):
    items = items_of(corpus_files, settings)
    assert len(items) > 10
    writer, counter = WriteShard(settings), CountUnigrams(settings)
    sent = []
    for do_fn in (writer, counter):
        do_fn.setup()
        do_fn.start_bundle()
        for item in items:
            assert list(do_fn.process(item) or ()) == []
        sent += do_fn.finish_bundle()
    assert [type(element) for element in sent] == [WindowedValue, WindowedValue]
    statistics, unigrams = (element.value for element in sent)
    assert set(statistics.shards) == {(item.split, item.index) for item in items}
    np.testing.assert_array_equal(statistics.unigrams, unigrams)
    # Every word of the corpus stands in it once, and the train split has those of its documents.
    assert unigrams.max() == 1
    assert unigrams.sum() == statistics.counters["train/tokens_of_text"] > 1000


def test_a_worker_that_outlives_its_job_writes_nothing_beside_the_next(
    corpus_files, settings, tmp_path
):
    item, *_ = items_of(corpus_files, settings)
    worker = WriteShard(settings)
    with OutputFolder(tmp_path, force=False):
        worker.setup()
        worker.start_bundle()
    (tmp_path / IN_PROGRESS).write_text("another job's")
    with pytest.raises(InputError, match="is another job's by now"):
        list(worker.process(item) or ())
    assert os.listdir(tmp_path) == [IN_PROGRESS]
