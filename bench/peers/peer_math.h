// Precision in which NVIDIA's libraries multiply FP32 operands.
#pragma once

namespace mpbench {

/// kTf32 allows a library to round FP32 operands to TF32, for tensor cores; kFp32 does not.
enum class PeerMath { kFp32, kTf32 };

/// Architecture number in the format of mp_device_info.
constexpr int kFirstArchWithTf32 = 80;

}  // namespace mpbench
