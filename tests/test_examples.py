"""The examples run as a user would run them, are as short as promised and say what they should."""

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from cmvmed.model_selection import SemiSupervisedKFold

EXAMPLES = Path(__file__).parent.parent / "examples"
GALLERY = sorted(EXAMPLES.glob("plot_*.py"))


def run(name, *arguments, folder):
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def lines_of_code(name):
    source = (EXAMPLES / name).read_text()
    docstring_end = ast.parse(source).body[0].end_lineno
    return sum(bool(line.strip()) for line in source.splitlines()[docstring_end:])


@pytest.mark.parametrize("name", ["from_wav_folder.py", "from_dataframe.py"])
def test_examples_are_short(name):
    assert lines_of_code(name) <= 25


def test_from_dataframe_beats_its_labels_only_baseline(tmp_path):
    baseline, consensus, by_view = run("from_dataframe.py", folder=tmp_path).splitlines()
    assert float(consensus.split()[-1]) > float(baseline.split()[-1]) > 0.8
    assert set(ast.literal_eval(by_view)) == {"upper half", "lower half"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_with_skore_reports_the_scores_of_the_model(tmp_path, monkeypatch):
    """The reports of skore and skrub take the estimators as they are."""
    pytest.importorskip("skore", reason="the example needs skore")
    monkeypatch.chdir(tmp_path)
    found = runpy.run_path(str(EXAMPLES / "with_skore.py"), run_name="__main__")
    model, new = found["model"], found["new"]
    assert found["report"].metrics.accuracy() == model.score(new.data, new.target)
    frame = found["folds"].metrics.summarize().frame()
    scores = cross_val_score(clone(model), found["room"].data, found["y"], cv=SemiSupervisedKFold(3))
    assert frame.loc["accuracy"].iloc[0] == pytest.approx(scores.mean())
    page = (tmp_path / "table.html").read_text(encoding="utf-8")
    assert all(name in page for name in found["room"].data.columns)


def test_with_skore_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "skore", None)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / "with_skore.py"), run_name="__main__")
    assert ended.value.code is None
    assert capsys.readouterr().out == "This example needs skore, which brings skrub: pip install skore\n"


@pytest.mark.slow
def test_from_wav_folder_predicts_every_event(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    pytest.importorskip("librosa")
    rng = np.random.default_rng(0)
    time = np.arange(4000) / 8000
    rows = ["event,label"]
    for event in range(40):
        label = ("low", "high")[event % 2]
        for sensor in ("sensor1", "sensor2"):
            tone = np.sin(2 * np.pi * {"low": 300, "high": 1500}[label] * time)
            soundfile.write(tmp_path / f"{event}_{sensor}.wav", 0.3 * tone + 0.05 * rng.normal(size=time.size), 8000)
        rows.append(f"{event},{label if event < 8 else ''}")
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    table = run("from_wav_folder.py", tmp_path, folder=tmp_path).splitlines()
    predicted = [line.split()[-2] for line in table[1:]]
    assert predicted == ["low", "high"] * 20


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=[path.stem for path in GALLERY])
def test_an_example_of_the_gallery_draws(path, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    if "librosa" in path.read_text(encoding="utf-8"):
        pytest.importorskip("librosa")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.switch_backend("Agg")
    try:
        runpy.run_path(str(path), run_name="__main__")
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
        assert figures
        drawn = [axis for figure in figures for axis in figure.axes if axis.axison]
        assert all(axis.has_data() or axis.texts for axis in drawn)
    finally:
        pyplot.close("all")


def test_the_gallery_is_large_and_every_example_has_a_title():
    assert len(GALLERY) >= 14
    for path in GALLERY:
        title, line, *text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).splitlines()
        assert line == "=" * len(title), path.name
        assert any(text), path.name
