"""A view's rows: filled, scaled, with a kernel, as labeled and unlabeled rows of a fit."""
