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

  const std::unique_ptr<Peer> peer =
      make_peer("peer", comparand, [&] { return comparand.make_peer(problem); });
  size_t best = 0;
  std::optional<PeerResult> best_result;
  if (peer) {
    best = best_choice(problem, *peer);
    comparison.add(figures.peer, comparand.library, problem.peer(*peer));
    if (best != 0) comparison.add(best_result, comparand.library, problem.peer(*peer, best));
  }
  Fp32Side fp32_side;
  if (!comparand.is_bare && !options_.tunes && figures.dtype != MP_FP32)
    add_baselines(comparand, fp32_side, comparison, figures.baselines);

  figures.timing = comparison.run(stopwatch_, pace);
  const double seconds = options_.sustained_seconds(comparand.is_headline, machine_.on_host());
  if (seconds > 0) {
    figures.sustained = SustainedResult{stopwatch_.sustain(problem.own(), seconds)};
    if (peer) figures.sustained->peer = stopwatch_.sustain(problem.peer(*peer), seconds);
  }
  if (!peer) return figures;
  figures.peer_workspace = peer->workspace(0);
  const auto agrees = [&](size_t choice) {
    return report_.add_agreement(comparand.library, comparand.name,
                                 problem.difference_to(*peer, choice));
  };
  figures.peer->agrees = agrees(0);
  if (best_result) best_result->agrees = agrees(best);
  if (peer->choices() > 0)
    figures.peer_best = BestChoice{.choice = static_cast<int64_t>(best) + 1,
                                   .of = static_cast<int64_t>(peer->choices()),
                                   .workspace = peer->workspace(best),
                                   .result = best_result.value_or(*figures.peer)};
  return figures;
}

size_t ProblemTimer::best_choice(Problem &problem, const Peer &peer) const {
  if (peer.choices() < 2) return 0;
  std::vector<Work> choices;
  for (size_t choice = 0; choice < peer.choices(); ++choice)
    choices.push_back(problem.peer(peer, choice));
  return fastest_choice(choices, stopwatch_, machine_);
}

void ProblemTimer::add_baselines(const Comparand &comparand, Fp32Side &side, Comparison &comparison,
                                 Baselines &baselines) {
  if (!machine_.on_host() && comparand.library.empty()) return;
  side.problem = report_.make_or_note("FP32 baseline for " + comparand.name, [&] {
    return std::make_unique<Problem>(machine_, fp32_pool_, comparand.fp32_operation());
  });
  if (!side.problem) return;
  if (machine_.on_host()) {
    comparison.add(baselines.fp32, "mpcore, FP32", side.problem->own());
    return;
  }
  const auto add = [&](const char *name, PeerMath math, std::unique_ptr<Peer> &peer,
                       std::optional<PeerResult> &baseline) {
    peer = make_peer(name + std::string(" baseline"), comparand,
                     [&] { return comparand.make_fp32_peer(*side.problem, math); });
    if (peer) comparison.add(baseline, comparand.library + ", " + name, side.problem->peer(*peer));
  };
  add("FP32", PeerMath::kFp32, side.fp32, baselines.fp32);
  if (machine_.info().arch >= kFirstArchWithTf32)
    add("TF32", PeerMath::kTf32, side.tf32, baselines.tf32);
}

template <typename Make>
std::unique_ptr<Peer> ProblemTimer::make_peer(const std::string &what, const Comparand &comparand,
                                              Make make) {
  if (comparand.library.empty()) return nullptr;
  return report_.make_or_note(what + " for " + comparand.name, make);
}

}  // namespace mpbench
