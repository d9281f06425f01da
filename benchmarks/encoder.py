"""The encoder's speed beside keras-nlp's BertBackbone and PyTorch transformers' BertModel.

On a CPU: forward, and forward with backward (dropout on), at mini and base, lengths 128 and 512,
full batches and ones that are half padding, float32 and bfloat16; keras-nlp and ours with and
without XLA. All contenders take turns in one run, so that the ratios hold on a busy machine; the
time of each is the least of its turns.

On a machine with a GPU and KERAS_BACKEND=jax: base at length 512 in bfloat16, as model FLOPs over
the card's matrix rate, which is measured too.

    python benchmarks/encoder.py                                  # all of it: most of an hour
    python benchmarks/encoder.py --architecture mini --length 128 --dtype float32
    python benchmarks/encoder.py --family modernbert --length 128        # at mini's sizes
    KERAS_BACKEND=jax python benchmarks/encoder.py --gpu

    python benchmarks/encoder.py --served FOLDER …

With `--served`, for each model folder a classifier with a new head: milliseconds of processor for
one text of a sentence, from strings to labels, of our export's signature and of the pipeline of
`transformers` over the same saved folder, taking turns, medians, one thread each; both answer the
same.

With a `--family`, the encoder of that `model_type` and the base class of `transformers` alone, in
float32: milliseconds of processor for both directions, and for one text of 32 tokens, one thread
each.
"""

import os
import subprocess
import sys

import peers  # noqa: F401

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import argparse
import dataclasses
import itertools
import statistics
import time

import keras
import numpy as np
from peers import keras_nlp_backbone

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder

VOCABULARY = 30522
TOKENS = {"mini": 4096, "base": 2048}  # in a batch, padding counted in
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


