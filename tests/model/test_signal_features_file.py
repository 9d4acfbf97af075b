"""Model files with features of signals: bit by bit the same in another process, and no way into compiled code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import cmvmed
from cmvmed import CMVMED, ModelFileError
from cmvmed.features import SensorFeatures, SignalFeatures
from cmvmed.features.signal_features import extractor_hash
from cmvmed.model.file import digest
from tests.model.models import example

SLOW = [  # compiled first
    pytest.param(kind, marks=pytest.mark.slow) for kind in ("minirocket+statistics", "mfcc", "multirocket", "catch22")
]


def signals_of(n_channels, seed=0):
    """Signals of 90 to 119 samples, with a case without a signal, another one for each seed."""
    rng = np.random.default_rng(seed)
    found = [rng.normal(size=(n_channels, 90 + i)) for i in range(30)]
    found[1::2] = [np.cumsum(signal, axis=1) for signal in found[1::2]]
    found[4 + seed] = None
    return found


def saved_model(kind, n_channels, path, rate=1000.0):
    X = {"a": signals_of(n_channels), "b": signals_of(1, seed=1)}
    model = make_pipeline(SensorFeatures(kind, sampling_rate=rate), CMVMED(n_stages=2))
    model.fit(X, np.where(np.arange(30) < 14, np.arange(30) % 2, -1))
    cmvmed.save(model, path)
    return model, X


SCRIPT = """
import numpy as np
import cmvmed
content = np.load("rows.npz")
X = {s: [None if content[f"{s}{i}"].size == 0 else content[f"{s}{i}"] for i in range(30)] for s in "ab"}
np.save("found.npy", cmvmed.load("model.cmvmed").predict_proba(X))
"""


@pytest.mark.parametrize("kind", ["ranks", *SLOW])
def test_another_process_predicts_the_same(kind, tmp_path):
    model, X = saved_model(kind, 3, tmp_path / "model.cmvmed")
    arrays = {f"{s}{i}": np.empty(0) if x is None else x for s, signals in X.items() for i, x in enumerate(signals)}
    np.savez(tmp_path / "rows.npz", **arrays)
    expected = model.predict_proba(X)
    assert cmvmed.load(tmp_path / "model.cmvmed").predict_proba(X).tobytes() == expected.tobytes()
    env = os.environ | {"PYTHONPATH": str(Path(cmvmed.__file__).parents[1])}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, timeout=300)
    assert np.load(tmp_path / "found.npy").tobytes() == expected.tobytes()


def test_what_was_compared_is_kept_and_the_cache_is_not(tmp_path):
    model = example("sensors").model
    model[0].memory = tmp_path / "cache"
    cmvmed.save(model, tmp_path / "m")
    loaded = cmvmed.load(tmp_path / "m")[0]
    assert loaded.memory is None
    assert loaded.kinds_ == model[0].kinds_
    assert repr(loaded.choices_) == repr(model[0].choices_)
    for name, features in loaded.features_.items():
        own = model[0].features_[name]
        assert extractor_hash(features._extractors) == extractor_hash(
            own._extractors
        )  # cached features are found again
        assert features.get_feature_names_out().tolist() == own.get_feature_names_out().tolist()


def changed(path, change):
    """Apply a change to the document and the arrays of a file."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(entries["model.json"])
    change(next(entry for entry in document["objects"] if entry.get("name") == "convolutions")["fields"], document)
    arrays = [np.load(io.BytesIO(entries[f"arrays/{i}.npy"])) for i in range(len(entries) - 1)]
    document.pop("digest")
    document["digest"] = digest(document, arrays)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (entries | {"model.json": json.dumps(document)}).items():
            archive.writestr(name, content)


def other_array(fields, document):
    """Let the first array, channels by combination, be the longer one of biases."""
    parameters = fields["learned"]["items"][0]["items"]
    parameters[0] = parameters[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, d: f.update(kind="os.system"), "cannot be of kind 'os.system'"),
        (lambda f, d: f.update(length=10**15), "length 1000000000000000"),
        (lambda f, d: f.update(learned={"kind": "tuple", "items": []}), "the biases of their kind"),
        (lambda f, d: f.update(mean=f["learned"]["items"][0]["items"][0]), "one level per channel"),
        (lambda f, d: f.update(more=1), "unexpected keyword"),
    ],
)
def test_changed_convolutions_are_refused_by_load(change, message, tmp_path):
    saved_model("minirocket", 2, tmp_path / "m")
    changed(tmp_path / "m", change)
    with pytest.raises(ModelFileError, match=message):
        cmvmed.load(tmp_path / "m")


def test_other_extractors_than_the_kind_says_are_refused(tmp_path):
    saved_model("minirocket", 1, tmp_path / "m")

    def change(_, document):
        for entry in document["objects"]:
            if entry.get("name") == "signal_features":
                entry["fields"]["kind"] = "statistics"

    changed(tmp_path / "m", change)
    with pytest.raises(ModelFileError, match="do not fit together"):
        cmvmed.load(tmp_path / "m")


@pytest.mark.parametrize(
    "change",
    [
        other_array,
        lambda f, d: f.update(length=50),
        lambda f, d: f.update(random_state=1),
    ],
)
def test_arrays_that_aeon_would_not_make_are_not_used(change, tmp_path):
    """Compiled code does not check indices, so that arrays of a file reach it only if aeon makes the same ones."""
    _, X = saved_model("minirocket", 3, tmp_path / "m")
    changed(tmp_path / "m", change)
    loaded = cmvmed.load(tmp_path / "m")
    with pytest.raises(ValueError, match="another release of aeon"):
        loaded.predict(X)


def test_features_of_one_sensor_in_a_pipeline(tmp_path):
    X = np.stack([(1 + i % 2) * np.random.default_rng(i).normal(size=(2, 60)) for i in range(24)])
    model = make_pipeline(SignalFeatures("minirocket"), cmvmed.MED()).fit(X, np.arange(24) % 2)
    cmvmed.save(model, tmp_path / "m")
    assert cmvmed.load(tmp_path / "m").predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
