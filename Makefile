# One command each; every target sets up what it needs by itself.

# bash, since a pipe must fail when its first half does.
SHELL := bash
.SHELLFLAGS := -e -o pipefail -c

# Tests start hundreds of short processes. Compiling every module in each of them takes a tenth of the processor time.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/pip install --disable-pip-version-check --require-hashes
# A line per package that is fetched, instead of pip's long account of each.
BRIEFLY := | sed -unE 's/^Collecting ([^ ]+)==([^ ]+).*/  \1 \2/p; s/^Installing collected packages.*/  unpacking them/p'

DEV_LOCK := tests/requirements.lock
PINTEREST_LOCK := tests/sandbox/pinterest_sdk.lock
CLIENTS_LOCK := tests/clients/generator.lock
CLIENTS := $(VENV)/clients
AXE := $(VENV)/axe

.PHONY: setup install uninstall image release dev run test test-fast grid endurance fuzz check clients bench screenshots chaos simulate soak format manual-tables vendored lock clean

# What running socialpub needs, and nothing else.
setup: $(VENV)/.ready

# Where `make install` puts everything; below DESTDIR, for those who make packages: then no user is made and systemd is told
# nothing.
DESTDIR ?=
PROGRAM_DIR ?= /opt/socialpub
CONFIG_DIR ?= /etc/socialpub
DATA_DIR ?= /var/lib/socialpub
COMMAND_DIR ?= /usr/local/bin
UNIT_DIR ?= /usr/local/lib/systemd/system
SERVICE_USER ?= socialpub
PLACES := $(if $(DESTDIR),--destdir "$(DESTDIR)") --program-dir "$(PROGRAM_DIR)" --config-dir "$(CONFIG_DIR)" \
	--data-dir "$(DATA_DIR)" --command-dir "$(COMMAND_DIR)" --unit-dir "$(UNIT_DIR)" --user "$(SERVICE_USER)"

# A service of this machine, as root. The environment here is made as whoever owns the checkout, so that nothing in it
# comes to belong to root.
install:
	@owner=$$(stat --format %U .); if [ "$$(id -u)" = 0 ] && [ "$$owner" != root ] && command -v sudo >/dev/null; \
		then sudo --user="$$owner" --set-home $(MAKE) --no-print-directory --silent setup PYTHON="$(PYTHON)"; \
		else $(MAKE) --no-print-directory --silent setup; fi
	@$(BIN)/socialpub install-service $(PLACES)

# Configuration and data stay.
uninstall:
	@test -x $(BIN)/socialpub || $(MAKE) --no-print-directory --silent setup
	@$(BIN)/socialpub uninstall-service $(PLACES)

# The container, with what is installed here for that. BASE is another image with Python, IMAGE the name.
BUILDER ?= $(firstword $(foreach name,podman docker buildah,$(shell command -v $(name))))
IMAGE ?= socialpub
# The source in the image has no git, so it is given its version.
VERSION = $(shell $(PYTHON) -c 'from socialpub.core import version; print(version.current())' 2>/dev/null)

image:
	@test -n "$(BUILDER)" || { echo "podman, docker or buildah is needed" >&2; exit 1; }
	$(BUILDER) build $(if $(filter-out %docker,$(BUILDER)),--format docker) --file systemd/container/Containerfile --tag $(IMAGE) \
		$(if $(BASE),--build-arg BASE=$(BASE)) --build-arg VERSION=$(VERSION) .

# A release of the commit that is checked out, into dist/: wheel, source distribution, image, checksums and notes. The
# commit has the tag of the release. ANYWAY=1 builds any other one.
release: setup
	@BUILDER="$(BUILDER)" BASE="$(BASE)" ANYWAY="$(ANYWAY)" $(BIN)/python -m tests.release

# The tools of tests and checks besides; `make test`, `make check` and the others see to it themselves.
dev: $(VENV)/.dev-ready $(if $(shell command -v npm),$(AXE)/.ready)

# A stamp is newer than these files as long as the environment matches them.
$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "socialpub needs Python 3.11 or newer: make PYTHON=python3.12 setup")'
	@test -x $(BIN)/pip || { echo "Making an environment for socialpub's Python packages in $(VENV)"; $(PYTHON) -m venv $(VENV); } \
		|| { rm -rf $(VENV); echo "Python's venv module is needed; on Debian and Ubuntu: sudo apt install python3-venv" >&2; exit 1; }
	@echo "Installing what socialpub needs to run, as requirements.lock names it"
	@$(INSTALL) -r requirements.lock $(BRIEFLY)
	@echo "Installing socialpub itself, as it lies here"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
	@echo "Done. To see it at work: make run. The command is $(BIN)/socialpub"

$(VENV)/.dev-ready: $(VENV)/.ready $(DEV_LOCK) $(PINTEREST_LOCK)
	@echo "Installing the tools of tests and checks, as $(DEV_LOCK) names them"
	@$(INSTALL) -r $(DEV_LOCK) $(BRIEFLY)
	@echo "Installing Pinterest's own library, which only tests call, into $(VENV)/pinterest"
	@rm -rf $(VENV)/pinterest
	@$(INSTALL) --target $(VENV)/pinterest -r $(PINTEREST_LOCK) $(BRIEFLY)
	@touch $@

