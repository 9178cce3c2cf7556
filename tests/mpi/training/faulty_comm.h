// A callback table that fails once.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <csignal>

#include "mpcore.h"
#include "options.h"

namespace mptest {

class FaultyComm {
 public:
  explicit FaultyComm(const mp_comm_t &inner) : inner_(inner), table_(inner) {
    table_.all_reduce = all_reduce;
    table_.user = this;
  }
  FaultyComm(const FaultyComm &) = delete;
  FaultyComm &operator=(const FaultyComm &) = delete;

  const mp_comm_t &table() const { return table_; }

  /// Sets the fault of the next step, usually of kind kNone.
  void begin_step(const Fault &fault) {
    fault_ = fault;
    calls_ = 0;
  }

 private:
  static int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                        mp_reduce_op_t op, mp_stream_t stream, void *user) {
    FaultyComm &self = *static_cast<FaultyComm *>(user);
    const bool is_now = ++self.calls_ == self.fault_.callback;
    const Fault::Kind kind = is_now ? self.fault_.kind : Fault::kNone;
    if (kind == Fault::kFailsBefore) return MPI_ERR_OTHER;
    if (kind == Fault::kExits) _exit(3);
    if (kind == Fault::kKilled) (void)std::raise(SIGKILL);
    const mp_comm_t &inner = self.inner_;
    const int code = inner.all_reduce(send, recv, count, dtype, op, stream, inner.user);
    return kind == Fault::kFailsAfter ? MPI_ERR_OTHER : code;
  }

  mp_comm_t inner_, table_;
  Fault fault_;
  int calls_ = 0;
};

}  // namespace mptest
