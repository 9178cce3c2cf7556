/* Stub of libnccl.so.2: the five functions that mp_comm_init_nccl loads, without a GPU. */
#include "nccl.h"

struct stub_groups stub_groups;

int ncclCommCount(struct ncclComm *comm, int *count) {
  *count = comm->count;
  return comm->code;
}

int ncclCommUserRank(struct ncclComm *comm, int *rank) {
  *rank = comm->rank;
  return comm->code;
}

int ncclAllReduce(const void *send, void *recv, size_t elements, int dtype, int op,
                  struct ncclComm *comm, void *stream) {
  comm->calls++;
  comm->send = send;
  comm->recv = recv;
  comm->elements = elements;
  comm->dtype = dtype;
  comm->op = op;
  comm->stream = stream;
  return comm->code;
}

int ncclGroupStart(void) {
  stub_groups.starts++;
  return stub_groups.code;
}

int ncclGroupEnd(void) {
  stub_groups.ends++;
  return stub_groups.code;
}
