"""SavedModels of a few operations that answer as exported tasks do, for the test of the page."""

import tensorflow as tf

from tests.serving.toy_models import write_echo

_TEXT = tf.TensorSpec([None], tf.string, name="text")


def write_page_models(folder):
    """Writes one model for everything that the page can try."""
    write_echo(folder / "echo", 1)
    for name, (function, inputs) in _MODELS.items():
        module = tf.Module()
        module.functions = {
            signature: tf.function(function, input_signature=inputs)
            for signature, (function, inputs) in {
                "serving_default": (function, inputs),
                **_FURTHER.get(name, {}),
            }.items()
        }
        tf.saved_model.save(module, str(folder / name / "1"), signatures=dict(module.functions))


def page_signatures():
    """Model -> (its inputs' `tf.TensorSpec`s, its outputs' by name)."""
    signatures = {}
    for name, (function, inputs) in _MODELS.items():
        traced = tf.function(function, input_signature=inputs).get_concrete_function()
        signatures[name] = (inputs, traced.structured_outputs)
    return signatures


def _fill(text):
    """For each [MASK] the pieces "one" and "two"."""
    count = tf.strings.split(text, "[MASK]").row_lengths() - 1
    ones = tf.ragged.range(count)
    tokens = tf.repeat(tf.constant([["one", "two"]]), tf.size(ones.values), axis=0)
    probabilities = tf.repeat(tf.constant([[0.75, 0.25]]), tf.size(ones.values), axis=0)
    return {
        "pieces": ones.with_values(tokens).to_tensor(),
        "probabilities": ones.with_values(probabilities).to_tensor(),
        "lengths": tf.cast(count, tf.int32),
    }


def _tag(text):
    """Words between single spaces; a name begins at a capital and goes on in the next."""
    words = tf.strings.split(text, " ")
    sizes = words.with_values(tf.strings.length(words.values, unit="UTF8_CHAR"))
    ends = tf.ragged.map_flat_values(tf.identity, sizes)
    sums = tf.cumsum(sizes.values + 1)
    first = tf.gather(tf.concat([[0], sums], axis=0), sizes.row_starts())
    ends = sizes.with_values(sums - 1 - tf.repeat(first, sizes.row_lengths()))
    capital = tf.strings.regex_full_match(words.values, r"\p{Lu}.*")
    before = tf.concat([[False], capital[:-1]], axis=0)
    tags = tf.where(capital, tf.where(before, "I-PER", "B-PER"), "O")
    return {
        "words": words.to_tensor(),
        "tags": words.with_values(tags).to_tensor(),
        "scores": tf.cast(sizes.to_tensor(), tf.float32),
        "starts": (ends - sizes).to_tensor(),
        "ends": ends.to_tensor(),
        "lengths": tf.cast(words.row_lengths(), tf.int32),
    }


def _question(question, context):
    """The characters from the second one on, as many as the question has; "" for "none?"."""
    length = tf.strings.length(question, unit="UTF8_CHAR") * tf.cast(question != "none?", tf.int32)
    ones = tf.ones_like(length)
    return {
        "answer": tf.strings.substr(context, ones, length, unit="UTF8_CHAR"),
        "start": ones,
        "end": ones + length,
        "score": tf.cast(ones, tf.float32),
        "null_score": tf.cast(-ones, tf.float32),
    }


def _encode(text):
    """How often each letter from a to z is in a text."""
    points = tf.strings.unicode_decode(text, "UTF-8")
    counts = tf.reduce_sum(tf.one_hot(points.to_tensor(-1) - ord("a"), 26), axis=1)
    return {"sentence": counts, "embeddings": counts[:, None]}


def _embed(text):
    """The same as a text embedder has it."""
    return {"embedding": _encode(text)["sentence"]}


def _embed_document(text):
    """The vector of a text behind the prompt "zz"."""
    return _embed(tf.strings.join(["zz", text]))


def _surprisal(text):
    """The words between single spaces, and as many nats as each has letters."""
    words = tf.strings.split(text, " ")
    ends = words.with_values(tf.cumsum(tf.strings.length(words.values)))
    return {
        "pieces": words.to_tensor(),
        "starts": tf.zeros_like(ends).to_tensor(),
        "ends": ends.to_tensor(),
        "surprisals": tf.cast(
            words.with_values(tf.strings.length(words.values)).to_tensor(), tf.float32
        ),
        "lengths": tf.cast(words.row_lengths(), tf.int32),
    }


def _follows(text_a, text_b):
    """0.75 for different texts, 0.25 for equal ones."""
    return {"probability": tf.where(text_a == text_b, 0.25, 0.75)}


_MODELS = {
    "fill": (_fill, [_TEXT]),
    "names": (_tag, [_TEXT]),
    "questions": (
        _question,
        [tf.TensorSpec([None], tf.string, name=name) for name in ("question", "context")],
    ),
    "encoder": (_encode, [_TEXT]),
    "vectors": (_embed, [_TEXT]),
}
# Signatures in addition to the default one.
_FURTHER = {
    "fill": {
        "surprisal": (_surprisal, [_TEXT]),
        "next_sentence": (
            _follows,
            [tf.TensorSpec([None], tf.string, name=name) for name in ("text_a", "text_b")],
        ),
    },
    "vectors": {"query": (_embed, [_TEXT]), "document": (_embed_document, [_TEXT])},
}
