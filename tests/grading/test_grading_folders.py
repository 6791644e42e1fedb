"""Folders that a student's code filled: measured and removed, whatever is in them."""

import os
import resource
import subprocess
import sys

import pytest

from lnres_utils.grading import folders


@pytest.fixture
def deep(tmp_path):
    """A folder 1,400 folders deep, made as a student's code would."""
    folder = tmp_path / "own"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", "import os\nfor _ in range(1400):\n"
                    "    os.mkdir('a')\n    os.chdir('a')\nopen('x', 'w').close()"],
                   cwd=folder, check=True)
    return folder


def test_a_deep_folder_is_full_and_can_be_removed(deep):
    assert folders.is_full(deep)
    folders.remove(deep)
    assert os.listdir(deep.parent) == []


def test_closed_folders_links_and_files_go_and_what_a_link_leads_to_stays(tmp_path):
    kept, folder = tmp_path / "kept", tmp_path / "own"
    (folder / "b" / "c" / "d").mkdir(parents=True)
    kept.mkdir()
    (kept / "x").touch()
    (folder / "b" / "c" / "link").symlink_to(kept)
    (folder / "b" / "c" / "file").touch()
    (folder / "b" / "c").chmod(0)
    (folder / "b").chmod(0o300)
    folders.remove(folder)
    assert not folder.exists() and (kept / "x").exists()


def test_a_few_small_files_are_not_too_much_and_one_large_is(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "small").write_bytes(b"x" * 1000)
    assert not folders.is_full(tmp_path)
    with open(tmp_path / "b" / "large", "wb") as file:
        file.truncate(folders.MOST_BYTES)
    assert folders.is_full(tmp_path)


def test_many_files_are_too_much(tmp_path):
    for number in range(folders.MOST_FILES + 1):
        os.symlink("x", tmp_path / str(number))
    assert folders.is_full(tmp_path)


def test_what_is_gone_is_not_full(tmp_path):
    assert not folders.is_full(tmp_path / "gone")


def test_removing_keeps_few_files_open(deep):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, most[1]))
    try:
        folders.remove(deep)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
    assert not deep.exists()
