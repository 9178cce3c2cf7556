// wgmma: a warpgroup (128 threads) multiplies m64nNk16 tiles in smem; sm_90a only.
//
//   wgmma_fence();                               // the registers of d are ready for wgmma
//   wgmma<T, kN, a, b>(d, a_desc, b_desc, ...);  // any number
//   wgmma_commit();                              // makes them one group
//   wgmma_wait<0>();                             // d can be read, A and B can be overwritten
//
// The four warps of a warpgroup make these calls converged, with equal operands.  Between the fence
// and the wait that covers it, no other code may access d.
//
// Accumulators: thread t of the warpgroup, with w = t / 32 and l = t % 32, holds
//   d[4 j + 2 h + c]  =  D[16 w + 8 h + l / 4][8 j + 2 (l % 4) + c],   h, c in {0, 1}
//
// Operands are A[m][k] and B[n][k], 16 k at a time, with the 128-byte swizzle: in atoms of 8 rows.
// A row has 128 bytes and runs along k (Major::k) or along m or n (Major::mn).
//
//              atom                  leading_bytes                 stride_bytes
//   Major::k   8 m|n x 64 k          ignored                       from 8 m|n to the next
//   Major::mn  64 m|n x 8 k          from 64 m|n to the next       from 8 k to the next
//
// The swizzle permutes 16-byte units by the bits of their smem address, so an atom starts at a
// multiple of 1024.
//
// Sources: PTX ISA, Asynchronous Warpgroup Level Matrix Instructions; CUTLASS,
// include/cute/atom/mma_traits_sm90_gmma.hpp and include/cute/arch/mma_sm90_desc.hpp.
#pragma once

#include "kernels/simt/sm90_barrier.h"

#if !MP_ON_CUDA
#include "host/wgmma.h"
#endif

namespace mp::MP_TARGET {

enum class Major { k, mn };

/// Shared memory matrix descriptor of one operand, with base offset 0.
MP_HD constexpr uint64_t wgmma_descriptor(SmemAddress start, uint32_t leading_bytes,
                                          uint32_t stride_bytes) {
  constexpr uint64_t kSwizzle128 = 1;
  const auto field = [](uint32_t bytes) { return static_cast<uint64_t>((bytes & 0x3FFFF) >> 4); };
  return field(start) | field(leading_bytes) << 16 | field(stride_bytes) << 32 | kSwizzle128 << 62;
}
/// Returns the descriptor advanced by `bytes`, a multiple of 16.  One addition to the low word
/// suffices: no smem is large enough for the address to overflow its field.
MP_HD constexpr uint64_t wgmma_advance(uint64_t descriptor, uint32_t bytes) {
  return descriptor >> 32 << 32 | (static_cast<uint32_t>(descriptor) + (bytes >> 4));
}

/// False if the target architecture has no wgmma.  Selection never launches a wgmma kernel there,
/// so its body is left empty.
template <size_t kSmemBytes>
MP_HD constexpr bool wgmma_supported();

/// The supported values of n.
template <int kN>
constexpr bool kIsWgmmaN = kN == 16 || kN == 32 || kN == 64 || kN == 128 || kN == 192 || kN == 256;

#if MP_ON_CUDA

template <size_t kSmemBytes>
MP_HD constexpr bool wgmma_supported() {
  return MP_SM90A_CODE;
}

// Register lists: "%0, ... %(N-1)" for the text, d[0] ... d[N-1] for the operands.
#define MP_TEN(t) \
  "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7, %" t "8, %" t "9, "
#define MP_TEXT8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define MP_TEXT16 MP_TEN("") "%10, %11, %12, %13, %14, %15"
#define MP_TEXT32 MP_TEN("") MP_TEN("1") MP_TEN("2") "%30, %31"
#define MP_TEXT64                                                    \
  MP_TEXT32 ", %32, %33, %34, %35, %36, %37, %38, %39, " MP_TEN("4") \
      MP_TEN("5") "%60, %61, %62, %63"
#define MP_TEXT96                                          \
  MP_TEXT64 ", %64, %65, %66, %67, %68, %69, " MP_TEN("7") \
      MP_TEN("8") "%90, %91, %92, %93, %94, %95"
#define MP_TEXT128                                \
  MP_TEXT96 ", %96, %97, %98, %99, " MP_TEN("10") \
      MP_TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127"
#define MP_LIST8(i)                                                                           \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define MP_LIST16(i) MP_LIST8(i), MP_LIST8(i + 8)
#define MP_LIST32(i) MP_LIST16(i), MP_LIST16(i + 16)
#define MP_LIST64 MP_LIST32(0), MP_LIST32(32)
#define MP_LIST96 MP_LIST64, MP_LIST32(64)
#define MP_LIST128 MP_LIST96, MP_LIST32(96)
// a, b: descriptors; p: accumulate; ta, tb: majors.
#define MP_WGMMA(n, type, list, text, a, b, p, ta, tb)                                          \
  asm volatile("{.reg .pred p; setp.ne.b32 p, " p                                               \
               ", 0;\n"                                                                         \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" text "}, " a \
               ", " b ", p, 1, 1, " ta ", " tb ";}"                                             \
               : list                                                                           \
               : "l"(a_desc), "l"(b_desc), "r"(static_cast<int>(accumulate)),                   \
                 "n"(static_cast<int>(a_major)), "n"(static_cast<int>(b_major)))
