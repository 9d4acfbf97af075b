"""Files that are written completely or not at all, with the permissions that the umask allows."""

import os
import stat

import pytest

from cmvmed.pages.atomic_file import atomic_file


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o027, 0o640)])
def test_permissions_are_those_of_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        with atomic_file(tmp_path / "page.html") as temporary:
            temporary.write_text("text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == mode


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(RuntimeError):
        _write_half(path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def _write_half(path):
    with atomic_file(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
