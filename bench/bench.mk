# Builds and runs the benchmarks (bench/README.md): mpbench, and mptune, which fits the constants of
# kernel selection.  Included by the Makefile.

# If they are installed, the headers of CUDA, cuBLAS and cuDNN declare the peers.
$(BUILD)/bench/peers/%.o: private TOOL_CXXFLAGS += $(CAPI_INCLUDES)

# The peaks are CUDA kernels; builds without nvcc have a stub.
PEAKS := $(if $(HAVE_CUDA),$(patsubst %.cu,$(BUILD)/%.o,$(wildcard bench/peaks/*.cu)),$(BUILD)/bench/peaks/none.o)
$(BUILD)/bench/%.o: bench/%.cu $(BUILD)/flags_cuda
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	$(Q)$(NVCC) $(NVCCFLAGS) $(GENCODE) -MMD -MP -c $< -o $@ 2> $@.ptxas || { cat $@.ptxas; exit 1; }
# mpbench looks for this program in its own folder.
$(BUILD)/mpbench_first_result: bench/suites/first_result.c $(HEADERS)
	$(call step,CC  ,$<,$(CC) -std=c99 -O2 -fPIE -pedantic -Wall -Wextra -Iinclude $(HARDENED) $(LINK_PROGRAM) $< -ldl)
$(BUILD)/mpbench: $(filter-out $(BUILD)/bench/tune/% $(BUILD)/bench/peaks/none.o,$(call objects,,bench bench/*)) \
  $(PEAKS) $(BUILD)/mpbench_first_result
$(BUILD)/mpbench: private PROGRAM_LIBS := $(LINK_CUDART) -ldl -lpthread

# The fit uses the cost model of kernel selection, so mptune is linked with selection and the
# library.
$(BUILD)/mptune: $(call objects,,bench/tune) $(addprefix $(BUILD)/bench/, \
  timing/machine.o timing/timing.o timing/gpu_watch.o timing/agreement.o \
  shapes/shapes.o shapes/batched_shapes.o \
  suites/operation.o suites/problem.o peers/cuda_runtime.o peers/dynamic_library.o peers/nvml.o) \
  $(call objects,obj/,base kernels/simt kernels/gemm kernels/conv)
$(BUILD)/mptune: private PROGRAM_LIBS := -ldl -lpthread

.PHONY: bench counted report tune
## bench: run benchmarks, with cuBLASLt, cuDNN and torch if installed (ARGS="gemm --set llm")
bench: setup-build
	$(BUILD_LOCAL) $(BUILD)/mpbench
	@$(BUILD)/mpbench $(ARGS)

## report: HTML page and pictures of bench/results/: build/report/index.html
report: setup-report
	@tools/bench_report --out $(BUILD)/report $(ARGS)

## tune: measure GEMM kernels: build/tuning.txt for MP_GEMM_TUNING (ARGS="--quick")
tune: setup-build
	$(BUILD_LOCAL) $(BUILD)/mptune
	@$(BUILD)/mptune --out $(BUILD)/tuning.txt $(ARGS)

COUNTED := $(BUILD)/counted
COUNTED_ARCHS ?= 90 80 75
## counted: count work on the software device: build/counted/ (ARGS="gemm" COUNTED_ARCHS=90)
counted: setup-test
	@$(MAKE) softgpu $(BUILD)/mpbench
	@mkdir -p $(COUNTED)
	@set -e; for arch in $(COUNTED_ARCHS); do SOFTGPU_COUNT=1 SOFTGPU_SKIP_PRODUCTS=1 \
	  softgpu/run --build $(BUILD) --arch $$arch $(BUILD)/mpbench $(ARGS) --json $(COUNTED)/sm_$$arch.json; done
	@tools/bench_report --counts $(COUNTED_ARCHS:%=$(COUNTED)/sm_%.json) > $(COUNTED)/counted.csv
