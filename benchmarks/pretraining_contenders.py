"""The contenders whose steps pretraining_step.py measures, and the rows of the measurement."""

import dataclasses
import statistics
import time
from pathlib import Path

# What imports TensorFlow is imported when it is used: a machine with a GPU may have JAX alone.
import keras
import numpy as np
from peers import keras_nlp_backbone

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.gpt import Gpt2Config
from keras_bert.encoders.gpt.encoder import GptEncoder
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.language_models import CausalLM
from keras_bert.tasks.pretraining.pretrainer import FillMask
from keras_bert.text.vocabulary_files import load_vocabulary

# Rows in a batch, tokens in a row.
ROWS = {"tiny": (32, 64), "mini": (32, 128), "base": (16, 128), "gpt2-mini": (32, 128)}
VOCABULARY = {"tiny": 8000, "mini": 8000, "base": 30522, "gpt2-mini": 8000, "gpt2": 50257}
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
MASKED_RATE = 0.15
BATCHES = {"tiny": 8, "mini": 4, "base": 1, "gpt2-mini": 2}  # of a turn


@dataclasses.dataclass(frozen=True)
class Point:
    architecture: str
    rows: str
    dtype: str
    count: int | None = None  # of batches in a turn, if not as many as usual
    text: Path | None = None  # the data folder of real rows
    sizes: tuple[int, int] | None = None  # rows in a batch, tokens in a row, if not as usual
    dropout: float = 0.1

    @property
    def is_causal(self):
        return self.architecture.startswith("gpt2")

    @property
    def config(self):
        if self.is_causal:
            names = ("hidden_dropout_prob", "embedding_dropout", "attention_probs_dropout_prob")
            dropout = dict.fromkeys(names, self.dropout)
            rows = VOCABULARY[self.architecture]
            return Gpt2Config.preset(self.architecture, vocab_size=rows, **dropout)
        return BertConfig.preset(
            self.architecture,
            vocab_size=VOCABULARY[self.architecture],
            hidden_act="gelu_new",
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
        )

    @property
    def shape(self):
        return self.sizes or ROWS[self.architecture]

    @property
    def policy(self):
        return POLICIES[self.dtype]

    @property
    def predictions(self):
        return round(MASKED_RATE * self.shape[1])

    def batches(self, *, by_tokens=False):
        """-> a list of (x, y, sample_weight), as our task takes them."""
        count, (size, length) = self.count or BATCHES[self.architecture], self.shape
        if self.rows == "full":
            return [_full_rows(self, np.random.default_rng(n)) for n in range(count)]
        from keras_bert.tasks.pretraining.features import training_dataset

        rows = {"batch_tokens": size * length} if by_tokens else {"batch_size": size}
        folder = DataFolder.open(self.text)
        vocabulary = load_vocabulary(self.text.parent / "vocab.txt")
        dataset = training_dataset(folder, vocabulary=vocabulary, seed=0, **rows)
        return list(dataset.take(count).as_numpy_iterator())


def _full_rows(point, rng):
    size, length = point.shape
    ids = rng.integers(1000, VOCABULARY[point.architecture], (size, length), "int32")
    if point.is_causal:
        inputs = {"input_ids": ids, "input_mask": np.ones_like(ids)}
        following = ids[:, 1:]
        return inputs, {"causal_lm": following}, {"causal_lm": np.ones(following.shape, "float32")}
    positions = np.argsort(rng.random((size, length - 1)), axis=1)[:, : point.predictions] + 1
    inputs = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "masked_lm_positions": np.sort(positions, axis=1).astype("int32"),
    }
    labels = rng.integers(1000, VOCABULARY[point.architecture], positions.shape, "int32")
    return inputs, {"masked_lm": labels}, {"masked_lm": np.ones(positions.shape, "float32")}


def real_tokens(batches):
    return sum(int(x["input_mask"].sum()) for x, _, _ in batches)


def our_encoder(point, *, dtype):
    return (GptEncoder if point.is_causal else BertEncoder)(point.config, dtype=dtype)


