// Fields of result rows, and the parts that rows have in common.
//
// A kind of row (rows.h) is a struct with one function, fields_of(row, peak), which Report::add
// calls by overload resolution.  The table and the JSON are made from its fields.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "bench/common.h"
#include "bench/peers/peer.h"
#include "bench/timing/counts.h"
#include "bench/timing/timing.h"
#include "support/json.h"

namespace mpbench {

using mptools::Json;
using Long = long long;  // argument type of %lld

/// A JSON member, a table column or both.
struct Field {
  std::string key;              ///< empty = not in the JSON
  Json value;                   ///< null = not in the JSON, and "-" in the table
  const char *title = nullptr;  ///< NULL = not in the table
  int width = 0;                ///< below 0 = left-aligned
  int digits = 1;               ///< decimal places
};

/// Fields of a row in the order of output.
struct Fields {
  std::vector<Field> list;
  std::string set = {};   ///< line above the titles; empty = none
  std::string more = {};  ///< lines below the row

  Fields(std::initializer_list<Field> fields) : list(fields) {}
  Fields &operator+=(const Fields &other);
};

inline Fields operator+(Fields one, const Fields &other) {
  return one += other;
}

/// Returns a column without text, which separates its neighbors by another space.
inline Field gap() {
  return {"", "", ""};
}

/// Moves the JSON members of `fields` into one member `key`; the columns stay.
Fields nested(const std::string &key, Fields fields);

std::string heading_of(const Fields &fields);
/// Formats the columns without a newline.
std::string columns_of(const Fields &fields);
std::string line_of(const Fields &fields);
Json json_of(const Fields &fields);

/// Result of a reference library for the same problem.
struct PeerResult {
  std::string name;  ///< includes the version
  double median_us, q1_us, q3_us;
  std::optional<bool> agrees = {};              ///< result equals mpcore's; empty = not compared
  std::optional<bool> deterministic = {};       ///< equal calls give equal bits; empty = unknown
  std::optional<int64_t> workspace_bytes = {};  ///< empty = unknown, or PeerWorkspace is known
};

/// Peak of this run: the rate of mpcore or its peer on large squares, whichever is faster.
struct Peak {
  double tflops = 0;
  std::string from = {};
};

/// A measured hardware limit.
struct MachineRate {
  std::string name, unit;
  std::string how = {};               ///< method, or the reason why it was not measured
  double amount = 0;                  ///< per call, in units of 1e9 or 1e12
  std::optional<Timing> timing = {};  ///< empty = not measured

  double rate() const { return amount / timing->median_us * 1e6; }
};

/// A copy that is timed interleaved with memory-bound work.
struct CopyBeside {
  double bytes;  ///< read and written
  Timing timing = {};
};

PeerResult peer_result(std::string name, const Timing &timing);

/// Decimal places of a rate: GPUs reach hundreds, the host target hundredths.
inline int rate_digits(double tflops) {
  return tflops < 1 ? 5 : 2;
}

/// Ratio above 1: mpcore is faster.
double ratio_to_peer(const PeerResult &peer, const Timing &own);

Fields counts_fields(const Counts &counts);
Fields gpu_load_fields(const std::optional<GpuLoad> &gpu);
/// @param title  of the column with the median, which the interquartile range follows; NULL = none
Fields timing_fields(const Timing &timing, const char *title = nullptr, int width = 9,
                     int digits = 1);
/// Members NAME_median_us, NAME_q1_us and NAME_q3_us.
Fields times_fields(const std::string &name, const PeerResult &result, const char *title = nullptr,
                    int width = 9);
/// Times, whether the results agree, and the ratio if they do.
Fields result_fields(const std::string &name, const std::optional<PeerResult> &result,
                     const Timing &own, const char *ratio_title, const char *title = nullptr);
/// Members NAME_workspace_limit_bytes, and NAME_workspace_bytes if it is known.
Fields workspace_fields(const std::string &name, const std::optional<PeerWorkspace> &workspace);
Fields peer_fields(const std::optional<PeerResult> &peer, const Timing &own);
/// Member "other_peers" with all peers except the first, and a line below the row for each.
/// @param indent  width of the columns before "peer us"
Fields other_peers_fields(const std::vector<PeerResult> &peers, const Timing &own, int indent);
/// Columns "time us" to "%copy" of work that moves `bytes`.
Fields memory_fields(const Timing &timing, double bytes, const CopyBeside &copy);

}  // namespace mpbench
