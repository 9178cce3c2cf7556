// What rows of results have in common: as text of the table and as fields of the JSON.
//
// A kind of row is a struct and three functions, which Report::add finds by its type:
// heading_of(row), line_of(row, peak) for the table, json_of(row, peak).
#pragma once

#include <optional>
#include <string>

#include "bench/common.h"
#include "bench/peers/peer.h"
#include "bench/timing/timing.h"
#include "support/json.h"

namespace mpbench {

using mptools::Json;
using Long = long long;  // what %lld wants

/// Another library doing the same job.
struct PeerResult {
  std::string name;  ///< with its version
  double median_us, q1_us, q3_us;
  std::optional<bool> agrees;  ///< computed the same as mpcore; empty = not compared
};

/// The fastest of the peer's own choices for a problem.
struct BestChoice {
  int64_t choice, of;  ///< from 1, the one that is the peer
  PeerWorkspace workspace;
  PeerResult result;
};

/// The same of FP32 operands: what mixed precision is an alternative to.
struct Baselines {
  std::optional<PeerResult> fp32;  ///< without TF32
  std::optional<PeerResult> tf32;  ///< where it is allowed
};

/// Each alone for some seconds, after as many.
struct SustainedResult {
  Timing own;
  std::optional<Timing> peer;  ///< of its first choice
};

/// How good the choice of the kernel was, over all kernels that can run the problem.
struct RankResult {
  int64_t position, count;  ///< predicted place of the fastest, from 1
  std::string fastest;
  double chosen_us, fastest_us;
};

/// The rate that large squares reached in this run, of mpcore or its peer, whichever was
/// faster.
struct Peak {
  double tflops;
  std::string from;
};

/// What the machine itself can do.
struct MachineRate {
  std::string name, unit;
  std::string how;               ///< or why it was not measured
  double amount;                 ///< of 1e9 or 1e12 units, per call
  std::optional<Timing> timing;  ///< empty = not measured

  double rate() const { return amount / timing->median_us * 1e6; }
};

PeerResult peer_result(std::string name, const Timing &timing);

inline bool is_wrong(const PeerResult &peer) {
  return peer.agrees == false;
}

/// A copy that takes turns with work that memory bounds.
struct CopyBeside {
  double bytes;  ///< read and written
  Timing timing;
};

/// Columns "time us" to "%copy" of work that moves `bytes`.
std::string memory_text(const Timing &timing, double bytes, const CopyBeside &copy);
void add_memory(Json &json, const Timing &timing, double bytes, const CopyBeside &copy);

/// > 1: mpcore is faster.
double ratio_to_peer(const PeerResult &peer, const Timing &own);

/// Columns "peer us" and "ratio".
std::string peer_text(const std::optional<PeerResult> &peer, const Timing &own);
std::string teraflops_text(double tflops);

void add_timing(Json &json, const Timing &timing);
void add_gpu_load(Json &json, const std::optional<GpuLoad> &gpu);
void add_times(Json &json, const std::string &name, const PeerResult &result);
/// The same, whether it has computed the same, and the ratio if it has.
void add_result(Json &json, const std::string &name, const PeerResult &result, const Timing &own);
/// As NAME_workspace_limit_bytes, and NAME_workspace_bytes where it is known.
void add_workspace(Json &json, const std::string &name, const PeerWorkspace &workspace);
void add_peer(Json &json, const std::optional<PeerResult> &peer, const Timing &own);

}  // namespace mpbench
