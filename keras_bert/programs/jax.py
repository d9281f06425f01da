"""Programs of JAX: compiled functions, the steps of `fit`, and devices.

XLA compiles every program, again for each shape of its tensors. Batches are read by `tf.data` on
the CPU. The steps are ours, because those of Keras 3.15 compile the values of a loss's variables
into the program, and leave out what an optimizer measures.
"""

import contextlib
import functools

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import cache_folder

# Whether XLA compiles every program, again for each shape of its tensors.
COMPILES_EACH_SHAPE = True
# Whether Keras's optimizer computes an update for each of several batches and then drops it.
UPDATES_EACH_BATCH = True
# The input whose second axis has the number of rows that fill up a batch.
_FILLING = "filling"
# XLA's options for the steps.
_COMPILER_OPTIONS = {}
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
    _keep_programs()
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


@functools.cache
def _keep_programs():
    """Has JAX keep what it compiles for a GPU or TPU on disk, unless the user says where.

    A step of a base model takes up to a minute to compile.
    """
    import jax

    if jax.default_backend() != "cpu" and jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))


def rows_of_program(count):
    """The rows of a batch of `count` examples, filled up to a power of two for fewer programs."""
    return 1 << max(0, count - 1).bit_length()


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

        _keep_programs()
        shardings = None
        if keras.distribution.distribution() is not None:
            shardings = None, keras.tree.map_structure(lambda value: value.sharding, state)
        options = dict(_COMPILER_OPTIONS) or None
        return jax.jit(
            self._program, donate_argnums=0, out_shardings=shardings, compiler_options=options
        )

    def train(self, state, constants, batch):
        """One batch: -> (logs, state)."""
        import jax

        model = self._model
        trained, others, optimizer_values, metric_values = state
        batch = _Batch(batch)

        def loss_of(trained):
            mapping = [
                *zip(model.trainable_variables, trained, strict=True),
                *zip(model.non_trainable_variables, others, strict=True),
                *zip(model.optimizer.variables, optimizer_values, strict=True),
                *zip(model.metrics_variables, metric_values, strict=True),
                *zip(self._constants, constants, strict=True),
            ]
            with keras.StatelessScope(mapping, collect_losses=True) as scope:
                seen = batch.rows_of(model(batch.x, training=True))
                loss = model.compute_loss(*seen, training=True)
                scaled = model.optimizer.scale_loss(loss)
            changed = (model.non_trainable_variables, model.metrics_variables)
            return scaled, (loss, seen, *(_values(scope, group) for group in changed))

        gradient_of = jax.value_and_grad(loss_of, has_aux=True)
        (_, (loss, seen, others, metric_values)), gradients = gradient_of(trained)
        trained, optimizer_values, metric_values = self._updated(
            gradients, trained, optimizer_values, metric_values
        )
        logs, metric_values = self._measured(metric_values, batch, seen, loss)
        return logs, (trained, others, optimizer_values, metric_values)

    def _updated(self, gradients, trained, optimizer_values, metric_values):
        """The weights, the optimizer's variables, and the metrics, of which it may have one."""
        model, optimizer = self._model, self._model.optimizer
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            # It applies gradients in one branch of a program, out of which no metric comes.
            return *optimizer.stateless_apply(optimizer_values, gradients, trained), metric_values
        mapping = [
            *zip(model.trainable_variables, trained, strict=True),
            *zip(optimizer.variables, optimizer_values, strict=True),
            *zip(model.metrics_variables, metric_values, strict=True),
        ]
        with keras.StatelessScope(mapping) as scope:
            optimizer.apply(gradients, model.trainable_variables)
        changed = (model.trainable_variables, optimizer.variables, model.metrics_variables)
        return tuple(_values(scope, group) for group in changed)

    def evaluate(self, state, constants, batch):
        """One batch: -> (logs, state)."""
        model = self._model
        trained, others, metric_values = state
        batch = _Batch(batch)
        mapping = [
            *zip(model.trainable_variables, trained, strict=True),
            *zip(model.non_trainable_variables, others, strict=True),
            *zip(model.metrics_variables, metric_values, strict=True),
            *zip(self._constants, constants, strict=True),
        ]
        with keras.StatelessScope(mapping, collect_losses=True) as scope:
            seen = batch.rows_of(model(batch.x, training=False))
            loss = model.compute_loss(*seen, training=False)
        others = _values(scope, model.non_trainable_variables)
        metric_values = _values(scope, model.metrics_variables)
        logs, metric_values = self._measured(metric_values, batch, seen, loss)
        return logs, (trained, others, metric_values)

    def _measured(self, metric_values, batch, seen, loss):
        """-> (logs, the metrics' variables), with a batch added as Keras does."""
        model = self._model
        mapping = list(zip(model.metrics_variables, metric_values, strict=True))
        with keras.StatelessScope(mapping) as scope:
            model._loss_tracker.update_state(loss, sample_weight=batch.rows)
            logs = model.compute_metrics(*seen)
        return logs, _values(scope, model.metrics_variables)


