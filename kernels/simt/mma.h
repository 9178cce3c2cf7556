// mma.sync: a warp multiplies 16x16 by 16x8 on tensor cores, FP16 or BF16 operands, FP32
// accumulators.  The assignment of elements to lanes is documented, so accumulators can be changed
// element by element and become operands of the next product without shared memory.
//
// With g = lane / 4 and t = lane % 4, lane holds these elements (PTX ISA, Matrix Fragments for
// mma.m16n8k16):
//
//     A, 16 x 16 (row, k)      pair 0: row g, k 2t and 2t + 1      pair 1: row g + 8
//                              pairs 2, 3: the same with k + 8
//     B, 16 x 8 (k, column)    pair 0: k 2t and 2t + 1, column g   pair 1: k + 8
//     C, 16 x 8 (row, column)  elements 0, 1: row g, columns 2t and 2t + 1
//                              elements 2, 3: row g + 8
//
// ldmatrix loads four 8 x 8 matrices with rows of 16 bytes, and gives each lane two elements of
// each.  They are one A, or the B of two adjacent groups of 8 columns.
//
// On the host, a load reads the elements of its lane, without other lanes.  Products are executed
// as in wmma.h: a lane waits only when it uses an accumulator.
#pragma once

#include "kernels/simt/vector.h"
#include "kernels/simt/wmma.h"

namespace mp::MP_TARGET::mma {

constexpr int kRows = 16, kDepth = 16, kColumns = 8;  ///< m, k and n of one product
constexpr int kUnit = 8;                              ///< elements of a row of 16 bytes

/// Returns the first row, and the first of two columns of a C fragment, of this lane.
MP_DEVICE int fragment_row() {
  return lane_index() / 4;
}
MP_DEVICE int fragment_column() {
  return lane_index() % 4 * 2;
}

/// False if the target architecture lacks such products or that much shared memory.
template <class T, size_t kSmemBytes>
MP_HD constexpr bool supported() {
#if MP_ON_CUDA && defined(__CUDA_ARCH__)
  return __CUDA_ARCH__ >= 750 && wmma::supported<T, kSmemBytes>();
#else
  return wmma::supported<T, kSmemBytes>();
#endif
}

#if MP_ON_CUDA

template <class T>
struct Pairs {
  uint32_t words[4];

  MP_DEVICE void set(int pair, float low, float high) { words[pair] = pack_pair<T>(low, high); }
};

struct Accumulator {
  float x[4];

  MP_DEVICE float &operator[](int i) { return x[i]; }
  MP_DEVICE float operator[](int i) const { return x[i]; }
};

/// Loads four matrices.
/// @param lane    lane_index(), which the caller may have pinned to a register
/// @param row_of  (i): address of row i % 8 of matrix i / 8; the same function in all lanes
template <class T, class RowOf>
MP_DEVICE void load(Pairs<T> &pairs, int lane, const RowOf &row_of) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row_of(lane)));
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 750
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pairs.words[0]), "=r"(pairs.words[1]), "=r"(pairs.words[2]),
                 "=r"(pairs.words[3])
               : "r"(address)
               : "memory");
#endif
}
/// Same, with each matrix transposed.
template <class T, class RowOf>
MP_DEVICE void load_transposed(Pairs<T> &pairs, int lane, const RowOf &row_of) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row_of(lane)));
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 750
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pairs.words[0]), "=r"(pairs.words[1]), "=r"(pairs.words[2]),
                 "=r"(pairs.words[3])
               : "r"(address)
               : "memory");
#endif
}

/// Stores two elements to an address in smem that is 4-byte aligned.
template <class T>
MP_DEVICE void store_pair(T *smem, float low, float high) {
  *reinterpret_cast<uint32_t *>(smem) = pack_pair<T>(low, high);
}

/// c += a b, where b is the first (0) or second (1) B of `pairs_b`.
template <class T>
MP_DEVICE void multiply_add(Accumulator &c, const Pairs<T> &a, const Pairs<T> &pairs_b, int which) {
  const uint32_t *const b = pairs_b.words + 2 * which;
#define MP_MMA(shape, type, registers_a, ...)                              \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type     \
               ".f32 {%0, %1, %2, %3}, " registers_a ", {%0, %1, %2, %3};" \
               : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])    \
               : __VA_ARGS__)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define MP_MMA_OF(Type, type, ...)                                                           \
  if constexpr (std::is_same_v<T, Type>)                                                     \
    MP_MMA("m16n8k16", type, "{%4, %5, %6, %7}, {%8, %9}", "r"(a.words[0]), "r"(a.words[1]), \
           "r"(a.words[2]), "r"(a.words[3]), "r"(b[0]), "r"(b[1]));
  MP_HALF_TYPES(MP_MMA_OF)
