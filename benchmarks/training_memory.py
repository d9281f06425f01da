"""Memory and time of a fine-tuning step: all weights or LoRA, activations stored or recomputed.

A classifier over a BERT of random weights, dropout on, full batches. Each form has a process of its
own. On TensorFlow: the processor time of a step, the least of several, and how far the resident
memory rises above that of the built model, weights and Adam's moments left out. With --jax: what
XLA reserves for the temporary values of the compiled step's loss and gradients on this device,
without running it. XLA's default schedule on a CPU computes early what is to be computed again:

    XLA_FLAGS=--xla_cpu_enable_concurrency_optimized_scheduler=false

    python benchmarks/training_memory.py
    python benchmarks/training_memory.py --architecture base --batch 8 --length 128
    KERAS_BACKEND=jax python benchmarks/training_memory.py --jax --architecture base --length 512
"""

import argparse
import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

FORMS = {
    "all weights": {},
    "all weights, recomputed": {"recomputes": True},
    "LoRA of rank 8": {"rank": 8},
    "LoRA of rank 8, recomputed": {"rank": 8, "recomputes": True},
}
VOCABULARY = 30522


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--architecture", choices=("mini", "small", "base"), default="mini")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--jax", action="store_true", help="compiled memory, on JAX")
    parser.add_argument("--form", choices=FORMS, help="this one alone, in this process")
    arguments = parser.parse_args()
    if arguments.form is None:
        for form in FORMS:
            subprocess.run([sys.executable, *sys.argv, "--form", form], check=True)
        return
    task = make(arguments, **FORMS[arguments.form])
    trained = (
        sum(weight.value.size for weight in task.trainable_weights)
        if arguments.jax
        else (sum(int(weight.value.shape.num_elements()) for weight in task.trainable_weights))
    )
    measured = compiled(task, arguments) if arguments.jax else stepped(task, arguments)
    moments = 8 * trained / 2**20  # two float32 numbers for each weight
    print(
        f"{arguments.form:28} {trained:>12,} trained, {moments:7.1f} MiB of moments, {measured}",
        flush=True,
    )


def make(arguments, *, rank=None, recomputes=False):
    """A compiled classifier."""
    import keras

    from keras_bert.encoders.bert import BertConfig
    from keras_bert.encoders.bert.encoder import BertEncoder
    from keras_bert.tasks.classification.classifier import Classifier

    keras.utils.set_random_seed(0)
    config = BertConfig.preset(arguments.architecture, vocab_size=VOCABULARY)
    encoder = BertEncoder(config, dtype=arguments.dtype)
    if rank is not None:
        encoder.enable_lora(rank)
    encoder.recomputes = recomputes
    task = Classifier(encoder, labels=["a", "b"], max_length=arguments.length)
    task.compile_defaults(keras.optimizers.AdamW(1e-4), jit_compile=False)
    task.optimizer.build(task.trainable_variables)
    return task


def batch(arguments):
    """-> inputs by name, and labels."""
    import numpy as np

    shape = (arguments.batch, arguments.length)
    ids = np.random.default_rng(0).integers(1000, VOCABULARY, shape).astype("int32")
    ones = np.ones(shape, "int32")
    inputs = {"input_ids": ids, "input_mask": ones, "segment_ids": 0 * ones}
    return inputs, {"logits": np.zeros(arguments.batch, "int32")}


def stepped(task, arguments):
    """The processor time of a step, and what it adds to the resident memory."""
    inputs, labels = batch(arguments)
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    seconds = []
    for _ in range(arguments.steps):
        began = time.process_time()
        task.train_on_batch(inputs, labels)
        seconds.append(time.process_time() - began)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"{min(seconds[1:]):6.2f} s of a processor, {(peak - before) / 2**20:7.0f} MiB more"


def compiled(task, arguments):
    """The temporary memory of the compiled loss and gradients."""
    import jax

    inputs, labels = batch(arguments)
    others = [variable.value for variable in task.non_trainable_variables]

    def loss(trained, others, inputs, labels):
        outputs, others = task.stateless_call(trained, others, inputs, training=True)
        return task.compute_loss(inputs, labels, outputs), others

    step = jax.jit(jax.value_and_grad(loss, has_aux=True))
    trained = [variable.value for variable in task.trainable_variables]
    program = step.lower(trained, others, inputs, labels).compile()
    temporary = program.memory_analysis().temp_size_in_bytes
    return f"{temporary / 2**20:7.0f} MiB of temporary values"


if __name__ == "__main__":
    main()