class _Batch:
    """A batch (x, y, sample_weight) in a step.

    Several devices get as many rows each, so that the last ones may fill it up (see `_filled`). The
    loss and the metrics are of the others alone.

    Attributes: `x`, and `rows`, the number of rows without the filling.
    """

    def __init__(self, batch):
        self.x, self._y, self._weights = keras.utils.unpack_x_y_sample_weight(batch)
        self._filling = 0
        if isinstance(self.x, dict) and _FILLING in self.x:
            self._filling = self.x[_FILLING].shape[1]
            self.x = {name: value for name, value in self.x.items() if name != _FILLING}
        values = (value for value in keras.tree.flatten(self.x) if value is not None)
        self.rows = next(values).shape[0] - self._filling

    def rows_of(self, outputs):
        """(x, y, outputs, sample_weight) without the filling, as the loss and the metrics take."""
        whole = self.x, self._y, outputs, self._weights
        if not self._filling:
            return whole
        return keras.tree.map_structure(
            lambda value: None if value is None else value[: self.rows], whole
        )


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

    jax.block_until_ready(getattr(model, "_jax_state", None))


def make_deterministic():
    """From now on the steps that are compiled for a GPU give the same bits each time."""
    if has_gpu():
        _COMPILER_OPTIONS["xla_gpu_exclude_nondeterministic_ops"] = True


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
    """The context of a run under a strategy by its name.

    "auto" is all GPUs or TPU cores of this machine if there are several, else one device.
    "mirrored" is the same, or all CPU devices if there are no others; "tpu" the cores of a TPU;
    "none" is one device.

    Args:
        name: the strategy, as in `RunSettings`.
        report: called with a line if a run has several devices.

    Raises:
        InputError: the devices are missing.
    """
    import jax

    kind = jax.default_backend()
    if name == "multiworker":
        raise InputError.naming(
            "{strategy} multiworker needs TensorFlow. On JAX a run is one process with all devices "
            "of its machine. Set KERAS_BACKEND=tensorflow, or use another {strategy}."
        )
    if name == "tpu" and kind != "tpu":
        raise InputError.naming("{strategy} tpu needs a TPU. JAX has found: {}.", kind)
    is_one = name == "none" or (name == "auto" and kind == "cpu")
    names = keras.distribution.list_devices()[: 1 if is_one else None]
    if len(names) == 1:
        yield
        return
    if report is not None:
        report(f"Training on {len(names)} devices.")
    parallel = keras.distribution.DataParallel(devices=names, auto_shard_dataset=False)
    with parallel.scope():
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
        distribution = keras.distribution.distribution()
        self._count = 1 if distribution is None else distribution.device_mesh.devices.size

    def check_batch_size(self, size, *, setting="batch_size"):
        """Nothing: batches of any size have a part for each device."""

    def prepare(self, model, dataset):
        """Builds the metrics of a compiled model, as `fit` would from the first batch."""
        model._symbolic_build(iterator=iter([(0, 0, dataset.as_numpy_iterator())]))

    def renew_steps(self, model):
        """Compiles the steps of a model again when they are next called."""
        model.train_function = training_steps(model)
        model.test_function = evaluation_steps(model)

    def distributed(self, dataset):
        """The dataset from which all devices get as many rows of each batch; None stays None."""
        return dataset if self._count == 1 or dataset is None else _filled(dataset, self._count)

    @property
    def processors(self):
        """The number of processors that compute together; None on a TPU: not known."""
        import jax

        if jax.default_backend() == "tpu":
            return None
        # Several devices of one processor are as fast as one.
        return self._count if has_gpu() else 1

    def batches_in(self, dataset):
        """The number of batches of a dataset; None if Keras finds it out without a warning."""

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
        compute = compiled(function, reads=reads, assigned=assigned)
        return lambda batch: [compute(*batch)]


def _filled(dataset, count):
    """The dataset in which a number of devices get as many rows of each batch.

    The last row is repeated. The input `_FILLING` says by its shape how often, so that a step knows
    it when it is compiled.
    """
    import tensorflow as tf

    from keras_bert.programs.datasets import resolved

    def filled(x, *targets):
        rows = tf.shape(next(iter(x.values())))[0]
        filling = -rows % count

        def repeated(value):
            return tf.concat([value, tf.repeat(value[-1:], filling, axis=0)], axis=0)

        x, *targets = tf.nest.map_structure(repeated, (x, *targets))
        return {**x, _FILLING: tf.zeros([rows + filling, filling], tf.int8)}, *targets

    return resolved(dataset.map(filled))
