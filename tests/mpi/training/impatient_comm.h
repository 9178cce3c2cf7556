// An MPI callback table with timeouts: a rank that waits in vain gets an error.  Its MPI call
// cannot be cancelled and may still write into the tensor, so the program must end.
#pragma once

#include <mpi.h>

#include <chrono>
#include <thread>

#include "mpcore_mpi.h"

namespace mptest {

class ImpatientComm {
 public:
  static constexpr int kGaveUp = 1000000;  ///< not an error code of MPI

  explicit ImpatientComm(const mp_mpi_t &mpi) : mpi_(mpi) {}

  mp_comm_t table(mp_comm_t comm) {
    comm.all_reduce = all_reduce;
    comm.user = this;
    return comm;
  }
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

 private:
  static int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                        mp_reduce_op_t op, mp_stream_t, void *user) {
    const ImpatientComm &self = *static_cast<ImpatientComm *>(user);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        MPI_Iallreduce(send == recv ? MPI_IN_PLACE : send, recv, static_cast<int>(count),
                       type(dtype), self.operation(dtype, op), self.mpi_.comm, &request);
    return code != MPI_SUCCESS ? code : self.wait(request);
  }

  int wait(MPI_Request request) const {
    const auto end = std::chrono::steady_clock::now() + patience_;
    while (true) {
      int is_done = 0;
      const int code = MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS || is_done != 0) return code;
      if (std::chrono::steady_clock::now() > end) return kGaveUp;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  static MPI_Datatype type(mp_dtype_t dtype) { return dtype == MP_FP32 ? MPI_FLOAT : MPI_UINT16_T; }
  MPI_Op operation(mp_dtype_t dtype, mp_reduce_op_t op) const {
    const bool is_max = op == MP_REDUCE_MAX;
    if (dtype == MP_FP32) return is_max ? MPI_MAX : MPI_SUM;
    if (dtype == MP_FP16) return is_max ? mpi_.max_fp16 : mpi_.sum_fp16;
    return is_max ? mpi_.max_bf16 : mpi_.sum_bf16;
  }

  const mp_mpi_t &mpi_;
  std::chrono::milliseconds patience_ = std::chrono::minutes(1);
};

}  // namespace mptest
