"""The programs that the library is compared with, in the environment of `make test-peers`.

`make test` has neither. A test that uses one has the mark `peers`, and is collected without it.
"""

import importlib


class _Peer:
    """A module that is imported at its first use."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        module = importlib.import_module(self._name)
        if not hasattr(module, attribute):  # a module in it that it does not import itself
            return importlib.import_module(f"{self._name}.{attribute}")
        return getattr(module, attribute)


torch = _Peer("torch")
transformers = _Peer("transformers")
peft = _Peer("peft")
sentence_transformers = _Peer("sentence_transformers")
ir_measures = _Peer("ir_measures")
bm25s = _Peer("bm25s")
qdrant_client = _Peer("qdrant_client")
