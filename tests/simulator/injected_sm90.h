// A small but complete Hopper GEMM, and the bugs that can be injected into it.
//
// D = A B in fp16, A [m][k] (K-major in smem), B [k][n] (MN-major).  The grid is persistent.  In
// each block a producer thread of the first warpgroup loads tiles by TMA into a ring of stages; two
// consumer warpgroups multiply them by wgmma and store D through stmatrix and TMA.  The two blocks
// of a cluster compute adjacent tiles along m; each loads one half of their common tile of B and
// multicasts it to both.  With split_k > 1 the sums over the slices of k go through gmem, and the
// block that finishes the last slice of a tile adds them in order.
#pragma once

#include "kernels/simt/sm90.h"

namespace mptest {

using namespace mp::host;

enum class Bug {
  none,
  a_stride_of_one_row,
  a_stride_of_two_atoms,
  b_strides_of_k_major,
  b_strides_exchanged,
  a_step_of_mn_major,
  b_step_of_k_major,
  b_taken_for_k_major,
  narrow_descriptor_swizzle,
  no_map_swizzle,
  unaligned_stages,
  too_few_bytes,
  too_many_bytes,
  own_multicast_only_counted,
  no_bytes_expected,
  no_arrival_at_full,
  producer_waits_for_parity_0,
  consumer_parity_never_flips,
  consumer_state_reset_per_tile,
  empty_count_one_too_small,
  empty_count_one_too_large,
  producer_never_waits,
  release_before_wait,
  release_one_stage_early,
  no_proxy_fence,
  proxy_fence_in_one_warp,
  no_barrier_before_store,
  buffer_reused_unread,
  buffer_reused_without_barrier,
  return_before_read,
  unaligned_buffers,
  no_wgmma_fence,
  no_commit,
  accumulators_read_in_flight,
  registers_oversubscribed,
  no_cluster_sync_after_init,
  no_cluster_sync_before_return,
  release_to_own_block_only,
  block_outside_skips_tile,
  tile_skipped,
  tiles_done_twice,
  counter_not_reset,
};

constexpr int kTileM = 128, kTileN = 128, kTileK = 64;
constexpr int kStages = 3;
constexpr int kWarpgroup = 128;
constexpr int kConsumers = 2;  // warpgroups, 64 rows of the tile each
constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kConsumerM = kTileM / kConsumers;
constexpr int kRegs = kTileN / 2;  // accumulators per thread

constexpr uint32_t kAtom = 1024;
constexpr int kChunk = 64;  // elements of a swizzled row: k of A, n of B and D
constexpr uint32_t kRowBytes = kChunk * sizeof(half);
constexpr uint32_t kABytes = kTileM * kRowBytes;
constexpr uint32_t kChunkBytes = kTileK * kRowBytes;  // one chunk of B
constexpr uint32_t kBBytes = kTileN / kChunk * kChunkBytes;
constexpr uint32_t kStageBytes = kABytes + kBBytes;
constexpr uint32_t kStagingBytes = kConsumerM * kRowBytes;  // part of D, per consumer
constexpr size_t kInjectedSmemBytes = kStages * kStageBytes + kConsumers * kStagingBytes + kAtom;

struct InjectedArgs {
  mp::TensorMap a, b, d;
  int m, n, k, split_k;
  float *partials;     ///< [slice][tile][consumer][register][thread]
  uint32_t *counters;  ///< [tile][consumer], zero between launches
};

/// Stage of the ring and parity of its mbarrier phase.
struct Ring {
  int stage = 0;
  uint32_t parity = 0;
  void advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

/// One tile of D over one slice of k.
struct Unit {
  int tile, slice;
  int m0, n0;
  int first_k, num_k_tiles;
};

template <Bug bug, int kCluster>
struct InjectedGemm {
  const InjectedArgs &args;
  SmemAddress stages, buffers, full, empty;
  uint32_t *blocks_done;  ///< [consumer], in smem

  // ---- schedule

  int tiles_m() const {
    const int tiles = bug == Bug::tile_skipped ? args.m / kTileM : ceil_div(args.m, kTileM);
    return ceil_div(tiles, kCluster) * kCluster;
  }
  int tiles_n() const { return ceil_div(args.n, kTileN); }

