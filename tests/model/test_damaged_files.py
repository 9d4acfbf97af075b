"""Damaged and hostile model files: no code is run, no memory taken beyond the limit, one clear error each."""

from __future__ import annotations

import io
import json
import pickle
import random
import re
import sys
import tracemalloc
import warnings
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import cmvmed
from cmvmed import MED, ModelFileError, config_context
from cmvmed.features import TextView
from cmvmed.features.text import WORDS
from cmvmed.model.saved_types import FORMAT_VERSION
from cmvmed.workbench import Project, TrainedProject, ViewSettings, init
from tests.model.models import Example, example, labels, two_views
from tests.workbench.jobs import write_tickets

ACCURACY = ("hits", "labels_only", "gained", "lost", "largest", "n_held_out", "confidence_labels", "interval_labels")
LIMIT = 32 << 20  # bytes that a file may take here
FORBIDDEN = (
    "pickle.find_class",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.remove",
    "subprocess",
    "socket",
    "ctypes",
)
watching: list[str] = []  # events while a file is loaded; None outside
is_watching = False


def watch(event, arguments):
    if not is_watching:
        return
    writes = event == "open" and isinstance(arguments[1], str) and not set(arguments[1]) <= set("rbt")
    if writes or event.startswith(FORBIDDEN):
        watching.append(f"{event} {arguments}")


sys.addaudithook(watch)


@pytest.fixture(scope="module", params=["cmvmed", "sparse", "landmarks", "documents", "project"])
def saved(request, tmp_path_factory):
    """The bytes of a model file, rows and what the model says of them."""
    folder = tmp_path_factory.mktemp("saved")
    found = trained_example(folder) if request.param == "project" else example(request.param)
    cmvmed.save(found.model, folder / "m")
    return (folder / "m").read_bytes(), found.X, quietly(probabilities, found.model, found.X)


def trained_example(folder):
    """A trained project of texts, numbers, dates and categories, and the file of its rows."""
    write_tickets(folder)
    settings = init(folder / "tickets.csv", folder / "cmvmed.toml").settings
    data = replace(settings.data, ignore=())
    views = (*settings.views, ViewSettings("dates", columns=("bought",)))
    return Example(Project(replace(settings, data=data, views=views), folder).train(), folder / "tickets.csv")


def probabilities(model, X):
    """Probabilities of rows by a model, or by that of a project, whose rows are a file."""
    if isinstance(model, TrainedProject):
        return model.predict(X).filter(like="probability_").to_numpy()
    return model.predict_proba(X)


@contextmanager
def little_memory():
    """The process must not have grown by much more than the limit, at any time."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 3 * LIMIT  # models take some too


def quietly(function, *arguments):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*arguments)


def load_watched(path):
    """Load a file: the model, or None after the one error that is allowed; nothing forbidden may happen."""
    global is_watching
    watching.clear()
    is_watching = True
    try:
        with config_context(memory_limit=LIMIT):
            return cmvmed.load(path)
    except ModelFileError as error:
        message = str(error)
        assert message.startswith((f"{path} is not a cmvmed model file: ", f"{path} cannot be loaded: ")), message
        assert len(message) < 1000
        return None
    finally:
        is_watching = False
        assert watching == []


@pytest.mark.parametrize(("at", "value"), [(8, 1), (10, zipfile.ZIP_LZMA)], ids=["encrypted", "compressed by LZMA"])
def test_an_entry_that_is_encrypted_or_compressed_in_an_unusual_way(saved, tmp_path, at, value):
    content = bytearray(saved[0])
    content[content.index(b"PK\x01\x02") + at] = value  # in the directory of the archive
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"its entry \S+ is encrypted, or compressed in an unusual way"):
        cmvmed.load(tmp_path / "m")


# --- bytes -----------------------------------------------------------------------------------------------------------


def damaged(content, rng):
    """A file with some bytes changed, removed, inserted, repeated or cut off."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 50])):
        where = rng.randrange(len(changed))
        if rng.random() < 0.3:  # near the end, where the directory of the archive is
            where = max(0, len(changed) - 1 - int(rng.expovariate(1 / 300)))
        length = rng.choice([1, 1, 2, 4, 8, 100])
        match rng.randrange(5):
            case 0:
                changed[where] ^= 1 << rng.randrange(8)
            case 1:
                changed[where : where + length] = rng.randbytes(length)
            case 2:
                del changed[where : where + length]
            case 3:
                changed[where:where] = changed[max(0, where - length) : where]
            case 4:
                changed[where : where + length] = rng.choice([b"\x00", b"\xff"]) * length
        if not changed:
            return b""
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.1 else changed)


