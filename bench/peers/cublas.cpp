#include "cublas.h"

#if __has_include(<cublasLt.h>) && __has_include(<cublas_v2.h>)
#include <cublasLt.h>
#include <cublas_v2.h>

#include <climits>
#include <memory>
#include <optional>

namespace mpbench {
namespace {

std::optional<DynamicLibrary> lt;    ///< set by CublasLt
std::optional<DynamicLibrary> blas;  ///< set by Cublas

cudaDataType_t cublas_type(mp_dtype_t dtype) {
  static_assert(mp::float_type(MP_FP16).cuda == CUDA_R_16F);
  static_assert(mp::float_type(MP_BF16).cuda == CUDA_R_16BF);
  static_assert(mp::float_type(MP_FP32).cuda == CUDA_R_32F);
  return static_cast<cudaDataType_t>(mp::float_type(dtype).cuda);
}
cublasOperation_t operation(mp_op_t op) {
  return op == MP_OP_T ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/// @throws std::runtime_error with the name of the call unless it succeeded
void check_cublas(cublasStatus_t status, const char *call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(text("%s: cublasStatus %d", call, static_cast<int>(status)));
}

/// Calls a function of `lt` or `blas`, which is found at its first use, and checks its status.
#define MPBENCH_BLAS(library, function, ...) \
  check_cublas(MPBENCH_FUNCTION(*library, function)(__VA_ARGS__), #function)

}  // namespace

// ---------------------------------------------------------------------------- cuBLASLt

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

/// A GEMM by cuBLASLt.
class CublasLtGemm {
 public:
  CublasLtGemm(const CublasLt &library, const mp_gemm_desc_t &gemm, PeerMath math, Epilogue kind);
  CublasLtGemm(const CublasLtGemm &) = delete;
  CublasLtGemm &operator=(const CublasLtGemm &) = delete;
  ~CublasLtGemm();

  /// Returns those that can run; the first one is the default.
  /// @throws std::runtime_error if there are none
  std::vector<cublasLtMatmulHeuristicResult_t> find_algorithms();
  void enqueue(const Operands &t, const cublasLtMatmulAlgo_t &algo) const;

 private:
  void create_layout(cublasLtMatrixLayout_t *layout, mp_dtype_t dtype, int64_t rows, int64_t cols,
                     int64_t ld, int64_t stride, int32_t count) const;
  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value &value) const {
    MPBENCH_BLAS(lt, cublasLtMatmulDescSetAttribute, desc_, attribute, &value, sizeof value);
  }
  void set_pointers(const void *bias, const void *aux) const;

  const CublasLt &library_;
  float beta_;
  cublasLtEpilogue_t epilogue_;
  bool has_aux_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr;   // our B
  cublasLtMatrixLayout_t right_ = nullptr;  // our A
  cublasLtMatrixLayout_t out_ = nullptr;    // our D
  cublasLtMatmulPreference_t preference_ = nullptr;
};

CublasLtGemm::CublasLtGemm(const CublasLt &library, const mp_gemm_desc_t &gemm, PeerMath math,
                           Epilogue kind)
    : library_(library),
      beta_(gemm.beta),
      epilogue_(lt_epilogue(kind)),
      has_aux_(kind_of(kind).has_aux) {
  MPBENCH_BLAS(lt, cublasLtMatmulDescCreate, &desc_,
               math == PeerMath::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
               CUDA_R_32F);
  set(CUBLASLT_MATMUL_DESC_TRANSA, operation(gemm.op_b));
  set(CUBLASLT_MATMUL_DESC_TRANSB, operation(gemm.op_a));
  if (epilogue_ != CUBLASLT_EPILOGUE_DEFAULT) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_);
    if (has_aux_) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, gemm.ld_d);
    // The heuristic checks the alignment of the pointers; the workspace has that of the tensors.
    set_pointers(library.workspace_.data(), library.workspace_.data());
  }
  const bool a_as_stored = gemm.op_a == MP_OP_N, b_as_stored = gemm.op_b == MP_OP_N;
  create_layout(&left_, gemm.dtype_ab, b_as_stored ? gemm.k : gemm.n, b_as_stored ? gemm.n : gemm.k,
                gemm.ld_b, gemm.stride_b, gemm.batch_count);
  create_layout(&right_, gemm.dtype_ab, a_as_stored ? gemm.m : gemm.k,
                a_as_stored ? gemm.k : gemm.m, gemm.ld_a, gemm.stride_a, gemm.batch_count);
  create_layout(&out_, gemm.dtype_cd, gemm.m, gemm.n, gemm.ld_d, gemm.stride_d, gemm.batch_count);
}

