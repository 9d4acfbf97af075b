"""From raw sound of four sensors and 50 labels to a classifier, a comparison and a picture: what ``cmvmed demo`` shows."""
