// Programmatic dependent launch: kernels that start before their predecessors have ended.
#include "cases.h"
#include "kernels/simt/sm90_pdl.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
// Several blocks per SM: the last ones of a kernel run concurrently with the next kernel.
constexpr int kBlocks = 512;
constexpr int kCount = kBlocks * kThreads;
constexpr int kTurns = 24;

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
  int value = args.from[(mine + kCount / 2 + args.turn * 977) % kCount];
  for (int i = 0; i < 64 + static_cast<int>(block_index()) % 64; i++)
    value = (value * 5 + args.turn + i) & 0xffffff;
  args.to[mine] = value;
}

}  // namespace

/// Injected bug: one launch reads the output of the launch before the previous one.
Output conform_early_launches(const Device &device, Mistake mistake) {
  std::vector<int> first(kCount);
  for (int i = 0; i < kCount; i++) first[static_cast<size_t>(i)] = i * 7;
  const Memory<int> even(device, first), odd(device, std::vector<int>(kCount));
  for (int turn = 0; turn < kTurns; turn++) {
    const bool is_stale = mistake == Mistake::made && turn == kTurns / 2;
    const bool from_even = (turn % 2 == 0) != is_stale;
    launch("take_turn", turn / 2 % 2 == 0 ? take_turn<false> : take_turn<true>, device,
           {.num_blocks = kBlocks, .num_threads = kThreads, .uses_pdl = true}, nullptr,
           TurnArgs{(from_even ? even : odd).data(), (turn % 2 == 0 ? odd : even).data(), turn});
  }
  synchronize(device, nullptr);
  return {make_part("turns", kThreads, even.download()),
          make_part("the turn before", kThreads, odd.download())};
}

}  // namespace mp::MP_TARGET
