"""Encoders that are a stack of Transformer layers: reading one token at a time."""

from keras_bert.encoders.encoder import Encoder


class TransformerEncoder(Encoder):
    """An encoder with `blocks`, a list of `TransformerBlock`.

    A subclass that can be causal defines `embed_step`, and `last_norm` if a norm follows the
    blocks. The cache is the keys and values of each block.
    """

    last_norm = None

    def embed_step(self, ids, index):
        """Ids (B, 1) and their positions (B, 1) -> what the first block takes, (B, 1, D)."""
        raise NotImplementedError

    def initial_cache(self, batch_size, max_length):
        return [block.initial_cache(batch_size, max_length) for block in self.blocks]

    def prefill(self, inputs, max_length):
        # All positions at once; keys and values are computed a second time, from their inputs.
        states = self(inputs, outputs=("hidden_states",), causal=True)["hidden_states"]
        blocks = zip(self.blocks, states, strict=False)
        return states[-1], [block.cache_of(x, max_length) for block, x in blocks]

    def step(self, ids, cache, index):
        x = self.embed_step(ids[:, None], index[:, None])[:, 0]  # (B, D)
        caches = []
        for block, one in zip(self.blocks, cache, strict=True):
            x, one = block.step(x, one, index)
            caches.append(one)
        return (x if self.last_norm is None else self.last_norm(x)), caches
