// store_release_system, by which a kernel publishes its writes to the CPU.
#include <array>
#include <atomic>
#include <thread>

#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kThreads = 64;
constexpr uint64_t kWords = 200;
constexpr uint64_t kPattern = 0xA5A5A5A5A5A5A5A5;

struct Args {
  uint64_t *data;   ///< [kWords]
  uint64_t *count;  ///< number of published words
};

/// One thread writes words and publishes their number after each.
MP_KERNEL(kThreads, 1)
publish(MP_PARAM(Args) args) {
  if (thread_index() != 37) return;
  for (uint64_t i = 0; i < kWords; i++) {
    args.data[i] = 3 * i + 1;
    store_release_system(args.count, i + 1);
  }
}

/// Polls the counter until the kernel has finished; returns the number of wrong published words.
uint64_t watch(const std::vector<uint64_t> &data, uint64_t &count,
               const std::atomic<bool> &finished) {
  uint64_t wrong = 0;
  for (bool last = false; !last;) {
    last = finished.load();
    const uint64_t seen = std::atomic_ref<uint64_t>(count).load(std::memory_order_acquire);
    for (uint64_t i = 0; i < seen; i++) wrong += data[i] != 3 * i + 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("release store: a reader of the counter reads all earlier writes") {
  std::vector<uint64_t> data(kWords, 0);
  std::array<uint64_t, 3> counter = {kPattern, 0, kPattern};
  std::atomic<bool> finished = false;
  uint64_t wrong = 1;
  std::thread host([&] { wrong = watch(data, counter[1], finished); });
  const std::string diagnostic = outcome(publish, {1, kThreads}, {data.data(), &counter[1]});
  finished = true;
  host.join();
  CHECK(diagnostic == "");
  CHECK(wrong == 0);
  CHECK(counter == std::array<uint64_t, 3>{kPattern, kWords, kPattern});
}