def check_damaged_bytes(saved, path, n, seed):
    content, X, expected = saved
    rng, refused = random.Random(seed), 0
    for _ in range(n):
        path.write_bytes(damaged(content, rng))
        model = load_watched(path)
        refused += model is None
        if model is not None:  # what changed is not read, such as the dates of the entries
            assert np.array_equal(quietly(probabilities, model, X), expected)
    assert refused > 0.8 * n


def test_damaged_bytes(saved, tmp_path):
    with little_memory():
        check_damaged_bytes(saved, tmp_path / "m", 100, 0)


@pytest.mark.slow
def test_many_damaged_bytes(saved, tmp_path):
    with little_memory():
        check_damaged_bytes(saved, tmp_path / "m", 500, 1)


# --- documents and arrays, in valid archives ---------------------------------------------------------------------------


def unpacked(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def places(value, found):
    """All (container, key) of a document."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(item, (dict, list)):
            places(item, found)
    return found


STRANGE = [
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    10**400,
    0.5,
    1e308,
    "",
    "x",
    "nan",
    "__class__",
    "os.system",
    "<f8",
    "O",
    [],
    {},
    [[]],
    {"kind": "object", "number": 0},
    {"kind": "object", "number": 10**9},
    {"kind": "array", "number": 3},
    {"kind": "array", "number": -1},
    {"kind": "dict", "items": [[[], 1]]},
    {"kind": "dict", "items": [1]},
    {"kind": "tuple", "items": [1, 2, 3]},
    {"kind": "float", "value": "nan"},
    {"kind": "scalar", "dtype": "V8", "value": 1},
    {"kind": "scalar", "dtype": "<f8", "value": "x"},
    {"kind": "slice", "items": [0, 1]},
]


def change_document(entries, rng):
    document = json.loads(entries["model.json"])
    for _ in range(rng.choice([1, 1, 1, 3])):
        found = places(document, [])
        container, key = rng.choice(found)
        match rng.randrange(4):
            case 0:
                del container[key]
            case 1:
                other, other_key = rng.choice(found)
                container[key] = json.loads(
                    json.dumps(other.get(other_key) if isinstance(other, dict) else other[other_key])
                )
            case 2 if isinstance(container[key], (int, float)):
                container[key] = rng.choice([-1, 1]) * container[key] + rng.choice([0, 1, 1000, 10**12])
            case _:
                container[key] = rng.choice(STRANGE)
        if not document:
            break
    return entries | {"model.json": json.dumps(document)}


def change_array(entries, rng):
    name = rng.choice([name for name in entries if name.endswith(".npy")])
    array = np.load(io.BytesIO(entries[name]))
    if rng.random() < 0.2:  # a header that says something else
        text = entries[name][10:128].decode("latin1")
        for old, new in [("<f8", "|O"), ("<f8", ">f8"), ("(", f"({rng.randrange(10**12)}, "), ("False", "True")]:
            if rng.random() < 0.5:
                text = text.replace(old, new)
        return entries | {name: entries[name][:10] + text.encode("latin1")[:118] + entries[name][128:]}
    match rng.randrange(6):
        case 0:
            array = array.reshape(-1)
        case 1:
            array = array[: array.shape[0] // 2] if array.ndim else array
        case 2:
            array = array.astype(rng.choice(["f8", "f4", "i8", "i1", "?", "U3"]))
        case 3:
            array = array.copy()
            if array.size and array.dtype.kind in "if":
                array.flat[rng.randrange(array.size)] = rng.choice([-1, 10**6, 2**31 - 1])
        case 4:
            array = np.full_like(array, rng.choice([0, 1, -7])) if array.dtype.kind in "if" else array
        case 5:
            array = array.T
    file = io.BytesIO()
    np.save(file, array)
    return entries | {name: file.getvalue()}


def check_changed_content(saved, path, n, seed):
    content, X, _ = saved
    rng, refused = random.Random(seed), 0
    entries = unpacked(content)
    for _ in range(n):
        path.write_bytes(packed(rng.choice([change_document, change_document, change_array])(entries, rng)))
        model = quietly(load_watched, path)
        refused += model is None
        if model is not None:
            with suppress(ValueError, TypeError, AttributeError, LookupError, ArithmeticError):
                quietly(probabilities, model, X)  # another model; it must not bring the process down
    assert refused > 0.2 * n


@pytest.fixture
def right_digest(monkeypatch):
    """As if the digest were that of the changed content, which anyone can compute."""
    monkeypatch.setattr("cmvmed.model.file.digest", lambda document, arrays: ANY)


@pytest.mark.usefixtures("right_digest")
def test_changed_content(saved, tmp_path):
    with little_memory():
        check_changed_content(saved, tmp_path / "m", 60, 2)


@pytest.mark.slow
@pytest.mark.usefixtures("right_digest")
def test_much_changed_content(saved, tmp_path):
    with little_memory():
        check_changed_content(saved, tmp_path / "m", 500, 3)


# --- single attacks ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """The content of a small model file."""
    path = tmp_path_factory.mktemp("small") / "m"
    MED().fit(two_views(), labels()[1]).save(path)
    return unpacked(path.read_bytes())


def refusal(path, content):
    """The message of the error, after which little memory was taken."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with config_context(memory_limit=LIMIT), pytest.raises(ModelFileError) as caught:
            cmvmed.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < LIMIT
    return str(caught.value)


def with_document(entries, **changes):
    return packed(entries | {"model.json": json.dumps(json.loads(entries["model.json"]) | changes)})


def with_objects(entries, *objects):
    """A file whose document has other objects, of which the last is the model."""
    root = {"kind": "object", "number": len(objects) - 1}
    return with_document(entries, objects=list(objects), model=root)


def npy(header, content=b""):
    text = repr(header).encode().ljust(118, b" ")
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def test_other_files(tmp_path, entries):
    path = tmp_path / "m"
    pickled = pickle.dumps(MED())
    for content in (b"", b"text", pickled):
        assert re.search(r"is not a cmvmed model file: it is not a zip archive.*joblib.load", refusal(path, content))
    assert "no entry model.json" in refusal(path, packed({"a.txt": "b"}))
    assert '"format": "cmvmed model"' in refusal(path, packed({"model.json": "[1]"}))
    assert "NaN, which is not JSON" in refusal(path, packed({"model.json": "NaN"}))
    assert "JSONDecodeError" in refusal(path, packed({"model.json": "{"}))
    assert "no model" in refusal(path, with_document(entries, model=3))
    with pytest.raises(FileNotFoundError):
        cmvmed.load(tmp_path / "nothing")


def test_another_version_says_what_to_do(tmp_path, entries):
    later = with_document(entries, version=FORMAT_VERSION + 1, written_by={"cmvmed": "99.1"})
    message = refusal(tmp_path / "m", later)
    assert "cannot be loaded" in message
    assert f"version {FORMAT_VERSION + 1} of the format, written by cmvmed '99.1'" in message
    assert "install a newer release" in message
    earlier = with_document(entries, version=FORMAT_VERSION - 1, written_by={"cmvmed": "0.0.1"})
    message = refusal(tmp_path / "m", earlier)
    assert f"version {FORMAT_VERSION - 1} of the format, written by cmvmed '0.0.1'" in message
    assert "train the model again" in message
    for version in (None, "1", 0, True, 1.0):
        assert "which version" in refusal(tmp_path / "m", with_document(entries, version=version))


def test_archives_that_grow_are_refused_before_they_do(tmp_path, entries):
    path = tmp_path / "m"
    zeros = np.zeros(2 * LIMIT, dtype=np.uint8)
    large = packed(
        entries | {"arrays/0.npy": npy({"descr": "|u1", "fortran_order": False, "shape": zeros.shape}, zeros.tobytes())}
    )
    assert len(large) < LIMIT / 50
    assert "more than the limit" in refusal(path, large)
    many = packed({"model.json": "[" + "[]," * (1 << 20) + "[]]"})
    assert "more than the limit" in refusal(path, many)
    deep = packed({"model.json": "[" * 200_000 + "]" * 200_000})
    assert "RecursionError" in refusal(path, deep)


@pytest.mark.parametrize(
    "header",
    [
        {"descr": "<f8", "fortran_order": False, "shape": (10**15,)},
        {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**40)},
        {"descr": "<f8", "fortran_order": False, "shape": (-1,)},
        {"descr": "<f8", "fortran_order": False, "shape": (1,) * 40},
        {"descr": "<U1000000000", "fortran_order": False, "shape": (2,)},
        {"descr": "|O", "fortran_order": False, "shape": (1,)},
        {"descr": [("a", "<f8"), ("b", "|O")], "fortran_order": False, "shape": (1,)},
        {"descr": "<f8", "fortran_order": False, "shape": (2,)},
        {"descr": "<M8[s]", "fortran_order": False, "shape": (1,)},
    ],
    ids=str,
)
def test_arrays_that_are_not_what_they_declare(header, tmp_path, entries):
    assert "model file" in refusal(tmp_path / "m", packed(entries | {"arrays/0.npy": npy(header, b"12345678")}))


