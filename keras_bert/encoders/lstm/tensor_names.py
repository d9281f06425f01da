"""The names of an AWD-LSTM's weights in a model folder: those of its authors' PyTorch modules."""

from keras_bert.base.rename import Rename, transposed
from keras_bert.encoders.tensor_names import TensorNames


def of(config):
    """The `TensorNames` of an `AwdLstmConfig`.

    The kernels are those of `torch.nn.LSTM`: the gates i, f, g, o below one another. Of its two
    biases, whose sum is what counts, the second is zero and not stored.
    """
    encoder, given = [Rename("token_embedding.embeddings", "encoder.weight", "V D")], "D"
    for i in range(config.num_hidden_layers):
        size, gates = ("D", "E") if i == config.num_hidden_layers - 1 else ("H", "G")
        ours, theirs = f"lstms.{i}", f"rnns.{i}"
        encoder += [
            transposed(f"{ours}.kernel", f"{theirs}.weight_ih_l0", f"{given} {gates}"),
            transposed(f"{ours}.recurrent_kernel", f"{theirs}.weight_hh_l0", f"{size} {gates}"),
            Rename(f"{ours}.bias", f"{theirs}.bias_ih_l0", gates),
        ]
        given = size
    sizes = {"V": config.vocab_size, "D": config.hidden_size, "H": config.lstm_size}
    sizes |= {"E": 4 * config.hidden_size, "G": 4 * config.lstm_size}
    return TensorNames(base_class="AwdLstmEncoder", encoder=encoder, sizes=sizes)
