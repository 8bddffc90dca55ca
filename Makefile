# Everyday commands; each sets up what it needs (see tools/setup.sh). make help lists them.
PRESET ?= release
VENV := .venv
BUILD := build/$(PRESET)
LOG := build/log
STEP := tools/step.sh

.DEFAULT_GOAL := help
.PHONY: help demo test test-cpp test-python test-simulated mutants bench lint format docs build package setup clean distclean

help:  ## lists the commands
	@sed -n 's/^\([a-z-]*\):.*  ## /  make \1|/p' Makefile | column -t -s '|'

demo: package  ## runs the demonstration on 4 ranks and writes report.html
	@$(VENV)/bin/cuop demo

test: test-cpp test-python  ## runs every test; make test-simulated has a GPU to simulate as well

mutants: setup  ## plants 200 mistakes and lists those that no test notices (an hour; not part of CI)
	@$(VENV)/bin/python -m tools.mutants --preset $(PRESET)

bench: build  ## measures the CPU cases against their peers
	@$(VENV)/bin/cuop bench --suite cpu

lint: setup  ## checks layers, formatting and style
	@tools/lint.sh

format: setup  ## formats all sources
	@tools/lint.sh --fix

docs: build  ## writes the generated pages of docs/
	@$(VENV)/bin/python tools/generate_docs.py

setup:  ## installs system packages and fills .venv
	@tools/setup.sh

package: setup $(BUILD)/build.ninja  ## builds the library and the Python package alone
	@$(STEP) "build ($(PRESET))" $(LOG)/build-$(PRESET).log \
	  cmake --build $(BUILD) --target cuop_package
	@tools/link_package.sh $(BUILD)/python

build: setup $(BUILD)/build.ninja  ## builds the library, the tests and the Python package
	@$(STEP) "build ($(PRESET))" $(LOG)/build-$(PRESET).log cmake --build $(BUILD)
	@tools/link_package.sh $(BUILD)/python

$(BUILD)/build.ninja: CMakePresets.json | setup
	@$(STEP) "configure ($(PRESET))" $(LOG)/configure-$(PRESET).log cmake --preset $(PRESET)
	@touch $@

test-cpp: build
	@$(STEP) "C++ tests" $(LOG)/ctest.log ctest --preset $(PRESET) -LE sim -j 2
	@grep 'tests passed' $(LOG)/ctest.log

test-python: build
	@$(STEP) "Python tests" $(LOG)/pytest.log $(VENV)/bin/python -m pytest -n 2 -rsfE
	@tail -n 1 $(LOG)/pytest.log

# The tests that need a GPU, and broad ones of all others with it as the default device, on one that is
# simulated (see CONTRIBUTING.md): minutes, for compiling its kernels into build/*/simulator/cache.
# Left out: a gigabyte filled 200 times.
NOT_SIMULATED = another_stream
ON_SIMULATED_DEFAULT = arrange device matmul out softmax_norm tensor values
test-simulated: build  ## runs what needs a GPU on one that is simulated
	@$(STEP) "C++, simulated GPU" $(LOG)/ctest-sim.log ctest --preset $(PRESET) -L sim -j 3
	@grep 'tests passed' $(LOG)/ctest-sim.log
	@$(STEP) "Python, simulated GPU" $(LOG)/pytest-sim.log \
	  env CUOP_DEVICE=cuda SIM_DELAY_US=100 SIM_RACES=1 tools/simulated_gpu.sh $(BUILD) \
	  $(VENV)/bin/python -m pytest -n 2 -rsfE -k "not ($(NOT_SIMULATED))" python/tests/gpu \
	  $(ON_SIMULATED_DEFAULT:%=python/tests/test_%.py) \
	  python/tests/test_auto_peaks.py \
	  python/tests/test_auto_limits.py::test_the_smallest_limit_works_and_no_smaller_one
	@tail -n 1 $(LOG)/pytest-sim.log

clean:  ## removes what was built
	rm -rf build

distclean: clean  ## removes .venv as well
	rm -rf $(VENV)
