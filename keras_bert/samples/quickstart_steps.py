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
from keras_bert.base.files import clear_leftovers_in, write_json
from keras_bert.base.formatting import counted, percent
from keras_bert.samples.texts import write_docstrings, write_manual

# "tiny" with twice as many heads, half as large, so that the neighbours on both sides have two
# each; without dropout, which the few steps here have no use for.
ARCHITECTURE = {
    "model_type": "bert",
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "max_position_embeddings": 128,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}

SENTENCES = (
    "Buy these pills",
    "Win cash prizes",
    "Please find attached the minutes of our meeting",
)


_DATA = "pretraining-data"


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
        self.seconds = {}  # of the steps of one name together
        self._done = 0

    def path(self, *names):
        return self.output.joinpath(*names)

    def all(self):
        """Takes every step; returns the results."""
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
        """What was done of a quickstart that is stopped, and how to go on, in a sentence."""
        return (
            f"stopped after {counted(self._done, 'step')} of the quickstart in {self.output}; the "
            "same command goes on."
        )

    @contextlib.contextmanager
    def _step(self, name, title, *command):
        """Reports a step; yields a function that takes its summary in a line."""
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
        with self._step("samples", "Write the samples: raw text and what is labelled") as done:
            paths = write_manual(self.path("text", "manual"))
            paths += write_docstrings(self.path("text", "docstrings"), self.sizes.packages)
            characters = sum(len(path.read_text(encoding="utf-8")) for path in paths)
            done(
                f"Python's manual and docstrings of {', '.join(self.sizes.packages)}: "
                f"{len(paths):,} documents with {characters:,} characters"
            )
            self.path("messages").mkdir(exist_ok=True)
            for split, source in samples.MESSAGES.items():
                shutil.copyfile(source, self.path("messages", f"{split}.tsv"))
            # The training messages without their labels are raw text, too: each a document.
            rows = samples.MESSAGES["train"].read_text(encoding="utf-8").splitlines()[1:]
            texts = "".join(f"{row.split(chr(9))[0]}\n\n" for row in rows)
            self.path("text", "messages.txt").write_text(texts, encoding="utf-8")
            self.path("tags").mkdir(exist_ok=True)
            for split, source in samples.TAGS.items():
                shutil.copyfile(source, self.path("tags", f"{split}.conll"))
            sentences = samples.TAGS["train"].read_text(encoding="utf-8").split("\n\n")
            for count in self.sizes.tagged:
                first = "\n\n".join(sentences[:count]).rstrip("\n") + "\n"
                self.path("tags", f"train-{count}.conll").write_text(first, encoding="utf-8")
            done(
                f"{len(rows)} messages, spam and ham, and {len(sentences)} sentences whose words "
                "are tagged, to train on; others to test on"
            )

    def learn_vocabulary(self):
        from data_gen.vocabulary import learn_vocabulary

        text, vocab = self.path("text", "**"), self.path("vocab.txt")
        with self._step(
            "vocabulary",
            "Learn a vocabulary",
            *("keras-bert", "vocab", "--input", text),
            *("--output", vocab, "--size", self.sizes.vocabulary),
        ) as done:
            learned = learn_vocabulary(
                input=str(text), output=vocab, size=self.sizes.vocabulary, force=True
            )
            done(f"{len(learned.vocabulary):,} pieces from {learned.words:,} words")
        config = {**self.sizes.architecture, "vocab_size": len(learned.vocabulary)}
        write_json(self.path("architecture.json"), config)

    def make_records(self):
        from data_gen.pretraining_data import make_pretraining_data

        sizes = self.sizes
        text, vocab, data = self.path("text", "**"), self.path("vocab.txt"), self.path(_DATA)
        with self._step(
            "records",
            "Turn the text into records for pre-training, with a Beam job",
            *("keras-bert", "pretraining-data", "--input", text, "--vocab", vocab),
            *("--output", data, "--objective", "mlm", "--masking", "dynamic"),
            *("--max-length", sizes.max_length, "--mlm-probability", sizes.mlm_probability),
            *("--eval-fraction", sizes.eval_fraction, "--seed", self.seed),
        ) as done:
            card = make_pretraining_data(
                input=str(text),
                vocab=vocab,
                output=data,
                objective="mlm",
                masking="dynamic",
                max_length=sizes.max_length,
                mlm_probability=sizes.mlm_probability,
                eval_fraction=sizes.eval_fraction,
                seed=self.seed,
            )
            train, held_out = (card.splits[split] for split in ("train", "eval"))
            done(
                f"{train.instances:,} rows to train on and {held_out.instances:,} held out; "
                f"look at them with: keras-bert inspect {shlex.quote(str(data))}"
            )

    def pretrain(self):
        from keras_bert.training.pretrain import pretrain

        sizes = self.sizes
        data, vocab, architecture, run = (
            self.path(name) for name in (_DATA, "vocab.txt", "architecture.json", "pretrained")
        )
        with self._step(
            "pre-training",
            "Pre-train an encoder on masked tokens",
            *("keras-bert", "pretrain", "--data", data, "--vocab", vocab, "--output", run),
            *("--architecture", architecture, "--steps", sizes.steps),
            *("--batch-size", sizes.batch_size, "--learning-rate", sizes.learning_rate),
            *("--seed", self.seed),
        ) as done:
            metrics = pretrain(
                data=data,
                vocab=vocab,
                output=run,
                architecture=architecture,
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

    def tag(self, sentences):
        """The accuracy of taggers of so many sentences, from random and pre-trained weights."""
        found = {"sentences": sentences}
        for start, weights in self._starts().items():
            model = self.path("taggers", f"{sentences}-{start}")
            self._finetune(
                "taggers",
                f"Train a tagger on {sentences} sentences, from {start} weights",
                *("tagger", self.path("tags", f"train-{sentences}.conll")),
                dev=self.path("tags", "dev.conll"),
                output=model,
                epochs=self._epochs(sentences),
                learning_rate=self.sizes.tagger_rates[start],
                **weights,
            )
            measured = self._evaluate("taggers", model, self.path("tags", "test.conll"), "words")
            found |= {start: measured["accuracy"], "words": measured["words"]}
        return found

    def filter_spam(self):
        """Fine-tunes and tests the filter that is exported: what `evaluate` returns."""
        train, dev, test = (
            self.path("messages", f"{split}.tsv") for split in ("train", "dev", "test")
        )
        self._finetune(
            "spam filter",
            "Fine-tune a spam filter",
            *("classifier", train),
            dev=dev,
            output=self.path("spam"),
            epochs=self.sizes.epochs,
            learning_rate=self.sizes.spam_rate,
            # Nothing has trained what stands at [CLS] yet, of an encoder of masked tokens alone.
            pooling="mean",
            **self._starts()["pretrained"],
        )
        return self._evaluate("spam filter", self.path("spam"), test, "examples")

    def _starts(self):
        """What a run is told to start from: random weights, or those that were pre-trained."""
        architecture, vocab = self.path("architecture.json"), self.path("vocab.txt")
        return {
            "random": {"architecture": architecture, "vocab": vocab},
            "pretrained": {"model": self.path("pretrained", "model")},
        }

    def _epochs(self, examples):
        """As many as make the steps of a tagger, one at least."""
        sizes = self.sizes
        return max(1, round(sizes.tagger_steps * sizes.finetune_batch_size / examples))

    def _finetune(self, name, title, task, train, **given):
        from keras_bert.training.finetune import finetune

        given |= {
            "batch_size": self.sizes.finetune_batch_size,
            "max_length": self.sizes.max_length,
            "seed": self.seed,
        }
        flags = [
            word
            for setting, value in given.items()
            for word in (f"--{setting.replace('_', '-')}", value)
        ]
        with self._step(
            name, title, *("keras-bert", "finetune", "--task", task, "--train", train, *flags)
        ) as done:
            metrics = finetune(task=task, train=train, **given)
            done(
                f"kept epoch {metrics['kept']['epoch']} of {given['epochs']}, the best on the dev "
                f"file: {percent(metrics['dev']['accuracy'])} right"
            )

    def _evaluate(self, name, run, data, unit):
        from keras_bert.inference.evaluate import evaluate

        with self._step(
            name,
            f"Test {run.name} on what it has not seen",
            *("keras-bert", "evaluate", "--model", run / "model", "--data", data),
        ) as done:
            metrics = evaluate(model=run / "model", data=data)
            done(f"{percent(metrics['accuracy'])} of {metrics[unit]:,} {unit} right")
        return metrics

    def export(self):
        from keras_bert.export.saved_model import export

        model, models = self.path("spam", "model"), self.path("savedmodels", "spam")
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
