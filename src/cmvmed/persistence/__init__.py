"""Model files: fitted models as a zip archive of plain arrays and one JSON document, which cannot run code.

===========  ====================================================================================
model_file   ``save`` and ``load``
saved_types  which types a file may hold, under which names, with which fields
encoding     from a model to the document and its arrays
decoding     from the document and its arrays to a model
archive      the zip archive: written at once or not at all, read within a memory limit
===========  ====================================================================================

A file does not name classes or functions: ``saved_types`` maps the words of the format to types, and a word that is not
in its tables is an error. docs/model_file.md describes the format.
"""

from cmvmed.persistence.archive import ModelFileError
from cmvmed.persistence.model_file import load, save

__all__ = ["ModelFileError", "load", "save"]
