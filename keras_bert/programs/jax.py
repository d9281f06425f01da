"""Programs of JAX: compiled functions, the steps of `fit`, and devices.

XLA compiles every program, again for each shape of its tensors. Batches are read by `tf.data` on
the CPU. The steps are ours, because those of Keras 3.15 compile the values of a loss's variables
into the program, and leave out what an optimizer measures.
"""

import contextlib
import functools

import keras
import numpy as np

# Whether XLA compiles every program, again for each shape of its tensors.
COMPILES_EACH_SHAPE = True
# Whether Keras's optimizer computes an update for each of several batches and then drops it.
UPDATES_EACH_BATCH = True
# What is raised in the other workers when one ends.
WORKER_LOST = ()


def compiled(function, *, signature=None, reads=(), assigned=(), prepared=None):
    """A function of tensors, compiled once for each of their shapes.

    Args:
        function: returns tensors, or a structure of them.
        signature: of the arguments of `prepared`, or None.
        reads: the models whose variables it reads, with those of their losses.
        assigned: the variables that it assigns.
        prepared: a function of TensorFlow's from the arguments to those of `function`, or None.
    """
    import jax

    if prepared is not None:
        import tensorflow as tf

        prepared = tf.function(prepared, input_signature=signature, autograph=False)
    assigned = list(assigned)
    variables = [v for model in reads for v in (*model.variables, *_states_of_losses(model))]

    @jax.jit
    def program(values, changed, arguments):
        mapping = zip((*variables, *assigned), (*values, *changed), strict=True)
        with keras.StatelessScope(list(mapping)) as scope:
            result = function(*arguments)
        return result, [scope.get_current_value(variable) for variable in assigned]

    @functools.wraps(function)
    def call(*arguments):
        arguments = arguments if prepared is None else prepared(*arguments)
        arguments = keras.tree.map_structure(np.asarray, arguments)
        values, changed = ([v.value for v in group] for group in (variables, assigned))
        result, changed = program(values, changed, arguments)
        for variable, value in zip(assigned, changed, strict=True):
            variable.assign(value)
        return result

    return call


def training_steps(model):
    """The `train_function` of a compiled model in place of Keras's, or None."""
    return _Steps(model, _Steps.train) if _is_compiled(model) else None


def evaluation_steps(model):
    """The `test_function` of a compiled model in place of Keras's, or None."""
    return _Steps(model, _Steps.evaluate) if _is_compiled(model) else None


def _is_compiled(model):
    return model.jit_compile and not model.run_eagerly


class _Steps:
    """A function of Keras's state and an iterator: `steps_per_execution` batches, a program each.

    Args:
        model: a compiled model.
        program: `_Steps.train` or `_Steps.evaluate`.
    """

    def __init__(self, model, program):
        self._model = model
        self._constants = _states_of_losses(model)
        self._program, self._compiled = functools.partial(program, self), None

    def __call__(self, state, iterator):
        if self._compiled is None:
            self._compiled = self._jit(state)
        logs = None
        for _ in range(self._model.steps_per_execution):
            try:
                batch = next(iterator)
            except StopIteration:
                if logs is None:
                    raise
                break
            logs, state = self._compiled(state, [v.value for v in self._constants], batch)
        return logs, state

    def _jit(self, state):
        import jax

        shardings = None
        if keras.distribution.distribution() is not None:
            shardings = None, keras.tree.map_structure(lambda value: value.sharding, state)
        return jax.jit(self._program, donate_argnums=0, out_shardings=shardings)

    def train(self, state, constants, batch):
        """One batch: -> (logs, state)."""
        import jax

        model = self._model
        trained, others, of_optimizer, of_metrics = state
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)

        def loss_of(trained):
            mapping = [
                *zip(model.trainable_variables, trained, strict=True),
                *zip(model.non_trainable_variables, others, strict=True),
                *zip(model.optimizer.variables, of_optimizer, strict=True),
                *zip(model.metrics_variables, of_metrics, strict=True),
                *zip(self._constants, constants, strict=True),
            ]
            with keras.StatelessScope(mapping, collect_losses=True) as scope:
                outputs = model(x, training=True)
                loss = model.compute_loss(x, y, outputs, weights, training=True)
                scaled = model.optimizer.scale_loss(loss)
            changed = (model.non_trainable_variables, model.metrics_variables)
            return scaled, (loss, outputs, *(_values(scope, group) for group in changed))

        gradient_of = jax.value_and_grad(loss_of, has_aux=True)
        (_, (loss, outputs, others, of_metrics)), gradients = gradient_of(trained)
        trained, of_optimizer, of_metrics = self._updated(
            gradients, trained, of_optimizer, of_metrics
        )
        logs, of_metrics = self._measured(of_metrics, x, y, outputs, weights, loss)
        return logs, (trained, others, of_optimizer, of_metrics)

    def _updated(self, gradients, trained, of_optimizer, of_metrics):
        """The weights, the optimizer's variables, and the metrics, of which it may have one."""
        model, optimizer = self._model, self._model.optimizer
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            # It applies gradients in one branch of a program, out of which no metric comes.
            return *optimizer.stateless_apply(of_optimizer, gradients, trained), of_metrics
        mapping = [
            *zip(model.trainable_variables, trained, strict=True),
            *zip(optimizer.variables, of_optimizer, strict=True),
            *zip(model.metrics_variables, of_metrics, strict=True),
        ]
        with keras.StatelessScope(mapping) as scope:
            optimizer.apply(gradients, model.trainable_variables)
        changed = (model.trainable_variables, optimizer.variables, model.metrics_variables)
        return tuple(_values(scope, group) for group in changed)

    def evaluate(self, state, constants, batch):
        """One batch: -> (logs, state)."""
        model = self._model
        trained, others, of_metrics = state
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
        mapping = [
            *zip(model.trainable_variables, trained, strict=True),
            *zip(model.non_trainable_variables, others, strict=True),
            *zip(model.metrics_variables, of_metrics, strict=True),
            *zip(self._constants, constants, strict=True),
        ]
        with keras.StatelessScope(mapping, collect_losses=True) as scope:
            outputs = model(x, training=False)
            loss = model.compute_loss(x, y, outputs, weights, training=False)
        others = _values(scope, model.non_trainable_variables)
        of_metrics = _values(scope, model.metrics_variables)
        logs, of_metrics = self._measured(of_metrics, x, y, outputs, weights, loss)
        return logs, (trained, others, of_metrics)

    def _measured(self, of_metrics, x, y, outputs, weights, loss):
        """-> (logs, the metrics' variables), with a batch added as Keras does."""
        model = self._model
        rows = next(value for value in keras.tree.flatten(x) if value is not None).shape[0]
        mapping = list(zip(model.metrics_variables, of_metrics, strict=True))
        with keras.StatelessScope(mapping) as scope:
            model._loss_tracker.update_state(loss, sample_weight=rows)
            logs = model.compute_metrics(x, y, outputs, weights)
        return logs, _values(scope, model.metrics_variables)


