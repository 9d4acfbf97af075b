"""What the page shows of a row: for each view, waveforms, sound, texts, or a table of cells.

Beside them is what helps to find the row again: groups, times, chosen columns, links and pictures.
"""

import base64
import io
import re
import wave
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.workbench.project_file import ProjectSettings
from cmvmed.workbench.tables.columns import (
    FloatArray,
    RawTable,
    as_text,
    column_kind,
    envelope,
    missing_cells,
    read_cells,
)
from cmvmed.workbench.tables.recording_rows import WINDOW_COLUMNS
from cmvmed.workbench.tables.rows import ProjectRows
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean

MAX_POINTS = 1200  # of a waveform on the page: a smallest and a largest value for each pixel column
MAX_TEXT = 20_000  # characters of a text
MAX_CELLS = 200  # of a table
SPECTRUM_BANDS, SPECTRUM_FRAMES = 96, 400
RANGE_DB = 70.0  # below the largest value of a spectrogram, what is drawn as nothing
FULL_SCALE = 32767
UNIT = re.compile(r"[\[(]([^\[\]()]{1,12})[\])]\s*$")  # at the end of the name of a column
MAX_MEDIANS, MIN_LABELS = 4, 2  # classes whose medians are shown, and labels that a median needs
MIN_RATE = 8000.0  # Hz; browsers refuse sounds of less than about 3000
PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
LINKS = ("https://", "http://")
MAX_PICTURE = 20_000_000  # bytes
MAX_CELL = 500  # characters of a cell


