"""Public names have types, which type checkers and editors read from the source."""

import ast
import configparser
import functools
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import keras_bert

REPOSITORY = Path(keras_bert.__file__).parent.parent


def test_type_checkers_and_python_find_a_public_name_in_the_same_module():
    tree = ast.parse(Path(keras_bert.__file__).read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    modules = {
        alias.asname: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert modules == keras_bert._HOMES
    assert (REPOSITORY / "keras_bert" / "py.typed").exists()


def public_functions():
    objects = {name: getattr(keras_bert, name) for name in keras_bert.__all__}
    return {name: value for name, value in objects.items() if not inspect.isclass(value)}


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_every_argument_and_result_of_a_public_function_has_a_type(name):
    function = public_functions()[name]
    signature = inspect.signature(function)
    assert signature.return_annotation is not signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty, parameter
        assert parameter.kind is not parameter.VAR_KEYWORD, parameter
    assert "**settings:" not in function.__doc__


def test_the_parameters_of_a_function_are_those_of_its_settings_class_that_are_no_settings():
    """Each `InitVar` of the class, with the same default, and its positional arguments."""
    checked = set()
    for module in {sys.modules[function.__module__] for function in public_functions().values()}:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if not isinstance(node, ast.FunctionDef):
                continue
            for decorator in node.decorator_list:
                if not ast.unparse(decorator).startswith("takes"):
                    continue
                cls = eval(ast.unparse(decorator.args[-1]), vars(module))
                expected = {
                    name: None if parameter.default is parameter.empty else parameter.default
                    for name, parameter in inspect.signature(cls).parameters.items()
                    if name not in cls.names() or parameter.kind is not parameter.KEYWORD_ONLY
                }
                defaults = [None] * len(node.args.args)
                defaults += [eval(ast.unparse(default)) for default in node.args.kw_defaults]
                names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
                assert dict(zip(names, defaults, strict=True)) == expected, node.name
                checked.add(node.name)
    assert len(checked) > 20


@functools.cache
def syntax(module):
    """(Path, syntax tree) of a module."""
    path = REPOSITORY / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path, ast.parse(path.read_text(encoding="utf-8"))


def classes_of(module, name):
    """Yields (module, class statement) of a class and of its bases in this library."""
    for node in syntax(module)[1].body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield module, node
            for base in node.bases:
                yield from classes_of(module, ast.unparse(base).partition("[")[0])
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "keras_bert":
            if name in [alias.asname or alias.name for alias in node.names]:
                yield from classes_of(node.module, name)


def public_classes():
    homes = {
        **keras_bert._HOMES,
        **dict.fromkeys(("TextClassifier", "TextRegressor"), "keras_bert.sklearn"),
    }
    found = {}
    for name, module in homes.items():
        found.update({(home, cls.name): cls for home, cls in classes_of(module, name)})
    return found


def test_every_argument_and_result_of_a_public_method_has_a_type():
    """Checks public classes and their bases, and of their methods not those named as `_x`."""
    found, count = [], 0
    for (module, name), cls in public_classes().items():
        for method in cls.body:
            if not isinstance(method, ast.FunctionDef):
                continue
            is_special = method.name.startswith("__") and method.name.endswith("__")
            if method.name.startswith("_") and not is_special:
                continue
            count += 1
            a = method.args
            static = any(ast.unparse(d) == "staticmethod" for d in method.decorator_list)
            arguments = [*a.posonlyargs, *a.args][0 if static else 1 :] + a.kwonlyargs
            arguments += [x for x in (a.vararg, a.kwarg) if x is not None]
            untyped = [x.arg for x in arguments if x.annotation is None]
            if method.returns is None and method.name != "__init__":
                untyped.append("the result")
            if untyped:
                found.append(f"{module}.{name}.{method.name}: {', '.join(untyped)}")
    assert found == []
    assert count > 600


# Their bodies would need casts: configs with fields that are None until the constructor sets them
# or that a subclass fixes, and functions whose settings have the name of their arguments.
UNCHECKED = {
    *(
        f"keras_bert.encoders.{name}"
        for name in (
            "transformer_config",
            "deberta",
            "distilbert",
            "modernbert",
            "mpnet",
            "roberta",
        )
    ),
    *("keras_bert.inference.nearest", "keras_bert.inference.senses"),
}


def test_mypy_reads_the_modules_of_public_classes():
    config = configparser.ConfigParser()
    config.read(REPOSITORY / "mypy.ini", encoding="utf-8")
    read = {name.strip() for name in config["mypy"]["files"].split(",")}
    modules = {module for module, _ in public_classes()} - UNCHECKED
    paths = {syntax(module)[0].relative_to(REPOSITORY).as_posix() for module in modules}
    assert sorted(paths - read) == []


def test_few_errors_of_mypy_are_ignored():
    paths = [
        path for root in ("keras_bert", "data_gen") for path in (REPOSITORY / root).rglob("*.py")
    ]
    assert sum(path.read_text(encoding="utf-8").count("# type: ignore") for path in paths) <= 10


@pytest.mark.slow
def test_a_typed_program_passes_and_its_mistakes_are_found():
    """`tests/typed_program.py` names each mistake with the error that mypy must find.

    `make lint` runs the same.
    """
    pytest.importorskip("mypy", reason="NOT TESTED without mypy")
    result = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout


def test_every_public_name_is_on_one_page_of_the_api(monkeypatch):
    pytest.importorskip("mkdocs", reason="NOT TESTED without mkdocs")
    monkeypatch.setenv("COLUMNS", "100")  # which the module sets
    path = REPOSITORY / "docs" / "generated_pages.py"
    spec = importlib.util.spec_from_file_location("generated_pages", path)
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    names = [name for _, names in pages.API.values() for name in names.split()]
    assert sorted(names) == keras_bert.__all__
