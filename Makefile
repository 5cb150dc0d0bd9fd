# Every target does its own set-up: Python 3.11+ and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Of the referee: a seed of one's own, and a room, a claim or one case.
SEED ?=
CASE ?=

.PHONY: help demo test test-slow docs referee reproduced bench lint wheel-check clean

help:
	@echo "make demo         swap a generated 1940 Massachusetts and print the published table beside this run's"
	@echo "make test         linters, type checker and all tests but the long ones"
	@echo "make test-slow    the long simulations, the kill tests, pages in a browser, and all cases of tests that repeat a claim"
	@echo "make docs         build the documentation site into site/, which is read without a network"
	@echo "make reproduced   compute every published number again; rewrites docs/reproduced*, docs/errata.md"
	@echo "make referee      thousands of random cases in each room beside independent answers; SEED=5 for a seed"
	@echo "make bench        benchmarks; rewrites benchmarks/RESULTS.md"
	@echo "make wheel-check  build the wheel, install it in empty environments of every Python here, and try it"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "stirred needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

demo: $(READY)
	$(BIN)/stirred demo swap

lint: $(READY)
	@! grep -rnEI '^(<{7}|>{7}|\|{7})( |$$)' --exclude-dir=.venv --exclude-dir=.git . || (echo "Markers of a merge were left." && exit 1)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src

test: lint
	$(BIN)/pytest -m "not slow" -n 2 --dist worksteal

# The tools of tests in a browser and of the documentation site are installed here, so that make test does without them.
test-slow: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[browser,docs]' \
		|| echo "The tools of the tests in a browser and of the site could not be installed: those tests are skipped."
	STIRRED_ALL_CASES=1 $(BIN)/pytest -m "slow or repeats" -n 2 --dist worksteal

# The tool is installed here and by make test-slow: make demo and make test do without it.
docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python scripts/site/build.py site
	@echo "Open site/index.html"

reproduced: $(READY)
	$(BIN)/python -m stirred.lab.reproduce.verdicts docs
	$(BIN)/python scripts/errata_page.py

referee: $(READY)
	@STIRRED_REFEREE_SEED=$(SEED) $(BIN)/python tests/referee/run_referee.py $(CASE)

bench: $(READY)
	$(BIN)/python benchmarks/swap.py
	$(BIN)/python benchmarks/swap_answers.py
	$(BIN)/python benchmarks/undoing.py
	$(BIN)/python benchmarks/reports.py
	$(BIN)/python benchmarks/audits.py
	$(BIN)/python benchmarks/specifications.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/accounting.py
	$(BIN)/python benchmarks/tradeoffs.py
	$(BIN)/python benchmarks/semantics.py
	$(BIN)/python benchmarks/survey.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python benchmarks/topdown.py

# In environments of its own, with whatever versions of the dependencies are newest.
wheel-check:
	scripts/wheel_check.sh

clean:
	rm -rf $(VENV) build site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
