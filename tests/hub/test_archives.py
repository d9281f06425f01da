"""A model in an archive, and archives that would write elsewhere."""

import io
import random
import shutil
import subprocess
import tarfile
import tempfile
import warnings
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import archives, loading
from keras_bert.checkpoints.google import load_google, save_google
from tests.messages import says
from tests.small_model import make_encoder, make_tokenizer


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A TF1 checkpoint as Google publishes them, and its folder's name."""
    tokenizer = make_tokenizer()
    folder = tmp_path_factory.mktemp("google") / "uncased_L-2_H-16_A-2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_google(make_encoder(tokenizer, hidden_act="gelu_new"), tokenizer, folder)
    return folder


@pytest.mark.parametrize("form", ["zip", "gztar"])
def test_a_checkpoint_of_googles_loads_from_its_archive(checkpoint, cache, tmp_path, form):
    packed = shutil.make_archive(
        str(tmp_path / "bert"), form, root_dir=checkpoint.parent, base_dir=checkpoint.name
    )
    encoder, tokenizer = kb.load(packed)
    model, _ = load_google(checkpoint)
    for ours, theirs in zip(encoder.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    (place,) = (tmp_path / "converted" / "models").iterdir()
    assert (place / "config.json").exists()
    shutil.copy(packed, moved := tmp_path / f"again.{packed.rpartition('.')[2]}")
    if form == "zip":
        kb.load(moved)  # the same content: converted once
        assert [place] == list((tmp_path / "converted" / "models").iterdir())


def unpacked(archive, folder):
    """All of an archive."""
    return archives.unpack(archive, folder, root=lambda paths: PurePosixPath())


def tar_with(path, *members):
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def member(name, **changes):
    info = tarfile.TarInfo(name)
    info.size = 1
    for key, value in changes.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize("name", ["../out.txt", "/tmp-out.txt", "a/../../out.txt", "..\\out.txt"])
def test_no_member_leaves_the_folder(tmp_path, name):
    inside = tmp_path / "in"
    inside.mkdir()
    tar = tar_with(tmp_path / "a.tar.gz", member("fine.txt"), member(name))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(name, "x")
    for archive in (tar, tmp_path / "a.zip"):
        with says("outside its folder"):
            unpacked(archive, inside)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "a.zip", "in"]
    assert not list(inside.iterdir())


def test_a_link_a_nameless_file_and_a_bomb_are_rejected(tmp_path):
    link = member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd", size=0)
    for wrong, message in (
        (link, "'link', which is not an ordinary file"),
        (member("."), "names a file outside its folder"),
    ):
        with says(message):
            unpacked(tar_with(tmp_path / "a.tar.gz", wrong), tmp_path)
    with says("Free some space"):
        archives._check_space("bomb.zip", 1 << 60, tmp_path)


def test_any_broken_archive_is_one_sentence(tmp_path):
    """A name that was empty was a traceback, and one sentence had several lines."""
    tar_with(tmp_path / "a.tar.gz", member("m/config.json"), member("m/vocab.txt"))
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(
            member("m/" + "é" * 120, pax_headers={"GNU.sparse.major": "x"}), io.BytesIO(b"x")
        )
    zip_with(tmp_path / "a.zip", "m/config.json", "é", content="12345" * 50)
    rng, rejected = random.Random(1), 0
    for name in ("a.zip", "a.tar", "a.tar.gz"):
        whole = (tmp_path / name).read_bytes()
        for _ in range(150):
            content = bytearray(whole)
            for _ in range(rng.choice([1, 2, 5, 20])):
                place = rng.randrange(min(len(content), 4096))
                content[place] = rng.choice([0, 255, *b"9LxS", rng.randrange(256)])
            (tmp_path / name).write_bytes(content)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    unpacked(tmp_path / name, Path(folder))
                except InputError as error:
                    assert "\n" not in str(error)
                    rejected += 1
    assert rejected > 150


def test_a_part_of_a_model_is_no_second_one():
    paths = [PurePosixPath("m", name) for name in ("config.json", "1_Pooling/config.json", "x")]
    assert loading._root(paths, "model") == PurePosixPath("m")


def zip_with(path, *names, content=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, content)
    return path


def zipped(*names):
    return lambda folder: zip_with(folder / "a.zip", *names)


def tarred(*members):
    return lambda folder: tar_with(folder / "a.tar.gz", *members)


def raw_tar(*parts):
    def make(folder):
        (folder / "a.tar").write_bytes(b"".join([*parts, bytes(10240)]))
        return folder / "a.tar"

    return make


def big_zip(folder):
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        with file.open("config.json", "w") as config:
            for _ in range(300):
                config.write(bytes(1 << 20))
    return folder / "a.zip"


def locked_zip(folder):
    data = bytearray(zip_with(folder / "a.zip", "config.json", content="{}").read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + flags] |= 1  # says that it is encrypted
    (folder / "a.zip").write_bytes(data)
    return folder / "a.zip"