def our_model(point, *, jit_compile):
    kind = CausalLM if point.is_causal else FillMask
    task = kind(our_encoder(point, dtype=point.policy), _tokenizer(point))
    optimizer = make_optimizer(
        task,
        learning_rate=1e-4,
        warmup=0.1,
        weight_decay=0.01,
        steps=10**6,
        measures_gradients=keras.backend.backend() == "tensorflow",  # if runs have it
    )
    task.compile_defaults(optimizer, counts_finite=True, jit_compile=jit_compile)
    return task


def _tokenizer(point):
    """The tokenizer that tells masked tokens from others, as in a run; made-up rows need none."""
    if point.rows == "full":
        return None
    from keras_bert.text.tokenizer import Tokenizer

    vocabulary = load_vocabulary(point.text.parent / "vocab.txt")
    return Tokenizer.from_vocab(vocabulary, lowercase=True)


def ours(jit_compile):
    def make(point):
        batches = point.batches(by_tokens=not jit_compile)
        return keras_turn(our_model(point, jit_compile=jit_compile), batches)

    return make


def keras_nlp(jit_compile):
    def make(point):
        from keras_nlp.models import BertMaskedLM

        backbone = keras_nlp_backbone(point.config, dtype=point.policy)
        model = BertMaskedLM(backbone, preprocessor=None, dtype=point.policy)
        optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0)
        optimizer.build(model.trainable_variables)
        model.compile(optimizer=optimizer, jit_compile=jit_compile)
        names = {"input_ids": "token_ids", "input_mask": "padding_mask"}
        names |= {"masked_lm_positions": "mask_positions"}
        batches = [
            (
                {names.get(name, name): array for name, array in x.items()},
                *y.values(),
                *w.values(),
            )
            for x, y, w in point.batches()
        ]
        turn, _ = keras_turn(model, batches, tokens=real_tokens(point.batches()))
        return turn, real_tokens(point.batches())

    return make


def keras_turn(model, batches, *, tokens=None):
    """-> (a function that trains on all batches, their real tokens)."""
    model.make_train_function()
    iterator = iter(keras_dataset(batches))

    def turn():
        for _ in batches:
            logs = model.train_function(iterator)
        float(logs["loss"])  # when it is there, the work is done

    return turn, real_tokens(batches) if tokens is None else tokens


def keras_dataset(batches):
    """The batches again and again, out of memory; shapes are static if all have the same."""
    import tensorflow as tf

    from keras_bert.inputs.batches import resolved

    def spec(*arrays):
        shape = tuple(
            n[0] if len(set(n)) == 1 else None for n in zip(*map(np.shape, arrays), strict=True)
        )
        return tf.TensorSpec(shape, arrays[0].dtype)

    signature = tf.nest.map_structure(spec, *batches)
    dataset = tf.data.Dataset.from_generator(lambda: batches, output_signature=signature)
    return resolved(dataset.cache().repeat())


def _peer_model(point):
    import transformers as peer

    if point.is_causal:
        return peer.GPT2LMHeadModel(peer.GPT2Config(**point.config.to_dict())).train()
    return peer.BertForMaskedLM(peer.BertConfig(**point.config.to_dict())).train()


def transformers(compiled):
    def make(point):
        import torch

        model = _peer_model(point)
        called = torch.compile(model) if compiled else model
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)
        half = torch.autocast("cpu", torch.bfloat16, enabled=point.dtype == "bfloat16")
        batches = [_for_torch(*batch, as_long=compiled) for batch in point.batches()]

        def turn():
            for inputs in batches:
                with half:
                    loss = called(**inputs).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            loss.item()

        return turn, real_tokens(point.batches())

    return make


