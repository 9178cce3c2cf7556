// D = epilogue(op(A) op(B)) on the tensor cores through WMMA, sm_70 and newer: the loop of
// wmma_loop.h over matrices.
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/gemm_work.h"
#include "kernels/gemm/wmma_loop.h"

namespace mp::MP_TARGET {

namespace {

/// One tile.  Types and layouts are selected at run time, once per tile, like in wgmma_kernel.h.
template <class Tile>
class GemmWmma {
  template <class T, bool kByK>
  using LoadA = OperandLoader<T, kByK, Tile::kM, Tile>;
  template <class T, bool kByK>
  using LoadB = OperandLoader<T, kByK, Tile::kN, Tile>;

 public:
  static constexpr size_t kSmemBytes = Tile::smem_bytes(true, true);  ///< maximum of all layouts
  static_assert(kSmemBytes >= Tile::smem_bytes(false, false));

  MP_DEVICE GemmWmma(const GemmArgs &args, const GemmWork &work)
      : args_(args), p_(args.problem), work_(work) {}

  MP_DEVICE void run(std::byte *smem) {
    WmmaLoop<Tile> loop;
    loop.clear();
    with_half_type(p_.dtype_ab, [&]<class T>(std::type_identity<T>) {
      if constexpr (wmma::supported<T, kSmemBytes>()) {
        with_ops(p_.op_a, p_.op_b, [&]<mp_op_t op_a, mp_op_t op_b>(Value<op_a>, Value<op_b>) {
          multiply<T, op_a == MP_OP_N, op_b == MP_OP_T>(smem, loop);
        });
      }
    });
    EpilogueWriter writer(p_.out, work_.batch_item, work_.k0 < work_.k_end);
    const bool is_split = args_.partial_sums != nullptr, is_fp32 = p_.out.dtype == MP_FP32;
    loop.store_tile(smem, is_split || is_fp32, [&]<int kRun>(int r, int c, float(&x)[kRun]) {
      const int64_t row = work_.m0 + r, col = work_.n0 + c;
      const int valid = static_cast<int>(min_of<int64_t>(p_.out.n - col, kRun));
      if (row >= work_.m_end || valid <= 0) return;
      if (kRun == kQuad && is_split)
        store_vector(
            partial_sum(args_.partial_sums, p_.out, work_.slice, work_.batch_item, row, col), x,
            valid);
      else
        writer.write(row, col, x, valid);
    });
    writer.finish();
  }

 private:
  /// Multiplies the tile.  kAByK (kBByK): k is the contiguous dimension of A (B) in memory.
  template <class T, bool kAByK, bool kBByK>
  MP_DEVICE void multiply(std::byte *smem, WmmaLoop<Tile> &loop) const {
    const int64_t k_elems = work_.k_end - work_.k0;
    LoadA<T, kAByK> load_a(origin<T, kAByK>(p_.a, work_.m0), p_.a.ld, work_.m_end - work_.m0,
                           k_elems);
    LoadB<T, kBByK> load_b(origin<T, kBByK>(p_.b, work_.n0), p_.b.ld, p_.out.n - work_.n0, k_elems);
    loop.template multiply_add<T>(smem, load_a, load_b, ceil_div(k_elems, int64_t{Tile::kK}));
  }

  template <class T, bool kByK>
  MP_DEVICE const T *origin(const Operand &operand, int64_t mn) const {
    const T *const item =
        static_cast<const T *>(item_address(operand, p_.dtype_ab, work_.batch_item));
    return kByK ? item + mn * operand.ld + work_.k0 : item + work_.k0 * operand.ld + mn;
  }

  const GemmArgs &args_;
  const GemmProblem &p_;
  const GemmWork work_;
};

template <class Tile>
MP_KERNEL(Tile::kThreads, Tile::kMinBlocks)
gemm_wmma(MP_PARAM(GemmArgs) args) {
  using Gemm = GemmWmma<Tile>;
  if constexpr (wmma::supported<half, Gemm::kSmemBytes>()) {
    if (args.required_flag != nullptr && *args.required_flag == 0) return;
    MP_DYN_SHARED(std::byte, smem);
    const int64_t num_work_tiles = args.scheduler.num_work_tiles();
    for (int64_t number = block_index(); number < num_work_tiles; number += grid_size()) {
      const GemmWork work = gemm_work<Tile>(args, number, args.ends != nullptr);
      if (work.is_none()) break;
      if (number != block_index()) block_sync();  // the previous epilogue still uses smem
      Gemm(args, work).run(smem);
    }
  }
}

}  // namespace

void launch_wmma(const char *name, const GemmKernel &kernel, const Device &device,
                 const GemmArgs &args, mp_stream_t stream) {
  const GemmProblem &p = args.problem;
  with_tile(WmmaTiles{}, kernel, [&]<class Tile>(std::type_identity<Tile>) {
    // A fallback usually returns at once, which few blocks make cheap.
    const int64_t max_blocks =
        args.required_flag == nullptr ? kMaxBlocks : int64_t{device.num_sms} * kernel.blocks_per_sm;
    const LaunchShape shape{min_of(args.scheduler.num_work_tiles(), max_blocks), Tile::kThreads,
                            Tile::smem_bytes(p.op_a == MP_OP_N, p.op_b == MP_OP_T)};
    launch(name, gemm_wmma<Tile>, device, shape, stream, args);
  });
}

}  // namespace mp::MP_TARGET
