"""X may be in files, memory maps or dask collections: fits and predictions are those of the same rows in memory."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow.dataset
import pytest
import zarr
from distributed import Client, LocalCluster

from cmvmed import CMVMED, MED, config_context
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.data.sources import DaskRows, LocalRows
from cmvmed.datasets import make_multiview_gaussian

N_ROWS, WIDTH = 240, 4
NAMES = [f"{view}{i}" for view in ("first_", "second_") for i in range(WIDTH)]
VIEWS = {"first": "first_", "second": "second_"}
SETTINGS = {"n_stages": 2}


@pytest.fixture(scope="module")
def problem():
    data = make_multiview_gaussian(N_ROWS, n_features=WIDTH, separation=(2.0, 1.5), labeled=20, random_state=0)
    X = data.data.copy()
    X[5:9, :WIDTH] = np.nan
    frame = pd.DataFrame(X, columns=NAMES)
    return frame, np.where(data.y < 0, None, np.where(data.y == 1, "yes", "no"))


@pytest.fixture(scope="module")
def in_memory(problem):
    frame, y = problem
    model = CMVMED(views=VIEWS, **SETTINGS).fit(frame, y)
    return model, model.predict_proba(frame)


def with_labels(problem):
    frame, y = problem
    return frame.assign(label=pd.Series(y, dtype="str"))


def halves(frame):
    return frame[NAMES[:WIDTH]], frame[NAMES[WIDTH:]]


def check_same(model, X, in_memory):
    """The same fit, and the same answers about X."""
    reference, probabilities = in_memory
    np.testing.assert_array_equal(model.classes_, reference.classes_)
    np.testing.assert_allclose(model.label_distributions_, reference.label_distributions_, atol=1e-8)
    np.testing.assert_allclose(np.asarray(model.predict_proba(X)), probabilities, atol=1e-8)
    np.testing.assert_array_equal(np.asarray(model.predict(X)), reference.classes_[probabilities.argmax(axis=1)])


WRITERS = {
    "parquet": lambda frame, path: frame.to_parquet(path, row_group_size=50),
    "feather": lambda frame, path: frame.to_feather(path),
    "csv": lambda frame, path: frame.to_csv(path, index=False),
}


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_one_file_with_its_labels(tmp_path, kind, problem, in_memory):
    path = tmp_path / f"all.{kind}"
    WRITERS[kind](with_labels(problem), path)
    model = CMVMED(views=VIEWS, **SETTINGS).fit(path, "label")
    assert model.feature_names_in_.tolist() == NAMES
    check_same(model, path, in_memory)
    with pytest.raises(AssertionError):
        check_same(CMVMED(views=VIEWS, **SETTINGS, C=0.1).fit(path, "label"), path, in_memory)


def test_a_folder_of_files_for_each_sensor(tmp_path, problem, in_memory):
    frame, y = problem
    for name, part in zip(VIEWS, halves(frame), strict=True):
        (tmp_path / name).mkdir()
        for i, piece in enumerate(np.array_split(np.arange(N_ROWS), 3)):
            part.iloc[piece].to_parquet(tmp_path / name / f"{i}.parquet")
    X = {name: str(tmp_path / name) for name in VIEWS}
    check_same(CMVMED(**SETTINGS).fit(X, y), X, in_memory)
    check_same(in_memory[0], X, in_memory)


def test_files_are_the_same_to_models_fitted_in_memory(tmp_path, problem, in_memory):
    frame, _ = problem
    path = tmp_path / "shuffled.parquet"
    with_labels(problem)[["label", *NAMES[::-1]]].to_parquet(path)
    check_same(in_memory[0], path, in_memory)
    check_same(in_memory[0], pyarrow.dataset.dataset(path), in_memory)
    frame[NAMES[1:]].to_parquet(path)
    with pytest.raises(ValueError, match=r"X lacks 1 of the 4 columns of view 'first' that fit saw: \['first_0'\]"):
        in_memory[0].predict(path)


def test_arrays_on_disk(tmp_path, problem, in_memory):
    frame, y = problem
    matrix = frame.to_numpy()
    np.save(tmp_path / "all.npy", matrix)
    stored = zarr.create_array(tmp_path / "all.zarr", shape=matrix.shape, chunks=(70, 3), dtype="f8")
    stored[:] = matrix
    mapped = np.load(tmp_path / "all.npy", mmap_mode="r")
    for X in (mapped, tmp_path / "all.npy", stored, tmp_path / "all.zarr"):
        check_same(CMVMED(views=[WIDTH, WIDTH], **SETTINGS).fit(X, y), X, in_memory)


def test_views_of_different_kinds(tmp_path, problem, in_memory):
    frame, y = problem
    first, second = halves(frame)
    np.save(tmp_path / "first.npy", first.to_numpy())
    X = [np.load(tmp_path / "first.npy", mmap_mode="r"), second]
    check_same(CMVMED(**SETTINGS).fit(X, y), X, in_memory)


def test_other_estimators_read_files_too(tmp_path, problem):
    frame, y = problem
    _, second = halves(frame)
    path = tmp_path / "second.parquet"
    second.to_parquet(path)
    expected = MED().fit(second, y).predict_proba(second)
    np.testing.assert_allclose(MED().fit(path, y).predict_proba(path), expected, atol=1e-10)


@pytest.mark.parametrize("of", ["array", "frame", "views"])
def test_dask_in_dask_out(of, problem, in_memory):
    frame, y = problem
    frames = dd.from_pandas(frame, npartitions=4)
    X = {
        "array": da.from_array(frame.to_numpy(), chunks=(70, 3)),
        "frame": frames,
        "views": {"first": frames[NAMES[:WIDTH]], "second": frames[NAMES[WIDTH:]]},
    }[of]
    views = {"array": [WIDTH, WIDTH], "frame": VIEWS, "views": None}[of]
    model = CMVMED(views=views, **SETTINGS).fit(X, y)
    probabilities = model.predict_proba(X)
    assert dask.is_dask_collection(probabilities)
    assert probabilities.numblocks == (4, 1)
    assert model.decision_function(X).ndim == 1
    check_same(model, X, in_memory)


def test_labels_in_dask_collections(problem, in_memory):
    frame, y = problem
    series = dd.from_pandas(pd.Series(y, dtype="str"), npartitions=3)
    frames = dd.from_pandas(with_labels(problem), npartitions=4)
    check_same(CMVMED(views=VIEWS, **SETTINGS).fit(frames[NAMES], series), frames, in_memory)
    check_same(CMVMED(views=VIEWS, **SETTINGS).fit(frames, "label"), frames, in_memory)
    check_same(CMVMED(views=VIEWS, **SETTINGS).fit(frame, series), frame, in_memory)


def test_blocks_of_dask_predictions_without_rows(problem, in_memory):
    frame, _ = problem
    frames = dd.from_pandas(frame, npartitions=4)
    late = frames.loc[200:]
    np.testing.assert_allclose(in_memory[0].predict_proba(late).compute(), in_memory[1][200:], atol=1e-8)


def test_views_in_dask_and_not(problem):
    frame, y = problem
    first, second = halves(frame)
    with pytest.raises(ValueError, match="View 'view1' is not a dask collection, but others are"):
        CMVMED().fit([dd.from_pandas(first, npartitions=2), second], y)


def test_many_rows_in_chunks(problem, in_memory):
    frame, _ = problem
    many = pd.concat([frame] * 40, ignore_index=True)
    np.testing.assert_allclose(in_memory[0].predict_proba(many), np.tile(in_memory[1], (40, 1)), atol=1e-8)


def test_bad_values_are_named_by_their_row_in_all_data(tmp_path, problem, in_memory):
    frame, _ = problem
    many = pd.concat([frame] * 40, ignore_index=True)
    many.loc[9000, "second_2"] = np.inf
    many.to_parquet(tmp_path / "bad.parquet")
    message = r"infinity: view 'second', row 9000, column 'second_2'"
    for X in (many, tmp_path / "bad.parquet"):
        with pytest.raises(ValueError, match=message):
            in_memory[0].predict(X)


def test_one_warning_for_rows_without_any_view(tmp_path, problem, in_memory):
    frame, _ = problem
    many = pd.concat([frame] * 40, ignore_index=True)
    many.loc[[7000, 9000], NAMES] = np.nan
    many.to_parquet(tmp_path / "gaps.parquet")
    with pytest.warns(UserWarning, match="2 of 9600 rows have no view present, the first is row 7000") as caught:
        probabilities = in_memory[0].predict_proba(tmp_path / "gaps.parquet")
    assert len(caught) == 1
    np.testing.assert_allclose(probabilities[[7000, 9000]], np.tile(in_memory[0].class_prior_, (2, 1)), atol=1e-12)


def test_unequal_rows_between_sensors(tmp_path, problem):
    frame, y = problem
    first, second = halves(frame)
    first.to_parquet(tmp_path / "first.parquet")
    second.iloc[:-1].to_parquet(tmp_path / "second.parquet")
    X = {name: tmp_path / f"{name}.parquet" for name in VIEWS}
    with pytest.raises(ValueError, match=r"unequal numbers of rows: \{'first': 240, 'second': 239\}"):
        CMVMED().fit(X, y)


def test_files_of_one_name_must_have_the_same_rows(tmp_path, problem):
    frame, y = problem
    for name, part, cut in zip(VIEWS, halves(frame), (100, 120), strict=True):
        (tmp_path / name).mkdir()
        part.iloc[:cut].to_parquet(tmp_path / name / "1.parquet")
        part.iloc[cut:].to_parquet(tmp_path / name / "2.parquet")
    with pytest.raises(ValueError, match=r"files 1.parquet hold 100 rows of view 'first' and 120 of view 'second'"):
        CMVMED().fit({name: tmp_path / name for name in VIEWS}, y)


def test_names_of_label_columns(tmp_path, problem):
    path = tmp_path / "all.parquet"
    with_labels(problem).to_parquet(path)
    with pytest.raises(ValueError, match=r"y='class' is not a column of X, whose columns are \['first_0'"):
        CMVMED(views=VIEWS).fit(path, "class")
    with pytest.raises(ValueError, match="y='label' is in more than one table of X"):
        CMVMED().fit([path, path], "label")
    with pytest.raises(ValueError, match=r"Column 'label' of .* holds .* values, but features must be numbers"):
        CMVMED().fit(path, np.zeros(N_ROWS))


def test_a_width_that_fit_did_not_see(tmp_path, problem, in_memory):
    np.save(tmp_path / "narrow.npy", problem[0].to_numpy()[:, 1:])
    with pytest.raises(ValueError, match="X has 7 features, but CMVMED is expecting 8 features as input"):
        in_memory[0].predict(tmp_path / "narrow.npy")


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*nowhere.parquet"):
        CMVMED().fit(tmp_path / "nowhere.parquet", "label")


MANY = 6_000
FEW_IN_MEMORY = Tuning(sample_rows=3000)  # fewer unlabeled rows are annealed in memory than there are
STREAMED = {"approximation": 40, "n_stages": 2, "tol": 1e-6, "max_iter": 400}
ROUGH = STREAMED | {"tol": 1e-2}  # where it does not matter how a fit ends


@pytest.fixture(scope="module")
def many():
    data = make_multiview_gaussian(MANY, n_features=WIDTH, separation=(2.0, 1.5), labeled=40, random_state=1)
    X = data.data.copy()
    X[100:400, :WIDTH] = np.nan
    return X, data.y


@pytest.fixture(scope="module")
def streamed_in_memory(many):
    X, y = many
    with tuning_context(FEW_IN_MEMORY):
        return CMVMED(views=[WIDTH, WIDTH], **STREAMED).fit(X, y)


def check_same_stream(model, reference, X):
    """The same fit to all rows, whose sums differ in rounding only."""
    assert model.history_["n_rows"][-1] == MANY - 40
    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(model.label_distributions_, reference.label_distributions_, atol=1e-6)


@pytest.mark.parametrize("source", ["dask", *[pytest.param(name, marks=pytest.mark.slow) for name in ("npy", "map")]])
def test_streamed_fits_are_the_same_from_anywhere(source, tmp_path, many, streamed_in_memory):
    X, y = many
    np.save(tmp_path / "all.npy", X)
    sources = {
        "dask": lambda: da.from_array(X, chunks=(900, -1)),
        "npy": lambda: tmp_path / "all.npy",
        "map": lambda: np.load(tmp_path / "all.npy", mmap_mode="r"),
    }
    with tuning_context(FEW_IN_MEMORY):
        model = CMVMED(views=[WIDTH, WIDTH], **STREAMED).fit(sources[source](), y)
    check_same_stream(model, streamed_in_memory, X)


def test_a_fit_that_ends_early_is_not_the_same(many, streamed_in_memory):
    """Broken twin: the tolerance of the comparison is not too wide."""
    X, y = many
    with tuning_context(FEW_IN_MEMORY):
        early = CMVMED(views=[WIDTH, WIDTH], **(STREAMED | {"tol": 0.5})).fit(X, y)
    with pytest.raises(AssertionError):
        check_same_stream(early, streamed_in_memory, X)


@pytest.fixture
def many_enough():
    """As if all rows were enough for a larger sample, of 1200 rows."""
    with tuning_context(Tuning(sample_rows=300, held_out_rows=1100)):
        yield


@pytest.mark.parametrize("settings", [ROUGH, pytest.param(STREAMED, marks=pytest.mark.slow)], ids=["rough", "long"])
def test_larger_samples_come_before_all_rows(settings, many, many_enough):
    X, y = many
    model = CMVMED(views=[WIDTH, WIDTH], rows_tol=0, **settings).fit(X, y)
    with tuning_context(Tuning(sample_rows=300, row_growth=1000)):
        direct = CMVMED(views=[WIDTH, WIDTH], rows_tol=0, **settings).fit(X, y)
    assert sorted(set(model.history_["n_rows"])) == [300, 1200, (MANY - 40) // 2, MANY - 40]
    assert sorted(set(direct.history_["n_rows"])) == [300, MANY - 40]
    if settings is STREAMED:  # both end by tol, a little before the end
        assert (model.predict(X) != direct.predict(X)).mean() < 5e-3
    weighted = CMVMED(views=[WIDTH, WIDTH], rows_tol=0, **settings).fit(X, y, sample_weight=np.full(MANY, 2.0))
    assert 1200 in weighted.history_["n_rows"]


def test_rows_without_weight_are_in_no_sample(many):
    X, y = many
    weights = np.where((y >= 0) | (np.arange(MANY) < 600), 1.0, 0.0)
    with tuning_context(Tuning(sample_rows=200, held_out_rows=100)):
        settings = {"approximation": 20, "consensus_weight": 1.0, "members": "consensus", "rows_tol": 1e-9}
        model = CMVMED(views=[WIDTH, WIDTH], **settings).fit(X, y, sample_weight=weights)
    assert model.history_["n_rows"].max() == ((weights > 0.0) & (y < 0)).sum()


def test_sampling_ends_when_more_rows_hardly_change_the_accuracy(many, many_enough):
    X, y = many
    settings = {"views": [WIDTH, WIDTH], "approximation": 40}
    whole = CMVMED(rows_tol=0, **settings).fit(X, y)
    enough = CMVMED(rows_tol=0.01, **settings).fit(X, y)
    assert enough.approximation_["n_swept"] == 1200 == enough.history_["n_rows"].max()
    change = enough.approximation_["change"]
    p, best = whole.predict_proba(X), enough.predict(X)
    lost = (p.max(axis=1) - p[np.arange(MANY), np.searchsorted(whole.classes_, best)]).mean()
    assert lost <= change["accuracy_bound"] < 0.01
    assert (whole.predict(X) != best).mean() <= change["classes_bound"]
    assert 0.5 * np.abs(p - enough.predict_proba(X)).sum(axis=1).mean() <= change["probability_bound"]
    assert enough.label_distributions_.shape == (MANY, 2)  # all rows are predicted
    alone, strict = (CMVMED(rows_tol=tol, members="consensus", **settings).fit(X, y) for tol in (0, 1e-12))
    for model in (whole, alone, strict):
        assert model.approximation_["n_swept"] == MANY - 40
        assert "change" not in model.approximation_
    np.testing.assert_allclose(strict.predict_proba(X), alone.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("name", ["label_distributions_", "transduction_"])
def test_probabilities_of_too_many_rows_are_an_error_that_says_so(name, many, monkeypatch):
    X, y = many
    model = CMVMED(views=[WIDTH, WIDTH], **ROUGH)
    with pytest.raises(AttributeError, match=f"{name}'$"):
        getattr(model, name)
    with tuning_context(Tuning(sample_rows=600)), monkeypatch.context() as patched:
        model.fit(X, y)
        assert len(getattr(model, name)) == MANY
        patched.setattr("cmvmed.scale.continuation.TABLE_COPIES", 1e12)
        model.fit(X, y)
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match="memory limit"):
        getattr(model, name)
    assert model.suggest(2, X[:50]).rows.size == 2


def test_no_larger_sample_without_room(many):
    X, y = many
    tuning = Tuning(sample_rows=300, held_out_rows=3000)
    with tuning_context(tuning), config_context(memory_limit="2MiB"):
        tight = CMVMED(views=[WIDTH, WIDTH], **ROUGH).fit(X, y)
    assert sorted(set(tight.history_["n_rows"])) == [300, MANY - 40]


@pytest.mark.parametrize("rows_tol", [-1.0, "all", None, np.nan])
def test_a_wrong_rows_tol_is_named(rows_tol):
    with pytest.raises(ValueError, match="rows_tol"):
        CMVMED(rows_tol=rows_tol).fit([np.eye(4)], [0, 1, -1, -1])


@contextmanager
def counted_passes(monkeypatch, source):
    """How often all rows are read: to take some of them, and to compute with each."""
    counts = dict.fromkeys(("take", "reduce", "map"), 0)

    def counting(name, method):
        def call(rows, *arguments, **keywords):
            counts[name] += rows.n_rows == MANY
            return method(rows, *arguments, **keywords)

        return call

    with monkeypatch.context() as patch:
        for name in counts:
            patch.setattr(source, name, counting(name, getattr(source, name)))
        yield counts


@pytest.mark.parametrize("kind", ["dask", *[pytest.param(name, marks=pytest.mark.slow) for name in ("npy", "parquet")]])
def test_a_sample_that_is_enough_saves_passes_over_all_rows(kind, tmp_path, many, many_enough, monkeypatch):
    X, y = many
    path = tmp_path / f"all.{kind}"
    if kind == "npy":
        np.save(path, X)
    if kind == "parquet":
        pd.DataFrame(X, columns=NAMES).to_parquet(path, row_group_size=300)
    source = da.from_array(X, chunks=(900, -1)) if kind == "dask" else path
    models, passes = [], []
    for settings in ({"rows_tol": 0.01}, {"rows_tol": 0}):
        with counted_passes(monkeypatch, DaskRows if kind == "dask" else LocalRows) as counts:
            models.append(CMVMED(views=[WIDTH, WIDTH], **settings, **ROUGH).fit(source, y))
        passes.append(counts)
    enough, whole = models
    assert enough.approximation_["n_swept"] == 1200
    assert passes[0] == {"take": 1, "reduce": 0, "map": 1}
    assert passes[1]["reduce"] >= (whole.history_["n_rows"] == MANY - 40).sum() >= 3
    in_memory = CMVMED(views=[WIDTH, WIDTH], rows_tol=0.01, **ROUGH).fit(X, y)
    new = pd.DataFrame(X, columns=NAMES) if kind == "parquet" else X
    np.testing.assert_allclose(enough.predict_proba(new), in_memory.predict_proba(X), atol=1e-9)
    assert enough.approximation_["change"]["classes"] == pytest.approx(in_memory.approximation_["change"]["classes"])


def test_what_is_learned_beside_the_sweeps_follows_the_sample(many, many_enough):
    """Class prior, members and calibration are of the annealed sample, whatever the other rows are."""
    X, y = many
    models = [CMVMED(views=[WIDTH, WIDTH], rows_tol=rows_tol, **ROUGH).fit(X, y) for rows_tol in (0.01, 0)]
    for name in ("class_prior_", "held_out_proba_"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))
    np.testing.assert_array_equal(*(model.members_["weight"] for model in models))
    assert models[0].approximation_["n_swept"] < models[1].approximation_["n_swept"]


@pytest.mark.parametrize("put", [np.asarray, lambda X: da.from_array(X, chunks=(500, -1))], ids=["memory", "dask"])
def test_a_bad_value_in_the_larger_sample_is_named_by_its_row(many, many_enough, put):
    X, y = many
    rows = np.arange(1000, MANY, 2)  # some of them are in the larger sample, and all before it are sound or named too
    X = X.copy()
    X[rows, 3] = np.inf
    with pytest.raises(ValueError, match=r"infinity: view 'view0', row (\d+), column 3") as error:
        CMVMED(views=[WIDTH, WIDTH], **STREAMED).fit(put(X), y)
    assert int(str(error.value).split("row ")[1].split(",")[0]) in rows


def test_larger_samples_of_a_dask_collection_give_the_same_fit(many, many_enough):
    X, y = many
    in_memory, in_dask = (
        CMVMED(views=[WIDTH, WIDTH], rows_tol=0, **ROUGH).fit(rows, y)
        for rows in (X, da.from_array(X, chunks=(700, -1)))
    )
    assert 1200 in in_dask.history_["n_rows"]
    np.testing.assert_allclose(in_dask.predict_proba(X), in_memory.predict_proba(X), atol=1e-8)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(many, streamed_in_memory):
    X, y = many
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster) as client, tuning_context(FEW_IN_MEMORY):
        rows = da.from_array(X, chunks=(500, -1)).persist()
        plain = CMVMED(views=[WIDTH, WIDTH], **STREAMED).fit(rows, y)
        victim = min(client.run(os.getpid).values())
        killer = KillInPass(victim, pass_number=3)
        model = CMVMED(views=[WIDTH, WIDTH], **STREAMED)
        with killer.watching():
            model.fit(rows, y)
        assert killer.done
        assert victim not in client.run(os.getpid).values()
    check_same_stream(model, streamed_in_memory, X)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-12)


class KillInPass:
    """Kills a process shortly after a pass over the rows has begun."""

    def __init__(self, pid, pass_number):
        self.pid, self.left, self.done = pid, pass_number, False

    @contextmanager
    def watching(self):
        reduce = DaskRows.reduce

        def watched(source, function, **settings):
            self.left -= 1
            if self.left == 0:
                threading.Timer(0.05, self._kill).start()
            return reduce(source, function, **settings)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DaskRows, "reduce", watched)
            yield

    def _kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.done = True


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from cmvmed import CMVMED
from cmvmed.data.sources.parts import open_table

folder, room = Path(sys.argv[1]), int(sys.argv[2])
X = {"first": folder / "first", "second": folder / "second"}
tables = [open_table(path) for path in X.values()]
tables[0] = tables[0].select([name for name in tables[0].column_names if name != "class"])
small = np.random.default_rng(0).normal(size=(60, 4))
CMVMED(views=[2, 2], n_stages=1, approximation="nystroem").fit(small, np.arange(60) % 3 - 1)  # loads libraries
status = Path("/proc/self/status").read_text().splitlines()
used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + room, used + room))
model = CMVMED(approximation=50, n_stages=2, max_iter=3, tol=0.1, class_prior=0.5).fit(X, "class")
truth = np.load(folder / "truth.npy")
print(model.history_["n_rows"][-1], np.mean(model.predict(X) == truth))
try:
    rows = [table.take(np.arange(table.n_rows)) for table in tables]
except MemoryError:
    print("does not fit")
"""


