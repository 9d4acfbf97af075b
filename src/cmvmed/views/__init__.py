"""A view's rows: filled, scaled, with a kernel, and the problem that labeled and unlabeled rows make."""
