# Each verb sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
CLIENTS := $(VENV)/clients/.ready
# Most tests wait most of the time: for a server, a process, a deadline.
SIDE_BY_SIDE := -n 3 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench fuzz day newcomer packages clients format clean

help:      ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## the virtual environment in .venv, with everything in it

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "poller needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || deploy/packages python3-venv
	@echo "== making $(VENV) and installing poller into it (downloads about 60 MB the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@

run: setup ## everything on this machine with a simulated fleet and a web page; Ctrl-C stops it
	@echo "== poller up --demo"
	@$(BIN)/poller up --demo

check: setup ## style, types, import direction, unit tests: seconds
	@echo "== ruff, mypy, import-linter"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports
	@echo "== how it reads"
	@$(BIN)/python -m tests.house_measures
	@echo "== unit tests"
	@$(BIN)/pytest $(SIDE_BY_SIDE) tests/unit

test: setup packages clients check ## everything above, then the tests with real servers, devices and browser
	@echo "== contract, integration, acceptance and browser tests"
	@$(BIN)/pytest $(SIDE_BY_SIDE) -m 'not alone' tests/acceptance tests/contract tests/integration tests/browser
	@echo "== acceptance tests that need the machine for themselves"
	@$(BIN)/pytest -m alone tests/acceptance

SIZE ?= full
bench: setup ## measure it; QUICK=1 takes two minutes, SECTIONS="cost rebuild" chooses, SIZE=small is smaller
	@deploy/packages prometheus-snmp-exporter || echo "== without it, the comparison with the exporter is left out"
	@$(if $(QUICK),true,$(MAKE) --no-print-directory clients) || echo "== without them, the comparison with mktxp is left out"
	@$(BIN)/python -m benchmarks $(if $(QUICK),--quick,--size $(SIZE)) $(SECTIONS)

DATAGRAMS ?= 1000000
REPLIES ?= 500000
fuzz: setup ## hostile devices: a million mutated SNMP answers, half a million of RouterOS; DATAGRAMS=, REPLIES=
	@echo "== SNMP"
	@$(BIN)/python -m tests.fuzz_snmp --datagrams $(DATAGRAMS)
	@echo "== RouterOS"
	@$(BIN)/python -m tests.fuzz_routeros --replies $(REPLIES)

ROUTERS ?= 100
HOURS ?= 24
day: setup ## a day of polling 100 routers on a clock that jumps, with and without losses; ROUTERS=, HOURS=
	@$(BIN)/python -m tests.day_routeros --routers $(ROUTERS) --hours $(HOURS)

clients: $(CLIENTS) ## other people's RouterOS programs, for the tests, apart: one of them installs a package named "tests"

$(CLIENTS): $(STAMP)
	@test -x $(VENV)/clients/bin/python || $(PYTHON) -m venv $(VENV)/clients
	@$(VENV)/clients/bin/python -m pip install --quiet 'RouterOS-api==0.21.0' 'mktxp==2.1.0'
	@touch $@

newcomer: setup ## from nothing to readings of a plugin of one's own, timed; installs it into .venv for a moment
	@POLLER="$(CURDIR)/$(BIN)/poller" PIP="$(CURDIR)/$(BIN)/python -m pip" tests/newcomer; status=$$?; \
	$(BIN)/python -m pip uninstall --quiet --yes poller-demo; exit $$status

packages: ## Debian packages that the tests use
	@deploy/packages postgresql snmp snmpd chromium docker-compose faketime prometheus-snmp-exporter

format: setup ## let ruff rewrite the code in house style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean: ## remove the virtual environment and caches (not .poller)
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .import_linter_cache
