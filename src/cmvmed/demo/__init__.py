"""The demonstration ``cmvmed demo``: simulated sound at four sensors, 50 labels, a comparison and a figure."""
