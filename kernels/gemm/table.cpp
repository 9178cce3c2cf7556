// Table of GEMM kernels, and the variants of each row.
#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tiles.h"

namespace mp {

namespace {

template <class Tile>
size_t wgmma_smem(bool, bool) {
  constexpr size_t kBarriers = 1024;  // upper bound; in addition to the stages
  return Tile::kSmemBytes + kBarriers;
}

size_t no_dynamic_smem(bool, bool) {
  return 0;
}

/// Returns an estimate of GemmKernel::single_block_slowdown.
constexpr double slowdown_of(GemmFamily family, int blocks_per_sm) {
  if (blocks_per_sm == 1) return 1;
  if (family == GemmFamily::thin) return 1.5;
  return blocks_per_sm == 2 ? 1.3 : 2;
}

/// Returns the row of a tile.  That of a thin kernel is transposed: kN rows and kM columns of D.
template <class Tile>
constexpr GemmKernel row(GemmTile tile, const char *name) {
  constexpr GemmFamily kFamily = Tile::kFamily;
  constexpr bool kIsThin = kFamily == GemmFamily::thin;
  GemmKernel kernel{.family = kFamily,
                    .tile = tile,
                    .name = name,
                    .tile_m = kIsThin ? Tile::kN : Tile::kM,
                    .tile_n = kIsThin ? Tile::kM : Tile::kN,
                    .tile_k = Tile::kK,
                    .smem_bytes = no_dynamic_smem};
  if constexpr (kFamily == GemmFamily::wmma || kFamily == GemmFamily::simt)
    kernel.blocks_per_sm = Tile::kMinBlocks;
  if constexpr (kFamily == GemmFamily::wmma) kernel.smem_bytes = Tile::smem_bytes;
  if constexpr (kFamily == GemmFamily::wgmma || kIsThin) {
    kernel.smem_bytes = wgmma_smem<Tile>;
    kernel.ping_pong = Tile::kPingPong;
  }
  if constexpr (kFamily == GemmFamily::wgmma) kernel.cluster_along_m = Tile::kClusterAlongM;
  if constexpr (kIsThin) kernel.blocks_per_sm = 2;
  kernel.single_block_slowdown = slowdown_of(kFamily, kernel.blocks_per_sm);
  return kernel;
}

#define MP_KERNEL_ROW(name, ...) row<TileShape<GemmTile::name>>(GemmTile::name, #name),
constexpr std::array kKernels = {MP_GEMM_TILES(MP_KERNEL_ROW)};
#undef MP_KERNEL_ROW

static_assert(std::all_of(kKernels.begin(), kKernels.end(), [](const GemmKernel &kernel) {
  return is_tile_extent(kernel.tile_m) && is_tile_extent(kernel.tile_n) &&
         std::has_single_bit(static_cast<unsigned>(kernel.tile_k));
}));

constexpr std::array kClusters = {1, 2};
/// Splits, dense enough that some split times the number of tiles fills complete waves.  wgmma has
/// more, because its SMs have one block each.
constexpr std::array kSplits = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128};
constexpr std::array kWgmmaSplits = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128};
/// Blocks of a cluster.
constexpr std::array kThinSplits = {1, 2, 4, kMaxClusterParts};
/// Number of splits with clusters: few tiles with many slices have no neighbors to share with.
constexpr size_t kPairedSplits = 6;
/// Splits whose slices clusters of up to kMaxClusterParts blocks add.
constexpr std::array kClusterSplits = {2, 3, 4, 6, 8, 16, 24, 32, 64};

constexpr std::span<const int> clusters_of(const GemmKernel &kernel) {
  return std::span(kClusters).first(kernel.family == GemmFamily::wgmma ? 2 : 1);
}

constexpr std::span<const int> splits_of(const GemmKernel &kernel, int cluster) {
  if (kernel.family == GemmFamily::gemv) return std::span(kSplits).first(1);
  if (kernel.family == GemmFamily::thin) return kThinSplits;
  if (kernel.family != GemmFamily::wgmma) return kSplits;
  return std::span(kWgmmaSplits).first(cluster > 1 ? kPairedSplits : kWgmmaSplits.size());
}

/// Returns a name such as "wgmma_128x256x64_s4_c2_k4" or "wgmma_64x128x64_s8_k32_p8".
std::string variant_name(const GemmKernel &kernel, int multicast, int split_k, int parts) {
  std::string name = kernel.name;
  for (const auto &[letter, count] : {std::pair{'c', multicast}, {'k', split_k}, {'p', parts}})
    if (count > 1) name += std::string{'_', letter} + std::to_string(count);
  return name;
}

struct VariantTable {
  VariantTable() {
    for (const GemmKernel &kernel : kKernels)
      for (const int cluster : clusters_of(kernel)) {
        for (const int split_k : splits_of(kernel, cluster))
          add(kernel, cluster, split_k, kernel.family == GemmFamily::thin ? split_k : 1);
        if (kernel.family != GemmFamily::wgmma || cluster > 1) continue;
        for (const int split_k : kClusterSplits)
          add(kernel, cluster, split_k, std::min(split_k, kMaxClusterParts));
      }
  }
  void add(const GemmKernel &kernel, int multicast, int split_k, int parts) {
    const char *const name = kept(variant_name(kernel, multicast, split_k, parts));
    const char *copied = nullptr;
    if (uses_tma(kernel)) copied = name;
    if (kernel.family == GemmFamily::wmma) copied = kept(std::string(name) + "_copied");
    variants.push_back({&kernel, multicast, split_k, parts, name, copied});
  }
  const char *kept(std::string name) { return names.emplace_back(std::move(name)).c_str(); }

  std::deque<std::string> names;  // a deque keeps their addresses
  std::vector<GemmVariant> variants;
};

}  // namespace

std::span<const GemmKernel> gemm_kernels() {
  return kKernels;
}

std::span<const GemmVariant> gemm_variants() {
  return lazy_init([] { return VariantTable(); }).variants;
}

}  // namespace mp
