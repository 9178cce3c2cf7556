// mpcore/comm.h: collectives through the caller's callbacks, and callbacks that call NCCL.
#include "capi/comm.h"

#include <dlfcn.h>
#include <cmath>

#include "base/lifetime.h"
#include "capi/defaults.h"
#include "capi/nvtx_payload.h"
#include "capi/objects.h"

using namespace mp;

namespace {

/// Runs a callback of the table; fails unless it returns 0.
template <class Callback>
void require_done(const char *name, const Callback &callback) {
  const int code = call_back(name, MP_ERROR_COMM, callback);
  MP_REQUIRE(code == 0, MP_ERROR_COMM, name, " returned ", code);
}

void require_factor(float value, const char *name) {
  MP_REQUIRE(value > 0.0f && std::isfinite(value), MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " must be positive and finite");
}

void multiply(const mp_tensor_list &list, float factor, mp_stream_t stream) {
  const Context &c = *list.context;
  if (factor != 1.0f) c.backend.multiply(c.device, list.device, factor, stream);
}

void sum_over_ranks(const mp_tensor_list &list, const mp_comm_t &comm, mp_stream_t stream) {
  if (comm.world_size == 1) return;
  ReductionGroup group(comm);
  for (size_t t = 0; t < list.data.size(); ++t) {
    if (list.numel[t] == 0) continue;
    all_reduce(comm, {list.data[t], list.numel[t], list.dtype[t], MP_REDUCE_SUM}, stream);
  }
  group.end();
}

}  // namespace

mp_comm_t mp::read_comm(const mp_comm_t *user) {
  const mp_comm_t comm = read_struct(user, "comm");
  require_zero(comm.reserved0, "comm->reserved0");
  require_positive(comm.world_size, "comm->world_size");
  MP_REQUIRE(comm.rank >= 0 && comm.rank < comm.world_size, MP_ERROR_INVALID_ARGUMENT,
             "comm->rank = ", comm.rank, " is outside [0, world_size = ", comm.world_size, ")");
  MP_REQUIRE(comm.world_size == 1 || comm.all_reduce != nullptr, MP_ERROR_INVALID_ARGUMENT,
             "comm->all_reduce = NULL, but world_size = ", comm.world_size, " requires it");
  const bool has_begin = comm.group_begin != nullptr, has_end = comm.group_end != nullptr;
  MP_REQUIRE(has_begin == has_end, MP_ERROR_INVALID_ARGUMENT, "comm->",
             has_begin ? "group_end = NULL, but group_begin" : "group_begin = NULL, but group_end",
             " is set");
  return comm;
}

void mp::all_reduce(const mp_comm_t &comm, const Reduction &reduction, mp_stream_t stream) {
  require_done("comm->all_reduce", [&] {
    return comm.all_reduce(reduction.data, reduction.data, static_cast<size_t>(reduction.count),
                           reduction.dtype, reduction.op, stream, comm.user);
  });
}

ReductionGroup::ReductionGroup(const mp_comm_t &comm) : comm_(comm) {
  if (comm_.group_begin != nullptr)
    require_done("comm->group_begin", [&] { return comm_.group_begin(comm_.user); });
}

ReductionGroup::~ReductionGroup() {
  if (has_ended_ || comm_.group_end == nullptr) return;
  try {
    (void)comm_.group_end(comm_.user);
  } catch (...) {  // the call has already failed for another reason
  }
}

void ReductionGroup::end() {
  has_ended_ = true;
  if (comm_.group_end != nullptr)
    require_done("comm->group_end", [&] { return comm_.group_end(comm_.user); });
}

mp_status_t mp_grads_all_reduce(mp_tensor_list_t grads, const mp_comm_t *comm, float pre,
                                float post, mp_stream_t stream) {
  return call(__func__, grads, "grads", [&](const Context &, const mp_tensor_list &list) {
    require_writable(list, "grads");
    const mp_comm_t ranks = read_comm(comm);
    require_factor(pre, "pre");
    require_factor(post, "post");
    multiply(list, pre, stream);
    sum_over_ranks(list, ranks, stream);
    multiply(list, post, stream);
  });
}

// ---------------------------------------------------------------------------- NCCL

namespace mp::nccl {

namespace {

template <class Function>
void find(void *library, const char *name, Function *&function) {
  function = reinterpret_cast<Function *>(dlsym(library, name));
  MP_REQUIRE(function != nullptr, MP_ERROR_NOT_FOUND, "libnccl.so.2 does not export ", name);
}

/// Loads NCCL.  It is never unloaded, because its threads outlive the last call.
Functions load() {
  void *const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  MP_REQUIRE(library != nullptr, MP_ERROR_NOT_FOUND, "libnccl.so.2 cannot be loaded: ", dlerror());
  Functions found{};
  find(library, "ncclCommCount", found.comm_count);
  find(library, "ncclCommUserRank", found.comm_user_rank);
  find(library, "ncclAllReduce", found.all_reduce);
  find(library, "ncclGroupStart", found.group_start);
  find(library, "ncclGroupEnd", found.group_end);
  return found;
}

const Functions &functions() {
  return lazy_init([] { return load(); });
}

int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype, mp_reduce_op_t op,
               mp_stream_t stream, void *user) {
  return functions().all_reduce(send, recv, count, float_type(dtype).nccl,
                                op == MP_REDUCE_MAX ? kMax : kSum, static_cast<Comm>(user), stream);
}

int group_begin(void *) {
  return functions().group_start();
}

int group_end(void *) {
  return functions().group_end();
}

void require_success(Result result, const char *function) {
  MP_REQUIRE(result == 0, MP_ERROR_COMM, function, " returned ", result);
}

}  // namespace

}  // namespace mp::nccl

mp_status_t mp_comm_init_nccl(mp_comm_t *comm, void *nccl_comm) {
  return call(__func__, [&] {
    require_struct(comm, "comm");
    MP_REQUIRE(nccl_comm != nullptr, MP_ERROR_INVALID_ARGUMENT, "nccl_comm = NULL");
    const nccl::Functions &functions = nccl::functions();
    const auto communicator = static_cast<nccl::Comm>(nccl_comm);
    mp_comm_t filled = default_comm();
    nccl::require_success(functions.comm_user_rank(communicator, &filled.rank), "ncclCommUserRank");
    nccl::require_success(functions.comm_count(communicator, &filled.world_size), "ncclCommCount");
    filled.all_reduce = nccl::all_reduce;
    filled.group_begin = nccl::group_begin;
    filled.group_end = nccl::group_end;
    filled.user = nccl_comm;
    write_struct(comm, "comm", filled);
  });
}
