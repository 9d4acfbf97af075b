"""Save a fitted model to a file, and load it: a zip archive of plain arrays and one JSON document, which cannot run code.

=============  ====================================================================================
saved_types    which types a file may hold, under which words
encoding       from a model to the document and its arrays
decoding       from the document and its arrays to a model
archive        the zip archive: written at once or not at all, read within a memory limit
=============  ====================================================================================

docs/model_file.md describes the format.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from hashlib import sha256
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from cmvmed import __version__
from cmvmed._config import configured_memory_limit
from cmvmed._saved_classes import CLASSIFIERS
from cmvmed.data.memory import read_memory_limit
from cmvmed.model.archive import (
    ArchiveReader,
    Budget,
    ModelFileError,
    UnsupportedModelFile,
    new_file,
    write_archive,
)
from cmvmed.model.decoding import Decoder
from cmvmed.model.encoding import Encoder
from cmvmed.model.saved_types import FORMAT, FORMAT_VERSION, is_project, word_of


def save(model: Any, path: str | os.PathLike[str], *, overwrite: bool = False, compact: bool | int = False) -> None:
    """Write a fitted model to a file that :func:`load` reads, and that cannot run code.

    The file holds what predictions need, which with exact kernels includes the training rows, all fitted attributes and
    the parameters. It is written completely or not at all.

    Parameters
    ----------
    model : CMVMED, MED, MVMED, SVM2K, CoRLS, a Pipeline, or a TrainedProject of cmvmed.workbench
        A pipeline may consist of the feature steps of this library, ``StandardScaler`` and one of these classifiers.
    path : path of the file, such as "model.cmvmed"
    overwrite : bool, default=False
        Whether an existing file is replaced.
    compact : bool or int, default=False
        Whether the file holds only some training rows of each view, 300 or the given number, through which the others
        are expressed. It is an error if more than 1 % of the training rows would get another class, as is usual where
        graphs of nearest rows have much weight: fit with ``members`` that are not graphs.

    Examples
    --------
    >>> import cmvmed, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 4)), np.arange(20) % 2
    >>> model = cmvmed.MED().fit(X, y)
    >>> cmvmed.save(model, "model.cmvmed", overwrite=True)
    >>> bool((cmvmed.load("model.cmvmed").predict(X) == model.predict(X)).all())
    True
    """
    if classifier_of(model) is None:
        raise TypeError(
            "Only a fitted CMVMED, MED, MVMED, SVM2K or CoRLS, a Pipeline that ends with one, or a TrainedProject can be saved, "
            f"but this is of type {type(model).__name__}."
        )
    check_is_fitted(classifier_of(model))
    with new_file(Path(path), overwrite=overwrite) as file:
        if compact:
            model = _compacted(model, rows_of_compact(compact))
        encoder = Encoder()
        root = encoder.encode(model, "the model")
        document = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "written_by": _releases(),
            "model": root,
            "objects": encoder.objects,
        }
        write_archive(file, document | {"digest": digest(document, encoder.arrays)}, encoder.arrays)


def digest(document: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> str:
    """SHA-256 of a document without its digest and of all arrays in their order."""
    found = sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    for array in arrays:
        order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        found.update(f"{array.dtype.newbyteorder('<').str}{array.shape}{order}".encode())
        found.update(array.tobytes(order=order))
    return found.hexdigest()


def classifier_of(model: Any) -> Any:
    """The model itself, that of a trained project, or the classifier at the end of a pipeline; None if there is none."""
    if is_project(model):
        model = model.model
    while isinstance(model, Pipeline) and model.steps:
        model = model.steps[-1][1]
    return model if word_of(model, CLASSIFIERS) is not None else None


def rows_of_compact(compact: object) -> int | None:
    """The number of rows of a compact file, None for the default."""
    if compact is True:
        return None
    if not isinstance(compact, Integral) or compact < 2:
        raise ValueError(f"compact must be True, False or a number of rows of at least 2, but is {compact!r}.")
    return int(compact)


def _compacted(model: Any, n_rows: int | None) -> Any:
    """A copy of a model, pipeline or trained project with fewer training rows."""
    if classifier_of(model) is not model and not isinstance(model, Pipeline):
        return replace(model, model=_compacted(model.model, n_rows))
    if isinstance(model, Pipeline):
        smaller = copy(model)
        name, last = model.steps[-1]
        smaller.steps = [*model.steps[:-1], (name, _compacted(last, n_rows))]
        return smaller
    return model._compacted(n_rows)


def _releases() -> dict[str, str]:
    """What wrote a file, for people who read it."""
    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn}
    return {"cmvmed": __version__, **{name: package.__version__ for name, package in packages.items()}}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that :func:`save` wrote, in this version of the format.

    No code of the file is run, whoever wrote it. Sizes that it declares are compared with the memory limit, by default
    half of the free memory, before memory is taken; :func:`cmvmed.config_context` changes it.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    model : the fitted model or pipeline, or the TrainedProject of ``cmvmed train``, whose attribute ``model`` it is
        Its predictions are those of the saved one, bit by bit on the same kind of machine.

    Raises
    ------
    ModelFileError
        A ``ValueError``: the file is no model file, is damaged, was written in another version of the format, or exceeds
        the memory limit.

    Examples
    --------
    >>> import cmvmed, numpy as np
    >>> X, y = np.random.default_rng(0).normal(size=(20, 4)), np.arange(20) % 2
    >>> cmvmed.save(cmvmed.MED().fit(X, y), "small.cmvmed", overwrite=True)
    >>> cmvmed.load("small.cmvmed").predict(X).shape
    (20,)
    """
    limit = read_memory_limit(configured_memory_limit())
    with open(path, "rb") as file:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return _read(ArchiveReader(file, Budget(limit)))
        except Exception as error:  # whatever a damaged or hostile file makes go wrong
            what = "cannot be loaded" if isinstance(error, UnsupportedModelFile) else "is not a cmvmed model file"
            reason = str(error)
            if not isinstance(error, ModelFileError):
                reason = f"its parts do not fit together ({type(error).__name__}: {error!s:.200})"
            raise ModelFileError(f"{os.fspath(path)} {what}: {reason}.") from error


def _read(reader: ArchiveReader) -> Any:
    document = reader.document()
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f'its document does not say "format": "{FORMAT}"')
    version, writer = document.get("version"), document.get("written_by")
    if type(version) is not int or version < 1 or not isinstance(writer, dict):
        raise ModelFileError("its document does not say which version of the format it has, and what wrote it")
    if version != FORMAT_VERSION:
        raise UnsupportedModelFile(
            f"it is in version {version} of the format, written by cmvmed {writer.get('cmvmed')!r:.100}, but this release, "
            f"{__version__}, reads version {FORMAT_VERSION}; "
            f"{'install a newer release' if version > FORMAT_VERSION else 'train the model again'}"
        )
    model = Decoder(reader).decode_all(document.get("objects"), document.get("model"))
    classifier = classifier_of(model)
    if classifier is None:
        raise ModelFileError("it holds no model")
    check_is_fitted(classifier)
    classifier._model.check()
    classifier._check_predictions()
    if document.pop("digest", None) != digest(document, reader.all_arrays()):
        raise ModelFileError("its content has changed since it was written: the digest differs")
    return model
