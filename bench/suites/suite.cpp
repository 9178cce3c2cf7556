#include "suite.h"

#include <exception>

#include "support/progress.h"

namespace mpbench {
namespace {

void measure_family(const Family &family, Report &report, mptools::Progress &progress) {
  if (family.jobs.empty()) return;
  progress.start(family.name);
  const std::function<void(size_t)> measure_job = family.open();
  for (size_t i = 0; i < family.jobs.size(); ++i) {
    const Job &job = family.jobs[i];
    progress.start(family.name + (" " + job.name));
    try {
      measure_job(i);
    } catch (const std::exception &error) {
      report.add_failure(job.name + " was not measured: " + error.what());
    }
    report.save();
    progress.finish(job.cost_us);
  }
}

}  // namespace

void measure(const std::vector<Family> &families, Report &report) {
  double cost_us = 0;
  for (const Family &family : families)
    for (const Job &job : family.jobs) cost_us += job.cost_us;
  mptools::Progress progress(cost_us);
  for (const Family &family : families) {
    try {
      measure_family(family, report, progress);
    } catch (const std::exception &error) {
      report.add_failure(std::string(family.name) + " was not measured: " + error.what());
    }
  }
  progress.clear();
}

}  // namespace mpbench
