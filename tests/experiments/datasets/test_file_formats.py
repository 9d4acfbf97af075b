"""Archives and MATLAB files made by the tests: valid, damaged and malicious."""

import bz2
import gzip
import io
import struct
import tarfile
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from experiments.datasets import DatasetError, file_formats
from experiments.datasets.file_formats import bunzip2, gunzip, load_matrices, read_tar, read_zip

FILES = {"set/a.txt": b"first" * 50, "set/b.txt": b"second" * 50}


def make_tar(files, change=lambda member: member):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(change(member), io.BytesIO(content))
    return buffer.getvalue()


def make_zip(files, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def files_of_tar(data):
    return read_tar(data, name="x.tar")


def files_of_zip(data, wanted=("a.txt", "b.txt")):
    return read_zip(data, wanted, name="x.zip", max_member_bytes=1000)


def with_type(kind, target=""):
    def change(member):
        member.type, member.linkname = kind, target
        return member

    return change


@pytest.mark.parametrize(("pack", "unpack"), [(gzip.compress, gunzip), (bz2.compress, bunzip2)])
class TestStreams:
    def test_content_is_returned(self, pack, unpack):
        assert unpack(pack(b"content"), name="x", max_bytes=7) == b"content"

    def test_decompression_stops_at_the_limit(self, pack, unpack):
        with pytest.raises(DatasetError, match="decompresses to more than 1,000 bytes"):
            unpack(pack(bytes(10_000_000)), name="x", max_bytes=1000)

    @pytest.mark.parametrize(
        "damage", [lambda b: b[:-5], lambda b: b"no archive", lambda b: b[:45] + bytes(9) + b[54:]]
    )
    def test_a_damaged_stream_is_a_dataset_error(self, pack, unpack, damage):
        data = damage(pack(bytes(range(256)) * 8))
        with pytest.raises(DatasetError, match=r"x is not a complete \w+ file .* Get it again"):
            unpack(data, name="x", max_bytes=10_000)


class TestTar:
    def test_files_are_returned_and_folders_are_skipped(self):
        folder = {"set": b""}
        data = make_tar(folder, with_type(tarfile.DIRTYPE))[:512] + make_tar(FILES)
        assert files_of_tar(data) == FILES

    @pytest.mark.parametrize("name", ["/etc/passwd", "../up.txt", "set/../../up.txt"])
    def test_a_path_outside_the_archive_is_refused(self, name):
        with pytest.raises(DatasetError, match=r"unsafe member .*(absolute path|outside the destination)"):
            files_of_tar(make_tar({name: b"x"}))

    @pytest.mark.parametrize(
        ("kind", "target"),
        [
            (tarfile.SYMTYPE, "/etc/passwd"),
            (tarfile.SYMTYPE, "../../up.txt"),
            (tarfile.SYMTYPE, "b"),
            (tarfile.LNKTYPE, "/etc/passwd"),
            (tarfile.LNKTYPE, "set/b"),
            (tarfile.CHRTYPE, ""),
            (tarfile.FIFOTYPE, ""),
        ],
    )
    def test_links_and_special_files_are_refused(self, kind, target):
        with pytest.raises(DatasetError, match="unsafe member"):
            files_of_tar(make_tar({"set/a": b""}, with_type(kind, target)))

    def test_a_sparse_file_of_many_terabytes_is_refused(self):
        buffer = io.BytesIO()
        headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(10**13), "GNU.sparse.numblocks": "1"}
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers=headers) as archive:
            archive.addfile(tarfile.TarInfo("set/a"))
        with pytest.raises(DatasetError, match="unsafe member"):
            files_of_tar(buffer.getvalue())

    def test_two_members_of_one_name_are_refused(self):
        with pytest.raises(DatasetError, match="two members named 'set/a'"):
            files_of_tar(make_tar({"set/a": b""})[:512] + make_tar({"set/a": b""}))

    def test_too_many_members_are_refused(self, monkeypatch):
        monkeypatch.setattr(file_formats, "MAX_MEMBERS", 1)
        with pytest.raises(DatasetError, match="more than 1 members"):
            files_of_tar(make_tar(FILES))

    def test_a_negative_size_is_an_error(self):
        data = bytearray(make_tar({"set/a": b""}))
        data[124:136] = b"\xff" * 11 + b"\x00"  # base-256, -256 bytes: the next header is before this one
        header = bytes(data[:148]) + b" " * 8 + bytes(data[156:512])
        data[148:156] = b"%06o\0 " % sum(header)
        with pytest.raises(DatasetError, match="negative size"):
            files_of_tar(bytes(data))

    def test_deeply_nested_headers_are_an_error(self):
        long_name = make_tar({"././@LongLink": b"x"}, with_type(tarfile.GNUTYPE_LONGNAME))[:1024]
        with pytest.raises(DatasetError, match="not a complete tar archive"):
            files_of_tar(long_name * 5000 + make_tar(FILES))

    def test_a_truncated_archive_is_an_error(self):
        with pytest.raises(DatasetError, match="not a complete tar archive"):
            files_of_tar(make_tar(FILES)[: 512 + 100])

    def test_a_damaged_header_in_the_middle_is_an_error(self):
        data = bytearray(make_tar(FILES))
        data[1024:1030] = b"\xff" * 6
        with pytest.raises(DatasetError, match="header after member 1 is invalid"):
            files_of_tar(bytes(data))

    def test_another_format_is_an_error(self):
        with pytest.raises(DatasetError, match="not a complete tar archive"):
            files_of_tar(b"no archive" * 100)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2047), st.binary(min_size=1, max_size=40))
    def test_any_damage_gives_files_or_a_dataset_error(self, outcome_of, position, damage):
        data = bytearray(make_tar(FILES))
        data[position : position + len(damage)] = damage
        outcome = outcome_of(files_of_tar, bytes(data))
        assert isinstance(outcome, (dict, DatasetError))


