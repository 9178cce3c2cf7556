// Misuse of warpgroup instructions: every violation has its own message, in every mode.
#include <cmath>

#include "kernels/simt/sm90.h"
#include "violations.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kThreads = 128;
constexpr size_t kSmemBytes = 16 * 1024 + 1024;
constexpr int kN = 64;

/// K-major tiles of A and B, 64 rows of 128 bytes each.
struct Tiles {
  SmemAddress a, b;
};
MP_DEVICE Tiles tiles() {
  MP_DYN_SHARED(unsigned char, smem);
  const SmemAddress first = ceil_div(smem_address(smem), 1024u) * 1024;
  return {first, first + 8192};
}
constexpr uint64_t descriptor(SmemAddress start) {
  return wgmma_descriptor(start, 16, 1024, Swizzle::b128);
}

using Accumulators = float[kN / 2];

MP_DEVICE void multiply(Accumulators &d, uint64_t a_desc, uint64_t b_desc, source_location where) {
  wgmma<half, kN, Major::k, Major::k>(d, a_desc, b_desc, false, where);
}
MP_DEVICE void multiply(Accumulators &d, source_location where = source_location::current()) {
  multiply(d, descriptor(tiles().a), descriptor(tiles().b), where);
}
MP_DEVICE void multiply_add(Accumulators &d, source_location where = source_location::current()) {
  wgmma<half, kN, Major::k, Major::k>(d, descriptor(tiles().a), descriptor(tiles().b), true, where);
}
MP_DEVICE void finish() {
  wgmma_commit();
  wgmma_wait<0>();
}

// ---------------------------------------------------------------- operands

/// Multiplies with the given descriptors.
template <class Descriptors>
MP_DEVICE void multiply_with(const Lines &lines, const Descriptors &descriptors) {
  const auto [a, b] = descriptors(tiles());
  Accumulators d;
  wgmma_fence();
  multiply(d, a, b, noted(lines.first));
  finish();
}

MP_KERNEL(kThreads, 1) set_base_offset(MP_PARAM(Lines) lines) {
  multiply_with(lines, [](const Tiles &t) {
    return std::pair{descriptor(t.a) | uint64_t{1} << 49, descriptor(t.b)};
  });
}
MP_KERNEL(kThreads, 1) set_unused_bits(MP_PARAM(Lines) lines) {
  multiply_with(lines, [](const Tiles &t) {
    return std::pair{descriptor(t.a), descriptor(t.b) | uint64_t{1} << 15};
  });
}
MP_KERNEL(kThreads, 1) start_between_atoms(MP_PARAM(Lines) lines) {
  multiply_with(lines, [](const Tiles &t) {
    return std::pair{descriptor(t.a + 128), descriptor(t.b)};
  });
}
MP_KERNEL(kThreads, 1) start_too_far_right(MP_PARAM(Lines) lines) {
  multiply_with(lines, [](const Tiles &t) {
    return std::pair{descriptor(t.a), descriptor(t.b + 112)};
  });
}
MP_KERNEL(kThreads, 1) stride_one_row(MP_PARAM(Lines) lines) {
  multiply_with(lines, [](const Tiles &t) {
    return std::pair{wgmma_descriptor(t.a, 16, 128, Swizzle::b128), descriptor(t.b)};
  });
}
MP_KERNEL(kThreads, 1) read_past_the_end(MP_PARAM(Lines) lines) {
  multiply_with(lines, [](const Tiles &t) {
    return std::pair{descriptor(t.a), descriptor(t.b + 2048)};
  });
}
MP_KERNEL(kThreads, 1) read_below_the_start(MP_PARAM(Lines) lines) {
  multiply_with(lines, [](const Tiles &t) { return std::pair{descriptor(t.a), descriptor(0)}; });
}

MP_KERNEL(kThreads, 1) read_unfenced_writes(MP_PARAM(Lines) lines) {
  Accumulators d;
  const SmemAddress row = tiles().b + static_cast<SmemAddress>(lane_index()) * 16;
  if (warp_index() == 1) store_matrix_x4(row, {0, 0, 0, 0});
  block_sync();
  wgmma_fence();
  lines.first = __LINE__, multiply(d);
  finish();
}
MP_KERNEL(kThreads, 1) read_fenced_writes(MP_PARAM(Lines)) {
  Accumulators d;
  const SmemAddress row = tiles().b + static_cast<SmemAddress>(lane_index()) * 16;
  if (warp_index() == 1) store_matrix_x4(row, {0, 0, 0, 0});
  async_proxy_fence();
  block_sync();
  wgmma_fence();
  multiply(d);
  finish();
}

