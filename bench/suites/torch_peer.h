// A peer that is written in Python, because it needs PyTorch.  A script runs it, in a process of its own; it is told when a
// batch is due, so that it takes turns with mpcore.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/peers/co_process.h"
#include "bench/rows/row.h"

namespace mpbench {

class TorchPeer {
 public:
  /// @param script     file in suites/ under `home`
  /// @param arguments  beside the device
  TorchPeer(const std::string &home, const std::string &script, int ordinal,
            const std::vector<std::string> &arguments = {});

  /// Makes the data of `problem`, as the script reads it, and warms up.
  /// @return empty, or why there is no such peer
  std::string prepare(const std::string &problem);
  /// It answers no more, or its package is not there: for no problem is there such a peer.
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
