// A fused AdamW of PyTorch, Apex or Transformer Engine with GradScaler as a peer of mp_scale_step.
// torch_step.py runs it, in a process of its own; it is told when a batch is due, so that it takes turns with
// mpcore.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/peers/co_process.h"
#include "bench/rows/row.h"
#include "layouts.h"

namespace mpbench {

class TorchStep {
 public:
  /// Of the scripts under `home`; `step`, whose it is: torch, apex or te.
  TorchStep(const std::string &home, int ordinal, const std::string &step);

  /// Makes the data and warms up.
  /// @return empty, or why there is no such peer
  std::string prepare(const Layout &layout);
  /// It answers no more, or its package is not there: for no layout is there such a peer.
  bool absent() const { return absent_; }
  /// Times one batch while nothing else runs on the device.
  void take_turn();
  /// Of all turns since prepare.
  std::optional<PeerResult> result();

 private:
  CoProcess python_;
  bool absent_ = false;
};

}  // namespace mpbench
