# `make demo` and `make test` set up all they need. Everything lands in .venv and build/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
# Which agent CLIs `make e2e-clis` runs: all of them, or those that are named.
CLIS ?=
# Which frameworks `make test-frameworks` runs: all of them, or those that are named.
FRAMEWORKS ?=
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Which modules `make mutants` mutates: all that decide what a hook means, or those that are named.
MUTANTS ?=

.PHONY: demo test test-pythons test-frameworks test-frameworks-newest e2e e2e-ui e2e-clis e2e-guests e2e-recipes soak mutants check bench corpora docs format clean

demo: $(VENV)/demo
	@$(BIN)/fairlead demo

test: $(VENV)/dev
	$(BIN)/python -m pytest -n auto --dist worksteal

# The same tests with the oldest and the newest Python that Debian has; with the sweeps, too, unless NO_SWEEPS=1.
test-pythons: $(VENV)/dev
	$(BIN)/python tests/pythons.py .pythons $(if $(NO_SWEEPS),--no-sweeps)

test-frameworks: $(VENV)/dev
	$(BIN)/python tests/hosts/frameworks/environments.py .frameworks $(FRAMEWORKS)
ifeq ($(FRAMEWORKS),)
	$(BIN)/python tests/hosts/frameworks/matrix.py .frameworks/results
endif

# The same without the oldest versions: about half of the time.
test-frameworks-newest: $(VENV)/dev
	$(BIN)/python tests/hosts/frameworks/environments.py .frameworks --newest $(FRAMEWORKS)
ifeq ($(FRAMEWORKS),)
	$(BIN)/python tests/hosts/frameworks/matrix.py .frameworks/results --newest
endif

e2e: $(VENV)/dev
	$(BIN)/python -m pytest -m "(e2e or sweep) and not soak" -n auto

# The inspector in a real browser: Chromium of the distribution. Screenshots are in build/screenshots. Without npm, no
# agent CLI is looked at.
e2e-ui: $(VENV)/e2e-ui
	-$(BIN)/python tests/hosts/clis/real/fetch.py .clis codex claude_code
	$(BIN)/python -m pytest -m browser -n auto --dist loadfile tests/ui/browser

e2e-clis: $(VENV)/dev
	$(BIN)/python tests/hosts/clis/real/fetch.py .clis $(CLIS)
	FAIRLEAD_CLIS_WANTED="$(CLIS)" $(BIN)/python tests/hosts/clis/real/offline.py $(BIN)/python -m pytest -m clis -n auto tests/hosts/clis/real

# Editors and apps that run the hooks of the CLIs: the code for hooks in their packages, and the Copilot SDK whole.
e2e-guests: $(VENV)/dev
	$(BIN)/python tests/hosts/clis/real/fetch.py .clis cursor_sdk copilot_sdk jetbrains vscode
	$(BIN)/python tests/hosts/clis/real/offline.py $(BIN)/python -m pytest -m clis -n auto tests/hosts/clis/real/test_guests.py

# The recipes of docs/clis/machines.md, as they stand there, on a clean machine.
e2e-recipes: $(VENV)/dev
	$(BIN)/python tests/hosts/clis/real/fetch.py .clis recipes claude_code codex copilot
	$(BIN)/python tests/hosts/clis/real/offline.py $(BIN)/python -m pytest -m clis -n auto tests/hosts/clis/real/test_recipes.py

soak: $(VENV)/dev
	$(BIN)/python -m pytest -m soak -n auto --timeout=1800

mutants: $(VENV)/dev
	$(BIN)/python tests/mutants.py $(MUTANTS)

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCH)/ready
	$(BENCH)/bin/python -W ignore -m bench.dispatch --json build/bench/dispatch.json --svg build/bench/dispatch.svg
	$(BENCH)/bin/python -W ignore -m bench.runners
	$(BENCH)/bin/python -W ignore -m bench.loop
	$(BENCH)/bin/python -W ignore -m bench.shell
	$(BENCH)/bin/python -W ignore -m bench.packs
	$(BENCH)/bin/python -W ignore -m bench.journal
	$(BENCH)/bin/python -W ignore -m bench.replay
	$(BENCH)/bin/python -W ignore -m bench.server
	$(BENCH)/bin/python -W ignore -m bench.ui
	$(BENCH)/bin/python -W ignore -m bench.clis
	$(BENCH)/bin/python -m bench.frameworks
	$(BENCH)/bin/python -m bench.scale

# Scores the packs, redaction and the guard on the corpora in a folder: make corpora CORPORA=/folder [SKIP_RIVALS=1]
CORPORA ?=
SKIP_RIVALS ?=
corpora: $(VENV)/dev
	$(BIN)/python -m bench.corpora "$(CORPORA)" --page docs/packs.md --json build/corpora/results.json $(if $(SKIP_RIVALS),--skip-rivals)

docs: $(VENV)/core
	$(BIN)/python -m fairlead.reference build/docs
	$(BIN)/python docs/import_graph.py build/docs
	cp docs/*.md build/docs/
	mkdir -p build/docs/clis
	cp docs/clis/*.md build/docs/clis/
	mkdir -p build/docs/frameworks
	cp docs/frameworks/*.md build/docs/frameworks/

clean:
	rm -rf $(VENV) $(BENCH) .clis .frameworks .pythons build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -e .
	@touch $@

$(VENV)/demo: $(VENV)/core
	$(BIN)/python $(PIP) -e '.[demo]'
	@touch $@

$(VENV)/dev: $(VENV)/core
	$(BIN)/python $(PIP) -e '.[dev]'
	@touch $@

$(VENV)/e2e-ui: $(VENV)/dev
	$(BIN)/python $(PIP) -e '.[e2e-ui]'
	@touch $@

$(BENCH)/ready: pyproject.toml bench/constraints.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python $(subst constraints.txt,bench/constraints.txt,$(PIP)) -e '.[bench]'
	@touch $@
