# `make demo`, `make console` and `make test`: each sets up what is missing and runs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Where CPU builds of PyTorch are. On Linux plain pip takes one for CUDA, which is gigabytes and does no more here.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PIP    := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install -qq
export OMP_NUM_THREADS ?= 1

.PHONY: demo console test slow check bench clean

demo: $(VENV)/.learn
	$(BIN)/zktrace demo

console: $(VENV)/.learn
	$(BIN)/zktrace demo --serve

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

bench: $(VENV)/.dev
	@for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) out

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "zktrace needs Python 3.11 to 3.13")'
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)

# Plain pip, if what it would take needs no CUDA; else the build of TORCH_INDEX; else what there is.
$(VENV)/.torch: constraints.txt | $(VENV)/bin/python
	@if ! $(PIP) --dry-run --report - torch 2>/dev/null | grep -q '"name": "nvidia'; then \
		echo "downloading PyTorch, a CPU build (about 200 MB, once)"; \
		$(PIP) torch; \
	elif echo "downloading PyTorch, the CPU build of $(TORCH_INDEX) (about 200 MB, once)" && \
		$(PIP) --no-deps --retries 1 --timeout 15 --index-url $(TORCH_INDEX) torch 2>/dev/null; then :; \
	else \
		echo "there it cannot be had: downloading PyTorch for CUDA (several GB, once); ^C stops it"; \
		$(PIP) torch; \
	fi
	@touch $@

$(VENV)/.learn: pyproject.toml constraints.txt $(VENV)/.torch
	@echo "downloading what zktrace needs beside it (about 100 MB, once)"
	@$(PIP) -e '.[learn,service]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt $(VENV)/.torch
	@echo "downloading what zktrace and its tests need beside it (about 200 MB, once)"
	@$(PIP) -e '.[learn,federation,service,report,dev]'
	@touch $@ $(VENV)/.learn
