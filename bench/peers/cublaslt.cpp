#include "cublaslt.h"

namespace mpbench {
namespace {

constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;

void check_lt(cublaslt::Status status, const char *call) {
  if (status != 0) throw std::runtime_error(text("%s: cublasStatus %d", call, status));
}

cublaslt::DataType data_type(mp_dtype_t dtype) {
  switch (dtype) {
    case MP_FP16:
      return cublaslt::kReal16F;
    case MP_BF16:
      return cublaslt::kReal16BF;
    default:
      return cublaslt::kReal32F;
  }
}

}  // namespace

CublasLt::CublasLt(mp_context_t context, mp_stream_t stream)
    : library_({"libcublasLt.so.13", "libcublasLt.so.12"}),
      stream_(stream),
      workspace_(context, static_cast<int64_t>(kWorkspaceBytes)) {
#define FIND(member, function) library_.find(#function, lt_.member);
  MPBENCH_CUBLASLT_FUNCTIONS(FIND)
#undef FIND
  check_lt(lt_.create(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() {
  lt_.destroy(handle_);
}

CublasLtGemm::CublasLtGemm(const CublasLt &library, const mp_gemm_desc_t &desc, PeerMath math)
    : library_(library), beta_(desc.beta) {
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
  const auto operation = [](mp_op_t op) { return op == MP_OP_T ? cublaslt::kOpT : cublaslt::kOpN; };
  const cublaslt::Operation left_op = operation(desc.op_b);
  const cublaslt::Operation right_op = operation(desc.op_a);
  const cublaslt::ComputeType compute =
      math == PeerMath::kTf32 ? cublaslt::kCompute32FFastTf32 : cublaslt::kCompute32F;
  check_lt(lt.matmul_desc_create(&matmul_, compute, cublaslt::kReal32F),
           "cublasLtMatmulDescCreate");
  check_lt(lt.matmul_desc_set_attribute(matmul_, cublaslt::kTransA, &left_op, sizeof left_op),
           "cublasLtMatmulDescSetAttribute");
  check_lt(lt.matmul_desc_set_attribute(matmul_, cublaslt::kTransB, &right_op, sizeof right_op),
           "cublasLtMatmulDescSetAttribute");

  // `cols` row-major columns are column-major rows.
  const auto create_layout = [&](cublaslt::MatrixLayout *layout, mp_dtype_t dtype, int64_t rows,
                                 int64_t cols, int64_t ld) {
    check_lt(lt.matrix_layout_create(layout, data_type(dtype), static_cast<uint64_t>(cols),
                                     static_cast<uint64_t>(rows), ld),
             "cublasLtMatrixLayoutCreate");
  };
  const bool a_as_stored = desc.op_a == MP_OP_N;
  const bool b_as_stored = desc.op_b == MP_OP_N;
  create_layout(&left_, desc.dtype_ab, b_as_stored ? desc.k : desc.n, b_as_stored ? desc.n : desc.k,
                desc.ldb);
  create_layout(&right_, desc.dtype_ab, a_as_stored ? desc.m : desc.k,
                a_as_stored ? desc.k : desc.m, desc.lda);
  create_layout(&out_, desc.dtype_cd, desc.m, desc.n, desc.ldd);
}

void CublasLtGemm::find_algos() {
  const cublaslt::Functions &lt = library_.lt_;
  cublaslt::Preference preference = nullptr;
  check_lt(lt.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const cublaslt::Status limited = lt.preference_set_attribute(
      preference, cublaslt::kMaxWorkspaceBytes, &kWorkspaceBytes, sizeof kWorkspaceBytes);
  cublaslt::HeuristicResult results[kChoices] = {};
  int found = 0;
  const cublaslt::Status searched = lt.algo_get_heuristic(
      library_.handle_, matmul_, left_, right_, out_, out_, preference, kChoices, results, &found);
  lt.preference_destroy(preference);
  check_lt(limited, "cublasLtMatmulPreferenceSetAttribute");
  check_lt(searched, "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) throw std::runtime_error("cublasLtMatmulAlgoGetHeuristic: no algorithm");
  check_lt(results[0].state, "cublasLtMatmulAlgoGetHeuristic");
  for (int i = 0; i < found; ++i)
    if (results[i].state == 0) algos_.push_back(results[i].algo);
}

void CublasLtGemm::destroy_descriptors() {
  const cublaslt::Functions &lt = library_.lt_;
  for (const cublaslt::MatrixLayout layout : {left_, right_, out_})
    if (layout != nullptr) lt.matrix_layout_destroy(layout);
  if (matmul_ != nullptr) lt.matmul_desc_destroy(matmul_);
}

void CublasLtGemm::enqueue(const Operands &t, size_t choice) const {
  constexpr float kAlpha = 1.0f;
  check_lt(library_.lt_.matmul(library_.handle_, matmul_, &kAlpha, t.second, left_, t.first, right_,
                               &beta_, t.out, out_, t.out, out_, &algos_[choice],
                               library_.workspace_.data(), kWorkspaceBytes, library_.stream_),
           "cublasLtMatmul");
}

}  // namespace mpbench
