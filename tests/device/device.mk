# mpcore on the software device (softgpu/README.md): the library, suites, counts and sabotage.
# Included by the Makefile.

# The same library linked with this runtime.  LD_LIBRARY_PATH selects it.
SOFTGPU_LIB := $(SOFTGPU)/libmpcore.so
SOFTGPU_LDLIBS := $(LINK_SOFTGPU) $(SOFTGPU_RPATH) $(LDLIBS_HOST)
$(SOFTGPU_LIB): $(LIB_OBJS) capi/exports.map $(SOFTGPU_CUDART)
	$(call link,$(CXX) $(LDFLAGS_SO) $(LIB_OBJS) $(SOFTGPU_LDLIBS))
	$(Q)ln -sf $(@F) $@.$(SOMAJOR)
$(SOFTGPU)/conformance: $(CONFORM_OBJS) $(SOFTGPU_CUDART)
	$(call link,$(CXX) $(CONFORM_OBJS) $(SOFTGPU_LDLIBS))

# Creates CUDA graphs, and therefore calls the CUDA runtime.
$(SOFTGPU)/cuda_graph: examples/c/cuda_graph.c $(HEADERS) $(SOFTGPU_LIB)
	$(call step,CC  ,$@,$(C99) $(CAPI_INCLUDES) $< -L$(SOFTGPU) -l:libmpcore.so -l:$(notdir $(SOFTGPU_CUDART)) $(SOFTGPU_RPATH))

# An experiment of `make gpu-check`, for GPUs and for the software device.
$(BUILD)/gpu/grid_barrier.o: tools/gpu/grid_barrier.cu
	$(call compile,NVCC,$(NVCC) -std=c++20 -O2 $(GENCODE) -Xcompiler -Wall)
$(BUILD)/grid_barrier: $(BUILD)/gpu/grid_barrier.o
	$(call link,$(CXX) $< $(LINK_CUDART) -ldl -lpthread)
$(SOFTGPU)/grid_barrier: $(BUILD)/gpu/grid_barrier.o | $(SOFTGPU_CUDART)
	$(call link,$(CXX) $< $(LINK_SOFTGPU) $(SOFTGPU_RPATH))

# Defaults of softgpu/run, which contain the folder of the sources.
$(SOFTGPU)/environment: DEFAULTS = MP_TEST_DEVICE=cuda SOFTGPU_PTX={build}/cuda:{build}/conformance/cuda \
  SOFTGPU_SOURCE_LINE='$(CURDIR)/tests/device/source_line'
$(SOFTGPU)/environment: force
	@mkdir -p $(@D)
	@printf '%s\n' $(DEFAULTS) | cmp -s - $@ || printf '%s\n' $(DEFAULTS) > $@

.PHONY: softgpu test-cuda test-orders
## softgpu: build the software device, and the library for softgpu/run
softgpu: $(if $(HAVE_CUDA),$(SOFTGPU)/environment $(SOFTGPU_LIB) $(addprefix $(SOFTGPU)/,conformance cuda_graph grid_barrier))
	@$(if $(HAVE_CUDA),,echo "softgpu: requires nvcc, which compiles the PTX of the kernels" >&2; exit 1)

ifdef HAVE_CUDA
BUILT_FOR_SOFTGPU := softgpu $(SOFTGPU)/softgpu_tests
# One thread per process, for repeatable runs; JOBS processes run in parallel.
ON_SOFTGPU = SOFTGPU_THREADS=1 SOFTGPU_FENCECHECK=1 softgpu/run --build $(BUILD)
# The nightly run includes [slow] and [many_launches].  [.]: parts that other tests start, and
# [nightly] (TESTING.md).  [pure]: tests without a device.
SOFTGPU_LEFT_OUT := ~[slow]~[many_launches]~[pure]~[.]
SOFTGPU_LIBRARY = $(BUILD)/tests/mptests '$(SOFTGPU_LEFT_OUT)'
# Test files of the host target that also run with MP_TEST_DEVICE=cuda.  TESTING.md lists the others
# with reasons.
SOFTGPU_EXAMPLES := $(addprefix tests/bindings/test_,examples.py $(addprefix readme_examples.py::test_,c cpp))
SOFTGPU_TOOLS := $(addprefix tests/tools/test_,mpinfo.py mpinfo_doctor.py nvtx.py) $(CUDA_TOOL_TESTS)
softgpu_library = "sm_$(1): library::$(ON_SOFTGPU) --arch $(1) $(SOFTGPU_LIBRARY)"
softgpu_suites = "sm_$(1): conformance::$(ON_SOFTGPU) --arch $(1) $(SOFTGPU)/conformance" \
  "sm_$(1): C ABI, as C99::$(ON_SOFTGPU) --arch $(1) $(BUILD)/tests/test_capi" \
  "sm_$(1): CUDA graph::$(ON_SOFTGPU) --arch $(1) $(SOFTGPU)/cuda_graph" \
  "sm_$(1): captured graph::$(ON_SOFTGPU) --arch $(1) tests/graph/captured" \
  "sm_$(1): counts::$(ON_SOFTGPU) --arch $(1) --count 1 tests/device/counts"
