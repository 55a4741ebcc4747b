# One command each; every target sets up what it needs by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup run test test-fast check bench chaos format lock clean

setup: $(VENV)/.ready

PINTEREST_LOCK := tests/sandbox/pinterest_sdk.lock

# The stamp is newer than these files as long as the environment matches them.
$(VENV)/.ready: requirements.lock $(PINTEREST_LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "socialpub needs Python 3.11 or newer: make PYTHON=python3.12 setup")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@rm -rf $(VENV)/pinterest
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --target $(VENV)/pinterest -r $(PINTEREST_LOCK)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: setup
	$(BIN)/socialpub demo

# Everything: within seven minutes on two idle cores.
test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Without the real processes (e2e) and the grid of steps and faults: within 90 seconds.
test-fast: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not e2e and not grid"

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python -m tests.bench

# Networks whose every behaviour is drawn: MINUTES of it; SEED and EPISODE repeat what was found.
MINUTES ?= 10

chaos: setup
	$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(EPISODE),--episode $(EPISODE))

COMPILE := uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links

# Needs uv; writes the one file of locked requirements anew, and that of Pinterest's library, which only tests use.
lock:
	$(COMPILE) --group dev pyproject.toml -o requirements.lock
	$(COMPILE) --group pinterest -o $(PINTEREST_LOCK)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
