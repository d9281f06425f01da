"""A worker's report on the shards that it wrote."""

import os

import numpy as np
import pytest
from apache_beam.transforms.window import WindowedValue

from data_gen import shards
from data_gen.data_folder import NewDataFolder
from data_gen.documents import blocks, find
from data_gen.output_folder import IN_PROGRESS
from data_gen.pretraining_data import Job
from data_gen.settings import DataSettings
from data_gen.shards import CountUnigrams, WriteShard
from keras_bert.base.errors import InputError


@pytest.fixture
def job(corpus, corpus_files, tmp_path):
    settings = DataSettings(
        input=[corpus_files], vocab="given", output=str(tmp_path), dupe_factor=1,
        eval_fraction=0.1, shard_bytes=5_000,
    )  # fmt: skip
    return Job.from_settings(settings, vocabulary=corpus.vocabulary)


def items_of(corpus_files, job):
    eval_below = shards.eval_limit(job.eval_fraction)
    all_blocks = [
        block
        for window in find(corpus_files, "lines")
        for block in blocks(window, block_bytes=1_000, eval_below=eval_below)
    ]
    return shards.plan(all_blocks, shard_bytes=job.shard_bytes, eval_below=eval_below)


def test_a_bundle_sends_one_count_of_the_tokens_however_many_items_it_has(corpus_files, job):
    items = items_of(corpus_files, job)
    assert len(items) > 10
    writer, counter = WriteShard(job), CountUnigrams(job)
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


def test_a_worker_that_outlives_its_job_writes_nothing_beside_the_next(corpus_files, job, tmp_path):
    item, *_ = items_of(corpus_files, job)
    with NewDataFolder(tmp_path, force=False):
        worker = WriteShard(job)
    (tmp_path / IN_PROGRESS).write_text("another job's")
    worker.setup()  # a cluster that tries again may start it now
    worker.start_bundle()
    with pytest.raises(InputError, match="belongs to another job now"):
        list(worker.process(item) or ())
    assert os.listdir(tmp_path) == [IN_PROGRESS]
