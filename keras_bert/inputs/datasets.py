"""What every tf.data dataset of ours has in common."""

import numpy as np
import tensorflow as tf

# Calls of one map at the same time, and batches made ahead, where a dataset does not need more.
PARALLEL_CALLS = 2
PREFETCHED = 4


def settled(dataset):
    """The dataset in a fixed order and with the parallelism that it was made with.

    The autotuner is off: destroying an iterator waits for its thread, which wakes at doubling
    intervals of up to a minute.
    """
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = False
    return dataset.with_options(options)


@tf.autograph.experimental.do_not_convert  # it writes Python files into the temporary folder
def planned_batches(plan, batch):
    """The dataset of `batch(rows)` for each array of row numbers in `plan`."""
    rows = np.concatenate([np.empty(0, np.int32), *plan]).astype(np.int32)
    batches = tf.RaggedTensor.from_row_lengths(rows, [len(numbers) for numbers in plan])
    dataset = tf.data.Dataset.from_tensor_slices(batches)
    dataset = dataset.map(batch, num_parallel_calls=PARALLEL_CALLS, deterministic=True)
    return settled(dataset.prefetch(PREFETCHED))
