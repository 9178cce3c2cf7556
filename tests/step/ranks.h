// Several ranks in one process: threads of this one, with a communicator between them.
//
// Catch2 belongs to one thread, so the ranks only make calls of the library; what they work on is
// made, and looked at afterwards, outside of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "step_fixtures.h"
#include "support/thread_comm.h"

namespace mptest {

/// One call on every rank at the same time; each must succeed.
void on_all_ranks(int count, const std::function<mp_status_t(int, const mp_comm_t &)> &call);

/// Without communication: what the library asks for is written down.
class RecordedComm {
 public:
  /// One line per callback.
  std::vector<std::string> calls;
  /// The callback whose line begins with this fails with this code.
  std::string failing = "none";
  int code = 0;

  mp_comm_t table();

 private:
  int note(const std::string &line);
  static int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                        mp_reduce_op_t op, mp_stream_t stream, void *user);
};

}  // namespace mptest
