"""A model in an archive, and archives that would write elsewhere."""

import io
import shutil
import tarfile
import warnings
import zipfile

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.checkpoints import archives, named_models
from keras_bert.checkpoints.google import load_google, save_google
from keras_bert.errors import InputError
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
            archives.unpack(archive, inside)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "a.zip", "in"]


def test_a_link_a_bomb_and_a_cut_archive_are_refused(tmp_path, cache):
    link = member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd", size=0)
    with pytest.raises(InputError, match="link, which is no ordinary file"):
        archives.unpack(tar_with(tmp_path / "link.tar.gz", link), tmp_path)
    with pytest.raises(InputError, match="free some space"):
        archives._check_size("bomb.zip", 1 << 60, tmp_path)
    with pytest.raises(InputError, match="names a file outside its folder"):
        archives.unpack(tar_with(tmp_path / "nameless.tar.gz", member(".")), tmp_path)
    locked = tmp_path / "locked.zip"
    with zipfile.ZipFile(locked, "w") as file:
        file.writestr("config.json", "{}")
    data = bytearray(locked.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + flags] |= 1  # says that it is encrypted
    locked.write_bytes(data)
    with pytest.raises(InputError, match="locked.zip is locked with a password"):
        kb.load(locked)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(tar_with(tmp_path / "w.tar.gz", member("config.json")).read_bytes()[:40])
    with pytest.raises(InputError, match="cut.tar.gz is not a whole archive"):
        kb.load(cut)


@pytest.mark.parametrize("held, said", [("saved_model.pb", "a SavedModel"), ("x", "no model")])
def test_an_archive_without_a_model_says_so(tmp_path, cache, held, said):
    archive = tar_with(tmp_path / "a.tar.gz", member(held))
    with pytest.raises(InputError, match=f"a.tar.gz holds {said}"):
        kb.load(archive)


def test_an_archive_of_two_models_is_refused_and_a_part_of_one_is_not(tmp_path, cache):
    """Which of the two was taken changed from call to call."""
    with tarfile.open(tmp_path / "two.tar.gz", "w:gz") as tar:
        for name in ("a/config.json", "b/config.json"):
            tar.addfile(member(name), io.BytesIO(b"x"))
    with pytest.raises(InputError, match=r"two.tar.gz holds several models \(a, b\)"):
        kb.load(tmp_path / "two.tar.gz")
    for name in ("model/config.json", "model/1_Pooling/config.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert named_models._root(tmp_path / "model", "model") == tmp_path / "model"
