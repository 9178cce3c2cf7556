// TMA in the simulator: completion of loads, reads and writes of stores, and required fences.
#include "tma.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kGroups = 4;
constexpr int kColumns = 32;  // fp32, so rows have 128 bytes
constexpr TensorShape kShape{MP_FP32,      kColumns, 8, kGroups, kColumns,
                             kColumns * 8, kColumns, 8, true};
constexpr int kBoxElements = kColumns * 8;

void fill(float *box, float value) {
  for (int i = thread_index(); i < kBoxElements; i += kWarpSize) box[i] = value;
}

// ---------------------------------------------------------------- groups of stores

struct GroupArgs {
  mp::TensorMap map;
  const float *first;  ///< [kGroups], first elements of the matrices
  float *seen;         ///< out, [kGroups], first elements after the wait
};

enum class Wait { read, written };

/// Group g stores ones to matrix g.  After the wait all boxes become twos: a store that has read
/// smem by then stores 1, a later store 2.
template <Wait kWait, int kPending>
MP_KERNEL(32, 1)
store_groups(MP_PARAM(GroupArgs) args) {
  float *const boxes = reinterpret_cast<float *>(aligned_smem());
  for (int group = 0; group < kGroups; group++) fill(boxes + group * kBoxElements, 1);
  async_proxy_fence();
  block_sync();
  if (thread_index() == 0) {
    tma_store_commit();  // an empty group
    for (int group = 0; group < kGroups; group++) {
      tma_store(args.map, smem_address(boxes + group * kBoxElements), 0, 0, group);
      tma_store_commit();
    }
    if (kWait == Wait::read)
      tma_store_wait_read<kPending>();
    else
      tma_store_wait<kPending>();
    for (int group = 0; group < kGroups; group++)
      args.seen[group] = args.first[group * kBoxElements];
  }
  block_sync();
  if (kPending > 0 || kWait == Wait::read)
    for (int group = 0; group < kGroups; group++) fill(boxes + group * kBoxElements, 2);
  block_sync();
  if (thread_index() == 0) tma_store_wait_read<0>();
}

struct Outcome {
  std::vector<float> seen, at_end;  ///< [group]
};

template <Wait kWait, int kPending>
Outcome store_in(const engine::Mode &mode) {
  const ModeScope scope(mode);
  Tensor tensor(kShape);
  float *const elements = reinterpret_cast<float *>(tensor.base());
  std::fill_n(elements, kGroups * kBoxElements, 0.0f);
  Outcome outcome{std::vector<float>(kGroups), {}};
  run(store_groups<kWait, kPending>, {1, 32, kGroups * 1024 + 1024},
      {tensor.map(), elements, outcome.seen.data()});
  for (int group = 0; group < kGroups; group++)
    outcome.at_end.push_back(elements[group * kBoxElements]);
  return outcome;
}

constexpr engine::CopyTiming kTimings[] = {engine::CopyTiming::immediate, engine::CopyTiming::late,
                                           engine::CopyTiming::random};

/// Returns for each group the number of seeds with the result `value`.
template <class Get>
std::vector<int> count(float value, engine::CopyTiming timing, const Get &get) {
  std::vector<int> counts(kGroups);
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const std::vector<float> values = get(engine::Mode{true, seed, timing});
    for (int group = 0; group < kGroups; group++) counts[group] += values[group] == value;
  }
  return counts;
}

/// Groups below `num_sure` must have `value`; results of the other groups depend on the timing.
template <class Get>
void check_counts(float value, int num_sure, const Get &get) {
  for (const engine::CopyTiming timing : kTimings) {
    const std::vector<int> counts = count(value, timing, get);
    for (int group = 0; group < kGroups; group++) {
      CAPTURE(static_cast<int>(timing), num_sure, group);
      const int all = static_cast<int>(kSeeds);
      if (group < num_sure || timing == engine::CopyTiming::immediate)
        CHECK(counts[group] == all);
      else if (timing == engine::CopyTiming::late)
        CHECK(counts[group] == 0);
      else
        CHECK((counts[group] > 0 && counts[group] < all));
    }
  }
}

template <int kPending>
void check_wait_read() {
  check_counts(1, kGroups - kPending,
               [](auto mode) { return store_in<Wait::read, kPending>(mode).at_end; });
}
template <int kPending>
void check_wait_written() {
  check_counts(1, kGroups - kPending,
               [](auto mode) { return store_in<Wait::written, kPending>(mode).seen; });
}

// ---------------------------------------------------------------- loads

struct LoadArgs {
  mp::TensorMap map;
  uint32_t *first;  ///< out: the first word of the box
  bool waits;
};

