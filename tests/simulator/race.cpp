// Race detector (build with SAN=race): ordered accesses to shared memory, and races.
//
// A race must be reported in every schedule, even if the result happens to be correct.
#include "kernels/simt/sm80.h"
#include "kernels/simt/vector.h"
#include "kernels/simt/wmma.h"
#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kThreads = 64;

MP_DEVICE int *slots() {
  MP_SHARED(int, slots_smem, [4 * kThreads]);
  return slots_smem;
}

template <class Body>
MP_KERNEL(kThreads, 1)
call(MP_PARAM(Body) body) {
  body();
}

template <class Body>
std::string outcome_of(const Body &body) {
  return outcome(call<Body>, {1, kThreads, 8192}, body);
}

template <class Body>
void expect_none(const Body &body) {
  in_every_mode([&] { CHECK(outcome_of(body) == ""); });
}

/// Checks in every mode that a race is reported, with all of `parts`.
template <class Body>
void expect_race(const Body &body, const std::vector<std::string> &parts = {}) {
  if (!kRaceBuild) return;
  in_every_mode([&] {
    const std::string diagnostic = outcome_of(body);
    INFO("diagnostic: " << diagnostic);
    CHECK(diagnostic.find("kernel: block 0 thread ") == 0);
    CHECK(diagnostic.find(" races with ") != std::string::npos);
    for (const std::string &part : parts) CHECK(diagnostic.find(part) != std::string::npos);
  });
}

void skip_without_detector() {
  if (!kRaceBuild) skip("only the correct kernels; races are found in the build with SAN=race");
}

MP_DEVICE void write_mine() {
  slots()[thread_index()] = thread_index();
}
MP_DEVICE void read_of(int thread) {
  use(slots()[thread]);
}
MP_DEVICE int next_lane() {
  return thread_index() ^ 1;
}
MP_DEVICE int other_warp() {
  return thread_index() ^ kWarpSize;
}

alignas(16) constexpr int kSource[4] = {1, 2, 3, 4};

/// Copies to the four slots of this thread.
MP_DEVICE void copy_to_mine() {
  copy_async_16(slots() + 4 * thread_index(), kSource, 16);
}

}  // namespace

TEST_CASE("race: accesses without a barrier race", "[race]") {
  skip_without_detector();
  expect_race([] { write_mine(), read_of(next_lane()); },
              {"shared slots_smem + ", "read by thread"});
  expect_race([] { read_of(next_lane()), write_mine(); }, {"write by thread"});
  expect_race([] { slots()[7] = thread_index(); }, {"shared slots_smem + 28 bytes", "write by"});
  expect_none([] { write_mine(), read_of(thread_index()), write_mine(); });
  expect_none([] { read_of(7); });
}

TEST_CASE("race: the report names both accesses", "[race]") {
  skip_without_detector();
  const auto one_writer_one_reader = [] {
    if (thread_index() == 3) slots()[10] = 1;
    if (thread_index() == 40) read_of(10);
  };
  expect_race(one_writer_one_reader,
              {"shared slots_smem + 40 bytes", "by thread 3 (", "by thread 40 ("});
  const auto one_copy_one_reader = [] {
    if (thread_index() == 3) copy_to_mine();
    if (thread_index() == 40) read_of(4 * 3 + 1);
  };
  expect_race(one_copy_one_reader, {"write by cp.async of thread 3 (", "read by thread 40 ("});
}

TEST_CASE("race: block_sync orders accesses of the block", "[race]") {
  skip_without_detector();
  expect_none([] {
    write_mine();
    block_sync();
    read_of(other_warp());
    block_sync();
    write_mine();
  });
  expect_race([] {
    write_mine();
    block_sync();
    read_of(other_warp());
    write_mine();
  });
}

TEST_CASE("race: warp_sync orders only accesses of its warp", "[race]") {
  skip_without_detector();
  expect_none([] {
    write_mine();
    warp_sync();
    read_of(next_lane());
    warp_sync();
    write_mine();
  });
  expect_race([] {
    write_mine();
    warp_sync();
    read_of(other_warp());
  });
}

TEST_CASE("race: the order of barriers is transitive", "[race]") {
  skip_without_detector();
  expect_none([] {
    if (thread_index() == 0) slots()[0] = 1;
    warp_sync();
    if (thread_index() == 5) use(slots()[0]), slots()[1] = 1;
    block_sync();
    warp_sync();
    if (thread_index() == 63) slots()[0] = slots()[1] = 2;
  });
}

TEST_CASE("race: shuffles and reductions do not order memory", "[race]") {
  skip_without_detector();
  expect_race([] {
    write_mine();
    use(shuffle(thread_index(), 0));
    read_of(next_lane());
  });
  expect_race([] {
    write_mine();
    use(warp_reduce<Sum>(thread_index()));
    read_of(next_lane());
  });
}

TEST_CASE("race: a write races with each of several concurrent readers", "[race]") {
  skip_without_detector();
  for (int unordered = kWarpSize; unordered < kThreads; unordered += 5) {
    expect_race(
        [unordered] {
          if (warp_index() == 0 || thread_index() == unordered) read_of(0);
          warp_sync();
          if (thread_index() == 0) slots()[0] = 1;
        },
        {"by thread " + std::to_string(unordered) + " ("});
  }
}