#define MP_WGMMA_N(type)                                                              \
  if constexpr (kN == 16)                                                             \
    MP_WGMMA("16", type, MP_LIST8(0), MP_TEXT8, "%8", "%9", "%10", "%11", "%12");     \
  else if constexpr (kN == 32)                                                        \
    MP_WGMMA("32", type, MP_LIST16(0), MP_TEXT16, "%16", "%17", "%18", "%19", "%20"); \
  else if constexpr (kN == 64)                                                        \
    MP_WGMMA("64", type, MP_LIST32(0), MP_TEXT32, "%32", "%33", "%34", "%35", "%36"); \
  else if constexpr (kN == 128)                                                       \
    MP_WGMMA("128", type, MP_LIST64, MP_TEXT64, "%64", "%65", "%66", "%67", "%68");   \
  else if constexpr (kN == 192)                                                       \
    MP_WGMMA("192", type, MP_LIST96, MP_TEXT96, "%96", "%97", "%98", "%99", "%100");  \
  else                                                                                \
    MP_WGMMA("256", type, MP_LIST128, MP_TEXT128, "%128", "%129", "%130", "%131", "%132")

/// d = A B^T, or d += A B^T if `accumulate`.  T is half or bf16.
template <class T, int kN, Major a_major, Major b_major>
MP_DEVICE void wgmma(float (&d)[kN / 2], uint64_t a_desc, uint64_t b_desc, bool accumulate) {
  static_assert(kIsWgmmaN<kN> && kFloatType<T>.bytes == 2);
#define MP_WGMMA_OF(Type, type, ...)       \
  if constexpr (std::is_same_v<T, Type>) { \
    MP_WGMMA_N(type);                      \
  }
  MP_HALF_TYPES(MP_WGMMA_OF)
#undef MP_WGMMA_OF
}

#undef MP_TEN
#undef MP_TEXT8
#undef MP_TEXT16
#undef MP_TEXT32
#undef MP_TEXT64
#undef MP_TEXT96
#undef MP_TEXT128
#undef MP_LIST8
#undef MP_LIST16
#undef MP_LIST32
#undef MP_LIST64
#undef MP_LIST96
#undef MP_LIST128
#undef MP_WGMMA
#undef MP_WGMMA_N

/// Orders earlier accesses to registers of accumulators (and of A) before later wgmmas.
MP_DEVICE void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// Commits the wgmmas since the last commit as one group.
MP_DEVICE void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until all but the newest `kPending` groups have completed.
template <int kPending>
MP_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Compiler barrier: uses of d are not moved across it.
template <int kRegs>
MP_DEVICE void fence_accumulators(float (&d)[kRegs]) {
  MP_UNROLL
  for (int i = 0; i < kRegs; i++) asm volatile("" : "+f"(d[i])::"memory");
}

