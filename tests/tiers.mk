# Runs the tests in tiers (TESTING.md), and with the sanitizers.  Included by the Makefile.

.PHONY: test built-for-test run-tests test-all nightly sanitize run-sanitized coverage run-for-coverage
PYTEST = CC='$(CC)' CXX='$(CXX)' $(CUDA_HOME:%=CUDA_HOME=%) tests/pytest --build $(BUILD)
HOST_TOOL_TESTS := $(addprefix tests/tools/test_,mptune.py bench_report.py ranks.py mpi_faults.py demo.py)
# Tests of the CUDA target together with the host target, and after an error.
CUDA_TOOL_TESTS := $(addprefix tests/tools/test_,targets.py failed_device.py faults_device.py)
TOOL_TESTS := $(filter-out $(HOST_TOOL_TESTS) $(CUDA_TOOL_TESTS),$(wildcard $(addsuffix /test_*.py,tests/tools tests/device softgpu/tests)))
# The library is first because it takes longest; other suites run in parallel or after it.
SUITES = "library::$(BUILD)/tests/mptests$(LIBRARY_FILTER)" \
  "C ABI, as C99::$(BUILD)/tests/test_capi" \
  "Python::MPCORE_DIR=$(BUILD) MP_LOG=error tests/pytest bindings/python/tests" \
  "Rust::tests/bindings/test_rust $(BUILD)" \
  "Fortran::tests/bindings/test_fortran $(BUILD)" \
  "bindings and examples::$(PYTEST) tests/bindings" \
  "tools::$(PYTEST) $(TOOL_TESTS) $(if $(HOST_ONLY_STEPS),,$(CUDA_TOOL_TESTS))" \
  $(HOST_ONLY_STEPS)

# Strict mode tests one thread schedule per seed.
SEEDS ?= 1
CONV_SEEDS ?= 1
WGMMA_SEEDS ?= 1
STRICT_STEPS = $(foreach s,$(SEEDS),"strict, seed $(s)::MP_HOST_MODE=strict MP_HOST_SEED=$(s) $(BUILD)/tests/mptests [strict]")
# All generated convolutions; the strict steps include only a few.
CONV_STEPS = $(foreach s,$(CONV_SEEDS),"conv, strict, seed $(s)::MP_HOST_MODE=strict MP_HOST_SEED=$(s) $(BUILD)/tests/mptests [conv]")
# The pipelines of Hopper kernels require more schedules than the default.
WGMMA_STEPS = $(foreach s,$(WGMMA_SEEDS),"wgmma, strict, seed $(s)::MP_HOST_MODE=strict MP_HOST_SEED=$(s) $(BUILD)/tests/mptests [wgmma]")
ifneq ($(MP_TEST_DEVICE),cuda)
HOST_ONLY_STEPS = "the simulator::$(BUILD)/tests/simulator" "conformance::$(BUILD)/tests/conformance" \
  $(foreach n,2 4,"MPI, $(n) ranks::tests/tools/run_mpi $(n) $(BUILD)/tests/mpitests") \
  "faults::$(BUILD)/tests/faulttests" "threads::$(BUILD)/tests/threadtests" \
  "soak::$(BUILD)/tests/soaktest" "soak, injected::$(BUILD)/tests/soaktest --sabotage --steps 800" \
  "MPI, a rank fails::$(PYTEST) tests/tools/test_mpi_faults.py"
SEED_STEPS = $(STRICT_STEPS) $(CONV_STEPS) $(WGMMA_STEPS)
# Tests that only CI runs, so that `make test` takes minutes.
LONG_STEPS = "bench report, its pages::$(PYTEST) tests/tools/test_bench_report.py -m 'not timing'" \
  "mpdemo, 2 ranks::$(PYTEST) tests/tools/test_ranks.py" \
  "mpdemo, its options::$(PYTEST) tests/tools/test_demo.py"
# Timing tests run last, so that other steps wait only once.
TIMING_STEPS = "alone: mptune::$(PYTEST) tests/tools/test_mptune.py" \
  "alone: bench report::$(PYTEST) tests/tools/test_bench_report.py -m timing"
endif

# Suites with separate builds; $(1): seconds for each fuzzer, $(2): seed, 0 = random.
HOSTILE_STEPS = "threads, ThreadSanitizer::$(MAKE) -j1 tsan" "fuzz::$(MAKE) -j1 fuzz FUZZ_SECONDS=$(1) FUZZ_SEED=$(2)"

JOBS ?= 2
RUN_TESTS = tests/run --jobs $(JOBS) --log $(BUILD)/tests/log_$@
# Runs make in a step of tests/run; in a variable, so that make -n does not run the tests.
STEP_MAKE = $(MAKE) -j$(JOBS)
## test: run every suite except long ones (MP_TEST_DEVICE=host|cuda, SEEDS="1 2")
test: setup-test
	$(BUILD_LOCAL) built-for-test
	@$(MAKE) $(LOCAL) run-tests
# Run by a second make, which sees the files that the first one has built.
built-for-test: $(TEST_BINS) $(EXAMPLES) $(INSTALLED)
run-tests: LIBRARY_FILTER = $() '~[long]~[.]'
run-tests:
	@tests/run --jobs $(JOBS) --log $(BUILD)/tests/log_test $(SUITES) $(if $(filter cuda,$(MP_TEST_DEVICE)),,$(STRICT_STEPS))

