# Every target that runs Python makes its own environment first: nothing but make and a Python is needed.
# Outer settings: VENV=<directory of the environment>, OLDEST=<that of the one with Spark 4.1>, SPARK40=<4.0>,
# SPARK35=<and 3.5>,
# PYTHON=<the Python to make them with>, WORKERS=<processes that share the tests: one more than the two cores of a small
# machine, since some tests wait for servers>, TIMEOUT=<seconds for one test: one that hangs fails with the stacks of its
# threads>, for fuzz-decoders SECONDS=<for each target>, and for lock UPGRADE= (empty: keep the pins that still hold).

VENV ?= .venv
OLDEST ?= .venv-oldest
PYTHON ?=
UPGRADE ?= --upgrade
SECONDS ?= 60
WORKERS ?= 3
TIMEOUT ?= 900
BIN := $(VENV)/bin
SLOWEST := --durations 20 --durations-min 5 # tests that take longest, with their seconds
# Tests start many processes, none of which should compile what the one before it compiled.
unexport PYTHONDONTWRITEBYTECODE
# A session of Spark serves all tests of a module.
SHARED = -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --timeout $(TIMEOUT) $(SLOWEST)
STAMP := $(VENV)/.installed
PIP := -m pip install --quiet --disable-pip-version-check --no-compile -c
OLDEST_SPARK := 4.1.4
SPARK40 ?= .venv-4.0
SPARK40_SPARK := 4.0.5
SPARK35 ?= .venv-3.5
SPARK35_SPARK := 3.5.9
SPARK35_PYTHON = $(shell python3.11 -c '' 2>/dev/null && echo python3.11)  # the newest that Spark 3.5 is made for
NPM := $(shell command -v npm 2>/dev/null)
AZURITE := azurite@3.37.0
ENABLED_ICEBERG := $(addprefix spark/enable/test_enable_iceberg,.py _aggregates.py _conflicts.py _current.py \
    _first_rows.py _groups.py _merge.py _merge_costs.py _planning.py _sources.py _statistics.py)
NEEDS_SPARK35 := $(addprefix tests/spark/,enable/test_enable.py test_hand_off.py test_spark_3.py)
NEEDS_SPARK35_FULL := $(addprefix tests/,laws/sql/test_front_ends.py spark/test_transparent.py \
    spark/test_transparent_trouble.py spark/test_grouping.py \
    spark/enable/test_enable_trouble.py spark/test_join_keys.py spark/test_top_n.py spark/test_named_tables.py \
    spark/test_spark_iceberg.py spark/test_stream.py spark/test_frame_tables.py laws/predicates/test_text_rows.py \
    $(ENABLED_ICEBERG))
NEEDS_SPARK40 := $(addprefix tests/,$(addprefix spark/,test_hand_off.py enable/test_enable.py test_transparent.py \
    test_spark_source.py test_variant.py test_named_tables.py test_frame_tables.py test_spark_iceberg.py test_stream.py \
    test_grouping.py test_join_keys.py test_top_n.py test_glob.py test_transparent_trouble.py \
    enable/test_enable_trouble.py) laws/predicates/test_text_rows.py $(ENABLED_ICEBERG))
NEEDS_SPARK40_DELTA := $(addprefix tests/spark/,test_delta_spark.py enable/test_enable_delta.py)
# Longest first, so that no long one is left to a single process at the end.
NEEDS_OLDEST := $(addprefix tests/,spark/enable/test_enable_iceberg_merge.py \
    spark/enable/test_enable_iceberg_sources.py spark/test_spark_iceberg.py spark/enable/test_enable_iceberg.py \
    spark/enable/test_enable_iceberg_planning.py \
    spark/enable/test_enable_iceberg_merge_costs.py spark/test_hand_off.py \
    spark/enable/test_enable_iceberg_groups.py spark/enable/test_enable_iceberg_aggregates.py \
    spark/enable/test_enable_iceberg_first_rows.py spark/enable/test_enable_iceberg_conflicts.py \
    spark/enable/test_enable_iceberg_statistics.py spark/test_named_tables.py spark/test_reclustering_iceberg.py \
    laws/tables/test_iceberg_histories.py laws/tables/test_iceberg_rules.py)
NEEDS_OLDEST_FULL := $(addprefix tests/,spark/enable/test_enable.py spark/test_spark_source.py spark/test_transparent.py \
    spark/test_grouping.py spark/test_transparent_trouble.py spark/enable/test_enable_trouble.py laws/sql/test_tpch_iceberg.py)
