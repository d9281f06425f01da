"""The processor: settings of the backends for it, and imports without garbage collection."""

import gc
import importlib
import os
import platform
import sys


def configure_cpu():
    """Sets what TensorFlow and JAX read from the environment, unless the user has set it.

    To be called before they are imported.

    On every x86 processor, matrix products use oneDNN. TensorFlow's default is to use it only with
    AVX-512's instructions for neural networks; with AVX2 alone the products of a gradient are 10 to
    50 % faster, and a fine-tuning step 12 %.

    Memory that a step has freed is kept for the next one. Without oneDNN, TensorFlow leaves this to
    the C library, which returns large blocks to the system, and the system clears every page again:
    10 % of the CPU time of a fine-tuning step.

    JAX takes the memory of a GPU when it needs it, and not three quarters of it at once.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if platform.machine() in ("x86_64", "AMD64"):
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")


def import_large(name):
    """Imports a library such as Keras, and excludes its objects from garbage collection.

    Keras and TensorFlow create a million objects that live as long as the process. Going through
    them again and again takes 0.6 s of the import, and a quarter of a second in every full
    collection after it.
    """
    if name in sys.modules:
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module(name)
        gc.freeze()
    finally:
        if collects:
            gc.enable()