#undef MP_MMA_OF
#elif __CUDA_ARCH__ >= 750
  static_assert(std::is_same_v<T, half>);
  MP_MMA("m16n8k8", "f16", "{%4, %5}, {%6}", "r"(a.words[0]), "r"(a.words[1]), "r"(b[0]));
  MP_MMA("m16n8k8", "f16", "{%4, %5}, {%6}", "r"(a.words[2]), "r"(a.words[3]), "r"(b[1]));
#endif
#undef MP_MMA
}

#else

/// The destructor waits, because pairs must not go out of scope while a product still reads them.
template <class T>
struct Pairs {
  float x[4][2];

  Pairs() = default;
  Pairs(const Pairs &) = delete;
  Pairs &operator=(const Pairs &) = delete;
  ~Pairs() { wmma::settle(); }

  void set(int pair, float low, float high) {
    wmma::settle();
    x[pair][0] = to_float(round_to<T>(low));
    x[pair][1] = to_float(round_to<T>(high));
  }
};

class Accumulator {
 public:
  Accumulator() = default;
  Accumulator(const Accumulator &) = delete;
  Accumulator &operator=(const Accumulator &) = delete;
  ~Accumulator() { wmma::settle(); }

  float &operator[](int i) {
    wmma::settle();
    return x[i];
  }
  float operator[](int i) const {
    wmma::settle();
    return x[i];
  }

  float x[4];
};

template <class T, class RowOf>
void load(Pairs<T> &pairs, int, const RowOf &row_of) {
  wmma::settle();
  for (int matrix = 0; matrix < 4; matrix++) {
    const T *const row = row_of(8 * matrix + fragment_row());
    for (int i = 0; i < 2; i++) pairs.x[matrix][i] = to_float(row[fragment_column() + i]);
  }
}
template <class T, class RowOf>
void load_transposed(Pairs<T> &pairs, int, const RowOf &row_of) {
  wmma::settle();
  for (int matrix = 0; matrix < 4; matrix++)
    for (int i = 0; i < 2; i++) {
      const T *const row = row_of(8 * matrix + fragment_column() + i);
      pairs.x[matrix][i] = to_float(row[fragment_row()]);
    }
}

template <class T>
void store_pair(T *smem, float low, float high) {
  smem[0] = round_to<T>(low);
  smem[1] = round_to<T>(high);
}

/// c += a b for one warp, in order of k.
inline void multiply_fragments(const engine::MmaSlot &slot) {
  float b[kDepth][kColumns];
  for (int lane = 0; lane < kWarpSize; lane++)
    for (int i = 0; i < 4; i++) b[i / 2 * 8 + lane % 4 * 2 + i % 2][lane / 4] = slot.b[lane][i];
  for (int row = 0; row < kRows; row++) {
    const int first = row % 8 * 4, half = row / 8 * 2;  // four lanes share a row
    float a[kDepth], sums[kColumns];
    for (int t = 0; t < 4; t++)
      for (int i = 0; i < 2; i++) {
        a[2 * t + i] = slot.a[first + t][half + i];
        a[8 + 2 * t + i] = slot.a[first + t][4 + half + i];
        sums[2 * t + i] = slot.d[first + t][half + i];
      }
    for (int k = 0; k < kDepth; k++)
      for (int c = 0; c < kColumns; c++) sums[c] = std::fma(a[k], b[k][c], sums[c]);
    for (int t = 0; t < 4; t++)
      for (int i = 0; i < 2; i++) slot.d[first + t][half + i] = sums[2 * t + i];
  }
}

template <class T>
void multiply_add(Accumulator &c, const Pairs<T> &a, const Pairs<T> &b, int which,
                  source_location where = source_location::current()) {
  const auto put = [&](engine::MmaSlot &slot, int lane) {
    slot.d[lane] = c.x;
    slot.a[lane] = a.x[0];
    slot.b[lane] = b.x[2 * which];
  };
  wmma::issue(put, multiply_fragments, where);
}

#endif

}  // namespace mp::MP_TARGET::mma
