// A step on lists of more than 2^31 elements (`make nightly`: too slow for `make test`).
//
// All elements are zero except a few around 2^31 and at both ends.  Each is a different power of
// two, so a norm shows which elements it covers.
#include "step_fixtures.h"
#include "tests/support/sparse_zeros.h"

using namespace mptest;

namespace {

/// One tensor of more than 2^31 elements, and one whose chunks follow it in the chunk table.
constexpr int64_t kLarge = (int64_t{1} << 31) + kChunk + 5, kSmall = kChunk + 7;
const std::vector<int64_t> kNumel = {kLarge, kSmall};

struct Place {
  size_t tensor;
  int64_t element;
};
const std::vector<Place> kPlaces = {
    {0, 0},         {0, (int64_t{1} << 31) - 1}, {0, int64_t{1} << 31}, {0, kLarge - 1}, {1, 0},
    {1, kSmall - 1}};

/// Both tensors in one type.
class LargeTensors {
 public:
  explicit LargeTensors(mp_dtype_t dtype) : dtype_(dtype) {
    const auto size = static_cast<int64_t>(mp_dtype_size(dtype));
    for (size_t t = 0; t < kNumel.size(); ++t) {
      std::vector<int64_t> written;
      for (const Place &place : kPlaces) {
        if (place.tensor == t) written.push_back(place.element * size);
      }
      zeros_.push_back(std::make_unique<SparseZeros>(kNumel[t] * size, written));
    }
    if (!allocated()) return;
    std::vector<void *> data;
    for (const auto &tensor : zeros_) data.push_back(tensor->data());
    list_ = mptools::make_list(context(), dtype, data, {kNumel.begin(), kNumel.end()});
  }

  bool allocated() const {
    return std::all_of(zeros_.begin(), zeros_.end(),
                       [](const auto &tensor) { return tensor->data() != nullptr; });
  }
  mp_tensor_list_t list() const { return list_.get(); }

  void set(size_t place, double value) {
    const uint32_t bits = encode(dtype_, value);  // little-endian
    copy_bytes(address(place), &bits, mp_dtype_size(dtype_));
  }
  double get(size_t place) const {
    uint32_t bits = 0;
    copy_bytes(&bits, address(place), mp_dtype_size(dtype_));
    return decode(dtype_, bits);
  }

 private:
  uint8_t *address(size_t place) const {
    const Place &p = kPlaces[place];
    return zeros_[p.tensor]->data() + p.element * static_cast<int64_t>(mp_dtype_size(dtype_));
  }

  mp_dtype_t dtype_;
  std::vector<std::unique_ptr<SparseZeros>> zeros_;
  UniqueList list_;
};

double power(size_t place) {
  return std::exp2(static_cast<double>(place));
}

const char *const kNoMemory = "not enough memory for 2^31 elements";

}  // namespace

TEST_CASE("nightly: statistics and unscaling of more than 2^31 elements", "[.nightly]") {
  LargeTensors in(MP_FP16), out(MP_FP32);
  if (!in.allocated() || !out.allocated()) return skip(kNoMemory);
  double squares[2] = {};
  for (size_t place = 0; place < kPlaces.size(); ++place) {
    in.set(place, power(place));
    squares[kPlaces[place].tensor] += power(place) * power(place);
  }
  const DeviceFloat norm(-1.0f), amax(-1.0f), inv_scale(0.5f);
  DeviceFloat found_inf(0.0f);
  const DeviceBuffer<float> norms(2), amaxes(2);
  require_ok(mp_l2norm(in.list(), norm.data(), norms.data(), kStream));
  CHECK(norm.value() == static_cast<float>(std::sqrt(squares[0] + squares[1])));
  CHECK(norms.download() == std::vector<float>{static_cast<float>(std::sqrt(squares[0])),
                                               static_cast<float>(std::sqrt(squares[1]))});
  require_ok(mp_amax(in.list(), amax.data(), amaxes.data(), kStream));
  CHECK(amax.value() == 32.0f);
  CHECK(amaxes.download() == std::vector<float>{8.0f, 32.0f});

  require_ok(mp_unscale(in.list(), out.list(), inv_scale.data(), found_inf.data(), kStream));
  CHECK(found_inf.value() == 0.0f);
  for (size_t place = 0; place < kPlaces.size(); ++place) {
    CHECK(out.get(place) == power(place) / 2.0);
  }
  for (const size_t last : {size_t{3}, size_t{5}}) {
    in.set(last, std::nan(""));
    found_inf.set(0.0f);
    require_ok(mp_check_nonfinite(in.list(), found_inf.data(), kStream));
    CHECK(found_inf.value() == 1.0f);
    in.set(last, power(last));
  }
}

TEST_CASE("nightly: applied and skipped steps of more than 2^31 weights", "[.nightly]") {
  LargeTensors grads(MP_FP16), master(MP_FP32), model(MP_BF16), m(MP_FP32);
  for (const LargeTensors *tensors : {&grads, &master, &model, &m}) {
    if (!tensors->allocated()) return skip(kNoMemory);
  }
  const mp_param_group_t hyper = sgd_hyper(0.5f, 0.5f);
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_SGD);
  desc.groups = &hyper;
  desc.grads = grads.list();
  desc.master = master.list();
  desc.model = model.list();
  desc.m = m.list();
  const mptools::Optimizer optimizer = mptools::make_optimizer(context(), desc);
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config.init_scale = 4.0f;
  const UniqueScaler scaler = make_scaler(config);
  const auto check_weights = [&](double step) {
    for (size_t place = 0; place < kPlaces.size(); ++place) {
      CAPTURE(place, step);
      CHECK(master.get(place) == 3.0 - step * power(place));
      CHECK(model.get(place) == 3.0 - step * power(place));
    }
  };

  for (size_t place = 0; place < kPlaces.size(); ++place) {
    grads.set(place, 4.0 * power(place));
    master.set(place, 3.0);
  }
  require_ok(mp_scale_step(optimizer.get(), scaler.get(), nullptr, kStream));
  check_weights(0.5);
  grads.set(3, HUGE_VAL);
  require_ok(mp_scale_step(optimizer.get(), scaler.get(), nullptr, kStream));
  check_weights(0.5);
  CHECK(state_of(scaler.get()).skipped == 1);
  CHECK(state_of(scaler.get()).scale == 2.0f);
}
