"""New rows compared with the training rows: which are unlike them, and which sensors have a fault."""