## test-all: tests of CI: also more seeds, sanitizers, software device, code generation, the demo
test-all: SEEDS = 2
# Hopper kernels take many minutes per run under AddressSanitizer, which therefore runs only plain
# mode here.
test-all: setup-test setup-demo
	@$(MAKE) tests $(BUILT_FOR_SOFTGPU)
	@$(RUN_TESTS) $(SUITES) $(LONG_STEPS) $(STRICT_STEPS) $(WGMMA_STEPS) $(SOFTGPU_SUITES) $(call HOSTILE_STEPS,12,1) $(TIMING_STEPS) \
	  "alone: code generation::$(STEP_MAKE) cuda-gates" \
	  "alone: AddressSanitizer, UBSan::$(STEP_MAKE) sanitize SEEDS=" \
	  "alone: demo::$(BUILD)/mpdemo --net mlp --out $(BUILD)/demo"

## nightly: tests of hours: all seeds, more than 2^31 elements, clean chroots of two Debian releases
nightly: SEEDS = $(shell seq 3 20)
nightly: CONV_SEEDS = $(shell seq 20)
nightly: WGMMA_SEEDS = $(shell seq 2 100)
nightly: setup-test setup-roots
	@$(MAKE) tests $(BUILT_FOR_SOFTGPU)
	@$(RUN_TESTS) "alone: nightly::$(BUILD)/tests/mptests [nightly] -d yes" $(SEED_STEPS) $(SOFTGPU_SEED_SUITES) $(SOFTGPU_OLDER_SUITES) \
	  $(call HOSTILE_STEPS,3600,0) "soak, 100000 steps::$(BUILD)/tests/soaktest --steps 100000 --resume-every 1000" \
	  "alone: AddressSanitizer, UBSan::$(STEP_MAKE) sanitize SEEDS='1 2'" \
	  "alone: roots of two releases::tests/roots/run --build $(BUILD)" \
	  "alone: aarch64::tests/aarch64/run --build $(BUILD) --jobs $(JOBS)"

# The tests are built once and run with the sanitizer build of the library, which the loader finds
# first through LD_LIBRARY_PATH.  PLAIN= disables plain mode; strict mode runs once per seed.
PLAIN ?= 1
ASAN := $(BUILD)/asan

## sanitize: short tests under AddressSanitizer and UBSan, plain and strict
sanitize: setup-test
	@$(MAKE) tests
	@$(MAKE) lib $(ASAN)/tests/simulator $(ASAN)/tests/conformance SAN=address BUILD=$(ASAN)
	@$(MAKE) run-sanitized PRELOAD="$$($(CXX) -print-file-name=libasan.so)"

# Splits the strict tests into two parts of similar duration, which run in parallel.
HALVES := [gemm] ~[gemm]
run-sanitized: export LD_LIBRARY_PATH := $(ASAN)
# mp_malloc of 2^60 bytes is a test.
run-sanitized: export ASAN_OPTIONS := allocator_may_return_null=1
run-sanitized:
	@tests/run --jobs $(JOBS) --log $(ASAN)/log \
	  "address: the simulator::$(ASAN)/tests/simulator" \
	  "address: conformance::$(ASAN)/tests/conformance" \
	  "address: C ABI::LD_PRELOAD=$(PRELOAD) $(BUILD)/tests/test_capi" \
	  $(foreach half,$(HALVES),$(if $(PLAIN),"address: plain $(half)::LD_PRELOAD=$(PRELOAD) $(BUILD)/tests/mptests [strict]$(half)")) \
	  "address: fuzz::LD_PRELOAD=$(PRELOAD) $(BUILD)/tests/mptests [fuzz]" \
	  $(foreach s,$(SEEDS),$(foreach half,$(HALVES),"address: strict, seed $(s), $(half)::LD_PRELOAD=$(PRELOAD) MP_HOST_MODE=strict MP_HOST_SEED=$(s) $(BUILD)/tests/mptests [strict]$(half)"))

# Counters of the library; the simulator and the tests are not instrumented.
COVERAGE := $(BUILD)/coverage
GCOV ?= gcov
ifeq ($(SAN),coverage)
$(SIM_OBJS): private CXXFLAGS_BASE := $(filter-out $(SAN_FLAGS),$(CXXFLAGS_BASE))
SIMULATOR_FLAGS := $(filter-out $(SAN_FLAGS),$(SIMULATOR_FLAGS))
endif

## coverage: executed lines of capi, graph and kernels on the host target (COVERED="[strict]")
coverage: setup-test
	@$(MAKE) tests
	@$(MAKE) lib $(COVERAGE)/tests/simulator SAN=coverage BUILD=$(COVERAGE)
	@find $(COVERAGE) -name '*.gcda' -delete
	@$(MAKE) run-for-coverage

COVERED ?= ~[long]~[.]
run-for-coverage: export LD_LIBRARY_PATH := $(abspath $(COVERAGE))
run-for-coverage:
	@tests/run --jobs $(JOBS) --log $(COVERAGE)/log "coverage: the simulator::$(COVERAGE)/tests/simulator" \
	  "coverage: C ABI::$(BUILD)/tests/test_capi" \
	  $(foreach half,$(HALVES),"coverage: library $(half)::$(BUILD)/tests/mptests '$(COVERED)$(half)'"); \
	  status=$$?; tests/coverage --gcov $(GCOV) $(COVERAGE) && exit $$status
