"""The quickstart: the full pipeline in one call, from raw text to a SavedModel that answers.

Every step calls the Python function of the command that it shows, on the samples that come with the
package.
"""

import contextlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, asdict, dataclass, field
from pathlib import Path
from typing import Any

from keras_bert import samples
from keras_bert.base.errors import InputError
from keras_bert.base.files import (
    NotJson,
    clear_leftovers_in,
    delete,
    parse_json,
    read_small,
    system_errors,
    write_json,
)
from keras_bert.base.formatting import counted, listed, percent
from keras_bert.base.ownership import check_only_ours, held_names, lock_folder
from keras_bert.base.settings import (
    PathText,
    Report,
    Settings,
    checkpoint_setting,
    optimisation_setting,
    required,
    takes,
)
from keras_bert.base.signals import interruption_message
from keras_bert.samples.texts import PACKAGES, write_docstrings, write_manual
from keras_bert.training.run_files import is_of_run

# The names in the output folder, the last ones first: `settings.json` is written at the beginning
# and marks the folder as ours, `results.json` at the end. With `force` these are deleted, in this
# order, and nothing else: what an interruption leaves of them is the beginning of a quickstart.
_NAMES = (
    "results.json",
    "ask.py",
    "savedmodels",
    "spam",
    "taggers",
    "pretrained",
    "pretraining-data",
    "vocab.txt",
    "vocab.counts.tsv",
    "tags",
    "messages",
    "text",
    "settings.json",
)

_RUN = re.compile(r"(?:pretrained|spam|taggers/[^/]+)/(.+)")
_DATA = re.compile(r"pretraining-data/(.+)")
_FILE = re.compile(
    r"(?:results|settings)\.json|ask\.py|vocab\.(?:counts\.tsv|txt)|"
    r"text/(?:(?:manual|docstrings)/[^/]+|messages)\.txt|messages/[a-z]+\.tsv|"
    r"tags/(?:train-\d+|[a-z]+)\.conll|"
    r"savedmodels/(?:(?:models|monitoring)\.config|spam/\d+/.+)"
)

SENTENCES = (
    "Buy these pills",
    "Win cash prizes",
    "Please find attached the minutes of our meeting",
)


@dataclass(frozen=True, kw_only=True)
class QuickstartSizes:
    """How large the quickstart is. The defaults take under five minutes on two cores.

    Attributes:
        packages: the packages whose docstrings are read, besides the manual (see
            `write_docstrings`).
        vocabulary: the number of tokens, special ones included.
        architecture: as `pretrain` takes it: a name, or the path of a config.json.
        max_length: tokens in a sequence of pre-training data and in a message, special ones
            included.
        eval_fraction: the fraction of the documents that is held out.
        mlm_probability: the fraction of the tokens that are predicted; with so few steps, more than
            BERT's 15 % teach more (Wettig et al. 2022).
        steps, batch_size, learning_rate: of pre-training.
        tagged: numbers of tagged sentences that taggers are trained on; the last is all of them.
        tagger_steps: of each tagger.
        tagger_rates: the best learning rates of the taggers from `random` and from `pretrained`
            weights.
        epochs, spam_rate: epochs and learning rate of the spam filter.
        finetune_batch_size: sentences or messages in a step.
    """

    packages: Sequence[str] = PACKAGES
    vocabulary: int = 4000
    architecture: str = "modern-tiny"
    max_length: int = 64
    eval_fraction: float = 0.03
    mlm_probability: float = 0.25
    steps: int = 1100
    batch_size: int = 32
    learning_rate: float = 2e-3
    tagged: Sequence[int] = (50, 120, 240)
    tagger_steps: int = 100
    tagger_rates: Mapping[str, float] = field(
        default_factory=lambda: {"random": 1e-3, "pretrained": 2e-3}
    )
    epochs: int = 8
    spam_rate: float = 1e-3
    finetune_batch_size: int = 16


class QuickstartSettings(Settings):
    """Settings of `keras_bert.quickstart`."""

    sizes: InitVar[QuickstartSizes | None] = None
    report: InitVar[Report] = None
    output: PathText = required(
        kw_only=False, help="a new or empty folder for all results", unit="FOLDER"
    )
    seed: int = optimisation_setting(
        0, help="same seed, same input, same result", at_least=0, at_most=2**32 - 1, common=True
    )
    force: bool = checkpoint_setting(
        False, help="start over: delete what this command left in the output before"
    )