  /// Calls work(unit) for each unit of this block.  Blocks of a cluster have the same sequence.
  template <class Work>
  void for_each_unit(const Work &work) const {
    const int num_clusters = static_cast<int>(grid_size()) / kCluster;
    const int num_units = tiles_m() / kCluster * tiles_n() * args.split_k;
    const int step = bug == Bug::tiles_done_twice ? 1 : num_clusters;
    for (int u = static_cast<int>(block_index()) / kCluster; u < num_units; u += step) {
      const int slice = u % args.split_k, pair = u / args.split_k;
      const int tile_m = pair / tiles_n() * kCluster + cluster_rank();
      const int tile_n = pair % tiles_n();
      const int k_tiles = ceil_div(args.k, kTileK);
      const int first = k_tiles * slice / args.split_k;
      const int last = k_tiles * (slice + 1) / args.split_k;
      if (bug == Bug::block_outside_skips_tile && tile_m * kTileM >= args.m) continue;
      work(Unit{tile_m * tiles_n() + tile_n, slice, tile_m * kTileM, tile_n * kTileN,
                first * kTileK, last - first});
    }
  }

  // ---- the ring

  SmemAddress a_smem(int stage) const {
    return stages + static_cast<SmemAddress>(stage) * kStageBytes;
  }
  SmemAddress b_smem(int stage) const { return a_smem(stage) + kABytes; }
  SmemAddress full_of(int stage) const { return full + static_cast<SmemAddress>(stage) * 8; }
  SmemAddress empty_of(int stage) const { return empty + static_cast<SmemAddress>(stage) * 8; }

  void init_barriers() const {
    constexpr int kWarps = kCluster * kConsumers * kWarpgroup / kWarpSize;
    constexpr int kEmptyCount = bug == Bug::empty_count_one_too_small   ? kWarps - 1
                                : bug == Bug::empty_count_one_too_large ? kWarps + 1
                                                                        : kWarps;
    if (thread_index() == 0) {
      for (int s = 0; s < kStages; s++) {
        mbarrier_init(full_of(s), 1);
        mbarrier_init(empty_of(s), kEmptyCount);
      }
      mbarrier_init_fence();
    }
    if (kCluster > 1 && bug != Bug::no_cluster_sync_after_init)
      cluster_sync();
    else
      block_sync();
  }

  static constexpr uint32_t expected_bytes() {
    switch (bug) {
      case Bug::too_few_bytes:
        return kABytes;
      case Bug::too_many_bytes:
        return kStageBytes + kRowBytes;
      case Bug::own_multicast_only_counted:
        return kABytes + kBBytes / kCluster;
      default:
        return kStageBytes;
    }
  }

  void fetch(const Unit &unit, int k0, int stage) const {
    const SmemAddress bar = full_of(stage);
    if (bug == Bug::no_bytes_expected)
      mbarrier_arrive(bar);
    else if (bug != Bug::no_arrival_at_full)
      mbarrier_arrive_expect(bar, expected_bytes());
    tma_load(a_smem(stage), args.a, bar, k0, unit.m0, 0);
    for (int c = 0; c < kTileN / kChunk; c++) {
      const SmemAddress chunk = b_smem(stage) + static_cast<SmemAddress>(c) * kChunkBytes;
      if (kCluster == 1)
        tma_load(chunk, args.b, bar, unit.n0 + c * kChunk, k0, 0);
      else if (c == cluster_rank())
        tma_load_multicast(chunk, args.b, bar, unit.n0 + c * kChunk, k0, 0, 0b11);
    }
  }

  void produce() const {
    constexpr uint32_t kFreshParity = bug == Bug::producer_waits_for_parity_0 ? 0 : 1;
    Ring ring;
    for_each_unit([&](const Unit &unit) {
      for (int t = 0; t < unit.num_k_tiles; t++, ring.advance()) {
        if (bug != Bug::producer_never_waits)
          mbarrier_wait(empty_of(ring.stage), ring.parity ^ kFreshParity);
        fetch(unit, unit.first_k + t * kTileK, ring.stage);
      }
    });
  }

  /// Releases a stage; called by each warp after its wgmmas have read the stage.
  void release(int stage) const {
    if (lane_index() != 0) return;
    if (kCluster == 1 || bug == Bug::release_to_own_block_only) {
      mbarrier_arrive(empty_of(stage));
      return;
    }
    for (int rank = 0; rank < kCluster; rank++)
      mbarrier_arrive_cluster(in_block(empty_of(stage), rank));
  }

  // ---- products

  uint64_t a_descriptor(int stage, int consumer, int k) const {
    constexpr uint32_t kStride = bug == Bug::a_stride_of_one_row     ? kRowBytes
                                 : bug == Bug::a_stride_of_two_atoms ? 2 * kAtom
                                                                     : kAtom;
    constexpr Swizzle kSwizzle =
        bug == Bug::narrow_descriptor_swizzle ? Swizzle::b64 : Swizzle::b128;
    const uint32_t step = bug == Bug::a_step_of_mn_major ? 16 * kRowBytes : 16 * sizeof(half);
    const SmemAddress rows =
        a_smem(stage) + static_cast<SmemAddress>(consumer) * kConsumerM * kRowBytes;
    return wgmma_descriptor(rows + static_cast<uint32_t>(k) * step, 16, kStride, kSwizzle);
  }
  uint64_t b_descriptor(int stage, int k) const {
    constexpr bool kAsKMajor = bug == Bug::b_strides_of_k_major || bug == Bug::b_taken_for_k_major;
    const uint32_t step = bug == Bug::b_step_of_k_major ? 16 * sizeof(half) : 16 * kRowBytes;
    const SmemAddress start = b_smem(stage) + static_cast<uint32_t>(k) * step;
    if (bug == Bug::b_strides_exchanged)
      return wgmma_descriptor(start, kAtom, kChunkBytes, Swizzle::b128);
    return wgmma_descriptor(start, kAsKMajor ? 16 : kChunkBytes, kAtom, Swizzle::b128);
  }

  void multiply_stage(float (&d)[kRegs], int stage, int consumer, bool accumulate) const {
    constexpr Major kBMajor = bug == Bug::b_taken_for_k_major ? Major::k : Major::mn;
    fence_accumulators(d);
    if (bug != Bug::no_wgmma_fence) wgmma_fence();
    for (int k = 0; k < kTileK / 16; k++)
      wgmma<half, kTileN, Major::k, kBMajor>(d, a_descriptor(stage, consumer, k),
                                             b_descriptor(stage, k), accumulate || k > 0);
    if (bug != Bug::no_commit) wgmma_commit();
    fence_accumulators(d);
  }

  /// Keeps one wgmma group in flight: a stage is released after the wgmmas of the next are issued.
  void multiply_unit(float (&d)[kRegs], const Unit &unit, int consumer, Ring &ring) const {
    int previous = 0;
    for (int t = 0; t < unit.num_k_tiles; t++) {
      mbarrier_wait(full_of(ring.stage), ring.parity);
      if (bug == Bug::release_before_wait) release(ring.stage);
      multiply_stage(d, ring.stage, consumer, t > 0);
      wgmma_wait<1>();
      if (bug == Bug::release_one_stage_early)
        release(ring.stage);
      else if (bug != Bug::release_before_wait && t > 0)
        release(previous);
      previous = ring.stage;
      const uint32_t parity = ring.parity;
      ring.advance();
      if (bug == Bug::consumer_parity_never_flips) ring.parity = parity;
    }
    if (bug != Bug::accumulators_read_in_flight) wgmma_wait<0>();
    fence_accumulators(d);
    if (bug != Bug::release_before_wait && bug != Bug::release_one_stage_early) release(previous);
  }

  // ---- epilogue

  void sync_warpgroup(int consumer) const { named_barrier_sync(1 + consumer, kWarpgroup); }

  /// Writes 64 columns of D to smem in TMA's swizzle.
  void write_buffer(const float *d, SmemAddress buffer) const {
    const int lane = lane_index(), row = warp_index() % 4 * 16 + lane % 16;
    for (int j = 0; j < kChunk / 16; j++) {
      uint32_t r[4];
      for (int i = 0; i < 4; i++) r[i] = pack_pair<half>(d[8 * j + 2 * i], d[8 * j + 2 * i + 1]);
      const int unit = (2 * j + lane / 16) ^ row % 8;
      store_matrix_x4(
          buffer + static_cast<SmemAddress>(row * static_cast<int>(kRowBytes) + unit * 16), r);
    }
  }

