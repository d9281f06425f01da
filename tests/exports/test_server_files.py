"""The files for TensorFlow Serving beside the models, and others that may be there."""

import re
from pathlib import Path

import pytest

from keras_bert.exports import server_files
from keras_bert.exports.server_files import write_server_files


@pytest.fixture
def models(tmp_path):
    for name in ("qa", "spam"):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "saved_model.pb").touch()
    return tmp_path


def listed(models):
    return re.findall(r'base_path: "/models/(.*)"', (models / "models.config").read_text())


def test_what_an_export_writes_there_and_what_is_hidden_may_lie_beside(models):
    for name in ("spam.tflite", "README.md", "compose.yaml", ".gitkeep"):
        (models / name).touch()
    (models / "killed").mkdir()  # no model yet: a server would wait for its first version
    for _ in range(2):  # its own files, too
        assert write_server_files(models) is None
        assert listed(models) == ["qa", "spam"]


def test_of_two_exports_at_once_neither_is_left_out(models, monkeypatch):
    write = server_files.write_text

    def write_late(path, text):
        monkeypatch.setattr(server_files, "write_text", write)
        (models / "ner" / "1").mkdir(parents=True)
        (models / "ner" / "1" / "saved_model.pb").touch()
        assert write_server_files(models) is None  # the other export, from begin to end
        write(path, text)

    def write_text(path, text):
        (write_late if path.name == "models.config" else write)(path, text)

    monkeypatch.setattr(server_files, "write_text", write_text)
    assert write_server_files(models) is None
    assert listed(models) == ["ner", "qa", "spam"]


def test_anything_else_is_told_and_nothing_is_written(models):
    (models / "notes.txt").touch()
    (models / "run.json").touch()
    assert write_server_files(models) == (
        "TensorFlow Serving's models.config and monitoring.config were not written: "
        f"{models} contains something else than models (notes.txt and 1 more)."
    )
    assert not (models / "models.config").exists()


OURS = (
    'model_config_list {{\n  config {{\n    name: "{0}"\n    base_path: "/models/{0}"\n'
    '    model_platform: "tensorflow"\n  }}\n}}\n'
)


@pytest.mark.parametrize(
    ("name", "text", "is_replaced"),
    [
        ("models.config", "", True),
        ("models.config", OURS.format("qa"), True),  # of fewer models
        ("models.config", OURS.format("other"), False),  # which a server may have elsewhere
        ("models.config", "# mine\n" + OURS.format("qa"), False),
        ("models.config", OURS.format("qa").replace("/models", "/mnt"), False),
        ("models.config", OURS.format("qa").replace("\n}", "\n}" + " # all"), False),
        ("models.config", "not a config", False),
        ("models.config", b"\xff", False),
        ("monitoring.config", server_files._MONITORING, True),
        ("monitoring.config", "prometheus_config { enable: false }\n", False),
    ],
)
def test_only_what_an_export_wrote_is_replaced(models, name, text, is_replaced):
    content = text if isinstance(text, bytes) else text.encode()
    (models / name).write_bytes(content)
    note = write_server_files(models)
    if is_replaced:
        assert note is None and listed(models) == ["qa", "spam"]
    else:
        assert f"{models / name} is not as an export writes it" in note
        assert (models / name).read_bytes() == content
        assert {path.name for path in models.iterdir()} == {"qa", "spam", name}


def test_a_server_joins_requests_only_where_it_is_told_to():
    """TensorFlow Serving fails all that it has joined, and can be told of no signature to spare."""
    folder = Path(__file__).parents[2] / "savedmodels"
    (flag,) = re.findall(r"--enable_batching=(.*)", (folder / "compose.yaml").read_text())
    assert flag == "${BATCHING:-false}"
    (command,) = re.findall(r"docker run(?:.*\\\n)*.*\n", (folder / "README.md").read_text())
    assert "models.config" in command and "--enable_batching" not in command
