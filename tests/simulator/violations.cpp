// A kernel that breaks a rule gets a report that names the place, and the next launch works.
#include "violations.h"
#include "kernels/simt/sm80.h"
#include "kernels/simt/vector.h"
#include "kernels/simt/wmma.h"

using namespace mp::host;
using namespace mptest;

namespace {

// ---------------------------------------------------------------- collectives

MP_KERNEL(64, 1) wait_for_each_other(MP_PARAM(Lines) lines) {
  if (lane_index() < 16)
    lines.first = __LINE__, block_sync();
  else
    lines.second = __LINE__, warp_sync();
}

MP_KERNEL(64, 1) skip_a_barrier(MP_PARAM(Lines) lines) {
  if (thread_index() != 5) lines.first = __LINE__, block_sync();
  lines.second = __LINE__, block_sync();
}

MP_KERNEL(64, 1) return_before_shuffle(MP_PARAM(Lines) lines) {
  if (thread_index() == 40) return;
  lines.first = __LINE__, shuffle(1, 0);
}

MP_KERNEL(64, 1) shuffle_or_reduce(MP_PARAM(Lines) lines) {
  if (lane_index() % 2 == 0)
    lines.first = __LINE__, shuffle(1, 0);
  else
    lines.second = __LINE__, warp_reduce<Sum>(1);
}

MP_KERNEL(64, 1) sync_in_two_places(MP_PARAM(Lines) lines) {
  if (lane_index() < 7)
    lines.first = __LINE__, warp_sync();
  else
    lines.second = __LINE__, warp_sync();
}

MP_KERNEL(32, 1) multiply_without_a_lane(MP_PARAM(Lines) lines) {
  MP_DYN_SHARED(half, smem);
  wmma::Accumulator acc;
  wmma::FragmentA<half, wmma::Layout::row_major> a;
  wmma::FragmentB<half, wmma::Layout::row_major> b;
  wmma::fill(acc, 0.0f);
  wmma::load(a, smem, wmma::kTile);
  wmma::load(b, smem, wmma::kTile);
  if (lane_index() != 9) lines.first = __LINE__, wmma::multiply_add(acc, a, b);
}

/// One block of many.
MP_KERNEL(64, 1) deadlock_in_block_17(MP_PARAM(Lines) lines) {
  if (block_index() != 17) return block_sync();
  if (lane_index() != 0) lines.first = __LINE__, warp_sync();
  if (lane_index() == 0) block_sync();
}

// ---------------------------------------------------------------- arguments

alignas(16) constexpr char kSource[32] = {};

MP_KERNEL(32, 1) misalign_smem(MP_PARAM(Lines) lines) {
  MP_SHARED(char, slots, [64]);
  lines.first = __LINE__, copy_async_16(slots + 8, kSource, 16);
}
MP_KERNEL(32, 1) misalign_gmem(MP_PARAM(Lines) lines) {
  MP_SHARED(char, slots, [64]);
  lines.first = __LINE__, copy_async_16(slots, kSource + 4, 16);
}
MP_KERNEL(32, 1) misalign_packed(MP_PARAM(Lines) lines) {
  alignas(16) static constexpr float kValues[8] = {};
  Packed<float> packed;
  lines.first = __LINE__, packed.load(kValues + 1);
}
MP_KERNEL(32, 1) copy_too_much(MP_PARAM(Lines) lines) {
  MP_SHARED(char, slots, [64]);
  lines.first = __LINE__, copy_async_16(slots, kSource, 17);
}
MP_KERNEL(32, 1) copy_less_than_nothing(MP_PARAM(Lines) lines) {
  MP_SHARED(char, slots, [64]);
  lines.first = __LINE__, copy_async_16(slots, kSource, -1);
}
MP_KERNEL(32, 1) copy_past_the_end(MP_PARAM(Lines) lines) {
  MP_SHARED(char, slots, [64]);
  lines.first = __LINE__, copy_async_16(slots + 64, kSource, 16);
}
MP_KERNEL(32, 1) copy_to_gmem(MP_PARAM(Lines) lines) {
  alignas(16) char stack[16];
  lines.first = __LINE__, copy_async_16(stack, kSource, 16);
}

MP_KERNEL(32, 1) misalign_fragment(MP_PARAM(Lines) lines) {
  MP_DYN_SHARED(half, smem);
  wmma::FragmentA<half, wmma::Layout::row_major> a;
  lines.first = __LINE__, wmma::load(a, smem + 8, 16);
}
MP_KERNEL(32, 1) misalign_rows_of_fragment(MP_PARAM(Lines) lines) {
  MP_DYN_SHARED(bf16, smem);
  wmma::FragmentB<bf16, wmma::Layout::col_major> b;
  lines.first = __LINE__, wmma::load(b, smem, 20);
}
MP_KERNEL(32, 1) misalign_store(MP_PARAM(Lines) lines) {
  MP_DYN_SHARED(float, smem);
  wmma::Accumulator acc;
  wmma::fill(acc, 0.0f);
  lines.first = __LINE__, wmma::store_row_major(smem, acc, 18);
}

// ---------------------------------------------------------------- shared memory

MP_KERNEL(32, 1) declare_too_much(MP_PARAM(Lines) lines) {
  lines.first = __LINE__ + 1;
  MP_SHARED(char, huge, [engine::kSmemBytes + 1]);
  if (thread_index() == 0) huge[0] = 0;
}
MP_KERNEL(32, 1) declare_half(MP_PARAM(Lines) lines) {
  lines.first = __LINE__ + 1;
  MP_SHARED(char, half_of_it, [engine::kSmemBytes / 2]);
  if (thread_index() == 0) half_of_it[0] = 0;
}

/// Writes one float `distance` elements past the end or, if negative, before the start.
struct OutOfBoundsArgs {
  int distance;
  bool dynamic;
};
MP_KERNEL(32, 1) write_out_of_bounds(MP_PARAM(OutOfBoundsArgs) args) {
  MP_DYN_SHARED(float, dynamic);
  MP_SHARED(float, low, [8]);
  MP_SHARED(float, table, [40]);
  MP_SHARED(float, high, [8]);
  if (thread_index() != 0) return;
  low[0] = high[0] = 0.0f;
  volatile float *const variable = args.dynamic ? dynamic : table;
  const int index = args.distance < 0 ? args.distance : 40 + args.distance;
  variable[index] = 1.0f;
}

void check_write_out_of_bounds(const OutOfBoundsArgs &args, const std::string &text) {
  const std::string diagnostic = outcome(write_out_of_bounds, {3, 32, 160}, args);
  INFO("diagnostic: " << diagnostic);
  CHECK(diagnostic.find("kernel: block ") == 0);
  CHECK(diagnostic.find(text) != std::string::npos);
  check_next_launch();
}

}  // namespace

