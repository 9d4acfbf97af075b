"""Search, download and check of a file, with an artificial file."""

import hashlib
import threading
import time
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from experiments.datasets import DatasetError, DatasetNotFoundError, locations
from experiments.datasets.locations import DataFile, FetchOptions, find_file, first_available, read_file

CONTENT = b"rows and columns"
INNER_DOWNLOADER = locations._downloader
FILE = DataFile(
    name="table.bin",
    folder="tables",
    url="https://example.org/table.bin",
    homepage="https://example.org",
    max_bytes=100,
    sha256=(hashlib.sha256(CONTENT).hexdigest(),),
)


def put(folder, content=CONTENT, name=FILE.name):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


@pytest.fixture
def served(monkeypatch):
    """A downloader that serves whatever the test puts into the list, and counts its calls."""
    contents, calls = [], []

    def serve(url, output_file, pooch):
        calls.append(url)
        output_file.write(contents[0])

    monkeypatch.setattr(locations, "_downloader", lambda: serve)
    return contents, calls


@pytest.mark.parametrize("subfolder", ["tables", "."])
def test_a_file_is_in_its_subfolder_or_in_the_data_folder(tmp_path, subfolder):
    put(tmp_path / subfolder)
    assert read_file(FILE, FetchOptions(tmp_path)) == CONTENT


def test_data_home_may_be_a_string(tmp_path):
    put(tmp_path)
    assert read_file(FILE, FetchOptions(str(tmp_path))) == CONTENT


def test_data_home_comes_before_the_environment_and_that_before_the_cache(tmp_path, monkeypatch, isolated):
    home, environment = tmp_path / "home", tmp_path / "environment"
    for folder in (home, environment, isolated):
        put(folder)
    monkeypatch.setenv("CMVMED_DATA", str(environment))
    assert find_file(FILE, FetchOptions(home)).parent == home
    assert find_file(FILE, FetchOptions()).parent == environment
    monkeypatch.delenv("CMVMED_DATA")
    assert find_file(FILE, FetchOptions()).parent == isolated


def test_of_two_versions_the_one_in_the_earlier_folder_is_taken(tmp_path, monkeypatch):
    other = replace(FILE, name="other.bin")
    put(tmp_path / "home", name=other.name)
    put(tmp_path / "environment")
    monkeypatch.setenv("CMVMED_DATA", str(tmp_path / "environment"))
    assert first_available([FILE, other], FetchOptions(tmp_path / "home")) == other
    assert first_available([FILE, other], FetchOptions()) == FILE


def test_no_version_is_available(tmp_path):
    assert first_available([FILE], FetchOptions(tmp_path)) is None


@pytest.mark.parametrize("name", ["data_home", "CMVMED_DATA"])
def test_a_folder_that_does_not_exist_is_named(tmp_path, monkeypatch, name):
    folder = tmp_path / "nowhere"
    data_home = {"data_home": folder}.get(name)
    monkeypatch.setenv("CMVMED_DATA", {"CMVMED_DATA": str(folder)}.get(name, ""))
    with pytest.raises(DatasetNotFoundError, match=rf"{name} names .*nowhere, which is not a folder"):
        read_file(FILE, FetchOptions(data_home))


def test_offline_the_error_names_source_and_destination_of_the_file(tmp_path, isolated):
    with pytest.raises(DatasetNotFoundError) as caught:
        read_file(FILE, FetchOptions(tmp_path))
    message = str(caught.value)
    for part in (
        str(tmp_path),
        str(isolated),
        FILE.homepage,
        "tables/table.bin",
        "data_home=",
        "CMVMED_DATA",
        FILE.url,
    ):
        assert part in message
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, ValueError)
    assert list(isolated.iterdir()) == []


def test_download_can_be_disabled(served):
    with pytest.raises(DatasetNotFoundError, match="download_if_missing=False"):
        read_file(FILE, FetchOptions(download_if_missing=False))
    assert served[1] == []


def test_a_file_without_an_address_is_not_found():
    with pytest.raises(DatasetNotFoundError, match="no address to download from"):
        read_file(replace(FILE, url=""), FetchOptions())


def test_without_pooch_it_is_named(monkeypatch):
    monkeypatch.setattr(locations, "find_spec", lambda name: None)
    with pytest.raises(DatasetNotFoundError, match=r"pip install pooch"):
        read_file(FILE, FetchOptions())


