#include "agreement.h"

#include <algorithm>
#include <cmath>

namespace mpbench {
namespace {

constexpr int64_t kComparedElems = 65536;

}  // namespace

std::vector<float> first_results(const Machine &machine, const Work &work, void *out, int64_t count,
                                 mp_dtype_t dtype) {
  const mp_context_t context = machine.context();
  const mp_stream_t stream = machine.stream();
  const int64_t compared = std::min(count, kComparedElems);
  check(mp_memset(context, out, 0, static_cast<size_t>(compared * dtype_bytes(dtype)), stream));
  work();

  std::vector<float> values(static_cast<size_t>(compared));
  const Buffer exact = make_buffer(context, compared, MP_FP32);
  check(mp_cast(context, out, dtype, exact.data(), MP_FP32, compared, stream));
  check(mp_memcpy(context, values.data(), exact.data(), values.size() * sizeof(float), stream));
  machine.synchronize();
  return values;
}

bool agree(const std::vector<float> &own, const std::vector<float> &peer) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    difference += std::pow(static_cast<double>(own[i]) - peer[i], 2);
    size += std::pow(static_cast<double>(peer[i]), 2);
  }
  // Equal but for roundings: below 2^-7, where the coarsest type is bf16.  Results of tensors that
  // are not the same, or read in another order, differ by about sqrt(2).
  constexpr double kBetween = 0.125;
  return std::sqrt(difference / size) < kBetween;
}

}  // namespace mpbench
