# Compiles the host target: the kernels as C++, and the simulator that runs them without a GPU.
# Included by the Makefile.

# -ffp-contract=off: fused operations are written as fmaf, so that all compilers produce the same
# bits. -fno-trapping-math: floating-point exceptions are unused, so selects need no branch and
# loops vectorize.
HOST_MATH_FLAGS := $(if $(SAN),,-O3) -ffp-contract=off -fno-trapping-math $(if $(HOST_MARCH),-march=$(HOST_MARCH))
HOST_KERNEL_FLAGS := $(HOST_MATH_FLAGS) -Wno-unknown-pragmas
HOST_DEFINES := $(if $(filter x86-64-v3,$(HOST_MARCH)),-DMP_HOST_NEEDS_X86_64_V3=1)
COMPILE_HOST = $(COMPILE_BASE) $(HOST_KERNEL_FLAGS)

# The simulator, which runs kernels without a GPU.
SIM_OBJS := $(call objects,obj/,host)
# Kernels, compiled as C++ for the host target; kernels/cuda.mk also compiles them for GPUs.
KERNELS_CU := $(wildcard kernels/*/*.cu kernels/*.cu)
HOST_OBJS := $(KERNELS_CU:%.cu=$(BUILD)/host/%.o)

WITH_HOST = -include $(call precompiled,host)
$(call precompiled,host).gch: support/precompiled.h $(BUILD)/flags
	$(call precompile,$(COMPILE_HOST))
$(BUILD)/host/%.o: %.cu $(call precompiled,host).gch
	$(call compile,HOST,$(CXX) $(WITH_HOST) $(COMPILE_HOST) -x c++)

$(SIM_OBJS): private HARDENED :=
$(SIM_OBJS): private WITH_OBJ :=
# These kernels run on the host target only if a call names them.
FOR_SIZE := $(patsubst %,$(BUILD)/host/kernels/%.o,attention/attention_mma_backward attention/attention_mma_forward \
  conv/conv_wmma gemm/gemm_thin gemm/gemm_wmma rnn/fused_wgmma rnn/fused_wmma)
FLAGS_FOR_SIZE := $(if $(SAN),,-Os)
# As fast as with -O3, in a third to two thirds of the size.  With -O2, GCC falsely warns of
# uninitialized elements.
WITHOUT_O3 := $(patsubst %,$(BUILD)/host/kernels/%.o,layers/batch_norm_backward layers/norm_backward \
  layers/softmax_xent)
FLAGS_WITHOUT_O3 := $(if $(SAN),,-O2 -ftree-vectorize -Wno-uninitialized)
$(FOR_SIZE): private COMPILE_HOST += $(FLAGS_FOR_SIZE)
$(WITHOUT_O3): private COMPILE_HOST += $(FLAGS_WITHOUT_O3)
$(FOR_SIZE) $(WITHOUT_O3): private WITH_HOST :=
# The arithmetic of the simulator is compiled for the same processors as the kernels.
$(BUILD)/obj/host/wgmma_arithmetic.o: private COMPILE_OBJ += $(HOST_MATH_FLAGS)
$(BUILD)/obj/host/device.o: DEFINES += $(HOST_DEFINES)
$(HOST_OBJS): $(BUILD)/flags_host
$(BUILD)/flags_host: FLAGS = $(FOR_SIZE) $(FLAGS_FOR_SIZE) $(WITHOUT_O3) $(FLAGS_WITHOUT_O3)
