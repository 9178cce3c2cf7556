// cuBLASLt as a peer: the first algorithms of its heuristic, FP32 compute, the same pointers and
// stream; and cuBLAS for calls that cuBLASLt lacks: batches with a pointer per matrix, and groups.
// If the toolkit's headers are missing, opening a library fails, so that nothing else is called.
//
// Both are column-major, so row-major matrices are passed as transposes: D = op(A) op(B) becomes
// D^T = op(B)^T op(A)^T.  The operands are swapped and keep their flags, the reverse of shapes.h.
#pragma once

#include <vector>

#include "bench/common.h"
#include "bench/shapes/epilogue_shapes.h"
#include "dynamic_library.h"
#include "peer.h"

// Types that the libraries declare.
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasContext *cublasHandle_t;

namespace mpbench {

class CublasLt {
 public:
  static constexpr char kName[] = "cuBLASLt";
  /// Size of the workspace, and limit for the heuristic.
  static constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
  /// Number of algorithms requested from the heuristic.
  static constexpr int kChoices = 8;

  /// @throws std::runtime_error if it is not installed or does not start.
  CublasLt(mp_context_t context, mp_stream_t stream);
  CublasLt(const CublasLt &) = delete;
  CublasLt &operator=(const CublasLt &) = delete;
  ~CublasLt();

  /// Version number in the library's format, e.g. 130001.
  size_t version() const;
  const DynamicLibrary &library() const { return library_; }

  /// Returns calls that compute D = epilogue(op(A) op(B) + beta D), one for each available
  /// algorithm, 1 to kChoices, in the heuristic's order.  They use this object, which must outlive
  /// them.  Partial sums of split-k are reduced in fp32, never in the type of D.  A bias gradient
  /// has D's type here.
  /// @param desc      may be a strided batch
  /// @param math      precision in which FP32 operands are multiplied
  /// @param epilogue  cuBLASLt has no sums and flags: for these, its GEMM alone
  /// @throws std::runtime_error if cuBLASLt has no algorithm for it.
  PeerCalls gemm(const mp_gemm_desc_t &desc, PeerMath math = PeerMath::kFp32,
                 Epilogue epilogue = Epilogue::kNone) const;

 private:
  friend class CublasLtGemm;

  DynamicLibrary library_;
  mp_stream_t stream_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  Buffer workspace_;
};

class Cublas {
 public:
  static constexpr char kName[] = "cuBLAS";

  /// @throws std::runtime_error if it is not installed or does not start.
  Cublas(mp_context_t context, mp_stream_t stream);
  Cublas(const Cublas &) = delete;
  Cublas &operator=(const Cublas &) = delete;
  ~Cublas();

  /// Version number in the library's format, e.g. 130001.
  size_t version() const;
  bool has_groups() const;
  const DynamicLibrary &library() const { return library_; }

  /// Returns a pointer-array batch: cublasGemmBatchedEx.
  /// @throws std::runtime_error if an extent exceeds 32 bits.
  PeerCall batched_gemm(const mp_gemm_desc_t &desc) const;
  /// Returns a grouped GEMM: cublasGemmGroupedBatchedEx with one entry per group.
  /// @param items  shapes of the entries; the types are those of the first entry
  /// @throws std::runtime_error if an extent exceeds 32 bits, or if cuBLAS is older than 12.5.
  PeerCall grouped_gemm(const std::vector<mp_gemm_desc_t> &items) const;

 private:
  DynamicLibrary library_;
  cublasHandle_t handle_ = nullptr;
  Buffer workspace_;
};

}  // namespace mpbench
