// Another implementation of an operation of mpcore, ready for one problem.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace mpbench {

/// Pointer arrays in device memory, one pointer for each matrix of a batch.
struct ItemPointers {
  const void *const *first = nullptr;
  const void *const *second = nullptr;
  void *const *out = nullptr;
};

/// Further inputs and outputs of a GEMM epilogue; NULL = absent.
struct EpilogueTensors {
  void *aux = nullptr;         ///< same shape and type as D
  const void *bias = nullptr;  ///< a row of D
  float *dbias = nullptr;      ///< a row of floats
  float *amax = nullptr;       ///< 1 float
  float *found_inf = nullptr;  ///< 1 float
};

/// Precision in which a library multiplies FP32 operands; kTf32 allows it to round them to TF32,
/// for tensor cores.
enum class PeerMath { kFp32, kTf32 };

/// Architecture number in the format of mp_device_info.
constexpr int kFirstArchWithTf32 = 80;

/// Device matrices or tensors of one call, in the order of mpcore's arguments.
struct Operands {
  const void *first, *second;
  void *out;
  EpilogueTensors epilogue = {};
  ItemPointers items = {};
};

/// Bytes of device memory in addition to the operands.
struct PeerWorkspace {
  int64_t limit;  ///< allowed size
  int64_t used;   ///< size that the algorithm requires; -1 = unknown
};

/// A call by one algorithm of another library.
struct PeerCall {
  PeerWorkspace workspace;
  /// Enqueues the call on the machine's stream.
  std::function<void(const Operands &)> enqueue;
};
/// The algorithms of a library for a problem, its default first.
using PeerCalls = std::vector<PeerCall>;

}  // namespace mpbench