@dataclasses.dataclass(frozen=True)
class Point:
    architecture: str
    length: int
    padding: str
    dtype: str

    def config(self):
        return BertConfig.preset(self.architecture, vocab_size=VOCABULARY, hidden_act="gelu_new")

    def batch(self):
        """-> ids, mask, segments (B, S)."""
        rng = np.random.default_rng(0)
        shape = (max(1, TOKENS[self.architecture] // self.length), self.length)
        ids = rng.integers(1000, VOCABULARY, shape).astype("int32")
        real = self.length if self.padding == "full" else self.length // 2
        mask = np.broadcast_to(np.arange(self.length) < real, shape).astype("int32")
        return ids, mask, np.zeros(shape, "int32")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--architecture", choices=("mini", "base"), action="append")
    parser.add_argument("--length", type=int, action="append")
    parser.add_argument("--padding", choices=("full", "half"), action="append")
    parser.add_argument("--dtype", choices=tuple(POLICIES), action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--family", action="append", help="model_type, beside `transformers` alone")
    parser.add_argument("--served", nargs="+", help="folders, served beside `transformers`")
    parser.add_argument("--gpu", action="store_true", help="base at 512 on a GPU under JAX")
    parser.add_argument("--here", action="store_true", help="do not start a process a point")
    arguments = parser.parse_args()
    if arguments.gpu:
        measure_gpu(rounds=arguments.rounds)
        return
    if arguments.served:
        one_thread_each()
        for folder in arguments.served:
            measure_served(folder, rounds=40 * arguments.rounds)
        return
    if arguments.family:
        one_thread_each()
        for family, length in itertools.product(arguments.family, arguments.length or (128, 512)):
            measure_family(family, length=length, rounds=arguments.rounds)
        return
    grid = itertools.product(
        arguments.architecture or ("mini", "base"),
        arguments.length or (128, 512),
        arguments.padding or ("full", "half"),
        arguments.dtype or ("float32", "bfloat16"),
    )
    if not arguments.here:
        print(f"| point | direction | {' | '.join(CONTENDERS)} | ours / fastest other | GFLOP/s |")
        print("|---|---|" + "---|" * len(CONTENDERS) + "---|---|", flush=True)
    for choices in grid:
        if arguments.here:
            point = Point(*choices)
            measure(point, rounds=arguments.rounds, rate=matrix_rate(point.dtype))
        else:
            in_a_process_of_its_own(choices, rounds=arguments.rounds)


def one_thread_each():
    """For seconds of processor, which waiting threads would add to."""
    import tensorflow as tf
    import torch

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    torch.set_num_threads(1)


def in_a_process_of_its_own(choices, *, rounds):
    """Measures a point when nothing is left in memory of the one before (base takes 6 GiB)."""
    names = ("--architecture", "--length", "--padding", "--dtype")
    flags = [str(x) for pair in zip(names, choices, strict=True) for x in pair]
    command = [sys.executable, __file__, "--here", "--rounds", str(rounds), *flags]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def measure(point, *, rounds, rate):
    for direction in ("forward", "forward+backward"):
        steps = {}
        for name, make in CONTENDERS.items():
            steps[name] = make(point, training=direction != "forward")
        times = take_turns(steps, rounds=rounds)
        ours = min(t for name, t in times.items() if name.startswith("ours"))
        others = min(t for name, t in times.items() if not name.startswith("ours"))
        rate_here = flops(point, training=direction != "forward") / ours / 1e9
        cells = " | ".join(f"{1000 * times[name]:.0f} ms" for name in CONTENDERS)
        print(
            f"| {point.architecture} {point.length} {point.padding} {point.dtype} | {direction} | "
            f"{cells} | {ours / others:.2f} | {rate_here:.0f} of {rate:.0f} |",
            flush=True,
        )


SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
_OTHER_KEYS = dict.fromkeys(SIZES)
_GPT = {
    **{**_OTHER_KEYS, "max_position_embeddings": None, "use_cache": False},
    **{"n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 512},
}
_ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1}
# What a config needs that is not one of mini's sizes, by its own keys; None: the key is left out.
FAMILIES = {
    "distilbert": {**_OTHER_KEYS, "dim": 256, "n_layers": 4, "n_heads": 4, "hidden_dim": 1024},
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), _ROBERTA),
    **dict.fromkeys(("gpt2", "openai-gpt"), _GPT),
    "mpnet": {"max_position_embeddings": 514},
    "deberta-v2": {
        **{"relative_attention": True, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
        **{"pos_att_type": ["p2c", "c2p"], "position_buckets": 256},
        **{"position_biased_input": False, "type_vocab_size": 0},
    },
    "modernbert": {"intermediate_size": 384, "pad_token_id": 0, "type_vocab_size": None},
}


def measure_family(model_type, *, length, rounds):
    """Prints a table row of a family at mini's sizes: both directions, and a served text."""
    import tensorflow as tf
    import torch
    import transformers

    from keras_bert.encoders import encoder_class, read_config

    fields = {
        **BertConfig.preset("mini", vocab_size=VOCABULARY).to_dict(),
        **{"hidden_act": "gelu", "model_type": model_type, **FAMILIES.get(model_type, {})},
    }
    names = ("vocab_size", "max_position_embeddings", *SIZES, *FAMILIES.get(model_type, {}))
    given = {name: fields[name] for name in names if fields[name] is not None}
    config = read_config({"model_type": model_type, **given}, source="the benchmark")
    encoder = encoder_class(model_type)(config)
    their_encoder = transformers.AutoModel.from_config(
        transformers.AutoConfig.for_model(model_type, **given)
    )
    point = Point("mini", length, "full", "float32")
    ids, mask, segments = point.batch()
    arrays = {"input_ids": ids, "input_mask": mask, "segment_ids": segments}
    cells = []
    for inputs in (arrays, {name: x[:1, :32] for name, x in arrays.items()}):
        is_text = len(inputs["input_ids"]) == 1
        ours = {name: tf.constant(inputs[name]) for name in encoder.input_names}
        keys = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}
        tensors = {keys.get(n, n): torch.tensor(inputs[n]).long() for n in encoder.input_names}
        for training in (False,) if is_text else (False, True):
            steps = {
                "ours": family_step(encoder, ours, training=training),
                "transformers": pytorch_step(their_encoder, tensors, training=training),
            }
            options = {"rounds": rounds * (20 if is_text else 1), "clock": time.process_time}
            times = take_turns(steps, **options)
            cells += [f"{1000 * seconds:.1f}" for seconds in times.values()]
    print(f"| {model_type} | {length} | {' | '.join(cells)} |", flush=True)


TEXT = "The direct debit came back unpaid, and the invoice for June shows the wrong amount again."


def measure_served(folder, *, rounds):
    """Prints a table row of a classifier over a model folder: a served text on either side."""
    import tempfile

    import tensorflow as tf
    import torch
    import transformers

    import keras_bert as kb

    keras.utils.set_random_seed(0)
    encoder, tokenizer = kb.load(folder)
    names = encoder.tensor_names(encoder.config).names_for("classifier")
    options = {} if names is None else {"pooling": names.pooling}
    task = kb.Classifier(encoder, tokenizer, labels=["a", "b"], max_length=128, **options)
    with tempfile.TemporaryDirectory() as output:
        task.save(f"{output}/model")
        exported = tf.saved_model.load(str(task.export(f"{output}/exports")))
        their_pipeline = transformers.pipeline(
            "text-classification", model=f"{output}/model", device="cpu"
        )
    signature, text = exported.signatures["serving_default"], tf.constant([TEXT])

    def pipeline():
        with torch.inference_mode():
            return their_pipeline(TEXT)[0]

    steps = {"ours": lambda: signature(text=text), "transformers": pipeline}
    np.testing.assert_allclose(signature(text=text)["score"], pipeline()["score"], atol=1e-4)
    times = take_turns(steps, rounds=rounds, clock=time.process_time, statistic=statistics.median)
    cells = " / ".join(f"{1000 * seconds:.1f}" for seconds in times.values())
    print(f"| {encoder.config.model_type} | {cells} |", flush=True)


def family_step(encoder, inputs, *, training):
    """A function that runs an encoder forward, or forward and backward, without XLA."""
    import tensorflow as tf

    @tf.function
    def forward():
        return encoder(inputs, training=False)["sequence_output"]

    @tf.function
    def both():
        with tf.GradientTape() as tape:
            states = encoder(inputs, training=True)["sequence_output"]
            loss = tf.reduce_mean(tf.square(states))
        gradients = tape.gradient(loss, encoder.trainable_variables)
        return [tf.convert_to_tensor(x) for x in gradients]

    return both if training else forward


def pytorch_step(model, inputs, *, training):
    """The same of a model of `transformers`."""
    import torch

    def forward():
        model.eval()
        with torch.no_grad():
            model(**inputs)

    def both():
        model.train().zero_grad(set_to_none=True)
        model(**inputs).last_hidden_state.square().mean().backward()

    return both if training else forward


def take_turns(steps, *, rounds, clock=time.perf_counter, statistic=min):
    """-> the least seconds of each step by a clock, after one round that is not counted.

    `of_all` may be another function of the seconds of all rounds.
    """
    times = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            start = clock()
            step()
            if turn:
                times[name].append(clock() - start)
    return {name: statistic(seconds) for name, seconds in times.items()}


def flops(point, *, training):
    """Floating-point operations of the matrix products, padding counted in."""
    config, (ids, _, _) = point.config(), point.batch()
    width, wide = config.hidden_size, config.intermediate_size
    token = 4 * width * width + 2 * width * wide + 2 * ids.shape[1] * width
    forward = 2 * ids.size * config.num_hidden_layers * token
    return forward * (3 if training else 1)


def keras_step(model, inputs, *, training, jit_compile):
    """A function that runs a Keras model forward, or forward and backward, under TensorFlow."""
    import tensorflow as tf

    inputs = {name: tf.constant(x) for name, x in inputs.items()}

    def asked(training):
        if not isinstance(model, BertEncoder):
            return model(inputs, training=training)
        if not training:
            return model(inputs, training=False)
        states = model(inputs, outputs=("sequence_output", "first_output"), training=True)
        return {**states, "pooled_output": model.pooler(states["first_output"])}

    @tf.function(jit_compile=jit_compile)
    def forward():
        return asked(training=False)["sequence_output"]

    @tf.function(jit_compile=jit_compile)
    def both():
        with tf.GradientTape() as tape:
            outputs = asked(training=True)
            loss = sum(
                tf.reduce_mean(tf.square(tf.cast(outputs[name], "float32")))
                for name in ("sequence_output", "pooled_output")
            )
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]

    return both if training else forward


