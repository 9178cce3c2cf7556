// Softmax cross-entropy on devices of different sizes: results are bitwise independent of the
// amount of shared memory and of the number of SMs.
#include "kernels/layers/layer_args.h"

#include <cstring>

#include "kernels/simt/half.h"
#include "testing.h"

namespace mp::host {
void softmax_xent(const Device &device, const XentArgs &args, mp_stream_t stream);
}

using namespace mptest;

namespace {

/// Dense fp16 rows, their losses and gradients.
struct Batch {
  int64_t rows, classes;
  std::vector<mp::host::half> logits, dlogits;
  std::vector<int32_t> labels;
  std::vector<float> row_loss;
  float loss = 0.0f;

  Batch(int64_t rows, int64_t classes)
      : rows(rows), classes(classes), row_loss(static_cast<size_t>(rows)) {
    uint32_t state = 1;
    for (int64_t i = 0; i < rows * classes; i++) {
      state = state * 1664525u + 1013904223u;
      logits.push_back(
          mp::host::round_to<mp::host::half>(static_cast<float>(state >> 8) * 0x1p-20f));
    }
    dlogits.resize(logits.size());
    for (int64_t i = 0; i < rows; i++)
      labels.push_back(i == 1 ? -100 : static_cast<int32_t>(i * 7919 % classes));
  }

  void run(int64_t smem_per_block, int num_sms) {
    mp::Device device{};
    device.smem_per_block = smem_per_block;
    device.num_sms = num_sms;
    mp::XentArgs args{};
    args.desc.dtype = MP_FP16;
    args.desc.dtype_labels = MP_INT32;
    args.desc.flags = MP_XENT_FLAG_IGNORE_LABEL;
    args.desc.rows = rows;
    args.desc.classes = args.desc.ld_logits = args.desc.ld_dlogits = classes;
    args.desc.ignore_label = -100;
    args.desc.weight = 1.0f;
    args.desc.label_smoothing = 0.1f;
    args.x = logits.data();
    args.labels = labels.data();
    args.row_loss = row_loss.data();
    args.loss = &loss;
    args.dx = dlogits.data();
    mp::host::softmax_xent(device, args, nullptr);
  }

  bool operator==(const Batch &other) const {
    return std::memcmp(dlogits.data(), other.dlogits.data(), dlogits.size() * 2) == 0 &&
           std::memcmp(row_loss.data(), other.row_loss.data(), row_loss.size() * 4) == 0 &&
           std::memcmp(&loss, &other.loss, sizeof loss) == 0;
  }
};

}  // namespace

TEST_CASE("xent: results are bitwise equal for any amount of shared memory and number of SMs") {
  constexpr int64_t kWithoutCopy = 1024;
  for (const int64_t classes : {10, 1000, 1500, 50257}) {
    Batch small(5, classes), large(5, classes);
    small.run(kWithoutCopy, 1);
    for (const int64_t smem : {kWithoutCopy + 48, int64_t{64} << 10, int64_t{227} << 10}) {
      large.run(smem, engine::max_workers());
      INFO(classes << " classes, " << smem << " bytes of shared memory");
      CHECK(small == large);
    }
  }
}