# Callers of the library: host code that is independent of the architecture.
softgpu_callers = "sm_$(1): Python::MP_LOG=error $(ON_SOFTGPU) --arch $(1) tests/pytest bindings/python/tests" \
  "sm_$(1): Rust::$(ON_SOFTGPU) --arch $(1) tests/bindings/test_rust $(BUILD)" \
  "sm_$(1): bindings and examples::$(ON_SOFTGPU) --arch $(1) env $(PYTEST) $(SOFTGPU_EXAMPLES)" \
  "sm_$(1): tools::$(ON_SOFTGPU) --arch $(1) env $(PYTEST) $(SOFTGPU_TOOLS)" \
  "sm_$(1): the guide::$(ON_SOFTGPU) --arch $(1) tools/check/check_docs $(BUILD) $(CC)"
# SOFTGPU_RACECHECK makes the device ten times slower.  CI runs one GEMM and convolution kernel of
# each kind, and the short tests of layers, attention, tensors and step; nightly has all short ones.
SOFTGPU_RACES = SOFTGPU_RACECHECK=1 $(ON_SOFTGPU)
SOFTGPU_SHORT := [short]~[long]$(SOFTGPU_LEFT_OUT)
SOFTGPU_RACE_SUITES = "sm_90, races: wgmma::$(SOFTGPU_RACES) $(BUILD)/tests/mptests 'wgmma: awkward shapes are exact,wgmma: split-k sums in a fixed order,wgmma: backward epilogues are exact,conv wgmma: split-k slices are exact'" \
  "sm_90, races: last blocks::$(SOFTGPU_RACES) $(BUILD)/tests/mptests 'tensors: small lists are exact,step: S below 1*,step: any flag except 0 skips,optimizer norms: results for powers of two are exact*'" \
  "sm_90, races: layers, attention, tensors, step::$(SOFTGPU_RACES) $(BUILD)/tests/mptests \
    '[layers]$(SOFTGPU_SHORT),[attention]$(SOFTGPU_SHORT),[xent]$(SOFTGPU_SHORT),[tensors]$(SOFTGPU_SHORT),[step]$(SOFTGPU_SHORT)'" \
  "sm_80, races: GEMM::$(SOFTGPU_RACES) --arch 80 $(BUILD)/tests/mptests 'gemm: many tiles in both directions'" \
  $(foreach arch,90 75,"sm_$(arch), races: conformance::$(SOFTGPU_RACES) --arch $(arch) $(SOFTGPU)/conformance")
# Kernels whose PTX or selection differs from sm_90; all others run the same PTX there
# (UP_TO_SM75, UP_TO_SM80).
SOFTGPU_SM80 = "sm_80: gemm, conv, rnn::$(ON_SOFTGPU) --arch 80 $(BUILD)/tests/mptests \
  '[gemm]~[long]$(SOFTGPU_LEFT_OUT),[conv]~[long]$(SOFTGPU_LEFT_OUT),[rnn]~[long]$(SOFTGPU_LEFT_OUT),conv: typical layers are exact in every type,*order and type is exact on every shape,conv: many generated problems,conv epilogue: many generated*,rnn: many integer*'"
# A build without code for the device's architecture: bodies of newer kernels are empty.
SOFTGPU_OLDER_CODE = "sm_80 with code for sm_75: GEMM, attention::SOFTGPU_CODE=75 $(ON_SOFTGPU) --arch 80 $(BUILD)/tests/mptests \
  'gemm: every kernel and order is exact,attention: head dimensions'"
