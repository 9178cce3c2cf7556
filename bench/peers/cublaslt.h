// cuBLASLt as a peer: the first algorithms of its heuristic, FP32 compute, the same pointers and
// stream.  If the toolkit's headers are missing, the bench is compiled without it (no_cublas.cpp).
//
// cuBLASLt is column-major, so row-major matrices are passed as transposes: D = op(A) op(B) becomes
// D^T = op(B)^T op(A)^T.  The operands are swapped and keep their flags, the reverse of shapes.h.
#pragma once

#include <memory>
#include <vector>

#include "bench/common.h"
#include "bench/shapes/epilogue_shapes.h"
#include "dynamic_library.h"
#include "peer.h"

typedef struct cublasLtContext *cublasLtHandle_t;  // declared by cuBLASLt

namespace mpbench {

class CublasLt {
 public:
  static constexpr char kName[] = "cuBLASLt";
  /// Size of the workspace, and limit for the heuristic.
  static constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

  /// @throws std::runtime_error if it is not installed or does not start.
  CublasLt(mp_context_t context, mp_stream_t stream);
  CublasLt(const CublasLt &) = delete;
  CublasLt &operator=(const CublasLt &) = delete;
  ~CublasLt();

  /// Version number in the library's format, e.g. 130001.
  size_t version() const;
  const DynamicLibrary &library() const { return library_; }

 private:
  friend class CublasLtGemm;

  DynamicLibrary library_;
  mp_stream_t stream_;
  cublasLtHandle_t handle_ = nullptr;
  Buffer workspace_;
};

/// One problem, ready to be enqueued.
class CublasLtGemm : public Peer {
 public:
  /// Number of algorithms requested from the heuristic.
  static constexpr int kChoices = 8;

  /// Partial sums of split-k are reduced in fp32, never in the type of D.
  /// @param desc      may be a strided batch
  /// @param math      precision in which FP32 operands are multiplied
  /// @param epilogue  cuBLASLt has no sums and flags: for these, its GEMM alone
  /// @throws std::runtime_error if cuBLASLt has no algorithm for it.
  CublasLtGemm(const CublasLt &library, const mp_gemm_desc_t &desc, PeerMath math = PeerMath::kFp32,
               Epilogue epilogue = Epilogue::kNone);
  ~CublasLtGemm() override;

  /// Number of available algorithms, 1 to kChoices, in the heuristic's order.
  size_t choices() const override { return workspaces_.size(); }
  PeerWorkspace workspace(size_t choice) const override {
    return {.limit = CublasLt::kWorkspaceBytes, .used = workspaces_[choice]};
  }
  /// D = epilogue(op(A) op(B) + beta D).  A bias gradient has D's type here.
  void enqueue(const Operands &tensors, size_t choice) const override;

 private:
  struct Matmul;

  const CublasLt &library_;
  std::vector<int64_t> workspaces_;  ///< workspace per algorithm
  std::unique_ptr<Matmul> matmul_;
};

}  // namespace mpbench
