"""What TensorFlow does with memory that a step frees: it keeps it for the next one."""

import os


def keep_freed_memory():
    """Has TensorFlow manage a CPU's memory itself, as it does a GPU's; call before it is imported.

    A step makes the tensors anew that the step before it has freed. Where TensorFlow does not use
    oneDNN, with which it keeps them, it leaves them to the C library, which gives large ones back
    to the system, and the system clears every page that is asked for again: a tenth of the
    processor's time of a fine-tuning step. What the user's environment says of it stays so.
    """
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
