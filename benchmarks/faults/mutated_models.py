"""Mutated model files: whatever the document and the arrays say, no code runs, and a refusal names the file.

Entries of the JSON document and arrays of a valid file are changed, and the archive is written again with right
checksums and digest, as someone would who wants the file to be read. An audit hook of Python reports what loading does: no import,
no process, no socket, no written file, no unpickling.
"""

import copy
import io
import json
import sys
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import cmvmed
from benchmarks.faults.campaign import CLEAR_ERROR, HELD, Fault, workspace
from cmvmed.model.file import digest

CASES = {"ci": 300, "nightly": 10_000}
DOCUMENT = "model.json"
MAX_MUTATIONS = 4
FORBIDDEN = (
    "exec",
    "import",
    "os.",
    "subprocess.",
    "socket.",
    "pickle.",
    "marshal.",
    "ctypes.",
    "shutil.",
    "webbrowser.",
)
ALLOWED = ("os.listdir", "os.scandir")
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**63, 2**70, 1e308, -0.0, "", "os.system", "__reduce__", "../../x", "builtins.eval", [], {}, [[]],
    {"type": "CMVMED"}, {"array": 0}, {"object": 0}, {"$ref": 0}, "x" * 10_000,
)  # fmt: skip
ARRAY_CHANGES = ("values", "nan", "shape", "shorter", "dtype", "object", "empty", "missing", "swap")


@dataclass(frozen=True)
class Case:
    """A model and the mutations of its file."""

    model: str = "CMVMED"
    seed: int = 0
    n_mutations: int = 1
    arrays: bool = False

    @property
    def group(self) -> str:
        """The line of the table."""
        return f"{'arrays' if self.arrays else 'document'} of {self.model}"


def draw(rng: np.random.Generator, number: int) -> Case:
    """A random case."""
    return Case(
        model=str(rng.choice(list(MODELS))),
        seed=int(rng.integers(2**31)),
        n_mutations=int(rng.integers(1, MAX_MUTATIONS + 1)),
        arrays=bool(rng.random() < 0.4),
    )


MODELS = {
    "CMVMED": lambda: cmvmed.CMVMED(n_stages=2),
    "CMVMED, consensus": lambda: cmvmed.CMVMED(members="consensus", n_stages=2),
    "MED": lambda: cmvmed.MED(),
}


def _rows(name: str) -> Any:
    table = np.random.default_rng(0).normal(size=(30, 4))
    return table if name == "MED" else [table[:, :2], table[:, 2:]]


def check(case: Case) -> str:
    """Load the mutated file while every action of the process is audited."""
    warm_up(case.model)
    path = workspace() / "mutated.cmvmed"
    path.write_bytes(mutated(case))
    with audited() as events:
        try:
            model = cmvmed.load(path)
        except ValueError as error:
            if path.name not in str(error):
                raise Fault("an error that does not name the file", str(error)) from error
            model = None
        except Exception as error:
            raise Fault(f"{type(error).__name__} while loading", str(error)) from error
    if events:
        raise Fault(f"loading did {events[0]}", ", ".join(events[:5]))
    if model is None:
        return CLEAR_ERROR
    with audited() as events, suppress(Exception):  # a model that was changed on purpose may fail, but not act
        model.predict(_rows(case.model))
    if events:
        raise Fault(f"predicting did {events[0]}", ", ".join(events[:5]))
    return HELD


