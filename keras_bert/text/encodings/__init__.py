"""Tokenization in the graph: one file per algorithm, behind `Encoding`.

- `wordpiece`: the longest tokens that a word begins with (and whole words)
- `bpe`: merges of characters, this library's own and OpenAI GPT's
- `byte_level`: merges of bytes, as in GPT-2, RoBERTa and ModernBERT
- `unigram`: the most probable segmentation, as SentencePiece finds it

`encoding` has the interface and what leads back to the user's string, `steps` the normalizers and
added tokens before a model.
"""
