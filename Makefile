# make book   set up, execute every chapter at ci scale, render exactly those runs
# make test   every test, with the notebooks' outputs compared
# Other goals: help, site, pdf, publish-site, run, golden, publish, check, status,
# colab-test, lint, lock, clean.

SHELL  := /bin/bash
PYTHON ?= python3
SCALE  ?= ci
CH     ?=
VENV   := .venv
BIN    := $(VENV)/bin
AGOP   := $(BIN)/agop

# One thread for each chapter and test: chapters run side by side, and sums in a fixed
# order are what makes outputs repeatable.
export OMP_NUM_THREADS ?= 1
# Children inherit it; pip's notice about a newer pip is not ours to give.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip shows its progress to a person, and is silent in a log.
QUIET := $(shell test -t 2 || echo -q)

# Tests side by side, a file at a time, on as many cores as the memory of a laptop
# serves.
SIDE_BY_SIDE := -n logical --maxprocesses=4 --dist=loadfile

# $(call step,name,command): say what runs; on failure, one line with the step's name.
define step
@echo "== $(1)"; $(2) || { echo "make: the step '$(1)' failed" >&2; exit 1; }
endef

.PHONY: book test site pdf publish-site run golden publish check status colab-test \
	lint lock clean help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -4

book: $(VENV)/ready
	$(call step,execute the chapters at ci scale,$(AGOP) book run --scale ci)
	$(call step,render the site,$(AGOP) book render --runs ci)

site: $(VENV)/ready-to-render
	$(call step,render the published notebooks,$(AGOP) book render)

pdf: site
	$(call step,print the book,$(AGOP) book pdf)

# Everything that goes to the static host; refuses while the address is a placeholder.
publish-site: $(VENV)/ready-to-render
	$(call step,build the site for its host,$(AGOP) book site)

# Every chapter's downloadable notebook, run from an empty folder as on Colab.
colab-test: $(VENV)/ready
	$(call step,notebooks as on Colab,$(BIN)/python -m pytest -m colab tests/site/test_notebooks.py $(if $(CH),-k "$(CH)"))

test: $(VENV)/ready
	$(call step,tests,$(BIN)/python -m pytest $(SIDE_BY_SIDE))

run: $(VENV)/ready
	$(call step,execute at $(SCALE) scale,$(AGOP) book run --scale $(SCALE) $(CH))

golden: $(VENV)/ready
	$(call step,refresh the references,$(AGOP) book golden $(CH))

publish: $(VENV)/ready
	$(call step,publish at $(SCALE) scale,$(AGOP) book publish --scale $(SCALE) $(CH))

check: $(VENV)/ready-to-render
	$(call step,check,$(AGOP) book check)

status: $(VENV)/ready-to-render
	@$(AGOP) book status

lint: $(VENV)/ready
	$(call step,ruff check,$(BIN)/ruff check .)
	$(call step,ruff format,$(BIN)/ruff format --check .)
	$(call step,types,$(BIN)/mypy)
	$(call step,the book in step,$(AGOP) book check)
	$(call step,workflow files,$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml)

# Set-up, once: done again only when a requirement changes. Rendering needs neither
# torch nor the test tools, so it has a smaller set-up of its own.
$(VENV)/ready-to-render: pyproject.toml constraints.txt
	$(call step,make $(VENV),test -x $(BIN)/python || $(PYTHON) -m venv $(VENV))
	$(call step,install what rendering needs,$(BIN)/python tools/extras.py book > $(VENV)/book.txt && $(BIN)/pip install $(QUIET) -c constraints.txt -r $(VENV)/book.txt && $(BIN)/pip install $(QUIET) --no-deps -e .)
	@touch $@

$(VENV)/ready: $(VENV)/ready-to-render
	$(call step,install the package with torch (some 5 GB: a while),$(BIN)/pip install $(QUIET) -c constraints.txt -e '.[book$(comma)dev]')
	@touch $@

comma := ,

lock: $(VENV)/ready
	$(call step,lock,$(BIN)/python tools/lock.py)

clean:
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache
