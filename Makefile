# `make demo` shows the product, `make test` proves it, `make check` is the quick look before a commit.
.DEFAULT_GOAL := help
SHELL := bash
BIN := .venv/bin
# Two workers: the lab's tests wait for sessions more than they compute.
TEST_JOBS ?= 2
QUICK_TESTS = $(wildcard tests/unit tests/rules tests/golden tests/errors tests/observe)

.PHONY: help setup demo test test-vm check lint golden docs mutants bench wheel clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 10

setup: ## install system packages and .venv, only what is missing
	@scripts/setup

demo: setup ## the whole story on the embedded lab
	@scripts/demo

lint: setup ## format, lint, types, YAML
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/yamllint --strict .

test: lint ## everything: lint, all tests, lab, judges; ends with the table of judges
	FABRIC_ALL_JUDGES=1 $(BIN)/pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder

test-vm: ## hosts on a real kernel with Soft-RoCE in QEMU, reboots and power cuts (minutes; no KVM needed)
	@scripts/setup scripts/packages-vm.txt
	@scripts/vm-image >/dev/null
	$(BIN)/pytest -m vm -n 2 --dist loadfile tests/vm

check: setup ## the quick one: format, lint, types, tests without lab
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q $(QUICK_TESTS) -m "not lab and not slow and not benchmark"

golden: setup ## write the expected outputs anew; read the git diff afterwards
	$(BIN)/pytest -q $(QUICK_TESTS) --update-golden -m "not lab and not slow and not benchmark"

docs: setup ## the parts of the documentation that follow from the code
	$(BIN)/python scripts/gen_docs

mutants: setup ## takes template lines away that only the platforms' own tests can miss (minutes)
	$(BIN)/python scripts/mutants

bench: setup ## seconds and peak memory at 1,000, 4,000 and 16,400 hosts; what a push to hosts costs
	$(BIN)/pytest -m benchmark -s

wheel: setup ## dist/: sdist, and the wheel built from it
	$(BIN)/python -m build --no-isolation

clean: ## everything that the targets above made
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
