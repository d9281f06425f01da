"""The steps of `fit` and `evaluate` as programs of JAX.

They are ours, because those of Keras 3.15 compile the values of a loss's variables into the
program, and leave out what an optimizer measures.
"""

import functools

import keras

from keras_bert.base.files import cache_folder

# The input whose second axis has the number of rows that fill up a batch.
FILLING = "filling"
# XLA's options for the steps.
COMPILER_OPTIONS = {}


@functools.cache
def keep_programs():
    """Has JAX keep what it compiles for a GPU or TPU on disk, unless the user says where.

    A step of a base model takes up to a minute to compile.
    """
    import jax

    if jax.default_backend() != "cpu" and jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))


class Steps:
    """A function of Keras's state and an iterator: `steps_per_execution` batches, a program each.

    Args:
        model: a compiled model.
        program: `Steps.train` or `Steps.evaluate`.
    """

    def __init__(self, model, program):
        self._model = model
        self._constants = states_of_losses(model)
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

        keep_programs()
        shardings = None
        if keras.distribution.distribution() is not None:
            shardings = None, keras.tree.map_structure(lambda value: value.sharding, state)
        options = dict(COMPILER_OPTIONS) or None
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
        if isinstance(self.x, dict) and FILLING in self.x:
            self._filling = self.x[FILLING].shape[1]
            self.x = {name: value for name, value in self.x.items() if name != FILLING}
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


def states_of_losses(model):
    """The variables of a compiled model's losses, which are not among those of the model."""
    losses = getattr(model, "loss", None)
    losses = losses.values() if isinstance(losses, dict) else ()
    return [variable for loss in losses for variable in getattr(loss, "state", ())]
