"""The layout of a batch: where its tokens are, and which of them may attend to which."""

import copy

import keras
from keras import ops

from keras_bert.layers.kernels.gathering import unpadding_of


class Layout:
    """The layout of a batch, which every layer takes with the batch's vectors.

    It is made once per forward pass, and decides which positions the layers work on: x (R, D) holds
    the vectors of R positions of the batch, all B * S of them or, if that is faster, those of
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
        self.ids = ids
        self.shape = ops.shape(ids)
        self._computed = {}
        self.positions = ops.arange(self.shape[1], dtype="int32")[None]  # (1, S)
        if self.is_packed:
            self.positions = self.positions - _first_positions(ids)
        # Packed rows have next to no padding.
        self._unpadding = unpadding_of(self.is_token, worthwhile=not self.is_packed)

    def mask(self, window=None, *, cls_only=False):
        """Bool (B, 1, S or 1, S): True where the query (third axis) may see the key (last axis).

        Args:
            window: each token sees those up to so many positions away; None is any number.
            cls_only: the first token is the only query.
        """
        return self.once(("mask", window, cls_only), lambda: self._new_mask(window, cls_only))

    def _new_mask(self, window, cls_only):
        some, places = slice(1 if cls_only else None), ops.arange(self.shape[1])
        queries, keys = (self.ids[:, some], places[some]), (self.ids, places)
        return _mask(self, queries, keys, self.is_token, window=window)

    def blocks(self, window):
        """The `Blocks` that attention with a window works on, or None if rows are too short."""
        if window is None:
            return None
        size = max(2 * window, _SMALLEST_BLOCK)
        is_long = self.shape[1] >= _FEWEST_BLOCKS * size
        if is_long is False:
            return None
        return self.once(("blocks", window), lambda: Blocks(self, window, size, is_long))

    def with_neighbors(self, x, *, axis):
        """Keys or values that a row's queries see: x, since a row has no neighbors."""
        return x

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


def _mask(layout, queries, keys, is_token, *, window):
    """The mask of queries and keys, each the ids (B, Q) or (B, K) and their places (Q,) or (K,).

    Shapes: bool `is_token` (B, K), of the keys -> bool (B, 1, Q or 1, K).
    """
    (query_ids, query_places), (key_ids, key_places) = queries, keys
    # LiteRT has no `[:, None, None]` of several axes of any size.
    mask = ops.expand_dims(is_token, axis=(1, 2))
    if layout.is_packed:
        same = query_ids[:, None, :, None] == ops.expand_dims(key_ids, axis=(1, 2))
        mask = ops.logical_and(mask, same)
    if layout.causal or window is not None:
        distances = query_places[:, None] - key_places
        if layout.causal:
            mask = ops.logical_and(mask, distances >= 0)
        if window is not None:
            mask = ops.logical_and(mask, ops.abs(distances) <= window)
    return mask


def _first_positions(ids):
    """Returns the begin of each position's sequence in packed rows: int, int32 (B, S)."""
    index = ops.arange(ops.shape(ids)[1], dtype="int32")
    begins = ops.pad(ids[:, 1:] != ids[:, :-1], [(0, 0), (1, 0)], constant_values=True)
    # All beginnings of a row in their order, and then the number of each position's.
    sorted_begins = ops.sort(ops.where(begins, index, ops.shape(ids)[1]), axis=1)
    number = ops.cumsum(ops.cast(begins, "int32"), axis=1) - 1
    return ops.take_along_axis(sorted_begins, number, axis=1)


# Blocks are as wide as the window, to both sides, but products of small matrices are slow.
_SMALLEST_BLOCK = 32
# A row of fewer blocks is attended to as fast with the mask of a whole row.
_FEWEST_BLOCKS = 4


class Blocks:
    """The rows of a layout, cut into blocks: the layout of attention that costs what it sees.

    The queries of a block see its own keys, and those before and after it that a window reaches, so
    that time and memory grow with the length of a row, not with its square. If lengths are known
    only when a graph runs, a row that is too short is a single block.

    Shapes: B' = B * ⌈S / Q⌉ blocks, of Q queries and K keys each.

    Args:
        layout: a `Layout`.
        window: see `Layout.mask`.
        size: Q, at least `window`.
        is_long: True, or a bool tensor (), whether rows are long enough.

    Attributes: `causal`, `positions` (B', Q), and `is_packed`, as those of a `Layout`. It is
        packed, since tokens of other blocks are masked.
    """

    is_packed = True

    def __init__(self, layout, window, size, is_long):
        batch, self._length = layout.shape
        self._size, self._reach = size, window
        if is_long is not True:
            self._size = ops.where(is_long, size, ops.maximum(self._length, 1))
            self._reach = ops.where(is_long, window, 0)
        self._count = (self._length + self._size - 1) // self._size
        self._layout, self._computed = layout, {}
        self.causal = layout.causal
        self.positions = self.cut(ops.broadcast_to(layout.positions, layout.shape))

    def cut(self, x):
        """(B, S, …) -> (B', Q, …), 0 after the end of a row."""
        rest, padding = ops.shape(x)[2:], self._count * self._size - self._length
        x = ops.pad(x, [(0, 0), (0, padding), *[(0, 0) for _ in rest]])
        return ops.reshape(x, (-1, self._size, *rest))

    def joined(self, x):
        """(B', Q, D) -> (B, S, D)."""
        x = ops.reshape(x, (-1, self._count * self._size, x.shape[-1]))
        return x[:, : self._length]

    def with_neighbors(self, x, *, axis):
        """Keys or values that a block's queries see, of which x holds the block's own.

        Shapes: x (B', …, Q, …), Q at `axis` -> (B', …, K, …), 0 beyond the ends of a row.
        """
        shape = ops.shape(x)[1:]
        x = ops.reshape(x, (-1, self._count, *shape))
        every = [slice(None)] * (axis - 1)

        def moved(blocks, places, padding):
            part = x[(slice(None), blocks, *every, places)]
            return ops.pad(part, [(0, 0), padding, *[(0, 0) for _ in shape]])

        before = moved(slice(None, -1), slice(self._size - self._reach, None), (1, 0))
        parts = [before, x]
        if not self.causal:
            parts.append(moved(slice(1, None), slice(None, self._reach), (0, 1)))
        x = ops.concatenate(parts, axis=axis + 1)
        return ops.reshape(x, (-1, *ops.shape(x)[2:]))

    def mask(self, window, *, cls_only=False):
        """Bool (B', 1, Q, K), as `Layout.mask`. Single queries are of whole rows (see `attend`)."""
        return self.once("mask", lambda: self._new_mask(window))

    def _new_mask(self, window):
        ids = self.cut(self._layout.ids)
        key_ids = self.with_neighbors(ids, axis=1)
        queries = ids, ops.arange(self._size)
        keys = key_ids, ops.arange(ops.shape(key_ids)[1]) - self._reach
        return _mask(self._layout, queries, keys, ops.cast(key_ids, "bool"), window=window)

    def blocks(self, window):
        """None: blocks are not cut again."""
        return None

    once = Layout.once


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
