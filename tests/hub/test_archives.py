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
from keras_bert.checkpoints import archives, named_models
from keras_bert.checkpoints.google import load_google, save_google
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
        with pytest.raises(InputError, match="outside its folder"):
            unpacked(archive, inside)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "a.zip", "in"]
    assert not list(inside.iterdir())


def test_a_link_a_bomb_and_a_truncated_archive_are_rejected(tmp_path, cache):
    link = member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd", size=0)
    with pytest.raises(InputError, match="'link', which is not an ordinary file"):
        unpacked(tar_with(tmp_path / "link.tar.gz", link), tmp_path)
    with pytest.raises(InputError, match="Free some space"):
        archives._check_space("bomb.zip", 1 << 60, tmp_path)
    with pytest.raises(InputError, match="names a file outside its folder"):
        unpacked(tar_with(tmp_path / "nameless.tar.gz", member(".")), tmp_path)
    locked = tmp_path / "locked.zip"
    with zipfile.ZipFile(locked, "w") as file:
        file.writestr("config.json", "{}")
    data = bytearray(locked.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + flags] |= 1  # says that it is encrypted
    locked.write_bytes(data)
    with pytest.raises(InputError, match="locked.zip is encrypted"):
        kb.load(locked)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(tar_with(tmp_path / "w.tar.gz", member("config.json")).read_bytes()[:40])
    with pytest.raises(InputError, match="cut.tar.gz is not a whole archive"):
        kb.load(cut)


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


@pytest.mark.parametrize("held, said", [("saved_model.pb", "a SavedModel"), ("x", "no model")])
def test_an_archive_without_a_model_is_rejected(tmp_path, cache, held, said):
    archive = tar_with(tmp_path / "a.tar.gz", member(held))
    with pytest.raises(InputError, match=f"a.tar.gz contains {said}"):
        kb.load(archive)


def test_an_archive_of_two_models_is_rejected_and_a_part_of_one_is_not(tmp_path, cache):
    """Which of the two was taken changed from call to call."""
    with tarfile.open(tmp_path / "two.tar.gz", "w:gz") as tar:
        for name in ("a/config.json", "b/config.json"):
            tar.addfile(member(name), io.BytesIO(b"x"))
    with pytest.raises(InputError, match=r"two.tar.gz contains several models \(a, b\)"):
        kb.load(tmp_path / "two.tar.gz")
    paths = [PurePosixPath("m", name) for name in ("config.json", "1_Pooling/config.json", "x")]
    assert named_models._root(paths, "model") == PurePosixPath("m")


def zip_with(path, *names, content=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, content)
    return path


@pytest.fixture
def nothing_written(cache, tmp_path, monkeypatch):
    """Checks that of an archive not a byte was unpacked."""

    def unpacks(*_):
        raise AssertionError("a member was unpacked")

    monkeypatch.setattr(archives, "_extract_zipped", unpacks)
    monkeypatch.setattr(archives, "_extract_tarred", unpacks)
    yield
    assert not list((tmp_path / "converted" / "models").iterdir())


@pytest.mark.usefixtures("nothing_written")
class TestRejectedBeforeAnythingIsWritten:
    """60,000 members were unpacked in two minutes before "contains no model"; 18 MB wrote 3 GB."""

    def test_no_model(self, tmp_path):
        many = zip_with(tmp_path / "many.zip", *(f"{i}.txt" for i in range(500)))
        with pytest.raises(InputError, match="many.zip contains no model"):
            kb.load(many)

    def test_too_many_members(self, tmp_path):
        names = (f"m/{i}/" for i in range(archives._MAX_MEMBERS + 1))
        for archive in (
            zip_with(tmp_path / "many.zip", *names),
            tar_with(
                tmp_path / "many.tar.gz",
                *(member("config.json") for _ in range(archives._MAX_MEMBERS + 1)),
            ),
        ):
            with pytest.raises(InputError, match="has more than 10,000 members. Expected an"):
                kb.load(archive)

    def test_too_many_bytes(self, tmp_path):
        zipped = tmp_path / "big.zip"
        with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as file:
            with file.open("config.json", "w") as config:
                for _ in range(300):
                    config.write(bytes(1 << 20))
        with pytest.raises(InputError, match="would unpack to 315 MB or more, over 20 times its"):
            kb.load(zipped)
        tarred = tmp_path / "big.tar"  # its member says so and is cut: nothing of it is read
        tarred.write_bytes(member("config.json", size=3 << 30).tobuf())
        with pytest.raises(InputError, match="would unpack to 3,221 MB or more"):
            kb.load(tarred)

    def test_deep_members(self, tmp_path):
        """Python's recursion ended in a traceback, and what was unpacked stayed there."""
        name = "d/" * 1500 + "config.json"
        info = member(name, pax_headers={"comment": "long"})
        for archive in (
            zip_with(tmp_path / "deep.zip", name),
            tar_with(tmp_path / "deep.tar.gz", info),
        ):
            with pytest.raises(InputError, match="contains a file 1,501 folders deep"):
                kb.load(archive)

    @pytest.mark.parametrize("name", ["config.json\0", "a\0b/config.json"])
    def test_a_null_character_in_a_name(self, tmp_path, name):
        info = member("x", pax_headers={"path": name})
        with tarfile.open(tmp_path / "null.tar", "w", format=tarfile.PAX_FORMAT) as tar:
            tar.addfile(info, io.BytesIO(b"x"))
        with pytest.raises(InputError, match="null character: '.*x00"):
            kb.load(tmp_path / "null.tar")

    def test_a_header_that_is_gigabytes_long(self, tmp_path):
        """Python's tarfile reads it into memory."""
        for kind in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME):
            header = member("x", type=kind, size=3 << 30).tobuf(tarfile.GNU_FORMAT)
            (tmp_path / "header.tar").write_bytes(
                member("config.json", size=0).tobuf() + header + bytes(10240)
            )
            with pytest.raises(InputError, match="not a whole archive: a header is too long"):
                kb.load(tmp_path / "header.tar")

    def test_headers_of_headers(self, tmp_path):
        """Python's tarfile calls itself for each."""
        long = member("x", type=tarfile.GNUTYPE_LONGNAME, size=1).tobuf(tarfile.GNU_FORMAT)
        (tmp_path / "headers.tar").write_bytes((long + b"x" + bytes(511)) * 2000 + bytes(10240))
        with pytest.raises(InputError, match="not a whole archive: maximum recursion"):
            kb.load(tmp_path / "headers.tar")

    def test_a_sparse_member(self, tmp_path):
        sparse = member("config.json", type=tarfile.GNUTYPE_SPARSE, size=0).tobuf()
        (tmp_path / "sparse.tar").write_bytes(sparse + bytes(10240))
        with pytest.raises(InputError, match="'config.json', which is not an ordinary file"):
            kb.load(tmp_path / "sparse.tar")

    def test_a_name_that_is_not_utf8(self, tmp_path):
        archive = zip_with(tmp_path / "name.zip", "é.json")
        archive.write_bytes(archive.read_bytes().replace("é".encode(), b"\xff\xfe"))
        with pytest.raises(InputError, match="not a whole archive: 'utf-8' codec can't decode"):
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
        found = named_models._files_below(tmp_path)
        assert named_models._root(found, "model") == PurePosixPath("m") and len(found) == 2
    finally:
        subprocess.run(["rm", "-r", tmp_path / "m"], check=True)  # pytest's own cannot
