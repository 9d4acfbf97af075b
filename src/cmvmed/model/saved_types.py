"""Which types a model file holds, under which words.

====================  =============================================================================================
model                 a fitted model, with its members, pool, posteriors and views
expansion, ...        the kinds of terms (``TERMS``)
accuracy, reference   what held-out labels say of the accuracy, and what new rows are compared with
estimator             a classifier or feature step: its parameters and what it has learned
extractor             what a feature step has learned of one kind of features
project               a trained project of the workbench
====================  =============================================================================================

Other dataclasses, such as members and kernels, occur only as fields of these. They are written as records without a name: the
annotation of the field says what they are.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any, get_args, get_type_hints

from cmvmed._saved_classes import ATTRIBUTES, CLASSIFIERS, EXTRACTORS, NOT_SAVED, PARAMETERS, PROJECT, RECORDS, STEPS
from cmvmed.model.expansions import Expansion
from cmvmed.model.fitted_model import Model
from cmvmed.model.forests import Forest
from cmvmed.model.graph_votes import GraphVote

FORMAT = "cmvmed model"
FORMAT_VERSION = 3

TERMS = {"expansion": Expansion, "graph_vote": GraphVote, "forest": Forest}  # the kinds of terms
ESTIMATOR, EXTRACTOR, PROJECT_TYPE = "estimator", "extractor", "project"
TYPES = ("model", *TERMS, *RECORDS, ESTIMATOR, EXTRACTOR, PROJECT_TYPE)  # all that a file may hold


def part(word: str) -> Any:
    """The dataclass of a word; None if it is none."""
    if word in RECORDS:
        return imported(RECORDS[word])
    return {"model": Model, **TERMS}.get(word)


@dataclass(frozen=True)
class SavedEstimator:
    """A classifier or feature step: its parameters and what it has learned."""

    word: str

    @property
    def cls(self) -> Any:
        """The class."""
        return imported((CLASSIFIERS | STEPS)[self.word])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that are written and read."""
        return PARAMETERS.get(self.word, tuple(signature(self.cls).parameters))

    def learned(self, estimator: Any) -> dict[str, Any]:
        """The attributes to write, by name; a class that has the method ``_to_model_file`` says itself which."""
        found: dict[str, Any] = estimator._to_model_file() if hasattr(estimator, "_to_model_file") else vars(estimator)
        left_out, own = {*NOT_SAVED, *signature(type(estimator)).parameters}, ATTRIBUTES.get(self.word)
        names = [name for name in found if name not in left_out]
        return {name: found[name] for name in names if own is None or name in own}

    def may_have(self, name: str) -> bool:
        """Whether a file may set this attribute: none that would hide a method or a parameter."""
        if self.word in ATTRIBUTES:
            return name in ATTRIBUTES[self.word]
        special = name.startswith("__") or not name.isidentifier()
        return not (special or hasattr(self.cls, name) or name in signature(self.cls).parameters)


def word_of(value: object, paths: dict[str, str]) -> str | None:
    """The word of a value's class among some classes, None if it has none."""
    for word, path in paths.items():
        if path.endswith(f".{type(value).__name__}") and type(value) is imported(path):
            return word
    return None


def is_project(value: object) -> bool:
    """Whether a value is a trained project."""
    return word_of(value, {PROJECT_TYPE: PROJECT}) is not None


def project_class() -> Any:
    """The class of trained projects."""
    return imported(PROJECT)


def part_word(value: object) -> str | None:
    """The word of a part of a model or of a record, None if it has none."""
    found = next((word for word, cls in {"model": Model, **TERMS}.items() if type(value) is cls), None)
    return word_of(value, RECORDS) if found is None else found


def extractor_class(word: str) -> Any:
    """The class of an extractor, None if the word is unknown."""
    return imported(EXTRACTORS[word]) if word in EXTRACTORS else None


@cache
def field_types(cls: Any) -> dict[str, Any]:
    """The annotations of the fields of a dataclass."""
    return get_type_hints(cls)


def record_types(annotation: Any) -> list[Any]:
    """The dataclasses that an annotation allows."""
    if isinstance(annotation, type) and is_dataclass(annotation):
        return [annotation]
    return [found for part in get_args(annotation) for found in record_types(part)]


def imported(path: str) -> Any:
    """A class of the allow-list."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
