# The checks of a change, quickest first. `.ci/run` does all of it from nothing, with the slow tests and the other Python versions.
PYTHON ?= python3

.PHONY: check docs format lint types imports prose test

check: lint types imports prose test  ## everything below

format:  ## rewrites files as lint wants them
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy -p fakeapiserver -p conformance

imports:
	lint-imports

prose:  ## sentences that are not plain English
	$(PYTHON) tests/shape/prose.py fakeapiserver auth admission conformance tests docs *.md

test:
	$(PYTHON) -m pytest -n 2

docs:  ## the site, in build/site; needs `pip install -e '.[docs]'`
	$(PYTHON) -m zensical build --strict
