"""The papers' formulas in the form that one processor or its graph optimiser computes fast.

The layers beside this folder read like the papers and call it where the plain form of an equation
is slow. What is here gives the plain form's outputs and gradients up to rounding; each docstring
has that form, who wants another one and why. benchmarks/NOTES.md says what it is worth.

- `program`: what a call becomes a part of: a program of XLA, of an accelerator
- `gelu`: forms that TensorFlow joins to the product before them, gradients written out
- `attention`: one product for query, key and value; scale and mask where they are joined
- `normalise`: LayerNorm's gradient written out, its column sums as products
- `dropout`: two draws from one random number
- `adam`: AdamW's step, weight decay and clipping in few passes over the weights
- `viterbi`: a CRF's most probable labels in numpy, outside of graphs
- `unpadding`: padding left out of the dense layers
- `rows`: slices and plain lookups, whose gradients are tables and not lists of rows
"""
