# mpcore: libmpcore.so, its tests, its bench and its demo.  `make help` lists the targets.
#
#   HOST_MARCH=x86-64-v3   instruction set of the host target's kernels; x86-64 for very old CPUs
#   NVCC=nvcc              CUDA compiler; the cuda target is built when it is found
#   ARCHS="75 80 90a"      CUDA architectures with machine code.  Widen it with others of the same
#                          form ("75 80 86 89 90a 100a 120a"); PTX of the newest plain one is always
#                          added, so that later GPUs can compile it for themselves.
#   BUILD=build            where everything goes
#   SAN=address|race       host target under AddressSanitizer + UBSan / the race detector

MAKEFLAGS += --no-print-directory
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

BUILD ?= build
PREFIX ?= /usr/local
CXX ?= g++
CC ?= gcc
NVCC ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
ARCHS ?= 75 80 90a

VERSION := $(shell awk '/define MP_VERSION_M|define MP_VERSION_P/ { printf "%s%s", dot, $$3; dot = "." }' include/mpcore.h)
SOMAJOR := $(firstword $(subst ., ,$(VERSION)))
GIT_HASH := $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)

MACHINE := $(shell uname -m)
ifeq ($(MACHINE),x86_64)
HOST_MARCH ?= x86-64-v3
endif

# ---------------------------------------------------------------- flags

INCLUDES := -Iinclude -I.
WARN := -Wall -Wextra
HIDDEN := -fPIC -fvisibility=hidden
SAN_FLAGS_address := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_FLAGS := $(SAN_FLAGS_$(SAN))
OPT := -O2 -g1

CXXFLAGS_BASE := -std=c++20 $(OPT) $(WARN) $(INCLUDES) $(SAN_FLAGS)
# -ffp-contract=off: what is fused is written as fmaf, so every compiler gives the same bits.
# initial-exec: the engine's thread_local pointers are read in every primitive.
HOST_KERNEL_FLAGS := -O3 -ffp-contract=off -ftls-model=initial-exec $(if $(HOST_MARCH),-march=$(HOST_MARCH)) -Wno-unknown-pragmas
HOST_DEFINES := $(if $(filter x86-64-v3,$(HOST_MARCH)),-DMP_HOST_NEEDS_X86_64_V3=1)
LDFLAGS_SO := -shared -Wl,-soname,libmpcore.so.$(SOMAJOR) -Wl,--version-script=capi/exports.map -Wl,--no-undefined $(SAN_FLAGS)
LDLIBS_SO := -l:libboost_context.a -lpthread -ldl

# ---------------------------------------------------------------- what is built

KERNELS_CU := $(wildcard kernels/*/*.cu kernels/*.cu)
HOST_CPP := $(wildcard kernels/simt/host/*.cpp)
PURE_CPP := $(wildcard kernels/*.cpp kernels/gemm/*.cpp capi/*.cpp)
HOST_OBJS := $(KERNELS_CU:%.cu=$(BUILD)/host/%.o)
BASE_OBJS := $(HOST_CPP:%.cpp=$(BUILD)/obj/%.o) $(PURE_CPP:%.cpp=$(BUILD)/obj/%.o)

ifneq ($(NVCC),)
ifeq ($(SAN),)
HAVE_CUDA := 1
endif
endif
ifdef HAVE_CUDA
CUDA_CU := $(KERNELS_CU) $(wildcard kernels/simt/cuda/*.cu)
CUDA_OBJS := $(CUDA_CU:%.cu=$(BUILD)/cuda/%.o)
CUDA_HOME := $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
PLAIN_ARCHS := $(filter-out %a,$(ARCHS))
GENCODE := $(foreach a,$(ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=compute_$(lastword $(PLAIN_ARCHS)),code=compute_$(lastword $(PLAIN_ARCHS))
NVCCFLAGS := -std=c++20 -O3 $(INCLUDES) $(GENCODE) -Xptxas -v --threads 0 \
  -Xcompiler -fPIC,-fvisibility=hidden,-Wall -diag-suppress 20012
LDLIBS_SO += -L$(CUDA_HOME)/lib64 -lcudart_static -lrt
DEFINES += -DMP_HAVE_CUDA=1 -DMP_CUDA_ARCHS='"$(ARCHS)"'
CAPI_INCLUDES := -isystem $(CUDA_HOME)/include
endif
DEFINES += $(HOST_DEFINES) -DMP_GIT_HASH='"$(GIT_HASH)"'

LIB := $(BUILD)/libmpcore.so

.PHONY: all lib
.DEFAULT_GOAL := all

## all: the library
all: lib

## lib: build/libmpcore.so, with the cuda target if nvcc is there
lib: $(LIB)

$(LIB): $(BASE_OBJS) $(HOST_OBJS) $(CUDA_OBJS) capi/exports.map
	$(CXX) $(LDFLAGS_SO) -o $@.$(VERSION) $(BASE_OBJS) $(HOST_OBJS) $(CUDA_OBJS) $(LDLIBS_SO)
	ln -sf $(notdir $@).$(VERSION) $@.$(SOMAJOR)
	ln -sf $(notdir $@).$(SOMAJOR) $@

$(BUILD)/host/%.o: %.cu
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_BASE) $(HIDDEN) $(HOST_KERNEL_FLAGS) -MMD -MP -x c++ -c $< -o $@

$(BUILD)/obj/%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_BASE) $(HIDDEN) -ftls-model=initial-exec $(DEFINES) $(CAPI_INCLUDES) -MMD -MP -c $< -o $@

$(BUILD)/cuda/%.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -MMD -MP -c $< -o $@ 2> $@.ptxas || { cat $@.ptxas; exit 1; }

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