class TestZip:
    def test_only_the_wanted_files_are_read(self):
        data = make_zip({**FILES, "set/huge.bin": bytes(100_000), "set/": b""})
        assert files_of_zip(data) == {"a.txt": FILES["set/a.txt"], "b.txt": FILES["set/b.txt"]}

    @pytest.mark.parametrize("name", ["/etc/passwd", "../up.txt", "set/../../up.txt"])
    def test_a_path_outside_the_archive_is_refused(self, name):
        with pytest.raises(DatasetError, match=r"unsafe member .*(absolute path|outside the destination)"):
            files_of_zip(make_zip({**FILES, name: b"x"}))

    def test_decompression_stops_at_the_limit(self):
        with pytest.raises(DatasetError, match=r"a.txt in x.zip decompresses to more than 1,000 bytes"):
            files_of_zip(make_zip({**FILES, "set/a.txt": bytes(10_000_000)}))

    def test_a_member_with_a_false_size_is_an_error(self):
        data = bytearray(make_zip({"a.txt": bytes(100_000)}))
        for position in (22, data.index(b"PK\x01\x02") + 24):
            data[position : position + 4] = struct.pack("<I", 10)
        with pytest.raises(DatasetError):
            files_of_zip(bytes(data), ["a.txt"])

    def test_two_members_of_one_file_name_are_refused(self):
        with pytest.raises(DatasetError, match=r"two members named 'a.txt'"):
            files_of_zip(make_zip({**FILES, "other/a.txt": b""}))

    def test_a_missing_file_is_named(self):
        with pytest.raises(DatasetError, match=r"has no member c.txt"):
            files_of_zip(make_zip(FILES), ["a.txt", "c.txt"])

    def test_an_unusual_compression_is_refused(self):
        with pytest.raises(DatasetError, match="compression method"):
            files_of_zip(make_zip(FILES, zipfile.ZIP_LZMA))

    def test_an_encrypted_member_is_refused(self):
        data = bytearray(make_zip({"a.txt": b"x"}))
        for position in (6, data.index(b"PK\x01\x02") + 8):
            data[position] |= 1
        with pytest.raises(DatasetError, match="encrypted"):
            files_of_zip(bytes(data), ["a.txt"])

    def test_a_damaged_local_header_is_an_error(self):
        data = bytearray(make_zip(FILES))
        data[0:4] = b"XXXX"
        with pytest.raises(DatasetError, match="not a complete zip archive"):
            files_of_zip(bytes(data))

    def test_a_wrong_checksum_is_an_error(self):
        data = bytearray(make_zip({"a.txt": b"plain text"}, zipfile.ZIP_STORED))
        data[data.index(b"plain")] ^= 1
        with pytest.raises(DatasetError, match="Bad CRC"):
            files_of_zip(bytes(data), ["a.txt"])

    @pytest.mark.parametrize("damage", [lambda b: b[:-30], lambda b: b[: len(b) // 2], lambda b: b"no archive"])
    def test_a_truncated_archive_or_another_format_is_an_error(self, damage):
        with pytest.raises(DatasetError, match="not a complete zip archive"):
            files_of_zip(damage(make_zip(FILES)))

    @settings(max_examples=60, deadline=None)
    @given(st.floats(0, 1), st.binary(min_size=1, max_size=12))
    def test_any_damage_gives_files_or_a_dataset_error(self, outcome_of, place, damage):
        data = bytearray(make_zip(FILES))
        position = int(place * (len(data) - len(damage)))
        data[position : position + len(damage)] = damage
        outcome = outcome_of(files_of_zip, bytes(data))
        assert isinstance(outcome, (dict, DatasetError))


REAL_DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "bool"]


def make_mat(variables, *, compress=True, **options):
    buffer = io.BytesIO()
    savemat(buffer, variables, do_compression=compress, **options)
    return buffer.getvalue()


def load(data, **shapes):
    return load_matrices(data, shapes or {"A": (2, 3)}, name="x.mat")


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dtype", REAL_DTYPES)
def test_every_real_type_becomes_float64(dtype, compress):
    array = np.array([[1, 0, 3], [4, 5, 100]]).astype(dtype)
    matrix = load(make_mat({"other": [[1.0]], "A": array}, compress=compress))["A"]
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous
    np.testing.assert_array_equal(matrix, array)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (7, 5)])
