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

ProblemTimer::ProblemTimer(const Options &options, const Machine &machine, Report &report)
    : options_(options),
      machine_(machine),
      report_(report),
      stopwatch_(machine),
      pool_(machine, options.dtype),
      fp32_pool_(machine, MP_FP32) {}

Figures ProblemTimer::time(const Comparand &comparand, const std::string &during) {
  if (machine_.is_counted()) return count(comparand);
  Problem problem(machine_, pool_, comparand.operation());
  Figures figures = compare(comparand, problem, pace_of(options_, machine_), options_.tunes);
  if (options_.rank) figures.rank = rank_kernels(problem, stopwatch_, machine_);
  if (!during.empty())
    report_.add(gpu_state_under(machine_, problem.own(), figures.timing, during));
  return figures;
}

Figures ProblemTimer::time_bare(const Comparand &comparand, const Pace &pace,
                                const std::string &during) {
  if (machine_.is_counted()) return count(comparand);
  Problem problem(machine_, pool_, comparand.operation());
  const Figures figures = compare(comparand, problem, pace, true);
  if (!during.empty())
    report_.add(gpu_state_under(machine_, problem.own(), figures.timing, during));
  return figures;
}

Figures ProblemTimer::count(const Comparand &comparand) {
  Problem problem(machine_, pool_, comparand.operation());
  Figures figures = untimed_figures(problem);
  figures.counts = count_call(machine_, problem.own());
  return figures;
}

Figures ProblemTimer::compare(const Comparand &comparand, Problem &problem, const Pace &pace,
                              bool is_bare) {
  if (options_.tunes) problem.own()();  // measures kernels, one of which it selects
  Figures figures = untimed_figures(problem);
  Comparison comparison(problem.own());

  const std::unique_ptr<Peer> peer =
      make_or_note("peer", comparand, [&] { return comparand.make_peer(problem); });
  size_t best = 0;
  std::optional<PeerResult> best_result;
  if (peer) {
    best = best_choice(problem, *peer);
    comparison.add(figures.peer, comparand.library, problem.peer(*peer));
    if (best != 0) comparison.add(best_result, comparand.library, problem.peer(*peer, best));
  }
  Fp32Side fp32_side;
  if (!is_bare && figures.dtype != MP_FP32)
    add_baselines(comparand, fp32_side, comparison, figures.baselines);

  figures.timing = comparison.run(stopwatch_, pace);
  const double seconds = options_.sustained_seconds(comparand.is_headline, machine_.on_host());
  if (seconds > 0) {
    figures.sustained = SustainedResult{stopwatch_.sustain(problem.own(), seconds)};
    if (peer) figures.sustained->peer = stopwatch_.sustain(problem.peer(*peer), seconds);
  }
  if (!peer) return figures;
  figures.peer_workspace = peer->workspace(0);
  figures.peer->agrees = check_agreement(comparand, problem, *peer, 0);
  if (best_result) best_result->agrees = check_agreement(comparand, problem, *peer, best);
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

bool ProblemTimer::check_agreement(const Comparand &comparand, Problem &problem, const Peer &peer,
                                   size_t choice) {
  const std::string differs = problem.difference_to(peer, choice);
  if (differs.empty()) return true;
  report_.add_failure("mpcore and " + comparand.library + " differ for " + comparand.name + ": " +
                      differs + ".");
  return false;
}

void ProblemTimer::add_baselines(const Comparand &comparand, Fp32Side &side, Comparison &comparison,
                                 Baselines &baselines) {
  if (!machine_.on_host() && comparand.library.empty()) return;
  try {
    side.problem.emplace(machine_, fp32_pool_, comparand.fp32_operation());
  } catch (const std::exception &error) {
    report_.add_note("No FP32 baseline for " + comparand.name + ": " + error.what() + ".");
    return;
  }
  if (machine_.on_host()) {
    comparison.add(baselines.fp32, "mpcore, FP32", side.problem->own());
    return;
  }
  const auto add = [&](const char *name, PeerMath math, std::unique_ptr<Peer> &peer,
                       std::optional<PeerResult> &baseline) {
    peer = make_or_note((name + std::string(" baseline")).c_str(), comparand,
                        [&] { return comparand.make_fp32_peer(*side.problem, math); });
    if (peer) comparison.add(baseline, comparand.library + ", " + name, side.problem->peer(*peer));
  };
  add("FP32", PeerMath::kFp32, side.fp32, baselines.fp32);
  if (machine_.info().arch >= kFirstArchWithTf32)
    add("TF32", PeerMath::kTf32, side.tf32, baselines.tf32);
}

template <typename Make>
std::unique_ptr<Peer> ProblemTimer::make_or_note(const char *what, const Comparand &comparand,
                                                 Make make) {
  if (comparand.library.empty()) return nullptr;
  try {
    return make();
  } catch (const std::exception &error) {
    report_.add_note(text("No %s for ", what) + comparand.name + ": " + error.what() + ".");
    return nullptr;
  }
}

}  // namespace mpbench
