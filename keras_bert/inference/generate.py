"""Text from a causal language model: what it generates, expects next, and thinks of a text."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.inference.fill_mask import Candidate, most_probable
from keras_bert.inference.predict import as_task, check_task
from keras_bert.inference.settings import (
    GenerateSettings,
    LogProbabilitySettings,
    NextTokensSettings,
)
from keras_bert.inference.surprisal import surprisal
from keras_bert.programs.process import under_tensorflow_only
from keras_bert.tasks.outputs import check_finite
from keras_bert.tasks.pretraining.generation import Sampling, prompt_inputs

# Sequences that are read at once, and new tokens between two calls of a stream's function.
_SEQUENCES_TOGETHER = 8
_STREAMED_TOKENS = 8
_COMPILED_MULTIPLE = 64  # of a cache's positions with XLA, which compiles for each number of them


class GeneratedText(NamedTuple):
    """A prompt, the text after it, and the log-probability of that text in nats."""

    prompt: str
    text: str
    log_probability: float


class TextProbability(NamedTuple):
    """The log-probability of a text in nats, and the number of tokens that it is of."""

    log_probability: float
    tokens: int

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-probability per token; NaN without tokens."""
        return float(np.exp(-self.log_probability / self.tokens)) if self.tokens else float("nan")


@takes(GenerateSettings)
@under_tensorflow_only
def generate(*, on_text=None, **settings) -> list[GeneratedText]:
    """Continues texts with a causal language model.

    Without `temperature`, `top_k` and `top_p` the next token is always the most probable one
    (greedy decoding). With any of them it is drawn at random: prompt n with the seed `seed` + n,
    so that it depends neither on the other prompts nor on how many there are. A text ends with the
    token that ends texts in training ([SEP], or GPT's end of text), after `max_tokens`, and when
    the model has no more positions.

    Args:
        **settings: the fields of `GenerateSettings`.
        on_text: called with each new part of the text as it is generated, for a single prompt.

    `model` may also be a `CausalLM`. Its vocabulary may have no capitals or accents; the text is
    then without them, too.

    Returns:
        One `GeneratedText` per prompt, in order. Its text goes on at the prompt: it begins with a
        space, or with the rest of the prompt's last word.

    Raises:
        InputError: the model is not a causal language model or cannot generate, a setting is out of
            its bounds, or a prompt is empty or too long.
    """
    settings = GenerateSettings.of(settings)
    task = causal_lm(settings.model)
    if on_text is not None and len(settings.prompt) > 1:
        raise InputError("`on_text` is for a single prompt. Pass one, or leave `on_text` out.")
    return [
        text
        for first in range(0, len(settings.prompt), _SEQUENCES_TOGETHER)
        for text in _generated(task, settings, first, on_text)
    ]


def _generated(task, settings, first, on_text):
    """The texts after some prompts, from the number `first` on."""
    prompts = settings.prompt[first : first + _SEQUENCES_TOGETHER]
    inputs = _inputs(task, prompts)
    given = {name: getattr(settings, name) for name in ("temperature", "top_k", "top_p")}
    given = {name: value for name, value in given.items() if value is not None}
    sampling = Sampling.of(
        len(prompts),
        max_tokens=settings.max_tokens,
        seed=settings.seed + first,
        **(given or {"top_k": 1}),
    )
    generator, position = task.generator, 0
    before = [
        task.tokenizer.detokenize(ids) for ids in _rows(inputs["input_ids"], inputs["input_mask"])
    ]
    size = _size(task, inputs, settings)
    proceed = generator.proceed_with_xla if settings.jit_compile else generator.proceed
    state = generator.begin(generator.read(inputs, size), sampling)
    columns = [state.token.numpy()[None]]
    count = size if on_text is None else _STREAMED_TOKENS  # `max_tokens` ends each text
    while True:
        tokens = np.concatenate(columns).T  # (B, T)
        texts = [
            task.tokenizer.detokenize([*old, *new])[len(text) :]
            for text, old, new in zip(
                before,
                _rows(inputs["input_ids"], inputs["input_mask"]),
                _rows(tokens, tokens >= 0),
                strict=True,
            )
        ]
        is_over = bool(tf.reduce_all(state.has_ended))
        if on_text is not None:
            # What may be a part of a character waits for the rest of it.
            shown = texts[0] if is_over else texts[0].rstrip("\ufffd")
            on_text(shown[position:])
            position = len(shown)
        if is_over:
            break
        new, state = proceed(state, sampling, count)
        columns.append(new.numpy())
    check_finite({"log_probability": state.log_probability.numpy()})
    return [
        GeneratedText(prompt, text, float(nats))
        for prompt, text, nats in zip(prompts, texts, state.log_probability.numpy(), strict=True)
    ]


