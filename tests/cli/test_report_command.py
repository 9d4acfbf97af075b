"""``cmvmed report`` and ``cmvmed export``: files from a model file, exit codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cmvmed.workbench import TrainedProject
from tests.cli.commands import run


@pytest.mark.usefixtures("inside")
def test_the_report_of_a_model(monkeypatch):
    shown = run("report")
    assert (shown.exit_code, shown.stdout) == (0, "report.html: the report, for a browser\n")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "gyr" in page
    assert "stroke" in page or "crawl" in page
    assert run("report").exit_code == 1
    addresses = []
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or False)
    monkeypatch.setattr("cmvmed.workbench.report.learning_curve.PARTS", ())  # no refits
    shown = run("report", "-o", "other.html", "--open")
    assert shown.exit_code == 1
    assert "no browser could be opened" in shown.stderr
    assert addresses == [Path("other.html").absolute().as_uri()]


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("command", [["report"], ["export"]])
def test_a_missing_model_and_an_existing_file(command):
    Path("report.html").write_text("precious")
    Path("model.onnx").write_text("precious")
    shown = run(*command)
    assert shown.exit_code == 1
    assert "exists and was not changed; --force replaces it" in shown.stderr
    assert run(*command, "--force", "-m", "none.cmvmed").exit_code in (1, 2)
    assert Path("report.html").read_text() == Path("model.onnx").read_text() == "precious"


@pytest.mark.usefixtures("inside")
def test_an_exported_model_predicts_the_same():
    runtime = pytest.importorskip("onnxruntime")
    shown = run("export", "-o", "model.onnx")
    assert shown.exit_code == 0, shown.output
    assert "  acc: acc_x, acc_y, acc_z\n  gyr: gyr_x, gyr_y, gyr_z\n" in shown.stdout
    trained = TrainedProject.load("model.cmvmed")
    views = trained.project.read_new("windows.csv").views
    session = runtime.InferenceSession("model.onnx")
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {k: v.astype(np.float32) for k, v in views.items()}), strict=True))
    np.testing.assert_allclose(found["probabilities"], trained.model.predict_proba(views), atol=1e-5)


@pytest.mark.usefixtures("inside")
def test_the_ending_of_an_exported_model():
    shown = run("export", "-o", "model.bin")
    assert shown.exit_code == 2
    assert "ends in .onnx" in shown.stderr