def ours(jit_compile):
    def make(point, *, training):
        encoder = BertEncoder(point.config(), dtype=POLICIES[point.dtype])
        encoder.new_pooler()
        ids, mask, segments = point.batch()
        inputs = {"input_ids": ids, "input_mask": mask, "segment_ids": segments}
        return keras_step(encoder, inputs, training=training, jit_compile=jit_compile)

    return make


def keras_nlp(jit_compile):
    def make(point, *, training):
        backbone = keras_nlp_backbone(point.config(), dtype=POLICIES[point.dtype])
        ids, mask, segments = point.batch()
        inputs = {"token_ids": ids, "padding_mask": mask, "segment_ids": segments}
        return keras_step(backbone, inputs, training=training, jit_compile=jit_compile)

    return make


def pytorch(point, *, training):
    import torch
    import transformers

    config = point.config().to_dict()
    model = transformers.BertModel(transformers.BertConfig(**config))
    model = model.to(getattr(torch, point.dtype)).train(training)
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = {name: torch.tensor(x).long() for name, x in zip(names, point.batch(), strict=True)}

    def forward():
        with torch.no_grad():
            model(**inputs)

    def both():
        model.zero_grad(set_to_none=True)
        outputs = model(**inputs)
        parts = (outputs.last_hidden_state, outputs.pooler_output)
        sum(part.float().square().mean() for part in parts).backward()

    return both if training else forward