def transformers_seconds(point, *, steps, rounds):
    """Seconds of a step of transformers' compiled model: the median of turns of `steps`.

    It has what a GPU is used with: autocast, SDPA attention, fused AdamW, TensorFloat-32 and
    clipping. None if there is no torch.
    """
    device = torch_device()
    if device is None:
        return None
    import torch

    torch.set_float32_matmul_precision("high")
    model = _peer_model(point).to(device)
    called = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)
    half = torch.autocast(device, torch.bfloat16, enabled=point.dtype == "bfloat16")
    batch = _for_torch(*point.batches()[0], as_long=True)
    inputs = {name: x.to(device) for name, x in batch.items()}

    def step():
        with half:
            loss = called(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return _seconds_in_torch(step, steps=steps, rounds=rounds)


def transformers_forward_seconds(point, *, steps, rounds):
    """The seconds of the encoder's forward pass alone, its weights in the dtype."""
    device = torch_device()
    if device is None:
        return None
    import torch

    torch.set_float32_matmul_precision("high")
    model = _peer_model(point).base_model.to(device, getattr(torch, point.dtype)).eval()
    called = torch.compile(model)
    batch = _for_torch(*point.batches()[0], as_long=True)
    inputs = {n: batch[n].to(device) for n in ("input_ids", "attention_mask")}

    def forward():
        with torch.inference_mode():
            return called(**inputs, use_cache=False)[0]

    return _seconds_in_torch(forward, steps=steps, rounds=rounds)


def torch_device():
    """ "cuda"; "cpu" if JAX has no GPU either, to see that all of it runs; or None."""
    try:
        import jax
        import torch
    except ImportError:
        return None
    if torch.cuda.is_available():
        return "cuda"
    return "cpu" if jax.default_backend() == "cpu" else None


def _seconds_in_torch(step, *, steps, rounds):
    import torch

    seconds = []
    for _ in range(rounds + 1):
        begun = time.perf_counter()
        for _ in range(steps):
            result = step()
        result.flatten()[0].item()  # when it is there, the work is done
        seconds.append(time.perf_counter() - begun)
    torch._dynamo.reset()
    return statistics.median(seconds[1:]) / steps  # the first compiles


def _for_torch(x, y, weights, *, as_long):
    """A batch as its own collator gives it: padded to its longest row; -100 is no label."""
    import torch

    if "causal_lm" in y:
        labels = x["input_ids"]  # which its model moves by one itself
    else:
        labels = np.full_like(x["input_ids"], -100)
        rows, places = np.nonzero(weights["masked_lm"])
        labels[rows, x["masked_lm_positions"][rows, places]] = y["masked_lm"][rows, places]
    width = x["input_ids"].shape[1] if as_long else int(x["input_mask"].sum(axis=1).max())
    names = {"input_ids": "input_ids", "attention_mask": "input_mask"}
    arrays = {name: x[source] for name, source in names.items()} | {"labels": labels}
    return {name: torch.tensor(array[:, :width]).long() for name, array in arrays.items()}


def kernels(point):
    """The fastest step that could be: its products, gelu and AdamW, and nothing else."""
    from kernels import Kernels

    config, batches = point.config, point.batches()
    tokens = real_tokens(batches) // len(batches)
    counted = [array.sum() for _, _, w in batches for array in w.values()]
    predictions = round(sum(counted) / len(batches))
    width, wide = config.hidden_size, config.intermediate_size
    block = [(width, 3 * width), (width, width), (width, wide), (wide, width)]
    products = [(tokens, *kernel) for kernel in block] * config.num_hidden_layers
    gelus = [(tokens, wide)] * config.num_hidden_layers
    if not point.is_causal:  # the transform of a masked-LM head
        products.append((predictions, width, width))
        gelus.append((predictions, width))
    products.append((predictions, width, config.vocab_size))
    weights = our_model(point, jit_compile=False).trainable_variables
    step = Kernels(products, weights, gelus=gelus, dtype=point.dtype).step(gelu=True, adamw=True)

    def turn():
        for _ in batches:
            step()

    return turn, real_tokens(batches)


LEAST = "kernels alone"
CONTENDERS = {
    "ours": ours(False),
    "ours XLA": ours(True),
    "keras-nlp": keras_nlp(False),
    "keras-nlp XLA": keras_nlp(True),
    "transformers": transformers(False),
    "transformers compiled": transformers(True),
}
PEERS = tuple(name for name in CONTENDERS if not name.startswith("ours"))


def contenders_of(point, without=()):
    """The names of contenders with the point's task: a GPT-2 is not keras-nlp's, which has BERT."""
    names = [name for name in CONTENDERS if name not in without]
    return [name for name in names if not (point.is_causal and name.startswith("keras-nlp"))]
