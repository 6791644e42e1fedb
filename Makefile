# Commands of the course. `make` alone lists them.
#
# A fresh machine needs Python >= 3.11, make and a package index: every target that needs Python
# packages makes .venv itself, with the exact versions of requirements.txt.

PYTHON ?= python3
# PyPI's torch for Linux brings several GB of CUDA libraries that this course never uses. PyTorch's
# own index has CPU builds: make book TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
# SOLUTIONS=0 leaves the solutions pages, and the links to them, out of the book.
SOLUTIONS ?= 1
# A folder or an address from which the pages take their in-page Python. Empty: the public CDN.
PYODIDE ?=
# Which notebooks `make refresh` executes again. Empty: all of them.
NB ?=
PORT ?= 8000

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MODELS := $(VENV)/.installed-models
NBGRADER := _build/nbgrader
BUILD := $(if $(filter 0,$(SOLUTIONS)),_build/without-solutions,_build/with-solutions)
HTML := $(BUILD)/_build/html

# Matrices here are small: more threads only make runs slower and sums come out in another order.
export OMP_NUM_THREADS := 1
# Read by assets/ext/course.py. A relative folder would depend on where Sphinx runs.
export PYODIDE := $(if $(wildcard $(PYODIDE)),$(abspath $(PYODIDE)),$(PYODIDE))
# A recipe whose command fails part-way leaves no half-made target that looks up to date.
.DELETE_ON_ERROR:
# One shell a recipe line, and a failing command inside a pipe fails the line.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

.DEFAULT_GOAL := help
.PHONY: help book test test-slow test-models robust lint lab exercises refresh serve test-browser \
        lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  make book SOLUTIONS=0         without the solutions"
	@echo "  make book TORCH_INDEX=URL     take torch from that package index"
	@echo "  make book PYODIDE=DIR_OR_URL  where pages get their in-page Python"
	@echo "  make refresh NB=PATH          only that notebook or folder"

$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("The course needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
ifneq ($(TORCH_INDEX),)
# First and alone, so that nothing else comes from that index; torch's exact pin is in the lock.
	$(BIN)/pip install --index-url $(TORCH_INDEX) "$$(grep '^torch==' requirements.txt)"
endif
	$(BIN)/pip install --quiet -r requirements.txt
# --no-deps: what the package needs is locked above. -e: an edit of lnres_utils/ counts at once.
	$(BIN)/pip install --quiet --no-deps -e .
	touch $@

book: $(STAMP) ## build the book and print the page to open
	@mkdir -p $(BUILD)
# Without solutions the book has another table of contents, and thereby another build folder:
# pages that Sphinx remembers from one of the two must not reach the other.
	@$(BIN)/python assets/ext/toc.py _toc.yml $(BUILD)/_toc.yml --solutions $(SOLUTIONS)
# Pages whose sources are gone must not remain; Sphinx writes again whatever is missing.
	@rm -rf $(HTML)
# -W: a warning is an error. -n: so is a reference to nothing. --keep-going: report them all at once.
	$(BIN)/jupyter-book build . --toc $(BUILD)/_toc.yml --path-output $(BUILD) -W -n --keep-going
	@echo "Open $(abspath $(HTML))/index.html"

test: lint ## both strict books, unit tests, every notebook run again and compared, fresh exercises
	$(MAKE) book SOLUTIONS=1
	$(MAKE) book SOLUTIONS=0
# Three folders have their own targets: one needs Chromium, one public libraries, one much time.
# loadfile: the tests of one file share what is costly to make. LNRES_BUILT: the two books of above
# are looked at, not built again.
	LNRES_BUILT=$(abspath _build) $(BIN)/pytest tests --ignore=tests/browser --ignore=tests/models \
	  --ignore=tests/slow -n 2 --dist loadfile
# loadfile again: the cells of a notebook need the ones before them.
	$(BIN)/pytest --nbval chapters solutions exercises -n 2 --dist loadfile
	$(BIN)/python -m lnres_utils.authoring check

# nbgrader runs the checks of the course: its environment has the course, at the same pins (-c). It
# is not .venv, since nbgrader adds its panels to JupyterLab.
$(NBGRADER)/.installed: requirements.txt tests/slow/requirements-nbgrader.txt pyproject.toml
	$(PYTHON) -m venv --clear $(NBGRADER)
ifneq ($(TORCH_INDEX),)
	$(NBGRADER)/bin/pip install --index-url $(TORCH_INDEX) "$$(grep '^torch==' requirements.txt)"
endif
	$(NBGRADER)/bin/pip install --quiet -c requirements.txt -r tests/slow/requirements-nbgrader.txt \
	  -e '.[lessons]'
	touch $@

test-slow: robust $(NBGRADER)/.installed ## the tests that take longest
	LNRES_NBGRADER=$(abspath $(NBGRADER))/bin $(BIN)/pytest tests/slow -n 2 --dist loadfile

# --no-deps: the list is complete, and so no pin of requirements.txt can move.
$(MODELS): $(STAMP) tests/models/requirements.txt
ifneq ($(TORCH_INDEX),)
# Built for the same torch; any other is stood in for (tests/models/stand_ins.py).
	$(BIN)/pip install --quiet --no-deps --index-url $(TORCH_INDEX) \
	  "$$(grep '^torchvision==' tests/models/requirements.txt)"
endif
	$(BIN)/pip install --quiet --no-deps -r tests/models/requirements.txt
	touch $@

test-models: $(MODELS) ## the audit, asked about layers of public libraries
	$(BIN)/pytest tests/models

robust: $(STAMP) ## every notebook again on two simulated older CPUs, its outputs compared
	$(BIN)/python tests/robust.py

lint: $(STAMP) ## the style of all Python files and notebooks
	$(BIN)/ruff check .

# Opened in exercises/, but served from here: a check's report links to ../chapters/.
lab: $(STAMP) ## work the exercises in JupyterLab
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/exercises

exercises: $(STAMP) ## write exercises/ again from solutions/
	$(BIN)/python -m lnres_utils.authoring exercises

refresh: $(STAMP) ## execute the notebooks again and store their outputs
	$(BIN)/python -m lnres_utils.authoring refresh $(NB)

# Loopback only: the book is for this machine's reader. The in-page Python needs a server.
serve: book ## serve the built book on this machine
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(HTML) $(PORT)

test-browser: book ## every page of the book in Chromium
	LNRES_BOOK=$(abspath $(HTML)) $(BIN)/pytest tests/browser -n 2

lock: ## resolve the newest versions pyproject.toml allows into requirements.txt
	rm -rf _build/lock
	$(PYTHON) -m venv _build/lock
ifneq ($(TORCH_INDEX),)
	_build/lock/bin/pip install --extra-index-url $(TORCH_INDEX) '.[all]'
else
	_build/lock/bin/pip install '.[all]'
endif
# `+cpu` names one index's build of a version that every index has; CUDA's libraries are what the
# reader's torch asks for by itself, and a CPU build asks for none.
	{ echo "# Every package of the course, exact. Written by: make lock"; \
	  _build/lock/bin/pip freeze --exclude lnres-utils \
	  | grep -vE '^(nvidia-|cuda-|triton==)' | sed -E 's/^(torch==[^+]+)\+.*/\1/'; } > requirements.txt.new
	mv requirements.txt.new requirements.txt
	rm -rf _build/lock

clean: ## remove what was built; .venv stays
	rm -rf _build build lnres_utils.egg-info
