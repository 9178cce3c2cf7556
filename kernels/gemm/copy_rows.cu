// Copies of A and B with aligned rows (AlignedCopies in plan.h).
#include "kernels/gemm/gemm_args.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kWordsAtOnce = 8;  // per thread, in flight
constexpr int kRunWords = kWordsAtOnce * kWarpSize;

/// Sizes in words.  Row numbers continue from matrix to matrix.
struct CopyRowsArgs {
  const void *from;
  void *to;
  int64_t rows, all_rows;  ///< rows of one matrix, and of all
  int64_t cols, runs_per_row;
  int64_t ld_from, stride_from, ld_to;
};

/// Copies rows.  A warp copies a segment of a row; neighboring lanes copy neighboring words, which
/// may have any alignment.
template <class Word>
MP_KERNEL(kThreads, 1)
copy_rows(MP_PARAM(CopyRowsArgs) args) {
  wait_for_previous_kernel();
  const int64_t step = grid_size() * (kThreads / kWarpSize);
  for (int64_t run = block_index() * (kThreads / kWarpSize) + warp_index();
       run < args.all_rows * args.runs_per_row; run += step) {
    const int64_t row = run / args.runs_per_row;
    const int64_t first = (run - row * args.runs_per_row) * kRunWords + lane_index();
    const int64_t matrix = row / args.rows;
    const Word *const from = static_cast<const Word *>(args.from) + matrix * args.stride_from +
                             (row - matrix * args.rows) * args.ld_from + first;
    Word *const to = static_cast<Word *>(args.to) + row * args.ld_to + first;
    const int64_t left = args.cols - first;
    Word words[kWordsAtOnce];
    unroll<kWordsAtOnce>(
        [&](int i) { words[i] = i * kWarpSize < left ? from[i * kWarpSize] : Word{}; });
    unroll<kWordsAtOnce>([&](int i) {
      if (i * kWarpSize < left) to[i * kWarpSize] = words[i];
    });
  }
}

template <class Word>
void launch_copy(const Device &device, const Operand &x, const AlignedCopy &copy, void *to,
                 mp_stream_t stream) {
  constexpr int64_t kElems = sizeof(Word) / 2;
  CopyRowsArgs args{};
  args.from = x.base;
  args.to = to;
  args.rows = copy.rows;
  args.all_rows = copy.rows * copy.count;
  args.cols = copy.cols / kElems;
  args.runs_per_row = ceil_div<int64_t>(args.cols, kRunWords);
  args.ld_from = x.ld / kElems;
  args.stride_from = x.stride / kElems;
  args.ld_to = copy.ld / kElems;
  const int64_t blocks = ceil_div<int64_t>(args.all_rows * args.runs_per_row, kThreads / kWarpSize);
  launch("copy_rows", copy_rows<Word>, device,
         {.num_blocks = min_of(blocks, kMaxBlocks), .num_threads = kThreads, .uses_pdl = true},
         stream, args);
}

void copy_operand(const Device &device, const Operand &x, const AlignedCopy &copy, void *to,
                  mp_stream_t stream) {
  const bool by_two = ((x.ld | x.stride | copy.cols) % 2 == 0) &&
                      reinterpret_cast<uintptr_t>(x.base) % sizeof(uint32_t) == 0;
  (by_two ? launch_copy<uint32_t> : launch_copy<uint16_t>)(device, x, copy, to, stream);
}

}  // namespace

GemmProblem launch_aligned_copies(const Device &device, const GemmProblem &p,
                                  const AlignedCopies &copies, void *workspace,
                                  mp_stream_t stream) {
  GemmProblem copied = p;
  std::byte *to = static_cast<std::byte *>(workspace);
  const auto make = [&](Operand &x, const AlignedCopy &copy) {
    if (copy.bytes == 0) return;
    copy_operand(device, x, copy, to, stream);
    x = {to, nullptr, copy.ld, x.stride != 0 ? copy.rows * copy.ld : 0};
    to += copy.bytes;
  };
  make(copied.a, copies.a);
  make(copied.b, copies.b);
  return copied;
}

}  // namespace mp::MP_TARGET
