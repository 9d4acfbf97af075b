"""Archives made by the tests: honest, damaged and hostile."""

import bz2
import gzip
import io
import struct
import tarfile
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmvmed.datasets import DatasetError, archives
from cmvmed.datasets.archives import bunzip2, gunzip, tar_files, zip_files

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


def read_tar(data, **changes):
    return tar_files(data, **{"name": "x.tar", "max_member_bytes": 1000, **changes})


def read_zip(data, wanted=("a.txt", "b.txt"), **changes):
    return zip_files(data, wanted, **{"name": "x.zip", "max_member_bytes": 1000, **changes})


def with_type(kind, target=""):
    def change(member):
        member.type, member.linkname = kind, target
        return member

    return change


@pytest.mark.parametrize(("pack", "unpack"), [(gzip.compress, gunzip), (bz2.compress, bunzip2)])
class TestStreams:
    def test_content_comes_back(self, pack, unpack):
        assert unpack(pack(b"content"), name="x", max_bytes=7) == b"content"

    def test_a_bomb_stops_at_the_cap(self, pack, unpack):
        with pytest.raises(DatasetError, match="decompresses to more than 1,000 bytes"):
            unpack(pack(bytes(10_000_000)), name="x", max_bytes=1000)

    @pytest.mark.parametrize(
        "damage", [lambda b: b[:-5], lambda b: b"no archive", lambda b: b[:45] + bytes(9) + b[54:]]
    )
    def test_damage_is_one_error(self, pack, unpack, damage):
        data = damage(pack(bytes(range(256)) * 8))
        with pytest.raises(DatasetError, match=r"x is not a whole \w+ file .* Get it again"):
            unpack(data, name="x", max_bytes=10_000)


class TestTar:
    def test_files_come_back_and_folders_are_passed_over(self):
        folder = {"set": b""}
        data = make_tar(folder, with_type(tarfile.DIRTYPE))[:512] + make_tar(FILES)
        assert read_tar(data) == FILES

    @pytest.mark.parametrize("name", ["/etc/passwd", "../up.txt", "set/../../up.txt", "C:/up.txt", "set\\up.txt"])
    def test_a_name_that_leads_outside_is_refused(self, name):
        with pytest.raises(DatasetError, match="leads outside"):
            read_tar(make_tar({name: b"x"}))

    @pytest.mark.parametrize(
        "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE]
    )
    def test_links_and_special_files_are_refused(self, kind):
        with pytest.raises(DatasetError, match="link or special file"):
            read_tar(make_tar({"set/a": b""}, with_type(kind, "/etc/passwd")))

    def test_a_sparse_file_that_claims_terabytes_is_refused(self):
        buffer = io.BytesIO()
        headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(10**13), "GNU.sparse.numblocks": "1"}
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers=headers) as archive:
            archive.addfile(tarfile.TarInfo("set/a"))
        with pytest.raises(DatasetError, match="link or special file"):
            read_tar(buffer.getvalue())

    def test_a_member_over_its_cap_is_refused(self):
        with pytest.raises(DatasetError, match="of 1,001 bytes; at most 1,000"):
            read_tar(make_tar({"set/a": bytes(1001)}))

    def test_a_member_named_twice_is_refused(self):
        with pytest.raises(DatasetError, match="twice"):
            read_tar(make_tar({"set/a": b""})[:512] + make_tar({"set/a": b""}))

    def test_too_many_members_are_refused(self, monkeypatch):
        monkeypatch.setattr(archives, "MAX_MEMBERS", 1)
        with pytest.raises(DatasetError, match="more than 1 members"):
            read_tar(make_tar(FILES))

    def test_a_negative_size_ends_in_an_error_not_in_a_loop(self):
        data = bytearray(make_tar({"set/a": b""}))
        data[124:136] = b"\xff" * 11 + b"\x00"  # base-256, -256 bytes: the next header lies before this one
        header = bytes(data[:148]) + b" " * 8 + bytes(data[156:512])
        data[148:156] = b"%06o\0 " % sum(header)
        with pytest.raises(DatasetError):
            read_tar(bytes(data))

    def test_headers_that_lead_to_headers_end_in_an_error_not_in_a_crash(self):
        long_name = make_tar({"././@LongLink": b"x"}, with_type(tarfile.GNUTYPE_LONGNAME))[:1024]
        with pytest.raises(DatasetError, match="not a whole tar archive"):
            read_tar(long_name * 5000 + make_tar(FILES))

    def test_a_tail_that_is_cut_off_is_an_error(self):
        with pytest.raises(DatasetError, match="not a whole tar archive"):
            read_tar(make_tar(FILES)[: 512 + 100])

    def test_a_damaged_header_in_the_middle_is_an_error(self):
        data = bytearray(make_tar(FILES))
        data[1024:1030] = b"\xff" * 6
        with pytest.raises(DatasetError, match="damaged after member 1"):
            read_tar(bytes(data))

    def test_something_else_is_an_error(self):
        with pytest.raises(DatasetError, match="not a whole tar archive"):
            read_tar(b"no archive" * 100)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2047), st.binary(min_size=1, max_size=40))
    def test_any_damage_gives_the_files_or_the_error(self, outcome_of, position, damage):
        data = bytearray(make_tar(FILES))
        data[position : position + len(damage)] = damage
        outcome = outcome_of(read_tar, bytes(data))
        assert isinstance(outcome, (dict, DatasetError))


