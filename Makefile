# Python that makes .venv (3.11 or newer).
PYTHON ?= python3

.PHONY: venv
venv: ## Make .venv: torch, Triton and the tilewright package
	@$(PYTHON) scripts/setup_venv.py
