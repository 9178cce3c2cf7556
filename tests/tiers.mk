# Runs the tests in tiers (TESTING.md), and with the sanitizers.  Included by the Makefile.

.PHONY: test built-for-test run-tests test-all nightly sanitize built-sanitized coverage run-for-coverage
PYTEST = CC='$(CC)' CXX='$(CXX)' $(CUDA_HOME:%=CUDA_HOME=%) tests/pytest --build $(BUILD)
# Tests with separate steps.
HOST_TOOL_TESTS := $(addprefix tests/tools/test_,mptune.py bench_report.py ranks.py mpi_faults.py demo.py kernel_report.py)
# Tests of the CUDA target together with the host target, and after an error.
CUDA_TOOL_TESTS := $(addprefix tests/tools/test_,targets.py faults_device.py)
TOOL_TESTS := $(filter-out $(HOST_TOOL_TESTS) $(CUDA_TOOL_TESTS),$(wildcard $(addsuffix /test_*.py,tests/tools tests/device softgpu/tests)))
# The longest suites are first, so that parallel jobs end at about the same time.
SUITES = "library::$(LIBRARY_THREADS)$(BUILD)/tests/mptests$(WITHOUT_LONG)" \
  "tools::$(PYTEST) $(TOOL_TESTS) $(if $(HOST_ONLY_STEPS),,$(CUDA_TOOL_TESTS))" \
  "bindings and examples::$(PYTEST) tests/bindings" \
  $(HOST_ONLY_STEPS) \
  "Python::MPCORE_DIR=$(BUILD) MP_LOG=error tests/pytest bindings/python/tests" \
  "Rust::tests/bindings/test_rust $(BUILD)" \
  "Fortran::tests/bindings/test_fortran $(BUILD)" \
  "C ABI, as C99::$(BUILD)/tests/test_capi"

ifneq ($(MP_TEST_DEVICE),cuda)
HOST_ONLY_STEPS = "MPI, a rank fails::$(PYTEST) tests/tools/test_mpi_faults.py" \
  "faults::$(BUILD)/tests/faulttests$(WITHOUT_LONG)" "threads::$(BUILD)/tests/threadtests" \
  "soak::$(BUILD)/tests/soaktest" "soak, injected::$(BUILD)/tests/soaktest --sabotage --steps 800" \
  "internals::$(BUILD)/tests/internals" "conformance::$(BUILD)/tests/conformance" \
  $(foreach n,2 4,"MPI, $(n) ranks::tests/tools/run_mpi $(n) $(BUILD)/tests/mpitests")
# Tests that only CI runs, so that `make test` takes minutes.
LONG_STEPS = "kernel report::$(PYTEST) tests/tools/test_kernel_report.py" \
  "bench report, its pages::$(PYTEST) tests/tools/test_bench_report.py -m 'not timing'" \
  "mpdemo, 2 ranks::$(PYTEST) tests/tools/test_ranks.py" \
  "mpdemo, its options::$(PYTEST) tests/tools/test_demo.py"
# Timing tests run last, so that other steps wait only once.
TIMING_STEPS = "alone: mptune::$(PYTEST) tests/tools/test_mptune.py" \
  "alone: bench report::$(PYTEST) tests/tools/test_bench_report.py -m timing"
endif

# Splits library tests into two parts of similar duration, which run in parallel.
HALVES := [gemm] ~[gemm]
# The tests are built once and run with the sanitizer build of the library, which the loader finds
# first through LD_LIBRARY_PATH.  mp_malloc of 2^60 bytes is a test.
ASAN := $(BUILD)/asan
PRELOAD_ASAN = LD_LIBRARY_PATH=$(ASAN) ASAN_OPTIONS=allocator_may_return_null=1 LD_PRELOAD=$$($(CXX) -print-file-name=libasan.so)
ASAN_STEPS = $(foreach half,$(HALVES),"address: library $(half)::$(PRELOAD_ASAN) $(BUILD)/tests/mptests [short]$(half)") \
  "address: fuzz::$(PRELOAD_ASAN) $(BUILD)/tests/mptests [fuzz]" \
  "address: C ABI::$(PRELOAD_ASAN) $(BUILD)/tests/test_capi" \
  "address: internals::LD_LIBRARY_PATH=$(ASAN) $(ASAN)/tests/internals" \
  "address: conformance::$(ASAN)/tests/conformance"