class TestZip:
    def test_wanted_files_come_back_and_others_are_not_read(self):
        data = make_zip({**FILES, "set/huge.bin": bytes(100_000), "set/": b""})
        assert read_zip(data) == {"a.txt": FILES["set/a.txt"], "b.txt": FILES["set/b.txt"]}

    @pytest.mark.parametrize("name", ["/etc/passwd", "../up.txt", "set/../../up.txt", "C:/up.txt"])
    def test_a_name_that_leads_outside_is_refused(self, name):
        with pytest.raises(DatasetError, match="leads outside"):
            read_zip(make_zip({**FILES, name: b"x"}))

    def test_a_bomb_stops_at_the_cap(self):
        with pytest.raises(DatasetError, match=r"a.txt in x.zip decompresses to more than 1,000 bytes"):
            read_zip(make_zip({**FILES, "set/a.txt": bytes(10_000_000)}))

    def test_a_bomb_that_lies_about_its_size_stops_too(self):
        data = bytearray(make_zip({"a.txt": bytes(100_000)}))
        for position in (22, data.index(b"PK\x01\x02") + 24):
            data[position : position + 4] = struct.pack("<I", 10)
        with pytest.raises(DatasetError):
            read_zip(bytes(data), ["a.txt"])

    def test_a_file_there_twice_is_refused(self):
        with pytest.raises(DatasetError, match=r"'a.txt' twice"):
            read_zip(make_zip({**FILES, "other/a.txt": b""}))

    def test_a_missing_file_is_named(self):
        with pytest.raises(DatasetError, match=r"does not hold c.txt"):
            read_zip(make_zip(FILES), ["a.txt", "c.txt"])

    def test_too_many_members_are_refused(self, monkeypatch):
        monkeypatch.setattr(archives, "MAX_MEMBERS", 1)
        with pytest.raises(DatasetError, match="more than 1 members"):
            read_zip(make_zip(FILES))

    def test_an_unusual_compression_is_refused(self):
        with pytest.raises(DatasetError, match="unusual compression"):
            read_zip(make_zip(FILES, zipfile.ZIP_LZMA))

    def test_an_encrypted_member_is_refused(self):
        data = bytearray(make_zip({"a.txt": b"x"}))
        for position in (6, data.index(b"PK\x01\x02") + 8):
            data[position] |= 1
        with pytest.raises(DatasetError, match="encrypted"):
            read_zip(bytes(data), ["a.txt"])

    def test_a_damaged_local_header_is_an_error(self):
        data = bytearray(make_zip(FILES))
        data[0:4] = b"XXXX"
        with pytest.raises(DatasetError, match="not a whole zip archive"):
            read_zip(bytes(data))

    def test_a_checksum_that_differs_is_an_error(self):
        data = bytearray(make_zip({"a.txt": b"plain text"}, zipfile.ZIP_STORED))
        data[data.index(b"plain")] ^= 1
        with pytest.raises(DatasetError, match="Bad CRC"):
            read_zip(bytes(data), ["a.txt"])

    @pytest.mark.parametrize("damage", [lambda b: b[:-30], lambda b: b[: len(b) // 2], lambda b: b"no archive"])
    def test_a_cut_or_other_file_is_an_error(self, damage):
        with pytest.raises(DatasetError, match="not a whole zip archive"):
            read_zip(damage(make_zip(FILES)))

    @settings(max_examples=60, deadline=None)
    @given(st.floats(0, 1), st.binary(min_size=1, max_size=12))
    def test_any_damage_gives_the_files_or_the_error(self, outcome_of, place, damage):
        data = bytearray(make_zip(FILES))
        position = int(place * (len(data) - len(damage)))
        data[position : position + len(damage)] = damage
        outcome = outcome_of(read_zip, bytes(data))
        assert isinstance(outcome, (dict, DatasetError))