def test_an_array_of_pickled_objects_is_not_read(tmp_path, entries):
    file = io.BytesIO()
    np.save(file, np.array([Harmful()], dtype=object), allow_pickle=True)
    assert "not numbers or texts" in refusal(tmp_path / "m", packed(entries | {"arrays/0.npy": file.getvalue()}))
    assert Harmful.was_run == 0
    with pytest.raises(RuntimeError):  # the attack works where pickles are read
        np.load(io.BytesIO(file.getvalue()), allow_pickle=True)


class Harmful:
    was_run = 0

    def __reduce__(self):
        return harm, ()


def harm():
    Harmful.was_run += 1
    raise RuntimeError("code of the file was run")


def test_sparse_arrays_that_would_be_large(tmp_path, entries):
    fields = {
        "shape": [10**6, 10**6],
        "dtype": "<f8",
        "order": "C",
        "gaps": {"kind": "array", "number": 0},
        "values": {"kind": "array", "number": 0},
    }
    assert "more than the limit" in refusal(
        tmp_path / "m", with_objects(entries, {"type": "mostly_zero", "fields": fields})
    )


@pytest.mark.parametrize(
    ("indices", "indptr", "message"),
    [
        ([0, 5], [0, 1, 2], "outside of it"),
        ([0, -1], [0, 1, 2], "outside of it"),
        ([0, 1], [0, 3, 2], "pointers"),
        ([0, 1], [0, 1, 10**6], "pointers"),
        ([0, 1], [0, 2], "pointers"),
        ([0, 1], [1, 1, 2], "pointers"),
        ([0, 1], np.array([0, 120, -128], dtype=np.int8), "unusual type"),  # differences that overflow to 120 and 8
        ([0, 1], [[0, 1, 2]], "not a vector"),
        ([0.0, 1.0], [0, 1, 2], "unusual type"),
    ],
)
def test_indices_of_sparse_matrices_are_checked(indices, indptr, message, tmp_path, entries):
    """scipy's compiled code reads and writes memory at any index that it is given."""
    more = {}
    for number, values in {900: [1.0, 2.0], 901: indices, 902: indptr}.items():
        file = io.BytesIO()
        np.save(file, np.asarray(values))
        more[f"arrays/{number}.npy"] = file.getvalue()
    data, index, pointer = ({"kind": "array", "number": number} for number in (900, 901, 902))
    fields = {"format": "csr", "is_matrix": True, "shape": [2, 3], "data": data, "indices": index, "indptr": pointer}
    content = with_objects(entries | more, {"type": "sparse", "fields": fields})
    assert message in refusal(tmp_path / "m", content)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"type": "builtins.eval", "fields": {}}, "does not know"),
        ({"type": "cmvmed.estimators.med.MED", "fields": {}}, "does not know"),
        ({"type": ["med"], "fields": {}}, "does not know"),
        ({"type": "estimator", "name": "cmvmed.estimators.med.MED", "fields": {}, "attributes": {}}, "does not know"),
        ({"type": "estimator", "name": ["med"], "fields": {}, "attributes": {}}, "does not know"),
        ({"type": "extractor", "name": "med", "fields": {}}, "does not know"),
        ({"type": "estimator", "name": "med", "fields": {"memory": "folder"}, "attributes": {}}, "parameter 'memory'"),
        (
            {"type": "estimator", "name": "pipeline", "fields": {"steps": [], "memory": "folder"}, "attributes": {}},
            "parameter 'memory'",
        ),
        ({"type": "estimator", "name": "med", "fields": {}, "attributes": {"predict": 1}}, "attribute 'predict'"),
        ({"type": "estimator", "name": "med", "fields": {}, "attributes": {"__class__": 1}}, "attribute '__class__'"),
        ({"type": "estimator", "name": "med", "fields": {}, "attributes": {"views": 1}}, "attribute 'views'"),
        (
            {"type": "estimator", "name": "med", "fields": {}, "attributes": {"_model": 1, "classes_": 1}},
            "AttributeError",
        ),
        ({"type": "estimator", "name": "med", "fields": {}, "attributes": {}}, "NotFittedError"),
        ({"type": "accuracy", "fields": dict.fromkeys(ACCURACY, 1.0)}, "no model"),
        ({"type": "accuracy", "fields": {"hits": {"kind": "record", "fields": {}}}}, "a record of"),
        ({"type": "accuracy", "fields": dict.fromkeys((*ACCURACY, "more"), 1.0)}, "TypeError"),
        ({"type": "random_state", "fields": {"state": [1]}}, "ValueError"),
    ],
)
def test_documents_that_ask_for_something_else(entry, message, tmp_path, entries):
    assert message in refusal(tmp_path / "m", with_objects(entries, entry))


