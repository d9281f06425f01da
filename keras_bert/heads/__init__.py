"""What stands on the encoder to pre-train it: one public class a file."""
