// WMMA: a warp multiplies 16x16x16 tiles on tensor cores, FP16 or BF16 operands, FP32 accumulators.
//
// The device bodies are the nvcuda::wmma API (CUDA C++ Programming Guide, Warp Matrix Functions).
// The assignment of elements to lanes is unspecified.  Addresses of fragments in smem must be
// 32-byte aligned, ld a multiple of 8 (16-bit) or 4 (fp32) elements.
//
// On the host, lane l holds row l / 2, columns 8 (l % 2) to 8 (l % 2) + 7 of every fragment as
// fp32, so loads and stores need no other lane.  multiply_add does not block: the last lane that
// issues the n-th multiply of its warp executes it.  A lane waits only when it uses a fragment
// again.
#pragma once

#include "kernels/simt/simt.h"

#if MP_ON_CUDA
#include <mma.h>
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace mp::MP_TARGET::wmma {

constexpr int kTile = 16;  ///< m, n and k of one mma_sync

enum class Layout { row_major, col_major };

/// False if the target architecture lacks such fragments or that much shared memory.  Selection
/// never launches such a kernel there, so its body is left empty.
template <class T, size_t kSmemBytes>
MP_HD constexpr bool supported();

#if MP_ON_CUDA

template <class T, size_t kSmemBytes>
MP_HD constexpr bool supported() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  constexpr size_t kMaxSmem = (__CUDA_ARCH__ < 750 ? 96 : 64) * 1024;  // Volta, Turing
  return kFloatType<T>.tensor_core_arch * 10 <= __CUDA_ARCH__ && kSmemBytes <= kMaxSmem;
#else
  return true;
#endif
}

template <class T>
struct DeviceType;
#define MP_DEVICE_TYPE(Type, name, Device, ...) \
  template <>                                   \
  struct DeviceType<Type> {                     \
    using type = Device;                        \
  };
MP_HALF_TYPES(MP_DEVICE_TYPE)
#undef MP_DEVICE_TYPE

template <Layout layout>
using layout_tag = std::conditional_t<layout == Layout::row_major, nvcuda::wmma::row_major,
                                      nvcuda::wmma::col_major>;

template <class T, Layout layout>
using FragmentA = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kTile, kTile, kTile,
                                         typename DeviceType<T>::type, layout_tag<layout>>;
template <class T, Layout layout>
using FragmentB = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kTile, kTile, kTile,
                                         typename DeviceType<T>::type, layout_tag<layout>>;
using Accumulator = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kTile, kTile, kTile, float>;

template <class Matrix, class Order>
using Bf16Fragment =
    nvcuda::wmma::fragment<Matrix, kTile, kTile, kTile, typename DeviceType<bf16>::type, Order>;

/// load_matrix_sync with an explicit state space (PTX ISA, wmma.load).  For BF16 fragments nvcc
/// 13.0 does not infer shared memory, and emits four generic 32-bit loads instead of one ldmatrix.
template <class Fragment>
MP_DEVICE void load_bf16(Fragment &fragment, const bf16 *smem, int ld) {
  static_assert(sizeof fragment.x == 16);
  auto &words = reinterpret_cast<uint32_t(&)[4]>(fragment.x);
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
#define MP_LOAD(matrix, order)                                                       \
  if constexpr (std::is_same_v<Fragment, Bf16Fragment<nvcuda::wmma::matrix_##matrix, \
                                                      nvcuda::wmma::order##_major>>) \
  asm volatile("wmma.load." #matrix ".sync.aligned." #order                          \
               ".m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"                  \
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])      \
               : "r"(address), "r"(ld)                                               \
               : "memory")
  MP_LOAD(a, row);
  MP_LOAD(a, col);
  MP_LOAD(b, row);
  MP_LOAD(b, col);
#undef MP_LOAD
}

template <class Fragment, class T>
MP_DEVICE void load(Fragment &fragment, const T *smem, int ld) {
  if constexpr (std::is_same_v<T, bf16>)
    load_bf16(fragment, smem, ld);
  else
    nvcuda::wmma::load_matrix_sync(
        fragment, reinterpret_cast<const typename DeviceType<T>::type *>(smem), ld);
}
MP_DEVICE void fill(Accumulator &fragment, float value) {
  nvcuda::wmma::fill_fragment(fragment, value);
}
MP_DEVICE void copy(Accumulator &to, const Accumulator &from) {
  MP_UNROLL
  for (int i = 0; i < Accumulator::num_elements; i++) to.x[i] = from.x[i];
}
/// d = a b + d
template <class A, class B>
MP_DEVICE void multiply_add(Accumulator &d, const A &a, const B &b) {
  nvcuda::wmma::mma_sync(d, a, b, d);
}
MP_DEVICE void store_row_major(float *smem, const Accumulator &fragment, int ld) {
  nvcuda::wmma::store_matrix_sync(smem, fragment, ld, nvcuda::wmma::mem_row_major);
}

#else

template <class T, size_t kSmemBytes>
MP_HD constexpr bool supported() {
  return kSmemBytes <= engine::kSmemBytes;
}

/// Waits until every multiply that this lane issued has been executed.
MP_DEVICE void settle() {
  engine::Thread &thread = engine::this_thread();
  engine::Warp &warp = *thread.warp;
  while (warp.mma_done < thread.mma_issued) {
    warp.mma_waiting |= 1u << thread.lane;
    const engine::MmaSlot &next = warp.mma[warp.mma_done % engine::kMmaSlots];
    engine::block_until_woken(thread, "wmma::multiply_add", next.at);
  }
}

