// mpinfo: versions, devices and environment; kernels of a GEMM or convolution; checks of the
// installation.
#include <cstdio>

#include "doctor.h"
#include "facts.h"
#include "options.h"
#include "support/device.h"
#include "support/program.h"

namespace mpinfo {
namespace {

Report report_of_machine() {
  Machine machine;
  Report report;
  report.devices.push_back(std::move(machine.host));
  if (machine.gpus.empty())
    report.devices.push_back(
        {"cuda:0", nullptr, {}, machine.why_no_gpu_status, machine.why_no_gpu});
  for (Place &gpu : machine.gpus) report.devices.push_back(std::move(gpu));
  report.variables = environment();
  report.warnings = machine.log.take_warnings();
  return report;
}

Report report_of_problem(const Options &options) {
  Log log;
  const mptools::Context context = mptools::make_context(options.device);
  return {.device_name = mptools::device_info(context.get()).name,
          .problems = explain(options, context.get()),
          .warnings = log.take_warnings()};
}

int run(const Options &options) {
  if (options.doctor) return run_doctor(options.json);
  const bool has_problem = options.problem != Options::Problem::none;
  const Report report = has_problem ? report_of_problem(options) : report_of_machine();
  std::fputs((options.json ? as_json(report) : as_text(report, options.all)).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace mpinfo

int main(int argc, char **argv) {
  return mptools::run_program("mpinfo",
                              [&] { return mpinfo::run(mpinfo::parse_options(argc, argv)); });
}
