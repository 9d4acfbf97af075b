"""Three made jobs: a table of two sensors, a folder of sound files, a table of texts, numbers and categories with gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import soundfile


def write_windows(folder, n=200, share_labeled=0.05, seed=0):
    """windows.csv: accelerometer and gyroscope, 5 % labels, the gyroscope absent in rows 3 to 9."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(n) % 2
    sensors = rng.normal(size=(n, 6)) + 1.5 * y[:, None]
    frame = pd.DataFrame(sensors.round(4), columns=["acc_x", "acc_y", "acc_z", "gyr_x", "gyr_y", "gyr_z"])
    frame.insert(0, "window_id", [f"w{i:03d}" for i in range(n)])
    frame["timestamp"] = pd.date_range("2024-01-01", periods=n, freq="min").strftime("%Y-%m-%d %H:%M")
    frame["subject"] = [f"s{i % 8}" for i in range(n)]
    labeled = np.isin(np.arange(n), rng.permutation(n)[: round(share_labeled * n)])
    frame["stroke"] = np.where(labeled, np.array(["crawl", "back"])[y], "unknown")
    frame.loc[3:9, ["gyr_x", "gyr_y", "gyr_z"]] = np.nan
    frame.loc[20, "acc_x"] = np.nan
    frame.to_csv(folder / "windows.csv", index=False)
    return np.array(["crawl", "back"])[y]


def write_recordings(folder, n=10, seed=0, n_labeled=4):
    """recordings/mic_a/000.wav ...: two microphones, of which the second lacks event 003; labels.csv."""
    rng = np.random.default_rng(seed)
    for mic in ("mic_a", "mic_b"):
        (folder / "recordings" / mic).mkdir(parents=True)
        for i in range(n):
            tone = np.sin(2 * np.pi * (200 if i % 2 else 900) * np.arange(2400) / 4000)
            samples = 0.2 * tone + 0.05 * rng.normal(size=2400)
            if (mic, i) != ("mic_b", 3):
                soundfile.write(folder / "recordings" / mic / f"{i:03d}.wav", samples, 4000)
    lines = ["id,label", *(f"{i:03d},{'low' if i % 2 else 'high'}" for i in range(n_labeled))]
    (folder / "recordings" / "labels.csv").write_text("\n".join(lines), encoding="utf-8")


def write_tickets(folder, n=120, seed=0):
    """tickets.csv: separated by semicolons, decimal commas, texts absent in 11 rows, categories with gaps, dates."""
    rng = np.random.default_rng(seed)
    words = {"return": ["broken", "refund", "late", "money"], "praise": ["good", "fast", "thanks", "happy"]}
    truth = rng.permutation(["return", "praise"] * (n // 2))
    both = [*words["return"], *words["praise"]]
    frame = pd.DataFrame(
        {
            "ticket": range(1000, 1000 + n),
            "comment": [" ".join([*rng.choice(words[t], 4), *rng.choice(both, 2)]) for t in truth],
            "price": [f"{value:.2f}".replace(".", ",") for value in rng.gamma(2, 20, n) + 10 * (truth == "return")],
            "weight": [f"{value:.2f}".replace(".", ",") for value in rng.normal(size=n)],
            "color": rng.choice(["red", "blue", "N/A"], n),
            "prime": rng.choice(["yes", "no"], n),
            "bought": pd.date_range("2024-01-01", periods=n).strftime("%d.%m.%Y"),
            "category": np.where(rng.random(n) < 0.3, truth, ""),
        }
    )
    frame.loc[5:15, "comment"] = ""
    frame.to_csv(folder / "tickets.csv", sep=";", index=False)
    return truth
