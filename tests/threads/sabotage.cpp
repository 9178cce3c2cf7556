// Misuse of the library that ThreadSanitizer must detect.
#include "gang.h"
#include "support/device.h"
#include "tests/support/testing.h"

using namespace mptest;

// Two threads use a scaler, which is not thread-safe.
TEST_CASE("child: share a scaler", "[.][injected]") {
  const mptools::Context context = mptools::make_context(MP_DEVICE_HOST);
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  mp_scaler_t scaler = nullptr;
  mptools::check(mp_scaler_create(&scaler, context.get(), &config));
  together(2, [&](int) {
    for (int i = 0; i < 100; ++i)
      mptools::check(mp_scaler_update(scaler, nullptr, mptools::kStream));
  });
  mp_scaler_destroy(scaler);
  CHECK(scaler != nullptr);
}
