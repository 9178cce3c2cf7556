// Checks and calls the caller's table of collectives (mpcore/comm.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "capi/check.h"
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
