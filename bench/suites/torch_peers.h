// Peers that use PyTorch: Python scripts in separate processes.  They time a batch on request, so
// that measurements are interleaved with mpcore's.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "bench/peers/co_process.h"
#include "bench/rows/report.h"
#include "bench/timing/machine.h"

namespace mpbench {

class TorchPeers {
 public:
  using Arguments = std::vector<std::string>;

  /// Starts a script, once for each list of arguments; never on the host target, or if the options
  /// exclude PyTorch.
  /// @param script  file in suites/
  TorchPeers(const Options &options, const Machine &machine, const std::string &script,
             const std::vector<Arguments> &arguments = {{}});

  /// False if no problem has a peer: scripts end if a package is missing.
  bool exist() const { return !scripts_.empty(); }
  /// Creates the data of `problem`, in the format of the scripts, and warms up.
  /// @param label    name of the problem in notes on peers that cannot run it
  /// @param subject  kind of all problems, for the note of a script that has ended
  /// @return a function that times one batch of each peer while nothing else runs on the device;
  ///         NULL if no peer can run the problem
  std::function<void()> prepare(const std::string &problem, const std::string &label,
                                const std::string &subject, Report &report);
  /// Results of all batches since prepare().
  std::vector<PeerResult> results();

 private:
  std::list<CoProcess> scripts_;
  std::vector<CoProcess *> ready_;  ///< peers that can run the problem
};

}  // namespace mpbench
