// See upload.h.
//
// An asynchronous copy cannot do this: from pageable memory it may wait for the device, and
// captured into a graph it reads its source at every replay.  The parameters of a launch are copied
// when it is enqueued, on every path.
//
// A kernel takes 32,764 bytes of parameters from sm_70 on, with CUDA 12.1 or newer (CUDA C++
// Programming Guide, chapter on function parameters).  All of them are copied, used or not, so that
// a short array has a kernel of its own.
#include "kernels/gemm/upload.h"

#include <cstring>

#include "kernels/simt/sm90_tma.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
using Piece = Pack<uint32_t, 4>;

template <size_t kPieces>
struct UploadArgs {
  char *dst;
  int64_t bytes;
  Piece data[kPieces];
};

using ShortUpload = UploadArgs<4000 / sizeof(Piece)>;
using LongUpload = UploadArgs<32000 / sizeof(Piece)>;

/// A thread per piece; the last one may be a part of a piece.
template <class Args>
MP_KERNEL(kThreads, 1)
store_parameters(MP_PARAM(Args) args) {
  const int64_t piece = block_index() * kThreads + thread_index();
  const int64_t first = piece * static_cast<int64_t>(sizeof(Piece));
  if (first >= args.bytes) return;
  const int64_t valid = min_of<int64_t>(args.bytes - first, sizeof(Piece));
  const Piece &source = args.data[piece];
  if (valid == sizeof(Piece)) {
    *reinterpret_cast<Piece *>(args.dst + first) = source;
  } else {
    for (int i = 0; i < valid; i++)
      args.dst[first + i] = reinterpret_cast<const char *>(&source)[i];
  }
  tensor_map_release();
}

template <class Args>
void upload_chunk(const Device &device, char *dst, const char *src, size_t bytes,
                  mp_stream_t stream) {
  Args args;
  args.dst = dst;
  args.bytes = static_cast<int64_t>(bytes);
  std::memcpy(args.data, src, bytes);
  const int64_t pieces = ceil_div<int64_t>(args.bytes, sizeof(Piece));
  launch("upload", store_parameters<Args>, device, {ceil_div<int64_t>(pieces, kThreads), kThreads},
         stream, args);
}

}  // namespace

void upload(const Device &device, void *dst, const void *host_src, size_t bytes,
            mp_stream_t stream) {
  char *const to = static_cast<char *>(dst);
  const char *const from = static_cast<const char *>(host_src);
  for (size_t done = 0; done < bytes;) {
    const size_t rest = bytes - done;
    const bool is_short = rest <= sizeof ShortUpload::data;
    const size_t chunk =
        min_of(rest, is_short ? sizeof ShortUpload::data : sizeof LongUpload::data);
    if (is_short)
      upload_chunk<ShortUpload>(device, to + done, from + done, chunk, stream);
    else
      upload_chunk<LongUpload>(device, to + done, from + done, chunk, stream);
    done += chunk;
  }
}

}  // namespace mp::MP_TARGET
