"""The layout of a batch: where its tokens are, and which of them may attend to which."""

import copy

import keras
from keras import ops

from keras_bert.layers.kernels.gathering import unpadding_of


class Layout:
    """The layout of a batch, which every layer takes with the batch's vectors.

    It is made once per forward pass, and decides which positions the layers work on: x (R, D) holds
    the vectors of R positions of the batch, all B * S of them or, where that is faster, those of
    the tokens alone (B batch, S sequence, D hidden size).

    Args:
        input_mask: (B, S) int or bool, 1 at tokens and 0 at padding. On a GPU under JAX padding
            comes after the tokens: attention reads lengths there, and gives NaN for other rows.
        sequence_ids: in place of `input_mask`, (B, S) int: the number of each token's sequence in a
            packed row, from 1, and 0 at padding. The tokens of a sequence are adjacent. A sequence
            sees only itself, and its positions start at 0.
        causal: each token sees only itself and the tokens before it in its sequence.

    Attributes:
        is_token: bool (B, S).
        positions: int32, each token's position in its sequence: (B, S) in packed rows, elsewhere
            (1, S), which is 0, 1, … for all.
        is_packed: whether `sequence_ids` were given.
        causal: the argument.

    Raises:
        ValueError: not exactly one of `input_mask` and `sequence_ids` is given, or it does not have
            two axes of integers or booleans.
    """

    def __init__(self, *, input_mask=None, sequence_ids=None, causal):
        if (input_mask is None) == (sequence_ids is None):
            raise ValueError("Pass either `input_mask` or `sequence_ids`.")
        name = "input_mask" if sequence_ids is None else "sequence_ids"
        ids = ops.convert_to_tensor(input_mask if sequence_ids is None else sequence_ids)
        dtype = keras.backend.standardize_dtype(ids.dtype)
        if len(ids.shape) != 2 or not dtype.startswith(("int", "uint", "bool")):
            raise ValueError(
                f"`{name}` must be (batch, sequence) and hold integers or booleans. "
                f"Received: shape={tuple(ids.shape)}, dtype={dtype}."
            )
        self.causal = causal
        self.is_packed = sequence_ids is not None
        self.is_token = ops.cast(ids, "bool")
        self._shape = ops.shape(ids)
        self._computed = {}
        self.positions = ops.arange(self._shape[1], dtype="int32")[None]  # (1, S)
        if self.is_packed:
            self._same_sequence = ids[:, :, None] == ids[:, None, :]  # (B, S, S)
            # argmax returns the first True: where the token's sequence begins.
            begins = ops.argmax(ops.cast(self._same_sequence, "int32"), axis=-1)  # (B, S)
            self.positions = self.positions - ops.cast(begins, "int32")
        # Packed rows have next to no padding.
        self._unpadding = unpadding_of(self.is_token, worthwhile=not self.is_packed)

    def mask(self, window=None):
        """Bool (B, 1, S or 1, S): True where the query (third axis) may see the key (last axis).

        Args:
            window: each token sees those up to so many positions away; None is any number.
        """
        return self.once(("mask", window), lambda: self._new_mask(window))

    def _new_mask(self, window):
        mask = ops.expand_dims(self.is_token, axis=(1, 2))  # (B, 1, 1, S)
        if self.is_packed:
            mask = ops.logical_and(mask, self._same_sequence[:, None])
        if self.causal or window is not None:
            index = ops.arange(self._shape[1])
            distances = (index[:, None] - index[None, :])[None, None]  # (1, 1, S, S)
            if self.causal:
                mask = ops.logical_and(mask, distances >= 0)
            if window is not None:
                mask = ops.logical_and(mask, ops.abs(distances) <= window)
        return mask

    @property
    def lengths(self):
        """The number of tokens of each row, int32 (B,)."""
        is_token = self.is_token
        return self.once("lengths", lambda: ops.sum(ops.cast(is_token, "int32"), axis=1))

    @property
    def padding_is_last(self):
        """Whether a row has no padding before a token, bool (B,)."""
        before, after = self.is_token[:, :-1], self.is_token[:, 1:]
        return self.once(
            "padding_is_last",
            lambda: ops.all(ops.logical_or(before, ops.logical_not(after)), axis=1),
        )

    def once(self, key, compute):
        """`compute()`, called once per key: what the layers of a forward pass share."""
        if key not in self._computed:
            self._computed[key] = compute()
        return self._computed[key]

    def fresh(self):
        """A layout of the same batch, which computes what layers share again."""
        layout = copy.copy(self)
        layout._computed = {}
        return layout

    @property
    def key_positions(self):
        """`positions`: keys are at the same as queries."""
        return self.positions

    def unpad(self, x):
        """(B, S, D) -> (R, D)."""
        return self._unpadding.unpad(x)

    def pad(self, x):
        """(R, D) -> (B, S, D). Values at padding positions are undefined."""
        return self._unpadding.pad(x)

    def first(self, x):
        """The first token of each sequence: (R, D) -> (B, D)."""
        return self.pad(x)[:, 0]


class StepLayout:
    """The layout of one new token of each sequence, after those that a cache holds.

    It is made once per step, for all layers (B batch, N heads, M positions of the cache).

    Args:
        index: int (B,), the new tokens' positions.
        cache: one of keys or values (B, N, M, H).

    Attributes:
        positions: int32 (B, 1), the new tokens'.
        key_positions: int32 (1, M), those of the cache.
        cache_indices: int32 (B N, 3), where a cache has the new tokens.
    """

    def __init__(self, index, cache):
        _, num_heads, max_length, _ = ops.shape(cache)
        self.positions = ops.cast(index, "int32")[:, None]
        self.key_positions = ops.arange(max_length, dtype="int32")[None]
        self._computed = {}
        batch = ops.shape(index)[0]
        rows = ops.arange(batch * num_heads, dtype="int32")
        index = ops.reshape(ops.broadcast_to(self.positions, (batch, num_heads)), (-1,))
        self.cache_indices = ops.stack([rows // num_heads, rows % num_heads, index], axis=1)

    def mask(self, window=None):
        """Bool (B, 1, 1, M), True at the new token and those before it, or `window` of them."""
        return self.once(("mask", window), lambda: self._new_mask(window))

    def _new_mask(self, window):
        is_seen = self.key_positions <= self.positions  # (B, M)
        if window is not None:
            is_near = self.key_positions >= self.positions - window
            is_seen = ops.logical_and(is_seen, is_near)
        return is_seen[:, None, None]

    once = Layout.once