NEEDS_HUDI := tests/spark/test_hudi_spark.py  # whose bundle no other session gets
NEEDS_DELTA := $(addprefix tests/spark/,enable/test_enable_delta_merge.py enable/test_enable_delta_aggregates.py \
    enable/test_enable_delta_ranges.py test_reclustering_delta.py enable/test_enable_delta.py test_delta_features.py \
    test_delta_spark.py)  # whose jar no other session gets, but which gets Iceberg's
NEEDS_DELTA_FULL := $(addprefix tests/house/test_benchmarks.py::,test_a_look_up_in_delta_gives_the_same_rows \
    test_keys_are_merged_into_delta_with_the_same_rows \
    test_three_ranges_are_planned_by_delta_too)

.PHONY: help demo demo-local environments test test-fast test-full oldest spark35 spark40 azurite lint types format bench bench-peers conformance docs site fuzz fuzz-decoders dist clean lock

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP) ## plain SQL on a lake, then one line, then the same SQL: requests, bytes and seconds of both
	$(BIN)/secateur demo

demo-local: $(STAMP) ## the same idea on the local disk, without S3: what each stage of pruning leaves
	$(BIN)/secateur demo --local

test: ## every check: lint, types, and the tests, in their quick profile
	$(MAKE) --jobs 2 environments lint types $(VENV)/classes.jsa $(if $(NPM),azurite)
	$(MAKE) oldest spark35
	$(BIN)/python $(SHARED)

# Both cores make what the tests need, each environment after the other, as all write the package's own metadata.
environments: $(STAMP)
	$(MAKE) $(OLDEST)/.installed
	$(if $(SPARK35_PYTHON),$(MAKE) $(SPARK35)/.installed)

test-fast: $(STAMP) ## the tests that need no JVM, with few examples: the loop in which one works
	HYPOTHESIS_PROFILE=fast $(BIN)/python $(SHARED) -m "not spark"

test-full: ## every check, with all examples and the tests that take long: about an hour
	HYPOTHESIS_PROFILE=full $(MAKE) test spark40 TIMEOUT=5400

oldest: $(OLDEST)/.installed ## the tests that need Spark 4.1, which has Iceberg and Delta, and the hand-off there
	$(OLDEST)/bin/python $(SHARED) $(NEEDS_OLDEST) $(if $(findstring full,$(HYPOTHESIS_PROFILE)),$(NEEDS_OLDEST_FULL))
	$(OLDEST)/bin/python $(SHARED) $(NEEDS_DELTA) $(if $(findstring full,$(HYPOTHESIS_PROFILE)),$(NEEDS_DELTA_FULL))

spark35: $(if $(SPARK35_PYTHON),$(SPARK35)/.installed) ## the hand-off on Spark 3.5, if there is a Python 3.11; all roads in the full profile
	$(if $(SPARK35_PYTHON),$(SPARK35)/bin/python $(SHARED) $(NEEDS_SPARK35) \
	    $(if $(findstring full,$(HYPOTHESIS_PROFILE)),$(NEEDS_SPARK35_FULL)),\
	    @echo "Spark 3.5 is left out: it needs Python 3.11" >&2)
	$(if $(SPARK35_PYTHON),$(if $(findstring full,$(HYPOTHESIS_PROFILE)),$(SPARK35)/bin/python $(SHARED) $(NEEDS_HUDI)))

spark40: $(SPARK40)/.installed ## the roads on Spark 4.0, which only the full profile takes
	$(SPARK40)/bin/python $(SHARED) $(NEEDS_SPARK40)
	$(SPARK40)/bin/python $(SHARED) $(NEEDS_SPARK40_DELTA)

azurite: $(VENV)/node/.installed ## an Azure server for the tests, by npm; without it they are skipped

lint: $(STAMP) ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP) ## mypy, strict
	$(BIN)/mypy

format: $(STAMP) ## rewrite the code as ruff wants it
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(STAMP) ## measure, and write the numbers down
	$(BIN)/python -m benchmarks

bench-peers: $(STAMP) ## the same questions to DuckDB, DataFusion, Polars, Lance, Databend, and on Spark to Iceberg, Delta and Hudi
	$(BIN)/python -m benchmarks.peer_engines --page docs/peers.md

conformance: $(STAMP) ## the classes of bugs that lose rows, on every table format
	$(BIN)/python -m conformance

