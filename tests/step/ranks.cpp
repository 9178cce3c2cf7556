#include "ranks.h"

#include <thread>

namespace mptest {

void on_all_ranks(int count, const std::function<mp_status_t(int, const mp_comm_t &)> &call) {
  mptools::ThreadRanks ranks(count);
  std::vector<mp_status_t> statuses(static_cast<size_t>(count));
  std::vector<std::string> sentences(statuses.size());
  std::vector<std::thread> threads;
  const mp_context_t shared = context();
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      const size_t i = static_cast<size_t>(rank);
      statuses[i] = call(rank, ranks.comm(rank, shared));
      sentences[i] = mp_last_error();
      if (statuses[i] != MP_SUCCESS) ranks.give_up();
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (size_t i = 0; i < statuses.size(); ++i) {
    INFO("rank " << i << " of " << count << ": " << sentences[i]);
    REQUIRE(statuses[i] == MP_SUCCESS);
  }
}

mp_comm_t RecordedComm::table() {
  mp_comm_t comm = mp_comm_default();
  comm.world_size = 2;
  comm.all_reduce = all_reduce;
  comm.group_begin = [](void *user) {
    return static_cast<RecordedComm *>(user)->note("group_begin");
  };
  comm.group_end = [](void *user) { return static_cast<RecordedComm *>(user)->note("group_end"); };
  comm.user = this;
  return comm;
}

int RecordedComm::note(const std::string &line) {
  calls.push_back(line);
  return line.starts_with(failing) ? code : 0;
}

int RecordedComm::all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                             mp_reduce_op_t op, mp_stream_t, void *user) {
  return static_cast<RecordedComm *>(user)->note(
      format("all_reduce %s%zu of type %d, %s", send == recv ? "" : "not in place, ", count,
             static_cast<int>(dtype), op == MP_REDUCE_SUM ? "sum" : "max"));
}

}  // namespace mptest
