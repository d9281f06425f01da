"""The results of fine-tuning that every run has, and the weights of a learned mix of layers."""

import math

from keras_bert.training.parts import Part


class Results(Part):
    """The metrics of the kept model on the dev data, sizes, and the curve."""

    def metrics(self, run, records):
        return {
            "dev": run.dev_metrics(),
            **run.task.inferred_arguments,
            "train_examples": run.count,
            "steps": records[-1]["step"],
            "parameters": run.trained.count_params(),
            "trainable_parameters": sum(math.prod(w.shape) for w in run.model.trainable_weights),
            "seconds": records[-1]["seconds"],
            "history": records,
        }


class LayerMix(Part):
    """The weights that a run has learned for the layers of its encoder."""

    @classmethod
    def of(cls, run):
        return None if run.task.reader.scalar_mix is None else cls()

    def metrics(self, run, records):
        mix = run.task.reader.scalar_mix
        weights = [round(float(weight), 6) for weight in mix.layer_weights]
        return {"scalar_mix": {"layer_weights": weights, "gamma": round(float(mix.gamma), 6)}}
