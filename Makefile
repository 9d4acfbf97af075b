# `make demo`, `make test` and `make docs` do everything. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint slow reproduce docs review dist lowest clean

$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[audio,plot,workbench]'
	touch $@

$(VENV)/.test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

demo: $(VENV)/.demo
	$(BIN)/cmvmed demo

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/bandit -q -r src experiments -ll

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

slow: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m slow

# The paper's Table 1 and Figure 2 and a page of them. By default the paper's methods on WebKB with 2 splits, about a
# minute; `make reproduce EXPERIMENT=all RUN=--full` runs everything, which takes hours. An interrupted run continues.
EXPERIMENT ?= table1
RUN ?= --methods paper --datasets webkb --splits 2
reproduce: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments $(EXPERIMENT) $(RUN)
	$(BIN)/python -m experiments report

docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky -b html docs docs/_build/html
	$(BIN)/python docs/_extensions/internal_links.py docs/_build/html

# The checks of the Scientific Python development guide, spelling, docstrings of public names, security of workflows
review: $(VENV)/.test
	$(BIN)/python -m pip install --quiet 'sp-repo-review[cli]' codespell interrogate zizmor
	$(BIN)/repo-review .
	$(BIN)/codespell
	$(BIN)/interrogate --quiet src/cmvmed experiments
	$(BIN)/zizmor --quiet --offline .github/workflows

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
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -n auto --dist worksteal -m "not slow and not browser"

clean:
	rm -rf docs/_build docs/auto_examples docs/reference/generated docs/reference/examples docs/sg_execution_times.rst
	rm -rf $(VENV) .venv-lowest dist demo-output .mypy_cache .pytest_cache .ruff_cache
