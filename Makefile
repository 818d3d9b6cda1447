# Each target sets up what it needs. `make help` lists the targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
CLIENTS := $(VENV)/clients/.ready
# Three test processes at a time: most tests wait for a server, a process or a deadline.
SIDE_BY_SIDE := -n 3 --dist loadfile
# Files of tests stand in memory where there is room: databases of tests need no disk.
MEMORY := $(shell test "$$(df --output=avail --block-size=1G /dev/shm 2>/dev/null | tail -n 1)" -ge 6 2>/dev/null && echo /dev/shm)
# Compiled modules are kept: a process that compiles them at each start takes a second longer.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench fuzz day flood chaos sinks storm rates newcomer screenshots packages clients format clean

help:      ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## create the virtual environment .venv and install poller with all its tools

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "poller needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || deploy/packages python3-venv
	@echo "== creating $(VENV) and installing poller (downloads about 60 MB the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@

run: setup ## run all of poller on this machine, with a simulated fleet and a web page; Ctrl-C stops it
	@echo "== poller up --demo"
	@$(BIN)/poller up --demo

check test: export TMPDIR := $(MEMORY)
check: setup ## check style, types and imports, and run the unit tests
	@echo "== ruff, mypy, import-linter"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports
	@echo "== readability measures"
	@$(BIN)/python -m tests.house_measures
	@echo "== unit tests"
	@$(BIN)/pytest $(SIDE_BY_SIDE) tests/unit

# What takes long and repeats in other circumstances what a short test shows is left to LONG=1.
SHORT := $(if $(LONG),,and not long)
test: setup packages clients check ## run `check`, then the tests with real servers, devices and a browser; LONG=1 runs the long ones too
	@echo "== contract, integration, acceptance and browser tests"
	@$(BIN)/python -m tests.second_look $(SIDE_BY_SIDE) -m 'not alone $(SHORT)' tests/acceptance tests/contract tests/integration tests/browser
	@echo "== tests that measure time: two at a time, and what fails once more alone"
	@$(BIN)/python -m tests.second_look -n 2 --dist loadfile -m 'alone $(SHORT)' tests/acceptance tests/contract tests/integration

SIZE ?= full
bench: setup ## run the benchmarks; QUICK=1 takes two minutes; SECTIONS="cost rebuild" selects; SIZE=small is smaller
	@deploy/packages prometheus-snmp-exporter || echo "== prometheus-snmp-exporter is missing: skipping the comparison with it"
	@deploy/packages rrdtool influxdb || echo "== rrdtool or influxdb is missing: history is not compared with it"
	@$(if $(QUICK),true,$(MAKE) --no-print-directory clients) || echo "== mktxp is missing: skipping the comparison with it"
	@$(BIN)/python -m benchmarks $(if $(QUICK),--quick,--size $(SIZE)) $(SECTIONS)

DATAGRAMS ?= 1000000
REPLIES ?= 500000
fuzz: setup ## send a million mutated SNMP responses and 500000 RouterOS replies to poller; DATAGRAMS=, REPLIES=
	@echo "== SNMP"
	@$(BIN)/python -m tests.fuzz_snmp --datagrams $(DATAGRAMS)
	@echo "== RouterOS"
	@$(BIN)/python -m tests.fuzz_routeros --replies $(REPLIES)

ROUTERS ?= 100
HOURS ?= 24
day: setup ## simulate a day of polling 100 routers on a virtual clock, with and without packet loss; ROUTERS=, HOURS=
	@$(BIN)/python -m tests.day_routeros --routers $(ROUTERS) --hours $(HOURS)

MINUTES ?= 10
flood: setup ## measure the memory of a worker while seven hostile routers flood it; MINUTES=
	@$(BIN)/python -m tests.flood_routeros --minutes $(MINUTES)

DATABASE ?= sqlite
VICTIMS ?= leader
chaos: MINUTES = 5
chaos: setup ## kill, freeze and stop leaders at random while a job runs every 5 s; MINUTES=, VICTIMS="leader worker", DATABASE=postgresql
	@$(BIN)/python -m tests.chaos_jobs --minutes $(MINUTES) --victims $(VICTIMS) --database $(DATABASE)

DEVICES ?= 1000
STORES ?= prometheus victoria influxdb victoria-influx nats kafka
sinks: MINUTES = 5
sinks: setup packages ## poll 1000 devices into each store while it is killed, frozen and restarted, and count samples; MINUTES=, DEVICES=, STORES=
	@$(BIN)/python -m tests.storm_sinks --minutes $(MINUTES) --devices $(DEVICES) --stores $(STORES)

FAR ?= 2000
BEHIND ?= 500
KILLS ?= leader worker web database
storm: DEVICES = 5000
storm: setup packages ## darken 2000 of 5000 devices while a switch dies and everything is killed, and count pages; DEVICES=, FAR=, BEHIND=, KILLS=
	@$(BIN)/python -m tests.storm_alerts --devices $(DEVICES) --far $(FAR) --behind $(BEHIND) --kills $(KILLS)

rates: setup packages ## compare rate() over remote write and over a scraped snmp_exporter, for a router that reboots and counters that wrap
	@$(BIN)/pytest -q -s tests/integration/test_remote_write_rates.py -k beside

screenshots: setup packages ## take the pictures of every page in docs/images: light, dark and narrow
	@SCREENSHOTS_TO=docs/images $(BIN)/pytest -q tests/browser/test_every_page.py -k pictures

# A separate environment: one of the programs installs a package named "tests".
clients: $(CLIENTS) ## install other RouterOS programs, which the tests compare with, into .venv/clients

$(CLIENTS): $(STAMP)
	@test -x $(VENV)/clients/bin/python || $(PYTHON) -m venv $(VENV)/clients
	@$(VENV)/clients/bin/python -m pip install --quiet 'RouterOS-api==0.21.0' 'mktxp==2.1.0'
	@touch $@

newcomer: setup ## measure the time from `poller plugin new` to first readings; installs a plugin into .venv and removes it
	@POLLER="$(CURDIR)/$(BIN)/poller" PIP="$(CURDIR)/$(BIN)/python -m pip" tests/newcomer; status=$$?; \
	$(BIN)/python -m pip uninstall --quiet --yes poller-demo; exit $$status

packages: ## install the Debian packages that the tests use
	@deploy/packages postgresql snmp snmpd chromium docker-compose faketime prometheus prometheus-snmp-exporter influxdb victoria-metrics nats-server prometheus-alertmanager
	@{ command -v node && command -v npm; } > /dev/null || deploy/packages nodejs npm

format: setup ## format the code with ruff
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean: ## remove the virtual environment and the caches, but not .poller
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .import_linter_cache
