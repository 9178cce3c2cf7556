// Utilities of the cases: device memory, and launches that wait for the kernel.
//
// A case is a function of the device, compiled once per target like the kernels.  It launches small
// kernels, each for one primitive, on integers that are exact in every type, and returns all their
// outputs with the required ones.  With Mistake::made it contains a typical bug of the primitive's
// use; its output must then differ.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "base/target_error.h"
#include "kernels/simt/device.h"
#include "kernels/simt/sm90_tma.h"
#include "kernels/simt/sm90_wgmma.h"
#include "kernels/simt/vector.h"
#include "kernels/simt/wmma.h"
#include "outputs.h"
#include "tests/support/numeric.h"

namespace mpconform {

/// Initial value of every byte of memory.
constexpr int kUntouched = 0x5A;

}  // namespace mpconform

namespace mp::MP_TARGET {

using mpconform::make_part;
using mpconform::Mistake;
using mpconform::Output;

template <class T>
class Memory {
 public:
  Memory(const Device &device, const std::vector<T> &values) : Memory(device, values.size()) {
    copy(device_, data_, values.data(), values.size() * sizeof(T), nullptr);
    synchronize(device_, nullptr);
  }
  Memory(const Device &device, size_t count)
      : device_(device),
        data_(static_cast<T *>(allocate(device, count * sizeof(T)))),
        count_(count) {
    fill(device_, data_, mpconform::kUntouched, count * sizeof(T), nullptr);
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() {
    try {
      release(device_, data_);
    } catch (const TargetError &) {  // the fault was already reported by the launch
    }
  }

  T *data() const { return data_; }
  std::vector<T> download() const {
    std::vector<T> values(count_);
    copy(device_, values.data(), data_, count_ * sizeof(T), nullptr);
    synchronize(device_, nullptr);
    return values;
  }

 private:
  const Device &device_;
  T *data_;
  size_t count_;
};

/// Returns an integer of magnitude at most 2^8, exact in every type; for host code.
template <class T>
T small_integer(int value) {
  return {static_cast<uint16_t>(mptest::encode(kFloatType<T>.dtype, value))};
}

/// Launches a kernel and waits for it.
template <class Argument>
void run(const Device &device, const char *name, void (*kernel)(MP_PARAM(Argument)),
         const LaunchShape &shape, const std::type_identity_t<Argument> &argument) {
  launch(name, kernel, device, shape, nullptr, argument);
  synchronize(device, nullptr);
}

/// Returns whether the architecture being compiled for has TMA, clusters and wgmma.
MP_HD constexpr bool has_sm90() {
  return wgmma_supported<0>();
}

constexpr int kSwizzlePeriodBytes = 1024;

/// Returns the first address of dynamic shared memory that is a multiple of 1024 bytes.
MP_DEVICE unsigned char *aligned_smem() {
  MP_DYN_SHARED(unsigned char, smem);
  const SmemAddress address = smem_address(smem);
  return smem + (kSwizzlePeriodBytes - address % kSwizzlePeriodBytes) % kSwizzlePeriodBytes;
}

/// Copies between shared and global memory; called by all threads of a block.  Addresses and
/// `bytes` must be multiples of 16.
MP_DEVICE void copy_pieces(unsigned char *to, const unsigned char *from, int bytes,
                           int num_threads) {
  using Piece = Pack<uint32_t, 4>;
  constexpr int kPieceBytes = sizeof(Piece);
  for (int at = thread_index() * kPieceBytes; at < bytes; at += num_threads * kPieceBytes)
    *reinterpret_cast<Piece *>(to + at) = *reinterpret_cast<const Piece *>(from + at);
}

}  // namespace mp::MP_TARGET
