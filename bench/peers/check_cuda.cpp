// Compile-time comparison of the declarations of cublaslt_abi.h, cublas_abi.h and cuda_runtime.h
// with the CUDA toolkit's; empty if its headers are not on the include path.
#if __has_include(<cublasLt.h>) && __has_include(<cuda_runtime_api.h>)

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <type_traits>

#include "cublas_abi.h"
#include "cuda_runtime.h"
#include "same_call.h"

namespace mpbench {
namespace {

MPBENCH_SAME_CALLS(cublaslt::Functions, MPBENCH_CUBLASLT_FUNCTIONS, MPBENCH_SAME_CALL)

using Theirs = cublasLtMatmulHeuristicResult_t;
using Ours = cublaslt::HeuristicResult;
static_assert(sizeof(cublaslt::Algo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs));
static_assert(offsetof(Ours, algo) == offsetof(Theirs, algo));
static_assert(offsetof(Ours, workspace_bytes) == offsetof(Theirs, workspaceSize));
static_assert(offsetof(Ours, state) == offsetof(Theirs, state));

static_assert(int{CUBLAS_STATUS_SUCCESS} == 0);
static_assert(int{cublaslt::kReal32F} == int{CUDA_R_32F});
static_assert(int{cublaslt::kReal16F} == int{CUDA_R_16F});
static_assert(int{cublaslt::kReal16BF} == int{CUDA_R_16BF});
static_assert(int{cublaslt::kCompute32F} == int{CUBLAS_COMPUTE_32F});
static_assert(int{cublaslt::kCompute32FFastTf32} == int{CUBLAS_COMPUTE_32F_FAST_TF32});
static_assert(int{cublaslt::kOpN} == int{CUBLAS_OP_N});
static_assert(int{cublaslt::kOpT} == int{CUBLAS_OP_T});
static_assert(int{cublaslt::kTransA} == int{CUBLASLT_MATMUL_DESC_TRANSA});
static_assert(int{cublaslt::kTransB} == int{CUBLASLT_MATMUL_DESC_TRANSB});
static_assert(int{cublaslt::kEpilogue} == int{CUBLASLT_MATMUL_DESC_EPILOGUE});
static_assert(int{cublaslt::kBiasPointer} == int{CUBLASLT_MATMUL_DESC_BIAS_POINTER});
static_assert(int{cublaslt::kAuxPointer} == int{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER});
static_assert(int{cublaslt::kAuxLd} == int{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD});
static_assert(int{cublaslt::kDefault} == int{CUBLASLT_EPILOGUE_DEFAULT});
static_assert(int{cublaslt::kBias} == int{CUBLASLT_EPILOGUE_BIAS});
static_assert(int{cublaslt::kReluBias} == int{CUBLASLT_EPILOGUE_RELU_BIAS});
static_assert(int{cublaslt::kGeluAuxBias} == int{CUBLASLT_EPILOGUE_GELU_AUX_BIAS});
static_assert(int{cublaslt::kDgeluBgrad} == int{CUBLASLT_EPILOGUE_DGELU_BGRAD});
static_assert(int{cublaslt::kBatchCount} == int{CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT});
static_assert(int{cublaslt::kStridedBatchOffset} ==
              int{CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET});
static_assert(int{cublaslt::kMaxWorkspaceBytes} == int{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES});
static_assert(int{cublaslt::kReductionSchemes} == int{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK});
static_assert(uint32_t{cublaslt::kInComputeType} ==
              uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});

// The overload for C.
constexpr cublasStatus_t (*kGemmBatchedEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                           int, int, int, const void *, const void *const *,
                                           cudaDataType, int, const void *const *, cudaDataType,
                                           int, const void *, void *const *, cudaDataType, int, int,
                                           cublasComputeType_t,
                                           cublasGemmAlgo_t) = cublasGemmBatchedEx;
#define cublasGemmBatchedEx kGemmBatchedEx
MPBENCH_SAME_CALLS(cublas::Functions, MPBENCH_CUBLAS_FUNCTIONS, MPBENCH_SAME_CALL)
#if CUBLAS_VERSION >= 120500
MPBENCH_SAME_CALLS(cublas::GroupedFunctions, MPBENCH_CUBLAS_GROUPED_FUNCTIONS, MPBENCH_SAME_CALL)
#endif
static_assert(int{cublas::kDefaultAlgo} == int{CUBLAS_GEMM_DEFAULT});

MPBENCH_SAME_CALLS(CudaFunctions, MPBENCH_CUDA_FUNCTIONS, MPBENCH_SAME_CALL)

static_assert(int{cudaSuccess} == 0);
static_assert(std::is_same_v<mp_stream_t, cudaStream_t>);

}  // namespace
}  // namespace mpbench

#endif
