SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The first interpreter that is new enough; name another with `make PYTHON=…`.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
LOCKED := $(PIP) install --require-hashes --no-deps --only-binary :all:
COMPILE := $(VENV)/lock/bin/uv pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-header --no-annotate --group build --extra dev-server

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(VENV)/.test ## create .venv with everything that running, checking and testing need

.PHONY: run
run: $(VENV)/.run ## set up, start the whole product on this machine and send one sample event through it
	@exec $(BIN)/tidings dev --sample

.PHONY: test
test: $(VENV)/.test ## set up and run all tests
	@tests/install-mariadb.sh
	@$(BIN)/python -m pytest

.PHONY: check
check: $(VENV)/.test ## format, lint, types, fast tests
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q -m "not slow and not e2e"

.PHONY: bench
bench: $(VENV)/.test ## run the benchmarks and print ratios
	@$(BIN)/python -m bench

.PHONY: lock
lock: $(VENV)/.made ## choose the newest allowed dependencies anew and write the lock files
	@$(PYTHON) -m venv $(VENV)/lock
	@$(VENV)/lock/bin/python -m pip --disable-pip-version-check --quiet install uv
	@$(COMPILE) --extra test --output-file requirements-test.lock
	@$(COMPILE) --constraint requirements-test.lock --output-file requirements.lock

.PHONY: clean
clean: ## remove everything that make created, but not the state of `tidings dev`
	@rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "Tidings needs Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || $(MAKE) --no-print-directory venv-module
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.run: requirements.lock pyproject.toml $(VENV)/.made
	@echo "installing into $(VENV)"
	@$(LOCKED) --requirement requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.test: requirements-test.lock pyproject.toml $(VENV)/.made
	@echo "installing into $(VENV)"
	@$(LOCKED) --requirement requirements-test.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# Debian keeps the venv module's inner part in a package of its own.
.PHONY: venv-module
venv-module:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			"$$($(PYTHON) -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')" >/dev/null; \
	else \
		echo "$(PYTHON) cannot create virtual environments: install your system's python3-venv package" >&2; exit 1; \
	fi
