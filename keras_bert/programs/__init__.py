"""Programs that a backend compiles and runs: a module for each, with the same functions.

Outside of this package and of `layers.kernels` nobody asks for the backend.
"""

import keras

if keras.backend.backend() == "tensorflow":
    from keras_bert.programs import tensorflow as _backend
else:
    from keras_bert.programs import jax as _backend

BACKEND = keras.backend.backend()
COMPILES_EACH_SHAPE = _backend.COMPILES_EACH_SHAPE
UPDATES_EACH_BATCH = _backend.UPDATES_EACH_BATCH
Devices = _backend.Devices
compiled = _backend.compiled
computes_in_bfloat16 = _backend.computes_in_bfloat16
evaluation_steps = _backend.evaluation_steps
has_accelerator = _backend.has_accelerator
is_out_of_memory = _backend.is_out_of_memory
is_written_here = _backend.is_written_here
keep_input_on_cpu = _backend.keep_input_on_cpu
make_deterministic = _backend.make_deterministic
replica_count = _backend.replica_count
rows_of_program = _backend.rows_of_program
rows_of_replicas = _backend.rows_of_replicas
scope_of = _backend.scope_of
sum_over_replicas = _backend.sum_over_replicas
training_steps = _backend.training_steps
wait_for = _backend.wait_for
workers_in_scope = _backend.workers_in_scope
