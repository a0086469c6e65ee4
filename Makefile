# Every target sets up what it needs: Java is checked, Python packages, JARs and the class archive
# are made once and left alone while they are up to date.

PYTHON := .venv/bin/python
DAGSTER_HOME := $(CURDIR)/.rivermark/dagster
HOST ?= 127.0.0.1
PORT ?= 3000
STORIES ?= all
BENCH ?=

CODE := $(wildcard rivermark assets resources jobs platform_defs setup tests bench)

export DAGSTER_HOME
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo ui test lint unit spark platform stories bench lock clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Prepare Java, packages, JARs and the class archive (the other targets do it by themselves)
	@setup/java.sh
	@setup/venv.sh
	@$(PYTHON) -m setup.jars delta
	@$(PYTHON) -m setup.class_archive

demo: setup ## Real trips and readings flow from files to published tables
	@.venv/bin/rivermark demo

ui: setup ## The platform in the browser, on 127.0.0.1:3000 (PORT=... for another)
	@setup/dagster_home.sh "$(DAGSTER_HOME)"
	@.venv/bin/dagster dev --host $(HOST) --port $(PORT)

test: lint unit spark platform ## Lint, types, import contracts and all tests but the stories

lint: setup ## ruff, mypy and the import contracts
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy $(CODE)
	.venv/bin/lint-imports

unit: setup ## Tests without a JVM
	$(PYTHON) -m pytest tests/unit

spark: setup ## Tests on one shared Spark session
	$(PYTHON) -m pytest tests/spark

platform: setup ## Tests with Dagster in process
	$(PYTHON) -m pytest tests/platform

stories: setup ## Kills, floods and restarts of whole processes (STORIES=short for the quick ones)
	$(PYTHON) -m pytest tests/stories $(if $(filter short,$(STORIES)),-m "not slow")

bench: setup ## Measure throughput, latency and start-up (BENCH="--help" for its options)
	$(PYTHON) -m bench $(BENCH)

# Extras stay in the lock, because pip with hashes refuses to add one to a package that is pinned
# without it.
lock: ## Write requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --all-extras --universal --fork-strategy fewest \
		--python-version 3.11 --generate-hashes --no-strip-extras --no-emit-index-url \
		--no-emit-find-links --no-annotate --no-header --quiet -o requirements.lock

clean: ## Remove what runs made; the environment and the JARs stay
	rm -rf .rivermark lake spark-warehouse metastore_db derby.log artifacts \
		.pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
