# Everything a fresh machine needs: git, make and python3.11 or newer.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv)
# marks of an environment: with the packages of the command; with those of the tests too
DEMO := $(VENV)/.demo
READY := $(VENV)/.ready

ifdef UV
CREATE = $(UV) venv --quiet --allow-existing --python $(or $(PYTHON),3.11) $(VENV)
INSTALL = $(UV) pip install --quiet --python $(BIN)/python
else
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# the pip that comes with Python 3.11 resolves half as fast as this one
CREATE = $(PYTHON) -m venv $(VENV) && $(PIP) -c constraints.txt 'pip>=25'
INSTALL = $(PIP)
endif
# bytecode once, for some machines keep none: each process would compile its imports again,
# which takes as long as most tests
COMPILE = $(BIN)/python -m compileall -q -j 0
# a third of what is installed, of which nothing or a few modules are ever imported
UNUSED = /(tests?|moto|plotly|sympy|networkx|graphql|litellm/proxy|ray/(data|rllib|serve|train|tune))/
FOUND = test -n "$(UV)$(PYTHON)" || \
	{ echo "siftlog needs Python 3.11 or newer; none was found."; exit 1; }

.PHONY: demo test lint docs bench golden prove litellm-proxy judges clean
.DEFAULT_GOAL := demo

$(DEMO): pyproject.toml constraints.txt
	@$(FOUND)
	@$(CREATE)
	$(INSTALL) -c constraints.txt -e .
	@touch $@

$(READY): pyproject.toml constraints.txt
	@$(FOUND)
	@$(CREATE)
	$(INSTALL) -c constraints.txt -e '.[test]'
	@$(COMPILE) -x '$(UNUSED)' $(VENV)/lib >/dev/null || true  # some packages ship templates
	@touch $(DEMO) $@

demo: $(DEMO)
	@$(BIN)/siftlog run paper-investigation --runs-dir runs

# most tests wait for processes of their own, so four at a time suit two cores; each of the
# four would compile by itself what has not been compiled
test: $(READY)
	$(COMPILE) -x '/(test_|conftest)' store runner jobs tui tests
	$(BIN)/python -m tests.compiling
	$(BIN)/python -m pytest -n 4 --dist worksteal

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# the parts of docs/ that are made from the code
docs: $(READY)
	$(BIN)/python -m tests.reference

bench: $(READY)
	$(BIN)/python -m tests.bench

# LiteLLM's proxy in an environment of its own (700 MB), for tests/thirdparty
litellm-proxy: $(READY)
	$(BIN)/python -m tests.thirdparty.litellm_proxy

# inspect_ai, lm_eval, mlflow and others that judge imports and exports, likewise (1 GB)
judges: $(READY)
	$(BIN)/python -m tests.thirdparty.judges

# what the commands print and write, compared with what they printed before
golden: $(READY)
	$(BIN)/python -m tests.golden check

# every test in its long form: hours. A proof may take longer than a test
prove: $(READY) golden
	SIFTLOG_PROVE=1 $(BIN)/python -m pytest -n 2 --dist worksteal --timeout 14400

clean:
	rm -rf $(VENV) build *.egg-info
