# Third-party kernels that are correct on hardware, for tests/softgpu/calibrate.  Included by the
# Makefile.

CALIBRATION := $(BUILD)/calibration
CALIBRATION_SRC := tests/softgpu/calibration
CALIBRATION_PACKAGES := $(CALIBRATION)/packages
CUTLASS := $(CALIBRATION_PACKAGES)/cutlass_library/source
# PTX only: the software device does not run machine code.
CALIBRATION_ARCH = compute_$(if $(filter %_sm80,$*),80,90a)
CALIBRATION_FLAGS = -std=c++17 -O1 --expt-relaxed-constexpr -isystem $(CUTLASS)/include \
  -isystem $(CUTLASS)/tools/util/include -gencode arch=$(CALIBRATION_ARCH),code=$(CALIBRATION_ARCH)

$(CALIBRATION_PACKAGES)/installed: $(CALIBRATION_SRC)/requirements.txt
	@echo "  PIP  $(@D)"
	$(Q)rm -rf $(@D) && /usr/bin/python3 -m pip install --quiet --root-user-action=ignore --no-deps --target $(@D) -r $< && touch $@

$(CALIBRATION)/%.o: $(CALIBRATION_SRC)/%.cu $(CALIBRATION_PACKAGES)/installed
	$(call compile,NVCC,$(NVCC) $(CALIBRATION_FLAGS))
# GEMMs of CUTLASS for `make counted-cutlass`.
$(SOFTGPU)/cutlass_gemm.o: CALIBRATION_ARCH = compute_90a
$(SOFTGPU)/cutlass_gemm.o: bench/peers/cutlass_gemm.cu $(CALIBRATION_PACKAGES)/installed
	$(call compile,NVCC,$(NVCC) $(CALIBRATION_FLAGS))
# Triton kernels are compiled to PTX ahead of time.
$(CALIBRATION)/triton_ptx/made: $(CALIBRATION_SRC)/triton_kernels.py $(CALIBRATION_PACKAGES)/installed
	@echo "  PTX  $<"
	$(Q)PYTHONPATH=$(CALIBRATION_PACKAGES) TRITON_CACHE_DIR=$(CALIBRATION)/triton_cache /usr/bin/python3 -B $< $(@D)
	$(Q)touch $@

CALIBRATION_PROGRAMS := $(patsubst $(CALIBRATION_SRC)/%.cu,$(CALIBRATION)/%,$(wildcard $(CALIBRATION_SRC)/*.cu)) \
  $(CALIBRATION)/triton
$(filter-out %/triton,$(CALIBRATION_PROGRAMS)) $(SOFTGPU)/cutlass_gemm: %: %.o
$(CALIBRATION)/triton: $(BUILD)/$(CALIBRATION_SRC)/triton.o | $(CALIBRATION)/triton_ptx/made
$(CALIBRATION_PROGRAMS) $(SOFTGPU)/cutlass_gemm: | $(SOFTGPU_CUDART)
	$(call link,$(CXX) $< $(LINK_SOFTGPU) $(CALIBRATION_LIBS))
$(SOFTGPU)/cutlass_gemm: private CALIBRATION_LIBS := -ldl

.PHONY: calibrate
## calibrate: run kernels of CUTLASS, CUB and Triton on the software device, in six orders
calibrate: setup-calibrate
	@$(if $(HAVE_CUDA),,echo "calibrate: requires nvcc, which compiles the kernels" >&2; exit 1)
	@$(MAKE) $(CALIBRATION_PROGRAMS) $(SOFTGPU_CUDART)
	@tests/softgpu/calibrate --build $(BUILD) --jobs $(JOBS)
