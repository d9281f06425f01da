"""What an encoder learns from raw text: masked tokens, and whether a sentence follows."""
