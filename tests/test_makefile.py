"""The commands of the Makefile can be called as it calls them."""

import ast
import re
import subprocess

from tests.conftest import REPOSITORY


def test_make_benchmark_runs_scripts_that_need_no_argument():
    command = ["make", "--dry-run", "benchmark"]
    lines = subprocess.check_output(command, cwd=REPOSITORY, encoding="utf-8")
    scripts = re.findall(r"benchmarks/\w+\.py", lines)
    assert "benchmarks/encoder.py" in scripts
    for script in scripts:
        source = (REPOSITORY / script).read_text(encoding="utf-8")
        assert "__main__" in source, script
        assert not list(_required(ast.parse(source))), script


def test_make_docs_counts_warnings_as_errors():
    command = ["make", "--dry-run", "--no-print-directory"]
    command += ["--assume-old", ".venv/installed-test", "docs"]
    line = subprocess.check_output(command, cwd=REPOSITORY, encoding="utf-8").splitlines()[-1]
    assert line.endswith("mkdocs build --strict")  # `--quiet` silences warnings before they count


def _required(tree):
    """The lines of a script that add an argument which must be given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "add_argument":
            is_positional = not ast.literal_eval(node.args[0]).startswith("-")
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            is_required = "required" in keywords and ast.literal_eval(keywords["required"])
            if is_required or (is_positional and "nargs" not in keywords):
                yield node.lineno
