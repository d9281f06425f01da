"""A run of a command that is killed (signal 9) at one moment after another.

    python -m tests.training.killed_run pretrain '{"data": …}' '[[5, "writing", 0.5], …]'

Every life of the run is forked from a process that has loaded the backend and done nothing with it,
so that ten lives load it once. Prints, as JSON, the status of each and the names that it left among
the checkpoints.
"""

import gc
import json
import os
import signal
import sys
import traceback
from pathlib import Path

import safetensors.numpy

from keras_bert.training import checkpoint
from keras_bert.training.distill import distill
from keras_bert.training.finetune import finetune
from keras_bert.training.logs import History, TensorBoardHistory
from keras_bert.training.pretrain import pretrain
from tests.kill_points import EVENTS, is_below

COMMANDS = {"pretrain": pretrain, "finetune": finetune, "distill": distill}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_while_writing(step, fraction):
    """In the first checkpoint of a step from `step` on, of which that share of the bytes stands."""
    save_file = checkpoint.save_file

    def save_a_part(tensors, path, metadata):
        if int(metadata.get("step", -1)) < step:  # the best weights have none
            return save_file(tensors, path, metadata=metadata)
        content = safetensors.numpy.save(tensors, metadata=metadata)
        path.write_bytes(content[: int(fraction * len(content))])
        die()

    checkpoint.save_file = save_a_part


def die_after_events(step, count, under):
    """After so many events once a step is done: ends of steps, metrics written, calls on files."""
    left = iter(range(count))
    is_done = step == 0

    def event():
        if is_done and next(left, None) is None:
            die()

    def reached(number):
        nonlocal is_done
        is_done = is_done or number >= step

    end, write = History.on_train_batch_end, TensorBoardHistory._write
    restore = checkpoint.Checkpoint.restore

    def on_train_batch_end(self, batch, logs=None):
        end(self, batch, logs)
        reached(self._first_step + batch + 1)  # on JAX the optimizer's count is on the device
        event()

    def write_metrics(self):
        event()
        write(self)

    def restore_and_look(self, report=None):
        restored = restore(self, report)
        reached(restored[0])
        return restored

    def call(name, arguments):
        if name in EVENTS and is_below(under, arguments[0]):
            event()

    History.on_train_batch_end, TensorBoardHistory._write = on_train_batch_end, write_metrics
    checkpoint.Checkpoint.restore = restore_and_look
    sys.addaudithook(call)


def life(command, arguments, step, kind, how_much):
    """-> the exit status of a process that trains and dies on its way."""
    process = os.fork()
    if not process:
        try:
            if kind == "writing":
                die_while_writing(step, how_much)
            else:
                die_after_events(step, how_much, arguments["output"])
            COMMANDS[command](**arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main(command, arguments, moments):
    checkpoints = Path(arguments["output"]) / "checkpoints"
    lives = []
    gc.freeze()  # no life looks through what all of them have
    for moment in moments:
        status = life(command, arguments, *moment)
        left = os.listdir(checkpoints) if checkpoints.is_dir() else []
        lives.append({"status": status, "left": sorted(left)})
    print(json.dumps(lives))


if __name__ == "__main__":
    main(sys.argv[1], *map(json.loads, sys.argv[2:]))
