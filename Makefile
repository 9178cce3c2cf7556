# mpcore: libmpcore.so, its tests, benchmarks and demo.
#
#   make           builds build/libmpcore.so, with the CUDA target if nvcc is found
#   make NVCC=     builds the host target only
#   make help      lists the targets
#
# This file contains settings, shared recipes and the library.  The files that it includes build the
# other parts; each is in the folder of its subject.

MAKEFLAGS += --no-print-directory
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

.PHONY: all lib help clean force
# A recipe that fails does not leave a partly written target.
.DELETE_ON_ERROR:
## all: the library
all: lib

# ---------------------------------------------------------------- settings (docs/environment.md)

BUILD ?= build
CXX ?= g++
CC ?= gcc
NVCC ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
# "all", for releases, adds machine code for Ada and Blackwell.  PTX for later GPUs is always added.
ARCHS ?= 75 80 90a
# Only sm_90a has wgmma, and every device with sm_90 supports it.  No other letter is used.
override ARCHS := $(patsubst 90,90a,$(patsubst %a,%,$(if $(filter all,$(ARCHS)),75 80 89 90 100 120,$(ARCHS))))
# GRAPH=0 excludes autocast and the graph executor, which no other part of the library uses.
GRAPH ?= 1
MACHINE := $(shell uname -m)
HOST_MARCH ?= $(if $(filter x86_64,$(MACHINE)),x86-64-v3)
Q := $(if $(V),,@)

VERSION := $(shell tools/version)
SOMAJOR := $(firstword $(subst ., ,$(VERSION)))
GIT_HASH := $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)

# ---------------------------------------------------------------- flags