def _values(scope, variables):
    return [scope.get_current_value(variable) for variable in variables]


def _states_of_losses(model):
    """The variables of a compiled model's losses, which are not among those of the model."""
    losses = getattr(model, "loss", None)
    losses = losses.values() if isinstance(losses, dict) else ()
    return [variable for loss in losses for variable in getattr(loss, "state", ())]


def wait_for(model):
    """Waits until the device has done the steps of a model that `fit` trains."""
    import jax

    jax.block_until_ready(model._jax_state)


def make_deterministic():
    """Nothing: no operation of ours that XLA compiles depends on the order of execution."""


@functools.cache
def keep_input_on_cpu():
    """TensorFlow, which reads the batches, leaves the memory of GPUs to JAX."""
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):  # a program has used them before
        tf.config.set_visible_devices([], "GPU")


def has_gpu():
    """Whether programs run on a GPU."""
    import jax

    return jax.default_backend() == "gpu"


def replica_count():
    """1: a step is one program over all devices, whose sums are over the whole batch."""
    return 1


def sum_over_replicas(x):
    """The sum of a tensor over the replicas, without a gradient."""
    return keras.ops.stop_gradient(x)


def rows_of_replicas(x):
    """The rows of a tensor of all replicas, in their order."""
    return x


@contextlib.contextmanager
def scope_of(name, report=None):
    """The context of a run under a strategy by its name."""
    yield


def is_written_here():
    """Whether this process writes the output of a run: not as a worker other than the chief."""
    return True


def workers_in_scope():
    """The `Workers` of the strategy in scope, or None."""
    return None


class Devices:
    """One device, or those of the `keras.distribution` in scope: see that of TensorFlow.

    A step is one program over all devices: there is one replica.

    Attributes: `replicas`, `workers`, `is_chief`, `prefetches`.
    """

    def __init__(self):
        self.replicas = self.workers = 1
        self.is_chief, self.prefetches = True, False

    def check_batch_size(self, size, *, setting="batch_size"):
        """Nothing: batches of any size have a part for each device."""

    def prepare(self, model, dataset):
        """Builds the metrics of a compiled model, as `fit` would from the first batch."""
        batches = ((0, 0, dataset.as_numpy_iterator()) for _ in range(1))
        model._symbolic_build(iterator=batches)

    def renew_steps(self, model):
        """Compiles the steps of a model again when they are next called."""
        model.train_function = training_steps(model)
        model.test_function = evaluation_steps(model)

    def distributed(self, dataset):
        """The dataset from which all devices get their parts of each batch; None stays None."""
        return dataset

    @property
    def processors(self):
        """The number of processors that compute together; None on a TPU: not known."""
        import jax

        return None if jax.default_backend() == "tpu" else 1

    def batches_in(self, dataset):
        """The number of batches of a dataset; None where Keras finds it out without a warning."""

    def restored(self, checkpoint, variables, report=None):
        """`checkpoint.restore(report)`, (step, state); None without a checkpoint."""
        return None if checkpoint.latest is None else checkpoint.restore(report)

    def any(self, value):
        """Whether the value of any worker is true."""
        return value

    def separate_seeds(self, model):
        """Nothing: the devices' parts of a batch have parts of its random numbers."""

    def own_parts(self, lengths, *, batch_size):
        """Batches with which this process computes all examples: a list of lists of one."""
        from keras_bert.programs.datasets import sorted_batches

        return [[numbers] for numbers in sorted_batches(lengths, batch_size=batch_size)]

    def one_each(self, dataset):
        """The dataset of which the replicas of this process get one element each."""
        return dataset

    def on_replicas(self, function, signature, reads=(), assigned=()):
        """A function of a dataset's elements -> one of those of `one_each`, a list of results."""
        of_batch = compiled(function, reads=reads, assigned=assigned)
        return lambda batch: [of_batch(*batch)]