/// Copies an accumulator.  The compiler never merges copies with different tags into one indexed
/// copy, for which ptxas would place accumulators in local memory and serialize the wgmmas.
template <int kTag>
MP_DEVICE float wgmma_copy(float from) {
  float to;
  asm volatile("mov.f32 %0, %1;  // %2" : "=f"(to) : "f"(from), "n"(kTag));
  return to;
}

/// setmaxnreg.inc: raises every thread of the warpgroup to kRegs registers, not fewer than before.
/// Waits until other warpgroups have released enough.
template <int kRegs>
MP_DEVICE void registers_claim() {
  static_assert(kRegs >= 24 && kRegs <= 256 && kRegs % 8 == 0);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegs));
}
/// setmaxnreg.dec: lowers every thread of the warpgroup to kRegs registers, not more than before.
template <int kRegs>
MP_DEVICE void registers_release() {
  static_assert(kRegs >= 24 && kRegs <= 256 && kRegs % 8 == 0);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegs));
}

/// stmatrix: stores four 8x8 matrices of 16-bit elements.  r[i] of lane l holds row l / 4, columns
/// 2 (l % 4) and 2 (l % 4) + 1 of matrix i.
/// @param row_of  (i): 16-byte aligned address of row i % 8 of matrix i / 8; the same function in
///                all lanes
template <class RowOf>
MP_DEVICE void store_matrix_x4(const RowOf &row_of, const uint32_t (&r)[4]) {
  const SmemAddress row = row_of(lane_index());
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

/// ldmatrix: loads what store_matrix_x4 stores, from the same addresses to the same registers.
template <class RowOf>
MP_DEVICE void load_matrix_x4(const RowOf &row_of, uint32_t (&r)[4]) {
  const SmemAddress row = row_of(lane_index());
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

#else

template <size_t kSmemBytes>
MP_HD constexpr bool wgmma_supported() {
  return kSmemBytes <= engine::kSmemBytes;
}

template <class T, int kN, Major a_major, Major b_major>
void wgmma(float (&d)[kN / 2], uint64_t a_desc, uint64_t b_desc, bool accumulate,
           source_location where = source_location::current()) {
  static_assert(kIsWgmmaN<kN>);
  engine::wgmma_issue(engine::this_thread(),
                      {a_desc, b_desc, kN, kFloatType<T>.dtype, a_major == Major::mn,
                       b_major == Major::mn, accumulate},
                      d, where);
}
inline void wgmma_fence() {}
inline void wgmma_commit() {
  engine::wgmma_commit(engine::this_thread());
}
template <int kPending>
void wgmma_wait(source_location where = source_location::current()) {
  engine::wgmma_wait(engine::this_thread(), kPending, where);
}
template <int kRegs>
void fence_accumulators(float (&)[kRegs]) {}
template <int kTag>
float wgmma_copy(float from) {
  return from;
}

template <int kRegs>
void registers_claim() {}
template <int kRegs>
void registers_release() {}

namespace engine {

/// Returns this lane's two elements of a row of a matrix.  As in mma.h, stmatrix and ldmatrix do
/// not wait for other lanes on the host.
inline uint32_t &matrix_word(SmemAddress row, const char *primitive, source_location where) {
  return reinterpret_cast<uint32_t *>(smem_at(row, 16, primitive, where))[lane_index() % 4];
}

}  // namespace engine

template <class RowOf>
void store_matrix_x4(const RowOf &row_of, const uint32_t (&r)[4],
                     source_location where = source_location::current()) {
  for (int i = 0; i < 4; i++)
    engine::matrix_word(row_of(8 * i + lane_index() / 4), "store_matrix_x4", where) = r[i];
}
template <class RowOf>
void load_matrix_x4(const RowOf &row_of, uint32_t (&r)[4],
                    source_location where = source_location::current()) {
  for (int i = 0; i < 4; i++)
    r[i] = engine::matrix_word(row_of(8 * i + lane_index() / 4), "load_matrix_x4", where);
}

#endif

}  // namespace mp::MP_TARGET
