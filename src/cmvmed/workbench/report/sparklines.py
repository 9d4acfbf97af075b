"""Signals of a row as small line drawings."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmvmed.pages.svg import Axis, element, path, svg_root, to_markup
from cmvmed.recordings import SensorSignals
from cmvmed.recordings.sound_files import read_audio
from cmvmed.workbench.frames import FloatArray, Signal
from cmvmed.workbench.project_rows import ProjectRows
from cmvmed.workbench.report.safe_text import short

__all__ = ["Sparkline", "envelope", "sparklines"]

WIDTH, HEIGHT, N_STEPS = 220.0, 40.0, 110
MAX_SIGNALS = 6  # per row


@dataclass(frozen=True)
class Sparkline:
    """The drawing of one signal."""

    name: str
    figure: str


def sparklines(rows: ProjectRows | None, row: int, prefix: str) -> list[Sparkline]:
    """The signals of a row; none if the files have no signals, or are gone. ``prefix`` starts the HTML ids."""
    if rows is None:
        return []
    found = []
    for number, (name, signal) in enumerate(list(rows.table.signals.items())[:MAX_SIGNALS]):
        samples = _samples(signal, row)
        if samples is not None and len(samples) > 1:
            found.append(Sparkline(short(name), _draw(samples, f"{prefix}-{number}", short(name))))
    return found


def _samples(signal: Signal, row: int) -> FloatArray | None:
    """The waveform of a row, (n_samples,); None if it has none or the file cannot be read."""
    item: Any = signal.items[row]
    if item is None:
        return None
    if not signal.is_sound or isinstance(signal.items, SensorSignals):
        samples = np.asarray(item, dtype=np.float64).ravel()
        return np.asarray(samples[np.isfinite(samples)])
    try:
        channels, _ = read_audio(item)
    except (OSError, ValueError, ImportError):
        return None
    return np.asarray(channels[signal.channel or 0], dtype=np.float64)


def envelope(samples: FloatArray, n_steps: int = N_STEPS) -> FloatArray:
    """At most 2 n_steps samples: the lowest and highest of each stretch, so that no peak is lost."""
    if len(samples) <= 2 * n_steps:
        return samples
    parts = np.array_split(samples, n_steps)
    return np.array([bound for part in parts for bound in (part.min(), part.max())])


def _draw(samples: FloatArray, element_id: str, name: str) -> str:
    drawn, low, high = envelope(samples), float(samples.min()), float(samples.max())
    x = Axis(0.0, len(drawn) - 1.0, 1.0, WIDTH - 1.0)
    y = Axis(low, high, HEIGHT - 2.0, 2.0) if high > low else Axis(low - 1.0, low + 1.0, HEIGHT - 2.0, 2.0)
    curve = path([(x(i), y(value)) for i, value in enumerate(drawn)], class_="signal")
    description = f"{len(samples):,} samples from {low:.3g} to {high:.3g}."
    svg = svg_root(element_id, f"Signal {name}", description, WIDTH, HEIGHT, element("g", curve))
    svg.set("class", "sparkline")
    return to_markup(svg)
