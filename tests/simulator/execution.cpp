// Kernel execution in the simulator: launch, synchronization, shuffles, reductions, atomics and
// shared memory.  Each primitive is compared with its contract in simt.h or reduce.h in every mode.
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

// ---------------------------------------------------------------- launch

struct Indices {
  int64_t block, grid;
  int thread, lane, warp;
  int visits;
};
struct IndexArgs {
  Indices *out;
  int num_threads;
};

MP_KERNEL(1024, 1) record_indices(MP_PARAM(IndexArgs) args) {
  Indices &mine = args.out[block_index() * args.num_threads + thread_index()];
  mine = {block_index(), grid_size(), thread_index(), lane_index(), warp_index(), mine.visits + 1};
}

void check_indices(int64_t num_blocks, int num_threads, int num_sms) {
  std::vector<Indices> out(static_cast<size_t>(num_blocks * num_threads));
  run(record_indices, {num_blocks, num_threads}, {out.data(), num_threads}, num_sms);
  int64_t wrong = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(out.size()); i++) {
    const Indices &got = out[static_cast<size_t>(i)];
    const int thread = static_cast<int>(i % num_threads);
    wrong += got.block != i / num_threads || got.grid != num_blocks || got.thread != thread ||
             got.lane != thread % 32 || got.warp != thread / 32 || got.visits != 1;
  }
  CHECK(wrong == 0);
}

// ---------------------------------------------------------------- synchronization and order

struct RoundArgs {
  int *out;
  int rounds;
};

/// Every thread reads the value of another thread of its block or warp in each round.
template <bool of_block>
MP_KERNEL(256, 1)
pass_around(MP_PARAM(RoundArgs) args) {
  constexpr int kThreads = 256;
  constexpr int kGroup = of_block ? kThreads : kWarpSize;
  MP_SHARED(int, slots, [kThreads]);
  const int first = thread_index() / kGroup * kGroup;
  int value = thread_index();
  for (int round = 0; round < args.rounds; round++) {
    slots[thread_index()] = value;
    of_block ? block_sync() : warp_sync();
    value = slots[first + (thread_index() - first + 7) % kGroup];
    of_block ? block_sync() : warp_sync();
  }
  args.out[thread_index()] = value;
}

template <bool of_block>
void check_pass_around() {
  constexpr int kGroup = of_block ? 256 : 32;
  constexpr int kRounds = 5;
  std::vector<int> out(256);
  run(pass_around<of_block>, {1, 256}, {out.data(), kRounds});
  for (int t = 0; t < 256; t++) CHECK(out[t] == t / kGroup * kGroup + (t + 7 * kRounds) % kGroup);
}

/// Three of four warps return at once; block_sync does not wait for them.
MP_KERNEL(128, 1) leave_early(MP_PARAM(RoundArgs) args) {
  MP_SHARED(int, slots, [kWarpSize]);
  if (warp_index() != 2) return;
  slots[lane_index()] = lane_index();
  block_sync();
  args.out[lane_index()] = slots[kWarpSize - 1 - lane_index()];
}

struct OrderArgs {
  uint32_t *next;
  int *order;
};

MP_KERNEL(256, 1) record_order(MP_PARAM(OrderArgs) args) {
  args.order[atomic_wrap_inc(args.next, 255)] = thread_index();
}

std::vector<int> order_of_threads(const engine::Mode &mode) {
  const ModeScope scope(mode);
  uint32_t next = 0;
  std::vector<int> order(256);
  run(record_order, {1, 256}, {&next, order.data()});
  return order;
}

// ---------------------------------------------------------------- shuffles

template <class T>
struct ExchangeArgs {
  const T *in;
  T *out;
  int which;
};

/// Lane l reads lane 3 l + which, modulo the warp size.
template <class T>
MP_KERNEL(64, 1)
shuffle_all(MP_PARAM(ExchangeArgs<T>) args) {
  args.out[thread_index()] = shuffle(args.in[thread_index()], 3 * lane_index() + args.which);
}
template <class T>
MP_KERNEL(64, 1)
shuffle_xor_all(MP_PARAM(ExchangeArgs<T>) args) {
  args.out[thread_index()] = shuffle_xor(args.in[thread_index()], args.which);
}

template <class T>
void check_shuffles() {
  std::vector<T> in(64), out(64);
  for (int i = 0; i < 64; i++) in[i] = static_cast<T>(i * 1.25 + 1000);
  for (int which = 0; which < 32; which++) {
    run(shuffle_all<T>, {1, 64}, {in.data(), out.data(), which});
    for (int t = 0; t < 64; t++) CHECK(out[t] == in[t / 32 * 32 + (3 * (t % 32) + which) % 32]);
    run(shuffle_xor_all<T>, {1, 64}, {in.data(), out.data(), which});
    for (int t = 0; t < 64; t++) CHECK(out[t] == in[t ^ which]);
  }
}

// ---------------------------------------------------------------- reductions

template <class T>
struct ReduceArgs {
  const T *in;
  T *sums, *maxima;
  T *running_sums, *running_maxima;
};

