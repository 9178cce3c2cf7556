// Compares the declarations of cublaslt_abi.h and cuda_runtime.h with the CUDA toolkit's, at compile
// time; empty where the toolkit's headers are not on the include path.
#if __has_include(<cublasLt.h>) && __has_include(<cuda_runtime_api.h>)

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <type_traits>

#include "cublaslt_abi.h"
#include "cuda_runtime.h"
#include "same_call.h"

namespace mpbench {
namespace {

constexpr cublaslt::Functions kLt{};
#define SAME_CALL(member, function) static_assert(same_call(kLt.member, function));
MPBENCH_CUBLASLT_FUNCTIONS(SAME_CALL)
#undef SAME_CALL

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
static_assert(int{cublaslt::kMaxWorkspaceBytes} == int{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES});

constexpr CudaFunctions kCuda{};
#define SAME_CALL(member, function) static_assert(same_call(kCuda.member, function));
MPBENCH_CUDA_FUNCTIONS(SAME_CALL)
#undef SAME_CALL

static_assert(int{cudaSuccess} == 0);
static_assert(std::is_same_v<mp_stream_t, cudaStream_t>);

}  // namespace
}  // namespace mpbench

#endif
