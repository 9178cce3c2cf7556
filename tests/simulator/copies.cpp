// cp.async in the simulator: sizes, groups and completion times.
#include <cstring>

#include "kernels/simt/sm80.h"
#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kThreads = 64;
constexpr int kBytes = 16;

struct SizeArgs {
  const uint8_t *in;  ///< kThreads times 16 bytes, or NULL
  uint8_t *out;
  int valid_bytes;
};

MP_KERNEL(kThreads, 1) copy_some(MP_PARAM(SizeArgs) args) {
  MP_SHARED(uint8_t, slots, [kThreads * kBytes]);
  const int at = thread_index() * kBytes;
  copy_async_16(slots + at, args.in == nullptr ? nullptr : args.in + at, args.valid_bytes);
  copy_async_commit();
  copy_async_wait<0>();
  block_sync();
  const int from = (kThreads - 1 - thread_index()) * kBytes;
  for (int i = 0; i < kBytes; i++) args.out[from + i] = slots[from + i];
}

void check_size(int valid_bytes) {
  alignas(kBytes) uint8_t in[kThreads * kBytes];
  std::vector<uint8_t> out(sizeof in, 0xAA), expected(sizeof in, 0);
  for (size_t i = 0; i < sizeof in; i++) {
    in[i] = static_cast<uint8_t>(i % 251 + 1);
    if (static_cast<int>(i % kBytes) < valid_bytes) expected[i] = in[i];
  }
  run(copy_some, {1, kThreads}, {in, out.data(), valid_bytes});
  CHECK(out == expected);
  if (valid_bytes > 0) return;
  run(copy_some, {1, kThreads}, {nullptr, out.data(), 0});
  CHECK(out == expected);
}

constexpr int kGroups = 4;

struct GroupArgs {
  int32_t *source;  ///< [kGroups][2][4]: two copies per group
  int32_t *copied;  ///< out, [kGroups][2]: the copied values
};

/// Changes the source from 1 to 2 after the wait: copies completed by then have 1, later ones 2.
template <int kPending, bool last_committed>
MP_KERNEL(32, 1)
change_source(MP_PARAM(GroupArgs) args) {
  MP_SHARED(int32_t, slots, [kGroups * 2 * 4]);
  if (thread_index() != 0) return;
  for (int group = 0; group < kGroups; group++) {
    for (int i = 0; i < 2; i++) {
      const int at = (2 * group + i) * 4;
      copy_async_16(slots + at, args.source + at, kBytes);
    }
    if (last_committed || group < kGroups - 1) copy_async_commit();
  }
  copy_async_wait<kPending>();
  for (int i = 0; i < kGroups * 2 * 4; i++) args.source[i] = 2;
  if (!last_committed) copy_async_commit();
  copy_async_wait<0>();
  for (int i = 0; i < kGroups * 2; i++) args.copied[i] = slots[4 * i];
}

/// `num_covered` groups must complete in the wait; the mode decides when the others complete.
template <int kPending, bool last_committed>
void check_groups(int num_covered) {
  for (const engine::CopyTiming timing :
       {engine::CopyTiming::immediate, engine::CopyTiming::late, engine::CopyTiming::random}) {
    int num_early = 0, num_late = 0;
    for (uint64_t seed = 0; seed < kSeeds; seed++) {
      const ModeScope scope({true, seed, timing});
      alignas(kBytes) int32_t source[kGroups * 2 * 4];
      std::fill(std::begin(source), std::end(source), 1);
      std::vector<int32_t> copied(kGroups * 2);
      run(change_source<kPending, last_committed>, {1, 32}, {source, copied.data()});
      for (int i = 0; i < 2 * num_covered; i++) CHECK(copied[i] == 1);
      for (int i = 2 * num_covered; i < 2 * kGroups; i++) (copied[i] == 1 ? num_early : num_late)++;
    }
    const int num_open = static_cast<int>(kSeeds) * 2 * (kGroups - num_covered);
    INFO("timing " << static_cast<int>(timing) << ", pending " << kPending);
    CHECK(num_early + num_late == num_open);
    if (timing == engine::CopyTiming::immediate) CHECK(num_late == 0);
    if (timing == engine::CopyTiming::late) CHECK(num_early == 0);
    if (timing == engine::CopyTiming::random && num_open > 0) {
      CHECK(num_early > 0);
      CHECK(num_late > 0);
    }
  }
}

}  // namespace

TEST_CASE("simulator: copy_async_16 copies the valid bytes and zeroes the rest") {
  in_every_mode([] {
    for (int valid_bytes = 0; valid_bytes <= kBytes; valid_bytes++) check_size(valid_bytes);
  });
}

TEST_CASE("simulator: copy_async_wait covers all but the newest groups") {
  check_groups<0, true>(4);
  check_groups<1, true>(3);
  check_groups<2, true>(2);
  check_groups<3, true>(1);
  check_groups<4, true>(0);
  check_groups<7, true>(0);
}

TEST_CASE("simulator: copy_async_wait does not cover uncommitted copies") {
  check_groups<0, false>(3);
  check_groups<1, false>(2);
}

TEST_CASE("simulator: seeds of the strict mode cover late, immediate and random copies") {
  using engine::CopyTiming;
  CHECK(engine::Mode::plain().copies == CopyTiming::immediate);
  CHECK(engine::Mode::strict_with(0).copies == CopyTiming::late);
  CHECK(engine::Mode::strict_with(1).copies == CopyTiming::immediate);
  for (uint64_t seed = 2; seed < 8; seed++)
    CHECK(engine::Mode::strict_with(seed).copies == CopyTiming::random);
}
