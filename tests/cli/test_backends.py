"""The Keras backends that each command runs on."""

from keras_bert.cli.main import COMMANDS

_BOTH, _NONE = ("tensorflow", "jax"), ()
BACKENDS = {
    **dict.fromkeys(("pretrain", "finetune", "sweep", "glue", "distill"), _BOTH),
    **dict.fromkeys(("evaluate", "compare", "predict", "embed", "zero-shot"), _BOTH),
    **dict.fromkeys(("fill-mask", "senses", "nearest", "index", "search", "mine-negatives"), _BOTH),
    # By a process with TensorFlow if the backend is JAX.
    **dict.fromkeys(("export", "generate", "surprisal", "follows"), _BOTH),
    **dict.fromkeys(("convert", "quickstart"), _BOTH),
    **dict.fromkeys(("serve", "ask", "push", "vocab", "pretraining-data", "inspect"), _NONE),
    **dict.fromkeys(("init", "doctor", "completion"), _NONE),
}


def test_every_command_names_the_backends_that_it_runs_on():
    assert {name: command.backends for name, command in COMMANDS.items()} == BACKENDS
