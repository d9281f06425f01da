"""The encoder's layers, in `keras.ops` alone."""

import inspect
from typing import Any

import keras

# What layers compute with: a tensor of the backend, a symbolic one of Keras, or an array.
Tensor = Any


class Layer(keras.layers.Layer):
    """A layer whose config is made of its constructor's own arguments, `self.settings`.

    Keras's default config has no layers, functions or dtype policies among the arguments.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        layer = super().__new__(cls, *args, **kwargs)
        bound = inspect.signature(cls.__init__).bind(layer, *args, **kwargs)
        bound.apply_defaults()
        # What remains, in `**kwargs`, is for `keras.layers.Layer`.
        settings = {name: bound.arguments[name] for name in cls._setting_names()}
        object.__setattr__(layer, "settings", settings)  # not tracked: its layers are attributes
        return layer

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        """None: Keras's mask of an input, which an encoder's outputs have, goes no further."""
        return None

    @classmethod
    def _setting_names(cls):
        parameters = inspect.signature(cls.__init__).parameters.values()
        arguments = (p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        return [name for name in arguments if name != "dtype"]

    def get_config(self) -> dict[str, Any]:
        settings = {
            name: keras.saving.serialize_keras_object(value)
            for name, value in self.settings.items()
        }
        return {**super().get_config(), **settings}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        settings = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in cls._setting_names()
            if name in config
        }
        return super().from_config({**config, **settings})