template <class T>
MP_KERNEL(64, 1)
reduce_warps(MP_PARAM(ReduceArgs<T>) args) {
  args.sums[thread_index()] = warp_reduce<Sum>(args.in[thread_index()]);
  args.maxima[thread_index()] = warp_reduce<Max>(args.in[thread_index()]);
  args.running_sums[thread_index()] = warp_scan<Sum>(args.in[thread_index()]);
  args.running_maxima[thread_index()] = warp_scan<Max>(args.in[thread_index()]);
}

template <class T>
void check_warp_reduce() {
  std::vector<T> in(64), sums(64), maxima(64), running_sums(64), running_maxima(64);
  for (int i = 0; i < 64; i++) in[i] = static_cast<T>(i * 37 % 64);
  run(reduce_warps<T>, {1, 64},
      {in.data(), sums.data(), maxima.data(), running_sums.data(), running_maxima.data()});
  for (int t = 0; t < 64; t++) {
    const auto first = in.begin() + t / 32 * 32, behind = in.begin() + t + 1;
    CHECK(running_sums[t] == std::accumulate(first, behind, T{0}));
    CHECK(running_maxima[t] == *std::max_element(first, behind));
    CHECK(sums[t] == std::accumulate(first, first + 32, T{0}));
    CHECK(maxima[t] == *std::max_element(first, first + 32));
  }
}

/// Consecutive calls in two types must not interfere.
template <int kThreads>
MP_KERNEL(kThreads, 1)
reduce_block(MP_PARAM(ReduceArgs<double>) args) {
  const double x = args.in[thread_index()];
  const double sum = block_reduce<kThreads, Sum>(x);
  const double sum_squares = block_reduce<kThreads, Sum>(x * x);
  const int maximum = block_reduce<kThreads, Max>(static_cast<int>(x));
  if (thread_index() != 0) return;
  args.sums[0] = sum;
  args.sums[1] = sum_squares;
  args.maxima[0] = maximum;
}

template <int kThreads>
void check_block_reduce() {
  std::vector<double> in(kThreads), sums(2), maxima(1);
  for (int i = 0; i < kThreads; i++) in[i] = i * 37 % kThreads - 5;
  run(reduce_block<kThreads>, {1, kThreads},
      {in.data(), sums.data(), maxima.data(), nullptr, nullptr});
  CHECK(sums[0] == std::accumulate(in.begin(), in.end(), 0.0));
  CHECK(sums[1] == std::inner_product(in.begin(), in.end(), in.begin(), 0.0));
  CHECK(maxima[0] == *std::max_element(in.begin(), in.end()));
}

struct LastArgs {
  uint32_t *blocks_done;
  int64_t *parts;
  int64_t *total;
};

MP_KERNEL(64, 1) sum_in_last_block(MP_PARAM(LastArgs) args) {
  if (thread_index() == 33) args.parts[block_index()] = block_index() + 1;
  if (!arrive_last(args.blocks_done)) return;
  int64_t sum = 0;
  for (int64_t i = thread_index(); i < grid_size(); i += 64) sum += args.parts[i];
  sum = block_reduce<64, Sum>(sum);
  if (thread_index() == 0) *args.total += sum;
}

// ---------------------------------------------------------------- atomics

struct AtomicArgs {
  uint32_t *maximum, *counter;
  int64_t *sum;
  uint32_t *visits;
  float *flag;
};

MP_KERNEL(128, 1) use_atomics(MP_PARAM(AtomicArgs) args) {
  const int64_t id = block_index() * 128 + thread_index();
  atomic_max(args.maximum, static_cast<uint32_t>(id * 2654435761u % 100003));
  atomic_add(args.sum, id - 1000);
  args.visits[atomic_wrap_inc(args.counter, static_cast<uint32_t>(grid_size() * 128 - 1))]++;
  if (id == 77) raise_flag(args.flag);
}

// ---------------------------------------------------------------- shared memory

struct SharedArgs {
  uint64_t *addresses;
  bool *all_nan;
};

template <class T>
const void *address_in_template() {
  MP_SHARED(T, same_name, [4]);
  return same_name;
}

MP_KERNEL(32, 1) look_at_shared(MP_PARAM(SharedArgs) args) {
  struct alignas(64) Line {
    float x[16];
  };
  MP_SHARED(float, first, [100]);
  MP_SHARED(Line, second, [2]);
  MP_DYN_SHARED(float, dynamic);
  if (thread_index() != 31) return;
  bool nan = true;
  for (const float x : first) nan = nan && std::isnan(x);
  for (int i = 0; i < 32; i++) nan = nan && std::isnan(second[i / 16].x[i % 16]);
  for (int i = 0; i < 50; i++) nan = nan && std::isnan(dynamic[i]);
  *args.all_nan = nan;
  const void *const addresses[] = {first, second, dynamic, address_in_template<float>(),
                                   address_in_template<int>()};
  for (int i = 0; i < 5; i++) args.addresses[i] = reinterpret_cast<uintptr_t>(addresses[i]);
  for (float &x : first) x = 1.0f;
  dynamic[49] = 1.0f;
}

}  // namespace