# Suites with separate builds of the library; $(1): seconds for each fuzzer, $(2): seed, 0 = random.
SEPARATE_BUILD_STEPS = "threads, ThreadSanitizer::$(MAKE) -j1 tsan" "fuzz::$(MAKE) -j1 fuzz FUZZ_SECONDS=$(1) FUZZ_SEED=$(2)"
GATES_STEP = "code generation::$(MAKE) -j1 cuda-gates"

JOBS ?= 2
RUN_TESTS = tests/run --jobs $(JOBS) --log $(BUILD)/tests/log_$@
# Runs make in a step of tests/run; in a variable, so that make -n does not run the tests.
STEP_MAKE = $(MAKE) -j$(JOBS)
## test: run every suite except long ones (MP_TEST_DEVICE=host|cuda)
test: setup-test
	$(BUILD_LOCAL) built-for-test
	@$(MAKE) $(LOCAL) run-tests
# Run by a second make, which sees the files that the first one has built.
built-for-test: $(TEST_BINS) $(EXAMPLES) $(INSTALLED)
run-tests: WITHOUT_LONG = $() '~[long]~[.]'
run-tests:
	@tests/run --jobs $(JOBS) --log $(BUILD)/tests/log_test $(SUITES)

# `make test` has a thread per processor, and another number of threads may select other kernels.
test-all: LIBRARY_THREADS = MP_HOST_THREADS=5 $()
## test-all: tests of CI: also sanitizers, software device, code generation, the demo
test-all: setup-test setup-demo setup-gates
	@$(MAKE) tests $(BUILT_FOR_SOFTGPU)
	@$(MAKE) built-sanitized
	@$(RUN_TESTS) $(SUITES) $(ASAN_STEPS) $(LONG_STEPS) $(SOFTGPU_SUITES) $(call SEPARATE_BUILD_STEPS,12,1) $(GATES_STEP) \
	  "demo::$(BUILD)/mpdemo --net mlp --out $(BUILD)/demo" $(TIMING_STEPS)

## nightly: takes hours: other orders, over 2^31 elements, clean chroots of two Debian releases
nightly: setup-test setup-roots
	@$(MAKE) tests $(BUILT_FOR_SOFTGPU)
	@$(RUN_TESTS) "alone: nightly::$(BUILD)/tests/mptests [nightly] -d yes" $(SOFTGPU_SEED_SUITES) $(SOFTGPU_OLDER_SUITES) \
	  $(call SEPARATE_BUILD_STEPS,3600,0) "soak, 100000 steps::$(BUILD)/tests/soaktest --steps 100000 --resume-every 1000" \
	  "alone: roots of two releases::tests/roots/run --build $(BUILD)" \
	  "alone: aarch64::tests/aarch64/run --build $(BUILD) --jobs $(JOBS)"

## sanitize: short tests under AddressSanitizer and UBSan
sanitize: setup-test
	@$(MAKE) tests
	@$(MAKE) built-sanitized
	@tests/run --jobs $(JOBS) --log $(ASAN)/log $(ASAN_STEPS)
built-sanitized:
	@$(MAKE) lib $(ASAN)/tests/internals $(ASAN)/tests/conformance SAN=address BUILD=$(ASAN)

# Counters of the library; the tests are not instrumented.
COVERAGE := $(BUILD)/coverage
GCOV ?= gcov
ifeq ($(SAN),coverage)
INTERNALS_FLAGS := $(filter-out $(SAN_FLAGS),$(INTERNALS_FLAGS))
endif

## coverage: executed lines and branches of the library on the host target (COVERED="[short]")
coverage: setup-test
	@$(MAKE) $(BUILD)/tests/mptests $(BUILD)/tests/test_capi
	@$(MAKE) lib $(COVERAGE)/tests/internals SAN=coverage BUILD=$(COVERAGE)
	@find $(COVERAGE) -name '*.gcda' -delete
	@$(MAKE) run-for-coverage

COVERED ?= ~[long]~[.]
run-for-coverage: export LD_LIBRARY_PATH := $(abspath $(COVERAGE))
# Each process runs kernels on one thread: counters are not atomic, which would be much slower.
run-for-coverage: export MP_HOST_THREADS := 1
run-for-coverage:
	@tests/run --jobs $(JOBS) --log $(COVERAGE)/log "coverage: internals::$(COVERAGE)/tests/internals" \
	  "coverage: C ABI::$(BUILD)/tests/test_capi" \
	  $(foreach half,$(HALVES),"coverage: library $(half)::$(BUILD)/tests/mptests '$(COVERED)$(half)'"); \
	  status=$$?; tests/coverage --gcov $(GCOV) $(COVERAGE_FLAGS) $(COVERAGE) && exit $$status
