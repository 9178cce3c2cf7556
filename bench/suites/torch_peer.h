// A peer that uses PyTorch: a Python script in a separate process.  It times a batch on request, so
// that measurements are interleaved with mpcore's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/peers/co_process.h"
#include "bench/rows/report.h"

namespace mpbench {

class TorchPeer {
 public:
  /// @param script     file in suites/ under `home`
  /// @param arguments  arguments after the device
  TorchPeer(const std::string &home, const std::string &script, int ordinal,
            const std::vector<std::string> &arguments = {});

  /// Creates the data of `problem`, in the format of the script, and warms up.
  /// @param label    name of the problem in notes
  /// @param subject  kind of all problems, for the note of a peer that is absent()
  /// @return false if the peer cannot run it; a note in `report` has the reason
  bool prepare(const std::string &problem, const std::string &label, const std::string &subject,
               Report &report);
  /// True if the script has ended or its package is missing, so that no problem has this peer.
  bool absent() const { return absent_; }
  /// Times one batch while nothing else runs on the device.
  void take_turn();
  /// Result of all batches since prepare().
  std::optional<PeerResult> result();

 private:
  CoProcess python_;
  bool absent_ = false;
};

}  // namespace mpbench
