// mpinfo: versions, devices and environment; kernels of a GEMM or convolution; checks of the
// installation.
#include <cstdio>

#include "doctor.h"
#include "options.h"
#include "report.h"
#include "support/device.h"
#include "support/program.h"

namespace mpinfo {
namespace {

Report make_report(const Options &options) {
  Report report;
  collect_warnings(&report.warnings);
  if (options.problem == Options::Problem::none) {
    report.devices = find_devices();
    report.variables = environment();
  } else {
    const mptools::Context context = mptools::make_context(options.device);
    mp_device_info_t info;
    MP_INIT_STRUCT(&info);
    mptools::check(mp_context_get_info(context.get(), &info));
    report.device_name = info.name;
    report.problems = explain(options, context.get());
  }
  mp_set_log_callback(nullptr, nullptr, MP_LOG_WARN);
  return report;
}

int run(const Options &options) {
  if (options.doctor) return run_doctor(options.json);
  const Report report = make_report(options);
  std::fputs((options.json ? as_json(report) : as_text(report, options.all)).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace mpinfo

int main(int argc, char **argv) {
  return mptools::run_program("mpinfo",
                              [&] { return mpinfo::run(mpinfo::parse_options(argc, argv)); });
}
