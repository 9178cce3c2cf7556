// Random values of the variables that mp_autocast_create reads: it must succeed, or name the
// variable.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstring>
#include <string>

#include "mpcore.h"
#include "tests/fuzz/found.h"

namespace {

// Excludes the two variables of folders, in which the library would write.
constexpr const char *kVariables[] = {"MP_AUTOCAST",
                                      "MP_AUTOCAST_LEVEL",
                                      "MP_AUTOCAST_ALLOW_ADD",
                                      "MP_AUTOCAST_ALLOW_REMOVE",
                                      "MP_AUTOCAST_INFER_ADD",
                                      "MP_AUTOCAST_INFER_REMOVE",
                                      "MP_AUTOCAST_DENY_ADD",
                                      "MP_AUTOCAST_DENY_REMOVE",
                                      "MP_AUTOCAST_CLEAR_ADD",
                                      "MP_AUTOCAST_CLEAR_REMOVE",
                                      "MP_AUTOCAST_IGNORE_PERFORMANCE",
                                      "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL",
                                      "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_ADD",
                                      "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_WHITELIST_REMOVE",
                                      "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_DENYLIST_ADD",
                                      "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_IGNORE_PERFORMANCE"};

constexpr const char *kWords[] = {"off",
                                  "fp16",
                                  "bf16",
                                  "normal",
                                  "infer_as_deny",
                                  "FORCE_ALL",
                                  "tensor_cores_only",
                                  "MatMul",
                                  "Conv2D,Relu",
                                  " Exp , , Softmax",
                                  "0",
                                  "true",
                                  ",",
                                  ""};

void read_environment(FuzzedDataProvider &bytes) {
  mp_autocast_config_t config = mp_autocast_config_default(bytes.ConsumeBool() ? MP_FP16 : MP_BF16);
  config.preset = static_cast<mp_autocast_preset_t>(bytes.ConsumeIntegralInRange<int>(0, 6));
  mp_autocast_t policy = nullptr;
  const mp_status_t status = mp_autocast_create(&policy, &config);
  if ((status == MP_SUCCESS) != (policy != nullptr)) fuzz::found("mp_autocast_create", "no policy");
  if (status == MP_SUCCESS) {
    mp_autocast_get_class(policy, "MatMul");
    mp_autocast_destroy(policy);
    return;
  }
  const std::string why = mp_last_error();
  const auto has = [&](const char *word) { return why.find(word) != std::string::npos; };
  const bool names_it = has(": MP_AUTOCAST") || has(": TF_AUTO_MIXED_PRECISION") || has("config");
  if (status != MP_ERROR_INVALID_ARGUMENT || !names_it)
    fuzz::found("mp_autocast_create", why.c_str());
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  mp_set_log_callback([](mp_log_level_t, const char *, void *) {}, nullptr, MP_LOG_ERROR);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  for (const char *variable : kVariables) {
    unsetenv(variable);
    if (!bytes.ConsumeBool()) continue;
    const std::string value =
        bytes.ConsumeBool() ? bytes.PickValueInArray(kWords) : bytes.ConsumeRandomLengthString(64);
    setenv(variable, value.c_str(), 1);
  }
  read_environment(bytes);
  return 0;
}
