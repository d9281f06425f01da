"""How a task is saved as a model folder or a Keras file, exported, and made again by Keras."""

import dataclasses
from os import PathLike
from pathlib import Path
from typing import Any, Self

import keras

from keras_bert.base.errors import InputError
from keras_bert.base.settings import about
from keras_bert.heads import LAST
from keras_bert.layers.dense import check_float_weights
from keras_bert.tasks import TaskSettings, argument_fields
from keras_bert.tasks.fitting import FittingModel


class StoredModel(FittingModel):
    """The methods by which a `Task` is stored; `Task` describes the class attributes."""

    # {part of an example: its columns} in the data that it was trained on, which folders store.
    columns = None
    skips_spaces = True  # of the tokenizer in a Keras file

    def save(self, filepath: str | PathLike[str], overwrite: bool = True, **options: Any) -> None:
        """Writes a model folder, or a Keras file if the name ends in .keras or .h5.

        Every command reads a model folder (config.json, model.safetensors and the tokenizer's
        files, such as vocab.txt). A .keras file has the tokenizer, too, and an .h5 file has not.

        Args:
            filepath: the path to write.
            overwrite: replace the file, or a model folder that this library wrote.
            **options: those of Keras for a file.

        Raises InputError: the model was quantized, or the folder may not be replaced.
        """
        check_float_weights(self)
        if str(filepath).endswith((".keras", ".h5")):
            super().save(filepath, overwrite=overwrite, **options)
            return
        from keras_bert.checkpoints import save_folder

        folder = Path(filepath)
        if not overwrite and folder.is_dir() and any(folder.iterdir()):
            raise InputError.naming(
                "{} is there already. Give another folder, or {overwrite=True} to replace it.",
                folder,
            )
        save_folder(self, self.tokenizer, filepath, overwrite=overwrite, **options)

    def save_adapter(
        self, folder: str | PathLike[str], *, base: str | PathLike[str], overwrite: bool = False
    ) -> None:
        """Writes what was trained with LoRA as an adapter of `peft`: see `Encoder.enable_lora`.

        Args:
            folder: the folder to write. It opens as a model folder does.
            base: the folder or name of the model that the encoder was loaded from.
            overwrite: replace a folder that this library wrote.
        """
        from keras_bert.checkpoints import save_adapter

        save_adapter(self, self.tokenizer, folder, base=base, overwrite=overwrite)

    def save_assets(self, dir_path: str) -> None:
        """Keras's hook: writes the tokenizer into a .keras file."""
        if self.tokenizer is not None:
            self.tokenizer.save(dir_path)

    def load_assets(self, dir_path: str) -> None:
        """Keras's hook: reads the tokenizer of a .keras file."""
        if any(Path(dir_path).iterdir()):
            from keras_bert.text.tokenizer import Tokenizer  # needs TensorFlow

            self.tokenizer = Tokenizer.from_folder(dir_path)
            self.tokenizer.skips_spaces = self.skips_spaces
            self._set_tokenizer(self.tokenizer)

    def export(self, filepath: str | PathLike[str], **options: Any) -> Path:
        """Writes a SavedModel that takes strings to the next version folder under `filepath`."""
        from keras_bert.exports.saved_model import export_task

        return export_task(self, filepath, **options)

    @classmethod
    def reads_files(cls) -> bool:
        """Whether the task type is trained on labelled files."""
        return issubclass(cls.SETTINGS, TaskSettings)

    @classmethod
    def stored_settings(cls) -> dict[str, dataclasses.Field]:
        """The fields of SETTINGS that a model folder stores, by name."""
        return {
            field.name: field for field in dataclasses.fields(cls.SETTINGS) if about(field).stored
        }

    def get_config(self) -> dict[str, Any]:
        # A functional model's own config is its graph, which our constructors do not take.
        reader = self.reader
        config = {"encoder": keras.saving.serialize_keras_object(self.encoder), "name": self.name}
        config |= {} if reader.layers == LAST else {"layers": reader.layers}
        config |= {} if reader.mix is None else {"layer_mix": reader.mix}
        if reader.static_vectors is not None:
            config["static_vectors"] = keras.saving.serialize_keras_object(reader.static_vectors)
        names = argument_fields(self.SETTINGS)
        settings = {name: getattr(self.settings, name) for name in names}
        columns: dict[str, Any] = {"columns": self.columns} if self.columns else {}
        words: dict[str, Any] = {}
        if self.READS_WORDS:
            given = self if self.tokenizer is None else self.tokenizer
            words["skips_spaces"] = given.skips_spaces
        return {**config, **self.inferred_arguments, **settings, **columns, **words}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        config = dict(config)
        columns = config.pop("columns", None)
        skips_spaces = config.pop("skips_spaces", not cls.READS_WORDS)
        for name in ("encoder", "static_vectors"):
            if isinstance(config.get(name), dict):  # of a file
                config[name] = keras.saving.deserialize_keras_object(
                    config[name], custom_objects=custom_objects
                )
        task = cls(**config)
        task.columns, task.skips_spaces = columns, skips_spaces
        return task
