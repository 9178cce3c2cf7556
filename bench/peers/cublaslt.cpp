#include "cublaslt.h"

#if __has_include(<cublasLt.h>) && __has_include(<cublas_v2.h>)
#include "cublas_functions.h"

namespace mpbench {
namespace {

/// The bias and its gradient are one column of the column-major D; aux is the input of GELU.
cublasLtEpilogue_t lt_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::kBiasGeluAux:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::kDgeluDbias:
      return CUBLASLT_EPILOGUE_DGELU_BGRAD;
    default:
      return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

}  // namespace

CublasLt::CublasLt(mp_context_t context, mp_stream_t stream)
    : library_({"libcublasLt.so.13", "libcublasLt.so.12"}),
      stream_(stream),
      workspace_(context, kWorkspaceBytes) {
  lt = library_;
  MPBENCH_BLAS(lt, cublasLtCreate, &handle_);
}

CublasLt::~CublasLt() {
  MPBENCH_FUNCTION(*lt, cublasLtDestroy)(handle_);
}

size_t CublasLt::version() const {
  return MPBENCH_FUNCTION(*lt, cublasLtGetVersion)();
}

struct CublasLtGemm::Matmul {
  Matmul(const CublasLt &library, const mp_gemm_desc_t &desc, PeerMath math, Epilogue epilogue);
  Matmul(const Matmul &) = delete;
  Matmul &operator=(const Matmul &) = delete;
  ~Matmul();

  void create_layout(cublasLtMatrixLayout_t *layout, mp_dtype_t dtype, int64_t rows, int64_t cols,
                     int64_t ld, int64_t stride, int32_t count) const;
  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value &value) const {
    MPBENCH_BLAS(lt, cublasLtMatmulDescSetAttribute, desc, attribute, &value, sizeof value);
  }
  void set_pointers(const void *bias, const void *aux) const;

  float beta;
  cublasLtEpilogue_t epilogue;
  bool has_aux;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t left = nullptr;   // our B
  cublasLtMatrixLayout_t right = nullptr;  // our A
  cublasLtMatrixLayout_t out = nullptr;    // our D
  cublasLtMatmulPreference_t preference = nullptr;
  std::vector<cublasLtMatmulAlgo_t> algos;
};

CublasLtGemm::Matmul::Matmul(const CublasLt &library, const mp_gemm_desc_t &gemm, PeerMath math,
                             Epilogue kind)
    : beta(gemm.beta),
      epilogue(lt_epilogue(kind)),
      has_aux(kind == Epilogue::kBiasGeluAux || kind == Epilogue::kDgeluDbias) {
  MPBENCH_BLAS(lt, cublasLtMatmulDescCreate, &desc,
               math == PeerMath::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
               CUDA_R_32F);
  set(CUBLASLT_MATMUL_DESC_TRANSA, operation(gemm.op_b));
  set(CUBLASLT_MATMUL_DESC_TRANSB, operation(gemm.op_a));
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (has_aux) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, gemm.ld_d);
    // The heuristic checks the alignment of the pointers; the workspace has that of the tensors.
    set_pointers(library.workspace_.data(), library.workspace_.data());
  }
  const bool a_as_stored = gemm.op_a == MP_OP_N, b_as_stored = gemm.op_b == MP_OP_N;
  create_layout(&left, gemm.dtype_ab, b_as_stored ? gemm.k : gemm.n, b_as_stored ? gemm.n : gemm.k,
                gemm.ld_b, gemm.stride_b, gemm.batch_count);
  create_layout(&right, gemm.dtype_ab, a_as_stored ? gemm.m : gemm.k, a_as_stored ? gemm.k : gemm.m,
                gemm.ld_a, gemm.stride_a, gemm.batch_count);
  create_layout(&out, gemm.dtype_cd, gemm.m, gemm.n, gemm.ld_d, gemm.stride_d, gemm.batch_count);
}

CublasLtGemm::Matmul::~Matmul() {
  if (preference != nullptr) MPBENCH_FUNCTION(*lt, cublasLtMatmulPreferenceDestroy)(preference);
  for (const cublasLtMatrixLayout_t layout : {left, right, out})
    if (layout != nullptr) MPBENCH_FUNCTION(*lt, cublasLtMatrixLayoutDestroy)(layout);
  if (desc != nullptr) MPBENCH_FUNCTION(*lt, cublasLtMatmulDescDestroy)(desc);
}

/// The row-major matrix has `cols` columns, which are column-major rows.
void CublasLtGemm::Matmul::create_layout(cublasLtMatrixLayout_t *layout, mp_dtype_t dtype,
                                         int64_t rows, int64_t cols, int64_t ld, int64_t stride,
                                         int32_t count) const {
  MPBENCH_BLAS(lt, cublasLtMatrixLayoutCreate, layout, cublas_type(dtype),
               static_cast<uint64_t>(cols), static_cast<uint64_t>(rows), ld);
  if (count == 1) return;
  MPBENCH_BLAS(lt, cublasLtMatrixLayoutSetAttribute, *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
               &count, sizeof count);
  MPBENCH_BLAS(lt, cublasLtMatrixLayoutSetAttribute, *layout,
               CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
}

void CublasLtGemm::Matmul::set_pointers(const void *bias, const void *aux) const {
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (has_aux) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
}

CublasLtGemm::CublasLtGemm(const CublasLt &library, const mp_gemm_desc_t &desc, PeerMath math,
                           Epilogue epilogue)
    : library_(library), matmul_(std::make_unique<Matmul>(library, desc, math, epilogue)) {
  Matmul &m = *matmul_;
  MPBENCH_BLAS(lt, cublasLtMatmulPreferenceCreate, &m.preference);
  constexpr uint64_t kSpaceBytes = CublasLt::kWorkspaceBytes;
  MPBENCH_BLAS(lt, cublasLtMatmulPreferenceSetAttribute, m.preference,
               CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kSpaceBytes, sizeof kSpaceBytes);
  constexpr uint32_t kSchemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  MPBENCH_BLAS(lt, cublasLtMatmulPreferenceSetAttribute, m.preference,
               CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &kSchemes, sizeof kSchemes);
  cublasLtMatmulHeuristicResult_t results[kChoices] = {};
  int found = 0;
  MPBENCH_BLAS(lt, cublasLtMatmulAlgoGetHeuristic, library.handle_, m.desc, m.left, m.right, m.out,
               m.out, m.preference, kChoices, results, &found);
  if (found == 0) throw std::runtime_error("cublasLtMatmulAlgoGetHeuristic: no algorithm");
  check_cublas(results[0].state, "cublasLtMatmulAlgoGetHeuristic");
  for (int i = 0; i < found; ++i) {
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    m.algos.push_back(results[i].algo);
    workspaces_.push_back(static_cast<int64_t>(results[i].workspaceSize));
  }
}

CublasLtGemm::~CublasLtGemm() = default;

void CublasLtGemm::enqueue(const Operands &t, size_t choice) const {
  constexpr float kAlpha = 1.0f;
  const Matmul &m = *matmul_;
  // The descriptor is read while the call is enqueued.
  if (m.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    m.set_pointers(m.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD ? t.epilogue.dbias : t.epilogue.bias,
                   t.epilogue.aux);
  MPBENCH_BLAS(lt, cublasLtMatmul, library_.handle_, m.desc, &kAlpha, t.second, m.left, t.first,
               m.right, &m.beta, t.out, m.out, t.out, m.out, &m.algos[choice],
               library_.workspace_.data(), static_cast<size_t>(library_.workspace_.bytes()),
               library_.stream_);
}

}  // namespace mpbench

#endif
