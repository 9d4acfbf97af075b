# Two commands do everything: `make demo` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint slow dist lowest clean

$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[audio,plot]'
	touch $@

$(VENV)/.test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

demo: $(VENV)/.demo
	$(BIN)/cmvmed demo

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/bandit -q -r src -ll

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m "not slow"

slow: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m slow

dist: $(VENV)/.test
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# The fast suite with the lowest versions that pyproject.toml allows, for UV_PYTHON=3.11 or another version of Python.
UV_PYTHON ?= 3.11
lowest:
	uv venv --clear --python $(UV_PYTHON) .venv-lowest
	uv pip install --python .venv-lowest --resolution lowest-direct --editable '.[test]'
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -n auto -m "not slow and not browser"

clean:
	rm -rf $(VENV) .venv-lowest demo-output .mypy_cache .pytest_cache .ruff_cache
