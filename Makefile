# The commands of this project. `make` alone lists them.

.DEFAULT_GOAL := help
.NOTPARALLEL: # All targets share .venv and _build, also under `make -j`.
.PHONY: help html test test-audits test-builds test-lines test-sanitizers test-soak
.PHONY: test-conformance accept-scoreboard
.PHONY: test-reproducible test-releases accept-releases test-wheel accept-wheel
.PHONY: bench-backend accept-bench-backend bench-algorithms accept-lines simulate serve clean
.PHONY: compile execute render check accept-outputs run-times
.PHONY: format preview i18n-add i18n-remove i18n-update i18n-check i18n-review i18n-status
.PHONY: linkcheck browser doctest cards new-backend

PYTHON ?= python3
# Another release of PyTorch than the default, from releases.toml. TORCH counts only on the
# command line.
RELEASE := $(if $(findstring command,$(origin TORCH)),$(TORCH))
BIN := .venv$(RELEASE:%=-%)/bin
VENV_PYTHON := $(BIN)/python
# $(call SET_UP,STAGE) creates the environment, or completes it.
SET_UP = @$(PYTHON) tools/environment.py $(1) $(RELEASE)

# Three processes, because many tests wait; each gets whole files, whose tests share what they
# build.
IN_PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder

# Python finds only what the requirements pin, whatever the caller's shell sets.
unexport PYTHONPATH PYTHONHOME PYTHONSAFEPATH
export PYTHONNOUSERSITE := 1
# All files of the project are UTF-8, whatever the caller's locale is.
export PYTHONUTF8 := 1

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-20s  %s\n", $$1, $$2 }' Makefile
	@echo "All accept TORCH=RELEASE, another release of PyTorch from releases.toml."

html: ## build, verify and publish the whole site into _build/html
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.html

# SINCE counts only on the command line, as TORCH does.
test: html browser doctest ## build the site, then test the extension, the tools and the site
	$(call SET_UP,test)
	@SINCE="$(if $(findstring command,$(origin SINCE)),$(SINCE))" $(VENV_PYTHON) -m pytest $(IN_PARALLEL)

test-audits: html browser ## check all pages: valid HTML, accessibility, speed, room for longer texts
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest --junitxml=_build/junit-audits.xml -m audit

test-builds: html ## build a new project, and type the commands of pages
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest $(IN_PARALLEL) --junitxml=_build/junit-builds.xml -m slow

test-lines: html ## count the lines that samples execute; pages must highlight the others
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest --junitxml=_build/junit-lines.xml \
	    tests/instrumented/test_coverage.py

accept-lines: ## highlight the lines that were counted last as not executed
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.accept_lines

test-sanitizers: html ## run the extension with sanitizers for addresses and threads
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest --junitxml=_build/junit-sanitizers.xml \
	    tests/instrumented/test_sanitizers.py

test-soak: html ## random work on shared memory for SOAK_MINUTES=10, or one episode, SOAK_SEED=n
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest -s --junitxml=_build/junit-soak.xml -m soak tests/shm

test-conformance: html ## prove the suite of conformance/ with defects, and run it on our backends, some also on two hosts
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest --timeout=1000 -o addopts=--strict-markers \
	    --junitxml=_build/junit-conformance.xml tests/conformance

accept-scoreboard: compile ## run the suite on backends of ours and of others, and keep the counts (BACKEND=gloo for one)
	@$(VENV_PYTHON) -m tools.accept_scoreboard "$(BACKEND)"

test-reproducible: ## build two clones and compare every byte; damage and kill builds of a small site
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest --junitxml=_build/junit-reproducible.xml \
	    tests/test_reproducible.py tests/test_killed_builds.py

test-releases: ## compile and run with each release of PyTorch (TORCH=2.13.0 for one)
	@$(PYTHON) tools/environment.py render
	@.venv/bin/python -m tools.test_releases $(RELEASE)

