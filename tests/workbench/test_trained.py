"""A trained project: one file with model, settings and encoders; predictions as a table; files of labels."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile
from scipy.sparse import csr_array

import cmvmed
from cmvmed import ModelFileError
from cmvmed.features import SignalFeatures
from cmvmed.features.signal_features import extractor_hash
from cmvmed.recordings import SensorSignals
from cmvmed.workbench import Project, ProjectError, TrainedProject, init
from cmvmed.workbench.view_encoders import absent_rows, with_absent_rows
from tests.workbench.jobs import write_recordings, write_tickets, write_windows

pytestmark = pytest.mark.filterwarnings("ignore:Held-out labels of . groups are too few")  # for sets

JOBS = {
    "windows.csv": write_windows,
    "tickets.csv": write_tickets,
    "recordings": lambda folder: write_recordings(folder, n=24, n_labeled=12),
}


def started(folder, data):
    """A project for data in a folder, as ``init`` guesses it."""
    (folder / "cmvmed.toml").write_text(init(folder / data, folder / "cmvmed.toml").text, encoding="utf-8")
    return Project.load(folder)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """By the name of its data, the folder of each job and the trained project."""
    found = {}
    for data, write in JOBS.items():
        folder = tmp_path_factory.mktemp("job")
        write(folder)
        found[data] = folder, started(folder, data).train(n_stages=3)
    return found


@pytest.fixture(params=list(JOBS))
def job(request, jobs):
    """The folder of a job, the name of its data, and the trained project."""
    folder, trained = jobs[request.param]
    return folder, request.param, trained


def test_one_file_predicts_without_data_and_project_file(jobs, tmp_path):
    """In a process of its own, in another folder."""
    for data, (folder, trained) in jobs.items():
        trained.save(tmp_path / f"{data}.cmvmed")
        (shutil.copytree if (folder / data).is_dir() else shutil.copy)(folder / data, tmp_path / data)
    script = (
        "from cmvmed.workbench import TrainedProject\n"
        f"for data in {list(jobs)}:\n"
        "    TrainedProject.load(f'{data}.cmvmed').predict(data).to_pickle(f'{data}.pickle')"
    )
    env = os.environ | {"PYTHONPATH": str(Path(cmvmed.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, check=True, timeout=120)
    for data, (folder, trained) in jobs.items():
        found = pd.read_pickle(tmp_path / f"{data}.pickle")
        expected = trained.predict(folder / data)  # equal up to how memory is aligned in products of matrices
        pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=0.0)


def described(trained):
    """The states of all encoders, with features of signals by their hashes."""
    states = trained.project.encoder_states()
    for state in states:
        for column in state["columns"]:
            if column["kind"] == "signals":
                column["features"] = extractor_hash(column["features"]._extractors)
    return repr(states)  # in which NaN equals NaN


def test_loading_gives_the_same_project(job, tmp_path):
    _, _, trained = job
    trained.save(tmp_path / "m")
    loaded = cmvmed.load(tmp_path / "m")
    assert isinstance(loaded, TrainedProject)
    assert loaded.project.settings == trained.project.settings
    assert described(loaded) == described(trained)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    with pytest.raises(FileExistsError):
        loaded.save(tmp_path / "again")


def test_columns_of_predictions(job):
    folder, data, trained = job
    model, table = trained.model, trained.project.read_new(folder / data)
    found = trained.predict(table, alpha=0.2)
    assert found.index.tolist() == table.ids.tolist()
    assert found.index.name == trained.project.id_name
    assert found["class"].tolist() == model.predict(table.views).tolist()
    probabilities = found[[f"probability_{name}" for name in model.classes_]]
    np.testing.assert_array_equal(probabilities, model.predict_proba(table.views))
    for view in model.view_names_:
        values = table.views[view]
        absent = np.isnan(values if isinstance(values, np.ndarray) else values.toarray()).all(axis=1)
        assert found["missing_views"].str.split(" | ", regex=False).map(lambda names, v=view: v in names).tolist() == (
            absent.tolist()
        )


def test_prediction_sets(job):
    folder, data, trained = job
    table = trained.project.read_new(folder / data)
    found = trained.predict(table, alpha=0.2)
    chosen = trained.model.predict_set(table.views, alpha=0.2)
    expected = [" | ".join(trained.model.classes_[row]) for row in chosen]
    assert found["prediction_set"].tolist() == expected


def test_shares_add_up_to_the_score_of_the_predicted_class(job):
    folder, data, trained = job
    table = trained.project.read_new(folder / data)
    assert trained.predict(table).filter(like="share_").empty
    shares = trained.predict(table, explain=True).filter(like="share_")
    assert shares.columns.tolist() == [f"share_{name}" for name in trained.model.explain(table.views)]
    np.testing.assert_allclose(shares.sum(axis=1), np.abs(trained.model.decision_function(table.views)), atol=1e-9)


def test_novelty(job):
    folder, data, trained = job
    table = trained.project.read_new(folder / data)
    found = trained.predict(table)
    for view, values in trained.model.novelty(table.views).items():
        np.testing.assert_array_equal(found[f"novelty_{view}"], values)


def test_rows_without_a_view_in_sparse_matrices():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((9, 4)) < 0.3, 1.0, 0.0)
    absent = np.array([0, 1, 0, 0, 1, 0, 0, 0, 1], dtype=bool)
    dense[[0, 7]] = 0.0  # rows without entries are not absent
    matrix = with_absent_rows(csr_array(dense), absent)
    np.testing.assert_array_equal(absent_rows(matrix), absent)
    np.testing.assert_array_equal(absent_rows(matrix.toarray()), absent)


def test_three_classes_use_the_score_of_the_class_of_each_row():
    from cmvmed.workbench.project import score_of_class

    scores = np.arange(12.0).reshape(4, 3)
    assert score_of_class(scores, np.array([2, 0, 1, 1])).tolist() == [2.0, 3.0, 7.0, 10.0]
    assert score_of_class(np.array([1.0, 2.0]), np.array([0, 1])).tolist() == [-1.0, 2.0]


def test_parameters_precede_those_of_the_file(tmp_path):
    write_windows(tmp_path)
    text = init(tmp_path / "windows.csv", tmp_path / "cmvmed.toml").text + "temperature = 0.4\nn_stages = 2\n"
    (tmp_path / "cmvmed.toml").write_text(text, encoding="utf-8")
    model = Project.load(tmp_path).train(n_stages=3).model
    assert (model.temperature, model.n_stages) == (0.4, 3)
    changed = Project.load(tmp_path, changes={"model.temperature": 0.5, "data.labels_drawn": "random"})
    assert changed.model_parameters == {"labels_drawn": "random", "temperature": 0.5, "n_stages": 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.temperatur": 1}, "Did you mean 'temperature'"),
        ({"temperature": 1}, "write for instance model.temperature"),
        ({"data.path.x": 1}, "'path' is a value, not a section"),
        ({"modle.temperature": 1}, "there is no section"),
        ({"data.labels_drawn": "often"}, "must be one of"),
    ],
)
def test_changes_are_checked_as_the_file_is(tmp_path, changes, message):
    write_windows(tmp_path)
    started(tmp_path, "windows.csv")
    with pytest.raises(ProjectError, match=message):
        Project.load(tmp_path, changes=changes)


def test_a_model_without_a_project_and_rows_that_are_no_files(job, tmp_path):
    _, _, trained = job
    trained.model.save(tmp_path / "plain")
    with pytest.raises(ProjectError, match="without a project"):
        TrainedProject.load(tmp_path / "plain")
    with pytest.raises(TypeError, match="ndarray"):
        trained.predict(np.zeros((2, 3)))


def changed_document(path, change):
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(entries["model.json"])
    (project,) = (entry for entry in document["objects"] if entry["type"] == "project")
    change(project["fields"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (entries | {"model.json": json.dumps(document)}).items():
            archive.writestr(name, content)


def first_column(fields):
    """Pairs of the first column's state."""
    (columns,) = (value for key, value in fields["encoders"][0]["items"] if key == "columns")
    return columns[0]["items"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.update(settings="[data]\npath = 3"), "path in .data. is 3"),
        (lambda f: f.update(settings=3), "parts do not fit together"),
        (lambda f: f.update(encoders=f["encoders"][:1]), "other features than its model"),
        (lambda f: f.update(encoders=3), "parts do not fit together"),
        (lambda f: first_column(f).append(["column", 3]), "an encoder has column = 3"),
        (lambda f: first_column(f).append(["mean", "0"]), "an encoder has mean = '0'"),
        (lambda f: first_column(f).append(["kind", "os.system"]), "KeyError: 'os.system'"),
        (lambda f: first_column(f).append(["more", 3]), "KeyError: 'more'"),
        (lambda f: f.update(model=3), "other features than its model"),
        (lambda f: f.pop("model"), "missing 1 required"),
    ],
)
def test_a_changed_project_in_the_file_is_refused(jobs, tmp_path, change, message):
    jobs["windows.csv"][1].save(tmp_path / "m")
    changed_document(tmp_path / "m", change)
    with pytest.raises(ModelFileError, match=message):
        cmvmed.load(tmp_path / "m")


