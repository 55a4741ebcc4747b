# Every target installs its own requirements.

# bash, because a pipe must fail when its first command fails.
SHELL := bash
.SHELLFLAGS := -e -o pipefail -c

# Tests start hundreds of short processes. Without compiled files, a tenth of the processor time goes into compiling modules.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/pip install --disable-pip-version-check --require-hashes
# Print one line per fetched package instead of pip's long output.
BRIEFLY := | sed -unE 's/^Collecting ([^ ]+)==([^ ]+).*/  \1 \2/p; s/^Installing collected packages.*/  unpacking them/p'

DEV_LOCK := tests/requirements.lock
PINTEREST_LOCK := tests/sandbox/pinterest_sdk.lock
CLIENTS_LOCK := tests/clients/generator.lock
CLIENTS := $(VENV)/clients
AXE := $(VENV)/axe
BLUESKY := $(VENV)/bluesky
TWITTER_TEXT := $(VENV)/twitter-text

.PHONY: setup install uninstall image release dev run test test-fast grid endurance endurance-shared endurance-alone fuzz check clients bluesky bench screenshots chaos simulate soak format manual-tables vendored lock clean

# Install only the packages that socialpub needs to run.
setup: $(VENV)/.ready

# Install or upgrade a service on this machine, as root.
install:
	@PYTHON="$(PYTHON)" systemd/install

# Remove the service, but keep the configuration and the data.
uninstall:
	@systemd/uninstall

# Build the container image with podman, docker or buildah. BASE is another image with Python. IMAGE is the new image's name.
BUILDER ?= $(firstword $(foreach name,podman docker buildah,$(shell command -v $(name))))
IMAGE ?= socialpub

image:
	@test -n "$(BUILDER)" || { echo "Install podman, docker or buildah" >&2; exit 1; }
	$(BUILDER) build $(if $(filter-out %docker,$(BUILDER)),--format docker) --file systemd/container/Containerfile --tag $(IMAGE) \
		$(if $(BASE),--build-arg BASE=$(BASE)) .

# Build a release of the current commit into dist/: wheel, source distribution, image, checksums and notes. The commit must
# have the tag of the release. ANYWAY=1 builds any other commit.
release: setup
	@BUILDER="$(BUILDER)" BASE="$(BASE)" ANYWAY="$(ANYWAY)" $(BIN)/python -m tests.release

# Install the tools of tests and checks. `make test`, `make check` and others do this themselves.
dev: $(VENV)/.dev-ready $(if $(shell command -v npm),$(AXE)/.ready $(TWITTER_TEXT)/.ready)

# A stamp is newer than these files while the environment matches them.
$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) and "socialpub needs Python 3.11, 3.12 or 3.13: make PYTHON=python3.13 setup")'
	@test -x $(BIN)/pip || { echo "Creating an environment for socialpub's Python packages in $(VENV)"; $(PYTHON) -m venv $(VENV); } \
		|| { rm -rf $(VENV); echo "Install Python's venv module; on Debian and Ubuntu: sudo apt install python3-venv" >&2; exit 1; }
	@echo "Installing the packages of requirements.lock"
	@$(INSTALL) -r requirements.lock $(BRIEFLY)
	@echo "Installing socialpub from this folder"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
	@echo "Done. For a demo: make run. The command is $(BIN)/socialpub"

$(VENV)/.dev-ready: $(VENV)/.ready $(DEV_LOCK) $(PINTEREST_LOCK)
	@echo "Installing the tools of tests and checks from $(DEV_LOCK)"
	@$(INSTALL) -r $(DEV_LOCK) $(BRIEFLY)
	@echo "Installing Pinterest's library for tests into $(VENV)/pinterest"
	@rm -rf $(VENV)/pinterest
	@$(INSTALL) --target $(VENV)/pinterest -r $(PINTEREST_LOCK) $(BRIEFLY)
	@touch $@

$(AXE)/.ready: tests/axe/package.json tests/axe/package-lock.json
	@echo "Installing axe-core, which checks accessibility in tests, into $(@D)"
	@rm -rf $(@D) && mkdir -p $(@D) && cp $^ $(@D)
	@npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(TWITTER_TEXT)/.ready: $(addprefix tests/twitter_text/,package.json package-lock.json .npmrc)
	@echo "Installing twitter-text, X's library with which tests compare lengths and links, into $(@D)"
	@rm -rf $(@D) && mkdir -p $(@D) && cp $^ $(@D)
	@npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

run: setup
	$(BIN)/socialpub demo

# Test files are in memory if /dev/shm has 4 GB and may hold programs. Tests then never wait for a disk.
IN_MEMORY := $(shell grep ' /dev/shm ' /proc/mounts | grep -qv noexec \
	&& [ "$$(df --output=avail /dev/shm | tail -n 1)" -gt 4000000 ] && echo TMPDIR=/dev/shm)

# Test every promise, within five minutes on two idle cores. The grid runs pairwise, and generated tests repeat fixed
# examples. Three processes run at a time, because a test often waits for its processes and its browser.
test: dev
	$(IN_MEMORY) $(BIN)/python -m pytest -n 3 --dist worksteal -m "not endurance and not whole_grid and not bluesky and not source"

# Run the tests that do not need real processes (e2e), real browsers (chromium) or the grid: within two minutes.
test-fast: dev
	$(IN_MEMORY) $(BIN)/python -m pytest -n 2 --dist worksteal -m "not e2e and not chromium and not grid and not endurance and not bluesky and not source"

GRID ?= grid or whole_grid

# Run the whole grid: every fault at every step of every kind of post, with every clock, delay and kill around the step.
# GRID=whole_grid leaves out the cells of `make test`.
grid: dev
	$(IN_MEMORY) $(BIN)/python -m pytest -n 3 --dist worksteal -m "$(GRID)"

