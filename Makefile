# The two commands to know: `make demo` shows what Ottla does, `make test` proves it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST_ARGS ?= -n 4 --dist loadscope
# Tests start hundreds of processes, and without bytecode each of them would compile all of Ottla first.
export PYTHONDONTWRITEBYTECODE =
RUNS ?= 10

.PHONY: help demo test check unit setup conformance properties fuzz fuzz-door crash power-cut group-histories spark spark-crash faults \
	bench bench-quick bench-client bench-spark bench-codec bench-growth bench-groups bench-tls bench-metrics clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## see it work
	@$(BIN)/ottla demo

# Side by side: the checks keep one core busy for a minute in which most tests wait for something.
test: $(READY)  ## everything: checks and tests
	@$(MAKE) --no-print-directory -j 2 check unit

setup: $(READY)  ## only the set-up: .venv with pinned dependencies and the compiled modules

$(READY): pyproject.toml setup.py requirements/dev.txt $(wildcard src/ottla/*/*.pyx src/ottla/*/*.pxi src/ottla/*/*/*.pyx) \
		src/ottla/compiled.txt $(addprefix src/,$(shell grep -v '^\#' src/ottla/compiled.txt))
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"Ottla needs Python 3.11 to 3.13, {sys.executable} is {v[0]}.{v[1]}; say make PYTHON=python3.11")'
	@test -x $(BIN)/python || { echo "== making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "== installing pinned dependencies"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@echo "== building the compiled modules"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $(READY)

check: $(READY)  ## format, lint, types, layers
	@echo "== ruff format"; $(BIN)/ruff format --check --quiet .
	@echo "== ruff"; $(BIN)/ruff check --quiet .
	@echo "== mypy"; $(BIN)/mypy --no-error-summary
	@echo "== import-linter"; $(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache

unit: $(READY)
	@echo "== pytest"; $(BIN)/python -m pytest $(PYTEST_ARGS)

conformance: $(READY)  ## every codec against other people's, with a table
	@$(BIN)/python -m tests.conformance

properties: $(READY)  ## what has to hold for any input, with many more of them
	@$(BIN)/python -m pytest $(PYTEST_ARGS) --hypothesis-profile many tests/unit

fuzz: $(READY)  ## a million hostile inputs
	@$(BIN)/python -m tests.fuzz

fuzz-door: $(READY)  ## a million strangers at the door of a broker that asks for a login
	@$(BIN)/python -m tests.fuzz --part door

crash: $(READY)  ## kill a broker 200 times under load, and look for every acknowledged record
	@$(BIN)/python -m tests.crash

power-cut: $(READY)  ## a thousand simulated power cuts and more for each flush policy
	@$(BIN)/python -m tests.sim --seeds 1000

group-histories: $(READY)  ## thousands of random histories of groups against the invariants
	@$(BIN)/python -m tests.sim.groups --seeds 2000

spark: $(READY)  ## all tests of Spark, with those that start it anew, and the official connector where Maven is at hand
	@$(BIN)/python -m pytest -m "long or not long" tests/spark

spark-crash: $(READY)  ## kill drivers, Python workers and the broker under a pipeline, and look for every record; RUNS=30
	@$(BIN)/python -m tests.spark_crash --points --seeds $(RUNS)

faults: $(READY)  ## cut, delay and forge what passes between client and broker, a few hundred seeds
	@$(BIN)/python -m tests.faults --seeds 300

bench: $(READY)  ## Ottla side by side with Apache Kafka and other brokers (an hour or more, 20 GB of disk)
	@$(BIN)/python -m bench.brokers --json docs/bench.json --markdown docs/bench.md --picture docs/bench.svg $(BENCH_ARGS)

bench-quick: $(READY)  ## a few lines of that, and what got worse since the last recorded run (a minute)
	@$(BIN)/python -m bench.brokers --quick $(BENCH_ARGS)

bench-client: $(READY)  ## the client side by side with confluent-kafka, aiokafka and kafka-python
	@$(BIN)/python -m bench.client

bench-spark: $(READY)  ## Spark's source and sink side by side with the official connector (needs Maven)
	@$(BIN)/python -m bench.spark

bench-codec: $(READY)  ## the codec side by side with its peers
	@$(BIN)/python -m bench.codec

bench-tls: $(READY)  ## what TLS costs: the same work through a plain listener and a secure one
	@$(BIN)/python -m bench.tls

bench-metrics: $(READY)  ## what it costs to count requests
	@$(BIN)/python -m bench.metrics

bench-growth: $(READY)  ## what partitions and log size cost
	@$(BIN)/python -m bench.growth

bench-groups: $(READY)  ## what members and groups cost
	@$(BIN)/python -m bench.groups

clean:  ## remove what was built
	@rm -rf $(VENV) build .oracles src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find src -name '*.so' -delete
