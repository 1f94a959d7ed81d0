# `make` alone lists what there is. Every target installs what it needs first and is cheap to run again.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/ready
UV_VERSION := 0.13.7
PYTHON3 ?= $(shell command -v python3.11 || command -v python3)
DATA ?= ../shared/data
INDEX ?= lance
PORT ?= 8000
SEED ?= $(shell date +%s)
export KERAS_BACKEND := tensorflow

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## .venv with everything, locked

$(READY): requirements.lock
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "Python 3.11 is needed; name it: make PYTHON3=/path/to/python3.11" >&2; exit 2; }
	@echo "installing into $(VENV) ..."
	@$(PYTHON3) -m venv $(VENV)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@# Compiled here once: where Python is told to write no bytecode, every start would compile all it imports anew.
	@VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet --compile-bytecode --no-deps --requirement requirements.lock
	@touch $@

lock: $(READY) ## requirements.lock from setup.py
	$(VENV)/bin/uv pip compile --quiet setup.py pyproject.toml --all-extras --python-version 3.11 --no-header \
		--no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements.lock

demo: $(READY) ## everything from nothing: train on examples/, export, encode, ask; INDEX=elasticsearch for a real one
	@$(PYTHON) -m infra.demo --index $(INDEX)

page: $(READY) ## the page on what the demo built, built first where it is missing; PORT=8000
	@test -e build/demo/index/live.json || $(PYTHON) -m infra.demo
	@$(PYTHON) -m search --port $(PORT)

retrain: $(READY) ## the next model from what people answered on the page: train, publish, move the index to it
	@$(PYTHON) -m infra.retrain

check: $(READY) ## ruff and mypy
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

test: $(READY) ## all tests
	@$(PYTHON) -m pytest

test-random: $(READY) ## all tests, files and tests in random order; SEED=1 for a known one
	@echo "SEED=$(SEED)"
	@$(PYTHON) -m pytest --random-order --random-order-bucket=module --random-order-seed=$(SEED)

reproduce: $(READY) ## the measurements, on the data in DATA=... (default ../shared/data)
	@$(PYTHON) -m benchmarks reproduce --data $(DATA)

clean: ## remove what the demo and the measurements built
	rm -rf build

.PHONY: help setup lock demo page retrain check test test-random reproduce clean
