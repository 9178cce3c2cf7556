// D = epilogue(op(A) op(B)) for few rows on Hopper: bound by the bytes of B.
//
// A wgmma computes the transpose of D: its 64 rows are columns of B, and its 16 or 32 columns are
// rows of A.  The blocks of a cluster split k (cluster_product.h), so that a B of few columns is
// read by most SMs.  Their sums are added in distributed shared memory, not in workspace.
#include "kernels/gemm/cluster_product.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/wgmma_args.h"

namespace mp::MP_TARGET {

namespace {

struct ThinArgs {
  TensorMap a, b;
  GemmProblem problem;
  TileScheduler scheduler;
  TileDivisors divisors;  ///< divisors of `scheduler`
};

template <class Tile>
class ThinProduct {
 public:
  MP_DEVICE explicit ThinProduct(const ThinArgs &args)
      : args_(args), tile_(args.scheduler(block_index() / cluster_size(), args.divisors)) {}

  MP_DEVICE void run(const ClusterProduct<Tile> &block) const {
    const GemmProblem &p = args_.problem;
    const int k_tiles = static_cast<int>(ceil_div<int64_t>(p.k, Tile::kK));
    const auto nothing = [](auto...) {};
    if (p.op_b == MP_OP_T)
      block.multiply(Layouts<Major::k>{}, p.dtype_ab, k_tiles, false, Loads<Major::k>{*this},
                     nothing);
    else
      block.multiply(Layouts<Major::mn>{}, p.dtype_ab, k_tiles, false, Loads<Major::mn>{*this},
                     nothing);
    EpilogueWriter writer(p.out, tile_.batch_item);
    block.template visit<1>(true, p.out.m - row0(), p.out.n - col0(), nothing,
                            [&](int row, int column, int valid, float(&sums)[1][kVec]) {
                              writer.write(row0() + row, col0() + column, sums[0], valid);
                            });
    writer.finish();
  }

 private:
  template <Major major_of_b>
  using Layouts =
      WgmmaLayouts<StagedOperand<major_of_b, Tile::kM>, StagedOperand<Major::k, Tile::kN>>;

  /// Loads of a k-tile: B, the weights, is the first operand of wgmma.
  template <Major major_of_b>
  struct Loads {
    const ThinProduct &product;

    MP_DEVICE void weights(int tile, SmemAddress a, SmemAddress, SmemAddress full) const {
      const ThinArgs &args = product.args_;
      Layouts<major_of_b>::A::load(a, args.b, full, product.col0(), tile * Tile::kK,
                                   product.item_of(args.problem.b), false);
    }
    MP_DEVICE void rows(int tile, SmemAddress, SmemAddress b, SmemAddress full) const {
      const ThinArgs &args = product.args_;
      Layouts<major_of_b>::B::load(b, args.a, full, product.row0(), tile * Tile::kK,
                                   product.item_of(args.problem.a), false);
    }
  };

  MP_DEVICE int row0() const { return static_cast<int>(tile_.tile_m) * Tile::kN; }
  MP_DEVICE int col0() const { return static_cast<int>(tile_.tile_n) * Tile::kM; }
  MP_DEVICE int item_of(const Operand &operand) const {
    return operand.stride != 0 ? static_cast<int>(tile_.batch_item) : 0;
  }

  const ThinArgs &args_;
  const WorkTile tile_;
};

template <class Tile>
MP_KERNEL(Tile::kThreads, 1)
gemm_thin(MP_PARAM(ThinArgs) args) {
  if constexpr (wgmma_supported<Tile::kSmemBytes>()) {
    MP_DYN_SHARED(std::byte, smem);
    MP_SHARED(uint64_t, barriers, [Barriers<Tile>::kCount]);
    const ClusterProduct<Tile> block(smem, barriers);
    ThinProduct<Tile>(args).run(block);
  }
}

}  // namespace

void launch_thin(const GemmPlan &plan, const Device &device, const GemmArgs &gemm,
                 mp_stream_t stream) {
  const ThinArgs args{wgmma_map_a(gemm.problem, plan), wgmma_map_b(gemm.problem, plan),
                      gemm.problem, gemm.scheduler, TileDivisors(gemm.scheduler)};
  with_tile(ThinTiles{}, *plan.kernel, [&]<class Tile>(std::type_identity<Tile>) {
    launch(plan.name, gemm_thin<Tile>, device,
           {gemm.scheduler.num_work_tiles(), Tile::kThreads, Tile::kSmemBytes, plan.parts, true},
           stream, args);
  });
}

}  // namespace mp::MP_TARGET