@takes(QuickstartSettings)
def quickstart(output, *, sizes=None, report=None, **settings) -> dict[str, Any]:
    """Runs the full pipeline in `output` and returns the results, as `results.json` holds them.

    An interrupted quickstart resumes: each step finds what it has written. A finished one is not
    repeated.

    Args:
        **settings: the fields of `QuickstartSettings`.
        sizes: `QuickstartSizes`; None is the defaults. The same seed and sizes give the same run.
        report: a function that receives, line by line, what is done, by which command, and how long
            it took.

    Returns a dictionary: `sizes`, `seed`, `masked_lm` (`start`, `end` and `end_on_train`, the loss
    in nats per masked token, on held-out text before and after pre-training and on the training
    text; `unigram_entropy`, the loss of the unigram baseline), `tags` (for each number of tagged
    `sentences` the accuracy of a tagger that starts from `random` weights and from the `pretrained`
    ones, on so many unseen `words`), `spam` (`accuracy` of the filter on so many unseen
    `examples`), `answers` (`text`, `label`, `score` of each of SENTENCES), `savedmodel` (its
    folder), `seconds` (by step) and `total_seconds`, both of the last session.

    Raises InputError for an output folder that holds something else, or is in use.
    """
    settings = QuickstartSettings.of({"output": output, **settings})
    sizes = sizes or QuickstartSizes()
    output, seed = Path(settings.output), settings.seed
    report = report or (lambda line: None)
    if output.exists() and not output.is_dir():
        raise InputError(f"The output {output} is a file. Give a folder.")
    with lock_folder(output), system_errors(output):
        # Through JSON, so that it compares equal to what is read back.
        started_with = json.loads(json.dumps({"seed": seed, **asdict(sizes)}))
        _begin(output, started_with, force=settings.force)
        if (output / "results.json").exists():
            report(f"The quickstart in {output} is already finished; these are its results.")
            return json.loads((output / "results.json").read_text(encoding="utf-8"))
        steps = QuickstartSteps(output, sizes=sizes, seed=seed, report=report)
        with interruption_message(steps.how_far):
            results = steps.all()
            write_json(output / "results.json", results)
    return results


def _begin(output, settings, *, force):
    """Marks `output` as this quickstart's; InputError if it holds something else."""
    found = held_names(output)
    earlier = _settings_in(output) if "settings.json" in found else None
    if found and earlier is None:
        raise InputError(
            f"The output folder {output} holds something else ({listed(found, most=3)}). Give a "
            "new or an empty folder."
        )
    if earlier is not None and earlier != settings and not force:
        raise InputError.naming(
            "The output folder {} holds a quickstart already, with other settings. Give another "
            "folder, or {force=True} to start over.",
            output,
        )
    clear_leftovers_in(output)
    if found and force:
        check_only_ours(output, _NAMES, _is_written, writer="quickstart")
        for name in _NAMES:
            delete(output / name)
    if earlier is None or force:
        write_json(output / "settings.json", {"command": "quickstart", **settings})


def _is_written(path):
    """Whether a quickstart writes a file of this path, relative to its output folder."""
    from data_gen.data_folder import NewDataFolder  # which loads Beam
    from data_gen.output_folder import COMPLETED, IN_PROGRESS

    run, data = _RUN.fullmatch(path), _DATA.fullmatch(path)
    if run is not None:
        return is_of_run(run[1])
    if data is not None:
        is_mark = data[1] in (COMPLETED, IN_PROGRESS)
        return is_mark or NewDataFolder.OURS.fullmatch(data[1]) is not None
    return _FILE.fullmatch(path) is not None


def _settings_in(output):
    """The settings of the quickstart in a folder; None if it holds something else."""
    try:
        settings = parse_json(read_small(output / "settings.json"))
    except (NotJson, OSError):
        return None
    if not isinstance(settings, dict) or settings.pop("command", None) != "quickstart":
        return None
    return settings