@dataclass(frozen=True)
class RowContent:
    """The cells and signals of a project, row by row, as JSON values.

    Parameters
    ----------
    rows : the rows of the project
    sampling_rate : of series whose files do not say it, in Hz
    """

    rows: ProjectRows
    sampling_rate: float | None = None
    _numbers: dict[str, FloatArray | None] = field(default_factory=dict)

    def panels(self, row: int, by_class: Mapping[str, NDArray[np.intp]] | None = None) -> list[dict[str, Any]]:
        """One dict per view: its name and its parts, none where the row does not have the view.

        ``by_class`` are the labeled rows of each class, for medians beside numbers.
        """
        views = self.rows.roles.views.items()
        return [{"view": view, "parts": self._parts(columns, row, by_class or {})} for view, columns in views]

    def sound(self, row: int, column: str) -> bytes:
        """A wav file of the waveform in a column, at full scale."""
        values, rate = self._waveform(column, row)
        values, rate = playable(np.nan_to_num(values), rate)
        peak = float(np.abs(values).max(initial=0.0)) or 1.0
        stream = io.BytesIO()
        with wave.open(stream, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(max(1, round(rate)))
            file.writeframes(np.round(values / peak * FULL_SCALE).astype("<i2").tobytes())
        return stream.getvalue()

    def has_sound(self, row: int, column: str) -> bool:
        """Whether a row has a sound in a column."""
        return self.is_sound(column) and self.rows.table.signals[column].items[row] is not None

    def is_sound(self, column: str) -> bool:
        """Whether a column holds sound that can be played."""
        signal = self.rows.table.signals.get(column)
        return signal is not None and signal.is_sound

    def _parts(self, columns: list[str], row: int, by_class: Mapping[str, NDArray[np.intp]]) -> list[dict[str, Any]]:
        table, parts, cells = self.rows.table, [], []
        for column in columns:
            if column in table.signals:
                if table.signals[column].items[row] is not None:
                    parts.append(self._signal(column, row))
                continue
            cell = _cell(table, column, row)
            if cell is None:
                continue
            if self.rows.kinds.get(column) == "text":
                parts.append({"kind": "text", "name": column, "text": cell[:MAX_TEXT], "cut": len(cell) > MAX_TEXT})
            else:
                cells.append((column, cell[:MAX_TEXT]))
        if cells:
            parts.append(self._table(cells, row, by_class))
        return parts

    def _table(
        self, cells: list[tuple[str, str]], row: int, by_class: Mapping[str, NDArray[np.intp]]
    ) -> dict[str, Any]:
        """Cells with their distance from the mean in standard deviations, and the medians of the largest classes."""
        frequent = sorted(by_class, key=lambda name: -len(by_class[name]))[:MAX_MEDIANS]
        classes = [name for name in by_class if name in frequent and len(by_class[name]) >= MIN_LABELS]
        lines = []
        for column, text in cells[:MAX_CELLS]:
            line: dict[str, Any] = {"name": column, "value": text}
            values = self._values(column)
            if values is not None:
                line |= {"z": z_score(values, row), "medians": [_median(values[by_class[name]]) for name in classes]}
            lines.append(line)
        classes = classes if any("medians" in line for line in lines) else []
        return {"kind": "table", "cells": lines, "classes": classes, "n_more": max(0, len(cells) - MAX_CELLS)}

    def _values(self, column: str) -> FloatArray | None:
        """The numbers of a column; None if it holds none, or some that are an error."""
        if column not in self._numbers:
            self._numbers[column] = None
            if self.rows.kinds.get(column) == "number":
                try:
                    self._numbers[column] = read_cells(self.rows.table, column, "number").values
                except ProjectError:  # `cmvmed check` says what is wrong
                    return None
        return self._numbers[column]

    def _waveform(self, column: str, row: int) -> tuple[NDArray[np.float64], float]:
        values, rate = self.rows.table.signals[column].waveform(row)
        return values, rate or self.sampling_rate or 1.0

    def seconds(self, row: int) -> float | None:
        """Length of the longest recording of a row; None if it has none."""
        table = self.rows.table
        lengths = [self._waveform(c, row) for c, s in table.signals.items() if s.items[row] is not None]
        return max((values.size / rate for values, rate in lengths), default=None)

    def _signal(self, column: str, row: int) -> dict[str, Any]:
        values, rate = self._waveform(column, row)
        positions, drawn = envelope(values, MAX_POINTS)
        part: dict[str, Any] = {
            "kind": "sound" if self.is_sound(column) else "series",
            "name": column,
            "unit": unit_of(column),
            "seconds": values.size / rate,
            "times": _rounded(positions / rate),
            "values": [None if np.isnan(v) else v for v in _rounded(drawn)],
        }
        if self.is_sound(column):
            part["spectrogram"] = spectrogram_image(values, rate)
        return part


def context_columns(rows: ProjectRows, settings: ProjectSettings) -> list[str]:
    """The columns that ``context`` in [data] names; without it groups, the stretch of a window, and times of no view."""
    names, chosen = [str(name) for name in rows.table.frame.columns], settings.data.context
    for name in chosen:
        if name not in names:
            raise ProjectError(
                f"There is no column {name!r}, which context in [data] names.{did_you_mean(name, names)} The columns are "
                f"{abbreviate(names)}."
            )
    if chosen:
        return list(chosen)
    used = {column for columns in rows.roles.views.values() for column in columns} | rows.roles.reserved.keys()
    groups = [column for column, role in rows.roles.reserved.items() if role == "groups"]
    window = [name for name in names if settings.windows is not None and name in WINDOW_COLUMNS]
    free = [name for name in names if name not in used and name not in window]
    times = [name for name in free if column_kind(rows.table.frame[name], rows.table.decimal) == "date"]
    return [*groups, *window, *times]


@dataclass(frozen=True)
class RowContext:
    """Cells of chosen columns, row by row.

    Parameters
    ----------
    rows : the rows of the project
    columns : those to show
    folder : of the data; pictures are files in it
    """

    rows: ProjectRows
    columns: list[str]
    folder: Path

    def cells(self, row: int) -> list[dict[str, Any]]:
        """Name, text and kind of each cell that is not empty: "text", "link" or "picture"."""
        found = []
        for column in self.columns:
            text = self._text(row, column)
            if text:
                is_picture = self._file(text) is not None
                kind = "picture" if is_picture else "link" if text.startswith(LINKS) else "text"
                found.append({"name": column, "text": text[:MAX_CELL], "kind": kind})
        return found

    def picture(self, row: int, column: str) -> tuple[bytes, str]:
        """The picture that a cell names, and its media type."""
        file = self._file(self._text(row, column)) if column in self.columns else None
        if file is None:
            raise ValueError("There is no such picture.")
        if file.stat().st_size > MAX_PICTURE:
            raise ValueError(f"The picture {file.name} is larger than {MAX_PICTURE // 1_000_000} MB.")
        return file.read_bytes(), PICTURES[file.suffix.lower()]

    def _text(self, row: int, column: str) -> str:
        cells = self.rows.table.frame[column].iloc[[row]]
        return "" if missing_cells(cells)[0] else as_text(cells.iloc[0])

    def _file(self, text: str) -> Path | None:
        """The file of a picture in the folder of the data; None if the cell names none."""
        if Path(text).suffix.lower() not in PICTURES or text.startswith(LINKS):
            return None
        folder = self.folder.resolve()
        file = (folder / text).resolve()
        return file if file.is_relative_to(folder) and file.is_file() else None


def unit_of(column: str) -> str:
    """The unit in the name of a column, such as "m/s²" of "acc_x [m/s²]"; empty if there is none."""
    found = UNIT.search(column)
    return found[1].strip() if found else ""


def z_score(values: FloatArray, row: int) -> float | None:
    """How many standard deviations the value of a row is from the mean of the column; None if that has no meaning."""
    known = values[np.isfinite(values)]
    scale = float(known.std()) if known.size else 0.0
    if not np.isfinite(values[row]) or not 0.0 < scale < np.inf:
        return None
    return round(float((values[row] - known.mean()) / scale), 2)


def _median(values: FloatArray) -> str:
    known = values[np.isfinite(values)]
    return f"{np.median(known):.4g}" if known.size else ""


def playable(values: NDArray[np.float64], rate: float) -> tuple[NDArray[np.float64], float]:
    """Samples at a rate that browsers play: a multiple of the own rate if that is too low."""
    from scipy.signal import resample_poly  # slow to import, and not needed for tables

    times = int(np.ceil(MIN_RATE / rate))
    return (values, rate) if times == 1 else (np.asarray(resample_poly(values, times, 1)), rate * times)


def spectrogram_image(values: NDArray[np.float64], rate: float) -> dict[str, Any] | None:
    """Power in dB as bytes, frequency bands by frames, from the lowest frequency on; None for too few samples."""
    if values.size < 64:
        return None
    length = int(min(1024, 2 ** np.floor(np.log2(max(64, values.size // 32)))))
    hop = max(length // 4, int(np.ceil((values.size - length) / SPECTRUM_FRAMES)))
    frames = np.lib.stride_tricks.sliding_window_view(np.nan_to_num(values), length)[::hop]
    frames = (frames - frames.mean(axis=1, keepdims=True)) * np.hanning(length)
    power = np.abs(np.fft.rfft(frames, axis=1).T) ** 2  # (length // 2 + 1, n_frames)
    bands = np.array_split(power[1:], min(SPECTRUM_BANDS, power.shape[0] - 1))
    mean = np.stack([band.mean(axis=0) for band in bands])
    peak = mean.max()
    if not peak > 0.0:
        return None
    level = 1.0 + 10.0 * np.log10(np.maximum(mean / peak, 1e-30)) / RANGE_DB
    image = np.round(255.0 * np.clip(level, 0.0, 1.0)).astype(np.uint8)
    return {
        "bands": image.shape[0],
        "frames": image.shape[1],
        "highest": rate / 2.0,
        "data": base64.b64encode(image.tobytes()).decode("ascii"),
    }


def _cell(table: RawTable, column: str, row: int) -> str | None:
    """The text of a cell, None where it is empty."""
    value = table.frame[column].iloc[row]
    if value is None or value != value:  # NaN is not itself
        return None
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return text if text.strip() and text != "NaT" else None


def _rounded(values: NDArray[np.float64]) -> list[float]:
    """Numbers of six digits, which a page needs no more of."""
    return [float(f"{value:.6g}") for value in values]