CONTENDERS = {
    "ours": ours(False),
    "ours XLA": ours(True),
    "keras-nlp": keras_nlp(False),
    "keras-nlp XLA": keras_nlp(True),
    "transformers": pytorch,
}


def matrix_rate(dtype):
    """The machine's operations a second in a large matrix product of that type (TensorFlow)."""
    import tensorflow as tf

    size = 2048
    a = tf.cast(tf.random.normal((size, size)), dtype)
    best = take_turns({"product": lambda: tf.matmul(a, a)}, rounds=8)["product"]
    rate = 2 * size**3 / best / 1e9
    return rate


def measure_gpu(*, rounds):
    """Prints the share of the card's bfloat16 matrix rate that base at length 512 reaches."""
    import jax
    import jax.numpy as jnp

    if keras.backend.backend() != "jax":
        raise SystemExit("The GPU part runs with KERAS_BACKEND=jax.")
    print(f"Device: {jax.devices()[0].device_kind}")
    a = jnp.ones((8192, 8192), jnp.bfloat16)
    product = jax.jit(lambda a: a @ a)
    best = take_turns({"product": lambda: product(a).block_until_ready()}, rounds=rounds)
    rate = 2 * 8192**3 / best["product"]
    print(f"Matrix product of 8192 in bfloat16: {rate / 1e12:.0f} TFLOP/s")
    for batch_size, attention_dropout in itertools.product((32, 64, 128), (0.0, 0.1)):
        point = Point("base", 512, "full", "bfloat16")
        config = dataclasses.replace(point.config(), attention_probs_dropout_prob=attention_dropout)
        encoder = BertEncoder(config, dtype="mixed_bfloat16")
        encoder.new_pooler()
        ids = np.random.default_rng(0).integers(1000, VOCABULARY, (batch_size, 512), "int32")
        inputs = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": 0 * ids}
        inputs = {name: jnp.asarray(x) for name, x in inputs.items()}
        per_token = flops(point, training=False) / TOKENS["base"]
        for name, step, factor in (
            ("forward", _jax_forward(encoder, inputs), 1),
            ("forward+backward", _jax_both(encoder, inputs), 3),
        ):
            seconds = take_turns({name: step}, rounds=rounds)[name]
            done = factor * per_token * ids.size / seconds
            print(
                f"batch {batch_size}, attention dropout {attention_dropout}, {name}: "
                f"{ids.size / seconds:,.0f} tokens/s, {done / 1e12:.0f} TFLOP/s, "
                f"{100 * done / rate:.0f} % of the matrix rate",
                flush=True,
            )


def _jax_forward(encoder, inputs):
    import jax

    @jax.jit
    def forward(trainable, others):
        outputs, _ = encoder.stateless_call(trainable, others, inputs, training=False)
        return outputs["sequence_output"]

    state = [v.value for v in encoder.trainable_variables]
    others = [v.value for v in encoder.non_trainable_variables]
    return lambda: forward(state, others).block_until_ready()


def _jax_both(encoder, inputs):
    import jax
    import jax.numpy as jnp

    def loss(trainable, others):
        outputs, others = encoder.stateless_call(trainable, others, inputs, training=True)
        return jnp.mean(jnp.square(outputs["sequence_output"].astype("float32"))), others

    gradient = jax.jit(jax.grad(loss, has_aux=True))
    state = [v.value for v in encoder.trainable_variables]
    others = [v.value for v in encoder.non_trainable_variables]
    return lambda: jax.block_until_ready(gradient(state, others))


if __name__ == "__main__":
    main()
