// What the tests of TMA's rules share: kernels with boxes of 1 KB, and the reports of those that
// break a rule.
#pragma once

#include <filesystem>

#include "tma.h"

namespace mptest {

using namespace mp::host;

constexpr int kThreads = 64;
constexpr uint32_t kBytes = 1024;  // of every box

/// The line that a report should name.
inline int noted_line = 0;

template <class Body>
MP_KERNEL(kThreads, 1)
call(MP_PARAM(Body) body) {
  body();
}

/// 1 KB boxes in the aligned part of the dynamic memory.
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

/// In every mode the report has all of `texts` and names the noted line, and the next launch works.
template <class Body>
void check_violation(const Body &body, const std::vector<std::string> &texts, int cluster = 1,
                     source_location test = source_location::current()) {
  const std::string file = std::filesystem::path(test.file_name()).filename();
  in_every_mode([&] {
    noted_line = 0;
    const std::string complaint = outcome_of(body, cluster);
    INFO("complaint: " << complaint);
    CHECK(complaint.find("kernel: block ") == 0);
    for (const std::string &text : texts) CHECK(complaint.find(text) != std::string::npos);
    if (noted_line != 0)
      CHECK(complaint.find(file + ":" + std::to_string(noted_line)) != std::string::npos);
    CHECK(outcome_of([] { initialized_barrier(); }, cluster) == "");
  });
}

template <class Body>
void check_fine(const Body &body, int cluster = 1) {
  in_every_mode([&] { CHECK(outcome_of(body, cluster) == ""); });
}

}  // namespace mptest
