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

/// Returns the row of a kernel with a tile.  That of a thin kernel is transposed: kN rows and kM
/// columns of D.
template <GemmFamily family, GemmTile tile>
constexpr GemmKernel row(const char *name, double single_block_slowdown = 1) {
  using Tile = TileShape<tile>;
  constexpr bool kIsThin = family == GemmFamily::thin;
  GemmKernel kernel{.family = family,
                    .tile = tile,
                    .name = name,
                    .tile_m = kIsThin ? Tile::kN : Tile::kM,
                    .tile_n = kIsThin ? Tile::kM : Tile::kN,
                    .tile_k = Tile::kK,
                    .smem_bytes = no_dynamic_smem,
                    .single_block_slowdown = single_block_slowdown};
  if constexpr (family == GemmFamily::wmma) kernel.smem_bytes = Tile::smem_bytes;
  if constexpr (family == GemmFamily::wmma || family == GemmFamily::simt) {
    kernel.blocks_per_sm = Tile::kMinBlocks;
  } else {
    kernel.smem_bytes = wgmma_smem<Tile>;
    kernel.ping_pong = Tile::kPingPong;
  }
  if constexpr (family == GemmFamily::wgmma) kernel.cluster_along_m = Tile::kClusterAlongM;
  if constexpr (kIsThin) kernel.blocks_per_sm = 2;
  return kernel;
}

/// Returns the row of the gemv kernel.  Its tile serves only to count tiles and slices: the kernel
/// divides D by the number of SMs.
constexpr GemmKernel gemv_row(const char *name) {
  return {.family = GemmFamily::gemv,
          .tile = GemmTile::gemv,
          .name = name,
          .tile_m = kGemvMaxVectors,
          .tile_n = kGemvMaxVectors,
          .tile_k = 16,
          .smem_bytes = no_dynamic_smem};
}

// Among equally fast kernels the earlier one is selected.  If all are bound by DRAM, gemv does the
// least additional work.
constexpr std::array kKernels = {
    gemv_row("gemv"),
    row<GemmFamily::thin, GemmTile::thin_32>("thin_32x64x64_s8", 1.5),
    row<GemmFamily::thin, GemmTile::thin_16>("thin_16x64x64_s8", 1.5),
    row<GemmFamily::wgmma, GemmTile::wgmma_128x256>("wgmma_128x256x64_s4"),
    row<GemmFamily::wgmma, GemmTile::wgmma_256x128>("wgmma_256x128x64_s4"),
    row<GemmFamily::wgmma, GemmTile::wgmma_128x192>("wgmma_128x192x64_s4"),
    row<GemmFamily::wgmma, GemmTile::wgmma_128x128>("wgmma_128x128x64_s6"),
    row<GemmFamily::wgmma, GemmTile::wgmma_64x256>("wgmma_64x256x64_s4"),
    row<GemmFamily::wgmma, GemmTile::wgmma_256x64>("wgmma_256x64x64_s4"),
    row<GemmFamily::wgmma, GemmTile::wgmma_64x128>("wgmma_64x128x64_s8"),
    row<GemmFamily::wmma, GemmTile::wmma_256x128>("wmma_256x128x32_s3"),
    row<GemmFamily::wmma, GemmTile::wmma_128x128>("wmma_128x128x32_s3", 1.3),
    row<GemmFamily::wmma, GemmTile::wmma_64x64>("wmma_64x64x32_s4", 2),
    row<GemmFamily::simt, GemmTile::simt_128x128>("simt_128x128x16", 1.3),
    row<GemmFamily::simt, GemmTile::simt_128x16>("simt_128x16x16", 2),
    row<GemmFamily::simt, GemmTile::simt_16x128>("simt_16x128x16", 2),
    row<GemmFamily::simt, GemmTile::simt_64x64>("simt_64x64x16", 2),
};

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
