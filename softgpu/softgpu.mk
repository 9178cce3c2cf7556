# The software device (README.md), its tests and its calibration.  Included by the Makefile.

SOFTGPU := $(BUILD)/softgpu
SOFTGPU_OBJS := $(call objects,softgpu/obj/,softgpu $(addprefix softgpu/,ptx program machine isa runtime))
SOFTGPU_CUDART := $(SOFTGPU)/libcudart.so.$(firstword $(subst ., ,$(CUDA_VERSION)))
LINK_SOFTGPU := -L$(SOFTGPU) -l:$(notdir $(SOFTGPU_CUDART))
# -march=native: the build machine also runs the device; its handlers are loops over 32 lanes.
SOFTGPU_CXXFLAGS := -std=c++20 -O3 -g1 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math $(WARN) -I.
SOFTGPU_RPATH := -Wl,-rpath,'$$ORIGIN'
# Compression of fat binaries.
SOFTGPU_NEEDS := -lzstd -llz4 -lpthread

$(SOFTGPU)/obj/%.o: %.cpp
	$(call compile,CXX ,$(CXX) $(SOFTGPU_CXXFLAGS) $(HIDDEN) $(CAPI_INCLUDES))

# CUDA runtime of the software device.
SOFTGPU_LDFLAGS = -shared -Wl,-soname,$(@F) -Wl,--default-symver -Wl,--no-undefined
$(SOFTGPU_CUDART): $(SOFTGPU_OBJS)
	$(call link,$(CXX) $(SOFTGPU_LDFLAGS) $^ $(SOFTGPU_NEEDS))

# Tests of the software device, whose kernels are PTX text.
$(SOFTGPU)/obj/softgpu/tests/%.o: softgpu/tests/%.cpp $(call precompiled,tests).gch
	$(call compile,CXX ,$(CXX) $(PRECOMPILED) $(TEST_CXXFLAGS) $(CAPI_INCLUDES))
# -rdynamic: SOFTGPU_FAIL accepts the functions that the program exports.
$(SOFTGPU)/softgpu_tests: $(call objects,softgpu/obj/,softgpu/tests) $(BUILD)/tests/support/tally.o $(SOFTGPU_OBJS)
	$(call link,$(CXX) -rdynamic $^ $(LINK_CATCH) $(SOFTGPU_NEEDS))

# Third-party kernels that are correct on hardware.

CALIBRATION := $(BUILD)/calibration
CALIBRATION_SRC := softgpu/calibration
CALIBRATION_PACKAGES := $(CALIBRATION)/packages
CUTLASS := $(CALIBRATION_PACKAGES)/cutlass_library/source
# PTX only: the software device does not run machine code.
CALIBRATION_ARCH = compute_$(if $(filter %_sm80,$*),80,90a)
CALIBRATION_FLAGS = -std=c++17 -O1 --expt-relaxed-constexpr -isystem $(CUTLASS)/include \
  -isystem $(CUTLASS)/tools/util/include -gencode arch=$(CALIBRATION_ARCH),code=$(CALIBRATION_ARCH)

$(CALIBRATION_PACKAGES)/installed: $(CALIBRATION_SRC)/requirements.txt
	@echo "  PIP  $(@D)"
	$(Q)rm -rf $(@D) && /usr/bin/python3 -m pip install --quiet --root-user-action=ignore --no-deps --target $(@D) -r $< && touch $@

$(CALIBRATION)/obj/%.o: $(CALIBRATION_SRC)/%.cu $(CALIBRATION_PACKAGES)/installed
	$(call compile,NVCC,$(NVCC) $(CALIBRATION_FLAGS))
# Triton kernels are compiled to PTX ahead of time.
$(CALIBRATION)/triton_ptx/made: $(CALIBRATION_SRC)/triton_kernels.py $(CALIBRATION_PACKAGES)/installed
	@echo "  PTX  $<"
	$(Q)PYTHONPATH=$(CALIBRATION_PACKAGES) TRITON_CACHE_DIR=$(CALIBRATION)/triton_cache /usr/bin/python3 -B $< $(@D)
	$(Q)touch $@

CALIBRATION_PROGRAMS := $(patsubst $(CALIBRATION_SRC)/%.cu,$(CALIBRATION)/%,$(wildcard $(CALIBRATION_SRC)/*.cu)) \
  $(CALIBRATION)/triton
$(filter-out %/triton,$(CALIBRATION_PROGRAMS)): $(CALIBRATION)/%: $(CALIBRATION)/obj/%.o
$(CALIBRATION)/triton: $(SOFTGPU)/obj/$(CALIBRATION_SRC)/triton.o | $(CALIBRATION)/triton_ptx/made
$(CALIBRATION_PROGRAMS): | $(SOFTGPU_CUDART)
	$(call link,$(CXX) $< $(LINK_SOFTGPU))

.PHONY: calibrate
## calibrate: run kernels of CUTLASS, CUB and Triton on the software device, in six orders
calibrate: setup-calibrate
	@$(if $(HAVE_CUDA),,echo "calibrate: requires nvcc, which compiles the kernels" >&2; exit 1)
	@$(MAKE) $(CALIBRATION_PROGRAMS) $(SOFTGPU_CUDART)
	@softgpu/calibrate --build $(BUILD) --jobs $(JOBS)
