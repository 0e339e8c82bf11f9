# Everything a developer or a build server runs. `make` alone says what there is.
# The first command of a fresh checkout creates .venv with the locked packages; nothing else is needed before.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# One process per core; PYTEST_FLAGS="-k domain -x" and the like narrow a run.
JOBS         ?= auto
PYTEST_FLAGS ?=
# How many times the usual number of random cases `make fuzz` runs.
CASES        ?= 20
LOCK_FLAGS   ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check format fuzz bench lock java clean

help: ## this list
	@echo "SMILE: subscriptions as relational views over event streams."
	@echo "Start with \`make demo\`, then \`make test\`. The first run sets up $(VENV), which takes about a minute."
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## tickets on three brokers of this machine: one is killed, the view stays true (half a minute)
	$(BIN)/python examples/tickets/demo.py

test: check java ## everything that must hold before a commit: check, then all tests (installs Java for Spark if there is none)
	$(BIN)/pytest -n $(JOBS) $(PYTEST_FLAGS)

check: $(READY) ## lint, layout and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(READY) ## let ruff repair layout and what it can of the lint
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

fuzz: $(READY) ## random tests only, CASES=20 times as many cases, new ones each time
	$(BIN)/pytest -n $(JOBS) -m "random or hypothesis" --cases $(CASES) $(PYTEST_FLAGS)

bench: $(READY) ## every benchmark of bench/, one table each
	@for file in bench/[a-z]*.py; do \
	    echo "== $$file"; $(BIN)/python -m bench.$$(basename $$file .py) || exit 1; \
	done

lock: ## resolve requirements.lock anew after a change of pyproject.toml (LOCK_FLAGS=--upgrade for newest)
	tools/lock.sh $(LOCK_FLAGS)

java: ## make sure that Java 17 or newer is there, for Spark: archive, recompute, verify and their tests
	@tools/java.sh

clean: ## remove caches and build output; .venv stays
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml tools/venv.sh
	@tools/venv.sh $(PYTHON) $(VENV)
	@touch $@