def not_utf8(folder):
    archive = zip_with(folder / "a.zip", "é.json")
    archive.write_bytes(archive.read_bytes().replace("é".encode(), b"\xff\xfe"))
    return archive


def cut_tar(folder):
    archive = tar_with(folder / "a.tar.gz", member("config.json"))
    archive.write_bytes(archive.read_bytes()[:40])
    return archive


def header(type, size):
    return member("x", type=type, size=size).tobuf(tarfile.GNU_FORMAT)


@pytest.fixture
def nothing_written(cache, tmp_path, monkeypatch):
    """Checks that of an archive not a byte was unpacked."""

    def unpacks(*_):
        raise AssertionError("a member was unpacked")

    monkeypatch.setattr(archives, "_extract_zipped", unpacks)
    monkeypatch.setattr(archives, "_extract_tarred", unpacks)
    yield
    assert not list((tmp_path / "converted" / "models").iterdir())


DEEP = "d/" * 1500 + "config.json"  # Python's recursion ended in a traceback
MANY = archives._MAX_MEMBERS + 1
CONFIG = member("config.json", size=0).tobuf()
LONG_NAME = header(tarfile.GNUTYPE_LONGNAME, 1) + b"x" + bytes(511)


@pytest.mark.parametrize(
    "make, message",
    [
        (tarred(member("saved_model.pb")), "a.tar.gz contains a SavedModel"),
        (tarred(member("x")), "a.tar.gz contains no model"),
        (zipped(*(f"{i}.txt" for i in range(500))), "a.zip contains no model"),
        # Which of the two was taken changed from call to call.
        (
            tarred(member("a/config.json"), member("b/config.json")),
            "a.tar.gz contains several models (a, b)",
        ),
        (locked_zip, "a.zip is encrypted"),
        (cut_tar, "a.tar.gz is not a whole archive"),
        (zipped(*(f"m/{i}/" for i in range(MANY))), "has more than 10,000 members. Expected an"),
        (tarred(*[member("config.json")] * MANY), "has more than 10,000 members. Expected an"),
        (big_zip, "would unpack to 315 MB or more, over 20 times its"),
        # Its member says so and is cut: nothing of it is read.
        (raw_tar(member("config.json", size=3 << 30).tobuf()), "would unpack to 3,221 MB or more"),
        (zipped(DEEP), "contains a file 1,501 folders deep"),
        (
            tarred(member(DEEP, pax_headers={"comment": "long"})),
            "contains a file 1,501 folders deep",
        ),
        (tarred(member("x", pax_headers={"path": "config.json\0"})), r"null character: '...x00"),
        (tarred(member("x", pax_headers={"path": "a\0b/config.json"})), r"null character: '...x00"),
        *(  # of gigabytes, which Python's tarfile reads into memory
            (
                raw_tar(CONFIG, header(type, 3 << 30)),
                "not a whole archive: a header is too long",
            )
            for type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME)
        ),
        # Python's tarfile calls itself for each.
        (raw_tar(LONG_NAME * 2000), "not a whole archive: maximum recursion"),
        (
            raw_tar(member("config.json", type=tarfile.GNUTYPE_SPARSE, size=0).tobuf()),
            "'config.json', which is not an ordinary file",
        ),
        (not_utf8, "not a whole archive: 'utf-8' codec can't decode"),
    ],
)
@pytest.mark.usefixtures("nothing_written")
def test_what_is_rejected_before_anything_is_written(tmp_path, make, message):
    """60,000 members were unpacked in two minutes before "contains no model"; 18 MB wrote 3 GB."""
    archive = make(tmp_path)
    with says(message):
        kb.load(archive)


def test_only_the_model_of_an_archive_is_unpacked(folder, cache, tmp_path, monkeypatch):
    packed = tmp_path / "model.zip"
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("notes/long.txt", "x")
        for path in folder.iterdir():
            file.write(path, f"model\\{path.name}")  # as some programs on Windows write it
    written = []
    extract = archives._extract_zipped
    monkeypatch.setattr(
        archives, "_extract_zipped", lambda *args: written.append(args[-1]) or extract(*args)
    )
    encoder, _ = kb.load(packed)
    assert set(written) == {PurePosixPath("model", path.name) for path in folder.iterdir()}
    for ours, theirs in zip(encoder.get_weights(), kb.load(folder)[0].get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_downloaded_folder_may_be_nested_deeper_than_pythons_stack(tmp_path):
    deep = tmp_path / "m" / "/".join("d" * 1500)
    subprocess.run(["mkdir", "-p", deep], check=True)
    try:
        (deep / "notes.txt").touch()
        (tmp_path / "m" / "config.json").touch()
        found = loading._files_below(tmp_path)
        assert loading._root(found, "model") == PurePosixPath("m") and len(found) == 2
    finally:
        subprocess.run(["rm", "-r", tmp_path / "m"], check=True)  # pytest's own cannot