TEST_CASE("simulator: every thread of every block runs once with correct indices") {
  for (const int64_t num_blocks : {1, 2, 7, 33, 500}) check_indices(num_blocks, 64, 4);
  for (const int num_threads : {32, 96, 256, 1024}) check_indices(3, num_threads, 4);
  check_indices(20, 32, 1);
  in_every_mode([] { check_indices(5, 96, 2); });
}

TEST_CASE("simulator: block_sync and warp_sync order reads after writes") {
  in_every_mode([] {
    check_pass_around<true>();
    check_pass_around<false>();
  });
}

TEST_CASE("simulator: a barrier does not wait for threads that have returned") {
  in_every_mode([] {
    std::vector<int> out(32);
    run(leave_early, {1, 128}, {out.data(), 0});
    for (int i = 0; i < 32; i++) CHECK(out[i] == 31 - i);
  });
}

TEST_CASE("simulator: every seed has a different, repeatable thread order") {
  std::vector<int> in_order(256);
  std::iota(in_order.begin(), in_order.end(), 0);
  CHECK(order_of_threads(engine::Mode::plain()) == in_order);
  std::vector<std::vector<int>> strict;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    strict.push_back(order_of_threads(engine::Mode::strict_with(seed)));
    CHECK(order_of_threads(engine::Mode::strict_with(seed)) == strict.back());
    for (uint64_t other = 0; other < seed; other++) CHECK(strict[other] != strict[seed]);
  }
}

TEST_CASE("simulator: a shuffle returns the value of the requested lane") {
  in_every_mode([] {
    check_shuffles<float>();
    check_shuffles<uint64_t>();
  });
  check_shuffles<int>();
  check_shuffles<double>();
  check_shuffles<uint8_t>();
}

TEST_CASE("simulator: warp_reduce returns the result to every lane") {
  in_every_mode([] {
    check_warp_reduce<int>();
    check_warp_reduce<float>();
    check_warp_reduce<double>();
  });
}

TEST_CASE("simulator: block_reduce returns the result to thread 0") {
  in_every_mode([] {
    check_block_reduce<32>();
    check_block_reduce<256>();
    check_block_reduce<1024>();
  });
}

TEST_CASE(
    "simulator: the last block reads the results of all blocks, and blocks_done returns to 0") {
  in_every_mode([] {
    for (const int64_t num_blocks : {1, 2, 50}) {
      uint32_t blocks_done = 0;
      int64_t total = 0;
      std::vector<int64_t> parts(static_cast<size_t>(num_blocks), -1);
      for (int launches = 1; launches <= 2; launches++) {
        run(sum_in_last_block, {num_blocks, 64}, {&blocks_done, parts.data(), &total});
        CHECK(blocks_done == 0);
        CHECK(total == launches * num_blocks * (num_blocks + 1) / 2);
      }
    }
  });
}

TEST_CASE("simulator: concurrent atomics lose no update") {
  in_every_mode([] {
    constexpr int64_t kCount = 10 * 128;
    uint32_t maximum = 5, counter = 0, expected = 5;
    int64_t sum = 1;
    float flag = 0.0f;
    std::vector<uint32_t> visits(kCount);
    run(use_atomics, {10, 128}, {&maximum, &counter, &sum, visits.data(), &flag});
    for (int64_t id = 0; id < kCount; id++)
      expected = std::max(expected, static_cast<uint32_t>(id * 2654435761u % 100003));
    CHECK(maximum == expected);
    CHECK(sum == 1 + kCount * (kCount - 1) / 2 - 1000 * kCount);
    CHECK(counter == 0);
    CHECK(visits == std::vector<uint32_t>(kCount, 1));
    CHECK(flag == 1.0f);
  });
}

TEST_CASE("simulator: shared variables are disjoint, aligned and initially NaN in every block") {
  in_every_mode([] {
    bool all_nan = false;
    std::vector<uint64_t> addresses(5);
    for (int launches = 0; launches < 2; launches++) {
      run(look_at_shared, {3, 32, 200}, {addresses.data(), &all_nan}, 1);
      CHECK(all_nan);
    }
    CHECK(addresses[0] % 16 == 0);
    CHECK(addresses[1] % 64 == 0);
    CHECK(addresses[2] % 128 == 0);
    std::sort(addresses.begin(), addresses.end());
    for (int i = 0; i + 1 < 5; i++) CHECK(addresses[i + 1] - addresses[i] >= 16);
  });
}

TEST_CASE("simulator: concurrent launches from several OS threads are correct") {
  constexpr int kCallers = 4;
  std::vector<std::string> diagnostics(kCallers);
  std::vector<int64_t> totals(kCallers);
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; c++)
    callers.emplace_back([&, c] {
      uint32_t blocks_done = 0;
      std::vector<int64_t> parts(20);
      for (int i = 0; i < 25 && diagnostics[c].empty(); i++)
        diagnostics[c] =
            outcome(sum_in_last_block, {20, 64}, {&blocks_done, parts.data(), &totals[c]});
    });
  for (std::thread &caller : callers) caller.join();
  for (int c = 0; c < kCallers; c++) {
    CHECK(diagnostics[c] == "");
    CHECK(totals[c] == 25 * 20 * 21 / 2);
  }
}
