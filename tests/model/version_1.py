"""Models in version 1 of the file format, which later releases must read: ``python -m tests.model.version_1``.

The command writes the files. It was run when the version was new; run again, it would only show that a release reads what
it writes itself. A change of the format gets a version and files of its own.
"""

from pathlib import Path

import numpy as np

import cmvmed
from tests.model.models import documents, example, of_cmvmed, sparse_views, two_views

FOLDER = Path(__file__).parent / "version_1"
MODELS = {
    "dense": (of_cmvmed, two_views),
    "landmarks": (lambda: example("landmarks"), two_views),
    "sparse": (lambda: example("sparse"), sparse_views),
    "text": (lambda: documents("default"), lambda: documents("default").X),
    "svm2k": (lambda: example("svm2k"), two_views),
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    found = {}
    for name, (make, rows) in MODELS.items():
        model = make().model
        cmvmed.save(model, FOLDER / f"{name}.cmvmed", overwrite=True)
        found[name] = model.decision_function(rows())
    np.savez_compressed(FOLDER / "scores.npz", **found)