  void store_tile(const float (&d)[kRegs], const Unit &unit, int consumer) const {
    const bool is_storer = thread_index() % kWarpgroup == 0;
    const SmemAddress buffer = buffers + static_cast<SmemAddress>(consumer) * kStagingBytes;
    for (int c = 0; c < kTileN / kChunk; c++) {
      if (is_storer && bug != Bug::buffer_reused_unread) tma_store_wait_read<0>();
      if (bug != Bug::buffer_reused_without_barrier) sync_warpgroup(consumer);
      write_buffer(d + c * kChunk / 2, buffer);
      if (bug != Bug::no_proxy_fence &&
          (bug != Bug::proxy_fence_in_one_warp || warp_index() % 4 == 0))
        async_proxy_fence();
      if (bug != Bug::no_barrier_before_store) sync_warpgroup(consumer);
      if (is_storer) {
        tma_store(args.d, buffer, unit.n0 + c * kChunk, unit.m0 + consumer * kConsumerM, 0);
        tma_store_commit();
      }
    }
  }

  /// Returns whether this block finishes the tile; if so, d becomes the sum over the slices.
  bool add_slices(float (&d)[kRegs], const Unit &unit, int consumer) const {
    if (args.split_k == 1) return true;
    const int thread = thread_index() % kWarpgroup, num_tiles = tiles_m() * tiles_n();
    const auto partial = [&](int slice) {
      return args.partials +
             ((slice * num_tiles + unit.tile) * kConsumers + consumer) * kRegs * kWarpgroup +
             thread;
    };
    for (int i = 0; i < kRegs; i++) partial(unit.slice)[i * kWarpgroup] = d[i];
    device_fence();
    sync_warpgroup(consumer);
    const uint32_t last = static_cast<uint32_t>(args.split_k) - 1;
    if (thread == 0)
      blocks_done[consumer] = atomic_wrap_inc(&args.counters[unit.tile * kConsumers + consumer],
                                              bug == Bug::counter_not_reset ? ~0u : last);
    sync_warpgroup(consumer);
    if (blocks_done[consumer] != last) return false;
    device_fence();
    for (int i = 0; i < kRegs; i++) {
      d[i] = 0.0f;
      for (int slice = 0; slice < args.split_k; slice++) d[i] += partial(slice)[i * kWarpgroup];
    }
    return true;
  }

  void consume(int consumer) const {
    Ring ring;
    for_each_unit([&](const Unit &unit) {
      if (bug == Bug::consumer_state_reset_per_tile) ring = {};
      float d[kRegs];
      multiply_unit(d, unit, consumer, ring);
      if (add_slices(d, unit, consumer)) store_tile(d, unit, consumer);
    });
    if (thread_index() % kWarpgroup == 0 && bug != Bug::return_before_read)
      tma_store_wait_read<0>();
  }
};

template <Bug bug, int kCluster>
MP_KERNEL(kThreads, 1)
injected_gemm(MP_PARAM(InjectedArgs) args) {
  MP_DYN_SHARED(unsigned char, smem);
  MP_SHARED(uint64_t, full, [kStages]);
  MP_SHARED(uint64_t, empty, [kStages]);
  MP_SHARED(uint32_t, blocks_done, [kConsumers]);
  const SmemAddress first = ceil_div(smem_address(smem), kAtom) * kAtom;
  const SmemAddress buffers = first + kStages * kStageBytes;
  const InjectedGemm<bug, kCluster> gemm{args,
                                         bug == Bug::unaligned_stages ? first - kAtom / 2 : first,
                                         bug == Bug::unaligned_buffers ? buffers - 16 : buffers,
                                         smem_address(full),
                                         smem_address(empty),
                                         blocks_done};
  gemm.init_barriers();
  if (thread_index() < kWarpgroup) {
    registers_release<40>();
    if (thread_index() == 0) gemm.produce();
  } else {
    registers_claim<bug == Bug::registers_oversubscribed ? 240 : 232>();
    gemm.consume(thread_index() / kWarpgroup - 1);
  }
  if (kCluster > 1 && bug != Bug::no_cluster_sync_before_return) cluster_sync();
}

}  // namespace mptest