TEST_CASE("simulator: a deadlock is an error") {
  check_violation(wait_for_each_other, {1, 64}, {"deadlock", "block_sync", "warp_sync"});
  check_violation(multiply_without_a_lane, {1, 32, 512}, {"deadlock", "wmma::multiply_add"});
  check_violation(deadlock_in_block_17, {40, 64}, {"block 17", "deadlock"});
}

TEST_CASE("simulator: the threads of a block call one block_sync") {
  check_violation(skip_a_barrier, {1, 64}, {"block_sync"});
}

TEST_CASE("simulator: all lanes of a warp call one collective") {
  check_violation(return_before_shuffle, {1, 64}, {"returned", "shuffle"});
  check_violation(shuffle_or_reduce, {1, 64}, {"shuffle", "warp_reduce"});
  check_violation(sync_in_two_places, {1, 64}, {"warp_sync"});
}

TEST_CASE("simulator: arguments of copy_async_16") {
  check_violation(misalign_smem, {1, 32}, {"smem", "16-byte aligned"});
  check_violation(misalign_gmem, {1, 32}, {"gmem", "16-byte aligned"});
  check_violation(copy_too_much, {1, 32}, {"17 bytes in copy_async_16"});
  check_violation(copy_less_than_nothing, {1, 32}, {"-1 bytes in copy_async_16"});
  check_violation(copy_past_the_end, {1, 32}, {"outside all shared variables"});
  check_violation(copy_to_gmem, {1, 32}, {"outside all shared variables"});
}

TEST_CASE("simulator: alignment of 16-byte loads") {
  check_violation(misalign_packed, {1, 32}, {"not 16-byte aligned"});
}

TEST_CASE("simulator: alignment of WMMA fragments") {
  check_violation(misalign_fragment, {1, 32, 2048}, {"misaligned"});
  check_violation(misalign_rows_of_fragment, {1, 32, 2048}, {"misaligned"});
  check_violation(misalign_store, {1, 32, 2048}, {"misaligned"});
}

TEST_CASE("simulator: a block has 227 KB of shared memory") {
  check_violation(declare_too_much, {1, 32}, {"huge"});
  check_violation(declare_half, {1, 32, engine::kSmemBytes / 2 + 2}, {"half_of_it"});
  const Lines lines;
  CHECK(outcome(declare_half, {1, 32, engine::kSmemBytes / 2}, lines) == "");
  CHECK(outcome(declare_half, {1, 32, engine::kSmemBytes + 1}, lines) != "");
  check_next_launch();
}

TEST_CASE("simulator: the shape of a launch") {
  std::vector<int> out(1);
  for (const int num_threads : {0, -32, 1, 33, 255, 1056}) {
    INFO(num_threads << " threads");
    CHECK(outcome(sum_block, {1, num_threads}, {out.data()}).find("multiple of 32") !=
          std::string::npos);
  }
  for (const int64_t num_blocks : {0, -1})
    CHECK(outcome(sum_block, {num_blocks, 256}, {out.data()}).find("blocks") != std::string::npos);
  check_next_launch();
}

TEST_CASE("simulator: a write outside a shared variable is an error") {
  if (kAsanBuild) return skip("AddressSanitizer stops the process at the bad access instead");
  in_every_mode([] {
    check_write_out_of_bounds({0, false}, "wrote to shared table + 160 bytes, past its end");
    check_write_out_of_bounds({15, false}, "wrote to shared table + 220 bytes, past its end");
    check_write_out_of_bounds({-1, false}, "wrote to shared table - 4 bytes, below its start");
    check_write_out_of_bounds({-16, false}, "wrote to shared table - 64 bytes, below its start");
    check_write_out_of_bounds({0, true}, "wrote to shared dynamic part + 160 bytes, past its end");
    check_write_out_of_bounds({-1, true},
                              "wrote to shared dynamic part - 4 bytes, below its start");
  });
  const ModeScope scope(engine::Mode::strict_with(3));
  check_write_out_of_bounds({10000, false}, "past its end");
}
