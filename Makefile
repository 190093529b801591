# make demo   install, fetch a small real model, evaluate it on the five domains, print the table
# make test   install, then lint, types and tests
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint test-slow clean

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "python 3.11 or newer is needed" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,dev]' gguf
	touch $@
