#include "report.h"

#include <cstdint>

#include "bench/options.h"
#include "bench/shapes/conv_shapes.h"
#include "bench/shapes/rnn_shapes.h"
#include "bench/shapes/selection.h"
#include "bench/shapes/shapes.h"
#include "kernels/conv/conv_plan.h"
#include "measure.h"
#include "support/json.h"
#include "support/program.h"
#include "support/text.h"

namespace mptune {
namespace {

using mptools::Json;
using mptools::text;

Prediction predict(const mpbench::Shape &shape, const mp::Device &device) {
  const mp_gemm_desc_t desc = mpbench::make_desc(shape, kDtype, MP_DTYPE_NONE);
  const mp::GemmPlan plan =
      mp::plan_gemm(shape_of(mp::gemm_problem(desc)), {device, mp::builtin_gemm_tuning()});
  return {.suite = "gemm",
          .set = shape.set,
          .shape = shape.name(),
          .flop = shape.flop(),
          .min_bytes = mpbench::min_bytes(desc, shape.calls),
          .kernel = plan.name,
          .us = static_cast<double>(shape.calls) * plan.predicted_us};
}

Prediction predict(const mpbench::RnnShape &shape, const mp::Device &device) {
  Prediction prediction = predict(shape.gemms(), device);
  prediction.suite = "rnn";
  prediction.shape = shape.name();
  return prediction;
}

Prediction predict(const mpbench::ConvShape &shape, const mp::Device &device) {
  const mp_conv2d_desc_t desc = mpbench::make_desc(shape, kDtype, MP_DTYPE_NONE);
  const mp::ConvPlan plan =
      mp::plan_conv(mp::conv_problem(desc, shape.op), {device, mp::builtin_gemm_tuning()});
  return {.suite = "conv",
          .set = shape.set,
          .shape = shape.name(),
          .flop = shape.flop(),
          .min_bytes = mpbench::min_bytes(shape, desc),
          .kernel = plan.name,
          .us = plan.gemm.predicted_us};
}

std::string class_name(const mp::Device &device) {
  return mp::name_of(mp::class_of(device));
}

}  // namespace

mp::Device typical_device(const std::string &device_class) {
  struct Typical {
    const char *name;
    int32_t arch, num_sms;
    int64_t smem_kib;
  };
  // T4, A100, L40S, H100 SXM, B200, RTX 5090.
  constexpr Typical kTypical[] = {{"sm_75", 75, 40, 64},     {"sm_80", 80, 108, 163},
                                  {"sm_89", 89, 142, 99},    {"sm_90", 90, 132, 227},
                                  {"sm_100", 100, 148, 227}, {"sm_120", 120, 170, 99}};
  for (const Typical &typical : kTypical)
    if (device_class == typical.name)
      return make_device(MP_TARGET_CUDA, typical.arch, typical.num_sms, typical.smem_kib << 10);
  if (device_class == "host") return origin_of(mpbench::Machine(MP_DEVICE_HOST)).device;
  throw mptools::UsageError(std::string("--predict must be ") + mp::kDeviceClassList + ", not \"" +
                            device_class + "\".");
}

std::vector<Prediction> predictions(const Options &options, const mp::Device &device) {
  mpbench::Options of_bench;
  of_bench.set = options.set == "grid" ? "all" : options.set;
  of_bench.home = options.home;
  std::vector<Prediction> predictions;
  for (const mpbench::Shape &shape : mpbench::read_sets<mpbench::Shape>("gemm", of_bench, false))
    predictions.push_back(predict(shape, device));
  for (const mpbench::RnnShape &shape :
       mpbench::read_sets<mpbench::RnnShape>("rnn", of_bench, false))
    predictions.push_back(predict(shape, device));
  for (const mpbench::ConvShape &shape :
       mpbench::read_sets<mpbench::ConvShape>("conv", of_bench, false))
    predictions.push_back(predict(shape, device));
  return predictions;
}

std::string predictions_text(const std::vector<Prediction> &predictions, const mp::Device &device) {
  const bool is_estimated = mp::is_estimated(mp::builtin_gemm_tuning(), device);
  std::string lines =
      text("Predictions of the built-in table%s for %s with %d SMs, not measurements.\n\n",
           is_estimated ? " (estimated constants)" : "", class_name(device).c_str(),
           device.num_sms) +
      text("%-28s %-40s %9s %9s %10s  %s\n", "set", "shape", "GFLOP", "MB", "us", "kernel");
  for (const Prediction &p : predictions)
    lines += text("%-28s %-40s %9.4g %9.4g %10.1f  %s\n", p.set.c_str(), p.shape.c_str(),
                  1e-9 * p.flop, 1e-6 * p.min_bytes, p.us, p.kernel.c_str());
  return lines;
}

std::string predictions_json(const std::vector<Prediction> &predictions, const mp::Device &device) {
  Json rows = Json::array();
  for (const Prediction &p : predictions)
    rows.push_back({{"bench", p.suite},
                    {"set", p.set},
                    {"shape", p.shape},
                    {"flop", p.flop},
                    {"min_bytes", p.min_bytes},
                    {"kernel", p.kernel},
                    {"predicted_us", p.us}});
  return mptools::json_text({{"class", class_name(device)},
                             {"num_sms", device.num_sms},
                             {"is_estimated", mp::is_estimated(mp::builtin_gemm_tuning(), device)},
                             {"commit", mp_build_info()},
                             {"predictions", rows}});
}

}  // namespace mptune
