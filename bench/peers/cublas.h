// cuBLAS as a peer for calls that cuBLASLt lacks: batches with a pointer per matrix, and groups.
// Column-major, as described in cublaslt.h.
#pragma once

#include <memory>
#include <vector>

#include "cublaslt.h"

typedef struct cublasContext *cublasHandle_t;  // declared by cuBLAS

namespace mpbench {

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

 private:
  friend class CublasBatchedGemm;
  friend class CublasGroupedGemm;

  DynamicLibrary library_;
  cublasHandle_t handle_ = nullptr;
  Buffer workspace_;
};

/// Pointer-array batch: cublasGemmBatchedEx.
class CublasBatchedGemm : public Peer {
 public:
  /// @throws std::runtime_error if an extent exceeds 32 bits.
  CublasBatchedGemm(const Cublas &library, const mp_gemm_desc_t &desc);

  PeerWorkspace workspace(size_t) const override {
    return {.limit = CublasLt::kWorkspaceBytes, .used = -1};
  }
  void enqueue(const Operands &tensors, size_t choice) const override;

 private:
  const Cublas &library_;
  mp_gemm_desc_t desc_;
};

/// Grouped GEMM: cublasGemmGroupedBatchedEx with one entry per group.
class CublasGroupedGemm : public Peer {
 public:
  /// @param items  shapes of the entries; the types are those of the first entry
  /// @throws std::runtime_error if an extent exceeds 32 bits, or if cuBLAS is older than 12.5.
  CublasGroupedGemm(const Cublas &library, const std::vector<mp_gemm_desc_t> &items);

  PeerWorkspace workspace(size_t) const override {
    return {.limit = CublasLt::kWorkspaceBytes, .used = -1};
  }
  void enqueue(const Operands &tensors, size_t choice) const override;

 private:
  const Cublas &library_;
  mp_dtype_t type_ab_, type_cd_;
  std::vector<int> left_ops_, right_ops_;
  std::vector<int> m_, n_, k_, left_ld_, right_ld_, out_ld_, sizes_;
  std::vector<float> alpha_, beta_;
};

}  // namespace mpbench