def features_of_one_signal():
    signals = SensorSignals(list(np.random.default_rng(0).normal(size=(4, 1, 30))), 10.0, ("a",))
    return SignalFeatures("statistics").fit(signals)


@pytest.mark.parametrize(
    "state",
    [
        {"kind": "signals", "sources": ["a"], "features": features_of_one_signal(), "compared": ["statistics"]},
        {"kind": "signals", "sources": ["a", "b"], "features": features_of_one_signal()},
        {"kind": "text", "column": "a", "terms": ["b", "c"], "idf": [1.0]},
        {"kind": "date", "column": "a", "origin": 0.0, "fill": 0.0, "scale": 1.0, "cycles": ["century"]},
    ],
)
def test_encoders_that_no_table_can_give_are_refused(state):
    with pytest.raises(ProjectError, match="do not fit together"):
        Project(None, Path()).set_encoder_states([{"name": "v", "columns": [state]}])


def test_whole_numbers_where_an_encoder_has_fractions():
    project = Project(None, Path())
    state = {"kind": "number", "column": "a", "mean": 50, "scale": 1}
    project.set_encoder_states([{"name": "v", "columns": [state]}])
    assert project.encoders[0].columns[0].mean == 50.0
    with pytest.raises(ProjectError, match="mean = True"):
        project.set_encoder_states([{"name": "v", "columns": [state | {"mean": True}]}])


