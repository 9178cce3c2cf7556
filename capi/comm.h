// Checks and calls the caller's table of collectives (mpcore/comm.h), and declares NCCL for
// mp_comm_init_nccl.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpcore.h"

namespace mp {

/// Returns a validated copy of the table.
mp_comm_t read_comm(const mp_comm_t *user);

/// In-place reduction of an array over all ranks.
struct Reduction {
  void *data;
  int64_t count;
  mp_dtype_t dtype;
  mp_reduce_op_t op;
};

void all_reduce(const mp_comm_t &comm, const Reduction &reduction, mp_stream_t stream);

/// Scope between the group_begin and group_end callbacks.
class ReductionGroup {
 public:
  explicit ReductionGroup(const mp_comm_t &comm);
  ReductionGroup(const ReductionGroup &) = delete;
  ReductionGroup &operator=(const ReductionGroup &) = delete;
  /// Ends the group even after a failure: no collective runs while a group is open.
  ~ReductionGroup();

  void end();

 private:
  const mp_comm_t &comm_;
  bool has_ended_ = false;
};

}  // namespace mp

// Declarations of NCCL, which is loaded at run time and not required to build.
//
// tests/step/test_comm_nccl.cpp compares all declarations with nccl.h if it is installed.
// Source: NCCL User Guide, "NCCL API", version 2.10 (the first with bf16) or newer.
namespace mp::nccl {

using Result = int;  // ncclResult_t; 0 is success
using Comm = struct ncclComm *;

enum RedOp : int { kSum = 0, kMax = 2 };

struct Functions {
  Result (*comm_count)(Comm, int *count);
  Result (*comm_user_rank)(Comm, int *rank);
  Result (*all_reduce)(const void *send, void *recv, size_t count, int data_type, RedOp, Comm,
                       mp_stream_t);
  Result (*group_start)();
  Result (*group_end)();
};

}  // namespace mp::nccl
