// mp_comm_init_nccl: table of NCCL's collectives.
#include "capi/nccl.h"

#include <dlfcn.h>

#include "base/lazy_init.h"
#include "capi/check.h"
#include "capi/defaults.h"

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

DataType data_type(mp_dtype_t dtype) {
  return dtype == MP_FP16 ? kFloat16 : dtype == MP_BF16 ? kBfloat16 : kFloat32;
}

int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype, mp_reduce_op_t op,
               mp_stream_t stream, void *user) {
  return functions().all_reduce(send, recv, count, data_type(dtype),
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
  return mp::call(__func__, [&] {
    mp::require_struct(comm, "comm");
    MP_REQUIRE(nccl_comm != nullptr, MP_ERROR_INVALID_ARGUMENT, "nccl_comm = NULL");
    const mp::nccl::Functions &nccl = mp::nccl::functions();
    const auto communicator = static_cast<mp::nccl::Comm>(nccl_comm);
    mp_comm_t filled = mp::default_comm();
    mp::nccl::require_success(nccl.comm_user_rank(communicator, &filled.rank), "ncclCommUserRank");
    mp::nccl::require_success(nccl.comm_count(communicator, &filled.world_size), "ncclCommCount");
    filled.all_reduce = mp::nccl::all_reduce;
    filled.group_begin = mp::nccl::group_begin;
    filled.group_end = mp::nccl::group_end;
    filled.user = nccl_comm;
    mp::write_struct(comm, "comm", filled);
  });
}
