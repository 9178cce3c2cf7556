// Common parts of result rows: table text and JSON fields.
//
// A kind of row is a struct with three functions, which Report::add calls by overload resolution:
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
using Long = long long;  // argument type of %lld

/// Result of a reference library for the same problem.
struct PeerResult {
  std::string name;  ///< includes the version
  double median_us, q1_us, q3_us;
  std::optional<bool> agrees;  ///< result equals mpcore's; empty = not compared
};

/// Fastest of the peer's algorithms for a problem.
struct BestChoice {
  int64_t choice, of;  ///< position (1 = the peer's first choice) and count
  PeerWorkspace workspace;
  PeerResult result;
};

/// Times with FP32 operands, the alternative to mixed precision.
struct Baselines {
  std::optional<PeerResult> fp32;  ///< TF32 disabled
  std::optional<PeerResult> tf32;  ///< TF32 allowed
};

/// Times of each contestant alone for some seconds, after a warm-up of the same length.
struct SustainedResult {
  Timing own;
  std::optional<Timing> peer;  ///< the algorithm that it ranks first
};

/// Quality of kernel selection over all kernels that can run the problem.
struct RankResult {
  int64_t position, count;  ///< predicted rank of the fastest, from 1
  std::string fastest;
  double chosen_us, fastest_us;
};

/// Peak of this run: the rate of mpcore or its peer on large squares, whichever is faster.
struct Peak {
  double tflops;
  std::string from;
};

/// A measured hardware limit.
struct MachineRate {
  std::string name, unit;
  std::string how;               ///< method, or the reason why it was not measured
  double amount;                 ///< per call, in units of 1e9 or 1e12
  std::optional<Timing> timing;  ///< empty = not measured

  double rate() const { return amount / timing->median_us * 1e6; }
};

PeerResult peer_result(std::string name, const Timing &timing);

inline bool is_wrong(const PeerResult &peer) {
  return peer.agrees == false;
}

/// A copy that is timed interleaved with memory-bound work.
struct CopyBeside {
  double bytes;  ///< read and written
  Timing timing;
};

/// Formats columns "time us" to "%copy" of work that moves `bytes`.
std::string memory_text(const Timing &timing, double bytes, const CopyBeside &copy);
void add_memory(Json &json, const Timing &timing, double bytes, const CopyBeside &copy);

/// Ratio above 1: mpcore is faster.
double ratio_to_peer(const PeerResult &peer, const Timing &own);

/// Formats columns "peer us" and "ratio".
std::string peer_text(const std::optional<PeerResult> &peer, const Timing &own);
std::string teraflops_text(double tflops);

void add_timing(Json &json, const Timing &timing);
void add_gpu_load(Json &json, const std::optional<GpuLoad> &gpu);
void add_times(Json &json, const std::string &name, const PeerResult &result);
/// Adds the timing, whether the results agree, and the ratio if they do.
void add_result(Json &json, const std::string &name, const PeerResult &result, const Timing &own);
/// Adds NAME_workspace_limit_bytes, and NAME_workspace_bytes if it is known.
void add_workspace(Json &json, const std::string &name, const PeerWorkspace &workspace);
void add_peer(Json &json, const std::optional<PeerResult> &peer, const Timing &own);

}  // namespace mpbench
