"""What a worker sends on about the shards that it wrote."""

import numpy as np
from apache_beam.transforms.window import WindowedValue

from data_gen import work_items
from data_gen.documents import blocks, find
from data_gen.reading import Reading
from data_gen.settings import Settings
from data_gen.shards import WriteShard
from data_gen.unigrams import CountUnigrams


def test_a_bundle_sends_one_count_of_the_pieces_however_many_items_it_has(
    corpus, corpus_files, tmp_path
):
    settings = Settings(
        vocabulary=corpus.vocabulary, lowercase=True, objective="mlm-nsp", masking="static",
        mask_unit="token", replacement="uniform", max_length=128, max_predictions=20,
        masked_rate=0.15, short_rate=0.1, dupe_factor=1, eval_fraction=0.1, pad=False,
        compression=None, seed=0, item_bytes=5_000, reading=Reading(), output=str(tmp_path),
    )  # fmt: skip
    eval_below = work_items.eval_limit(settings.eval_fraction)
    found = [
        block
        for window in find(corpus_files, "lines")
        for block in blocks(window, block_bytes=1_000, eval_below=eval_below)
    ]
    items = work_items.plan(found, item_bytes=settings.item_bytes, eval_below=eval_below)
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
