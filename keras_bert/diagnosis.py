"""The versions, devices and extras that are installed, and what is missing."""

import os
import platform
import shutil
import sys
from importlib import metadata, util
from typing import Any

from keras_bert.base.version import __version__

DISTRIBUTION = "keras-bert-toolkit"

# What each extra of setup.cfg adds, except those for the development of this library, and the
# megabytes on disk beyond the library's own 3 GB (with the versions of constraints.txt, on Linux);
# None was not measured.
EXTRAS = {
    "dataflow": ("runs the data jobs on Google Cloud Dataflow, with gs:// paths", 340),
    "serve": ("keras-bert serve and ask: a development server and its client", 2),
    "keras-nlp": ("converts from and to presets of keras-nlp (keras-hub)", 32),
    "jax": ("runs the commands on KERAS_BACKEND=jax", 380),
    "jax-cuda": ("the same on a GPU", None),
    "jax-tpu": ("the same on a TPU", None),
    "pictures": ("draws attention, embeddings and learning curves", 74),
    "search": ("stems of words in an index, --stemming", 2),
    "notebooks": ("JupyterLab, for work in notebooks", 362),
    "docs": ("builds the pages of docs/ as a site", 118),
}

# Used if installed; no extra of this library installs them.
_MORE = {
    "torch": "opens pytorch_model.bin, with its weights-only loader",
    "transformers": "opens the model folders of this library",
    "tensorflow_datasets": "reads tfds:NAME/CONFIG:SPLIT",
}


def diagnose() -> dict[str, Any]:
    """Returns what `keras-bert doctor` prints.

    Returns:
        A dictionary: `sections`, title -> list of (name, value), `problems`, sentences that say
        what to fix, and `notes`, sentences about what may surprise in a program of one's own.
    """
    requirements = _requirements()
    problems = [*_version_problems(requirements), *_name_problem()]
    return {
        "sections": {
            "Machine": list(_machine()),
            "Versions": [
                (needed.name, f"{_version(needed.name) or 'missing'} ({needed.specifier})")
                for needed, extra in requirements
                if extra is None
            ],
            "Devices": list(_devices(problems)),
            "Extras": list(_extras(requirements)),
            "Caches": list(_caches()),
        },
        "problems": problems,
        "notes": list(_notes()),
    }


def _machine():
    yield "keras-bert", __version__
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "system", platform.platform()
    cores = os.cpu_count()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    yield "cores", f"{usable} of {cores}" if usable != cores else str(cores)
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        yield "memory", f"{memory / 2**30:.1f} GiB"
    yield "disk here", f"{shutil.disk_usage('.').free / 2**30:.1f} GiB free"


def _requirements():
    """[(Requirement, the extra that has it or None)] of this library, as it is installed."""
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    requirements = []
    for requirement in map(Requirement, lines):
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": ""}):
            requirements.append((requirement, None))
        else:
            requirements += [(requirement, e) for e in EXTRAS if marker.evaluate({"extra": e})]
    return requirements


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _version_problems(requirements):
    if not requirements:
        yield (
            f"{DISTRIBUTION} is not installed, only found on the path: pip install it, or "
            "pip install --editable a checkout, for its command and its dependencies."
        )
    for requirement, extra in requirements:
        name, specifier = requirement.name, requirement.specifier
        version = _version(name)
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        install = f"pip install '{name}{extras}{specifier}'."
        if version is None and extra is None:
            yield f"{name} is missing: {install}"
        if version is not None and not specifier.contains(version, prereleases=True):
            yield f"{name} is {version}, and {specifier} is needed: {install}"


def _name_problem():
    """Another library has the same import name."""
    if _version("keras-bert") is not None:
        yield (
            "The distribution keras-bert, an unrelated and older library, has the same import "
            "name: pip uninstall keras-bert, then pip install --force-reinstall --no-deps "
            f"{DISTRIBUTION}."
        )


def _notes():
    if util.find_spec("triton") is not None:
        yield (
            "Triton, which came with torch, crashes in a process that has loaded TensorFlow before "
            "it. A program that uses keras_bert and a model class of transformers or "
            "sentence-transformers needs `import triton` as its first line."
        )


