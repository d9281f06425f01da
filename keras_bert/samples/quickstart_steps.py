"""The steps of the quickstart.

Every one calls the Python function of the command that it names, on the samples that come with the
package.
"""

import contextlib
import json
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from keras_bert import samples
from keras_bert.files import clear_leftovers_in
from keras_bert.samples.manual import write_manual
from keras_bert.wording import percent

SENTENCES = (
    "Buy these pills",
    "Win cash prizes",
    "Please find attached the minutes of our meeting",
)


class QuickstartSteps:
    """Each method is a step, and tells what it does, how, and how long it took.

    Args:
        output: the `Path` of the folder for all that is made.
        sizes: the `QuickstartSizes`.
        seed: same seed, same input, same result.
        report: a function that is told, line by line.
    """

    def __init__(self, output, *, sizes, seed, report):
        self.output = output
        self.sizes = sizes
        self.seed = seed
        self.report = report
        self.seconds = {}

    def path(self, *names):
        return self.output.joinpath(*names)

    def all(self):
        """Takes every step; returns the results."""
        started = time.perf_counter()
        self.write_samples()
        self.learn_vocabulary()
        self.make_records()
        pretrained = self.pretrain()
        self.finetune(
            "finetuned", "from the pre-trained weights", model=self.path("pretrained", "model")
        )
        self.finetune(
            "finetuned-from-random",
            "the same from random weights, to compare",
            architecture=self.sizes.architecture,
            vocab=self.path("vocab.txt"),
        )
        with_pretraining = self.evaluate("finetuned")
        without = self.evaluate("finetuned-from-random")
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
            "accuracy": {
                "pretrained": with_pretraining["accuracy"],
                "random": without["accuracy"],
                "examples": without["examples"],
            },
            "answers": answers,
            "savedmodel": str(version),
            "seconds": self.seconds,
            "total_seconds": time.perf_counter() - started,
        }

    def how_far(self):
        """What was done of a quickstart that is stopped, and how to go on, in a sentence."""
        done = len(self.seconds)
        return (
            f"stopped after {done} step{'' if done == 1 else 's'} of the quickstart in "
            f"{self.output}; the same command goes on."
        )

    @contextlib.contextmanager
    def _step(self, name, title, *command):
        """Reports a step; yields a function that takes its summary in a line."""
        self.report(f"{len(self.seconds) + 1}. {title}")
        if command:
            self.report(f"   $ {shlex.join(str(word) for word in command)}")
        started = time.perf_counter()
        summaries = []
        yield summaries.append
        self.seconds[name] = time.perf_counter() - started
        self.report(f"   {'; '.join(summaries)} ({self.seconds[name]:.1f} s)")

    def write_samples(self):
        with self._step("samples", "Write the samples: raw text and labelled messages") as done:
            paths = write_manual(self.path("manual"))
            characters = sum(len(path.read_text(encoding="utf-8")) for path in paths)
            done(f"Python's manual, {len(paths)} documents with {characters:,} characters")
            self.path("messages").mkdir(exist_ok=True)
            counts = {}
            for split, source in samples.MESSAGES.items():
                text = source.read_text(encoding="utf-8")
                self.path("messages", f"{split}.tsv").write_text(text, encoding="utf-8")
                counts[split] = text.count("\n") - 1
            done(f"messages: {', '.join(f'{count} {split}' for split, count in counts.items())}")
            # The training texts without their labels: what a vocabulary may be learned from.
            rows = self.path("messages", "train.tsv").read_text(encoding="utf-8").splitlines()[1:]
            texts = "".join(f"{row.split(chr(9))[0]}\n" for row in rows)
            self.path("messages", "train.txt").write_text(texts, encoding="utf-8")

    def learn_vocabulary(self):
        from data_gen.vocabulary import learn_vocabulary

        inputs = [str(self.path("manual", "*.txt")), str(self.path("messages", "train.txt"))]
        vocab = self.path("vocab.txt")
        with self._step(
            "vocabulary",
            "Learn a vocabulary",
            *("keras-bert", "vocab", "--input", *inputs),
            *("--output", vocab, "--size", self.sizes.vocabulary),
        ) as done:
            learned = learn_vocabulary(
                input=inputs, output=vocab, size=self.sizes.vocabulary, force=True
            )
            done(f"{len(learned.vocabulary):,} pieces from {learned.words:,} words")

    def make_records(self):
        from data_gen.pretraining_data import make_pretraining_data

        sizes = self.sizes
        manual, vocab, data = (
            self.path(name) for name in ("manual/*.txt", "vocab.txt", "pretraining-data")
        )
        with self._step(
            "records",
            "Turn the manual into records for pre-training, with a Beam job",
            *("keras-bert", "pretraining-data", "--input", manual, "--vocab", vocab),
            *("--output", data, "--max-length", sizes.max_length),
            *("--max-predictions", sizes.max_predictions, "--dupe-factor", sizes.dupe_factor),
            *("--eval-fraction", sizes.eval_fraction, "--seed", self.seed),
        ) as done:
            card = make_pretraining_data(
                input=str(manual),
                vocab=vocab,
                output=data,
                max_length=sizes.max_length,
                max_predictions=sizes.max_predictions,
                dupe_factor=sizes.dupe_factor,
                eval_fraction=sizes.eval_fraction,
                seed=self.seed,
            )
            train, held_out = (card.splits[split] for split in ("train", "eval"))
            done(
                f"{train.instances:,} rows to train on and {held_out.instances:,} held out; "
                f"look at them with: keras-bert inspect {shlex.quote(str(data))}"
            )

    def pretrain(self):
        from keras_bert.train.pretrain import pretrain

        sizes = self.sizes
        data, vocab, run = (
            self.path(name) for name in ("pretraining-data", "vocab.txt", "pretrained")
        )
        with self._step(
            "pre-training",
            "Pre-train an encoder on masked tokens and next sentences",
            *("keras-bert", "pretrain", "--data", data, "--vocab", vocab, "--output", run),
            *("--architecture", sizes.architecture, "--steps", sizes.steps),
            *("--batch-size", sizes.batch_size, "--learning-rate", sizes.learning_rate),
            *("--seed", self.seed),
        ) as done:
            metrics = pretrain(
                data=data,
                vocab=vocab,
                output=run,
                architecture=sizes.architecture,
                steps=sizes.steps,
                batch_size=sizes.batch_size,
                learning_rate=sizes.learning_rate,
                seed=self.seed,
            )
            done(
                f"{metrics['parameters']:,} parameters, "
                f"{metrics['tokens_per_second'] or 0:,.0f} tokens/s; curves: "
                f"tensorboard --logdir {shlex.quote(str(run / 'logs'))}"
            )
        return metrics

    def finetune(self, name, title, **start):
        from keras_bert.train.finetune import finetune

        sizes = self.sizes
        train, dev = (self.path("messages", f"{split}.tsv") for split in ("train", "dev"))
        flags = [word for flag, value in start.items() for word in (f"--{flag}", value)]
        with self._step(
            name,
            f"Fine-tune a spam filter, {title}",
            *("keras-bert", "finetune", "--task", "classifier", *flags),
            *("--train", train, "--dev", dev, "--output", self.path(name)),
            *("--epochs", sizes.epochs, "--batch-size", sizes.finetune_batch_size),
            *("--learning-rate", sizes.finetune_learning_rate),
            *("--max-length", sizes.max_length, "--seed", self.seed),
        ) as done:
            metrics = finetune(
                task="classifier",
                train=train,
                dev=dev,
                output=self.path(name),
                epochs=sizes.epochs,
                batch_size=sizes.finetune_batch_size,
                learning_rate=sizes.finetune_learning_rate,
                max_length=sizes.max_length,
                seed=self.seed,
                **start,
            )
            done(
                f"kept epoch {metrics['kept']['epoch']} of {sizes.epochs}, the best on the dev "
                f"messages: {percent(metrics['dev']['accuracy'])} of them right"
            )

    def evaluate(self, name):
        from keras_bert.inference.evaluate import evaluate

        test = self.path("messages", "test.tsv")
        with self._step(
            f"test {name}",
            f"Test {name} on messages that it has not seen",
            *("keras-bert", "evaluate", "--model", self.path(name, "model"), "--data", test),
        ) as done:
            metrics = evaluate(model=self.path(name, "model"), data=test)
            done(f"{percent(metrics['accuracy'])} of {metrics['examples']} right")
        return metrics

    def export(self):
        from keras_bert.export.saved_model import export

        model, models = self.path("finetuned", "model"), self.path("savedmodels", "spam")
        with self._step(
            "export",
            "Export a SavedModel that takes strings",
            *("keras-bert", "export", "--model", model, "--output", models),
        ) as done:
            clear_leftovers_in(models)
            version = models / "1"
            if not version.exists():
                version = export(model=model, output=models)
            done(str(version))
        return version

    def ask(self, version):
        """The answers of the SavedModel in a process that imports nothing of ours."""
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
                raise RuntimeError(f"{script} failed:\n{answered.stderr}")
            answers = [json.loads(line) for line in answered.stdout.splitlines()]
            done(", ".join(answer["label"] for answer in answers))
        return answers
