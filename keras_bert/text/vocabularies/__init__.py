"""Vocabularies: one file per algorithm, with its files and the texts of its tokens.

- `wordpiece`: as in BERT; words without parts are one, too
- `bpe`: merges of characters, as this library learns them, and OpenAI GPT's
- `byte_level`: merges of bytes, as in GPT-2, RoBERTa and ModernBERT
- `unigram`: pieces with probabilities, as in SentencePiece's models

`spaced` has what the last two share: tokens that have the white space of the text.
"""