def with_commas(frame, columns):
    """The frame with quoted decimal commas, as a spreadsheet of a German writes a comma-separated file."""
    return frame.assign(**{name: frame[name].map(lambda v: f"{v:.3f}".replace(".", ",")) for name in columns})


def test_quoted_decimal_commas_give_the_predictions_of_points(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    frame = pd.DataFrame(rng.random((60, 4)).round(3) + 0.7 * y[:, None], columns=["a_x", "a_y", "b_x", "b_y"])
    frame.insert(0, "id", [f"r{i}" for i in range(60)])
    labels = pd.Series(np.where(np.arange(60) < 20, np.array(["up", "down"])[y], ""))
    numbers = ["a_x", "a_y", "b_x", "b_y"]
    frame[numbers] = frame[numbers].round(3)
    found = {}
    for name, written in {"points": frame, "commas": with_commas(frame, numbers)}.items():
        (tmp_path / name).mkdir()
        written.assign(label=labels).to_csv(tmp_path / name / "x.csv", index=False)
        views = '[views.a]\ncolumns = "a_*"\n[views.b]\ncolumns = "b_*"\n'
        toml = f'[data]\npath = "x.csv"\nid = "id"\nlabels = "label"\n{views}'
        (tmp_path / name / "cmvmed.toml").write_text(toml, encoding="utf-8")
        found[name] = Project.load(tmp_path / name).train()
    above_1 = frame[(frame[numbers] >= 1).all(axis=1)].drop(columns="id")  # 1,234 alone may be a thousand
    assert len(above_1) > 3
    above_1.to_csv(tmp_path / "points.csv", index=False)
    with_commas(above_1, numbers).to_csv(tmp_path / "commas.csv", index=False)
    expected = found["points"].predict(tmp_path / "points.csv")
    for file in ("points.csv", "commas.csv"):
        pd.testing.assert_frame_equal(found["commas"].predict(tmp_path / file), expected)
    above_1.astype(str).assign(a_x="high").to_csv(tmp_path / "text.csv", index=False)
    with pytest.raises(ProjectError, match=r"Column 'a_x', line 2 of text.csv: 'high' is not a number"):
        found["points"].predict(tmp_path / "text.csv")
    above_1.assign(a_x=[np.inf, *above_1["a_x"][1:]]).to_csv(tmp_path / "inf.csv", index=False)
    with pytest.raises(ProjectError, match=r"Column 'a_x', line 2 of inf.csv: 'inf' is infinite"):
        found["points"].predict(tmp_path / "inf.csv")


def test_rows_are_predicted_in_parts(tmp_path, monkeypatch):
    write_windows(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("cmvmed.toml").write_text(init("windows.csv").text, encoding="utf-8")
    trained = Project.load("cmvmed.toml").train()
    expected = trained.predict("windows.csv")
    monkeypatch.setattr("cmvmed.workbench.project.PREDICTED_AT_ONCE", 70)
    parts = list(trained.predict_parts("windows.csv", whole=True))
    assert [len(part.ids) for _, part, _ in parts] == [70, 70, 60]
    assert [share for _, _, share in parts] == [0.35, 0.7, 1.0]
    found = trained.predict("windows.csv")
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=1e-12)


def test_new_recordings_need_no_folders_of_classes(tmp_path):
    """Trained on dog/d0.wav and cat/c0.wav, new files are n0.wav; a wrong folder is an error in training as before."""
    rng, t = np.random.default_rng(0), np.arange(2000) / 8000
    for name, frequency in {"dog": 300, "cat": 900}.items():
        for i in range(5):
            file = tmp_path / "rec" / name / f"{name}{i}.wav"
            file.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(file, 0.3 * np.sin(2 * np.pi * frequency * t) + 0.02 * rng.normal(size=2000), 8000)
    trained = started(tmp_path, "rec").train(n_stages=2)
    assert trained.project.settings.data.labels == "folder"
    flat = tmp_path / "new"
    flat.mkdir()
    for i in range(3):
        shutil.copy(tmp_path / "rec" / "dog" / f"dog{i}.wav", flat / f"n{i}.wav")
    found = trained.predict(flat)
    assert (found.index.tolist(), found["class"].tolist()) == (["n0", "n1", "n2"], ["dog"] * 3)
    in_folders = trained.predict(tmp_path / "rec")
    assert len(in_folders) == 10
    text = (tmp_path / "cmvmed.toml").read_text().replace('"rec"', '"new"')
    (tmp_path / "cmvmed.toml").write_text(text)
    with pytest.raises(ProjectError, match="No sound file"):
        Project.load(tmp_path).read()