// ---------------------------------------------------------------- the warpgroup

MP_KERNEL(kThreads, 1) disagree_on_an_operand(MP_PARAM(Lines) lines) {
  Accumulators d;
  const SmemAddress b = tiles().b + (thread_index() == 77 ? 32 : 0);
  wgmma_fence();
  multiply(d, descriptor(tiles().a), descriptor(b), noted(lines.first));
  finish();
}

MP_KERNEL(kThreads, 1) disagree_on_the_place(MP_PARAM(Lines) lines) {
  Accumulators d;
  wgmma_fence();
  if (warp_index() < 2)
    lines.first = __LINE__, multiply(d);
  else
    lines.second = __LINE__, multiply(d);
  finish();
}

MP_KERNEL(kThreads, 1) disagree_on_a_commit(MP_PARAM(Lines) lines) {
  Accumulators d;
  wgmma_fence();
  if (thread_index() == 77) wgmma_commit();
  lines.first = __LINE__, multiply(d);
  finish();
}

MP_KERNEL(kThreads, 1) disagree_on_the_accumulators(MP_PARAM(Lines) lines) {
  Accumulators d, e;
  wgmma_fence();
  multiply(d);
  lines.first = __LINE__, multiply(thread_index() == 77 ? e : d);
  finish();
}

MP_KERNEL(kThreads, 1) change_the_shape(MP_PARAM(Lines) lines) {
  float d[64];
  wgmma_fence();
  const uint64_t a = descriptor(tiles().a), b = descriptor(tiles().b);
  lines.first = __LINE__, multiply(reinterpret_cast<Accumulators &>(d));
  lines.second = __LINE__, wgmma<half, 128, Major::k, Major::k>(d, a, a, true);
  (void)b;
  finish();
}

MP_KERNEL(kThreads, 1) return_before_wgmma(MP_PARAM(Lines) lines) {
  if (thread_index() == 77) return;
  Accumulators d;
  wgmma_fence();
  lines.first = __LINE__, multiply(d);
  finish();
}

MP_KERNEL(kThreads, 1) skip_a_wgmma(MP_PARAM(Lines) lines) {
  Accumulators d;
  wgmma_fence();
  if (thread_index() == 77)
    block_sync();
  else
    lines.first = __LINE__, multiply(d);
  wgmma_commit();
  lines.second = __LINE__, wgmma_wait<0>();
}

MP_KERNEL(96, 1) multiply_in_three_warps(MP_PARAM(Lines) lines) {
  Accumulators d;
  lines.first = __LINE__, wgmma_fence();
  multiply(d);
}

// ---------------------------------------------------------------- registers of d

MP_KERNEL(kThreads, 1) omit_the_fence(MP_PARAM(Lines) lines) {
  Accumulators d = {};
  lines.first = __LINE__, multiply_add(d);
  finish();
}

MP_KERNEL(kThreads, 1) omit_the_second_fence(MP_PARAM(Lines) lines) {
  Accumulators d;
  wgmma_fence();
  multiply(d);
  finish();
  d[0] += 1.0f;
  lines.first = __LINE__, multiply_add(d);
  finish();
}

MP_KERNEL(kThreads, 1) write_in_flight(MP_PARAM(Lines) lines) {
  Accumulators d;
  wgmma_fence();
  lines.first = __LINE__, multiply(d);
  wgmma_commit();
  d[5] = 0.0f;
  lines.second = __LINE__, wgmma_wait<0>();
}

MP_KERNEL(kThreads, 1) return_in_flight(MP_PARAM(Lines) lines) {
  Accumulators d;
  wgmma_fence();
  lines.first = __LINE__, multiply(d);
  wgmma_commit();
  wgmma_wait<1>();
}

MP_KERNEL(kThreads, 1) return_without_commit(MP_PARAM(Lines) lines) {
  Accumulators d;
  wgmma_fence();
  lines.first = __LINE__, multiply(d);
  wgmma_wait<0>();
}

struct ReadArgs {
  float *in_flight, *retired;
};
/// Operands are ones.  wgmma_wait<1> retires d; the second group, on e, stays in flight.
MP_KERNEL(kThreads, 1) read_in_flight(MP_PARAM(ReadArgs) args) {
  MP_DYN_SHARED(unsigned char, smem);
  for (int i = thread_index(); i < static_cast<int>(kSmemBytes / 2); i += kThreads)
    reinterpret_cast<half *>(smem)[i] = round_to<half>(1.0f);
  async_proxy_fence();
  block_sync();
  Accumulators d, e = {};
  wgmma_fence();
  multiply(d);
  multiply_add(e);
  wgmma_commit();
  multiply_add(e);  // needs no fence: the same accumulators, in flight
  wgmma_commit();
  wgmma_wait<1>();
  args.retired[thread_index()] = d[3];
  args.in_flight[thread_index()] = e[3];
  wgmma_wait<0>();
  args.retired[kThreads + thread_index()] = e[3];
}

