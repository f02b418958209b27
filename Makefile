# `make` lists the commands, from the comments beside them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# A fresh rustup is found before the next login.
export PATH := $(if $(CARGO_HOME),$(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

# Passed on, for example: make demo DEMO_ARGS='--count 50000 --faults rough'
DEMO_ARGS ?=
CRASH_ARGS ?=
BENCH_ARGS ?=

TARGET = $$(scripts/target-dir)

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: setup ## Import a simulated Bitly account and check every redirect (DEMO_ARGS)
	cargo build --release --package crossdock-cli
	@# At a terminal the server stays up to be looked at; in a pipe the demo ends with its summary.
	if [ -t 1 ]; then exec $(TARGET)/release/crossdock demo $(DEMO_ARGS); \
	else exec $(TARGET)/release/crossdock demo --exit $(filter-out --exit,$(DEMO_ARGS)); fi

.PHONY: demo-ledger
demo-ledger: setup ## Migrate simulated wallet logs, kill processes on the way, print the certificate (DEMO_ARGS)
	cargo build --release --package crossdock-cli
	@# As above. The private Postgres lives as long as the demo.
	export CROSSDOCK_BIN=$(TARGET)/release/crossdock; \
	if [ -t 1 ]; then exec scripts/pg run scripts/on-pg demo ledger $(DEMO_ARGS); \
	else exec scripts/pg run scripts/on-pg demo ledger --exit $(filter-out --exit,$(DEMO_ARGS)); fi

.PHONY: test
test: ## All tests, with a private Postgres, and a short crash run
	@scripts/test

.PHONY: ci
ci: setup fmt-check lint doc notices-check test ## What must pass before a change goes in

.PHONY: crash
crash: setup crash-build ## Kill the real binary at every fail point and at random moments; compare (CRASH_ARGS)
	@# One half alone: CRASH_ARGS='--only links' or '--only ledger'.
	CROSSDOCK_BIN=$(TARGET)/debug/crossdock scripts/pg run $(TARGET)/debug/crash --full $(CRASH_ARGS)

.PHONY: crash-short
crash-short: setup crash-build ## The selection of the crash run that `make test` contains (CRASH_ARGS)
	CROSSDOCK_BIN=$(TARGET)/debug/crossdock scripts/pg run $(TARGET)/debug/crash --short $(CRASH_ARGS)

.PHONY: crash-million
crash-million: setup ## Migrate a million records with 50 kills, beside the same undisturbed; about 12 minutes (CRASH_ARGS)
	cargo build --release --package crossdock-cli
	cargo build --workspace --bin crash
	CROSSDOCK_BIN=$(TARGET)/release/crossdock scripts/pg run $(TARGET)/debug/crash --million $(CRASH_ARGS)

.PHONY: mutations-million
mutations-million: setup ## Ten wrong rows of each kind among 1,000,000: each is named, and no other
	LEDGER_MUTATIONS_RECORDS=1000000 LEDGER_MUTATIONS_EACH=10 \
		scripts/pg run cargo test --workspace --test ledger -- mutations

# The same build as in `make test`, so that nothing is compiled twice.
.PHONY: crash-build
crash-build:
	cargo build --workspace --bins --tests

.PHONY: bench
bench: setup ## Measure; results are kept in bench/ (BENCH_ARGS)
	bench/run.sh $(BENCH_ARGS)

.PHONY: clients
clients: setup ## Check the simulators with clients that others wrote (needs Node and the npm registry)
	crates/simulators/clients/run.sh

.PHONY: fmt
fmt: ## Format the code
	cargo fmt --all

.PHONY: fmt-check
fmt-check: ## Check the format
	cargo fmt --all --check

.PHONY: lint
lint: ## Clippy, warnings are errors
	cargo clippy --workspace --all-targets -- -D warnings

.PHONY: doc
doc: ## Build the documentation, warnings are errors
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --document-private-items

.PHONY: deny
deny: ## Check licences, banned crates, sources and known vulnerabilities of all dependencies
	@cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
	cargo deny check

.PHONY: notices
notices: ## Write THIRD_PARTY_NOTICES.md
	cargo run --quiet --package crossdock-e2e --bin notices > THIRD_PARTY_NOTICES.md.new
	mv THIRD_PARTY_NOTICES.md.new THIRD_PARTY_NOTICES.md

.PHONY: notices-check
notices-check: ## Check that THIRD_PARTY_NOTICES.md is current
	@cargo run --quiet --package crossdock-e2e --bin notices | diff -u THIRD_PARTY_NOTICES.md - \
	  || { echo 'THIRD_PARTY_NOTICES.md is out of date: run make notices' >&2; exit 1; }

.PHONY: clean-test
clean-test: ## Stop the private Postgres of `scripts/pg start` and remove it
	scripts/pg stop

.PHONY: setup
setup:
	@scripts/setup
