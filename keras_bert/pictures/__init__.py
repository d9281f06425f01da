"""Pictures of attention, of words in context and of runs; they need the extra `pictures`.

Here is what all pictures have in common: the figure, its colours, the file.
"""

from pathlib import Path

from keras_bert.base import files
from keras_bert.base.errors import InputError
from keras_bert.base.ownership import check_output_file

INK, GREY, LIGHT = "#1f2430", "#6b7280", "#e5e7eb"
# Distinguishable by colour-blind readers too (after Okabe and Ito 2008), in the order of use.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_PIXELS_PER_INCH = 110
_MARK = "keras-bert"  # the program that wrote a PNG file, in its metadata
_BEGINNING = 1024
_STYLE = {
    "font.size": 9,
    "text.parse_math": False,  # labels and words may hold a dollar sign, or two
    "text.color": INK,
    "axes.labelcolor": GREY,
    "axes.edgecolor": "#d1d5db",
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}


def load_matplotlib():
    """The module `matplotlib`; InputError if it is not installed."""
    try:
        import matplotlib
        import matplotlib.backends.backend_agg
        import matplotlib.figure
    except ImportError:
        raise InputError(
            "Pictures need matplotlib, which is not installed. Install it with "
            "pip install 'keras-bert-toolkit[pictures]'."
        ) from None
    return matplotlib


def hide_box(axis):
    """Leaves the axes on the left and at the bottom of a panel."""
    axis.spines[["top", "right"]].set_visible(False)


def colour_bar(axis, image, *, label, ticks=None):
    """Puts the scale of an image's colours on the right of its axes."""
    bar = axis.figure.colorbar(image, cax=axis.inset_axes([1.03, 0.2, 0.03, 0.6]), ticks=ticks)
    bar.set_label(label)
    bar.outline.set_visible(False)


def check_picture(path):
    """The `Path` of a picture to write; raises the errors of `save_picture` before any work."""
    path = Path(path)
    if path.suffix != ".png":
        raise InputError(f"A picture is a PNG file. {path} should end in .png.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} for the picture {path.name}.")
    check_output_file(path, is_ours=_is_picture, force=True)
    load_matplotlib()
    return path


def save_picture(draw, path, *, size):
    """Writes the PNG file of a picture; returns its `Path`.

    Args:
        draw: a function that draws on an empty matplotlib `Figure`, its argument.
        path: the file, NAME.png. A picture of this library is replaced.
        size: width and height in inches (of 110 pixels).

    Raises:
        InputError: matplotlib is not installed, the name ends otherwise, there is another file,
            or the file cannot be written.
    """
    path = check_picture(path)
    matplotlib = load_matplotlib()
    with matplotlib.rc_context(_STYLE):
        # Not through pyplot, which keeps figures alive and asks for a screen.
        figure = matplotlib.figure.Figure(figsize=size, dpi=_PIXELS_PER_INCH)
        matplotlib.backends.backend_agg.FigureCanvasAgg(figure)  # so that texts have a size
        draw(figure)
        with files.new_file(path) as temporary:
            figure.savefig(
                temporary,
                facecolor="white",
                bbox_inches="tight",
                pad_inches=0.15,
                metadata={"Software": _MARK},
            )
    return path


def _is_picture(path):
    """Whether `save_picture` wrote a file: the mark is in its first chunks."""
    with open(path, "rb") as file:
        return f"Software\0{_MARK}".encode() in file.read(_BEGINNING)
