# `make` alone lists what there is. Every target installs what it needs first and is cheap to run again.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/ready
PYTHON3 ?= $(shell command -v python3.11 || command -v python3)
DATA ?= ../shared/data
INDEX ?= lance
PORT ?= 8000
SEED ?= $(shell date +%s)
PROFILES ?= stream
COMPOSE = docker compose --file infra/compose.yaml --env-file infra/compose/secrets/env $(addprefix --profile ,$(PROFILES))
export KERAS_BACKEND := tensorflow

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## .venv with everything, locked

$(READY): requirements.lock
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "Python 3.11 is needed; name it: make PYTHON3=/path/to/python3.11" >&2; exit 2; }
	@echo "installing into $(VENV) ..."
	@$(PYTHON3) -m venv $(VENV)
	@# uv itself comes from the lock too: pip takes hashes only from a file.
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.txt
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $(VENV)/uv.txt
	@# Compiled here once: where Python is told to write no bytecode, every start would compile all it imports anew.
	@VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet --compile-bytecode --require-hashes --no-deps \
		--requirement requirements.lock
	@touch $@

lock: $(READY) ## requirements.lock, and from it those of the images, from setup.py
	$(VENV)/bin/uv pip compile --quiet setup.py pyproject.toml --all-extras --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements.lock
	$(PYTHON) -m infra.images lock

demo: $(READY) ## everything from nothing: train on examples/, export, encode, ask; INDEX=elasticsearch for a real one
	@$(PYTHON) -m infra.demo --index $(INDEX)

page: $(READY) ## the page on what the demo built, built first where it is missing; PORT=8000
	@test -e build/demo/index/live.json || $(PYTHON) -m infra.demo
	@$(PYTHON) -m search --port $(PORT)

retrain: $(READY) ## the next model from what people answered: train, compare, publish what is no worse; ARGS=--force
	@$(PYTHON) -m infra.retrain $(ARGS)

up: ## the whole system on this machine by Docker Compose (infra/compose/README.md); PROFILES= leaves Pub/Sub out
	@command -v docker > /dev/null || { echo "Docker is needed, with Compose; without it: make demo" >&2; exit 2; }
	@test -d $${PAUSE_MODEL:-build/demo/serving}/pause \
		|| { echo "there is no model to publish: make demo makes one, PAUSE_MODEL names another" >&2; exit 2; }
	@infra/compose/secrets.sh
	@$(COMPOSE) up --detach --build --wait

down: ## ends what `make up` started; volumes and secrets stay
	@$(COMPOSE) down

template: $(READY) ## the Dataflow flex template's metadata; IMAGE=... BUCKET=gs://... for the template itself
	@$(PYTHON) -m infra.dataflow.template $(if $(IMAGE),--image $(IMAGE)) $(if $(BUCKET),--bucket $(BUCKET)) $(ARGS)

check: $(READY) ## ruff and mypy
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

test: $(READY) ## all tests
	@$(PYTHON) -m pytest

test-random: $(READY) ## all tests, files and tests in random order; SEED=1 for a known one
	@echo "SEED=$(SEED)"
	@$(PYTHON) -m pytest --random-order --random-order-bucket=module --random-order-seed=$(SEED)

check-infra: $(READY) ## what would be deployed, held against real validators; FULL=1 for the slow ones too
	@$(PYTHON) -m infra.checks $(if $(FULL),--full)

reproduce: $(READY) ## the measurements, on the data in DATA=... (default ../shared/data)
	@$(PYTHON) -m benchmarks reproduce --data $(DATA)

clean: ## remove what the demo and the measurements built
	rm -rf build

.PHONY: help setup lock demo page retrain up down template check check-infra test test-random reproduce clean
