#include "cublaslt.h"

namespace mpbench {
namespace {

void check_lt(cublaslt::Status status, const char *call) {
  if (status != 0) throw std::runtime_error(text("%s: cublasStatus %d", call, status));
}

}  // namespace

CublasLt::CublasLt(mp_context_t context, mp_stream_t stream)
    : library_({"libcublasLt.so.13", "libcublasLt.so.12"}),
      stream_(stream),
      workspace_(context, kWorkspaceBytes) {
  lt_.load(library_);
  check_lt(lt_.create(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() {
  lt_.destroy(handle_);
}

CublasLtGemm::CublasLtGemm(const CublasLt &library, const mp_gemm_desc_t &desc, PeerMath math,
                           cublaslt::Epilogue epilogue)
    : library_(library), beta_(desc.beta), epilogue_(epilogue) {
  try {
    create_descriptors(desc, math);
    find_algos();
  } catch (...) {
    destroy_descriptors();
    throw;
  }
}

CublasLtGemm::~CublasLtGemm() {
  destroy_descriptors();
}

void CublasLtGemm::create_descriptors(const mp_gemm_desc_t &desc, PeerMath math) {
  const cublaslt::Functions &lt = library_.lt_;
  const cublaslt::Operation left_op = cublaslt::operation(desc.op_b);
  const cublaslt::Operation right_op = cublaslt::operation(desc.op_a);
  const cublaslt::ComputeType compute =
      math == PeerMath::kTf32 ? cublaslt::kCompute32FFastTf32 : cublaslt::kCompute32F;
  check_lt(lt.matmul_desc_create(&matmul_, compute, cublaslt::kReal32F),
           "cublasLtMatmulDescCreate");
  set(cublaslt::kTransA, left_op);
  set(cublaslt::kTransB, right_op);
  if (epilogue_ != cublaslt::kDefault) set_epilogue(desc.ld_d);

  // The row-major matrix has `cols` columns, which are column-major rows.
  const auto create_layout = [&](cublaslt::MatrixLayout *layout, mp_dtype_t dtype, int64_t rows,
                                 int64_t cols, int64_t ld, int64_t stride) {
    check_lt(lt.matrix_layout_create(layout, cublaslt::data_type(dtype),
                                     static_cast<uint64_t>(cols), static_cast<uint64_t>(rows), ld),
             "cublasLtMatrixLayoutCreate");
    if (desc.batch_count == 1) return;
    check_lt(lt.matrix_layout_set_attribute(*layout, cublaslt::kBatchCount, &desc.batch_count,
                                            sizeof desc.batch_count),
             "cublasLtMatrixLayoutSetAttribute");
    check_lt(lt.matrix_layout_set_attribute(*layout, cublaslt::kStridedBatchOffset, &stride,
                                            sizeof stride),
             "cublasLtMatrixLayoutSetAttribute");
  };
  const bool a_as_stored = desc.op_a == MP_OP_N;
  const bool b_as_stored = desc.op_b == MP_OP_N;
  create_layout(&left_, desc.dtype_ab, b_as_stored ? desc.k : desc.n, b_as_stored ? desc.n : desc.k,
                desc.ld_b, desc.stride_b);
  create_layout(&right_, desc.dtype_ab, a_as_stored ? desc.m : desc.k,
                a_as_stored ? desc.k : desc.m, desc.ld_a, desc.stride_a);
  create_layout(&out_, desc.dtype_cd, desc.m, desc.n, desc.ld_d, desc.stride_d);
}

template <typename Value>
void CublasLtGemm::set(cublaslt::MatmulDescAttribute attribute, const Value &value) const {
  check_lt(library_.lt_.matmul_desc_set_attribute(matmul_, attribute, &value, sizeof value),
           "cublasLtMatmulDescSetAttribute");
}

void CublasLtGemm::set_epilogue(int64_t ld_aux) {
  set(cublaslt::kEpilogue, epilogue_);
  if (epilogue_ == cublaslt::kGeluAuxBias || epilogue_ == cublaslt::kDgeluBgrad)
    set(cublaslt::kAuxLd, ld_aux);
  // The heuristic checks the alignment of the pointers; the workspace has that of the tensors.
  set_pointers(library_.workspace_.data(), library_.workspace_.data());
}

void CublasLtGemm::set_pointers(const void *bias, const void *aux) const {
  set(cublaslt::kBiasPointer, bias);
  if (epilogue_ == cublaslt::kGeluAuxBias || epilogue_ == cublaslt::kDgeluBgrad)
    set(cublaslt::kAuxPointer, aux);
}

void CublasLtGemm::find_algos() {
  const cublaslt::Functions &lt = library_.lt_;
  cublaslt::Preference preference = nullptr;
  check_lt(lt.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  constexpr uint64_t kSpaceBytes = CublasLt::kWorkspaceBytes;
  cublaslt::Status limited = lt.preference_set_attribute(preference, cublaslt::kMaxWorkspaceBytes,
                                                         &kSpaceBytes, sizeof kSpaceBytes);
  constexpr uint32_t kSchemes = cublaslt::kInComputeType;
  if (limited == 0)
    limited = lt.preference_set_attribute(preference, cublaslt::kReductionSchemes, &kSchemes,
                                          sizeof kSchemes);
  cublaslt::HeuristicResult results[kChoices] = {};
  int found = 0;
  const cublaslt::Status searched = lt.algo_get_heuristic(
      library_.handle_, matmul_, left_, right_, out_, out_, preference, kChoices, results, &found);
  lt.preference_destroy(preference);
  check_lt(limited, "cublasLtMatmulPreferenceSetAttribute");
  check_lt(searched, "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) throw std::runtime_error("cublasLtMatmulAlgoGetHeuristic: no algorithm");
  check_lt(results[0].state, "cublasLtMatmulAlgoGetHeuristic");
  for (int i = 0; i < found; ++i) {
    if (results[i].state != 0) continue;
    algos_.push_back(results[i].algo);
    workspaces_.push_back(static_cast<int64_t>(results[i].workspace_bytes));
  }
}

void CublasLtGemm::destroy_descriptors() {
  const cublaslt::Functions &lt = library_.lt_;
  for (const cublaslt::MatrixLayout layout : {left_, right_, out_})
    if (layout != nullptr) lt.matrix_layout_destroy(layout);
  if (matmul_ != nullptr) lt.matmul_desc_destroy(matmul_);
}

void CublasLtGemm::enqueue(const Operands &t, size_t choice) const {
  constexpr float kAlpha = 1.0f;
  // The descriptor is read while the call is enqueued.
  if (epilogue_ != cublaslt::kDefault)
    set_pointers(epilogue_ == cublaslt::kDgeluBgrad ? t.epilogue.dbias : t.epilogue.bias,
                 t.epilogue.aux);
  check_lt(library_.lt_.matmul(library_.handle_, matmul_, &kAlpha, t.second, left_, t.first, right_,
                               &beta_, t.out, out_, t.out, out_, &algos_[choice],
                               library_.workspace_.data(),
                               static_cast<size_t>(library_.workspace_.bytes()), library_.stream_),
           "cublasLtMatmul");
}

}  // namespace mpbench