@takes(NextTokensSettings)
@under_tensorflow_only
def next_tokens(**settings) -> list[Candidate]:
    """Returns the most probable tokens after the beginning of a text.

    Args:
        **settings: the fields of `NextTokensSettings`.

    `model` may also be a `CausalLM`. Tokens are named as in `fill_mask`.

    Returns:
        `Candidate` tuples (token, probability), the most probable first.

    Raises:
        InputError: as for `generate`.
    """
    settings = NextTokensSettings.of(settings)
    task = causal_lm(settings.model)
    inputs = _inputs(task, [settings.prompt])
    # A cache that has no room for more.
    prompts = task.generator.read(inputs, tf.shape(inputs["input_ids"])[1])
    logits = task.generator.logits(prompts.last).numpy()
    check_finite({"causal_lm": logits})
    return most_probable(logits[0], task.tokenizer.vocabulary, settings.top_k)


@takes(LogProbabilitySettings)
def log_probability(**settings) -> list[TextProbability]:
    """Returns how probable texts are to a causal language model.

    It is the sum of the log-probabilities of a text's tokens, each after those before it, without
    that of the text's end. `surprisal` has those of the single tokens, and says how long texts are
    read and when the first token counts as given.

    Args:
        **settings: the fields of `LogProbabilitySettings`.

    `model` may also be a `CausalLM`.

    Returns:
        One `TextProbability` per text, in order: `log_probability` (nats), `tokens` and
        `perplexity`.

    Raises:
        InputError: the model is not a causal language model.
    """
    settings = LogProbabilitySettings.of(settings)
    task = causal_lm(settings.model)
    return [
        TextProbability(measured.log_probability, len(measured.tokens))
        for measured in surprisal(model=task, text=settings.text)
    ]


def causal_lm(model):
    """The `CausalLM` of a folder, or the given one, which has a tokenizer.

    Raises InputError if it is another task.
    """
    task = as_task(model)
    if "fill-mask" in task.OFFERS:
        raise InputError(
            f"{model} contains a masked LM, which fills [MASK] and cannot continue a text. Use a "
            "model that was pre-trained with the objective causal-lm."
        )
    check_task(
        task,
        "generate",
        model=model,
        lacks="language-model head",
        advice="Use a model that was pre-trained with the objective causal-lm.",
    )
    return task


def _inputs(task, prompts):
    """The encoder's inputs for prompts; InputError for an empty or too long one."""
    inputs = prompt_inputs(task.tokenizer.tokenize(prompts), task=task)
    longest = task.config.max_length
    for prompt, length in zip(prompts, inputs["input_mask"].numpy().sum(axis=1), strict=True):
        if longest is not None and length >= longest:
            raise InputError(
                f"The prompt that begins with {prompt[:20]!r} has {length} tokens, and the model "
                f"has positions for {longest - 1}. Pass a shorter prompt."
            )
        if not length:
            raise InputError("The prompt has no token. Pass at least one word.")
    return inputs


def _size(task, inputs, settings):
    """The positions of a cache: those of the longest prompt and its new tokens, or all."""
    needed = inputs["input_ids"].shape[1] + settings.max_tokens
    if settings.jit_compile:
        needed = -(-needed // _COMPILED_MULTIPLE) * _COMPILED_MULTIPLE
    longest = task.config.max_length
    return needed if longest is None else min(needed, longest)


def _rows(ids, is_token):
    """The ids of each sequence, a list of lists."""
    pairs = zip(np.asarray(ids), np.asarray(is_token, bool), strict=True)
    return [row[mask].tolist() for row, mask in pairs]
