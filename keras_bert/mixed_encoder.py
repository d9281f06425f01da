"""An encoder that gives tasks a learned mix of all its layers in place of the last one."""

import keras

from keras_bert.encoder import BertEncoder, check_names, check_reads
from keras_bert.layers.scalar_mix import ScalarMix


@keras.saving.register_keras_serializable(package="keras_bert")
class MixedEncoder(keras.Model):
    """Stands wherever a `BertEncoder` does, so that every task can learn which layers serve it.

        encoder, tokenizer = kb.load("folder")
        encoder.trainable = False  # or not: feature-based, or fine-tuned
        task = kb.Classifier(kb.MixedEncoder(encoder), tokenizer, labels=["ham", "spam"])

    Takes the encoder's dictionary and gives its outputs (B batch, S tokens in a row, D width):
    `sequence_output` (B, S, D) is the `ScalarMix` of the embeddings and of every block's output,
    and `pooled_output` (B, D), where there is a pooler, is the pooler's over that.

    Args:
        encoder: a `BertEncoder` (not one for packed rows).
        layer_norm_eps, l2: see `ScalarMix`.

    Raises:
        ValueError: the encoder is none, or `l2` is negative.

    Attributes: `encoder`, `scalar_mix` (whose `shares` tell what was learned), `config` (the
    encoder's), `token_embedding`.
    """

    def __init__(self, encoder, *, layer_norm_eps=None, l2=0.0, name="mixed_encoder"):
        if not isinstance(encoder, BertEncoder):
            raise ValueError(
                f"`encoder` must be a `BertEncoder`. Received: a {type(encoder).__name__}"
            )
        scalar_mix = ScalarMix(
            num_layers=encoder.config.num_hidden_layers + 1,
            layer_norm_eps=layer_norm_eps,
            l2=l2,
            dtype=encoder.layer_policy,
            name="scalar_mix",
        )
        view = encoder.view(hidden_states=True)
        inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in view.input}
        states = view(inputs)["hidden_states"]
        super().__init__(
            inputs=inputs, outputs=_outputs(states, scalar_mix, encoder.pooler), name=name
        )
        self.encoder = encoder
        self.scalar_mix = scalar_mix

    def call(self, inputs, training=None, mask=None, reads=None):
        """All outputs, whichever the caller `reads`: a mix is made of every token."""
        check_reads(reads, self.output)
        return super().call(check_names(inputs, self.input), training=training, mask=mask)

    def compute_output_spec(self, inputs, training=None, mask=None, reads=None):
        check_reads(reads, self.output)
        return super().compute_output_spec(inputs, training=training, mask=mask)

    @property
    def config(self):
        """The encoder's `BertConfig`."""
        return self.encoder.config

    @property
    def token_embedding(self):
        """The `keras.layers.Embedding` (V, D) that a masked-LM head shares."""
        return self.encoder.token_embedding

    @property
    def layer_policy(self):
        """The dtype policy of its layers, which a head on it takes over (`dtype=`)."""
        return self.encoder.layer_policy

    @property
    def pooler(self):
        """The encoder's pooler, or None."""
        return self.encoder.pooler

    def base(self):
        """The `BertEncoder`."""
        return self.encoder

    @property
    def states_read(self):
        """The numbers of the hidden states that the outputs are made of; 0 is the embeddings."""
        return list(range(self.config.num_hidden_layers + 1))

    def from_states(self, states):
        """The outputs that belong to hidden states: L + 1 of (B, S, D) -> a dictionary."""
        return _outputs(states, self.scalar_mix, self.pooler)

    @property
    def mix_settings(self):
        """The arguments of the mix, as a model folder keeps them."""
        return {"layer_norm_eps": self.scalar_mix.layer_norm_eps, "l2": self.scalar_mix.l2}

    def get_config(self):
        return {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "name": self.name,
            **self.mix_settings,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        config["encoder"] = keras.saving.deserialize_keras_object(
            config["encoder"], custom_objects=custom_objects
        )
        return cls(**config)


def _outputs(states, scalar_mix, pooler):
    sequence = scalar_mix(list(states))  # (B, S, D)
    outputs = {"sequence_output": sequence}
    if pooler is not None:
        outputs["pooled_output"] = pooler(sequence)  # (B, D)
    return outputs
