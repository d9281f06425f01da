"""The papers' formulas in the form that one processor or its graph optimiser computes fast.

The layers read like the papers and call these functions if the plain form of an equation is
slow. Outputs and gradients are those of the plain form up to rounding; each docstring has that
form, and the processor that needs another one. benchmarks/NOTES.md has the measurements.

- `program`: whether a call is compiled by XLA, and for which processor or server
- `private`: what is used of TensorFlow and Keras that is not public
- `accelerators`: products and lookups for a GPU or TPU, with gradients that have no scatter
- `cross_entropy`: a language model's loss with its gradient, by blocks of predictions
- `attention`: one product for query, key and value; scale and mask if they are fused
- `fused_attention`: cuDNN's kernel for a GPU
- `elementwise`: gelu, dropout and LayerNorm with their gradients
- `gathering`: lookups with cheap gradients; padding left out of the dense layers
- `optimizers`: steps of AdamW and AdaGrad, weight decay and clipping in few passes over the weights
- `recurrence`: an LSTM's loop over time, with its gradient
"""
