// Helpers of the tests of TMA's rules: kernels with boxes of 1 KB, and checks of reports.
#pragma once

#include <filesystem>

#include "tma.h"

namespace mptest {

using namespace mp::host;

constexpr int kThreads = 64;
constexpr uint32_t kBytes = 1024;  // per box

/// Line that a report must name.
inline int noted_line = 0;

template <class Body>
MP_KERNEL(kThreads, 1)
call(MP_PARAM(Body) body) {
  body();
}

/// Number of boxes in the aligned part of dynamic shared memory.
constexpr int kBoxes = 4;
inline SmemAddress box(int index) {
  return smem_address(aligned_smem()) + static_cast<SmemAddress>(index) * kBytes;
}

inline SmemAddress initialized_barrier() {
  MP_SHARED(uint64_t, loaded, [1]);
  const SmemAddress bar = smem_address(loaded);
  if (thread_index() == 0) {
    mbarrier_init(bar, 1);
    mbarrier_init_fence();
  }
  cluster_sync();
  return bar;
}

template <class Body>
std::string outcome_of(const Body &body, int cluster = 1) {
  return outcome(call<Body>, {cluster, kThreads, (kBoxes + 1) * kBytes, cluster}, body);
}

/// Checks in every mode that the report has all of `texts` and the noted line, and that the next
/// launch succeeds.
template <class Body>
void check_violation(const Body &body, const std::vector<std::string> &texts, int cluster = 1,
                     source_location test = source_location::current()) {
  const std::string file = std::filesystem::path(test.file_name()).filename();
  in_every_mode([&] {
    noted_line = 0;
    const std::string diagnostic = outcome_of(body, cluster);
    INFO("diagnostic: " << diagnostic);
    CHECK(diagnostic.find("kernel: block ") == 0);
    for (const std::string &text : texts) CHECK(diagnostic.find(text) != std::string::npos);
    if (noted_line != 0)
      CHECK(diagnostic.find(file + ":" + std::to_string(noted_line)) != std::string::npos);
    CHECK(outcome_of([] { initialized_barrier(); }, cluster) == "");
  });
}

template <class Body>
void check_fine(const Body &body, int cluster = 1) {
  in_every_mode([&] { CHECK(outcome_of(body, cluster) == ""); });
}

}  // namespace mptest