class QuickstartSteps:
    """Each method is a step, and reports what it does, how, and how long it took.

    Arguments are those of `quickstart`.
    """

    def __init__(self, output, *, sizes, seed, report):
        self.output = output
        self.sizes = sizes
        self.seed = seed
        self.report = report
        self.seconds = {}  # of the steps of one name together
        self._done = 0

    def path(self, *names):
        return self.output.joinpath(*names)

    def all(self):
        """Runs every step; returns the results."""
        started = time.perf_counter()
        self.write_samples()
        self.learn_vocabulary()
        self.make_records()
        pretrained = self.pretrain()
        tags = [self.tag(sentences) for sentences in self.sizes.tagged]
        spam = self.filter_spam()
        version = self.export()
        answers = self.ask(version)
        return {
            "sizes": asdict(self.sizes),
            "seed": self.seed,
            "masked_lm": {
                "start": pretrained["eval_at_start"]["masked_lm_loss"],
                "end": pretrained["eval"]["masked_lm_loss"],
                "end_on_train": pretrained["train"]["masked_lm_loss"],
                "unigram_entropy": pretrained["unigram_entropy"],
            },
            "tags": tags,
            "spam": {name: spam[name] for name in ("accuracy", "examples")},
            "answers": answers,
            "savedmodel": str(version),
            "seconds": self.seconds,
            "total_seconds": time.perf_counter() - started,
        }

    def how_far(self):
        """How many steps of an interrupted quickstart are finished, and how to resume."""
        return (
            f"Interrupted after {counted(self._done, 'step')} of the quickstart in {self.output}. "
            "Run the same command again to resume."
        )

    @contextlib.contextmanager
    def _step(self, name, title, *command):
        """Reports a step; yields a function that takes its summary."""
        self.report(f"{self._done + 1}. {title}")
        if command:
            self.report(f"   $ {shlex.join(str(word) for word in command)}")
        started = time.perf_counter()
        summaries = []
        yield summaries.append
        seconds = time.perf_counter() - started
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self._done += 1
        self.report(f"   {'; '.join(summaries)} ({seconds:.1f} s)")

    def write_samples(self):
        with self._step("samples", "Write the samples: raw and labelled text") as done:
            paths = write_manual(self.path("text", "manual"))
            paths += write_docstrings(self.path("text", "docstrings"), self.sizes.packages)
            characters = sum(len(path.read_text(encoding="utf-8")) for path in paths)
            done(
                f"Python's manual and docstrings of {', '.join(self.sizes.packages)}: "
                f"{len(paths):,} documents with {characters:,} characters"
            )
            for name, files in (("messages", samples.MESSAGES), ("tags", samples.TAGS)):
                self.path(name).mkdir(exist_ok=True)
                for source in files.values():
                    shutil.copyfile(source, self.path(name, source.name))
            # The training messages without their labels are raw text, too: a document each.
            messages = samples.MESSAGES["train"].read_text(encoding="utf-8").splitlines()[1:]
            texts = "".join(f"{message.split(chr(9))[0]}\n\n" for message in messages)
            self.path("text", "messages.txt").write_text(texts, encoding="utf-8")
            sentences = samples.TAGS["train"].read_text(encoding="utf-8").split("\n\n")
            for count in self.sizes.tagged:
                first = "\n\n".join(sentences[:count]).rstrip("\n") + "\n"
                self.path("tags", f"train-{count}.conll").write_text(first, encoding="utf-8")
            done(
                f"{len(messages)} messages, spam and ham, and {len(sentences)} tagged sentences "
                "for training; others for testing"
            )

    def learn_vocabulary(self):
        from data_gen.vocabulary import learn_vocabulary

        settings = {
            "input": str(self.path("text", "**")),
            "output": self.path("vocab.txt"),
            "size": self.sizes.vocabulary,
        }
        with self._step("vocabulary", "Learn a vocabulary", *_command("vocab", settings)) as done:
            learned = learn_vocabulary(**settings, force=True)
            done(f"{len(learned.vocabulary):,} tokens from {learned.words:,} words")

    def make_records(self):
        from data_gen.pretraining_data import pretraining_data

        settings = {
            "input": str(self.path("text", "**")),
            "vocab": self.path("vocab.txt"),
            "output": self.path("pretraining-data"),
            "objective": "mlm",
            "masking": "dynamic",
            "max_length": self.sizes.max_length,
            "mlm_probability": self.sizes.mlm_probability,
            "eval_fraction": self.sizes.eval_fraction,
            "seed": self.seed,
        }
        with self._step(
            "records",
            "Turn the text into records for pre-training, with a Beam job",
            *_command("pretraining-data", settings),
        ) as done:
            card = pretraining_data(**settings)
            train, held_out = (card.splits[split] for split in ("train", "eval"))
            done(
                f"{train.instances:,} training examples and {held_out.instances:,} held out; show "
                f"them with: keras-bert inspect {shlex.quote(str(settings['output']))}"
            )

    def pretrain(self):
        from keras_bert.training.pretrain import pretrain

        settings = {
            "data": self.path("pretraining-data"),
            "output": self.path("pretrained"),
            "architecture": self.sizes.architecture,
            "steps": self.sizes.steps,
            "batch_size": self.sizes.batch_size,
            "learning_rate": self.sizes.learning_rate,
            "seed": self.seed,
        }
        with self._step(
            "pre-training",
            "Pre-train an encoder on masked tokens",
            *_command("pretrain", settings),
        ) as done:
            metrics = pretrain(**settings)
            done(
                f"{metrics['parameters']:,} parameters, "
                f"{metrics['tokens_per_second'] or 0:,.0f} tokens/s; history: "
                f"tensorboard --logdir {shlex.quote(str(settings['output'] / 'logs'))}"
            )
        return metrics

    def tag(self, sentences):
        """The accuracy of taggers of so many sentences, from random and pre-trained weights."""
        sizes, result = self.sizes, {"sentences": sentences}
        epochs = max(1, round(sizes.tagger_steps * sizes.finetune_batch_size / sentences))
        for start, weights in self._starts().items():
            run = self.path("taggers", f"{sentences}-{start}")
            self._finetune(
                "taggers",
                f"Train a tagger on {sentences} sentences, from {start} weights",
                task="tagger",
                train=self.path("tags", f"train-{sentences}.conll"),
                dev=self.path("tags", "dev.conll"),
                output=run,
                epochs=epochs,
                learning_rate=sizes.tagger_rates[start],
                **weights,
            )
            measured = self._evaluate("taggers", run, self.path("tags", "test.conll"), "words")
            result |= {start: measured["accuracy"], "words": measured["words"]}
        return result

    def filter_spam(self):
        """Fine-tunes and tests the filter that is exported; returns its metrics."""
        train, dev, test = (
            self.path("messages", f"{split}.tsv") for split in ("train", "dev", "test")
        )
        self._finetune(
            "spam filter",
            "Fine-tune a spam filter",
            task="classifier",
            train=train,
            dev=dev,
            output=self.path("spam"),
            epochs=self.sizes.epochs,
            learning_rate=self.sizes.spam_rate,
            # Masked-token prediction has not trained the output at [CLS].
            pooling="mean",
            **self._starts()["pretrained"],
        )
        return self._evaluate("spam filter", self.path("spam"), test, "examples")

    def _starts(self):
        """The settings for random and for pre-trained weights."""
        return {
            "random": {"architecture": self.sizes.architecture, "vocab": self.path("vocab.txt")},
            "pretrained": {"model": self.path("pretrained", "model")},
        }

    def _finetune(self, name, title, **settings):
        from keras_bert.training.finetune import finetune

        settings |= {
            "batch_size": self.sizes.finetune_batch_size,
            "max_length": self.sizes.max_length,
            "seed": self.seed,
        }
        with self._step(name, title, *_command("finetune", settings)) as done:
            metrics = finetune(**settings)
            done(
                f"best epoch {metrics['kept']['epoch']} of {settings['epochs']}: "
                f"{percent(metrics['dev']['accuracy'])} of the dev file correct"
            )

    def _evaluate(self, name, run, data, unit):
        from keras_bert.inference.evaluate import evaluate

        settings = {"model": run / "model", "data": data}
        with self._step(
            name, f"Test {run.name} on unseen examples", *_command("evaluate", settings)
        ) as done:
            metrics = evaluate(**settings)
            done(f"{percent(metrics['accuracy'])} of {metrics[unit]:,} {unit} correct")
        return metrics

    def export(self):
        from keras_bert.exports.saved_model import export

        models = self.path("savedmodels", "spam")
        settings = {"model": self.path("spam", "model"), "output": models}
        with self._step(
            "export", "Export a SavedModel that takes strings", *_command("export", settings)
        ) as done:
            clear_leftovers_in(models)
            version = models / "1"
            if not version.exists():
                version = export(**settings)
            done(str(version))
        return version

    def ask(self, version):
        """The answers of the SavedModel in a process that does not import keras-bert."""
        script = self.path("ask.py")
        shutil.copyfile(Path(samples.__file__).with_name("ask.py"), script)
        command = [str(script), str(version), *SENTENCES]
        with self._step(
            "answers",
            "Ask it in a fresh process that has only TensorFlow and TensorFlow Text",
            *("python", *command),
        ) as done:
            answered = subprocess.run(
                [sys.executable, "-I", *command], capture_output=True, encoding="utf-8", check=False
            )
            if answered.returncode:
                raise RuntimeError(f"{answered.stderr}\n{script} failed.")
            answers = [json.loads(line) for line in answered.stdout.splitlines()]
            done(", ".join(answer["label"] for answer in answers))
        return answers


def _command(name, settings):
    """The words of the command with these settings."""
    flags = ((f"--{setting.replace('_', '-')}", value) for setting, value in settings.items())
    return ("keras-bert", name, *(word for flag in flags for word in flag))
