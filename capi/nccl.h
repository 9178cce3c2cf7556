// Declarations of NCCL for mp_comm_init_nccl: NCCL is loaded at run time and not required to build.
//
// tests/step/test_comm_nccl.cpp compares all declarations with nccl.h if it is installed.
// Source: NCCL User Guide, "NCCL API", version 2.10 (the first with bf16) or newer.
#pragma once

#include <cstddef>

#include "mpcore.h"

namespace mp::nccl {

using Result = int;  // ncclResult_t; 0 is success
using Comm = struct ncclComm *;

enum DataType : int { kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9 };
enum RedOp : int { kSum = 0, kMax = 2 };

struct Functions {
  Result (*comm_count)(Comm, int *count);
  Result (*comm_user_rank)(Comm, int *rank);
  Result (*all_reduce)(const void *send, void *recv, size_t count, DataType, RedOp, Comm,
                       mp_stream_t);
  Result (*group_start)();
  Result (*group_end)();
};

}  // namespace mp::nccl