def test_small_and_odd_shapes(shape):
    array = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_array_equal(load(make_mat({"A": array}), A=shape)["A"], array)


def test_other_variables_are_not_read():
    cell = np.empty((1, 2), dtype=object)
    cell[0, 0], cell[0, 1] = "text", np.zeros((3, 3))
    data = make_mat({"X": cell, "options": {"a": 1}, "A": np.ones((2, 3)), "name": "text"})
    matrices = load(data)
    assert list(matrices) == ["A"]
    np.testing.assert_array_equal(matrices["A"], np.ones((2, 3)))


def test_the_published_file_has_the_values_of_scipy(data_folder):
    path = data_folder / "webkb_course" / "WebKB.mat"
    matrices = load(path.read_bytes(), PAGE=(1051, 3000), LINK=(1051, 1840), Y=(1051, 1))
    expected = loadmat(path)
    for name, matrix in matrices.items():
        np.testing.assert_array_equal(matrix, expected[name])


CELL = np.empty((2, 3), dtype=object)
CELL[:] = 1.0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a MATLAB file"),
        (b"no MATLAB file" * 100, "not a MATLAB file"),
        (b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400), "not a MATLAB file"),
        (make_mat({"A": np.ones((2, 3))}, compress=False)[:-8], "not a MATLAB file|[Nn]o variable A"),
        (make_mat({"B": np.ones((2, 3))}), "no variable A of x.mat: it is a different file"),
        (make_mat({"A": np.ones((3, 2))}), r"Wrong shape of .*: \(3, 2\), expected \(2, 3\)"),
        (make_mat({"A": np.ones((2, 3, 2))}), "Wrong shape"),
        (make_mat({"A": CELL}), "Not a full matrix of real numbers: the variable A of x.mat"),
        (make_mat({"A": np.ones((2, 3)) * 1j}), "Not a full matrix of real numbers"),
        (make_mat({"A": sp.csc_array(np.eye(2, 3))}), "Not a full matrix of real numbers"),
        (make_mat({"A": np.array([list("abc"), list("def")])}), "Not a full matrix of real numbers"),
        (make_mat({"A": {"x": 1}}), "Not a full matrix of real numbers"),
    ],
)  # fmt: skip
def test_every_other_content_is_a_dataset_error(data, message):
    with pytest.raises(DatasetError, match=rf"({message}).* Get (it|the file) again") as caught:
        load(data)
    assert "x.mat" in str(caught.value)
