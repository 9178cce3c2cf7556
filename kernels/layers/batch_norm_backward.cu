// Batch normalization, backward.
//
//      g = dy, or 0 where the output of ReLU is not positive
//      dbeta = sum g,  dgamma = inv_std sum g (x - mean)
//      dx = gamma inv_std (g - dbeta / rows - (x - mean) inv_std dgamma / rows)
//
// One pass over x and dy computes the sums, partitioned and combined like the statistics of the
// forward pass, and a second pass computes dx.
//
// Source: Ioffe & Szegedy 2015, section 3, with the terms of the mean and the variance combined.
#include "kernels/layers/batch_norm.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

namespace {

[[maybe_unused]] constexpr int kThreads = ColumnPartition::kThreads;
constexpr int kRowsAtOnce = 2;
/// Vectors of a thread.
using Rows = float[kRowsAtOnce][kVec];

/// Arguments of a pass; dgamma and dbeta of `call` are not NULL.
struct BackwardArgs : PassArgs {
  bool has_dgamma, has_dbeta;  ///< the caller's, not in the workspace
};

/// Calls visit(type, row, x, g) for this thread's rows of the part, kRowsAtOnce at a time.
template <class Visit>
MP_DEVICE void for_each_gradient(const BatchNormArgs &call, const Normalization &normalized,
                                 const RowsOfThread &rows, const Part &part, Visit visit) {
  const bool has_relu = call.desc.activation == MP_ACT_RELU;
  const auto visit_rows = [&]<class T>(std::type_identity<T>, auto whole) {
    for (int64_t row = rows.first; row < part.end; row += kRowsAtOnce * rows.stride) {
      Rows x, g;
      load_rows<T, whole>(x, call.desc, call.x, rows, row, part.end);
      load_rows<T, whole>(g, call.desc, call.dy, rows, row, part.end);
      unroll<kRowsAtOnce, kVec>([&](int r, int i) {
        if (has_relu && !(normalized.z(x[r][i], i) > 0.0f)) g[r][i] = 0.0f;
      });
      visit(std::type_identity<T>{}, row, x, g);
    }
  };
  with_rows(call.desc, rows, visit_rows, call.x, call.dy);
}

MP_KERNEL(kThreads, 2)
sum_pieces(MP_PARAM(BackwardArgs) args) {
  const BatchNormArgs &call = args.call;
  for_each_part(args.partition, call.desc.rows, [&](const Part &part) {
    const RowsOfThread rows = rows_of_thread(args.partition, call.desc.channels, part);
    const Normalization normalized(call, rows);
    GradientSums<float> sums[kVec] = {};
    for_each_gradient(
        call, normalized, rows, part, [&](auto, int64_t, const Rows &x, const Rows &g) {
          unroll<kRowsAtOnce, kVec>([&](int r, int i) {
            sums[i].beta += g[r][i];
            sums[i].gamma = fmaf(g[r][i], normalized.centered(x[r][i], i), sums[i].gamma);
          });
        });
    combine_rows(sums, args.partition, call.desc.channels, part.tile,
                 [&](int64_t channel, const GradientSums<float> &all) {
                   args.first(part.chunk, channel) = all.beta;
                   args.second(part.chunk, channel) = all.gamma;
                 });
  });
}

MP_KERNEL(kThreads, 1)
finish_sums(MP_PARAM(BackwardArgs) args) {
  const BatchNormArgs &call = args.call;
  AmaxTracker tracker(call.stats);
  combine_chunks<GradientSums<double>>(
      args.partition.chunks, call.desc.channels,
      [&](int64_t chunk, int64_t channel) {
        return GradientSums<double>{args.first(chunk, channel), args.second(chunk, channel)};
      },
      [&](int64_t channel, const GradientSums<double> &all) {
        const float dbeta = static_cast<float>(all.beta);
        const float dgamma = static_cast<float>(all.gamma * call.saved_inv_std[channel]);
        call.dbeta[channel] = dbeta;
        call.dgamma[channel] = dgamma;
        if (args.has_dbeta) tracker.see<float>(dbeta);
        if (args.has_dgamma) tracker.see<float>(dgamma);
      });
  if (warp_index() == 0) tracker.finish();
}

/// Terms subtracted from g: the gradients through the mean and through the variance.
struct Correction {
  float constant[kVec], per_centered[kVec];

  MP_DEVICE Correction(const BatchNormArgs &call, const RowsOfThread &rows) {
    float inv_std[kVec];
    load_channels(inv_std, call.saved_inv_std, rows);
    load_channels(constant, call.dbeta, rows);
    load_channels(per_centered, call.dgamma, rows);
    const float share = 1.0f / static_cast<float>(call.desc.rows);
    unroll<kVec>([&](int i) {
      constant[i] *= share;
      per_centered[i] *= share * inv_std[i];
    });
  }
};

MP_KERNEL(kThreads, 2)
input_gradient(MP_PARAM(BackwardArgs) args) {
  const BatchNormArgs &call = args.call;
  AmaxTracker tracker(call.stats);
  for_each_part<PartOrder::last_to_first>(args.partition, call.desc.rows, [&](const Part &part) {
    const RowsOfThread rows = rows_of_thread(args.partition, call.desc.channels, part);
    const Normalization normalized(call, rows);
    const Correction correction(call, rows);
    for_each_gradient(
        call, normalized, rows, part,
        [&]<class T>(std::type_identity<T>, int64_t row, const Rows &x, const Rows &g) {
          Rows dx;
          unroll<kRowsAtOnce, kVec>([&](int r, int i) {
            const float centered = normalized.centered(x[r][i], i);
            const float rest = g[r][i] - correction.constant[i];
            dx[r][i] = normalized.factor[i] * fmaf(-centered, correction.per_centered[i], rest);
          });
          store_rows<T>(dx, call.desc, call.dx, rows, row, part.end);
          unroll<kRowsAtOnce>([&](int r) {
            tracker.see<T>(dx[r], row + r * rows.stride < part.end ? rows.valid : 0);
          });
        });
  });
  tracker.finish();
}

}  // namespace

void batch_norm_backward(const Device &device, const BatchNormArgs &args, mp_stream_t stream) {
  BackwardArgs sums{
      {args, {args.desc.rows, args.desc.channels}}, args.dgamma != nullptr, args.dbeta != nullptr};
  // Omitted dgamma and dbeta overwrite the sums of the first chunk, which have been read by then.
  if (args.dbeta == nullptr) sums.call.dbeta = args.workspace;
  if (args.dgamma == nullptr)
    sums.call.dgamma = args.workspace + sums.partition.chunks * args.desc.channels;
  launch_parts("batch_norm_sums", sum_pieces, device, sums, stream);
  launch_combine("batch_norm_finish_sums", finish_sums, device, args.desc.channels, sums, stream);
  BackwardArgs elements = sums;
  elements.partition = elementwise_partition(args.desc);
  launch_parts("batch_norm_dx", input_gradient, device, elements, stream);
}

}  // namespace mp::MP_TARGET
