// Programmatic dependent launch: kernels that start before their predecessors have ended.
#include "cases.h"
#include "kernels/simt/sm90_tma.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
// Several blocks per SM: the last ones of a kernel run concurrently with the next kernel.
constexpr int kBlocks = 512;
constexpr int kCount = kBlocks * kThreads;
constexpr int kTurns = 24;

/// Returns the value that a thread computes from the one that it reads.
MP_HD int next_value(int value, int turn, int block) {
  for (int i = 0; i < 64 + block % 64; i++) value = (value * 5 + turn + i) & 0xffffff;
  return value;
}
MP_HD constexpr int place_of(int thread, int turn) {
  return (thread + kCount / 2 + turn * 977) % kCount;
}

struct TurnArgs {
  const int *from;
  int *to;
  int turn;
};

/// Reads values that a distant block of the previous launch has overwritten, and delays its own
/// writes.
template <bool kLetsNextStartLater>
MP_KERNEL(kThreads, 1)
take_turn(MP_PARAM(TurnArgs) args) {
  if constexpr (kLetsNextStartLater)
    wait_and_launch_dependents();
  else
    wait_for_previous_kernel();
  const int mine = static_cast<int>(block_index()) * kThreads + thread_index();
  args.to[mine] =
      next_value(args.from[place_of(mine, args.turn)], args.turn, static_cast<int>(block_index()));
}

}  // namespace

/// Injected bug: one launch reads the output of the launch before the previous one.
Output conform_early_launches(const Device &device, Mistake mistake) {
  std::vector<int> now(kCount), before(kCount);
  for (int i = 0; i < kCount; i++) now[static_cast<size_t>(i)] = i * 7;
  const Memory<int> even(device, now), odd(device, before);
  for (int turn = 0; turn < kTurns; turn++) {
    const bool is_stale = mistake == Mistake::made && turn == kTurns / 2;
    const bool from_even = (turn % 2 == 0) != is_stale;
    launch("take_turn", turn / 2 % 2 == 0 ? take_turn<false> : take_turn<true>, device,
           {.num_blocks = kBlocks, .num_threads = kThreads, .uses_pdl = true}, nullptr,
           TurnArgs{(from_even ? even : odd).data(), (turn % 2 == 0 ? odd : even).data(), turn});
  }
  synchronize(device, nullptr);
  for (int turn = 0; turn < kTurns; turn++) {
    std::swap(now, before);
    for (int i = 0; i < kCount; i++)
      now[static_cast<size_t>(i)] =
          next_value(before[static_cast<size_t>(place_of(i, turn))], turn, i / kThreads);
  }
  return {make_part("turns", kThreads, even.download(), now),
          make_part("the turn before", kThreads, odd.download(), before)};
}

}  // namespace mp::MP_TARGET
