# mpcore: libmpcore.so, its tests, benchmarks and demo.  `make help` lists the targets;
# docs/environment.md lists the variables.
#
# ARCHS may contain further architectures ("75 80 86 89 90a 100a 120a").  PTX of the newest one
# without "a" is always added, so that later GPUs can compile it.  90 is 90a.

MAKEFLAGS += --no-print-directory
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

BUILD ?= build
Q := $(if $(V),,@)
PREFIX ?= /usr/local
LIBDIR ?= lib
CXX ?= g++
CC ?= gcc
NVCC ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
ARCHS ?= 75 80 90a
# Only sm_90a has wgmma, and every device with sm_90 supports it.
override ARCHS := $(patsubst 90,90a,$(ARCHS))

VERSION := $(shell tools/version)
SOMAJOR := $(firstword $(subst ., ,$(VERSION)))
GIT_HASH := $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)

MACHINE := $(shell uname -m)
ifeq ($(MACHINE),x86_64)
HOST_MARCH ?= x86-64-v3
endif

# ---------------------------------------------------------------- flags

INCLUDES := -Iinclude -I.
HEADERS := include/mpcore.h $(wildcard include/mpcore/*.h)
WARN := -Wall -Wextra
HIDDEN := -fPIC -fvisibility=hidden
SAN_FLAGS_address := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_FLAGS_race := -DMP_RACE=1
SAN_FLAGS := $(SAN_FLAGS_$(SAN))
# Kernels are instrumented, the simulator is not; host/race/ is linked instead of libtsan.
SAN_KERNEL_FLAGS_race := -fsanitize=thread -Wno-tsan
OPT := $(if $(filter address,$(SAN)),-O1,-O2) -g1

# Excluded are the kernels of the host target and the simulator: tiles are arrays on fiber stacks,
# and barriers are called for each thread of a block, so all these functions would get guards.  The
# simulator has guard zones instead.
HARDENED := $(if $(SAN),,-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
LINK_NOW := -Wl,-z,relro,-z,now
LINK_PROGRAM := -pie $(LINK_NOW) $(SAN_FLAGS)

CXXFLAGS_BASE := -std=c++20 $(OPT) $(WARN) $(INCLUDES) $(SAN_FLAGS)
# -ffp-contract=off: fused operations are written as fmaf, so that all compilers produce the same
# bits. -fno-trapping-math: floating-point exceptions are unused, so selects need no branch and
# loops vectorize.
HOST_MATH_FLAGS := $(if $(SAN),,-O3) -ffp-contract=off -fno-trapping-math $(if $(HOST_MARCH),-march=$(HOST_MARCH))
HOST_KERNEL_FLAGS := $(HOST_MATH_FLAGS) -Wno-unknown-pragmas $(SAN_KERNEL_FLAGS_$(SAN))
HOST_DEFINES := $(if $(filter x86-64-v3,$(HOST_MARCH)),-DMP_HOST_NEEDS_X86_64_V3=1)
LDFLAGS_SO := -shared -Wl,-soname,libmpcore.so.$(SOMAJOR) -Wl,--version-script=capi/exports.map -Wl,--no-undefined $(LINK_NOW) $(SAN_FLAGS)
LDLIBS_SO := -l:libboost_context.a -lpthread -ldl

# ---------------------------------------------------------------- source files

KERNELS_CU := $(wildcard kernels/*/*.cu kernels/*.cu)
SIM_CPP := $(wildcard host/*.cpp $(if $(filter race,$(SAN)),host/race/*.cpp))
SIMT_CPP := $(wildcard kernels/simt/*.cpp)
BASE_CPP := $(wildcard base/*.cpp)
GEMM_CPP := $(wildcard kernels/gemm/*.cpp)
CONV_CPP := $(wildcard kernels/conv/*.cpp)
RNN_CPP := $(wildcard kernels/rnn/*.cpp)
# GRAPH=0 excludes autocast and the graph executor, which no other part of the library uses.
GRAPH ?= 1
GRAPH_CPP := $(if $(filter 1,$(GRAPH)),$(wildcard graph/*.cpp graph/*/*.cpp))
PURE_CPP := $(BASE_CPP) $(SIMT_CPP) $(GEMM_CPP) $(CONV_CPP) $(RNN_CPP) $(GRAPH_CPP) $(wildcard kernels/*.cpp capi/*.cpp)
HOST_OBJS := $(KERNELS_CU:%.cu=$(BUILD)/host/%.o)
BASE_OBJS := $(SIM_CPP:%.cpp=$(BUILD)/obj/%.o) $(PURE_CPP:%.cpp=$(BUILD)/obj/%.o)

ifneq ($(NVCC),)
ifeq ($(SAN),)
HAVE_CUDA := 1
endif
endif
ifdef HAVE_CUDA
CUDA_CU := $(KERNELS_CU) $(wildcard kernels/simt/cuda/*.cu)
CUDA_OBJS := $(CUDA_CU:%.cu=$(BUILD)/cuda/%.o)
CUDA_HOME := $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
code_for = -gencode arch=compute_$(1),code=$(2)
PTX_ARCH := $(lastword $(filter-out %a,$(ARCHS)))
PTX_FOR_LATER := $(if $(PTX_ARCH),$(call code_for,$(PTX_ARCH),compute_$(PTX_ARCH)))
GENCODE := $(foreach a,$(ARCHS),$(call code_for,$(a),sm_$(a))) $(PTX_FOR_LATER)

# Half of the compile time is the generation of PTX.  For these kernels, PTX is generated once: it
# is the same for all architectures from sm_75 on, except for the few epilogue instructions that
# round to bf16, or for all from sm_80 on.  With MP_UP_TO_SM75 or MP_UP_TO_SM80, newer features do
# not compile.
UP_TO_SM75 := conv/conv_simt gemm/gemm_simt gemm/gemv step/rank_reduction step/tensor_ratios tensors/statistics
UP_TO_SM80 := conv/conv_depthwise conv/conv_wmma gemm/gemm_wmma layers/layout layers/pool layers/softmax_xent \
  simt/cuda/sort step/list_passes step/optimizer tensors/elementwise
# PTX version for machine code of architecture $(1): its own if $(1) is one of $(3), the older ones;
# otherwise the first of $(2) that is in ARCHS.
ptx_for = $(if $(filter $(3),$(1)),$(1),$(firstword $(foreach a,$(2),$(filter $(a),$(ARCHS))) $(1)))
gencode_up_to = -DMP_UP_TO_SM80=1 $(foreach a,$(ARCHS:a=),$(call code_for,$(call ptx_for,$(a),$(1),$(2)),sm_$(a))) \
  $(foreach a,$(PTX_ARCH),$(call code_for,$(call ptx_for,$(a),$(1),$(2)),compute_$(call ptx_for,$(a),$(1),$(2))))
GENCODE_UP_TO_SM75 := -DMP_UP_TO_SM75=1 $(call gencode_up_to,75 80,70 72)
GENCODE_UP_TO_SM80 := $(call gencode_up_to,80,70 72 75)
# Only launches kernels of other files, so one architecture is enough; with MP_WITHOUT_KERNELS a
# kernel is an error.
WITHOUT_KERNELS := backend conv/conv conv/conv_wgmma_launch gemm/gemm rnn/backward_data \
  rnn/backward_weights rnn/forward simt/cuda/tensor_map
GENCODE_WITHOUT_KERNELS := -DMP_WITHOUT_KERNELS=1 $(call code_for,$(firstword $(ARCHS)),sm_$(firstword $(ARCHS)))
# These kernels run on no other architecture.
FOR_SM90A := conv/conv_wgmma gemm/gemm_wgmma rnn/fused_wgmma
GENCODE_FOR_SM90A := $(if $(filter 90a,$(ARCHS)),$(call code_for,90a,sm_90a),$(GENCODE))

# The smallest format, which drivers of CUDA 12.4 and newer can read.
FATBIN := $(if $(shell $(NVCC) --help | grep -e --compress-mode),--compress-mode=size,-Xfatbin=-compress-all)
NVCCFLAGS := -std=c++20 -O3 $(INCLUDES) $(FATBIN) -Xptxas -v --threads 0 \
  -Xcompiler -fPIC,-fvisibility=hidden,-Wall -diag-suppress 20012
LDLIBS_SO += -L$(CUDA_HOME)/lib64 -lcudart_static -lrt
CUDA_VERSION := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
# If a distribution's package installed CUDA into /usr, the compiler finds its headers; -isystem
# /usr/include would change the search order.
CAPI_INCLUDES := $(if $(filter /usr,$(CUDA_HOME)),,-isystem $(CUDA_HOME)/include)
endif

LIB := $(BUILD)/libmpcore.so

.PHONY: all lib
.DEFAULT_GOAL := all

## all: the library
all: lib

## lib: build/libmpcore.so, with the CUDA target if nvcc is found
lib: $(LIB)

# Objects do not contain the path of the sources, so that builds are reproducible.
HERE_IS_DOT := -ffile-prefix-map=$(CURDIR)=.

# Objects are rebuilt if flags change; those of the host target do not depend on CUDA.
$(BUILD)/flags: FLAGS = $(CXX) $(CXXFLAGS_BASE) $(HOST_KERNEL_FLAGS)
$(BUILD)/flags_cuda: FLAGS = $(NVCC) $(NVCCFLAGS) $(GENCODE)
$(BUILD)/flags_hardened: FLAGS = $(HARDENED) $(LINK_PROGRAM)
$(BUILD)/flags $(BUILD)/flags_cuda $(BUILD)/flags_hardened: force
	@mkdir -p $(@D)
	@echo '$(subst ','"'"',$(FLAGS))' | cmp -s - $@ || echo '$(subst ','"'"',$(FLAGS))' > $@
.PHONY: force
force:

# demo, test, bench, parity and tune build what this machine can run, unless NVCC or ARCHS is given
# or a build exists: its targets are kept.
$(BUILD)/targets: force
	@mkdir -p $(@D)
	@echo 'NVCC=$(NVCC) ARCHS="$(ARCHS)"' > $@
IS_GIVEN := $(filter command environment,$(origin NVCC) $(origin ARCHS))
LOCAL = $(if $(IS_GIVEN),,$(shell cat $(BUILD)/targets 2>/dev/null || tools/local_target '$(NVCC)'))
# Shows a progress bar with the remaining time.
BUILD_LOCAL = +@MAKE='$(MAKE)' tools/build_bar $(LOCAL) BUILD='$(BUILD)'

$(HOST_OBJS) $(BASE_OBJS): $(BUILD)/flags
SIM_OBJS := $(SIM_CPP:%.cpp=$(BUILD)/obj/%.o)
$(filter-out $(SIM_OBJS),$(BASE_OBJS)): $(BUILD)/flags_hardened
$(SIM_OBJS): private HARDENED :=
$(SIM_OBJS): private WITH_OBJ :=
$(CUDA_OBJS): $(BUILD)/flags_cuda
$(LIB): | $(BUILD)/targets
# Objects that contain the list of targets.
KNOWS_TARGETS := $(addprefix $(BUILD)/obj/,capi/core.o kernels/backends.o)
$(KNOWS_TARGETS): $(BUILD)/flags_cuda
ifdef HAVE_CUDA
$(KNOWS_TARGETS): DEFINES += -DMP_HAVE_CUDA=1 -DMP_CUDA_ARCHS='"$(ARCHS)"' -DMP_CUDA_VERSION='"$(CUDA_VERSION)"'
endif
$(BUILD)/obj/capi/core.o: DEFINES += -DMP_GIT_HASH='"$(GIT_HASH)"'
$(BUILD)/obj/capi/core.o: $(wildcard .git/logs/HEAD)
$(BUILD)/obj/host/device.o: DEFINES += $(HOST_DEFINES)

# The arithmetic of the simulator is compiled for the same processors as the kernels.
$(BUILD)/obj/host/wgmma_arithmetic.o: private COMPILE_OBJ += $(HOST_MATH_FLAGS)

$(LIB): $(BASE_OBJS) $(HOST_OBJS) $(CUDA_OBJS) capi/exports.map
	@echo "  LINK $@"
	$(Q)$(CXX) $(LDFLAGS_SO) -o $@.$(VERSION) $(BASE_OBJS) $(HOST_OBJS) $(CUDA_OBJS) $(LDLIBS_SO)
	$(Q)ln -sf $(notdir $@).$(VERSION) $@.$(SOMAJOR)
	$(Q)ln -sf $(notdir $@).$(SOMAJOR) $@

# Standard headers take half of the compile time of a small file, so they are precompiled for each
# set of options.  Options for one file are private, otherwise the header might be compiled with
# them.  clang rejects a precompiled header if such options affect code generation.
precompiled = $(BUILD)/$(1)/precompiled.h
define precompile
	@mkdir -p $(@D)
	@echo "  CXX  $< for $(@D)"
	@echo '#include "$<"' > $(@:.gch=)
	$(Q)$(CXX) $(1) -MMD -MP -x c++-header -c $(@:.gch=) -o $@
endef
WITH_OBJ = -include $(call precompiled,obj)
COMPILE_BASE = $(CXXFLAGS_BASE) $(HERE_IS_DOT) $(HIDDEN)
COMPILE_OBJ = $(COMPILE_BASE) $(HARDENED)
COMPILE_HOST = $(COMPILE_BASE) $(HOST_KERNEL_FLAGS)
$(call precompiled,obj).gch: support/precompiled.h $(BUILD)/flags $(BUILD)/flags_hardened
	$(call precompile,$(COMPILE_OBJ))
$(call precompiled,host).gch: support/precompiled.h $(BUILD)/flags
	$(call precompile,$(COMPILE_HOST))

$(BUILD)/host/%.o: %.cu $(call precompiled,host).gch
	@mkdir -p $(@D)
	@echo "  HOST $<"
	$(Q)$(CXX) -include $(call precompiled,host) $(COMPILE_HOST) -MMD -MP -x c++ -c $< -o $@

$(BUILD)/obj/%.o: %.cpp $(call precompiled,obj).gch
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	$(Q)$(CXX) $(WITH_OBJ) $(COMPILE_OBJ) $(DEFINES) $(CAPI_INCLUDES) -MMD -MP -c $< -o $@

# PTX and cubins are kept: the software device runs the PTX, and cuda-gates reads the cubins.
$(BUILD)/cuda/%.o: CODE = $(GENCODE)
$(UP_TO_SM75:%=$(BUILD)/cuda/kernels/%.o): CODE = $(GENCODE_UP_TO_SM75)
$(UP_TO_SM80:%=$(BUILD)/cuda/kernels/%.o): CODE = $(GENCODE_UP_TO_SM80)
$(FOR_SM90A:%=$(BUILD)/cuda/kernels/%.o): CODE = $(GENCODE_FOR_SM90A)
$(WITHOUT_KERNELS:%=$(BUILD)/cuda/kernels/%.o): CODE = $(GENCODE_WITHOUT_KERNELS)
COMPILE_CU = rm -rf $@.times $(@:.o=.ptx); mkdir -p $(@:.o=.ptx); \
  $(NVCC) $(NVCCFLAGS) $(CODE) --time $@.times --keep --keep-dir $(@:.o=.ptx) -MMD -MP -c $< -o $@ 2> $@.ptxas || { cat $@.ptxas; exit 1; }; \
  find $(@:.o=.ptx) -type f ! -name '*.ptx' ! -name '*.cubin' -delete
$(BUILD)/cuda/%.o: %.cu
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	$(Q)$(COMPILE_CU)

include tests/tests.mk
include tests/threads/tsan.mk
include tests/fuzz/fuzz.mk
include tools/softgpu/softgpu.mk
include tests/softgpu/calibration/calibration.mk

# ---------------------------------------------------------------- demo and bench

DEMO_CPP := $(wildcard tools/mpdemo/*.cpp)
INFO_CPP := $(wildcard tools/mpinfo/*.cpp)
BENCH_CPP := $(filter-out bench/tune/% bench/peaks/none.cpp,$(wildcard bench/*.cpp bench/*/*.cpp))
TUNE_CPP := $(wildcard bench/tune/*.cpp) \
  $(addprefix bench/,timing/machine.cpp timing/timing.cpp timing/gpu_watch.cpp timing/agreement.cpp \
    shapes/shapes.cpp shapes/conv_shapes.cpp shapes/epilogue_shapes.cpp shapes/batched_shapes.cpp shapes/rnn_shapes.cpp suites/operation.cpp suites/problem.cpp \
    peers/cuda_runtime.cpp peers/dynamic_library.cpp peers/nvml.cpp)
TOOL_CXXFLAGS := -std=c++20 -O2 -fPIE $(WARN) $(INCLUDES) $(HARDENED)

$(call precompiled,tools).gch: support/precompiled.h $(BUILD)/flags_hardened
	$(call precompile,$(TOOL_CXXFLAGS))
COMPILE_TOOL = $(CXX) -include $(call precompiled,tools) $(TOOL_CXXFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/tools/%.o: tools/%.cpp $(call precompiled,tools).gch
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	$(Q)$(COMPILE_TOOL)
$(BUILD)/bench/%.o: bench/%.cpp $(call precompiled,tools).gch
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	$(Q)$(COMPILE_TOOL)

# If the CUDA headers are installed, the declarations of the peers are compared with them.
$(BUILD)/bench/peers/%.o: private TOOL_CXXFLAGS += $(CAPI_INCLUDES)

$(BUILD)/mpdemo: $(DEMO_CPP:%.cpp=$(BUILD)/%.o) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CXX) $(LINK_PROGRAM) $(DEMO_CPP:%.cpp=$(BUILD)/%.o) $(LINK_LIB) -lz -ldl -lpthread -o $@
$(BUILD)/mpinfo: $(INFO_CPP:%.cpp=$(BUILD)/%.o) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CXX) $(LINK_PROGRAM) $(INFO_CPP:%.cpp=$(BUILD)/%.o) $(LINK_LIB) -o $@
# mpbench looks for this program in its own folder.
$(BUILD)/mpbench_first_result: bench/suites/first_result.c $(HEADERS)
	@mkdir -p $(@D)
	@echo "  CC   $<"
	$(Q)$(CC) -std=c99 -O2 -fPIE -pedantic -Wall -Wextra -Iinclude $(HARDENED) $(LINK_PROGRAM) $< -ldl -o $@
# The peaks are CUDA kernels; builds without nvcc have a stub.
BENCH_OBJS := $(BENCH_CPP:%.cpp=$(BUILD)/%.o) \
  $(if $(HAVE_CUDA),$(patsubst %.cu,$(BUILD)/%.o,$(wildcard bench/peaks/*.cu)),$(BUILD)/bench/peaks/none.o)
BENCH_CUDART := $(if $(HAVE_CUDA),-L$(CUDA_HOME)/lib64 -lcudart_static -lrt)
$(BUILD)/bench/%.o: bench/%.cu $(BUILD)/flags_cuda
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	$(Q)$(NVCC) $(NVCCFLAGS) $(GENCODE) -MMD -MP -c $< -o $@ 2> $@.ptxas || { cat $@.ptxas; exit 1; }
$(BUILD)/mpbench: $(BENCH_OBJS) $(LIB) $(BUILD)/mpbench_first_result
	@echo "  LINK $@"
	$(Q)$(CXX) $(LINK_PROGRAM) $(BENCH_OBJS) $(LINK_LIB) $(BENCH_CUDART) -ldl -lpthread -o $@

# The same programs for PREFIX/bin.
LINK_INSTALLED := -L$(BUILD) -lmpcore -Wl,-rpath,'$$ORIGIN/../lib'
$(BUILD)/installed/mpdemo: $(BUILD)/mpdemo
	@mkdir -p $(@D)
	$(Q)$(CXX) $(LINK_PROGRAM) $(DEMO_CPP:%.cpp=$(BUILD)/%.o) $(LINK_INSTALLED) -lz -ldl -lpthread -o $@
$(BUILD)/installed/mpinfo: $(BUILD)/mpinfo
	@mkdir -p $(@D)
	$(Q)$(CXX) $(LINK_PROGRAM) $(INFO_CPP:%.cpp=$(BUILD)/%.o) $(LINK_INSTALLED) -o $@

# The fit uses the cost model of kernel selection, so mptune is linked with selection and the
# library.
$(BUILD)/mptune: $(TUNE_CPP:%.cpp=$(BUILD)/%.o) $(patsubst %.cpp,$(BUILD)/obj/%.o,$(BASE_CPP) $(SIMT_CPP) $(GEMM_CPP) $(CONV_CPP)) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CXX) $(LINK_PROGRAM) $(filter %.o,$^) $(LINK_LIB) -ldl -lpthread -o $@

# Compilation database of the host target for clang tools.
COMPILED = $(LIB) $(TEST_BINS) $(BUILD)/mptune $(BUILD)/mpbench $(BUILD)/mpdemo $(BUILD)/mpinfo
.PHONY: compile_commands.json
## compile_commands.json: compilation database for clangd and other clang tools
compile_commands.json:
	@$(MAKE) -Bn V=1 NVCC= $(COMPILED) | tools/compile_commands > $@

.PHONY: demo parity bench counted counted-cutlass report tune
## demo: train on Fashion-MNIST in FP32 and mixed precision and compare (ARGS="--epochs 1")
demo: setup-demo
	$(BUILD_LOCAL) $(BUILD)/mpdemo
	@$(BUILD)/mpdemo --out $(BUILD)/demo $(ARGS)

## parity: compare the demo's networks in FP32, FP16 and BF16: docs/parity.md (ARGS=--check)
parity: setup-parity
	$(BUILD_LOCAL) $(BUILD)/mpdemo
	@tools/parity --build $(BUILD) $(ARGS)

## bench: run benchmarks, with cuBLASLt, cuDNN and torch if installed (ARGS="gemm --set llm")
bench: setup-build
	$(BUILD_LOCAL) $(BUILD)/mpbench
	@$(BUILD)/mpbench $(ARGS)

COUNTED := $(BUILD)/counted
COUNTED_ARCHS ?= 90 80 75
count_on = SOFTGPU_COUNT=1 SOFTGPU_SKIP_PRODUCTS=1 tools/softgpu/run --build $(BUILD) --arch $(1)

## counted: count work on the software device: build/counted/*.json (ARGS="gemm" COUNTED_ARCHS=90)
counted: setup-test
	@$(MAKE) softgpu $(BUILD)/mpbench
	@mkdir -p $(COUNTED)
	@set -e; $(foreach arch,$(COUNTED_ARCHS),$(call count_on,$(arch)) $(BUILD)/mpbench $(ARGS) --json $(COUNTED)/sm_$(arch).json;)

## counted-cutlass: after counted: the same for CUTLASS: build/counted/cutlass_sm_90.json
counted-cutlass: setup-calibrate
	@$(MAKE) softgpu $(SOFTGPU)/cutlass_gemm
	@bench/peers/count_cutlass $(COUNTED)/sm_90.json --program $(SOFTGPU)/cutlass_gemm --out $(COUNTED)/cutlass_sm_90.json
$(SOFTGPU)/cutlass_gemm.o: CALIBRATION_ARCH = compute_90a
$(SOFTGPU)/cutlass_gemm.o: bench/peers/cutlass_gemm.cu $(CALIBRATION_PACKAGES)/installed
	@echo "  NVCC $<"
	$(Q)$(NVCC) $(CALIBRATION_FLAGS) -MMD -MP -c $< -o $@
$(SOFTGPU)/cutlass_gemm: $(SOFTGPU)/cutlass_gemm.o $(SOFTGPU_CUDART)
	@echo "  LINK $@"
	$(Q)$(CXX) $< -L$(SOFTGPU) -l:$(notdir $(SOFTGPU_CUDART)) -ldl -o $@

## report: HTML page and pictures of bench/results/: build/report/index.html
report: setup-report
	@tools/bench_report --build $(BUILD) --out $(BUILD)/report $(ARGS)

## tune: measure GEMM kernels: build/tuning.txt for MP_GEMM_TUNING (ARGS="--quick")
tune: setup-build
	$(BUILD_LOCAL) $(BUILD)/mptune
	@$(BUILD)/mptune --out $(BUILD)/tuning.txt $(ARGS)

# ---------------------------------------------------------------- bindings

.PHONY: bindings wheel
## bindings: generate the raw bindings in bindings/ from the public headers
bindings:
	@bindings/generate/generate

# The wheel's library links libstdc++ statically, because the installed version may be older than
# this compiler.  Unused sections are removed, and with them symbols that libstdc++.a requires from
# a newer C library.
WHEEL_LIB := $(BUILD)/wheel/libmpcore.so.$(VERSION)
$(WHEEL_LIB): $(BASE_OBJS) $(HOST_OBJS) $(CUDA_OBJS) capi/exports.map
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(Q)$(CXX) $(LDFLAGS_SO) -static-libstdc++ -Wl,--gc-sections -o $@ $(BASE_OBJS) $(HOST_OBJS) $(CUDA_OBJS) $(LDLIBS_SO)
## wheel: Python package with the library: build/mpcore-*.whl
wheel: setup-wheel
	@$(MAKE) $(WHEEL_LIB)
	@tools/package/make_wheel $(WHEEL_LIB) $(BUILD)

# ---------------------------------------------------------------- checks

.PHONY: check cuda-gates kernel-baseline gpu-check format
## check: format, layers, English, lines (BASE=v0.1), headers, bindings, symbols, docs, tables
check: setup-check
	@$(MAKE) lib
	@tools/check/check_format
	@tools/check/check_layers
	@tools/check/check_prose
	@tools/check/count_lines $(BASE:%=--base %)
	@tools/check/check_header $(CC) $(CXX)
	@bindings/generate/generate --check
	@tools/check/check_symbols $(BUILD)/libmpcore.so
	@$(MAKE) without-graph
	@tools/check/check_docs $(BUILD) $(CC)
	@tools/bench_report --figures --check

# Links the library of GRAPH=0 from objects of the default build.
.PHONY: without-graph
without-graph:
	@$(CXX) $(LDFLAGS_SO) -o $(BUILD)/without_graph.so $(filter-out $(BUILD)/obj/graph/%,$(BASE_OBJS)) $(HOST_OBJS) \
	  $(CUDA_OBJS) $(LDLIBS_SO) && rm $(BUILD)/without_graph.so && echo "graph: the library links without it"

.PHONY: abi-check abi-baseline
## abi-check: check that the headers are compatible with the last release of this major version
abi-check:
	@tools/check/abi_check $(CC)

## abi-baseline: write packaging/libmpcore.so.MAJOR.abi, a file of each release
abi-baseline:
	@tools/check/abi_check --write $(CC)

## format: format all files with clang-format
format:
	@tools/check/check_format --fix

# Compiles the kernels' constants with CXX.
KERNEL_REPORT := CXX='$(CXX)' tools/gpu/kernel_report
## cuda-gates: check the CUDA code: no spills, no warnings, no kernel worse than its baseline
cuda-gates: setup-gates
	@$(MAKE) lib
	@$(KERNEL_REPORT) --check $(BUILD)

## kernel-baseline: record registers, memory and instructions of the kernels for cuda-gates
kernel-baseline: setup-gates
	@$(MAKE) lib
	@$(KERNEL_REPORT) --write-baseline $(BUILD)

## gpu-check: on a GPU: tests, sanitizers, bench, profiles (ARGS="--stage tests --minutes 9")
gpu-check: setup-test
	@$(MAKE) tests
	@tools/gpu/gpu_check $(BUILD) $(ARGS)

# ---------------------------------------------------------------- install, set-up, help

.PHONY: docs
## docs: HTML manual from docs/ and the headers: build/docs/html/index.html
docs: setup-docs
	@tools/docs/make_docs $(BUILD)/docs

.PHONY: install uninstall deb clean help setup-build setup-gates setup-demo setup-parity setup-report setup-test setup-calibrate setup-check setup-docs setup-install setup-roots
INSTALL_ARGS = --build '$(BUILD)' --prefix '$(PREFIX)' --libdir '$(LIBDIR)' --destdir '$(DESTDIR)'
## install: install library, headers, tools, docs, pkg-config and CMake files under PREFIX
install: setup-install
	@$(MAKE) lib $(INSTALLED)
	@tools/package/install $(INSTALL_ARGS)

## uninstall: remove the installed files, given the same PREFIX
uninstall:
	@tools/package/install $(INSTALL_ARGS) --uninstall

## deb: Debian package in build/
deb: setup-install setup-deb
	@$(MAKE) lib $(INSTALLED)
	@tools/package/make_deb $(BUILD)

## clean: remove the build folder
clean:
	rm -rf $(BUILD)

setup-build setup-gates setup-demo setup-parity setup-report setup-test setup-calibrate setup-check setup-docs setup-install setup-deb setup-wheel setup-roots: setup-%:
	@tools/setup $*
ifeq ($(NVCC),)
	@echo "$(if $(filter file,$(origin NVCC)),no nvcc found,NVCC is empty): building the host target only" >&2
endif

## help: this list
help:
	@sed -n 's/^## \([a-z_.-]*\): /  \1\t/p' Makefile tests/tests.mk tests/threads/tsan.mk tests/fuzz/fuzz.mk tools/softgpu/softgpu.mk \
	  tests/softgpu/calibration/calibration.mk | expand -t 25

# A chroot that was kept (tests/roots/run) contains another build.
-include $(shell find $(BUILD) -path $(BUILD)/roots -prune -o -type f -name '*.d' -print 2>/dev/null)