TEST_CASE("race: a wait orders the copies of its thread", "[race]") {
  skip_without_detector();
  expect_none([] {
    copy_to_mine();
    copy_async_commit();
    copy_async_wait<0>();
    read_of(4 * thread_index() + 3);
    block_sync();
    read_of(4 * other_warp());
  });
  expect_race([] {  // the wait comes after the use
    copy_to_mine();
    copy_async_commit();
    read_of(4 * thread_index() + 3);
    copy_async_wait<0>();
  });
  expect_race([] {  // no barrier: the copy is ordered for its own thread only
    copy_to_mine();
    copy_async_commit();
    copy_async_wait<0>();
    read_of(4 * next_lane());
  });
  expect_race([] {  // a barrier without a wait
    copy_to_mine();
    copy_async_commit();
    block_sync();
    read_of(4 * next_lane());
    copy_async_wait<0>();
  });
  expect_race([] {  // a copy that is not committed
    copy_to_mine();
    copy_async_wait<0>();
    read_of(4 * thread_index());
  });
}

TEST_CASE("race: a wait orders all but the newest groups", "[race]") {
  skip_without_detector();
  const auto read_after_wait_1 = [](int group) {
    if (thread_index() != 0) return;
    for (int i = 0; i < 3; i++) {
      copy_async_16(slots() + 4 * i, kSource, 16);
      copy_async_commit();
    }
    copy_async_wait<1>();
    read_of(4 * group);
    copy_async_wait<0>();
  };
  expect_none([=] { read_after_wait_1(0); });
  expect_none([=] { read_after_wait_1(1); });
  expect_race([=] { read_after_wait_1(2); });
}

TEST_CASE("race: a copy may write as soon as it is issued", "[race]") {
  skip_without_detector();
  expect_race([] {
    read_of(4 * next_lane());
    copy_to_mine();
  });
  expect_none([] {
    read_of(4 * next_lane());
    warp_sync();
    copy_to_mine();
  });
  expect_race([] { copy_to_mine(), copy_to_mine(); });  // the order of the two is undefined
}

namespace {

// Plain accesses and accesses of wmma or vector.h, separated by `sync`.
template <class Sync>
void check_wmma_store(Sync sync, bool is_ordered) {
  const auto body = [sync] {
    MP_DYN_SHARED(float, smem);
    float *const patch = smem + warp_index() * wmma::kTile * wmma::kTile;
    wmma::Accumulator acc;
    wmma::fill(acc, 1.0f);
    wmma::store_row_major(patch, acc, wmma::kTile);
    sync();
    for (int i = lane_index(); i < wmma::kTile * wmma::kTile; i += kWarpSize)
      use(static_cast<int>(patch[i]));
  };
  is_ordered ? expect_none(body) : expect_race(body);
}

template <class T, wmma::Layout layout, class Sync>
void check_wmma_load(Sync sync, bool is_ordered) {
  const auto body = [sync] {
    MP_DYN_SHARED(T, smem);
    T *const patch = smem + warp_index() * wmma::kTile * wmma::kTile;
    for (int i = lane_index(); i < wmma::kTile * wmma::kTile; i += kWarpSize) patch[i] = T{0};
    sync();
    wmma::FragmentA<T, layout> a;
    wmma::load(a, patch, wmma::kTile);
  };
  is_ordered ? expect_none(body) : expect_race(body);
}

template <class T, class Sync>
void check_vector(int offset, Sync sync, bool is_ordered) {
  const auto body = [sync, offset] {
    MP_DYN_SHARED(T, smem);
    float x[kVec] = {};
    store_vector(smem + offset + kVec * thread_index(), x, kVec);
    sync();
    load_vector(x, smem + offset + kVec * next_lane(), kVec);
    use(static_cast<int>(x[0]));
  };
  is_ordered ? expect_none(body) : expect_race(body);
}

constexpr auto kNoSync = [] {};
constexpr auto kWarpSync = [] { warp_sync(); };

}  // namespace

TEST_CASE("race: accesses of WMMA fragments are checked", "[race]") {
  skip_without_detector();
  using wmma::Layout;
  check_wmma_store(kNoSync, false);
  check_wmma_store(kWarpSync, true);
  check_wmma_load<half, Layout::row_major>(kNoSync, false);
  check_wmma_load<half, Layout::row_major>(kWarpSync, true);
  check_wmma_load<bf16, Layout::col_major>(kNoSync, false);
  check_wmma_load<bf16, Layout::col_major>(kWarpSync, true);
}

TEST_CASE("race: accesses of 8-element vectors are checked", "[race]") {
  skip_without_detector();
  for (const int offset : {0, 1}) {
    check_vector<half>(offset, kNoSync, false);
    check_vector<half>(offset, kWarpSync, true);
    check_vector<float>(offset, kNoSync, false);
    check_vector<float>(offset, kWarpSync, true);
  }
}

TEST_CASE("race: a race is reported in the plain mode even if the result is correct", "[race]") {
  // The next write of thread 1 races with the read of thread 0 without the second barrier, but in
  // the plain mode thread 0 runs first.
  const auto sum_of_two = [](bool synced, int *sum) {
    for (int round = 1; round <= 2; round++) {
      if (thread_index() == 1) slots()[0] = round;
      block_sync();
      if (thread_index() == 0) *sum += slots()[0];
      if (synced) block_sync();
    }
  };
  const ModeScope scope(engine::Mode::plain());
  int sum = 0;
  CHECK(outcome_of([&] { sum_of_two(true, &sum); }) == "");
  CHECK(sum == 1 + 2);
  sum = 0;
  const std::string diagnostic = outcome_of([&] { sum_of_two(false, &sum); });
  if (kRaceBuild) {
    CHECK(diagnostic.find("has a race in shared slots_smem + 0 bytes") != std::string::npos);
  } else {
    CHECK(diagnostic == "");
    CHECK(sum == 1 + 2);
  }
}
