// Batched GEMMs as an operation, and the equivalent loop over cuBLASLt for a group.
#pragma once

#include <vector>

#include "bench/peers/cublas.h"
#include "bench/shapes/batched_shapes.h"
#include "operation.h"

namespace mpbench {

Operation batched_operation(const Machine &machine, const BatchedShape &shape, mp_dtype_t dtype);

/// Loop over cuBLASLt, as in programs without a grouped GEMM, as the first choice;
/// cublasGemmGroupedBatchedEx is the second one, if cuBLAS has it.
class GroupPeer : public Peer {
 public:
  /// @param grouped  NULL: the loop only
  /// @throws std::runtime_error if cuBLASLt has no algorithm for an entry.
  GroupPeer(const CublasLt &loop, const Cublas *grouped, const BatchedShape &shape,
            mp_dtype_t dtype);

  size_t choices() const override { return grouped_ ? 2 : 1; }
  PeerWorkspace workspace(size_t) const override {
    return {.limit = CublasLt::kWorkspaceBytes, .used = -1};
  }
  void enqueue(const Operands &tensors, size_t choice) const override;

 private:
  int64_t elem_bytes_;
  std::vector<ItemOffsets> offsets_;
  std::vector<std::unique_ptr<Peer>> loop_;
  std::unique_ptr<Peer> grouped_;
};

}  // namespace mpbench
