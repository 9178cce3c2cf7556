// cuDNN as a peer of a convolution: its algorithm search, then the engines of its graph API.
#pragma once

#include <memory>

#include "cudnn.h"
#include "cudnn_graph.h"
#include "peer.h"

namespace mpbench {

class CudnnPeer : public Peer {
 public:
  /// @param search  tensors for the search, which overwrites the output
  /// @throws std::runtime_error if cuDNN has no algorithm for it.
  CudnnPeer(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op, PeerLayout layout,
            const Operands &search, PeerMath math)
      : conv_(library, desc, op, layout, search.first, search.second, search.out, math) {}

  /// @throws std::runtime_error if the graph API has no engine for the convolution.
  void add_engines(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op) {
    graph_ = std::make_unique<CudnnGraphConv>(library, desc, op);
  }

  size_t choices() const override { return graph_ ? graph_->engines() + 1 : 0; }
  PeerWorkspace workspace(size_t choice) const override {
    return {.limit = Cudnn::kWorkspaceBytes,
            .used = choice == 0 ? conv_.workspace_bytes() : graph_->workspace_bytes(choice - 1)};
  }
  void enqueue(const Operands &t, size_t choice) const override {
    if (choice == 0)
      conv_.enqueue(t.first, t.second, t.out);
    else
      graph_->enqueue(t.first, t.second, t.out, choice - 1);
  }

 private:
  CudnnConv conv_;
  std::unique_ptr<CudnnGraphConv> graph_;
};

}  // namespace mpbench
