# Every target sets up what it needs: Java is checked; packages, JARs and the class archive are made
# once and left alone while they are up to date.

BIN := $(CURDIR)/.venv/bin
PYTHON := $(BIN)/python
UI_PORT ?= 3000
KAFKA_PORT ?= 9092
POSTGRES_PORT ?= 5433
STORIES ?= all
BENCH ?=
PYTEST_OPTIONS ?=

# Two sessions of Spark leave no core idle; the tests of a folder share what its fixtures compute.
WORKERS := -n 2

# Tests that start processes would have each of them compile every module otherwise.
unexport PYTHONDONTWRITEBYTECODE

PACKAGES := rivermark assets simulator resources jobs platform_defs
CODE := $(wildcard $(PACKAGES) setup tests bench)

# Spark starts its Python workers, and Dagster its code server, from the PATH.
export PATH := $(BIN):$(PATH)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo demo-kafka demo-postgres ui dashboard kafka kafka-stop postgres postgres-stop \
	check test lint unit spark platform stories bench docs lock clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: ## Prepare Java, packages, JARs and the class archive (the others do it by themselves)
	@setup/java.sh
	@setup/venv.sh
# Each command would compile them anew where PYTHONDONTWRITEBYTECODE is set, 0.2 s.
	@$(PYTHON) -m compileall -qq $(PACKAGES) || true
	@$(PYTHON) -m rivermark.setup.jars delta
	@$(PYTHON) -m rivermark.setup.class_archive

demo demo-kafka demo-postgres ui: export DAGSTER_HOME := $(CURDIR)/.rivermark/dagster

demo: setup ## Real trips and readings flow from files to published tables
	@setup/dagster_home.sh "$(DAGSTER_HOME)"
	@$(BIN)/rivermark demo

# In a home of its own: a lake belongs to one source. The broker keeps its topics for the next time.
demo-kafka: export TAXI_KAFKA := 127.0.0.1:$(KAFKA_PORT)
demo-kafka: export TAXI_WINNERS := taxi.hourly_winners
demo-kafka: export RIVERMARK_HOME := $(CURDIR)/.rivermark/demo-kafka
demo-kafka: setup ## Taxi events from topics, winners into one: starts a broker, runs, stops it
	@setup/dagster_home.sh "$(DAGSTER_HOME)"
	@$(PYTHON) -m setup.kafka_broker start --port $(KAFKA_PORT)
	@trap : INT; $(BIN)/rivermark demo taxi; code=$$?; $(PYTHON) -m setup.kafka_broker stop; exit $$code

# A sink gets what is published from its declaration on: this home is of its own, too.
demo-postgres: export TAXI_DATABASE := postgresql://rivermark@127.0.0.1:$(POSTGRES_PORT)/postgres
demo-postgres: export PGPASSFILE := $(CURDIR)/.rivermark/postgres/pgpass
demo-postgres: export RIVERMARK_HOME := $(CURDIR)/.rivermark/demo-postgres
demo-postgres: setup ## Taxi events, the newest of each zone served by PostgreSQL: starts it, runs, stops it
	@setup/dagster_home.sh "$(DAGSTER_HOME)"
	@$(PYTHON) -m setup.postgres_server start --port $(POSTGRES_PORT)
	@trap : INT; $(BIN)/rivermark demo taxi; code=$$?; $(PYTHON) -m setup.postgres_server stop; exit $$code

# On this machine only: Dagster knows no users, and who sees the page can run code.
ui: setup ## The platform in the browser, 127.0.0.1:3000 (UI_PORT=... for another port)
	@setup/dagster_home.sh "$(DAGSTER_HOME)"
	@exec $(PYTHON) -m rivermark.dagster.ui --port $(UI_PORT)

dashboard: setup ## One page for any browser: days, late rows, throughput, checks
	@$(BIN)/rivermark dashboard

kafka: setup ## A Kafka broker on 127.0.0.1:9092 (KAFKA_PORT=... for another port), until kafka-stop
	@$(PYTHON) -m setup.kafka_broker start --port $(KAFKA_PORT)

kafka-stop: ## Stop the broker of `make kafka`; its topics stay
	@$(PYTHON) -m setup.kafka_broker stop

