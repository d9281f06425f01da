"""Trained runs for the tests of a task type: an encoder of some words, two files, and flags."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_bert.checkpoints import save_folder
from keras_bert.cli.main import main
from tests.small_model import make_encoder, make_tokenizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class Family:
    """A task with its data.

    Attributes:
        task: the `--task`.
        words: the words of its texts, which are tokens of the encoder.
        write: a function of (path, count, seed) that writes a labelled file and returns its path.
        ending: that of its files.
        train_count, dev_count: their numbers of examples.
        encoder: arguments of `make_encoder`.
        flags: further flags of the run.
    """

    task: str
    words: list[str]
    write: Callable[[Path, int, int], Path]
    ending: str
    train_count: int
    dev_count: int
    encoder: dict[str, Any]
    flags: str

    def write_files(self, folder: Path) -> dict[str, Path]:
        tokenizer = make_tokenizer(self.words)
        save_folder(make_encoder(tokenizer, **self.encoder), tokenizer, folder / "encoder")
        return {
            "encoder": folder / "encoder",
            "train": self.write(folder / f"train.{self.ending}", self.train_count, 1),
            "dev": self.write(folder / f"dev.{self.ending}", self.dev_count, 2),
            "folder": folder,
        }

    def train(self, files: dict[str, Path], output: Path) -> int:
        """The status of `finetune`."""
        paths = {"model": files["encoder"], "train": files["train"], "dev": files["dev"]}
        given = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
        command = ["finetune", "--task", self.task, *given, "--output", str(output)]
        return main([*command, *self.flags.split()])
