# Builds and runs the tests, in tiers (TESTING.md).  Included by the Makefile.

# Tests of the simulator and of selection need hidden symbols, so they are linked with these parts
# into a separate binary; all other tests use libmpcore.so.
SIMULATOR_CPP := $(wildcard tests/simulator/*.cpp tests/select/*.cpp)
TEST_CPP := $(wildcard $(addprefix tests/,$(addsuffix /*.cpp,support gemm conv tensors step layers rnn autocast graph bindings tools)))
TEST_OBJS := $(TEST_CPP:%.cpp=$(BUILD)/%.o)
SIMULATOR_OBJS := $(SIMULATOR_CPP:%.cpp=$(BUILD)/simulator/%.o) $(BUILD)/tests/support/tally.o \
  $(patsubst %.cpp,$(BUILD)/obj/%.o,$(BASE_CPP) $(SIM_CPP) $(SIMT_CPP) $(GEMM_CPP) $(CONV_CPP)) \
  $(addprefix $(BUILD)/host/kernels/,layers/softmax_xent.o step/optimizer.o step/tensor_ratios.o) $(BUILD)/simulator/bench/tune/fit.o
INSTALLED := $(BUILD)/installed/mpinfo $(BUILD)/installed/mpdemo
CAPI_C := $(wildcard tests/capi/*.c)
TEST_BINS = $(BUILD)/tests/mptests $(BUILD)/tests/test_capi $(if $(MPICXX),$(BUILD)/tests/mpitests $(BUILD)/tests/mpitraining) $(if $(HAVE_ZLIB),$(BUILD)/mpdemo) $(BUILD)/tests/simulator $(BUILD)/tests/conformance $(HOSTILE)
RPATH := -Wl,-rpath,'$$ORIGIN/..' -Wl,-rpath,'$$ORIGIN'
LINK_LIB := -L$(BUILD) -lmpcore $(RPATH)
TEST_CXXFLAGS := -std=c++20 -O1 -g1 $(WARN) $(INCLUDES) $(SAN_FLAGS) $(if $(HOST_MARCH),-march=$(HOST_MARCH)) -ffp-contract=off
SIMULATOR_FLAGS := $(CXXFLAGS_BASE) $(HOST_KERNEL_FLAGS)
# Catch2 version 3 has a library, version 2 is header-only (tests/support/catch.h).
HASH := \#
has_header = $(shell echo '$(HASH)include <$(1)>' | $(CXX) -E -x c++ - > /dev/null 2>&1 && echo 1)
LINK_CATCH = $(if $(call has_header,catch2/catch_test_macros.hpp),-lCatch2)

PRECOMPILED = -include $(call precompiled,tests)
$(BUILD)/tests/%.o: tests/%.cpp $(call precompiled,tests).gch
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	$(Q)$(CXX) $(PRECOMPILED) $(TEST_CXXFLAGS) -MMD -MP -c $< -o $@

$(call precompiled,tests).gch: tests/support/precompiled.h
	$(call precompile,$(TEST_CXXFLAGS))
$(call precompiled,simulator).gch: tests/support/precompiled.h
	$(call precompile,$(SIMULATOR_FLAGS))

# Compiled like users of mpcore.hpp.  clang 22 warns of Catch2's __COUNTER__; older versions do not
# support the option that suppresses the warning.
$(BUILD)/tests/bindings/%.o: private TEST_CXXFLAGS := -std=c++17 -pedantic $(WARN) -Werror -Wno-unknown-warning-option -Wno-c2y-extensions -Iinclude -I. -O1 -g1
$(BUILD)/tests/bindings/%.o: PRECOMPILED :=
$(BUILD)/tests/bindings/test_cpp_without_exceptions.o: private TEST_CXXFLAGS += -fno-exceptions

# If the headers of CUDA and NCCL are installed, our declarations of NCCL are compared with them.
$(BUILD)/tests/step/test_comm_nccl.o: private TEST_CXXFLAGS += $(CAPI_INCLUDES)

# Stubs that the tests load instead of NCCL, NVML and cuDNN.
STUBS := $(addprefix $(BUILD)/tests/stub/,libnccl.so.2 libnvidia-ml.so.1 libcudnn.so.9)
$(BUILD)/tests/stub/libnccl.so.2: tests/stub/nccl.c tests/stub/nccl.h
$(BUILD)/tests/stub/libnvidia-ml.so.1: tests/stub/nvml.c tests/stub/nvml.h
$(BUILD)/tests/stub/libcudnn.so.9: tests/stub/cudnn.c
$(STUBS):
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c99 -pedantic -Wall -Wextra -Werror -fPIC -shared -Wl,-soname,$(@F) $< -lm -o $@

# The main part of Catch2, compiled without sanitizers, which take three times as long.
$(BUILD)/tests/support/tally.o: private TEST_CXXFLAGS := $(filter-out $(SAN_FLAGS),$(TEST_CXXFLAGS))
$(BUILD)/tests/support/tally.o: PRECOMPILED :=

# Parts of the bench that the tests call.
TESTED_BENCH := $(addprefix $(BUILD)/bench/,options.o rows/row.o rows/counted.o rows/figures.o rows/step_row.o rows/rnn_layer_row.o timing/counts.o shapes/shapes.o shapes/conv_shapes.o \
  shapes/rnn_shapes.o \
  shapes/epilogue_shapes.o shapes/batched_shapes.o shapes/layer_shapes.o timing/gpu_watch.o timing/agreement.o timing/machine.o timing/timing.o \
  peers/dynamic_library.o peers/nvml.o peers/cuda_runtime.o peers/cublaslt.o peers/cublas.o \
  peers/cudnn.o peers/cudnn_rnn.o suites/operation.o suites/batched_operation.o suites/problem.o suites/rnn_data.o)

# Rules for structs are tested with a struct that is not part of the library.
TESTED_CHECKS := $(addprefix $(BUILD)/obj/capi/,check.o enumerators.o overlap.o)

$(BUILD)/tests/mptests: $(TEST_OBJS) $(TESTED_BENCH) $(TESTED_CHECKS) $(LIB) | $(STUBS)
	@echo "  LINK $@"
	$(Q)$(CXX) $(SAN_FLAGS) $(TEST_OBJS) $(TESTED_BENCH) $(TESTED_CHECKS) $(LINK_CATCH) $(LINK_LIB) -ldl -lpthread -o $@

# Requirements of optional tests.
HAVE_ZLIB = $(call has_header,zlib.h)

# Runs the same tests on every rank of an MPI program.
MPICXX ?= $(shell command -v mpicxx 2>/dev/null)
MPI_CPP := $(wildcard tests/mpi/*.cpp)
MPI_OBJS := $(MPI_CPP:%.cpp=$(BUILD)/%.o) $(addprefix $(BUILD)/tests/,support/testing.o step/step_fixtures.o step/ranks.o)
MPI_WRAPPER = OMPI_CXX='$(CXX)' MPICH_CXX='$(CXX)' $(MPICXX)
$(BUILD)/tests/mpi/%.o: tests/mpi/%.cpp
	@mkdir -p $(@D)
	@echo "  MPI  $<"
	$(Q)$(MPI_WRAPPER) $(TEST_CXXFLAGS) -Ibindings/mpi -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -MMD -MP -c $< -o $@
$(BUILD)/tests/mpitests: $(MPI_OBJS) $(LIB)
	@echo "  LINK $@"
	$(Q)$(MPI_WRAPPER) $(SAN_FLAGS) $(MPI_OBJS) $(LINK_CATCH) $(LINK_LIB) -lpthread -o $@

# Training on MPI ranks with injected faults.
MPI_TRAINING_OBJS := $(patsubst %.cpp,$(BUILD)/%.o,$(wildcard tests/mpi/training/*.cpp))
$(BUILD)/tests/mpitraining: $(MPI_TRAINING_OBJS) $(LIB)
	@echo "  LINK $@"
	$(Q)$(MPI_WRAPPER) $(SAN_FLAGS) $(MPI_TRAINING_OBJS) $(LINK_LIB) -lpthread -o $@

$(BUILD)/simulator/tests/%.o: tests/%.cpp $(call precompiled,simulator).gch
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	$(Q)$(CXX) -include $(call precompiled,simulator) $(SIMULATOR_FLAGS) -MMD -MP -c $< -o $@
$(BUILD)/simulator/%.o: %.cpp
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	$(Q)$(CXX) $(SIMULATOR_FLAGS) -MMD -MP -c $< -o $@

# Shapes of the bench create descriptors, whose defaults are set by the library.
$(BUILD)/tests/simulator: $(SIMULATOR_OBJS) $(LIB)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(Q)$(CXX) $(SAN_FLAGS) $(SIMULATOR_OBJS) $(LINK_CATCH) $(LINK_LIB) -l:libboost_context.a -lpthread -o $@

# Layout conformance: tests of the primitives, from one source for both targets, like the kernels.
# The kernel report reads all of BUILD/cuda, so the objects are in another folder.
CONFORM := $(BUILD)/conformance
CONFORM_CU := $(notdir $(wildcard tests/conformance/*.cu))
CONFORM_OBJS := $(addprefix $(CONFORM)/,main.o outputs.o $(CONFORM_CU:%.cu=host/%.o) $(if $(HAVE_CUDA),$(CONFORM_CU:%.cu=cuda/%.o))) \
  $(patsubst %.cpp,$(BUILD)/obj/%.o,$(BASE_CPP) $(SIM_CPP) $(SIMT_CPP)) \
  $(if $(HAVE_CUDA),$(patsubst %.cu,$(BUILD)/cuda/%.o,$(wildcard kernels/simt/cuda/*.cu)))

$(CONFORM)/main.o: $(BUILD)/flags_cuda  # depends on the cuda target
$(CONFORM)/cuda/%.o: CODE = $(GENCODE)
$(CONFORM)/%.o: tests/conformance/%.cpp
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	$(Q)$(CXX) $(SIMULATOR_FLAGS) $(if $(HAVE_CUDA),-DMP_HAVE_CUDA=1) -MMD -MP -c $< -o $@
$(CONFORM)/host/%.o: tests/conformance/%.cu
	@mkdir -p $(@D)
	@echo "  HOST $<"
	$(Q)$(CXX) $(SIMULATOR_FLAGS) -MMD -MP -x c++ -c $< -o $@
$(CONFORM)/cuda/%.o: tests/conformance/%.cu
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	$(Q)$(COMPILE_CU)

$(BUILD)/tests/conformance: $(CONFORM_OBJS)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(Q)$(CXX) $(SAN_FLAGS) $^ $(LDLIBS_SO) -o $@

# Separate programs: one exhausts the memory of its process, one uses the library on 16 threads from
# its first call on, one trains for a long time.
TEST_PROGRAM_CPP := tests/support/testing.cpp tests/support/tally.cpp
FAULTS_CPP := $(wildcard tests/faults/*.cpp) $(TEST_PROGRAM_CPP)
SOAK_CPP := $(wildcard tests/soak/*.cpp)
THREADS_CPP := $(wildcard tests/threads/*.cpp) $(addprefix tests/soak/,network.cpp training.cpp programs.cpp) \
  tests/step/step_fixtures.cpp tests/autocast/test_graph.cpp $(TEST_PROGRAM_CPP)
$(BUILD)/tests/faulttests: $(FAULTS_CPP:%.cpp=$(BUILD)/%.o) $(LIB)
$(BUILD)/tests/soaktest: $(SOAK_CPP:%.cpp=$(BUILD)/%.o) $(LIB)
$(BUILD)/tests/threadtests: $(THREADS_CPP:%.cpp=$(BUILD)/%.o) $(LIB)
HOSTILE := $(addprefix $(BUILD)/tests/,faulttests soaktest threadtests)
$(HOSTILE):
	@echo "  LINK $@"
	$(Q)$(CXX) $(filter %.o,$^) $(LINK_CATCH) $(LINK_LIB) -ldl -lpthread -o $@

$(BUILD)/tests/test_capi: $(CAPI_C) tests/capi/harness.h $(HEADERS) $(LIB)
	@mkdir -p $(@D)
	@echo "  CC   $@"
	$(Q)$(CC) -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude -O1 -g1 $(SAN_FLAGS) $(CAPI_C) $(LINK_LIB) -o $@

# Examples use only the public header, like code with an installed library.  The one with CUDA
# graphs also requires the CUDA runtime.
CUDA_EXAMPLES := examples/c/cuda_graph.c
EXAMPLES_C := $(if $(HAVE_CUDA),$(CUDA_EXAMPLES)) $(filter-out $(CUDA_EXAMPLES),$(wildcard examples/c/*.c))
EXAMPLES := $(EXAMPLES_C:examples/c/%.c=$(BUILD)/examples/%)
$(BUILD)/examples/cuda_graph: EXAMPLE_FLAGS := $(CAPI_INCLUDES)
$(BUILD)/examples/cuda_graph: EXAMPLE_LIBS := -L$(CUDA_HOME)/lib64 -lcudart_static -lpthread -ldl -lrt
$(BUILD)/examples/%: examples/c/%.c $(HEADERS) $(LIB)
	@mkdir -p $(@D)
	@echo "  CC   $@"
	$(Q)$(CC) -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude $(EXAMPLE_FLAGS) -O1 -g1 $< $(LINK_LIB) $(EXAMPLE_LIBS) -o $@

CXX17 := $(CXX) -std=c++17 -pedantic $(WARN) -Werror -Iinclude -O1 -g1
EXAMPLES += $(patsubst examples/cpp/%.cpp,$(BUILD)/examples/%_cpp,$(wildcard examples/cpp/*.cpp))
$(BUILD)/examples/%_cpp: examples/cpp/%.cpp include/mpcore.hpp $(HEADERS) $(LIB)
	@mkdir -p $(@D)
	@echo "  CXX  $@"
	$(Q)$(CXX17) $< $(LINK_LIB) -o $@

.PHONY: tests test sanitize race
## tests: build the test programs without running them
tests: $(TEST_BINS) $(EXAMPLES) $(BUILD)/mptune $(BUILD)/mpbench $(INSTALLED)

# TESTING.md describes the tiers.
PYTEST = CC='$(CC)' CXX='$(CXX)' $(CUDA_HOME:%=CUDA_HOME=%) tests/pytest --build $(BUILD)
HOST_TOOL_TESTS := $(addprefix tests/tools/test_,mptune.py bench_report.py ranks.py mpi_faults.py demo.py)
# Tests of the CUDA target together with the host target, and after an error.
CUDA_TOOL_TESTS := $(addprefix tests/tools/test_,targets.py failed_device.py faults_device.py)
TOOL_TESTS := $(filter-out $(HOST_TOOL_TESTS) $(CUDA_TOOL_TESTS),$(wildcard tests/tools/test_*.py))
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
.PHONY: built-for-test run-tests
built-for-test: $(TEST_BINS) $(EXAMPLES) $(INSTALLED)
run-tests: LIBRARY_FILTER = $() '~[long]~[.]'
run-tests:
	@tests/run --jobs $(JOBS) --log $(BUILD)/tests/log_test $(SUITES) $(if $(filter cuda,$(MP_TEST_DEVICE)),,$(STRICT_STEPS))

.PHONY: test-all nightly
## test-all: tests of CI: also more seeds, sanitizers, race detector, code generation, the demo
test-all: SEEDS = 2  # the race detector has seed 1
# Hopper kernels take many minutes per run under AddressSanitizer and the race detector: these use
# plain mode or one seed.
test-all: setup-test setup-demo
	@$(MAKE) tests $(SOFTGPU_TESTS)
	@$(RUN_TESTS) $(SUITES) $(LONG_STEPS) $(STRICT_STEPS) $(WGMMA_STEPS) $(SOFTGPU_SUITES) $(call HOSTILE_STEPS,12,1) $(TIMING_STEPS) \
	  "alone: code generation::$(STEP_MAKE) cuda-gates" \
	  "alone: AddressSanitizer, UBSan::$(STEP_MAKE) sanitize SEEDS=" \
	  "alone: race detector::$(STEP_MAKE) race PLAIN= SEEDS=1" \
	  "alone: demo::$(BUILD)/mpdemo --net mlp --out $(BUILD)/demo"

## nightly: tests of hours: all seeds, more than 2^31 elements, clean chroots of two Debian releases
nightly: SEEDS = $(shell seq 3 20)
nightly: CONV_SEEDS = $(shell seq 20)
nightly: WGMMA_SEEDS = $(shell seq 2 100)
nightly: setup-test setup-roots
	@$(MAKE) tests $(SOFTGPU_TESTS)
	@$(RUN_TESTS) "alone: nightly::$(BUILD)/tests/mptests [nightly] -d yes" $(SEED_STEPS) $(SOFTGPU_SEED_SUITES) $(SOFTGPU_OLDER_SUITES) \
	  $(call HOSTILE_STEPS,3600,0) "soak, 100000 steps::$(BUILD)/tests/soaktest --steps 100000 --resume-every 1000" \
	  "alone: AddressSanitizer, UBSan::$(STEP_MAKE) sanitize SEEDS='1 2'" \
	  "alone: race detector::$(STEP_MAKE) race SEEDS='2 3 4 5'" \
	  "alone: roots of two releases::tests/roots/run --build $(BUILD)" \
	  "alone: aarch64::tests/aarch64/run --build $(BUILD) --jobs $(JOBS)"

# The tests are built once and run with the sanitizer builds of the library, which the loader finds
# first through LD_LIBRARY_PATH.

# PLAIN= disables plain mode; strict mode runs once per seed in SEEDS.
PLAIN ?= 1

## sanitize: short tests under AddressSanitizer and UBSan, plain and strict
sanitize: setup-test
	@$(MAKE) tests
	@$(MAKE) lib $(BUILD)/asan/tests/simulator $(BUILD)/asan/tests/conformance SAN=address BUILD=$(BUILD)/asan
	@$(MAKE) light SAN=address PRELOAD="$$($(CXX) -print-file-name=libasan.so)"

## race: short tests under the race detector, plain and strict
race: setup-test
	@$(MAKE) tests
	@$(MAKE) lib $(BUILD)/race/tests/simulator $(BUILD)/race/tests/conformance SAN=race BUILD=$(BUILD)/race
	@$(MAKE) light SAN=race

.PHONY: light
# Splits the strict tests into two parts of similar duration, which run in parallel.
HALVES := [gemm] ~[gemm]
SAN_BUILD = $(BUILD)/$(if $(filter address,$(SAN)),asan,$(SAN))
light: export LD_LIBRARY_PATH := $(SAN_BUILD)
light: export ASAN_OPTIONS := allocator_may_return_null=1  # mp_malloc of 2^60 bytes is a test
light:
	@tests/run --jobs $(JOBS) --log $(SAN_BUILD)/log \
	  "$(SAN): the simulator::$(SAN_BUILD)/tests/simulator" \
	  "$(SAN): conformance::$(SAN_BUILD)/tests/conformance" \
	  "$(SAN): C ABI::LD_PRELOAD=$(PRELOAD) $(BUILD)/tests/test_capi" \
	  $(foreach half,$(HALVES),$(if $(PLAIN),"$(SAN): plain $(half)::LD_PRELOAD=$(PRELOAD) $(BUILD)/tests/mptests [strict]$(half)")) \
	  $(if $(PRELOAD),"$(SAN): fuzz::LD_PRELOAD=$(PRELOAD) $(BUILD)/tests/mptests [fuzz]") \
	  $(foreach s,$(SEEDS),$(foreach half,$(HALVES),"$(SAN): strict, seed $(s), $(half)::LD_PRELOAD=$(PRELOAD) MP_HOST_MODE=strict MP_HOST_SEED=$(s) $(BUILD)/tests/mptests [strict]$(half)"))
