# Two commands: `make demo` and `make test`. Each sets up what is missing and runs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install -qq
export OMP_NUM_THREADS ?= 1

.PHONY: demo test slow check bench clean

demo: $(VENV)/.learn
	$(BIN)/zktrace demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

bench: $(VENV)/.dev
	@for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) out

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "zktrace needs Python 3.11 to 3.13")'
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.learn: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing zktrace with PyTorch (once, a minute or two)"
	@$(PIP) -e '.[learn]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing zktrace with its test tools (once, a minute or two)"
	@$(PIP) -e '.[learn,federation,dev]'
	@touch $@ $(VENV)/.learn
