# Compiles the CUDA target.  Included by the Makefile if NVCC is given or found.

CUDA_HOME := $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
CUDA_VERSION := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
LINK_CUDART := -L$(CUDA_HOME)/lib64 -lcudart_static -lrt
LDLIBS_SO += $(LINK_CUDART)
# If a distribution's package installed CUDA into /usr, the compiler finds its headers; -isystem
# /usr/include would change the search order.
CAPI_INCLUDES := $(if $(filter /usr,$(CUDA_HOME)),,-isystem $(CUDA_HOME)/include)
# The smallest format, which drivers of CUDA 12.4 and newer can read.
FATBIN := $(if $(shell $(NVCC) --help | grep -e --compress-mode),--compress-mode=size,-Xfatbin=-compress-all)
NVCCFLAGS := -std=c++20 -O3 $(INCLUDES) $(FATBIN) -Xptxas -v --threads 0 \
  -Xcompiler -fPIC,-fvisibility=hidden,-Wall -diag-suppress 20012

# Half of the compile time is the generation of PTX, so architectures share it: PTX of sm_80 is
# assembled for 8.x, and PTX of sm_90, which has griddepcontrol, for all newer ones.  For these
# kernels, PTX is generated once: it is the same for all architectures from sm_75 on, except for the
# few epilogue instructions that round to bf16, or for all from sm_80 on.  With MP_UP_TO_SM75 or
# MP_UP_TO_SM80, newer features do not compile.
UP_TO_SM75 := conv/conv_simt gemm/gemm_simt gemm/gemv step/rank_reduction step/tensor_ratios tensors/statistics
UP_TO_SM80 := attention/attention_backward attention/attention_forward attention/attention_mma_backward \
  attention/attention_mma_forward conv/conv_depthwise conv/conv_wmma gemm/gemm_wmma layers/layout layers/pool \
  layers/softmax_xent simt/cuda/sort step/list_passes step/optimizer tensors/elementwise
# Only launches kernels of other files, so one architecture is enough; with MP_WITHOUT_KERNELS a
# kernel is an error.
WITHOUT_KERNELS := backend conv/conv gemm/gemm rnn/backward_data rnn/backward_weights rnn/forward \
  simt/cuda/tensor_map
# Some of their kernels use instructions of sm_90a.
WITH_SM90A := gemm/gemm_grouped gemm/wgmma_launch simt/cuda/device
# These kernels run on no other architecture.
FOR_SM90A := conv/conv_wgmma conv/copy_windows gemm/gemm_thin gemm/gemm_wgmma rnn/fused_wgmma

# PTX version for machine code of architecture $(1): the first of $(2) that is in ARCHS, or its own.
first_of = $(firstword $(foreach v,$(2),$(filter $(v),$(ARCHS:a=))) $(1))
ptx_up_to_75 = $(call first_of,$(1),$(if $(filter 70 72,$(1)),,75 80))
ptx_up_to_80 = $(call first_of,$(1),$(if $(filter 7%,$(1)),,80))
ptx_up_to_90 = $(call first_of,$(1),$(if $(filter 7%,$(1)),,$(if $(filter 8%,$(1)),80,90)))
# Machine code for the architectures $(2), and PTX of the newest; $(1): one of these functions.
code_for = -gencode arch=compute_$(1),code=$(2)
gencode = $(foreach a,$(2),$(call code_for,$(if $(filter %a,$(a)),$(a),$(call $(1),$(a))),sm_$(a))) \
  $(foreach v,$(call $(1),$(lastword $(ARCHS:a=))),$(call code_for,$(v),compute_$(v)))
GENCODE := $(call gencode,ptx_up_to_90,$(ARCHS))
$(BUILD)/cuda/%.o: CODE = $(call gencode,ptx_up_to_90,$(ARCHS:a=))
$(WITH_SM90A:%=$(BUILD)/cuda/kernels/%.o): CODE = $(GENCODE)
$(UP_TO_SM75:%=$(BUILD)/cuda/kernels/%.o): CODE = -DMP_UP_TO_SM75=1 -DMP_UP_TO_SM80=1 $(call gencode,ptx_up_to_75,$(ARCHS:a=))
$(UP_TO_SM80:%=$(BUILD)/cuda/kernels/%.o): CODE = -DMP_UP_TO_SM80=1 $(call gencode,ptx_up_to_80,$(ARCHS:a=))
$(WITHOUT_KERNELS:%=$(BUILD)/cuda/kernels/%.o): CODE = -DMP_WITHOUT_KERNELS=1 $(call code_for,$(firstword $(ARCHS)),sm_$(firstword $(ARCHS)))
$(FOR_SM90A:%=$(BUILD)/cuda/kernels/%.o): CODE = $(if $(filter 90a,$(ARCHS)),$(call code_for,90a,sm_90a),$(GENCODE))

CUDA_SIMT_OBJS := $(patsubst %.cu,$(BUILD)/cuda/%.o,$(wildcard kernels/simt/cuda/*.cu))
CUDA_OBJS := $(KERNELS_CU:%.cu=$(BUILD)/cuda/%.o) $(CUDA_SIMT_OBJS)
$(CUDA_OBJS): $(BUILD)/flags_cuda
$(BUILD)/obj/capi/core.o $(BUILD)/obj/kernels/backends.o: \
  DEFINES += -DMP_HAVE_CUDA=1 -DMP_CUDA_ARCHS='"$(ARCHS)"' -DMP_CUDA_VERSION='"$(CUDA_VERSION)"'

# PTX and cubins are kept: the software device runs the PTX, and cuda-gates reads the cubins.
define compile_cu
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	$(Q)rm -rf $(@:.o=.ptx); mkdir -p $(@:.o=.ptx); \
	  $(NVCC) $(NVCCFLAGS) $(CODE) --keep --keep-dir $(@:.o=.ptx) -MMD -MP -c $< -o $@ 2> $@.ptxas || { cat $@.ptxas; exit 1; }; \
	  find $(@:.o=.ptx) -type f ! -name '*.ptx' ! -name '*.cubin' -delete
endef
$(BUILD)/cuda/%.o: %.cu
	$(compile_cu)