@cache
def whole_file(name: str) -> dict[str, bytes]:
    """Entries of the file of a model."""
    path = workspace() / f"{name.split(',')[0]}-{len(name)}.cmvmed"
    y = np.where(np.arange(30) < 10, np.arange(30) % 2, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MODELS[name]().fit(_rows(name), y).save(path, overwrite=True)
    with zipfile.ZipFile(path) as archive:
        return {entry: archive.read(entry) for entry in archive.namelist()}


@cache
def warm_up(name: str) -> None:
    """Load and use the whole file once, so that modules that a valid file needs are imported."""
    path = workspace() / "whole.cmvmed"
    path.write_bytes(packed(whole_file(name)))
    cmvmed.load(path).predict(_rows(name))
    path.write_bytes(b"no archive")
    with suppress(ValueError):
        cmvmed.load(path)
    install_hook()


def packed(entries: dict[str, bytes]) -> bytes:
    """The entries as an archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def mutated(case: Case) -> bytes:
    """The file of a case."""
    rng, entries = np.random.default_rng(case.seed), dict(whole_file(case.model))
    for _ in range(case.n_mutations):
        if case.arrays:
            _mutate_array(entries, rng)
        else:
            document = json.loads(entries[DOCUMENT])
            _mutate_document(document, rng)
            entries[DOCUMENT] = json.dumps(document).encode()
    return packed(signed(entries))


def signed(entries: dict[str, bytes]) -> dict[str, bytes]:
    """The entries with the digest that belongs to them, if they have one that can be computed."""
    document = json.loads(entries[DOCUMENT])
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        arrays = [np.load(io.BytesIO(entries[f"arrays/{i}.npy"])) for i in range(len(entries) - 1)]
        document.pop("digest", None)
        document["digest"] = digest(document, arrays)
    return entries | {DOCUMENT: json.dumps(document).encode()}


def _places(part: Any) -> Iterator[tuple[Any, Any]]:
    """All containers of a document with the keys of their entries."""
    keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
    for key in keys:
        yield part, key
        yield from _places(part[key])


def _mutate_document(document: Any, rng: np.random.Generator) -> None:
    """Change, remove, copy or rename one entry."""
    places = list(_places(document))
    if not places:
        return
    container, key = places[int(rng.integers(len(places)))]
    kind = rng.choice(["value", "value", "number", "remove", "copy", "rename"])
    if kind == "remove":
        del container[key]
    elif kind == "copy":
        other, of = places[int(rng.integers(len(places)))]
        container[key] = copy.deepcopy(other[of])
    elif kind == "rename" and isinstance(container, dict):
        container[str(VALUES[int(rng.integers(len(VALUES)))])[:100]] = container.pop(key)
    elif kind == "number" and type(container[key]) in (int, float):
        container[key] = container[key] + int(rng.integers(-3, 4))
    else:
        container[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])


def _mutate_array(entries: dict[str, bytes], rng: np.random.Generator) -> None:
    """Change one array."""
    names = [name for name in entries if name.endswith(".npy")]
    if not names:
        return
    name, kind = str(rng.choice(names)), str(rng.choice(ARRAY_CHANGES))
    array = np.load(io.BytesIO(entries[name]), allow_pickle=True)
    if kind == "missing":
        del entries[name]
        return
    if kind == "swap":
        entries[name] = entries[str(rng.choice(names))]
        return
    changes = {
        "values": lambda: rng.permutation(array.ravel()).reshape(array.shape),
        "nan": lambda: np.full(array.shape, np.nan),
        "shape": lambda: array.reshape(*array.shape, 1),
        "shorter": lambda: array[:-1] if array.ndim else array,
        "dtype": lambda: array.astype(str),
        "object": lambda: array.astype(object),
        "empty": lambda: array.ravel()[:0],
    }
    buffer = io.BytesIO()
    np.save(buffer, changes[kind](), allow_pickle=True)
    entries[name] = buffer.getvalue()


class audited:
    """The forbidden events of a block, in a list; hooks cannot be removed, so that one hook asks what is listened to."""

    listening: list[str] | None = None

    def __enter__(self) -> list[str]:
        audited.listening = []
        return audited.listening

    def __exit__(self, *_: object) -> None:
        audited.listening = None


@cache
def install_hook() -> None:
    """Add the audit hook, once."""
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if audited.listening is None:
        return
    if event == "open" and is_writing(arguments):
        audited.listening.append(f"open for writing: {arguments[0]}")
    elif event.startswith(FORBIDDEN) and event not in ALLOWED:
        audited.listening.append(f"{event} {arguments[0] if arguments else ''!s:.80}")


def is_writing(arguments: tuple[Any, ...]) -> bool:
    """Whether an event "open" is about writing: by its mode, or by its flags."""
    _, mode, flags = arguments
    return any(sign in mode for sign in "wax+") if isinstance(mode, str) else bool(flags & 3)