# Run tests that take minutes or need root: long scenarios, real units, containers, power cuts, full disks, thousands of
# files, and new examples for all generated tests. A skipped test prints the reason. SEED repeats the examples of a run.
# Two processes run the tests that share the machine. Beside them, one runs those of tests/endurance, which mount, fill and
# cut disks, and mostly wait.
endurance endurance-shared endurance-alone: SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
endurance: dev $(VENV)/wheelhouse/.ready
	@echo "Generated tests use new examples. To repeat them: make endurance SEED=$(SEED)"
	@$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target SEED=$(SEED) endurance-shared endurance-alone
	@echo "To repeat these examples: make endurance SEED=$(SEED)"

endurance-shared: dev
	$(IN_MEMORY) $(BIN)/python -m pytest -n 2 --dist worksteal -m "endurance or hypothesis" --ignore tests/endurance \
		--hypothesis-profile=endurance --hypothesis-seed=$(SEED) -rs tests

endurance-alone: dev
	$(BIN)/python -m pytest -m endurance --hypothesis-profile=endurance --hypothesis-seed=$(SEED) -rs tests/endurance

# `make install` in a machine without a network installs these packages.
$(VENV)/wheelhouse/.ready: requirements.lock
	@echo "Fetching the packages of requirements.lock for tests of make install"
	@rm -rf $(@D) && mkdir $(@D)
	@$(BIN)/pip --python /usr/bin/python3 download --quiet --disable-pip-version-check --require-hashes --dest $(@D) -r $<
	@touch $@

# Upload FILES damaged media files. SEED repeats a run.
FILES ?= 20000

fuzz: dev
	$(BIN)/python -m tests.endurance.media_fuzz --files $(FILES) $(if $(SEED),--seed $(SEED))

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell README.md config.example.toml socialpub systemd tests Makefile .ci
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive socialpub
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal -m source

format: dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Write the manual's tables of options, states, phases and settings from the code.
manual-tables: setup
	$(BIN)/python -m tests.manual_tables

# Fetch the scripts and styles of the pages, in the versions of vendored.json, and their licenses. Needs npm.
vendored: setup
	$(BIN)/python -m tests.vendored

# Generate clients in Python and TypeScript from a running appliance, and publish to the sandbox with them. Without npm
# (Debian: nodejs npm), only the Python client runs.
clients: dev $(CLIENTS)/python/.ready $(if $(shell command -v npm),$(CLIENTS)/node/.ready)
	$(BIN)/python -m tests.clients $(CLIENTS)

$(CLIENTS)/python/.ready: tests/clients/generator.lock
	@echo "Installing the generator of Python clients into $(@D)"
	@rm -rf $(@D)
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install --disable-pip-version-check --require-hashes -r $< $(BRIEFLY)
	@touch $@

$(CLIENTS)/node/.ready: tests/clients/package.json tests/clients/package-lock.json
	@echo "Installing the generator of TypeScript clients into $(@D)"
	@rm -rf $(@D) && mkdir -p $(@D) && cp $^ $(@D)
	@npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Install Bluesky's own server and run the stories of tests/bluesky against it. Needs npm on x86-64 or ARM64, no compiler.
bluesky: dev $(BLUESKY)/.ready
	$(IN_MEMORY) $(BIN)/python -m pytest -m bluesky tests/bluesky

BLUESKY_FILES := $(addprefix tests/bluesky/server/,package.json package-lock.json .npmrc)

$(BLUESKY)/.ready: $(BLUESKY_FILES)
	@command -v npm >/dev/null || { echo "Install npm; on Debian and Ubuntu: sudo apt install nodejs npm" >&2; exit 1; }
	@echo "Installing Bluesky's server, 541 MB, into $(@D)"
	@rm -rf $(@D) && mkdir -p $(@D) && cp $^ $(@D)
	@npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Measure speed and memory beside their floors, within eight minutes on two idle cores. Results are in build/bench/.
# BENCH are options, such as --quick or --against=../other-checkout.
BENCH ?=

bench: dev
	$(BIN)/python -m tests.bench $(BENCH)

# Take screenshots of every dashboard page: desktop and phone, light and dark. SCREENSHOTS is their folder.
SCREENSHOTS ?= build/screenshots

screenshots: dev
	$(BIN)/python -m tests.screenshots $(SCREENSHOTS)

# Make DELIVERIES with real processes while processes are killed and networks fail: at most ten minutes on two idle cores.
# SEED repeats the calls and kills of a run.
DELIVERIES ?= 5000

chaos: dev
	$(BIN)/python -m tests.chaos --deliveries $(DELIVERIES) $(if $(SEED),--seed $(SEED))

# Run one process for MINUTES against networks with random behavior. SEED and EPISODE repeat a finding.
MINUTES ?= 10

simulate: dev
	$(BIN)/python -m tests.simulation --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(EPISODE),--episode $(EPISODE))

# Apply moderate load for SOAK_MINUTES. Check that memory, descriptors, threads and files do not grow.
SOAK_MINUTES ?= 30

soak: dev
	$(BIN)/python -m tests.endurance.soak --minutes $(SOAK_MINUTES)

COMPILE := uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links

# Lock all requirements again: of socialpub, of tests and checks, of Pinterest's library and of the client generator. Needs
# uv.
lock:
	$(COMPILE) --group build --extra notify pyproject.toml -o requirements.lock
	$(COMPILE) --group dev -c requirements.lock -o $(DEV_LOCK)
	$(COMPILE) --group pinterest -o $(PINTEREST_LOCK)
	$(COMPILE) --group clients -o $(CLIENTS_LOCK)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
