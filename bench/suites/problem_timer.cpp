#include "problem_timer.h"

#include "rank.h"

namespace mpbench {
namespace {

/// Fields that are known before timing.
Figures untimed_figures(const Problem &problem) {
  const Operation &operation = problem.operation();
  const std::string kernel = problem.selected_kernel();
  return {.dtype = operation.dtype,
          .out_dtype = operation.out_dtype,
          .beta = operation.beta,
          .flop = operation.flop,
          .min_bytes = operation.min_bytes,
          .kernel = kernel,
          .predicted_us = kernel == operation.kernels.front() ? operation.predicted_us : 0,
          .workspace_bytes = problem.workspace_bytes(),
          .sets = problem.sets()};
}

}  // namespace

Figures ProblemTimer::time(const Comparand &comparand, const std::string &during,
                           const std::optional<Pace> &pace) {
  Problem problem(machine_, pool_, comparand.operation());
  if (machine_.is_counted()) {
    Figures figures = untimed_figures(problem);
    figures.counts = count_call(machine_, problem.own());
    return figures;
  }
  Figures figures = compare(comparand, problem, pace.value_or(pace_of(options_, machine_)));
  if (options_.rank && !comparand.is_bare)
    figures.rank = rank_kernels(problem, stopwatch_, machine_);
  if (!during.empty())
    report_.add(gpu_state_under(machine_, problem.own(), figures.timing, during));
  return figures;
}

Figures ProblemTimer::compare(const Comparand &comparand, Problem &problem, const Pace &pace) {
  if (options_.tunes) problem.own()();  // measures kernels, one of which it selects
  Figures figures = untimed_figures(problem);
  Comparison comparison(problem.own());

  const PeerCalls peers =
      make_peer("peer", comparand, [&] { return comparand.make_peer(problem); });
  const size_t best = best_choice(problem, peers);
  std::optional<PeerResult> best_result;
  if (!peers.empty()) comparison.add(figures.peer, comparand.library, problem.peer(peers[0]));
  if (best != 0) comparison.add(best_result, comparand.library, problem.peer(peers[best]));
  std::unique_ptr<Problem> fp32;
  if (!comparand.is_bare && !options_.tunes && figures.dtype != MP_FP32)
    fp32 = add_baselines(comparand, comparison, figures.baselines);

  figures.timing = comparison.run(stopwatch_, pace);
  const double seconds = options_.sustained_seconds(comparand.is_headline, machine_.on_host());
  if (seconds > 0) {
    figures.sustained = SustainedResult{stopwatch_.sustain(problem.own(), seconds)};
    if (!peers.empty())
      figures.sustained->peer = stopwatch_.sustain(problem.peer(peers[0]), seconds);
  }
  if (peers.empty()) return figures;
  figures.peer_workspace = peers[0].workspace;
  const auto agrees = [&](size_t choice) {
    return report_.add_agreement(comparand.library, comparand.name,
                                 problem.difference_to(peers[choice]));
  };
  figures.peer->agrees = agrees(0);
  if (best_result) best_result->agrees = agrees(best);
  figures.peer_best = BestChoice{.choice = static_cast<int64_t>(best) + 1,
                                 .of = static_cast<int64_t>(peers.size()),
                                 .workspace = peers[best].workspace,
                                 .result = best_result.value_or(*figures.peer)};
  return figures;
}

size_t ProblemTimer::best_choice(Problem &problem, const PeerCalls &peers) const {
  if (peers.size() < 2) return 0;
  std::vector<Work> choices;
  for (const PeerCall &call : peers) choices.push_back(problem.peer(call));
  return fastest_choice(choices, stopwatch_, machine_);
}

std::unique_ptr<Problem> ProblemTimer::add_baselines(const Comparand &comparand,
                                                     Comparison &comparison, Baselines &baselines) {
  if (!machine_.on_host() && comparand.library.empty()) return nullptr;
  auto problem = report_.make_or_note("FP32 baseline for " + comparand.name, [&] {
    return std::make_unique<Problem>(machine_, fp32_pool_, comparand.fp32_operation());
  });
  if (!problem) return nullptr;
  if (machine_.on_host()) {
    comparison.add(baselines.fp32, "mpcore, FP32", problem->own());
    return problem;
  }
  const auto add = [&](const char *name, PeerMath math, std::optional<PeerResult> &baseline) {
    const PeerCalls peers = make_peer(name + std::string(" baseline"), comparand,
                                      [&] { return comparand.make_fp32_peer(*problem, math); });
    if (!peers.empty())
      comparison.add(baseline, comparand.library + ", " + name, problem->peer(peers[0]));
  };
  add("FP32", PeerMath::kFp32, baselines.fp32);
  if (machine_.info().arch >= kFirstArchWithTf32) add("TF32", PeerMath::kTf32, baselines.tf32);
  return problem;
}

template <typename Make>
PeerCalls ProblemTimer::make_peer(const std::string &what, const Comparand &comparand, Make make) {
  if (comparand.library.empty()) return {};
  return report_.make_or_note(what + " for " + comparand.name, make);
}

}  // namespace mpbench
