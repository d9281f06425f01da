"""`python -m keras_bert COMMAND …` is `keras-bert COMMAND …`."""

from keras_bert.cli.console import run

if __name__ == "__main__":
    run()
