"""Texts of every kind for exported models, and what holds of every answer."""

import resource
import time

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 registers the tokenizers' operations
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from tests.exports.texts import PARTS

BATCH = 100
WORDS = st.lists(st.sampled_from(PARTS), max_size=8)
TEXTS = st.one_of(
    st.text(max_size=30),
    st.builds(" ".join, WORDS),
    st.builds("".join, WORDS),
    st.builds("".join, st.lists(st.text(max_size=3) | st.sampled_from(PARTS), max_size=6)),
    st.binary(max_size=12),
)
# A batch of texts, and a place in it.
DRAWN = (st.lists(TEXTS, min_size=BATCH, max_size=BATCH), st.integers(0, BATCH - 1))
HARD = {
    "1 MB of words": ["good film " * 100_000],
    "1 MB without a space": ["x" * 1_000_000],
    "1 MB of spaces": [" " * 1_000_000],
    "1 MB of NULs": ["\0" * 1_000_000],
    "1 MB of Chinese": ["漢字" * 170_000],
    "100,000 combining marks": ["e" + "\u0301" * 100_000],
    "1 MB of [MASK]": ["[MASK] " * 140_000],
    "1 MB of bytes that are no text": [b"\xff\xc3" * 500_000],
    "a batch of 10,000": ["a film in rome"] * 10_000,
}
# MiB by which one of them may raise the most that the process ever had.
MOST_MEMORY = 1000


class Model:
    """An exported model, asked with texts alone.

    Args:
        folder: the folder of its versions; the highest is asked.
    """

    def __init__(self, folder):
        versions = [entry for entry in folder.iterdir() if entry.name.isdigit()]
        self._loaded = tf.saved_model.load(str(max(versions, key=lambda path: int(path.name))))
        self.ask = self._loaded.signatures["serving_default"]
        _, self.inputs = self.ask.structured_input_signature

    def answer(self, request):
        """The model's answer, arrays by name."""
        tensors = {name: tf.constant(x, self.inputs[name].dtype) for name, x in request.items()}
        return {name: np.asarray(tensor) for name, tensor in self.ask(**tensors).items()}


def request_of(inputs, texts):
    """The request to a model of these inputs, `tf.TensorSpec`s by name, for texts, bytes (B,).

    Each input has them in another order.
    """
    request = {}
    for number, (name, spec) in enumerate(sorted(inputs.items(), reverse=True)):
        turned = texts[number:] + texts[:number]
        if spec.shape.rank == 2:  # the choices of an example
            turned = [[text or b"-", b"the", texts[0] or b"-"] for text in turned]
        if spec.dtype != tf.string:
            continue
        request[name] = turned
    if "predicate_start" in inputs:
        texts = [b"ada " + text for text in request["text"]]
        request = {"text": texts, "predicate_start": [0] * len(texts)}
        request["predicate_end"] = [3] * len(texts)
    if "head_start" in inputs:
        # Both spans are surely in a row, behind which the text goes on as long as it is.
        fronts = [b"ada " + text[:16] + b" rome" for text in request["text"]]
        ends = [len(front.decode("utf-8", "ignore")) for front in fronts]
        texts = [front + b" " + text for front, text in zip(fronts, request["text"], strict=True)]
        places = (0, 3, [end - 4 for end in ends], ends)
        names = ("head_start", "head_end", "tail_start", "tail_end")
        request = {"text": texts} | {
            name: [place] * len(texts) if isinstance(place, int) else place
            for name, place in zip(names, places, strict=True)
        }
    return request


def alone(request, number):
    """The request for one of its examples."""
    return {name: column[number : number + 1] for name, column in request.items()}


def as_bytes(texts):
    return [text if isinstance(text, bytes) else text.encode("utf-8", "ignore") for text in texts]


def check(request, outputs):
    """Raises AssertionError if an answer is none that can be."""
    size = len(next(iter(request.values())))
    for name, column in outputs.items():
        assert len(column) == size, f"{name} has {len(column)} answers for {size} texts"
        if column.dtype.kind == "f":
            assert np.isfinite(column).all(), f"{name} holds no numbers"
    for name in ("probabilities", "scores"):
        if name in outputs:
            assert (outputs[name] >= 0).all() and (outputs[name] < 1.0001).all(), name
    if "probabilities" in outputs and "given" not in outputs and "pieces" not in outputs:
        assert np.allclose(outputs["probabilities"].sum(axis=-1), 1, atol=1e-4)
    if "starts" in outputs and "ends" in outputs:
        check_places(request["text"], outputs)
    if "answer" in outputs:
        for context, answer, start, end in zip(
            *(request["context"], outputs["answer"], outputs["start"], outputs["end"]), strict=True
        ):
            if is_text(context):
                assert context.decode()[start:end] == answer.decode(), (
                    "another piece of the context"
                )


def check_places(texts, outputs):
    """Starts and ends lie in their own text, in order, and the words are what stands there."""
    lengths = outputs["lengths"] if "lengths" in outputs else outputs["mask"].sum(axis=1)
    words = outputs.get("words", outputs.get("tokens"))
    for number, (text, length) in enumerate(zip(texts, lengths, strict=True)):
        starts, ends = outputs["starts"][number][:length], outputs["ends"][number][:length]
        assert (starts >= 0).all() and (starts < ends).all() and (np.diff(starts) >= 0).all()
        characters = text.decode("utf-8", "ignore")
        assert length == 0 or ends[-1] <= len(characters), "a place behind the text"
        if words is not None and is_text(text):
            cut = [characters[a:b] for a, b in zip(starts, ends, strict=True)]
            assert cut == [word.decode() for word in words[number][:length]], "other words"


def is_text(text):
    """Whether bytes are UTF-8; of others no character can be counted from outside."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def check_alone(answer, outputs, number):
    """The answer to one example alone is what `outputs` says of it among its neighbours."""
    for name, column in answer.items():
        cut = tuple(map(slice, np.shape(column[0])))  # padded to its own words alone
        other = np.asarray(outputs[name][number])[cut]
        if column.dtype.kind == "f":
            assert np.allclose(column[0], other, atol=1e-3), f"{name} depends on neighbours"
        elif name not in ("label", "choice", "given", "pieces", "tags", "labels"):  # of near ties
            assert np.array_equal(column[0], other), f"{name} depends on neighbours"


def fuzz(model, *, count, seed=0):
    """Asks `model` for at least `count` texts; returns how many. Raises AssertionError."""
    asked = 0

    @seeded(seed)
    @settings(
        max_examples=-(-count // BATCH),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(*DRAWN)
    def holds(texts, number):
        nonlocal asked
        request = request_of(model.inputs, as_bytes(texts))
        outputs = model.answer(request)
        check(request, outputs)
        if number % 5 == 0:
            check_alone(model.answer(alone(request, number)), outputs, number)
        asked += len(texts)

    holds()
    return asked


def most_memory():
    """The most MiB that the process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def ask_hard(name, model, *, only=tuple(HARD)):
    """Asks what is hard by its size; prints seconds and the most memory that the process ever had.

    Raises AssertionError if an answer is none that can be, or took more than `MOST_MEMORY`, and
    the graph's error if it refuses to answer.
    """
    for case in only:
        start, before = time.perf_counter(), most_memory()
        request = request_of(model.inputs, as_bytes(HARD[case]))
        check(request, model.answer(request))
        seconds, memory = time.perf_counter() - start, most_memory()
        print(f"{name:20} {case:32} {seconds:7.1f} s {memory:7.0f} MiB", flush=True)
        assert memory - before < MOST_MEMORY, f"{name}: {case} took {memory - before:.0f} MiB"