/// The 8 elements of one lane.  The destructor waits, because a fragment must not go out of scope
/// while a multiply still reads it.
struct Lanes8 {
  alignas(32) float x[8];
  Lanes8() = default;
  Lanes8(const Lanes8 &) = delete;
  Lanes8 &operator=(const Lanes8 &) = delete;
  ~Lanes8() { settle(); }
};

template <class T, Layout layout>
struct OperandFragment : Lanes8 {};
template <class T, Layout layout>
using FragmentA = OperandFragment<T, layout>;
template <class T, Layout layout>
using FragmentB = OperandFragment<T, layout>;
struct Accumulator : Lanes8 {};

template <class T>
MP_DEVICE void widen8(float (&out)[8], const T *in) {
#if defined(__F16C__) && defined(__AVX2__)
  _mm256_store_ps(out, to_floats8(in));
#else
  for (int i = 0; i < 8; i++) out[i] = to_float(in[i]);
#endif
}

template <class T, Layout layout>
MP_DEVICE void load(OperandFragment<T, layout> &fragment, const T *smem, int ld) {
  settle();
  const int lane = lane_index(), row = lane / 2, col = lane % 2 * 8;
  if constexpr (layout == Layout::row_major) {
    widen8(fragment.x, smem + row * ld + col);
  } else {
    T column[8];
    for (int i = 0; i < 8; i++) column[i] = smem[(col + i) * ld + row];
    widen8(fragment.x, column);
  }
}
MP_DEVICE void fill(Accumulator &fragment, float value) {
  settle();
  for (float &x : fragment.x) x = value;
}
MP_DEVICE void copy(Accumulator &to, const Accumulator &from) {
  settle();
  std::memcpy(to.x, from.x, sizeof to.x);
}
MP_DEVICE void store_row_major(float *smem, const Accumulator &fragment, int ld) {
  settle();
  const int lane = lane_index();
  std::memcpy(smem + lane / 2 * ld + lane % 2 * 8, fragment.x, sizeof fragment.x);
}

/// d += a b for one warp: 16x16x16, fp32 fused multiply-adds in order of k.
inline void multiply_tile(const engine::MmaSlot &slot) {
#if defined(__AVX2__) && defined(__FMA__)
  constexpr int kRows = 4;  // 8 accumulator registers, 2 of B, 1 broadcast of A
  for (int r0 = 0; r0 < kTile; r0 += kRows) {
    __m256 acc[kRows][2];
    for (int r = 0; r < kRows; r++)
      for (int h = 0; h < 2; h++) acc[r][h] = _mm256_load_ps(slot.d[2 * (r0 + r) + h]);
    for (int k = 0; k < kTile; k++) {
      const __m256 b0 = _mm256_load_ps(slot.b[2 * k]), b1 = _mm256_load_ps(slot.b[2 * k + 1]);
      for (int r = 0; r < kRows; r++) {
        const __m256 a = _mm256_broadcast_ss(slot.a[2 * (r0 + r) + k / 8] + k % 8);
        acc[r][0] = _mm256_fmadd_ps(a, b0, acc[r][0]);
        acc[r][1] = _mm256_fmadd_ps(a, b1, acc[r][1]);
      }
    }
    for (int r = 0; r < kRows; r++)
      for (int h = 0; h < 2; h++) _mm256_store_ps(slot.d[2 * (r0 + r) + h], acc[r][h]);
  }
#else
  for (int row = 0; row < kTile; row++)
    for (int col = 0; col < kTile; col++) {
      float sum = slot.d[2 * row + col / 8][col % 8];
      for (int k = 0; k < kTile; k++)
        sum = std::fma(slot.a[2 * row + k / 8][k % 8], slot.b[2 * k + col / 8][col % 8], sum);
      slot.d[2 * row + col / 8][col % 8] = sum;
    }
#endif
}

/// Adds a multiply to the queue of the warp.  The last lane executes it.
/// @param put      (slot, lane): stores the operands of this lane
/// @param execute  (slot)
template <class Put, class Execute>
MP_DEVICE void issue(const Put &put, const Execute &execute, source_location where) {
  engine::Thread &thread = engine::this_thread();
  engine::Warp &warp = *thread.warp;
  if (thread.mma_issued - warp.mma_done == engine::kMmaSlots) settle();
  engine::MmaSlot &slot = warp.mma[thread.mma_issued % engine::kMmaSlots];
  put(slot, thread.lane);
  thread.mma_issued++;
  if (slot.arrived == 0) slot.at = where;
  slot.arrived |= 1u << thread.lane;
  if (slot.arrived != ~0u) return;
  // Every lane issues in order, so all earlier multiplies of this warp have been executed.
  execute(slot);
  slot.arrived = 0;
  warp.mma_done++;
  if (warp.mma_waiting != 0) engine::wake(warp, std::exchange(warp.mma_waiting, 0u));
}

template <class T, Layout la, Layout lb>
MP_DEVICE void multiply_add(Accumulator &d, const FragmentA<T, la> &a, const FragmentB<T, lb> &b,
                            source_location where = source_location::current()) {
  const auto put = [&](engine::MmaSlot &slot, int lane) {
    slot.d[lane] = d.x;
    slot.a[lane] = a.x;
    slot.b[lane] = b.x;
  };
  issue(put, multiply_tile, where);
}

#endif

}  // namespace mp::MP_TARGET::wmma
