#include "suite.h"

#include <exception>

#include "support/progress.h"

namespace mpbench {
namespace {

void measure_suite(const Suite &suite, Report &report, mptools::Progress &progress,
                   const std::function<void()> &after_job) {
  if (suite.jobs.empty()) return;
  progress.start(suite.name);
  const std::function<void(size_t)> measure_job = suite.open();
  for (size_t i = 0; i < suite.jobs.size(); ++i) {
    const Job &job = suite.jobs[i];
    progress.start(suite.name + (" " + job.name));
    try {
      measure_job(i);
    } catch (const std::exception &error) {
      report.add_failure(job.name + " was not measured: " + error.what());
    }
    report.save();
    if (after_job) after_job();
    progress.finish(job.cost_us);
  }
}

}  // namespace

void measure(const std::vector<Suite> &suites, Report &report,
             const std::function<void()> &after_job) {
  double cost_us = 0;
  for (const Suite &suite : suites)
    for (const Job &job : suite.jobs) cost_us += job.cost_us;
  mptools::Progress progress(cost_us);
  for (const Suite &suite : suites) {
    try {
      measure_suite(suite, report, progress, after_job);
    } catch (const std::exception &error) {
      report.add_failure(std::string(suite.name) + " was not measured: " + error.what());
    }
  }
  progress.clear();
}

}  // namespace mpbench
