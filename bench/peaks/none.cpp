// Stubs of the kernels for a build of mpbench without nvcc.
#include "kernels.h"

namespace mpbench::peaks {
namespace {

constexpr const char *kReason = "mpbench was built without nvcc";

}  // namespace

const char *enqueue_read(const Gpu &, const void *, int64_t, float *) {
  return kReason;
}

const char *enqueue_mma(const Gpu &, const void *, float *) {
  return kReason;
}

const char *enqueue_wgmma(const Gpu &, const void *, float *) {
  return kReason;
}

}  // namespace mpbench::peaks
