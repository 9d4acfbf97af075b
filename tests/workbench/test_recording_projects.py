"""From raw recordings in every form to predictions: init, train, predict; clocks, rates, missing sensors, the cache."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pandas as pd
import pytest
import soundfile
from click.testing import CliRunner

import cmvmed
from cmvmed.cli.main import main
from cmvmed.features import signal_features
from cmvmed.recordings import read_recording
from cmvmed.workbench import Project, ProjectError, TrainedProject, init
from cmvmed.workbench.report import write_report

CLASSES = np.array(["calm", "wild"])
N, RATE, SECONDS = 40, 50, 2
TRUTH = CLASSES[np.arange(N) % 2]


def signal(c, n_samples, rng):
    """Noise of class 0, or a random walk of class 1."""
    noise = rng.normal(size=n_samples)
    return noise if c == 0 else np.cumsum(noise) / 4


def cases(seed=0, n_channels=4):
    rng = np.random.default_rng(seed)
    return np.stack([[signal(i % 2, RATE * SECONDS, rng) for _ in range(n_channels)] for i in range(N)])


def labels(n_labeled=20):
    return np.where(np.arange(N) < n_labeled, TRUTH, "")


def write_ts(folder):
    lines = [":".join(",".join(f"{v:.6f}" for v in channel) for channel in case) for case in cases()]
    rows = [f"{line}:{label or '?'}" for line, label in zip(lines, labels(), strict=True)]
    (folder / "cases.ts").write_text("@classLabel true calm wild\n@data\n" + "\n".join(rows), encoding="utf-8")
    return "cases.ts"


def write_npz(folder):
    X = cases()
    np.savez(folder / "cases.npz", acc=X[:, :2], gyr=X[:, 2:], label=labels())
    return "cases.npz"


def write_hdf5(folder):
    X = cases()
    with h5py.File(folder / "cases.h5", "w") as file:
        file["acc"], file["gyr"], file["labels"] = X[:, :2], X[:, 2:, ::2], labels().tolist()
        file["acc"].attrs["sampling_rate"], file["gyr"].attrs["sampling_rate"] = RATE, RATE / 2
    return "cases.h5"


def long_frame():
    frames = []
    for i, case in enumerate(cases()):
        frame = pd.DataFrame(case.T, columns=["acc_x", "acc_y", "gyr_x", "gyr_y"])
        frame.insert(0, "id", f"c{i:02d}")
        frame.insert(1, "time", np.arange(RATE * SECONDS) / RATE)
        frame["label"] = labels()[i]
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def write_csv(folder):
    long_frame().to_csv(folder / "long.csv", index=False)
    return "long.csv"


def write_parquet(folder):
    long_frame().to_parquet(folder / "long.parquet")
    return "long.parquet"


def write_sounds(folder, suffix="wav"):
    rng = np.random.default_rng(0)
    for mic in ("left", "right"):
        (folder / "sounds" / mic).mkdir(parents=True)
        for i in range(N):
            sound = 0.02 * signal(i % 2, 2000, rng)
            if (mic, i % 8) != ("right", 5):
                soundfile.write(folder / "sounds" / mic / f"{i:02d}.{suffix}", sound, 4000)
    table = pd.DataFrame({"id": [f"{i:02d}" for i in range(20)], "label": TRUTH[:20]})
    table.to_csv(folder / "sounds" / "labels.csv", index=False)
    return "sounds"


def started(folder, data, changes=None):
    (folder / "cmvmed.toml").write_text(init(folder / data, folder / "cmvmed.toml").text, encoding="utf-8")
    return Project.load(folder, changes=changes)


def name_of(write):
    return write.__name__.removeprefix("write_")


@pytest.mark.parametrize("write", [write_ts, write_npz, write_csv, write_parquet], ids=name_of)
def test_files_of_every_form_hold_the_same_cases(write, tmp_path):
    project = started(tmp_path, write(tmp_path))
    assert {view.features for view in project.settings.views} == {"auto"}
    rows = project.rows()
    found = np.stack([np.vstack([signal.items[i] for signal in rows.table.signals.values()]) for i in range(N)])
    np.testing.assert_allclose(found, cases(), atol=1e-6)
    assert [label or "" for label in rows.labels.values] == labels().tolist()  # noqa: PD011


def test_flac_files_hold_the_samples_of_wav_files(tmp_path):
    waveforms = {}
    for suffix in ("wav", "flac"):
        (tmp_path / suffix).mkdir()
        rows = started(tmp_path / suffix, write_sounds(tmp_path / suffix, suffix)).rows()
        waveforms[suffix] = [
            signal.waveform(i)[0] for signal in rows.table.signals.values() for i in np.flatnonzero(signal.present)
        ]
    step = 2.0**-15  # of 16 bits, to which the two formats round differently
    np.testing.assert_allclose(waveforms["flac"], waveforms["wav"], rtol=0, atol=step)
    assert len(waveforms["wav"]) == 2 * N - 5


@pytest.mark.parametrize("write", [write_hdf5, pytest.param(write_sounds, marks=pytest.mark.slow)], ids=name_of)
def test_from_cases_to_predictions(write, tmp_path):
    data = write(tmp_path)
    project = started(tmp_path, data)
    assert {view.features for view in project.settings.views} == {"auto"}
    trained = project.train(n_stages=2)
    trained.save(tmp_path / "m")
    for encoder in trained.project.encoders:
        for sensor in encoder.columns:
            assert {"ranks", "minirocket"} <= set(sensor.compared)
    predicted = TrainedProject.load(tmp_path / "m").predict(tmp_path / data)
    assert np.mean(predicted["class"].to_numpy() == TRUTH) > 0.9


# --- long recordings, two days, of which the second lacks a sensor ------------------------------------------------------

EVENTS = [(5 * event, 5 * event + 5, CLASSES[event % 2]) for event in range(12)]


def day(rate, rng):
    """A minute in which the class changes every five seconds."""
    return np.concatenate([signal(int(label == "wild"), 5 * rate, rng) for *_, label in EVENTS])


def annotations(days=("day0", "day1"), n_events=8):
    rows = [(name, *event) for name in days for event in EVENTS[:n_events]]
    return pd.DataFrame(rows, columns=["recording", "start", "end", "label"])


def write_edf(folder):
    """Two signals of different rates, the second of which is missing on the second day; annotations within."""
    import pyedflib

    rng = np.random.default_rng(0)
    (folder / "nights").mkdir()
    for name, rates in (("day0", {"chest": 50, "belt": 25}), ("day1", {"chest": 50})):
        with pyedflib.EdfWriter(str(folder / "nights" / f"{name}.edf"), len(rates)) as file:
            make = pyedflib.highlevel.make_signal_header
            bounds = {"physical_min": -40, "physical_max": 40}
            file.setSignalHeaders([make(s, sample_frequency=rate, **bounds) for s, rate in rates.items()])
            file.writeSamples([np.clip(day(rate, rng), -40, 40) for rate in rates.values()])
            for start, end, label in EVENTS[:8]:
                file.writeAnnotation(start, end - start, str(label))
    return "nights"


def write_mseed(folder):
    """A folder per station; the second began half a second later, and has no file of the second day."""
    import pymseed

    rng = np.random.default_rng(0)
    for station, second in (("north", "00.0"), ("south", "00.5")):
        (folder / "quakes" / station).mkdir(parents=True)
        for number, name in enumerate(("day0", "day1")):
            if (station, name) == ("south", "day1"):
                continue
            values = day(50, rng).astype(np.float32)
            traces = pymseed.MS3TraceList()
            start = pymseed.timestr2nstime(f"2024-05-0{number + 1}T08:00:{second}Z")
            source = f"FDSN:XX_{station.upper()}__H_H_Z"
            traces.add_data(sourceid=source, data_samples=values, sample_type="f", sample_rate=50.0, starttime=start)
            traces.to_file(str(folder / "quakes" / station / f"{name}.mseed"))
    annotations().to_csv(folder / "quakes" / "annotations.csv", index=False)
    return "quakes"


def write_days_of_sound(folder):
    """Two microphones of different rates; the second recorded at another rate on the second day."""
    rng = np.random.default_rng(0)
    for mic, rates in (("left", (1000, 1000)), ("right", (500, 1000))):
        (folder / "days" / mic).mkdir(parents=True)
        for number, rate in enumerate(rates):
            soundfile.write(folder / "days" / mic / f"day{number}.wav", 0.01 * day(rate, rng), rate)
    annotations().to_csv(folder / "days" / "annotations.csv", index=False)
    return "days"


def write_npy(folder):
    rng = np.random.default_rng(0)
    (folder / "arrays").mkdir()
    for name in ("day0", "day1"):
        np.save(folder / "arrays" / f"{name}.npy", np.stack([day(50, rng) for _ in range(2)]))
    annotations().to_csv(folder / "arrays" / "annotations.csv", index=False)
    return "arrays"


LONG = {write_edf: "belt", write_mseed: "south", write_days_of_sound: None, write_npy: None}


@pytest.mark.parametrize(
    "write",
    [write_edf, *(pytest.param(write, marks=pytest.mark.slow) for write in LONG if write is not write_edf)],
    ids=name_of,
)
def test_commands_on_long_recordings(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = write(tmp_path)
    rate = ["--set", "data.sampling_rate=50"] if write is write_npy else []
    lines = [["init", data], ["train", "--no-report", "--set", "model.n_stages=2", *rate, "--json"]]
    for line in [*lines, ["predict", data, "-o", "p.csv"]]:
        shown = CliRunner().invoke(main, line)
        assert shown.exit_code == 0, (line, shown.output)
        if line[0] == "train":
            found = json.loads(shown.stdout)["features"]
            assert all(sensor["kind"] in sensor["held_out_r2"] for sensors in found.values() for sensor in sensors)
    predicted = pd.read_csv("p.csv", index_col="id", keep_default_na=False)
    starts = np.array([float(key.partition("@")[2]) for key in predicted.index])
    within = starts // 5 == (starts + 1.99) // 5  # windows in one event
    truth = CLASSES[(starts // 5 % 2).astype(int)]
    assert np.mean(predicted["class"].to_numpy()[within] == truth[within]) > 0.8
    if LONG[write] is not None:
        on_second = predicted.index.str.startswith("day1")
        assert (predicted["missing_views"][on_second] == LONG[write]).all()
        assert (predicted["missing_views"] == LONG[write]).mean() < 0.6


def test_rates_of_a_sensor_that_differ_by_day(tmp_path):
    quick = {f"views.{mic}.features": "statistics" for mic in ("left", "right")}
    table = started(tmp_path, write_days_of_sound(tmp_path), quick).read()
    assert any(
        "'right' has several sampling rates; all recordings are resampled to 500 Hz" in m for m in table.messages
    )
    assert not np.isnan(table.views["right"]).any()


def test_starts_of_files_place_them_in_time(tmp_path):
    """A station that began half a second later lacks the window at 0 s only, and is not shifted."""
    project = started(tmp_path, write_mseed(tmp_path), {"windows.step": 1.0, "windows.length": 1.0})
    rows = project.rows()
    south = rows.table.signals["south"].items
    assert [rows.ids[i] for i in range(3) if south[i] is None] == ["day0@0"]
    track = read_recording(tmp_path / "quakes" / "south" / "day0.mseed").sensors
    expected = next(iter(track.values())).read(0.5, 50)  # its own clock begins 0.5 s later
    np.testing.assert_array_equal(south[1], expected)


def test_offset_of_a_clock(tmp_path):
    """A sensor whose file is 1.5 s late is moved back by its offset."""
    rng = np.random.default_rng(0)
    sound = 0.01 * day(400, rng)
    late = np.concatenate([np.zeros(600), sound])[: len(sound)]
    for mic, values in (("a", sound), ("b", late)):
        (tmp_path / "days" / mic).mkdir(parents=True)
        soundfile.write(tmp_path / "days" / mic / "day0.wav", values, 400, subtype="FLOAT")
    annotations(["day0"]).to_csv(tmp_path / "days" / "annotations.csv", index=False)
    rows = started(tmp_path, "days", {"views.b.offset": -1.5}).rows()
    a, b = (rows.table.signals[name].items for name in ("a", "b"))
    both = [row for row in range(len(a)) if a[row] is not None and b[row] is not None]
    assert len(both) > 20
    for row in both:
        np.testing.assert_array_equal(a[row], b[row])


# --- the cache --------------------------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """Numbers of signals whose features were computed, one entry per computation."""
    found = []
    compute = signal_features.compute_features

    def counting(extractors, n_features, signals):
        found.append(len(signals))
        return compute(extractors, n_features, signals)

    monkeypatch.setattr(signal_features, "compute_features", counting)
    return found


def test_no_command_computes_features_twice(tmp_path, counted):
    project = started(tmp_path, write_hdf5(tmp_path))
    rows = project.rows()
    trained = project.train(project.read(rows), n_stages=2)
    assert counted == [N] * 4  # two views, two kinds that are compared; the chosen ones are not computed again
    trained.save(tmp_path / "m")
    loaded = TrainedProject.load(tmp_path / "m")  # as in another process
    again = Project.load(tmp_path)
    table = loaded.read_training(again)
    loaded.suggest(table, 3)
    write_report(tmp_path / "r.html", loaded, table, again.check(), rows=again.rows(), with_learning_curve=False)
    assert counted == [N] * 4
    loaded.predict(tmp_path / "cases.h5")
    fresh = TrainedProject.load(tmp_path / "m")
    del counted[:]
    first = fresh.predict(tmp_path / "cases.h5")
    assert counted == [N, N]  # a model file alone has no folder
    pd.testing.assert_frame_equal(fresh.predict(tmp_path / "cases.h5"), first)
    assert counted == [N, N]


def test_a_dry_run_writes_no_features(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    started(tmp_path, write_ts(tmp_path))
    before = sorted(tmp_path.iterdir())
    assert CliRunner().invoke(main, ["train", "--dry-run"]).exit_code == 0
    assert sorted(tmp_path.iterdir()) == before


def test_what_was_chosen_is_in_the_report_of_a_loaded_model(tmp_path):
    project = started(tmp_path, write_hdf5(tmp_path), {"views.gyr.features": "statistics"})
    project.train(n_stages=2).save(tmp_path / "m")
    loaded = cmvmed.load(tmp_path / "m")
    again = Project.load(tmp_path)
    write_report(tmp_path / "r.html", loaded, loaded.read_training(again), [], with_learning_curve=False)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    (acc,) = next(encoder.columns for encoder in loaded.project.encoders if encoder.name == "acc")
    for kind, r2 in zip(acc.compared, acc.held_out_r2, strict=True):
        chosen = "yes" if kind == acc.features.kind else "no"
        assert f'<td class="text">{kind}</td><td class="text">{chosen}</td>' in page
        assert f"<td>{r2:.2f}</td>".replace("-", "−") in page
    assert all(f"<td>{score:.2f}</td></tr>".replace("-", "−") in page for score in acc.score)
    assert '<th scope="row">gyr</th><td class="text">statistics</td><td class="text">yes</td><td>40</td>' in page


def test_windows_are_held_out_by_recording(tmp_path):
    project = started(tmp_path, write_edf(tmp_path))
    table = project.read()
    trained = project.train(table, n_stages=2)
    write_report(tmp_path / "r.html", trained, table, [], with_learning_curve=False)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "2 of recording, held out together" in page
    assert "rows of new groups (recording)" in page


# key of view "acc", words of the message
MISTAKES = {
    "features": ("wavelets", '"auto", or one of minirocket', "'wavelets'"),
    "sampling_rate": (-3, "sampling_rate in [views.acc] is -3, but must be positive"),
    "offset": (1.0, "windows of long recordings only"),
}


@pytest.mark.parametrize("key", MISTAKES)
def test_mistakes_in_a_view(key, tmp_path):
    value, *words = MISTAKES[key]
    with pytest.raises(ProjectError, match=r"\w") as error:
        started(tmp_path, write_npz(tmp_path), {f"views.acc.{key}": value})
    for word in words:
        assert word in str(error.value)


def test_features_of_a_view_without_signals(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.arange(40.0).reshape(20, 2), b=np.ones((20, 2, 30)), label=["x", "y"] * 10)
    with pytest.raises(ProjectError, match="'a' sets features"):
        started(tmp_path, "x.npz", {"views.a.features": "statistics"}).read()