def write_sensors(folder, n_files, rows_per_file, gaps):
    """A folder of Parquet files for each sensor, a share of cells NaN, the classes of the first 60 rows beside the first."""
    rng = np.random.default_rng(0)
    truth = []
    for i in range(n_files):
        y = rng.integers(0, 2, rows_per_file)
        known = (np.arange(rows_per_file) + i * rows_per_file) < 60
        for name in ("first", "second"):
            (folder / name).mkdir(exist_ok=True)
            X = rng.normal(size=(rows_per_file, 50)) + (y[:, None] - 0.5) * 0.4
            X[rng.random(X.shape) < gaps] = np.nan
            frame = pd.DataFrame(X, columns=[f"{name}{c}" for c in range(50)])
            labels = {"class": pd.array(np.where(known, y, None), dtype="Int64")} if name == "first" else {}
            frame.assign(**labels).to_parquet(folder / name / f"{i}.parquet", row_group_size=5000)
        truth.append(y)
    np.save(folder / "truth.npy", np.concatenate(truth))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
@pytest.mark.parametrize("gaps", [0.0, 0.02])
def test_files_larger_than_the_memory_of_the_process(gaps, tmp_path):
    """240 MiB in files, 200 MiB of memory beyond what libraries take; loading all rows fails."""
    write_sensors(tmp_path, n_files=6, rows_per_file=52_429, gaps=gaps)
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    command = [sys.executable, "-W", "ignore", "-c", LIMITED, str(tmp_path), str(200 << 20)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    fitted, refused = done.stdout.splitlines()
    assert refused == "does not fit"
    n_rows, accuracy = fitted.split()
    assert int(n_rows) == 6 * 52_429 - 60
    assert float(accuracy) > 0.95