def test_without_pooch_there_is_no_cache(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(locations, "find_spec", lambda name: None)
    assert locations.cache_folders() == []


def test_with_pooch_its_cache_and_downloader_are_used(monkeypatch):
    monkeypatch.undo()
    assert "cmvmed" in str(locations.cache_folders()[0])
    assert locations._downloader().kwargs["timeout"] == locations.DOWNLOAD_TIMEOUT_SECONDS


def test_a_file_is_downloaded_to_the_cache_once(served, isolated):
    contents, calls = served
    contents.append(CONTENT)
    assert read_file(FILE, FetchOptions()) == CONTENT
    assert read_file(FILE, FetchOptions()) == CONTENT
    assert calls == [FILE.url]
    assert [path.name for path in isolated.iterdir()] == [FILE.name]


def test_a_download_with_another_checksum_is_refused_and_not_kept(served, isolated):
    served[0].append(CONTENT[:5])
    with pytest.raises(DatasetError, match="truncated or the published file has changed"):
        read_file(FILE, FetchOptions())
    assert list(isolated.iterdir()) == []


def test_a_download_is_checked_against_each_of_several_checksums(served):
    served[0].append(CONTENT)
    two = replace(FILE, sha256=("0" * 64, *FILE.sha256))
    assert read_file(two, FetchOptions()) == CONTENT
    with pytest.raises(DatasetError, match=r"expected 0{64} or 1{64}"):
        read_file(replace(FILE, sha256=("0" * 64, "1" * 64)), FetchOptions())


def test_a_download_without_a_known_checksum_is_accepted(served):
    served[0].append(b"anything")
    assert read_file(replace(FILE, sha256=()), FetchOptions()) == b"anything"


class Endless(BaseHTTPRequestHandler):
    """A server that sends bytes until the connection is closed."""

    pause, sent = 0.0, 0

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while type(self).sent < 100_000_000:
                self.wfile.write(bytes(50 if self.pause else 10_000))
                type(self).sent += 10_000
                time.sleep(self.pause)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def endless(monkeypatch, isolated):
    """A file without checksum at a server that never ends."""
    monkeypatch.setattr(locations, "_downloader", INNER_DOWNLOADER)
    Endless.pause, Endless.sent = 0.0, 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield replace(FILE, sha256=(), url=f"http://127.0.0.1:{server.server_address[1]}/table.bin", max_bytes=100_000)
    server.shutdown()
    server.server_close()


def test_a_download_ends_when_the_file_is_larger_than_it_can_be(endless, isolated):
    with pytest.raises(DatasetError, match=r"ended after 10\d,\d{3} bytes, because the file has at most 100,000"):
        read_file(endless, FetchOptions())
    assert Endless.sent < 50_000_000
    assert list(isolated.iterdir()) == []


def test_a_download_ends_when_it_takes_too_long(endless, isolated, monkeypatch):
    monkeypatch.setattr(locations, "MAX_DOWNLOAD_SECONDS", 0.3)
    Endless.pause = 0.05
    with pytest.raises(DatasetNotFoundError, match=r"download from http.* failed \(TimeoutError\)"):
        read_file(endless, FetchOptions())
    assert list(isolated.iterdir()) == []


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT.upper(), b""], ids=["truncated", "altered", "empty"])
def test_a_wrong_checksum_is_refused_unless_verify_is_false(tmp_path, content):
    put(tmp_path, content)
    with pytest.raises(DatasetError, match=r"truncated, altered or a different file.*verify=False"):
        read_file(FILE, FetchOptions(tmp_path))
    assert read_file(FILE, FetchOptions(tmp_path, verify=False)) == content


def test_a_file_above_the_size_limit_is_refused_even_unverified(tmp_path):
    put(tmp_path, bytes(FILE.max_bytes + 1))
    with pytest.raises(DatasetError, match=r"has 101 bytes; table.bin has at most 100"):
        read_file(FILE, FetchOptions(tmp_path, verify=False))


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    put(tmp_path)

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "read_bytes", refuse)
    with pytest.raises(DatasetError, match=r"table.bin cannot be read: Permission denied"):
        read_file(FILE, FetchOptions(tmp_path))
