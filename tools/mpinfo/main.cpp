// mpinfo: versions, devices, environment; and what a given GEMM or convolution would run, and why.
#include <cstdio>
#include <exception>

#include "options.h"
#include "report.h"
#include "support/device.h"

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
    report.products = explain(options, context.get());
  }
  mp_set_log_callback(nullptr, nullptr, MP_LOG_WARN);
  return report;
}

}  // namespace
}  // namespace mpinfo

int main(int argc, char **argv) try {
  const mpinfo::Options options = mpinfo::parse_options(argc, argv);
  if (options.help) {
    std::fputs(mpinfo::usage(), stdout);
    return 0;
  }
  const mpinfo::Report report = mpinfo::make_report(options);
  std::fputs((options.json ? as_json(report) : as_text(report, options.all)).c_str(), stdout);
  return 0;
} catch (const mpinfo::UsageError &error) {
  std::fprintf(stderr, "mpinfo: %s\n", error.what());
  return 2;
} catch (const std::exception &error) {
  std::fprintf(stderr, "mpinfo: %s\n", error.what());
  return 1;
}
