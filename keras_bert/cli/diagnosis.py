"""What is installed, what it runs on, and what is not there."""

import os
import platform
import shutil
import sys
from importlib import metadata, util
from typing import Any

import keras_bert

DISTRIBUTION = "keras-bert-toolkit"

# What each extra of setup.cfg gives; those for work on this library itself are left out.
EXTRAS = {
    "dataflow": "runs the data jobs on Google Cloud Dataflow, with gs:// paths",
    "hub": "models by name (hf://owner/name), and keras-bert push",
    "serve": "keras-bert serve and ask: a development server and its client",
    "kaggle": "models of Kaggle by name (kaggle://owner/model/framework/variation)",
    "keras-nlp": "converts from and to presets of keras-nlp (keras-hub)",
    "jax": "runs the models on KERAS_BACKEND=jax",
    "pictures": "draws attention, embeddings and the curves of runs",
    "notebooks": "JupyterLab, for work in notebooks",
    "docs": "builds the pages of docs/ as a site",
}

# Read where they are there, without an extra of ours.
_MORE = {
    "torch": "opens pytorch_model.bin, by its weights-only loader",
    "transformers": "opens the model folders that are written here",
    "tensorflow_datasets": "reads tfds:NAME/CONFIG:SPLIT",
}


def diagnose() -> dict[str, Any]:
    """What `keras-bert doctor` prints.

    Returns:
        A dictionary: `sections`, title -> rows of (name, what is said of it), and `problems`,
        sentences that say what to mend.
    """
    requirements = _requirements()
    problems = [*_version_problems(requirements), *_name_problem()]
    return {
        "sections": {
            "Machine": list(_machine()),
            "Versions": list(_versions(requirements)),
            "Devices": list(_devices(problems)),
            "Extras": list(_extras(requirements)),
            "Caches": list(_caches()),
        },
        "problems": problems,
    }


def _machine():
    yield "keras-bert", keras_bert.__version__
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
    """[(Requirement, the extra that asks for it or None)] of this library, as it is installed."""
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found.append((requirement, None))
            continue
        for extra in EXTRAS:
            if requirement.marker.evaluate({"extra": extra}):
                found.append((requirement, extra))
    return found


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _versions(requirements):
    for requirement, extra in requirements:
        if extra is None:
            version = _version(requirement.name) or "missing"
            yield requirement.name, f"{version} ({requirement.specifier})"


def _version_problems(requirements):
    if not requirements:
        yield (
            f"{DISTRIBUTION} is not installed, only found on the path: pip install it, or "
            "pip install --editable a checkout, for its command and its dependencies."
        )
    for requirement, extra in requirements:
        version = _version(requirement.name)
        if version is None and extra is None:
            yield f"{requirement.name} is missing: pip install '{_plain(requirement)}'."
        if version is not None and not requirement.specifier.contains(version, prereleases=True):
            yield (
                f"{requirement.name} is {version}, and {requirement.specifier} is needed: "
                f"pip install '{_plain(requirement)}'."
            )


def _plain(requirement):
    """A requirement as one gives it to pip, without what asks for it."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def _name_problem():
    """Another library has the same import name."""
    if _version("keras-bert") is not None:
        yield (
            "The distribution keras-bert, an unrelated and older library, has the same import "
            "name: pip uninstall keras-bert, then pip install --force-reinstall --no-deps "
            f"{DISTRIBUTION}."
        )


def _devices(problems):
    """The devices of the backends that are installed; one that cannot be loaded is a problem."""
    for backend, devices in (("tensorflow", _of_tensorflow), ("jax", _of_jax)):
        if util.find_spec(backend) is None:
            yield backend, "not installed"
        else:
            yield backend, _loaded(devices, backend, problems)
    yield "Keras's backend", _loaded(_of_keras, "Keras", problems)


def _loaded(ask, name, problems):
    try:
        return ask()
    except Exception as error:  # whatever a broken installation of somebody's raises
        problems.append(f"{name} cannot be loaded: {type(error).__name__}: {error}")
        return "cannot be loaded"


def _of_tensorflow():
    import tensorflow as tf

    return ", ".join(device.name for device in tf.config.list_physical_devices())


def _of_jax():
    import jax

    return ", ".join(map(str, jax.devices()))


def _of_keras():
    """The backend that Keras takes, which may stand in a file of its own."""
    import keras

    said = "as KERAS_BACKEND says" if os.environ.get("KERAS_BACKEND") else "as keras.json says"
    return f"{keras.config.backend()}, {said}"


def _extras(requirements):
    known = {extra for _, extra in requirements}
    for extra, gives in EXTRAS.items():
        missing = [
            requirement.name
            for requirement, of in requirements
            if of == extra and not _is_there(requirement)
        ]
        install = f"'{DISTRIBUTION}[{extra}]'"
        yield extra, _there_or_not(not missing and extra in known, gives, install)
    for module, gives in _MORE.items():
        install = module.replace("_", "-")
        yield module, _there_or_not(util.find_spec(module) is not None, gives, install)


def _there_or_not(is_there, gives, install):
    return f"installed: {gives}" if is_there else f"missing: {gives} (pip install {install})"


def _is_there(requirement):
    """Whether a distribution is installed, and what its own extras (apache-beam[gcp]) ask for."""
    if _version(requirement.name) is None:
        return False
    from packaging.requirements import Requirement

    for line in metadata.requires(requirement.name) or []:
        needed = Requirement(line)
        for extra in requirement.extras:
            marked = needed.marker is not None and "extra" in str(needed.marker)
            if marked and needed.marker.evaluate({"extra": extra}) and not _version(needed.name):
                return False
    return True


def _caches():
    from keras_bert.checkpoints.named_models import cache_folder

    yield "converted models", cache_folder()
    if util.find_spec("huggingface_hub") is not None:
        from huggingface_hub import constants

        yield "the hub's", constants.HF_HUB_CACHE
        yield "from", os.environ.get("HF_ENDPOINT") or constants.ENDPOINT
