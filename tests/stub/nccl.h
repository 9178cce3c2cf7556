/* Interface between tests and the stub of NCCL (nccl.c). */
#ifndef STUB_NCCL_H
#define STUB_NCCL_H

#include <stddef.h>

/** An ncclComm_t.  Calls return `code` and are recorded. */
struct ncclComm {
  int rank, count;
  int code;
  int calls;
  const void *send;
  void *recv;
  size_t elements;
  int dtype, op;
  void *stream;
};

/** ncclGroupStart and ncclGroupEnd have no communicator. */
struct stub_groups {
  int starts, ends, code;
};

#endif
