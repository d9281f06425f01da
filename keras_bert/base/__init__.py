"""Errors, files, settings, formatting and signals, which every other part uses."""

from importlib import import_module


def lazy_names(package, homes, modules=()):
    """The `__getattr__` and `__dir__` of a package whose modules are imported at their first use.

    No module of the package may be called like one of the names: once imported, it would shadow it.

    Args:
        package: the package's `__name__`.
        homes: public name -> the module that defines it.
        modules: the names of modules of the package that are public themselves.
    """

    def get(name):
        if name in homes:
            return getattr(import_module(homes[name]), name)
        if name in modules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names():
        return sorted([*vars(import_module(package)), *homes, *modules])

    return get, names
