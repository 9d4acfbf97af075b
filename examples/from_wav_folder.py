"""Classify a folder of wav files, two sensors per event.

The folder holds ``<event>_sensor1.wav`` and ``<event>_sensor2.wav`` for every event, and ``labels.csv`` with the columns
``event`` and ``label``, where the label is empty for most events.
"""

import sys
from pathlib import Path

import pandas as pd
from sklearn.pipeline import make_pipeline

from cmvmed import CMVMED
from cmvmed.features import MFCC, views_transformer

folder = Path(sys.argv[1])
events = pd.read_csv(folder / "labels.csv")
for sensor in ("sensor1", "sensor2"):
    events[sensor] = [str(folder / f"{event}_{sensor}.wav") for event in events["event"]]

to_views = views_transformer(sensor1=(MFCC(), "sensor1"), sensor2=(MFCC(), "sensor2"))
model = make_pipeline(to_views, CMVMED(views=to_views.views)).fit(events, events["label"])

events["predicted"], events["confidence"] = model.predict(events), model.predict_proba(events).max(axis=1)
print(events[["event", "label", "predicted", "confidence"]].to_string(index=False))
