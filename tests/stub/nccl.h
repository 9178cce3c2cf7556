/* What a test asks of the NCCL that is none, see nccl.c. */
#ifndef STUB_NCCL_H
#define STUB_NCCL_H

#include <stddef.h>

/** An ncclComm_t.  Calls are answered with `code`, and written down. */
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

/** ncclGroupStart and ncclGroupEnd get no communicator. */
struct stub_groups {
  int starts, ends, code;
};

#endif