docs: $(STAMP) ## run the examples of the documentation
	$(BIN)/python -m pytest tests/face/test_docs.py

site: $(STAMP) ## the documentation as pages, in build/site; once its tools are there, no network is needed
	$(BIN)/python -c 'import material, mkdocstrings' 2>/dev/null || $(BIN)/python $(PIP) constraints.txt -e ".[site]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

fuzz: $(STAMP) ## the property tests, many more examples than usual
	HYPOTHESIS_PROFILE=nightly $(BIN)/python $(SHARED) --timeout 0

fuzz-decoders: $(STAMP) ## what reads index files and footers under the bytes of atheris, SECONDS=60 for each target
	$(BIN)/python $(PIP) constraints.txt -e ".[fuzz]"
	$(BIN)/python -m fuzz --seconds $(SECONDS)

dist: $(STAMP) ## the package for an index, in dist; URL=<address of the repository>, under which README's links work there
	@test -n "$(URL)" || { echo "make dist URL=<address of the repository>" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m publish "$(URL)"

clean: ## remove builds, caches and the demo's data; keep the environment
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache demo-data fuzz/found fuzz/work
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

lock: $(STAMP) ## resolve every dependency anew into constraints.txt
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo \
	    "The pins have to suit the oldest Python: make lock VENV=.venv-lock PYTHON=python3.11" >&2; exit 1; }
	$(BIN)/python $(PIP) constraints.txt pip-tools
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet $(UPGRADE) --strip-extras \
	    --extra dev --extra demo --extra java --extra fuzz --extra site --no-annotate \
	    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	    --output-file constraints.txt pyproject.toml

# The newest Python that runs (a shim of pyenv may be there and fail) and can make an environment.
define make_venv
	if $(@D)/bin/python -m pip --version >/dev/null 2>&1; then exit 0; fi; \
	without_pip=; \
	for python in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
	    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
	    if $$python -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	        echo "making $(@D) with $$($$python --version)"; \
	        exec $$python -m venv $(@D); \
	    fi; \
	    without_pip="$$without_pip $$python"; \
	done; \
	if [ -n "$$without_pip" ]; then \
	    echo "These cannot make an environment, for want of the module ensurepip:$$without_pip" >&2; \
	    echo "On Debian and Ubuntu: apt install python3-venv (or python3.12-venv, for that Python)." >&2; \
	else \
	    echo "No Python of version 3.11 or newer was found among:" \
	        "$(or $(PYTHON),python3.13 python3.12 python3.11 python3)." >&2; \
	    echo "Install one, or name one: make PYTHON=/path/to/python3" >&2; \
	fi; \
	exit 1
endef

$(VENV)/node/.installed: $(STAMP)
	-npm install --silent --no-fund --no-audit --prefix $(@D) $(AZURITE) && touch $@

# The environments differ in Spark alone.
$(OLDEST)/.installed: other_pin = -e 's/^pyspark==.*/pyspark==$(OLDEST_SPARK)/'
$(SPARK40)/.installed: other_pin = -e 's/^pyspark==.*/pyspark==$(SPARK40_SPARK)/'
$(SPARK35)/.installed: other_pin = -e 's/^pyspark==.*/pyspark==$(SPARK35_SPARK)/'
$(SPARK35)/.installed: PYTHON := $(SPARK35_PYTHON)
$(STAMP) $(OLDEST)/.installed $(SPARK40)/.installed $(SPARK35)/.installed: install = $(@D)/bin/python $(PIP) $(@D)/constraints.txt
$(STAMP) $(OLDEST)/.installed $(SPARK40)/.installed $(SPARK35)/.installed: pyproject.toml constraints.txt
	@$(make_venv)
	@sed -e '' $(other_pin) constraints.txt >$(@D)/constraints.txt
	$(install) -e ".[dev,demo]"
	@$(@D)/bin/python -c 'import sys; from secateur.java import find_java; sys.exit(find_java() is None)' \
	    || { echo "no Java of version 17 or newer: installing one"; $(install) -e ".[java]"; }
	@touch $@

# The classes of Spark, which the many JVMs of the tests then need not parse. Those of other versions are too few for it.
$(VENV)/classes.jsa: $(STAMP) tests/support/programs/share_classes.py
	@rm -f $@
	@$(@D)/bin/python -m tests.support.programs.share_classes $@ >/dev/null 2>&1 || touch $@