accept-releases: ## the same, and accept the results
	@$(PYTHON) tools/environment.py render
	@.venv/bin/python -m tools.accept_releases $(RELEASE)

test-wheel: ## build one wheel for all releases of PyTorch, and use it with each
	@$(PYTHON) tools/environment.py releases
	@.venv/bin/python -m tools.test_wheel

accept-wheel: ## the same, and accept the results
	@$(PYTHON) tools/environment.py releases
	@.venv/bin/python -m tools.accept_wheel

format: ## format all Python and C++ code, and correct what ruff can correct
	$(call SET_UP,test)
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format --quiet
	@$(BIN)/clang-format -i $$(git ls-files --cached --others --exclude-standard '*.[ch]pp')

bench-backend: compile ## measure a backend and gloo in turns (BACKEND=shm or mpich; six minutes)
	@$(VENV_PYTHON) -m tools.bench_backend $(or $(BACKEND),shm)

accept-bench-backend: ## keep what was measured last, in extension/measurements*.csv
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.accept_bench_backend

bench-algorithms: compile ## measure algorithms of tcp, and gloo, on simulated hosts (ten minutes)
	@$(VENV_PYTHON) -m tools.bench_algorithms

# Some systems set HOSTS in every shell. Only what the command line names counts.
simulate: ## run algorithms on many ranks in virtual time (ALGORITHM=ring RANKS=64,512 BYTES=8)
	@PYTHONPATH=extension/frame $(PYTHON) -m c10d_frame.simulate $(foreach name,OPERATION \
	    ALGORITHM RANKS HOSTS BYTES LATENCY RATE OVERHEAD CHECK,$(if $(findstring command,$(origin \
	    $(name))),"$(name)=$($(name))"))

serve: ## serve the site on 127.0.0.1 (PORT=8000)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.serve $(PORT)

clean: ## remove everything that was built or installed, .venv included
	@rm -rf _build .venv .venv-* .pytest_cache
	@find locales -name '*.mo' -delete
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@rm -rf extension/*/build extension/*/*.egg-info

preview: ## show one language in the browser and follow its edits (LANGUAGE=ko, PORT=8001)
	$(call SET_UP,preview)
	@$(VENV_PYTHON) -m tools.preview "$(LANGUAGE)" $(PORT)

compile: ## stage 1: build the C++ extension
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.compile

execute: ## stage 2: run the samples that changed
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.execute

accept-outputs: ## accept what the samples printed when they last ran
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.accept_outputs

run-times: ## measure how long new and changed samples take a reader (PAGE=right/training for one)
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.run_times "$(PAGE)"

render: ## stage 3: render all languages (needs neither PyTorch nor a compiler)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.render

check: ## stage 4: check the rendered pages and the catalogs
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.check

i18n-update: ## bring the message catalogs up to date with the English text
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_update

i18n-add: ## add a language to the site, and print what else it needs (LANGUAGE=ja)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_add "$(LANGUAGE)"

i18n-remove: ## remove a language from the site (LANGUAGE=ja)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_remove "$(LANGUAGE)"

i18n-check: ## check the message catalogs
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_check

i18n-review: ## show what changed in the translations since a commit (SINCE=main)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_review "$(SINCE)"

i18n-status: ## count what is translated, fuzzy and untranslated, and since when
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_status

linkcheck: ## check the external links (needs the network, not part of the tests)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.linkcheck

cards: browser ## draw the pictures of link previews again (docs/_root/card-*.png)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.cards

# Some systems set NAME or KIND in every shell. Only those of the command line count.
new-backend: ## begin a backend of your own (NAME=acme; KIND=messages or KIND=accelerator)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.new_backend "$(if $(findstring command,$(origin NAME)),$(NAME))" "$(FOLDER)" "$(if $(findstring command,$(origin KIND)),$(KIND))"

browser doctest:
	@sh tools/system_packages.sh $@