// ---------------------------------------------------------------- setmaxnreg

template <int kProducer, int kConsumer>
MP_DEVICE void share_registers(const Lines &lines) {
  if (warp_index() < 4)
    registers_release<kProducer>();
  else
    lines.first = __LINE__, registers_claim<kConsumer>();
}
MP_KERNEL(384, 1) share_all_registers(MP_PARAM(Lines) lines) {
  share_registers<40, 232>(lines);
  lines.first = 0;
}
MP_KERNEL(384, 1) claim_more_than_released(MP_PARAM(Lines) lines) {
  share_registers<40, 240>(lines);
}
MP_KERNEL(256, 1) claim_less(MP_PARAM(Lines) lines) {
  lines.first = __LINE__, registers_claim<40>();
}
MP_KERNEL(512, 1) release_upwards(MP_PARAM(Lines) lines) {
  lines.first = __LINE__, registers_release<160>();
}
MP_KERNEL(384, 1) release_in_one_warp(MP_PARAM(Lines) lines) {
  if (warp_index() == 0) lines.first = __LINE__, registers_release<40>();
}
MP_KERNEL(384, 1) claim_in_three_warps(MP_PARAM(Lines) lines) {
  if (warp_index() < 4) registers_release<40>();
  if (warp_index() >= 4 && warp_index() != 7) lines.first = __LINE__, registers_claim<176>();
  lines.second = __LINE__, block_sync();
}
MP_KERNEL(384, 1) release_in_two_places(MP_PARAM(Lines) lines) {
  if (warp_index() % 2 == 0)
    lines.first = __LINE__, registers_release<40>();
  else
    lines.second = __LINE__, registers_release<40>();
}
MP_KERNEL(128, 1) release_twice(MP_PARAM(Lines) lines) {
  if (warp_index() == 3) warp_sync();
  lines.first = __LINE__, registers_release<48>();
  lines.second = __LINE__, registers_release<40>();
}

// ---------------------------------------------------------------- stmatrix

MP_KERNEL(32, 1) store_misaligned(MP_PARAM(Lines) lines) {
  MP_SHARED(uint16_t, tile, [32][8]);
  const SmemAddress row = smem_address(tile) + 8;
  lines.first = __LINE__, store_matrix_x4(row, {0, 0, 0, 0});
}
MP_KERNEL(32, 1) load_misaligned(MP_PARAM(Lines) lines) {
  MP_SHARED(uint16_t, tile, [32][8]);
  uint32_t r[4];
  const SmemAddress row = smem_address(tile) + 8;
  lines.first = __LINE__, load_matrix_x4(row, r);
}
MP_KERNEL(32, 1) store_to_another_block(MP_PARAM(Lines) lines) {
  MP_SHARED(uint16_t, tile, [32][8]);
  const SmemAddress row = in_block(smem_address(tile), 0);
  lines.first = __LINE__, store_matrix_x4(row, {0, 0, 0, 0});
}
MP_KERNEL(32, 1) store_past_the_end(MP_PARAM(Lines) lines) {
  MP_SHARED(uint16_t, tile, [32][8]);
  const SmemAddress row = smem_address(tile) + static_cast<SmemAddress>(lane_index() + 1) * 16;
  lines.first = __LINE__, store_matrix_x4(row, {0, 0, 0, 0});
}
MP_KERNEL(32, 1) store_without_a_lane(MP_PARAM(Lines) lines) {
  MP_SHARED(uint16_t, tile, [32][8]);
  if (lane_index() == 9) return;
  lines.first = __LINE__, store_matrix_x4(smem_address(tile), {0, 0, 0, 0});
}

void check_in_warpgroup(void (*kernel)(const Lines &), const std::vector<std::string> &texts) {
  check_violation(kernel, {1, kThreads, kSmemBytes}, texts);
}

}  // namespace