postgres: setup ## PostgreSQL on 127.0.0.1:5433 (POSTGRES_PORT=... for another port), until postgres-stop
	@$(PYTHON) -m setup.postgres_server start --port $(POSTGRES_PORT)

postgres-stop: ## Stop the server of `make postgres`; its tables stay
	@$(PYTHON) -m setup.postgres_server stop

# A manifest of where the streams run (`rivermark manifest --output manifest.json`) may lie here.
check: setup ## What is wrong in the declarations, before anything runs: a sentence each
	@$(BIN)/rivermark check $(if $(wildcard manifest.json),--against manifest.json)

test: check lint unit spark platform ## Declarations, linters, types, import contracts, all tests but the stories

lint: setup ## Only the linters, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# Each of the two on a core of its own.
	$(BIN)/mypy $(CODE) & $(BIN)/lint-imports; kept=$$?; wait $$! && exit $$kept

unit: setup ## Only the tests that need no JVM (without the long ones: see stories)
	$(PYTHON) -m pytest tests/unit -m "not long" $(WORKERS) $(PYTEST_OPTIONS)

# Of a broker's JARs: where they cannot be fetched, its tests are skipped, and say so.
spark: setup ## Only the tests on a shared Spark session (without the long ones: see stories)
	-@$(PYTHON) -m rivermark.setup.jars kafka
	$(PYTHON) -m pytest tests/spark -m "not long" $(WORKERS) $(PYTEST_OPTIONS)

platform: setup ## Only the tests with Dagster in process (without the long ones: see stories)
	$(PYTHON) -m pytest tests/platform -m "not long" $(WORKERS) --dist loadfile $(PYTEST_OPTIONS)

# Of a browser too: where there is no Chromium, or no axe-core, the tests of pages are skipped.
stories: setup ## Long tests; pages, disk, damage, power and kills (STORIES=short: without kills)
	-@$(PYTHON) -m rivermark.setup.jars kafka spark-kafka
	-@setup/axe.sh
	RIVERMARK_FUZZ_ROUNDS=$(if $(filter short,$(STORIES)),5,40) $(PYTHON) -m pytest \
		tests/unit/ingest/test_mutated_files.py $(PYTEST_OPTIONS)
	$(PYTHON) -m pytest tests/unit -m "long or hypothesis" --hypothesis-profile many $(WORKERS) \
		$(PYTEST_OPTIONS)
	RIVERMARK_FUZZ_ROUNDS=$(if $(filter short,$(STORIES)),1,10) $(PYTHON) -m pytest \
		tests/spark -m long $(WORKERS) $(PYTEST_OPTIONS)
	$(PYTHON) -m pytest tests/platform -m long $(PYTEST_OPTIONS)
	$(PYTHON) -m pytest tests/stories --timeout 1200 \
		$(if $(filter short,$(STORIES)),-m "not slow") $(PYTEST_OPTIONS)

bench: setup ## Measure, beside Flink and others (BENCH=short compares outputs only; BENCH=--help)
	$(if $(filter all peers,$(firstword $(BENCH) all)),@$(PYTHON) -m bench peers --setup)
	$(PYTHON) -m bench $(BENCH)

docs: setup ## The pages of docs/ as a site in site/, every link checked (site/index.html)
	@setup/docs.sh
	NO_MKDOCS_2_WARNING=1 .cache/docs-venv/bin/mkdocs build --quiet

# Extras stay in the lock, because pip with hashes refuses to add one to a package that is pinned
# without it.
lock: COMPILE := uv pip compile --universal --fork-strategy fewest --python-version 3.11 \
	--generate-hashes --no-strip-extras --no-emit-index-url --no-emit-find-links --no-annotate \
	--no-header --quiet
lock: ## Write requirements.lock and docs.lock from pyproject.toml (needs uv)
	$(COMPILE) pyproject.toml --all-extras -o requirements.lock
	$(COMPILE) --group docs -o docs.lock

clean: ## Remove what runs have made; the environment and the JARs stay
	rm -rf .rivermark lake site spark-warehouse metastore_db derby.log artifacts \
		.pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
