// cuBLASLt as a peer: the first algorithms of its heuristic, FP32 compute, the same pointers and
// stream.
//
// cuBLASLt is column-major, so row-major matrices are passed as transposes: D = op(A) op(B) becomes
// D^T = op(B)^T op(A)^T.  The operands are swapped and keep their flags, the reverse of shapes.h.
#pragma once

#include <vector>

#include "bench/common.h"
#include "cublaslt_abi.h"
#include "dynamic_library.h"
#include "peer.h"
#include "peer_math.h"

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
  size_t version() const { return lt_.get_version(); }
  const DynamicLibrary &library() const { return library_; }

 private:
  friend class CublasLtGemm;

  DynamicLibrary library_;
  mp_stream_t stream_;
  cublaslt::Functions lt_;
  cublaslt::Handle handle_ = nullptr;
  Buffer workspace_;
};

/// One problem, ready to be enqueued.
class CublasLtGemm : public Peer {
 public:
  /// Number of algorithms requested from the heuristic.
  static constexpr int kChoices = 8;

  /// Partial sums of split-k are reduced in fp32, never in the type of D.
  /// @param desc  may be a strided batch
  /// @param math  precision in which FP32 operands are multiplied
  /// @throws std::runtime_error if cuBLASLt has no algorithm for it.
  CublasLtGemm(const CublasLt &library, const mp_gemm_desc_t &desc, PeerMath math = PeerMath::kFp32,
               cublaslt::Epilogue epilogue = cublaslt::kDefault);
  ~CublasLtGemm() override;

  /// Number of available algorithms, 1 to kChoices, in the heuristic's order.
  size_t choices() const override { return algos_.size(); }
  PeerWorkspace workspace(size_t choice) const override {
    return {.limit = CublasLt::kWorkspaceBytes, .used = workspaces_[choice]};
  }
  /// D = epilogue(op(A) op(B) + beta D).  A bias gradient has D's type here.
  void enqueue(const Operands &tensors, size_t choice) const override;

 private:
  void create_descriptors(const mp_gemm_desc_t &desc, PeerMath math);
  void set_epilogue(int64_t ld_aux);
  void set_pointers(const void *bias, const void *aux) const;
  template <typename Value>
  void set(cublaslt::MatmulDescAttribute attribute, const Value &value) const;
  void find_algos();
  void destroy_descriptors();

  const CublasLt &library_;
  float beta_;
  cublaslt::Epilogue epilogue_;
  cublaslt::MatmulDesc matmul_ = nullptr;
  cublaslt::MatrixLayout left_ = nullptr;   // our B
  cublaslt::MatrixLayout right_ = nullptr;  // our A
  cublaslt::MatrixLayout out_ = nullptr;    // our D
  std::vector<cublaslt::Algo> algos_;
  std::vector<int64_t> workspaces_;  ///< workspace per algorithm
};

}  // namespace mpbench