TEST_CASE("simulator: wgmma rejects descriptors that no canonical layout defines") {
  check_in_warpgroup(set_base_offset, {"descriptor of A whose base offset is not 0"});
  check_in_warpgroup(set_unused_bits, {"descriptor of B", "bits outside its fields"});
  check_in_warpgroup(start_between_atoms, {"starts A at", "128 bytes past a multiple of 1024"});
  check_in_warpgroup(start_too_far_right, {"starts B at", "112 bytes past a multiple of 1024"});
  check_in_warpgroup(stride_one_row,
                     {"atoms of A 128 bytes apart along m, not a multiple of 1024"});
  check_in_warpgroup(read_past_the_end, {"reads B at", "outside all shared variables"});
  check_in_warpgroup(read_below_the_start, {"reads B at", "outside all shared variables"});
}

TEST_CASE("simulator: wgmma operands written without async_proxy_fence are reported") {
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const ModeScope scope(engine::Mode::strict_with(seed));
    const Lines lines;
    const std::string diagnostic = outcome(read_unfenced_writes, {1, kThreads, kSmemBytes}, lines);
    CHECK(diagnostic.find("reads B in wgmma, which thread") != std::string::npos);
    CHECK(diagnostic.find("wrote without async_proxy_fence") != std::string::npos);
    run(read_fenced_writes, {1, kThreads, kSmemBytes}, lines);
  }
}

TEST_CASE("simulator: wgmma with divergent threads of a warpgroup is reported") {
  check_in_warpgroup(disagree_on_an_operand, {"disagrees", "on an operand of wgmma"});
  check_in_warpgroup(disagree_on_the_place,
                     {"calls a different wgmma than its warpgroup, which is at"});
  check_in_warpgroup(disagree_on_a_commit, {"disagrees", "on the commits before wgmma"});
  check_in_warpgroup(disagree_on_the_accumulators, {"disagrees", "which accumulators"});
  check_in_warpgroup(change_the_shape, {"of a different shape"});
  check_in_warpgroup(return_before_wgmma, {"returned", "warpgroup", "in wgmma"});
  check_in_warpgroup(skip_a_wgmma,
                     {"deadlock", "waits in wgmma_wait", "which 127 of 128 threads have issued"});
  check_violation(multiply_in_three_warps, {1, 96, kSmemBytes}, {"outside a full warpgroup"});
}

TEST_CASE("simulator: accumulators in flight read as NaN, and writes to them are reported") {
  check_in_warpgroup(omit_the_fence, {"lacks a wgmma_fence"});
  check_in_warpgroup(omit_the_second_fence, {"lacks a wgmma_fence"});
  check_in_warpgroup(write_in_flight, {"wrote to the accumulators", "in flight"});
  check_in_warpgroup(return_in_flight, {"returned without a wgmma_wait"});
  check_in_warpgroup(return_without_commit, {"returned without a wgmma_wait"});
  in_every_mode([] {
    std::vector<float> in_flight(kThreads), retired(2 * kThreads);
    run(read_in_flight, {1, kThreads, kSmemBytes}, {in_flight.data(), retired.data()});
    for (int t = 0; t < kThreads; t++) {
      CHECK(std::isnan(in_flight[t]));
      CHECK(retired[t] == 16.0f);
      CHECK(retired[kThreads + t] == 32.0f);
    }
  });
}

TEST_CASE("simulator: setmaxnreg moves registers between warpgroups and its misuse is reported") {
  in_every_mode([] { run(share_all_registers, {3, 384}, {}); });
  check_violation(claim_more_than_released, {1, 384},
                  {"deadlock", "waits in registers_claim", "to go from 168 to 240, more than"});
  check_violation(claim_less, {1, 256}, {"has 256 registers and requests 40 in registers_claim"});
  check_violation(release_upwards, {1, 512},
                  {"has 128 registers and requests 160 in registers_release"});
  check_violation(release_in_one_warp, {1, 384}, {"returned", "warpgroup", "registers_release"});
  check_violation(claim_in_three_warps, {1, 384},
                  {"deadlock", "registers_claim", "where 96 of 128 threads have arrived"});
  check_violation(release_in_two_places, {1, 384}, {"but its warpgroup is in registers_release"});
  check_violation(release_twice, {1, 128}, {"but its warpgroup is in registers_release"});
}

TEST_CASE("simulator: an invalid address or a missing lane of stmatrix or ldmatrix is reported") {
  check_violation(load_misaligned, {1, 32}, {"to load_matrix_x4", "16-byte aligned"});
  check_violation(store_misaligned, {1, 32}, {"16-byte aligned"});
  check_violation(store_to_another_block, {1, 32}, {"an address from in_block"});
  check_violation(store_past_the_end, {1, 32}, {"outside all shared variables"});
  check_violation(store_without_a_lane, {1, 32}, {"returned", "store_matrix_x4"});
}
