"""The files and messages of every command that is killed, stopped, or may not write.

    python benchmarks/robustness.py kill --kills 50 [COMMAND …]
    python benchmarks/robustness.py faults [COMMAND …]

`kill` runs each command once undisturbed. Then, as often as asked, it kills it (SIGKILL) at a
random moment of that time, runs it again, and compares all that lies there with what the
undisturbed run left. Nothing may be left in the system's temporary folder either. (The quickstart
is these commands, one after another.) `faults` prints a line for each command and fault: the exit
status and what it said. The full disk is a tmpfs if this process may mount one, and a limit on
the size of files elsewhere.
"""

import argparse
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import apache_beam  # noqa: F401  (loaded once, for all processes)
import tensorflow_text  # noqa: F401
from safetensors.numpy import load_file

import keras_bert.checkpoints.convert
import keras_bert.exports.saved_model
import keras_bert.inference.embed_to_file
import keras_bert.training.finetune
import keras_bert.training.pretrain  # noqa: F401
from keras_bert import __main__ as console
from keras_bert import samples
from keras_bert.base.ownership import lock_folder
from keras_bert.samples.texts import write_manual

_ARCHITECTURE = {
    "vocab_size": 800,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
_ENDS = {0: "done", 2: "refused", 130: "Ctrl-C", 143: "SIGTERM", -signal.SIGKILL: "killed"}


class Command:
    """A command of the package on small inputs. `arguments` are without those of its output."""

    def __init__(self, name, *arguments, output):
        self.name = name
        self._arguments = [name.split()[0], *map(str, arguments)]
        self._output = output

    def output(self, place):
        return place / self._output

    def start(self, place, **options):
        """Starts it with its output in the folder `place`; see `Process`."""
        return Process([*self._arguments, "--output", str(self.output(place))], **options)

    def run(self, place, **options):
        """-> (exit status, the last line that it said)."""
        return self.start(place, **options).ended()


class Process:
    """A command in a process of its own, which is forked from this one.

    This one has loaded TensorFlow and run nothing of it, so that a kill finds the command at work
    and not at its imports. `temporary` is the folder for temporary files, `largest` a limit on the
    size of files.
    """

    def __init__(self, arguments, *, temporary=None, largest=None):
        self._said = tempfile.TemporaryFile()
        self._status = None
        self._id = os.fork()
        if not self._id:
            self._become(arguments, temporary, largest)

    def _become(self, arguments, temporary, largest):
        status = 70
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(self._said.fileno(), 2)
            sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1) for n in (1, 2))
            if temporary:
                os.environ["TMPDIR"], tempfile.tempdir = str(temporary), None
            if largest:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
            sys.argv = ["keras-bert", *arguments]
            console.run()
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def wait(self, seconds):
        """Waits for its end, so long at most; returns whether it has ended."""
        until = time.monotonic() + seconds
        while self._status is None and time.monotonic() < until:
            self._ask(os.WNOHANG)
            time.sleep(0.002)
        return self._status is not None

    def send_signal(self, number):
        if self._status is None:
            os.kill(self._id, number)

    def ended(self):
        """Waits; -> (exit status, the last line that it said)."""
        if self._status is None:
            self._ask(0)
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return self._status, lines[-1] if lines else ""

    def _ask(self, how):
        process_id, status = os.waitpid(self._id, how)
        if process_id:
            self._status = os.waitstatus_to_exitcode(status)


def make_commands(folder):
    """All commands that write, in the order in which each needs the ones before it."""
    write_manual(folder / "manual")
    for path in sorted((folder / "manual").iterdir())[12:]:
        path.unlink()
    text = folder / "manual" / "*.txt"
    architecture = folder / "architecture.json"
    architecture.write_text(json.dumps(_ARCHITECTURE))
    texts = folder / "texts.txt"
    texts.write_text("a line of text\n" * 400)
    messages = {}
    for split, source in samples.MESSAGES.items():
        messages[split] = folder / f"{split}.tsv"
        shutil.copyfile(source, messages[split])
    made = folder / "made"
    made.mkdir()
    vocab, data, model = made / "vocab.txt", made / "data", made / "finetuned"
    start = ("--architecture", architecture, "--vocab", vocab, "--deterministic")
    return [
        Command("vocab", "--input", text, "--size", 800, output="vocab.txt"),
        Command("vocab bpe", "--input", text, "--size", 800, "--algorithm", "bpe", output="bpe"),
        Command(
            "pretraining-data", "--input", text, "--vocab", vocab, "--max-length", 32,
            "--max-predictions", 4, "--dupe-factor", 2, output="data",
        ),
        Command(
            "pretrain", "--data", data, *start, "--steps", 60, "--checkpoint-every", 10,
            output="pretrained",
        ),
        Command(
            "finetune", "--train", messages["train"], "--dev", messages["dev"], *start,
            "--epochs", 3, "--max-length", 32, output="finetuned",
        ),
        Command("embed", "--model", model, "--data", texts, output="vectors.parquet"),
        Command("export", "--model", model, output="savedmodels"),
        Command("convert", "--input", model, "--to", "google", output="google"),
    ]  # fmt: skip


def left(command, place):
    """All that a command left, hidden things too: what is the same each time, by the path."""
    contents = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        # The curves show how fast the run was.
        is_timed = "logs" in path.parts or path.name == "curves.png" or path.is_dir()
        if path.name == "metrics.json":
            metrics = json.loads(path.read_text())
            contents[name] = [_untimed(entry) for entry in metrics["history"]]
        elif path.parent.name == "checkpoints" and path.is_file():
            contents[name] = {n: tensor.tobytes() for n, tensor in load_file(path).items()}
        elif command.name == "export":  # not the same to the byte, and each time another version
            contents[re.sub(r"/\d+(/|$)", r"/N\1", name)] = path.is_dir()
        else:
            contents[name] = None if is_timed else path.read_bytes()
    return {name: value for name, value in contents.items() if "/logs/" not in f"/{name}/"}