INCLUDES := -Iinclude -I.
HEADERS := include/mpcore.h $(wildcard include/mpcore/*.h)
WARN := -Wall -Wextra
HIDDEN := -fPIC -fvisibility=hidden
SAN_FLAGS_address := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_FLAGS_coverage := --coverage
SAN_FLAGS := $(SAN_FLAGS_$(SAN))
$(if $(SAN),$(if $(SAN_FLAGS),,$(error SAN=$(SAN): must be empty, address or coverage)))
OPT := $(if $(SAN),-O1,-O2) -g1

# Excluded are the kernels of the host target and the simulator: tiles are arrays on fiber stacks,
# and barriers are called for each thread of a block, so all these functions would get guards.  The
# simulator has guard zones instead.
HARDENED := $(if $(SAN),,-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
LINK_NOW := -Wl,-z,relro,-z,now

CXXFLAGS_BASE := -std=c++20 $(OPT) $(WARN) $(INCLUDES) $(SAN_FLAGS)
# Objects do not contain the path of the sources, so that builds are reproducible.
COMPILE_BASE = $(CXXFLAGS_BASE) -ffile-prefix-map=$(CURDIR)=. $(HIDDEN)
COMPILE_OBJ = $(COMPILE_BASE) $(HARDENED)

LDFLAGS_SO := -shared -Wl,-soname,libmpcore.so.$(SOMAJOR) -Wl,--version-script=capi/exports.map -Wl,--no-undefined $(LINK_NOW) $(SAN_FLAGS)
LDLIBS_HOST := -l:libboost_context.a -lpthread -ldl
LDLIBS_SO := $(LDLIBS_HOST)

# ---------------------------------------------------------------- recipes

# One step; $(1): its name in four characters, $(2): file that is shown, $(3): command.
define step
	@mkdir -p $(@D)
	@echo "  $(1) $(2)"
	$(Q)$(3) -o $@
endef
compile = $(call step,$(1),$<,$(2) -MMD -MP -c $<)
link = $(call step,LINK,$@,$(1))

# Standard headers take half of the compile time of a small file, so they are precompiled for each
# set of options; $(1): its name.  Options for one file are private, otherwise the header might be
# compiled with them.  clang rejects a precompiled header if such options affect code generation.
precompiled = $(BUILD)/$(1)/precompiled.h
define precompile
	@mkdir -p $(@D)
	@echo "  CXX  $< for $(@D)"
	@echo '#include "$<"' > $(@:.gch=)
	$(Q)$(CXX) $(1) -MMD -MP -x c++-header -c $(@:.gch=) -o $@
endef

# Objects of the C++ files in the folders $(2), in the folder $(1) of BUILD.
objects = $(patsubst %.cpp,$(BUILD)/$(1)%.o,$(wildcard $(2:%=%/*.cpp)))

# ---------------------------------------------------------------- library

LIB := $(BUILD)/libmpcore.so
# Code that is independent of the target.
PURE_FOLDERS := base kernels/simt kernels/attention kernels/gemm kernels/conv kernels/rnn $(if $(filter 1,$(GRAPH)),graph graph/*) kernels capi
PURE_OBJS := $(call objects,obj/,$(PURE_FOLDERS))

include host/host.mk
HAVE_CUDA := $(if $(SAN),,$(if $(NVCC),1))
ifdef HAVE_CUDA
include kernels/cuda.mk
endif

LIB_OBJS := $(SIM_OBJS) $(PURE_OBJS) $(HOST_OBJS) $(CUDA_OBJS)

## lib: build/libmpcore.so, with the CUDA target if nvcc is found
lib: $(LIB)

$(LIB): $(LIB_OBJS) capi/exports.map | $(BUILD)/targets
	@echo "  LINK $@"
	$(Q)$(CXX) $(LDFLAGS_SO) -o $@.$(VERSION) $(LIB_OBJS) $(LDLIBS_SO)
	$(Q)ln -sf $(notdir $@).$(VERSION) $@.$(SOMAJOR)
	$(Q)ln -sf $(notdir $@).$(SOMAJOR) $@

WITH_OBJ = -include $(call precompiled,obj)
$(call precompiled,obj).gch: support/precompiled.h $(BUILD)/flags $(BUILD)/flags_hardened
	$(call precompile,$(COMPILE_OBJ))
$(BUILD)/obj/%.o: %.cpp $(call precompiled,obj).gch
	$(call compile,CXX ,$(CXX) $(WITH_OBJ) $(COMPILE_OBJ) $(DEFINES) $(CAPI_INCLUDES))

$(BUILD)/obj/capi/core.o: DEFINES += -DMP_GIT_HASH='"$(GIT_HASH)"'
$(BUILD)/obj/capi/core.o: $(wildcard .git/logs/HEAD)

# Objects are rebuilt if flags change.  Those of the host target do not depend on CUDA, except two
# that contain the list of targets.
$(SIM_OBJS) $(PURE_OBJS) $(HOST_OBJS): $(BUILD)/flags
$(PURE_OBJS): $(BUILD)/flags_hardened
$(BUILD)/obj/capi/core.o $(BUILD)/obj/kernels/backends.o: $(BUILD)/flags_cuda
$(BUILD)/flags: FLAGS = $(CXX) $(CXXFLAGS_BASE) $(HOST_KERNEL_FLAGS)
$(BUILD)/flags_cuda: FLAGS = $(NVCC) $(NVCCFLAGS) $(GENCODE)
$(BUILD)/flags_hardened: FLAGS = $(HARDENED) $(LINK_PROGRAM)
$(BUILD)/flags $(BUILD)/flags_cuda $(BUILD)/flags_hardened $(BUILD)/flags_host: force
	@mkdir -p $(@D)
	@echo '$(subst ','"'"',$(FLAGS))' | cmp -s - $@ || echo '$(subst ','"'"',$(FLAGS))' > $@
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

# ---------------------------------------------------------------- other parts

# Installs the packages that a target requires.
setup-%: force
	@tools/setup $*
ifeq ($(NVCC),)
	@echo "$(if $(filter file,$(origin NVCC)),no nvcc found,NVCC is empty): building the host target only" >&2
endif

include tools/programs.mk
include bench/bench.mk
include tests/tests.mk
include tests/tiers.mk
include tests/threads/tsan.mk
include tests/fuzz/fuzz.mk
include softgpu/softgpu.mk
include tests/device/device.mk
include tools/check/check.mk
include packaging/packaging.mk

## clean: remove the build folder
clean:
	rm -rf $(BUILD)

## help: this list
help:
	@sed -n 's/^## \([a-z_.-]*\): /  \1\t/p' $(filter Makefile %.mk,$(MAKEFILE_LIST)) | expand -t 25

# A chroot that was kept (tests/roots/run) contains another build, and BUILD of a separate make is
# ASAN.  TSAN and FUZZ are read only by makes that build them: another step of test-all may be
# writing there.
UNREAD := $(BUILD)/roots $(ASAN) $(if $(filter tsan $(TSAN)/%,$(MAKECMDGOALS)),,$(TSAN)) \
  $(if $(filter $(FUZZ)/%,$(MAKECMDGOALS)),,$(FUZZ))
-include $(shell find $(BUILD) $(UNREAD:%=-path % -prune -o) -type f -name '*.d' -print 2>/dev/null)
