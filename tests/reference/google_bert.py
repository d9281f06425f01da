"""google-research/bert's modeling.py, `BertModel` without dropout, in numpy and float64."""

import numpy as np

_EPSILON = 1e-12


def google_bert(tensors, inputs, *, num_layers, num_heads):
    """-> the outputs of the last layer (B, S, D), and of the pooler (B, D).

    Args:
        tensors: the checkpoint's arrays by name.
        inputs: `input_ids`, `input_mask` and `segment_ids`, int (B, S).
        num_layers, num_heads: as in the checkpoint's config; its "gelu" is the tanh form.
    """
    tensors = {name: np.asarray(tensor, "float64") for name, tensor in tensors.items()}
    ids, mask = inputs["input_ids"], inputs["input_mask"]

    def dense(x, scope):
        return x @ tensors[f"{scope}/kernel"] + tensors[f"{scope}/bias"]

    def layer_norm(x, scope):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + _EPSILON)
        return x * tensors[f"{scope}/LayerNorm/gamma"] + tensors[f"{scope}/LayerNorm/beta"]

    def heads(x, scope):
        return dense(x, scope).reshape(*ids.shape, num_heads, -1).transpose(0, 2, 1, 3)

    scope = "bert/embeddings"
    x = tensors[f"{scope}/word_embeddings"][ids]
    x = x + tensors[f"{scope}/token_type_embeddings"][inputs["segment_ids"]]
    x = x + tensors[f"{scope}/position_embeddings"][: ids.shape[1]]
    x = layer_norm(x, scope)
    for index in range(num_layers):
        layer = f"bert/encoder/layer_{index}"
        query, key, value = (
            heads(x, f"{layer}/attention/self/{name}") for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(x.shape[-1] / num_heads)
        scores = scores + (1.0 - mask[:, None, None, :]) * -10000.0
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p = p / p.sum(-1, keepdims=True)
        context = (p @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        attended = dense(context, f"{layer}/attention/output/dense")
        x = layer_norm(x + attended, f"{layer}/attention/output")
        wide = dense(x, f"{layer}/intermediate/dense")
        wide = 0.5 * wide * (1.0 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
        x = layer_norm(x + dense(wide, f"{layer}/output/dense"), f"{layer}/output")
    return x, np.tanh(dense(x[:, 0], "bert/pooler/dense"))
