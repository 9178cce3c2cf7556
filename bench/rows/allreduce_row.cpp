#include "allreduce_row.h"

namespace mpbench {
namespace {

double bytes_of(const AllReduceRow &row) {
  return static_cast<double>(row.shape.elems * dtype_bytes(row.dtype));
}

/// Minimum bytes per link: each rank sends (ranks - 1) / ranks of its gradients to be summed, and
/// as much of the sum.
/// Source: nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth".
double bus_bytes_of(const AllReduceRow &row) {
  const auto ranks = static_cast<double>(row.ranks);
  return bytes_of(row) * 2 * (ranks - 1) / ranks;
}

}  // namespace

std::string heading_of(const AllReduceRow &row) {
  return text("\n%s\n%11s %-5s %5s %-9s %9s %8s %8s %8s\n", row.shape.set.c_str(), "elements",
              "type", "ranks", "transport", "time us", "iqr us", "GB/s", "bus GB/s");
}

std::string line_of(const AllReduceRow &row, const std::optional<Peak> &) {
  return text("%11lld %-5s %5lld %-9s %9.1f %8.1f %8.1f %8.1f\n",
              static_cast<Long>(row.shape.elems), mp_dtype_name(row.dtype),
              static_cast<Long>(row.ranks), row.transport.c_str(), row.timing.median_us,
              row.timing.iqr_us(), row.timing.giga_per_s(bytes_of(row)),
              row.timing.giga_per_s(bus_bytes_of(row)));
}

Json json_of(const AllReduceRow &row, const std::optional<Peak> &) {
  Json json{{"bench", "allreduce"},
            {"set", row.shape.set},
            {"shape", row.shape.name()},
            {"elements", row.shape.elems},
            {"dtype", mp_dtype_name(row.dtype)},
            {"ranks", row.ranks},
            {"transport", row.transport}};
  add_timing(json, row.timing);
  json["gb_per_s"] = row.timing.giga_per_s(bytes_of(row));
  json["bus_gb_per_s"] = row.timing.giga_per_s(bus_bytes_of(row));
  return json;
}

}  // namespace mpbench
