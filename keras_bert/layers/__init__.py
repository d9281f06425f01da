"""The encoder's layers, in `keras.ops` alone: one public class a file."""