MP_KERNEL(32, 1) load_and_look(MP_PARAM(LoadArgs) args) {
  MP_SHARED(uint64_t, loaded, [1]);
  uint8_t *const box = aligned_smem();
  const SmemAddress bar = smem_address(loaded);
  if (thread_index() != 0) return;
  mbarrier_init(bar, 1);
  mbarrier_init_fence();
  mbarrier_arrive_expect(bar, static_cast<uint32_t>(kShape.box_bytes()));
  tma_load(smem_address(box), args.map, bar, 0, 0, 0);
  if (args.waits) mbarrier_wait(bar, 0);
  std::memcpy(args.first, box, sizeof *args.first);
  if (!args.waits) mbarrier_wait(bar, 0);
}

/// Returns the number of seeds for which the load had completed when the kernel read the box.
int num_completed(engine::CopyTiming timing, bool waits) {
  Tensor tensor(kShape);
  uint32_t expected;
  std::memcpy(&expected, tensor.base(), sizeof expected);
  int completed = 0;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const ModeScope scope({true, seed, timing});
    uint32_t first = 0;
    run(load_and_look, {1, 32, 2048}, {tensor.map(), &first, waits});
    CHECK((first == expected || (!waits && first == ~0u)));
    completed += first == expected;
  }
  return completed;
}

// ---------------------------------------------------------------- async proxy fence

enum class Fence { none, before_the_write, by_another, after_the_write };

struct FenceArgs {
  mp::TensorMap map;
  Fence fence;
  int offset;  ///< bytes from the box to the write
  bool load;
};

/// Thread 5 writes 16 bytes like store_matrix; thread 0 then loads or stores the box by TMA.
MP_KERNEL(32, 1) write_then_store(MP_PARAM(FenceArgs) args) {
  MP_SHARED(uint64_t, loaded, [1]);
  const SmemAddress box = smem_address(aligned_smem()) + 1024;
  const SmemAddress bar = smem_address(loaded);
  const bool writes = thread_index() == 5;
  if (writes && args.fence == Fence::before_the_write) async_proxy_fence();
  if (writes) engine::note_generic_write(engine::this_thread(), box + args.offset, 16);
  if (writes && args.fence == Fence::after_the_write) async_proxy_fence();
  if (!writes && args.fence == Fence::by_another) async_proxy_fence();
  block_sync();
  if (thread_index() != 0) return;
  if (args.load) {
    mbarrier_init(bar, 1);
    mbarrier_init_fence();
    mbarrier_arrive_expect(bar, 1024);
    tma_load(box, args.map, bar, 0, 0, 0);
    mbarrier_wait(bar, 0);
  } else {
    tma_store(args.map, box, 0, 0, 0);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
}

std::string outcome_of(Fence fence, int offset, bool load) {
  Tensor tensor(kShape);
  return outcome(write_then_store, {1, 32, 4 * 1024}, {tensor.map(), fence, offset, load});
}

}  // namespace

TEST_CASE("tma: tma_store_wait_read covers the reads of all but the newest groups") {
  check_wait_read<0>();
  check_wait_read<1>();
  check_wait_read<3>();
  check_wait_read<4>();
  check_wait_read<7>();
}

TEST_CASE("tma: tma_store_wait covers the writes of all but the newest groups") {
  check_wait_written<0>();
  check_wait_written<1>();
  check_wait_written<3>();
  check_wait_written<4>();
}

TEST_CASE("tma: the end of the kernel covers writes of stores, tma_store_wait_read does not") {
  check_counts(1, 0, [](auto mode) { return store_in<Wait::read, 0>(mode).seen; });
  check_counts(1, kGroups, [](auto mode) { return store_in<Wait::read, 0>(mode).at_end; });
}

TEST_CASE("tma: a load is complete after the wait for its mbarrier, and may complete before") {
  const int all = static_cast<int>(kSeeds);
  for (const engine::CopyTiming timing : kTimings) CHECK(num_completed(timing, true) == all);
  CHECK(num_completed(engine::CopyTiming::immediate, false) == all);
  CHECK(num_completed(engine::CopyTiming::late, false) == 0);
  const int completed = num_completed(engine::CopyTiming::random, false);
  CHECK(completed > 0);
  CHECK(completed < all);
}

TEST_CASE("tma: a write to shared memory without async_proxy_fence by its writer is reported") {
  const std::string text = "thread 0 passes shared dynamic part + ";
  const std::string why = ", which thread 5 wrote without async_proxy_fence at tma_timing";
  in_every_mode([&] {
    for (const bool load : {false, true})
      for (const Fence fence : {Fence::none, Fence::before_the_write, Fence::by_another})
        for (const int offset : {0, 16, 512, 1024 - 16}) {
          CAPTURE(load, static_cast<int>(fence), offset);
          const std::string diagnostic = outcome_of(fence, offset, load);
          CAPTURE(diagnostic);
          CHECK(diagnostic.find(text) != std::string::npos);
          CHECK(diagnostic.find(load ? " to tma_load" + why : " to tma_store" + why) !=
                std::string::npos);
          CHECK(outcome_of(Fence::after_the_write, offset, load) == "");
        }
    // Writes just outside the box need no fence.
    CHECK(outcome_of(Fence::none, -16, false) == "");
    CHECK(outcome_of(Fence::none, 1024, false) == "");
  });
}
