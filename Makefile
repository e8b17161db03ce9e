# The commands of this project. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help html test test-audits test-builds test-sanitizers test-faults test-reproducible
.PHONY: test-releases accept-releases bench serve clean
.PHONY: compile execute render check accept-outputs run-times
.PHONY: format preview i18n-add i18n-update i18n-check i18n-review i18n-status
.PHONY: linkcheck browser cards

PYTHON ?= python3
# A release of PyTorch other than the default, of releases.toml: only from the command line.
RELEASE := $(if $(findstring command,$(origin TORCH)),$(TORCH))
VENV_PYTHON := .venv$(RELEASE:%=-%)/bin/python
# $(call SET_UP,STAGE) creates the environment, or completes it.
SET_UP = @$(PYTHON) tools/environment.py $(1) $(RELEASE)

# Two processes, which get whole files: the tests of a file share what they build.
IN_PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder

# Only what the requirements pin may be found, whatever the caller's shell says.
unexport PYTHONPATH PYTHONHOME PYTHONSAFEPATH
export PYTHONNOUSERSITE := 1
# All our files are UTF-8, whatever the caller's locale.
export PYTHONUTF8 := 1

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s  %s\n", $$1, $$2 }' Makefile
	@echo "All take TORCH=RELEASE, for another release of PyTorch: see releases.toml."

html: ## build, verify and publish the whole site into _build/html
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.html

test: html browser ## build the site, then test the extension, the tools and the site
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest $(IN_PARALLEL)

test-audits: html browser ## audit all pages in the browser: accessibility, speed, longer texts
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest --junitxml=_build/junit-audits.xml -m audit

test-builds: html ## build on after edits, damage and kills; compare with builds from nothing
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest $(IN_PARALLEL) --junitxml=_build/junit-builds.xml -m slow

test-sanitizers: html ## run the extension with sanitizers for addresses and threads
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest -n 2 --dist loadgroup --junitxml=_build/junit-sanitizers.xml \
	    tests/instrumented/test_sanitizers.py

test-faults: html ## put faults into copies of the project; each has to be noticed
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest --junitxml=_build/junit-faults.xml \
	    tests/faults/test_faults.py tests/faults/test_killed_builds.py

test-reproducible: ## build two clones of the last commit, and compare the bytes
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m pytest --junitxml=_build/junit-reproducible.xml \
	    tests/faults/test_reproducible.py

test-releases: ## compile and run with each release of PyTorch (TORCH=2.13.0 for one)
	@$(PYTHON) tools/environment.py render
	@.venv/bin/python -m tools.test_releases $(RELEASE)

accept-releases: ## the same, and take over the results
	@$(PYTHON) tools/environment.py render
	@.venv/bin/python -m tools.accept_releases $(RELEASE)

format: ## put all Python code into form, and mend what can be mended
	$(call SET_UP,test)
	@$(VENV_PYTHON) -m ruff check --fix --quiet
	@$(VENV_PYTHON) -m ruff format --quiet

bench: html ## measure this build against the stock way (half an hour)
	@$(VENV_PYTHON) -m tools.bench

serve: ## serve the site on 127.0.0.1 (PORT=8000)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.serve $(PORT)

clean: ## remove everything that was built or installed, .venv included
	@rm -rf _build docs/*/*.rst .venv .venv-* .pytest_cache
	@find locales -name '*.mo' -delete
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@rm -rf extension/*/build extension/*/*.egg-info

preview: ## follow the edits of one language in the browser (LANGUAGE=ko, PORT=8001)
	$(call SET_UP,preview)
	@$(VENV_PYTHON) -m tools.preview "$(LANGUAGE)" $(PORT)

compile: ## stage 1: build the C++ extension
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.compile

execute: ## stage 2: run the samples that changed
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.execute

accept-outputs: ## take over what the samples showed when they were last run
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.accept_outputs

run-times: ## measure how long each sample takes a reader, for the pages to show
	$(call SET_UP,execute)
	@$(VENV_PYTHON) -m tools.run_times

render: ## stage 3: render all languages (needs neither PyTorch nor a compiler)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.render

check: ## stage 4: check the rendered pages and the catalogs
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.check

i18n-update: ## bring the message catalogs up to date with the English text
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_update

i18n-add: ## add a language to the site (LANGUAGE=ja)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_add "$(LANGUAGE)"
	@$(VENV_PYTHON) -m tools.i18n_update
	@echo "Now edit locales/$(LANGUAGE)/LC_MESSAGES, and see it with make preview LANGUAGE=$(LANGUAGE)"

i18n-check: ## check the message catalogs
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_check

i18n-review: ## show what changed in the translations since a commit (SINCE=main)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_review "$(SINCE)"

i18n-status: ## list what is translated, fuzzy and untranslated, and since when
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.i18n_status

linkcheck: ## ask whether external links still lead somewhere (by hand, not part of tests)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.linkcheck

cards: browser ## draw the pictures for link previews anew (docs/_root/card-*.png)
	$(call SET_UP,render)
	@$(VENV_PYTHON) -m tools.cards

browser:
	@sh tools/browser.sh