CublasLtGemm::~CublasLtGemm() {
  if (preference_ != nullptr) MPBENCH_FUNCTION(*lt, cublasLtMatmulPreferenceDestroy)(preference_);
  for (const cublasLtMatrixLayout_t layout : {left_, right_, out_})
    if (layout != nullptr) MPBENCH_FUNCTION(*lt, cublasLtMatrixLayoutDestroy)(layout);
  if (desc_ != nullptr) MPBENCH_FUNCTION(*lt, cublasLtMatmulDescDestroy)(desc_);
}

/// The row-major matrix has `cols` columns, which are column-major rows.
void CublasLtGemm::create_layout(cublasLtMatrixLayout_t *layout, mp_dtype_t dtype, int64_t rows,
                                 int64_t cols, int64_t ld, int64_t stride, int32_t count) const {
  MPBENCH_BLAS(lt, cublasLtMatrixLayoutCreate, layout, cublas_type(dtype),
               static_cast<uint64_t>(cols), static_cast<uint64_t>(rows), ld);
  if (count == 1) return;
  MPBENCH_BLAS(lt, cublasLtMatrixLayoutSetAttribute, *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
               &count, sizeof count);
  MPBENCH_BLAS(lt, cublasLtMatrixLayoutSetAttribute, *layout,
               CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
}

void CublasLtGemm::set_pointers(const void *bias, const void *aux) const {
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (has_aux_) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
}

std::vector<cublasLtMatmulHeuristicResult_t> CublasLtGemm::find_algorithms() {
  MPBENCH_BLAS(lt, cublasLtMatmulPreferenceCreate, &preference_);
  constexpr uint64_t kSpaceBytes = CublasLt::kWorkspaceBytes;
  MPBENCH_BLAS(lt, cublasLtMatmulPreferenceSetAttribute, preference_,
               CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kSpaceBytes, sizeof kSpaceBytes);
  constexpr uint32_t kSchemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  MPBENCH_BLAS(lt, cublasLtMatmulPreferenceSetAttribute, preference_,
               CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &kSchemes, sizeof kSchemes);
  cublasLtMatmulHeuristicResult_t results[CublasLt::kChoices] = {};
  int found = 0;
  MPBENCH_BLAS(lt, cublasLtMatmulAlgoGetHeuristic, library_.handle_, desc_, left_, right_, out_,
               out_, preference_, CublasLt::kChoices, results, &found);
  if (found == 0) throw std::runtime_error("cublasLtMatmulAlgoGetHeuristic: no algorithm");
  check_cublas(results[0].state, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<cublasLtMatmulHeuristicResult_t> usable(results, results + found);
  std::erase_if(usable, [](const auto &one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return usable;
}

void CublasLtGemm::enqueue(const Operands &t, const cublasLtMatmulAlgo_t &algo) const {
  constexpr float kAlpha = 1.0f;
  // The descriptor is read while the call is enqueued.
  if (epilogue_ != CUBLASLT_EPILOGUE_DEFAULT)
    set_pointers(epilogue_ == CUBLASLT_EPILOGUE_DGELU_BGRAD ? t.epilogue.dbias : t.epilogue.bias,
                 t.epilogue.aux);
  MPBENCH_BLAS(lt, cublasLtMatmul, library_.handle_, desc_, &kAlpha, t.second, left_, t.first,
               right_, &beta_, t.out, out_, t.out, out_, &algo, library_.workspace_.data(),
               static_cast<size_t>(library_.workspace_.bytes()), library_.stream_);
}

PeerCalls CublasLt::gemm(const mp_gemm_desc_t &desc, PeerMath math, Epilogue epilogue) const {
  const auto gemm = std::make_shared<CublasLtGemm>(*this, desc, math, epilogue);
  PeerCalls calls;
  for (const cublasLtMatmulHeuristicResult_t &found : gemm->find_algorithms())
    calls.push_back({{kWorkspaceBytes, static_cast<int64_t>(found.workspaceSize)},
                     [gemm, algo = found.algo](const Operands &t) { gemm->enqueue(t, algo); }});
  return calls;
}

// ---------------------------------------------------------------------------- cuBLAS

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

/// All calls of cuBLAS have the same workspace, and it does not report which part a call uses.
constexpr PeerWorkspace kUnknownUse{.limit = CublasLt::kWorkspaceBytes, .used = -1};

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

PeerCall Cublas::batched_gemm(const mp_gemm_desc_t &desc) const {
  const cudaDataType_t type_ab = cublas_type(desc.dtype_ab), type_cd = cublas_type(desc.dtype_cd);
  const int m = narrow(desc.n), n = narrow(desc.m), k = narrow(desc.k);
  const int left_ld = narrow(desc.ld_b), right_ld = narrow(desc.ld_a), out_ld = narrow(desc.ld_d);
  return {kUnknownUse, [=, handle = handle_](const Operands &t) {
            constexpr float kAlpha = 1.0f;
            check_cublas(gemm_batched(handle, operation(desc.op_b), operation(desc.op_a), m, n, k,
                                      &kAlpha, t.items.second, type_ab, left_ld, t.items.first,
                                      type_ab, right_ld, &desc.beta, t.items.out, type_cd, out_ld,
                                      desc.batch_count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                         "cublasGemmBatchedEx");
          }};
}

PeerCall Cublas::grouped_gemm(const std::vector<mp_gemm_desc_t> &items) const {
  if (!has_groups()) throw std::runtime_error("cublasGemmGroupedBatchedEx is missing");
  std::vector<cublasOperation_t> left_ops, right_ops;
  std::vector<int> m, n, k, left_ld, right_ld, out_ld;
  std::vector<float> alpha, beta;
  for (const mp_gemm_desc_t &item : items) {
    left_ops.push_back(operation(item.op_b));
    right_ops.push_back(operation(item.op_a));
    m.push_back(narrow(item.n));
    n.push_back(narrow(item.m));
    k.push_back(narrow(item.k));
    left_ld.push_back(narrow(item.ld_b));
    right_ld.push_back(narrow(item.ld_a));
    out_ld.push_back(narrow(item.ld_d));
    alpha.push_back(item.alpha);
    beta.push_back(item.beta);
  }
  const cudaDataType_t type_ab = cublas_type(items.front().dtype_ab);
  const cudaDataType_t type_cd = cublas_type(items.front().dtype_cd);
  const std::vector<int> sizes(items.size(), 1);
  return {kUnknownUse, [=, handle = handle_](const Operands &t) {
            check_cublas(
                gemm_grouped(handle, left_ops.data(), right_ops.data(), m.data(), n.data(),
                             k.data(), alpha.data(), t.items.second, type_ab, left_ld.data(),
                             t.items.first, type_ab, right_ld.data(), beta.data(), t.items.out,
                             type_cd, out_ld.data(), narrow(static_cast<int64_t>(sizes.size())),
                             sizes.data(), CUBLAS_COMPUTE_32F),
                "cublasGemmGroupedBatchedEx");
          }};
}

}  // namespace mpbench

#else

#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-private-field"
#endif

namespace mpbench {

CublasLt::CublasLt(mp_context_t, mp_stream_t)
    : library_({(throw std::runtime_error("mpbench was built without cublasLt.h"), "")}) {}
CublasLt::~CublasLt() = default;
size_t CublasLt::version() const {
  return 0;
}
PeerCalls CublasLt::gemm(const mp_gemm_desc_t &, PeerMath, Epilogue) const {
  return {};
}

Cublas::Cublas(mp_context_t, mp_stream_t)
    : library_({(throw std::runtime_error("mpbench was built without cublas_v2.h"), "")}) {}
Cublas::~Cublas() = default;
size_t Cublas::version() const {
  return 0;
}
bool Cublas::has_groups() const {
  return false;
}
PeerCall Cublas::batched_gemm(const mp_gemm_desc_t &) const {
  return {};
}
PeerCall Cublas::grouped_gemm(const std::vector<mp_gemm_desc_t> &) const {
  return {};
}

}  // namespace mpbench

#endif
