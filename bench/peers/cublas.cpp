#include "cublas.h"

#if __has_include(<cublasLt.h>) && __has_include(<cublas_v2.h>)
#include <climits>

#include "cublas_functions.h"

namespace mpbench {
namespace {

// Overloads for C.  The second is NULL before cuBLAS 12.5.
using GemmBatched = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                   int, const void *, const void *const *, cudaDataType, int,
                                   const void *const *, cudaDataType, int, const void *,
                                   void *const *, cudaDataType, int, int, cublasComputeType_t,
                                   cublasGemmAlgo_t);
using GemmGrouped = cublasStatus_t(cublasHandle_t, const cublasOperation_t *,
                                   const cublasOperation_t *, const int *, const int *, const int *,
                                   const void *, const void *const *, cudaDataType_t, const int *,
                                   const void *const *, cudaDataType_t, const int *, const void *,
                                   void *const *, cudaDataType_t, const int *, int, const int *,
                                   cublasComputeType_t);
GemmBatched *gemm_batched = nullptr;
GemmGrouped *gemm_grouped = nullptr;

int narrow(int64_t extent) {
  if (extent > INT_MAX) throw std::runtime_error("a dimension exceeds the 32-bit range of cuBLAS");
  return static_cast<int>(extent);
}

}  // namespace

Cublas::Cublas(mp_context_t context, mp_stream_t stream)
    : library_({"libcublas.so.13", "libcublas.so.12"}),
      workspace_(context, CublasLt::kWorkspaceBytes) {
  blas = library_;
  library_.find("cublasGemmBatchedEx", gemm_batched);
  gemm_grouped = library_.find_if_there<GemmGrouped>("cublasGemmGroupedBatchedEx");
  MPBENCH_BLAS(blas, cublasCreate_v2, &handle_);
  // The stream first: setting it resets the workspace.
  cublasStatus_t status = MPBENCH_FUNCTION(*blas, cublasSetStream_v2)(handle_, stream);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = MPBENCH_FUNCTION(*blas, cublasSetWorkspace_v2)(
        handle_, workspace_.data(), static_cast<size_t>(CublasLt::kWorkspaceBytes));
  if (status != CUBLAS_STATUS_SUCCESS) MPBENCH_FUNCTION(*blas, cublasDestroy_v2)(handle_);
  check_cublas(status, "cublasSetWorkspace");
}

Cublas::~Cublas() {
  MPBENCH_FUNCTION(*blas, cublasDestroy_v2)(handle_);
}

size_t Cublas::version() const {
  int version = 0;
  MPBENCH_BLAS(blas, cublasGetVersion_v2, handle_, &version);
  return static_cast<size_t>(version);
}

bool Cublas::has_groups() const {
  return gemm_grouped != nullptr;
}

CublasBatchedGemm::CublasBatchedGemm(const Cublas &library, const mp_gemm_desc_t &desc)
    : library_(library), desc_(desc) {
  for (const int64_t extent : {desc.m, desc.n, desc.k, desc.ld_a, desc.ld_b, desc.ld_d})
    (void)narrow(extent);
}

void CublasBatchedGemm::enqueue(const Operands &t, size_t) const {
  constexpr float kAlpha = 1.0f;
  const cudaDataType_t type_ab = cublas_type(desc_.dtype_ab), type_cd = cublas_type(desc_.dtype_cd);
  check_cublas(
      gemm_batched(library_.handle_, operation(desc_.op_b), operation(desc_.op_a), narrow(desc_.n),
                   narrow(desc_.m), narrow(desc_.k), &kAlpha, t.items.second, type_ab,
                   narrow(desc_.ld_b), t.items.first, type_ab, narrow(desc_.ld_a), &desc_.beta,
                   t.items.out, type_cd, narrow(desc_.ld_d), desc_.batch_count, CUBLAS_COMPUTE_32F,
                   CUBLAS_GEMM_DEFAULT),
      "cublasGemmBatchedEx");
}

CublasGroupedGemm::CublasGroupedGemm(const Cublas &library,
                                     const std::vector<mp_gemm_desc_t> &items)
    : library_(library), type_ab_(items.front().dtype_ab), type_cd_(items.front().dtype_cd) {
  if (!library.has_groups()) throw std::runtime_error("cublasGemmGroupedBatchedEx is missing");
  for (const mp_gemm_desc_t &item : items) {
    left_ops_.push_back(operation(item.op_b));
    right_ops_.push_back(operation(item.op_a));
    m_.push_back(narrow(item.n));
    n_.push_back(narrow(item.m));
    k_.push_back(narrow(item.k));
    left_ld_.push_back(narrow(item.ld_b));
    right_ld_.push_back(narrow(item.ld_a));
    out_ld_.push_back(narrow(item.ld_d));
    sizes_.push_back(1);
    alpha_.push_back(item.alpha);
    beta_.push_back(item.beta);
  }
}

void CublasGroupedGemm::enqueue(const Operands &t, size_t) const {
  static_assert(sizeof(cublasOperation_t) == sizeof(int));
  const auto operations = [](const std::vector<int> &all) {
    return reinterpret_cast<const cublasOperation_t *>(all.data());
  };
  const cudaDataType_t type_ab = cublas_type(type_ab_), type_cd = cublas_type(type_cd_);
  check_cublas(
      gemm_grouped(library_.handle_, operations(left_ops_), operations(right_ops_), m_.data(),
                   n_.data(), k_.data(), alpha_.data(), t.items.second, type_ab, left_ld_.data(),
                   t.items.first, type_ab, right_ld_.data(), beta_.data(), t.items.out, type_cd,
                   out_ld_.data(), narrow(static_cast<int64_t>(sizes_.size())), sizes_.data(),
                   CUBLAS_COMPUTE_32F),
      "cublasGemmGroupedBatchedEx");
}

}  // namespace mpbench

#endif
