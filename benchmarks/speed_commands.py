"""The measurements of ``benchmarks.speed`` that are commands: each runs in a process of its own, as a user runs it.

Seconds are those of the processor with all threads and imports, unless a line says "clock".
"""

import os
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.speed_points import Line, in_s

N_COLUMNS, N_LABELS, N_NEW = 10, 60, 100_000
RUN = [sys.executable, "-m", "cmvmed"]
FIT = """
import pandas as pd
from cmvmed import CMVMED
rows = pd.read_csv("rows.csv", keep_default_na=False, na_values={c: [""] for c in range(1, 21)})
X, views = rows.iloc[:, 1:21].to_numpy(), {"acc": slice(0, 10), "gyr": slice(10, 20)}
labels = [text or None for text in rows["stroke"]]
CMVMED(views=views).fit(X, labels, groups=rows["subject"]).save("plain.cmvmed", overwrite=True)
"""
PREDICT = """
import pandas as pd
import cmvmed
model = cmvmed.load("plain.cmvmed")
model.predict_proba(pd.read_csv("new.csv").iloc[:, 1:21].to_numpy())
"""
FIRST = """
import numpy as np
import cmvmed
cmvmed.load("plain.cmvmed").predict(np.zeros((1, 20)))
"""


def cost(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Seconds of the processor and by the clock, and largest memory in MB of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    messages = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {messages}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start, usage.ru_maxrss / 1e3


def write_numbers(path: Path, n_rows: int, n_labels: int) -> None:
    """Rows of three classes at two sensors, of which the second is missing in some rows and has gaps."""
    rng = np.random.default_rng(0)
    centers, classes = 0.5 * rng.normal(size=(2, 3, N_COLUMNS)), rng.integers(0, 3, n_rows)
    views = [center[classes] + rng.normal(size=(n_rows, N_COLUMNS)) for center in centers]
    views[1][rng.random(n_rows) < 0.05] = np.nan
    views[1][rng.random(views[1].shape) < 0.001] = np.nan
    names = [f"{view}_{c}" for view in ("acc", "gyr") for c in range(N_COLUMNS)]
    frame = pd.DataFrame(np.round(np.hstack(views), 5), columns=names)
    frame.insert(0, "window_id", [f"w{row:06d}" for row in range(n_rows)])
    frame["subject"] = [f"s{row % 50}" for row in range(n_rows)]
    labeled = np.arange(n_rows) < n_labels
    frame["stroke"] = np.where(labeled, np.array(["back", "crawl", "fly"])[classes], "")
    frame.to_csv(path, index=False)


def write_text(path: Path, n_rows: int, n_labels: int) -> None:
    """Rows of four classes with a text and eight numbers."""
    rng = np.random.default_rng(0)
    words, classes = np.array([f"word{i}" for i in range(800)]), np.arange(n_rows) % 4
    topics = 0.5 * rng.dirichlet(np.full(800, 0.05), size=4) + 0.5 / 800
    notes = [" ".join(rng.choice(words, rng.integers(15, 40), p=topics[c])) for c in classes]
    numbers = rng.normal(size=(n_rows, 8)) + np.eye(4, 8)[classes]
    frame = pd.DataFrame(numbers.round(4), columns=[f"acc_{c}" for c in range(8)])
    frame.insert(0, "id", [f"r{row}" for row in range(n_rows)])
    frame["note"] = notes
    frame["label"] = np.where(np.arange(n_rows) < n_labels, [f"k{c}" for c in classes], "")
    frame.to_csv(path, index=False)


def write_sounds(folder: Path, n: int, n_labels: int, rate: int = 16_000) -> None:
    """Tones of four pitches of a second each, in a folder for each class and one without labels."""
    rng, t = np.random.default_rng(0), np.arange(rate) / rate
    for i in range(n):
        pitch = (220, 330, 440, 660)[i % 4] * (1.0 + 0.05 * rng.normal())
        tone = 0.3 * np.sin(2 * np.pi * pitch * t) + 0.15 * np.sin(4 * np.pi * pitch * t + rng.uniform(0, 6))
        tone = (tone + 0.2 * rng.normal(size=rate)) * np.exp(-rng.uniform(0.5, 3) * t)
        own = folder / (f"class{i % 4}" if i < n_labels else "unlabeled")
        own.mkdir(parents=True, exist_ok=True)
        with wave.open(str(own / f"c{i:03d}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes((np.clip(tone, -1, 1) * 32_000).astype("<i2").tobytes())


def show_help() -> list[Line]:
    """The list of commands."""
    with tempfile.TemporaryDirectory() as folder:
        own = min(cost([*RUN, "--help"], Path(folder))[1] for _ in range(3))
    return [Line("`cmvmed --help`, clock", in_s(own), "0.3 s")]


def train(n_rows: int) -> list[Line]:
    """``train`` with its report, beside a program that reads the file, fits and saves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_numbers(folder / "rows.csv", n_rows, N_LABELS)
        fit = min(cost([sys.executable, "-W", "ignore", "-c", FIT], folder)[0] for _ in range(2))
        cost([*RUN, "init", "rows.csv"], folder)
        own = min(cost([*RUN, "train", "--force"], folder)[0] for _ in range(2))
    return [Line(f"`cmvmed train`, {n_rows:,} rows", f"{in_s(own)}, {own / fit:.2f}x one fit ({in_s(fit)})", "1.5x")]


def train_kind(what: str, data: str, write: Callable[[Path], None], goal: str) -> list[Line]:
    """``train`` on data of a kind."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name) / data)
        cost([*RUN, "init", data], Path(name))
        own = cost([*RUN, "train"], Path(name))
    return [Line(f"`cmvmed train`, {what}", f"{in_s(own[0])}, {own[2]:.0f} MB", goal)]


def predict() -> list[Line]:
    """``predict``, beside a program that reads the file and predicts; and the first prediction of a loaded model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_numbers(folder / "rows.csv", 1000, N_LABELS)
        write_numbers(folder / "new.csv", N_NEW, 0)
        cost([sys.executable, "-W", "ignore", "-c", FIT], folder)
        cost([*RUN, "init", "rows.csv"], folder)
        cost([*RUN, "train", "--no-report"], folder)
        first = min(cost([sys.executable, "-c", FIRST], folder)[1] for _ in range(3))
        bare = cost([sys.executable, "-c", PREDICT], folder)[0]
        own = cost([*RUN, "predict", "new.csv", "-o", "predictions.csv"], folder)
    shown = f"{in_s(own[0])}, {own[0] / bare:.2f}x `predict_proba` ({in_s(bare)}), {own[2]:.0f} MB"
    return [
        Line("first prediction of a loaded model, clock", in_s(first), "1.5 s"),
        Line(f"`cmvmed predict`, {N_NEW:,} rows", shown, "1.2x"),
    ]


POINTS: dict[str, Callable[[], list[Line]]] = {
    "help": show_help,
    "train": lambda: train(1000) + train(5000),
    "train-sounds": lambda: train_kind(
        "116 sounds of a second", "sounds", lambda path: write_sounds(path, 116, 60), "10 s"
    ),
    "train-text": lambda: train_kind(
        "400 rows of text and numbers", "rows.csv", lambda path: write_text(path, 400, 120), "5 s"
    ),
    "predict-command": predict,
}
