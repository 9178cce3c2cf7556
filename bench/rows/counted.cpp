#include "counted.h"

namespace mpbench {
namespace {

std::string ratio_text(int64_t actual, int64_t least) {
  return least == 0 ? "-" : text("%.2f", static_cast<double>(actual) / static_cast<double>(least));
}

}  // namespace

std::string counts_heading() {
  return text("%8s %12s %12s %11s %7s %12s %7s %10s", "launches", "issue slots", "tensor MFLOP",
              "sectors", "x least", "wavefronts", "x least", "barriers");
}

std::string counts_text(const Counts &c) {
  return text("%8lld %12lld %12.1f %11lld %7s %12lld %7s %10lld", static_cast<Long>(c.launches),
              static_cast<Long>(c.issue_slots), 1e-6 * c.tensor_flop, static_cast<Long>(c.sectors),
              ratio_text(c.sectors, c.least_sectors).c_str(), static_cast<Long>(c.wavefronts),
              ratio_text(c.wavefronts, c.least_wavefronts).c_str(), static_cast<Long>(c.barriers));
}

void add_counts(Json &json, const Counts &counts) {
  json["counts"] = counts.kernels;
}

}  // namespace mpbench
