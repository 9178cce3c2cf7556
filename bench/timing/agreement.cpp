#include "agreement.h"

#include <algorithm>
#include <cmath>

namespace mpbench {
namespace {

/// Elements copied and compared at a time.
constexpr int64_t kPieceElems = int64_t{1} << 22;

/// Bytes that are NaN in every type, and bytes that are 1.81 in fp16 and 0.747 in bf16 and fp32.
constexpr int kNanBytes = 0xFF;
constexpr int kOneBytes = 0x3F;

void run_into(const Machine &machine, const Work &work, const std::vector<Result> &results) {
  for (const Result &result : results)
    machine.call(mp_memset, result.data, result.is_added_to ? kOneBytes : kNanBytes,
                 static_cast<size_t>(result.count * dtype_bytes(result.dtype)));
  work();
}

/// Calls visit(first index, values, count) for consecutive parts of the result.
template <typename Visit>
void for_each_piece(const Machine &machine, const Result &result, Visit visit) {
  const mp_context_t context = machine.context();
  const int64_t most = std::min(result.count, kPieceElems);
  const Buffer exact = make_buffer(context, most, MP_FP32);
  std::vector<float> values(static_cast<size_t>(most));
  for (int64_t at = 0; at < result.count; at += most) {
    const int64_t count = std::min(most, result.count - at);
    const char *const piece =
        static_cast<const char *>(result.data) + at * dtype_bytes(result.dtype);
    check(mp_cast(context, piece, result.dtype, exact.data(), MP_FP32, count, machine.stream()));
    check(mp_memcpy(context, values.data(), exact.data(),
                    static_cast<size_t>(count) * sizeof(float), machine.stream()));
    machine.synchronize();
    visit(at, values.data(), count);
  }
}

/// Returns the difference of one result, formatted for difference().
std::string difference_of(const Machine &machine, const std::vector<float> &own,
                          const Result &result, const Tolerance &tolerance) {
  int64_t differing = 0, first = 0;
  double first_own = 0, first_peer = 0;
  for_each_piece(machine, result, [&](int64_t at, const float *piece, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double x = own[static_cast<size_t>(at + i)], y = piece[i];
      // The first is false for NaN.
      if (std::abs(x - y) <= tolerance.of(x, y) && std::isfinite(x + y)) continue;
      if (differing++ > 0) continue;
      first = at + i;
      first_own = x;
      first_peer = y;
    }
  });
  if (differing == 0) return {};
  return text("%lld of %lld elements, first at index %lld: %g and %g, tolerance %.3g",
              static_cast<long long>(differing), static_cast<long long>(result.count),
              static_cast<long long>(first), first_own, first_peer,
              tolerance.of(first_own, first_peer));
}

}  // namespace

double Tolerance::of(double x, double y) const {
  return absolute + relative * std::max(std::abs(x), std::abs(y));
}

double unit_roundoff(mp_dtype_t dtype) {
  return std::ldexp(1.0, -mp::float_type(dtype).significant_bits);
}

double magnitude_of_sums(int64_t terms) {
  return 5 * std::sqrt(static_cast<double>(terms)) + 1;
}

Tolerance tolerance_of_sums(int64_t terms, mp_dtype_t out) {
  const auto k = static_cast<double>(terms);
  return {.absolute = 2 * (k / 4 + 6 * std::sqrt(k)) * 0x1p-23 * magnitude_of_sums(terms),
          .relative = 2 * unit_roundoff(out)};
}

Values values_of(const Machine &machine, const Work &work, const std::vector<Result> &results) {
  run_into(machine, work, results);
  Values values;
  for (const Result &result : results) {
    std::vector<float> &own = values.emplace_back(static_cast<size_t>(result.count));
    for_each_piece(machine, result, [&](int64_t at, const float *piece, int64_t count) {
      std::copy_n(piece, count, own.begin() + at);
    });
  }
  return values;
}

std::string difference(const Machine &machine, const Values &own, const Work &work,
                       const std::vector<Result> &results, const Tolerance &tolerance) {
  run_into(machine, work, results);
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string differs = difference_of(machine, own[i], results[i], tolerance);
    if (!differs.empty()) return differs;
  }
  return {};
}

}  // namespace mpbench
