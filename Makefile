# Python that makes .venv (3.11 or newer).
PYTHON ?= python3
BIN := $(or $(CARGO_TARGET_DIR),target)/release/tilewright
# nextest where it is installed, which runs each test in a process of its own; but these programs' tests share one
# Python process with torch and Triton in it, which takes seconds to start.
SHARED := stage pipeline
space := $(subst ,, )

.DEFAULT_GOAL := help
.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: venv build ## Build everything, write a kernel for an example module and verify it, on this machine's CPU
	@rm -rf generated/demo
	@echo "== generate: a kernel for examples/softmax_linear.py"
	$(BIN) generate examples/softmax_linear.py --out generated/demo
	@echo "== verify: once more, under other seeds"
	$(BIN) verify examples/softmax_linear.py generated/demo/best.py

.PHONY: test
test: venv lint reference-check ## Everything that CI runs: lints, Rust and Python tests, end to end
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-rust test-python

.PHONY: venv
venv: ## Make .venv: torch, Triton and the tilewright package
	@echo "== python"
	@$(PYTHON) scripts/setup_venv.py

.PHONY: build
build: ## Build the binary, optimised
	@echo "== build"
	cargo build --release --locked -p tilewright

.PHONY: lint
lint: venv
	@echo "== lint"
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

.PHONY: test-rust
test-rust: venv
	@echo "== rust tests"
ifneq ($(shell command -v cargo-nextest),)
	@cargo nextest run --no-fail-fast --workspace --locked -E 'not binary(/^($(subst $(space),|,$(SHARED)))$$/)'; \
	failed=$$?; \
	cargo test --no-fail-fast --workspace --locked $(SHARED:%=--test %) && exit $$failed
else
	cargo test --no-fail-fast --workspace --locked
endif

.PHONY: test-python
test-python: venv
	@echo "== python tests"
	.venv/bin/python -m pytest -q

.PHONY: reference
reference: ## Regenerate docs/reference from the code
	@scripts/reference.sh docs/reference

.PHONY: reference-check
reference-check:
	@echo "== reference"
	@scripts/reference.sh --check docs/reference

.PHONY: test-gpu
PARTS ?=
test-gpu: ## On a machine with a GPU: problems, corpus, attacks, faults, clock, throughput; PARTS="faults clock" for some
	scripts/gpu/run.sh $(PARTS)