def _devices(problems):
    """The devices of the installed backends, and which backend to take.

    A backend that is installed but cannot be loaded is added to `problems`.
    """
    seen = {}
    for backend, devices in (("tensorflow", _tensorflow_devices), ("jax", _jax_devices)):
        if util.find_spec(backend) is None:
            seen[backend] = "not installed"
        else:
            seen[backend] = _loaded(devices, backend, problems)
        yield backend, seen[backend]
    yield "Keras backend", _loaded(_keras_backend, "Keras", problems)
    yield "backend to take", backend_to_take(seen["tensorflow"], jax_kind := _jax_kind())
    yield "fused attention", _fused_attention(jax_kind)


def backend_to_take(tensorflow_devices, jax_kind):
    """The faster backend, and why.

    Args:
        tensorflow_devices: the names of the devices that TensorFlow sees.
        jax_kind: "gpu" or "tpu" if JAX sees one.
    """
    if jax_kind == "tpu":
        return "KERAS_BACKEND=jax: TensorFlow's package has no programs for a TPU"
    if jax_kind == "gpu":
        return "KERAS_BACKEND=jax: it has fused attention on a GPU"
    if "GPU" in tensorflow_devices:
        return (
            f"tensorflow: JAX sees no GPU. pip install '{DISTRIBUTION}[jax-cuda]' for fused "
            "attention with KERAS_BACKEND=jax"
        )
    return "tensorflow: no GPU or TPU is seen"


def _jax_kind():
    """The kind of the devices that JAX sees, if it is loaded; else None."""
    jax = sys.modules.get("jax")
    return None if jax is None else jax.default_backend()


def _fused_attention(jax_kind):
    """Whether attention can be one kernel."""
    if jax_kind != "gpu":
        return "not in use: it needs a GPU that JAX sees"
    from keras_bert.layers.kernels.fused_attention import why_missing

    reason = why_missing()
    if reason is not None:
        return f"not in use: {reason}"
    return (
        "in use with KERAS_BACKEND=jax, in 16 bits (--dtype) and while attention probabilities are "
        "not dropped out"
    )


def _loaded(read, name, problems):
    try:
        return read()
    except Exception as error:  # a broken installation may raise anything
        problems.append(f"{name} cannot be loaded: {type(error).__name__}: {error}")
        return "cannot be loaded"


def _tensorflow_devices():
    import tensorflow as tf

    return ", ".join(device.name for device in tf.config.list_physical_devices())


def _jax_devices():
    import jax

    return ", ".join(map(str, jax.devices()))


def _keras_backend():
    import keras

    source = "KERAS_BACKEND" if os.environ.get("KERAS_BACKEND") else "keras.json"
    return f"{keras.config.backend()} (from {source})"


def _extras(requirements):
    for extra, (adds, megabytes) in EXTRAS.items():
        extra_needs = [requirement for requirement, wanted_by in requirements if wanted_by == extra]
        is_installed = bool(extra_needs) and all(map(_is_installed, extra_needs))
        size = "" if megabytes is None else f", {megabytes} MB"
        install = f"'{DISTRIBUTION}[{extra}]'{size}"
        yield extra, _state(is_installed, adds, install)
    for module, adds in _MORE.items():
        is_installed = util.find_spec(module) is not None
        yield module, _state(is_installed, adds, module.replace("_", "-"))


def _state(is_installed, adds, install):
    return f"installed: {adds}" if is_installed else f"missing: {adds} (pip install {install})"


def _is_installed(requirement):
    """Whether a distribution is installed with what its own extras (apache-beam[gcp]) require."""
    if _version(requirement.name) is None:
        return False
    from packaging.requirements import Requirement

    for needed in map(Requirement, metadata.requires(requirement.name) or []):
        if needed.marker is not None and "extra" in str(needed.marker):
            is_needed = any(needed.marker.evaluate({"extra": e}) for e in requirement.extras)
            if is_needed and not _version(needed.name):
                return False
    return True


def _caches():
    from keras_bert.base.files import cache_folder

    yield "converted models", cache_folder()
    if util.find_spec("huggingface_hub") is not None:
        from huggingface_hub import constants

        yield "the hub's", constants.HF_HUB_CACHE
        yield "from", os.environ.get("HF_ENDPOINT") or constants.ENDPOINT