# GPUs that run the PTX of sm_80 or sm_90, in part with less shared memory.
SOFTGPU_NEWER = $(foreach arch,89 100 120,"sm_$(arch): conformance::$(ON_SOFTGPU) --arch $(arch) $(SOFTGPU)/conformance" \
  "sm_$(arch): GEMM, attention, sequences::$(ON_SOFTGPU) --arch $(arch) $(BUILD)/tests/mptests \
  'gemm: every kernel and order is exact,attention: head dimensions,[sequences]~[long]'")
# Exact tests of transformers in five random orders per architecture.
SOFTGPU_ORDERS = $(foreach arch,90 80 75,$(foreach seed,11 12 13 14 15,"sm_$(arch), seed $(seed): attention, norms, cross-entropy::$(ON_SOFTGPU) --arch $(arch) --seed $(seed) $(BUILD)/tests/mptests \
  'attention: grouped query heads,attention: gradients of two equal scores are exact,attention: equal scores average integers exactly,attention: a query without a key*,attention sequences: ends out of range*,norm: rows of two values are exact,norm: every vector is counted once,linear xent: chunks of rows have*,linear xent: losses have the bits*'"))
# The longest suites begin first, so that no processor is idle at the end.
SOFTGPU_SUITES = $(call softgpu_library,90) $(SOFTGPU_SM80) \
  $(foreach arch,90 80 75,$(call softgpu_suites,$(arch))) \
  $(call softgpu_callers,90) \
  "sm_90 with 5 SMs in a random order: wgmma::$(ON_SOFTGPU) --sms 5 --seed 1 $(BUILD)/tests/mptests [wgmma]" \
  $(SOFTGPU_RACE_SUITES) $(SOFTGPU_OLDER_CODE) $(SOFTGPU_NEWER) \
  "sm_90: grid barrier::$(ON_SOFTGPU) --sms 4 $(SOFTGPU)/grid_barrier 4 20" \
  "software device::$(SOFTGPU)/softgpu_tests"
# Suites of older architectures that CI skips.
SOFTGPU_OLDER_SUITES = $(call softgpu_library,80) $(call softgpu_library,75) \
  $(foreach arch,80 75,$(call softgpu_callers,$(arch)))
SOFTGPU_SEED_SUITES = $(foreach seed,2 3 4 5,"sm_90, seed $(seed): library::SOFTGPU_DIVERGE=1 $(ON_SOFTGPU) --seed $(seed) $(SOFTGPU_LIBRARY)") \
  $(foreach arch,80 75,"sm_$(arch), seed 6: library::SOFTGPU_LAG=1 $(ON_SOFTGPU) --arch $(arch) --seed 6 $(SOFTGPU_LIBRARY)") \
  $(foreach arch,90 80 75,"alone: sm_$(arch): library, large and long::$(ON_SOFTGPU) --arch $(arch) $(BUILD)/tests/mptests '[slow],[many_launches]'") \
  $(SOFTGPU_ORDERS) "alone: calibration::$(STEP_MAKE) calibrate" \
  $(foreach arch,90 80 75,"sm_$(arch), races: library::$(SOFTGPU_RACES) --arch $(arch) $(BUILD)/tests/mptests '[short]~[slow]~[many_launches]~[.]'") \
  "alone: sabotage of kernels::tests/device/sabotage --build $(BUILD) --jobs $(JOBS)"
endif

## test-cuda: run the suites on the software device: sm_90a, sm_80, sm_75, and a device with few SMs
test-cuda: setup-test
	@$(if $(HAVE_CUDA),,echo "test-cuda: requires nvcc, which compiles the PTX of the kernels" >&2; exit 1)
	@$(MAKE) tests $(BUILT_FOR_SOFTGPU)
	@sed -n '/^## Tests that do not run on the software device/,/^## Running/{/^## Running/!p}' TESTING.md
	@$(RUN_TESTS) $(SOFTGPU_SUITES) $(SOFTGPU_OLDER_SUITES)

## test-orders: run attention, norms and cross-entropy in five random orders for each architecture
test-orders: setup-test
	@$(MAKE) $(BUILD)/tests/mptests $(BUILT_FOR_SOFTGPU)
	@$(RUN_TESTS) $(SOFTGPU_ORDERS)