def test_a_reference_leads_to_an_earlier_object(tmp_path, entries):
    itself = {"type": "estimator", "name": "med", "fields": {"C": {"kind": "object", "number": 0}}, "attributes": {}}
    assert "something unknown" in refusal(tmp_path / "m", with_objects(entries, itself))
    nested = json.loads("[" * 100 + "]" * 100)
    deep = {"type": "estimator", "name": "med", "fields": {"C": nested}, "attributes": {}}
    assert "nested too deeply" in refusal(tmp_path / "m", with_objects(entries, deep))


def test_two_entries_of_one_name(tmp_path, entries):
    file = io.BytesIO(packed(entries))
    with warnings.catch_warnings(), zipfile.ZipFile(file, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("model.json", "{}")
    assert "same name" in refusal(tmp_path / "m", file.getvalue())


def test_a_changed_number_is_noticed(tmp_path, entries):
    """The digest is over the document and all arrays, so that a change that fits the format is found too."""
    document = json.loads(entries["model.json"])
    (estimator,) = (entry for entry in document["objects"] if entry["type"] == "estimator")
    estimator["fields"]["C"] = 2.0
    assert "digest differs" in refusal(tmp_path / "m", with_document(entries, objects=document["objects"]))


def test_parts_of_a_model_that_do_not_fit_together(tmp_path, entries):
    document = json.loads(entries["model.json"])
    (expansion,) = (entry for entry in document["objects"] if entry["type"] == "expansion")
    expansion["fields"]["constant"] = expansion["fields"]["coefficients"]
    assert "constant does not fit" in refusal(tmp_path / "m", with_document(entries, objects=document["objects"]))


# --- numbers that are no numbers, and indices outside of what they index ------------------------------------------------


def holders(document, number):
    """The types of the objects that hold an array, and the fields in which they do."""

    def walk(value, path):
        if isinstance(value, dict) and value.get("kind") == "array":
            return [path] if value["number"] == number else []
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [found for key, item in items for found in walk(item, f"{path}.{key}")]

    return [found for entry in document["objects"] for found in walk(entry, entry["type"])]


# What predict does not use; the mean of a column without any number is NaN.
FREE = ("estimator.attributes", "reference.", "imputation.fields.means")
FREE_NUMBERS = (
    "held_out.fields.groups",
    "estimator.attributes",
    "graph_vote.fields.place",
)  # -1: a node lacks the view


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The content of a file with members of every kind, held-out labels of groups, and rows that lack a view."""
    X, y = two_views(), labels()[1]
    X[5, :5] = np.nan
    path = tmp_path_factory.mktemp("whole") / "m"
    model = cmvmed.CMVMED(views=[5, 7]).fit(X, y, groups=np.arange(len(y)) % 6)
    cmvmed.save(model, path)
    return unpacked(path.read_bytes())


def changed_numbers(whole, kind, values, free):
    """Files in which one number of an array is another, by what holds the array."""
    document = json.loads(whole["model.json"])
    for name in [name for name in whole if name.endswith(".npy")]:
        array = np.load(io.BytesIO(whole[name]))
        holding = holders(document, int(name[len("arrays/") : -len(".npy")]))
        if array.dtype.kind != kind or not array.size or any(part in own for own in holding for part in free):
            continue
        for value in values:
            array.flat[array.size // 2], before = value, array.flat[array.size // 2]
            file = io.BytesIO()
            np.save(file, array)
            yield holding, packed(whole | {name: file.getvalue()})
            array.flat[array.size // 2] = before


@pytest.mark.usefixtures("right_digest")
@pytest.mark.parametrize(
    ("kind", "values", "free", "types"),
    [
        ("f", (np.nan, np.inf), FREE, {"expansion", "forest", "graph_vote", "model"}),
        ("i", (-2, 2**31 - 1), FREE_NUMBERS, {"expansion", "forest", "graph_vote", "model"}),
    ],
    ids=["numbers", "indices"],
)
def test_numbers_and_indices_that_cannot_be_are_refused(tmp_path, whole, kind, values, free, types):
    tried = set()
    for holding, content in changed_numbers(whole, kind, values, free):
        tried |= {own.split(".")[0] for own in holding}
        (tmp_path / "m").write_bytes(content)
        assert quietly(load_watched, tmp_path / "m") is None, holding
    assert tried >= types


# --- files that have no end, or whose entries take memory --------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless device")
def test_a_device_is_no_model_file(tmp_path):
    (tmp_path / "m").symlink_to("/dev/zero")
    with pytest.raises(ModelFileError, match="a device or pipe"):
        cmvmed.load(tmp_path / "m")


def test_entries_without_content_count(tmp_path, entries):
    content = packed(entries | {f"{number}": b"" for number in range(40_000)})
    assert "more than the limit" in refusal(tmp_path / "m", content)


def test_texts_without_letters_count(tmp_path, entries):
    empty = npy({"descr": "<U0", "fortran_order": False, "shape": (10**9,)})
    assert "holds <U0" in refusal(tmp_path / "m", packed(entries | {"arrays/0.npy": empty}))
    parts = {key: {"kind": "array", "number": 0} for key in ("gaps", "values")}
    fields = {"shape": [10**9], "dtype": "<U0", "order": "C", **parts}
    content = with_objects(entries, {"type": "mostly_zero", "fields": fields})
    assert "values of type '<U0'" in refusal(tmp_path / "m", content)


def test_an_expression_that_may_take_hours_is_refused(tmp_path):
    found = example("documents")
    cmvmed.save(found.model, tmp_path / "m")
    inside = unpacked((tmp_path / "m").read_bytes())
    text = inside["model.json"].decode().replace(json.dumps(WORDS), '"(a+)+$"')
    assert "(a+)+$" in text
    assert "token_pattern" in refusal(tmp_path / "m", packed(inside | {"model.json": text}))
    step = TextView(token_pattern="(a+)+$").fit(["aa aaa"])
    with pytest.raises(ValueError, match="token_pattern"):
        cmvmed.save(make_pipeline(step, MED().fit(two_views(), labels()[1])), tmp_path / "n")
    assert not (tmp_path / "n").exists()
