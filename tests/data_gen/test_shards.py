"""What a worker sends on about the shards that it wrote."""

import numpy as np
from apache_beam.transforms.window import WindowedValue

from data_gen import work_items
from data_gen.documents import blocks, find
from data_gen.job import Job
from data_gen.settings import DataSettings
from data_gen.shards import WriteShard
from data_gen.unigrams import CountUnigrams


def test_a_bundle_sends_one_count_of_the_pieces_however_many_items_it_has(
    corpus, corpus_files, tmp_path
):
    settings = DataSettings(
        input=[corpus_files], vocab="given", output=str(tmp_path), dupe_factor=1,
        eval_fraction=0.1, item_bytes=5_000,
    )  # fmt: skip
    job = Job.of_settings(settings, vocabulary=corpus.vocabulary)
    eval_below = work_items.eval_limit(job.eval_fraction)
    found = [
        block
        for window in find(corpus_files, "lines")
        for block in blocks(window, block_bytes=1_000, eval_below=eval_below)
    ]
    items = work_items.plan(found, item_bytes=job.item_bytes, eval_below=eval_below)
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