$(AXE)/.ready: tests/axe/package.json tests/axe/package-lock.json
	@echo "Installing axe-core, which tests ask whether pages are accessible, into $(@D)"
	@rm -rf $(@D) && mkdir -p $(@D) && cp $^ $(@D)
	@npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

run: setup
	$(BIN)/socialpub demo

# Files of tests are in memory if it has room for them and may hold programs. Tests then never wait for a disk.
IN_MEMORY := $(shell grep ' /dev/shm ' /proc/mounts | grep -qv noexec \
	&& [ "$$(df --output=avail /dev/shm | tail -n 1)" -gt 4000000 ] && echo TMPDIR=/dev/shm)

# Every promise: within five minutes on two idle cores. The grid of steps and faults is played pairwise, and generated
# tests repeat a few fixed examples. Three processes run at a time, since a test waits for its processes and its browser
# about as long as it works.
test: dev
	$(IN_MEMORY) $(BIN)/python -m pytest -n 3 --dist worksteal -m "not endurance and not whole_grid"

# Without the real processes (e2e), real browsers (chromium) and the grid of steps and faults: within two minutes.
test-fast: dev
	$(IN_MEMORY) $(BIN)/python -m pytest -n 2 --dist worksteal -m "not e2e and not chromium and not grid and not endurance"

# The whole grid: every step of every kind of post, met by every fault, and every clock, delay and death around it.
grid: dev
	$(IN_MEMORY) $(BIN)/python -m pytest -n 3 --dist worksteal -m "grid or whole_grid"

# What takes minutes, or a machine of which one is root: real units, containers, power cuts, full disks, thousands of
# files, and fresh examples for all generated tests. What this machine lacks is left out, saying so. SEED repeats the
# examples of another run; it is in the output.
endurance: SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
endurance: dev
	@echo "Generated tests draw fresh examples. To draw the same ones again: make endurance SEED=$(SEED)"
	$(BIN)/python -m pytest -m "endurance or hypothesis" --hypothesis-profile=endurance --hypothesis-seed=$(SEED) -rs tests
	@echo "The generated examples were those of: make endurance SEED=$(SEED)"

# Damaged media files through an upload's examination: FILES of them. SEED repeats what was found.
FILES ?= 20000

fuzz: dev
	$(BIN)/python -m tests.endurance.media_fuzz --files $(FILES) $(if $(SEED),--seed $(SEED))

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell README.md config.example.toml socialpub systemd tests Makefile .ci
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive socialpub
	$(BIN)/mypy

format: dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The manual's tables of options, states, phases and settings, from the code.
manual-tables: setup
	$(BIN)/python -m tests.manual_tables

# Needs npm; fetches the scripts and styles that pages load, in the versions that vendored.json names. Collects the
# licences of what they contain.
vendored: setup
	$(BIN)/python -m tests.vendored

# The data folders of former versions that upgrades are tested with: each version is checked out, run and killed.
.PHONY: upgrade-samples
upgrade-samples: dev
	$(BIN)/python -m tests.upgrades

# Clients in Python and TypeScript, generated from the document of a running appliance, publish to the sandbox. Without npm
# (Debian: nodejs npm) there is only the one in Python.
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

bench: dev
	$(BIN)/python -m tests.bench

# Every page of the dashboard as a picture: desktop and phone, light and dark. SCREENSHOTS is the folder that they go to.
SCREENSHOTS ?= build/screenshots

screenshots: dev
	$(BIN)/python -m tests.screenshots $(SCREENSHOTS)

# The real processes through hard times: so many DELIVERIES, while processes are killed and networks fail. At most ten
# minutes on two idle cores. SEED asks and kills alike once more.
DELIVERIES ?= 5000

chaos: dev
	$(BIN)/python -m tests.chaos --deliveries $(DELIVERIES) $(if $(SEED),--seed $(SEED))

# One process against networks whose every behaviour is drawn: MINUTES of it; SEED and EPISODE repeat what was found.
MINUTES ?= 10

simulate: dev
	$(BIN)/python -m tests.simulation --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(EPISODE),--episode $(EPISODE))

# Moderate load for SOAK_MINUTES, and whether memory, descriptors, threads and files level off.
SOAK_MINUTES ?= 30

soak: dev
	$(BIN)/python -m tests.endurance.soak --minutes $(SOAK_MINUTES)

COMPILE := uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links

# Needs uv; writes the locked requirements anew: what running needs, what tests and checks need besides, Pinterest's
# library, and the generator of clients.
lock:
	$(COMPILE) --group build pyproject.toml -o requirements.lock
	$(COMPILE) --group dev -c requirements.lock -o $(DEV_LOCK)
	$(COMPILE) --group pinterest -o $(PINTEREST_LOCK)
	$(COMPILE) --group clients -o $(CLIENTS_LOCK)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
