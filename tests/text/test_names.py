"""The package's public names: each is one thing, whatever has been imported, and costs its own."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import keras_bert.text


def test_a_name_is_the_same_thing_at_every_access_and_after_its_module_was_imported():
    names = keras_bert.text.__all__
    assert {"Vocabulary", "Tokenizer", "learn_wordpiece", "learn_bpe"} <= set(names)
    first = {name: getattr(keras_bert.text, name) for name in names}
    for name, thing in first.items():
        assert callable(thing), name
        import_module(thing.__module__)
        assert getattr(keras_bert.text, name) is thing, name


def test_no_module_is_called_like_a_public_name():
    modules = {module.name for module in pkgutil.iter_modules(keras_bert.text.__path__)}
    assert not modules & set(keras_bert.text.__all__)
    for module in modules:
        import_module(f"keras_bert.text.{module}")
    assert all(callable(getattr(keras_bert.text, name)) for name in keras_bert.text.__all__)


def test_learning_opening_and_writing_vocabularies_loads_no_tensorflow():
    program = """
import sys
from keras_bert.text import BpeVocabulary, Vocabulary, WordPieceVocabulary, learn_bpe
from keras_bert.text import learn_wordpiece, vocabulary_files
print(*{"tensorflow", "keras", "pyarrow"} & set(sys.modules))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []
