// Random states of a checkpoint: each is rejected, or a scaler continues from it.  Kernels run
// here: after any updates, the state can be saved and restored, and the same updates then give the
// same bits.
#include <fuzzer/FuzzedDataProvider.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "mpcore.h"
#include "tests/fuzz/found.h"

namespace {

constexpr float kAmax[] = {0.0f,     1e-30f, 1.0f,     3.5f, 1024.0f,
                           65504.0f, 1e30f,  INFINITY, NAN,  1e-45f};

mp_context_t context = nullptr;

void require(mp_status_t status, const char *what) {
  if (status != MP_SUCCESS) fuzz::found(what, mp_last_error());
}

mp_scaler_state_t state_of(mp_scaler_t scaler) {
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  require(mp_scaler_get_state_sync(scaler, &state, nullptr), "get");
  return state;
}

mp_scaler_state_t after(mp_scaler_t scaler, const std::vector<float> &amaxes) {
  for (const float amax : amaxes) require(mp_scaler_update(scaler, &amax, nullptr), "update");
  return state_of(scaler);
}

void run(mp_scaler_t scaler, const mp_scaler_state_t &state, FuzzedDataProvider &bytes) {
  if (mp_scaler_set_state_sync(scaler, &state, nullptr) != MP_SUCCESS) return;
  std::vector<float> amaxes(bytes.ConsumeIntegralInRange<size_t>(0, 12));
  for (float &amax : amaxes)
    amax =
        bytes.ConsumeBool() ? bytes.PickValueInArray(kAmax) : bytes.ConsumeFloatingPoint<float>();
  const mp_scaler_state_t before = state_of(scaler);
  const mp_scaler_state_t then = after(scaler, amaxes);
  // LogMaxScaler computes S = NaN from the logarithm of 0 permanently (mpcore/compat.h); this state
  // is rejected.
  if (state.policy == MP_SCALER_POLICY_LOGMAX && std::isnan(then.scale)) return;
  require(mp_scaler_set_state_sync(scaler, &then, nullptr), "a state that updates have left");
  require(mp_scaler_set_state_sync(scaler, &before, nullptr), "a state that was accepted");
  const mp_scaler_state_t again = after(scaler, amaxes);
  if (std::memcmp(&then, &again, sizeof then) != 0) fuzz::found("updates", "other bits");
}

template <class T>
void change_some(T &value, FuzzedDataProvider &bytes) {
  auto *const raw = reinterpret_cast<unsigned char *>(&value);
  for (int i = bytes.ConsumeIntegralInRange(0, 6); i > 0; --i) {
    const size_t at = 4 * bytes.ConsumeIntegralInRange<size_t>(1, sizeof value / 4 - 1);
    const uint32_t word = bytes.ConsumeBool() ? bytes.ConsumeIntegralInRange<uint32_t>(0, 3)
                                              : bytes.ConsumeIntegral<uint32_t>();
    std::memcpy(raw + at, &word, sizeof word);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  mp_set_log_callback([](mp_log_level_t, const char *, void *) {}, nullptr, MP_LOG_ERROR);
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  require(mp_context_create(&context, &config), "context");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  const auto policy = static_cast<mp_scaler_policy_t>(bytes.ConsumeIntegralInRange(0, 3));
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  change_some(config, bytes);
  config.history_length = 0;
  mp_scaler_t scaler = nullptr;
  if (mp_scaler_create(&scaler, context, &config) != MP_SUCCESS) return 0;
  mp_scaler_state_t state = mp_scaler_state_default(&config);
  change_some(state, bytes);
  run(scaler, state, bytes);
  mp_scaler_destroy(scaler);
  return 0;
}
