// The caller's table of collectives (mpcore/comm.h), checked and called.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capi/check.h"
#include "mpcore.h"

namespace mp {

/// A copy of the table that can be called.
mp_comm_t read_comm(const mp_comm_t *user);

/// data = data of all ranks combined.
struct Reduction {
  void *data;
  int64_t count;
  mp_dtype_t dtype;
  mp_reduce_op_t op;
};

void all_reduce(const mp_comm_t &comm, const Reduction &reduction, mp_stream_t stream);

/// Some of them, of a table whose callbacks may want to know where they begin and end.
class ReductionGroup {
 public:
  explicit ReductionGroup(const mp_comm_t &comm);
  ReductionGroup(const ReductionGroup &) = delete;
  ReductionGroup &operator=(const ReductionGroup &) = delete;
  /// A library left within a group would not run anything ever after.
  ~ReductionGroup();

  void end();

 private:
  const mp_comm_t &comm_;
  bool has_ended_ = false;
};

}  // namespace mp
