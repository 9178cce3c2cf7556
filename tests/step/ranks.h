// Several ranks in one process: threads with a communicator between them.
//
// Catch2 assertions are not thread-safe, so the rank threads make only library calls; their
// operands are created and checked outside of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "step_fixtures.h"
#include "support/thread_comm.h"

namespace mptest {

/// Makes one call on all ranks concurrently; each must succeed.
void on_all_ranks(int count, const std::function<mp_status_t(int, const mp_comm_t &)> &call);

/// Communicator that records the library's calls instead of communicating.
class RecordedComm {
 public:
  std::vector<std::string> calls;  ///< one line per callback
  /// Prefix of the line whose callback fails with `code`.
  std::string failing = "none";
  int code = 0;

  mp_comm_t table();

 private:
  int note(const std::string &line);
  static int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                        mp_reduce_op_t op, mp_stream_t stream, void *user);
};

}  // namespace mptest