def _untimed(entry):
    timed = ("seconds", "tokens_per_second", "input_wait", "mfu")
    return {name: value for name, value in entry.items() if name not in timed}


def kill(command, folder, *, kills, seed):
    """Kills a command at random moments; prints what came of it in a line of a table."""
    chance = random.Random(f"{command.name} {seed}")
    place, temporary = folder / "place", folder / "temporary"

    def fresh():
        for directory in (place, temporary):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()

    fresh()
    began = time.monotonic()
    assert (ended := command.run(place, temporary=temporary))[0] == 0, ended
    seconds = time.monotonic() - began
    whole = left(command, place)
    _keep(command, place, folder / "made")
    late = begun = different = strewn = 0
    for _ in range(kills):
        fresh()
        process = command.start(place, temporary=temporary)
        late += process.wait(chance.uniform(0, seconds))
        process.send_signal(signal.SIGKILL)
        process.ended()
        begun += any(place.iterdir())
        strewn += any(temporary.iterdir())
        status, said = command.run(place, temporary=temporary)
        now = left(command, place)
        if status or now != whole:
            different += 1
            names = {n for n in now.keys() | whole.keys() if now.get(n) != whole.get(n)}
            print(f"  {status} {said}; different: {sorted(names)[:5]}", file=sys.stderr)
    print(
        f"| {command.name} | {seconds:.0f} | {kills} | {begun} | {late} | {kills - different} | "
        f"{strewn} |",
        flush=True,
    )


def _keep(command, place, made):
    """Puts what a command wrote where the later ones look for it."""
    for path in place.iterdir():
        if not (made / path.name).exists():
            (shutil.copytree if path.is_dir() else shutil.copyfile)(path, made / path.name)


def faults(command, folder):
    """Tries every fault on a command; prints a line of a table for each."""
    place = folder / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    began = time.monotonic()
    ended = command.run(place)
    seconds = time.monotonic() - began
    _keep(command, place, folder / "made")
    _say(command, "again", *command.run(place))
    assert ended[0] == 0, ended
    for number in (signal.SIGTERM, signal.SIGINT):
        shutil.rmtree(place)
        place.mkdir()
        process = command.start(place)
        process.wait(0.4 * seconds)
        process.send_signal(number)
        _say(command, number.name, *process.ended())
    for name, small in (("full", True), ("read-only", False)):
        shutil.rmtree(place)
        place.mkdir()
        with _disk(place, small=small) as options:
            _say(command, name, *command.run(place, **options))
            if rest := sorted(str(path.relative_to(place)) for path in place.rglob("*")):
                print(f"  left: {rest}", file=sys.stderr)
    shutil.rmtree(place, ignore_errors=True)
    if command.name.split()[0] in ("pretraining-data", "pretrain", "finetune"):
        output = command.output(place)
        name = "IN_PROGRESS" if command.name == "pretraining-data" else ".keras-bert-owner"
        with lock_folder(output, name=name):
            _say(command, "owned", *command.run(place))


@contextlib.contextmanager
def _disk(place, *, small):
    """A full or a read-only disk at `place`; gives what a process on it is started with."""
    kind = "size=1m" if small else "size=1m,ro"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", kind, "tmpfs", str(place)], capture_output=True
    )
    if not mounted.returncode:
        if small:
            (place / "filled").write_bytes(bytes((1 << 20) - (4 << 10)))
        try:
            yield {}
        finally:
            subprocess.run(["umount", str(place)], check=True)
        return
    print("  no tmpfs may be mounted here", file=sys.stderr)
    if small:
        yield {"largest": 4000}
        return
    place.chmod(0o500)
    try:
        yield {}
    finally:
        place.chmod(0o700)


def _say(command, fault, status, said):
    said = re.sub(rf"{re.escape(tempfile.gettempdir())}/\w+/", "", said).replace("|", "\\|")
    print(
        f"| {command.name} | {fault} | {status} ({_ENDS.get(status, '?')}) | {said} |", flush=True
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("kill", "faults"))
    parser.add_argument("commands", nargs="*", help="all of them if none is named")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_intermixed_args()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        commands = make_commands(folder)
        names = {name for c in commands for name in (c.name, c.name.split()[0])}
        if unknown := set(given.commands) - names:
            parser.error(f"no command is called {unknown.pop()!r}; there are {sorted(names)}")
        wanted = [
            c
            for c in commands
            if not given.commands or {c.name, c.name.split()[0]} & set(given.commands)
        ]
        if given.what == "kill":
            print(
                "| command | seconds | kills | something there | after the end | equal | strewn |"
            )
            print("|---|---|---|---|---|---|---|")
        else:
            print("| command | fault | exit status | says |\n|---|---|---|---|")
        for command in commands[: commands.index(wanted[-1]) + 1]:
            if command not in wanted:
                _prepare(command, folder)
            elif given.what == "kill":
                kill(command, folder, kills=given.kills, seed=given.seed)
            else:
                faults(command, folder)


def _prepare(command, folder):
    """Runs a command if others need what it makes."""
    place = folder / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if command.name in ("vocab", "pretraining-data", "finetune"):
        command.run(place)
        _keep(command, place, folder / "made")


if __name__ == "__main__":
    main()
