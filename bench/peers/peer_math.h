// The two ways in which NVIDIA's libraries multiply FP32.
#pragma once

namespace mpbench {

/// kTf32 lets a library round FP32 operands to TF32, for tensor cores; kFp32 does not.
enum class PeerMath { kFp32, kTf32 };

/// As in mp_device_info.
constexpr int kFirstArchWithTf32 = 80;

}  // namespace mpbench
