#include "cublas.h"

#include <climits>

namespace mpbench {
namespace {

void check_blas(cublas::Status status, const char *call) {
  if (status != 0) throw std::runtime_error(text("%s: cublasStatus %d", call, status));
}

int narrow(int64_t extent) {
  if (extent > INT_MAX) throw std::runtime_error("a dimension exceeds the 32-bit range of cuBLAS");
  return static_cast<int>(extent);
}

}  // namespace

Cublas::Cublas(mp_context_t context, mp_stream_t stream)
    : library_({"libcublas.so.13", "libcublas.so.12"}),
      workspace_(context, CublasLt::kWorkspaceBytes) {
  blas_.load(library_);
  try {
    grouped_.load(library_);
  } catch (const std::exception &) {
    grouped_ = {};
  }
  check_blas(blas_.create(&handle_), "cublasCreate");
  // The stream first: setting it resets the workspace.
  cublas::Status status = blas_.set_stream(handle_, stream);
  if (status == 0)
    status = blas_.set_workspace(handle_, workspace_.data(),
                                 static_cast<size_t>(CublasLt::kWorkspaceBytes));
  if (status != 0) blas_.destroy(handle_);
  check_blas(status, "cublasSetWorkspace");
}

Cublas::~Cublas() {
  blas_.destroy(handle_);
}

size_t Cublas::version() const {
  int version = 0;
  check_blas(blas_.get_version(handle_, &version), "cublasGetVersion");
  return static_cast<size_t>(version);
}

CublasBatchedGemm::CublasBatchedGemm(const Cublas &library, const mp_gemm_desc_t &desc)
    : library_(library), desc_(desc) {
  for (const int64_t extent : {desc.m, desc.n, desc.k, desc.ld_a, desc.ld_b, desc.ld_d})
    (void)narrow(extent);
}

void CublasBatchedGemm::enqueue(const Operands &t, size_t) const {
  constexpr float kAlpha = 1.0f;
  const cublas::DataType type_ab = cublaslt::data_type(desc_.dtype_ab);
  const cublas::DataType type_cd = cublaslt::data_type(desc_.dtype_cd);
  check_blas(library_.blas_.gemm_batched(
                 library_.handle_, cublaslt::operation(desc_.op_b), cublaslt::operation(desc_.op_a),
                 narrow(desc_.n), narrow(desc_.m), narrow(desc_.k), &kAlpha, t.items.second,
                 type_ab, narrow(desc_.ld_b), t.items.first, type_ab, narrow(desc_.ld_a),
                 &desc_.beta, t.items.out, type_cd, narrow(desc_.ld_d), desc_.batch_count,
                 cublaslt::kCompute32F, cublas::kDefaultAlgo),
             "cublasGemmBatchedEx");
}

CublasGroupedGemm::CublasGroupedGemm(const Cublas &library,
                                     const std::vector<mp_gemm_desc_t> &items)
    : library_(library),
      type_ab_(cublaslt::data_type(items.front().dtype_ab)),
      type_cd_(cublaslt::data_type(items.front().dtype_cd)) {
  if (!library.has_groups()) throw std::runtime_error("cublasGemmGroupedBatchedEx is missing");
  for (const mp_gemm_desc_t &item : items) {
    left_ops_.push_back(cublaslt::operation(item.op_b));
    right_ops_.push_back(cublaslt::operation(item.op_a));
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
  check_blas(library_.grouped_.gemm_grouped(
                 library_.handle_, left_ops_.data(), right_ops_.data(), m_.data(), n_.data(),
                 k_.data(), alpha_.data(), t.items.second, type_ab_, left_ld_.data(), t.items.first,
                 type_ab_, right_ld_.data(), beta_.data(), t.items.out, type_cd_, out_ld_.data(),
                 narrow(static_cast<int64_t>(sizes_.size())), sizes_.data(), cublaslt::kCompute32F),
             "cublasGemmGroupedBatchedEx");
}

}  // namespace mpbench
