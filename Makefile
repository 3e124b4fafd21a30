# `make demo` and `make test` set everything up themselves; they need Python 3.11 or newer and nothing else.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-long lint docs bench clean

demo: .venv/ready
	$(BIN)/python -m studies.demo

test: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile

test-long: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m long -n 2 --dist loadgroup

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --warnings

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html is the front page; to search it as well: $(BIN)/python -m http.server --bind 127.0.0.1 --directory site"

bench: .venv/ready
	$(BIN)/python -m benchmarks $(SCRIPTS)

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -e ".[dev]" -c constraints.txt
	touch .venv/ready

clean:
	rm -rf .venv
