#include "gemm_timer.h"

#include "bench/timing/peer_library.h"
#include "bench/timing/rank.h"

namespace mpbench {

GemmTimer::GemmTimer(const Options &options, const Machine &machine, Report &report)
    : options_(options),
      machine_(machine),
      report_(report),
      stopwatch_(machine),
      pool_(machine, options.dtype),
      fp32_pool_(machine, MP_FP32) {
  if (!machine.on_host() && options.peers.cublaslt)
    open_peer_library(library_, "GEMM", report, machine.context());
}

GemmRow GemmTimer::time(const Shape &shape) {
  const mp_gemm_desc_t desc = make_desc(shape, options_.dtype, options_.out_dtype);
  GemmProblem problem(machine_, pool_, desc, shape.calls);
  GemmRow row = time(shape, desc, problem, pace_of(options_, machine_), Beside::kPeerAndBaselines);
  if (options_.rank) row.rank = rank_kernels(problem, stopwatch_, machine_);
  return row;
}

GemmRow GemmTimer::time_bare(const Shape &shape, const Pace &pace, const std::string &during) {
  const mp_gemm_desc_t desc = make_desc(shape, options_.dtype, MP_DTYPE_NONE);
  GemmProblem problem(machine_, pool_, desc, shape.calls);
  const GemmRow row = time(shape, desc, problem, pace, Beside::kPeer);
  if (!during.empty()) report_.add(gpu_state_under(machine_, problem.own(), row.timing, during));
  return row;
}

GemmRow GemmTimer::time(const Shape &shape, const mp_gemm_desc_t &desc, GemmProblem &problem,
                        const Pace &pace, Beside beside) {
  GemmRow row = untimed_row(shape, desc, problem);
  Comparison comparison(problem.own());

  const std::unique_ptr<CublasLtGemm> peer = open_peer("peer", shape, desc, PeerMath::kFp32);
  size_t best = 0;
  std::optional<PeerResult> best_result;
  if (peer) {
    best = best_choice(problem, *peer);
    comparison.add(row.peer, name_of(*library_), problem.peer(*peer));
    if (best != 0) comparison.add(best_result, name_of(*library_), problem.peer(*peer, best));
  }
  Fp32Side fp32_side;
  if (beside == Beside::kPeerAndBaselines && desc.dtype_ab != MP_FP32)
    add_baselines(shape, desc, fp32_side, comparison, row.baselines);

  row.timing = comparison.run(stopwatch_, pace);
  if (!peer) return row;
  row.peer->agrees = check_agreement(shape, problem, *peer, 0);
  if (best_result) best_result->agrees = check_agreement(shape, problem, *peer, best);
  row.peer_best = BestChoice{.choice = static_cast<int64_t>(best) + 1,
                             .of = static_cast<int64_t>(peer->choices()),
                             .result = best_result.value_or(*row.peer)};
  return row;
}

bool GemmTimer::check_agreement(const Shape &shape, GemmProblem &problem, const CublasLtGemm &peer,
                                size_t choice) {
  if (problem.agrees_with(peer, choice)) return true;
  report_.add_failure("mpcore and cuBLASLt differ for " + shape.name() + ".");
  return false;
}

size_t GemmTimer::best_choice(GemmProblem &problem, const CublasLtGemm &peer) const {
  std::vector<Work> choices;
  for (size_t choice = 0; choice < peer.choices(); ++choice)
    choices.push_back(problem.peer(peer, choice));
  return fastest_choice(choices, stopwatch_, machine_);
}

void GemmTimer::add_baselines(const Shape &shape, mp_gemm_desc_t desc, Fp32Side &side,
                              Comparison &comparison, Baselines &baselines) {
  if (!machine_.on_host() && !library_) return;
  desc.dtype_ab = desc.dtype_cd = MP_FP32;
  try {
    side.problem.emplace(machine_, fp32_pool_, desc, shape.calls);
  } catch (const std::exception &error) {
    report_.add_note("No FP32 baseline for " + shape.name() + ": " + error.what() + ".");
    return;
  }
  if (machine_.on_host()) {
    comparison.add(baselines.fp32, "mpcore, FP32", side.problem->own());
    return;
  }
  side.fp32 = open_peer("FP32 baseline", shape, desc, PeerMath::kFp32);
  if (side.fp32)
    comparison.add(baselines.fp32, name_of(*library_) + ", FP32", side.problem->peer(*side.fp32));
  if (machine_.info().arch < kFirstArchWithTf32) return;
  side.tf32 = open_peer("TF32 baseline", shape, desc, PeerMath::kTf32);
  if (side.tf32)
    comparison.add(baselines.tf32, name_of(*library_) + ", TF32", side.problem->peer(*side.tf32));
}

std::unique_ptr<CublasLtGemm> GemmTimer::open_peer(const char *what, const Shape &shape,
                                                   const mp_gemm_desc_t &desc, PeerMath math) {
  if (!library_) return nullptr;
  try {
    return std::make_unique<CublasLtGemm>(*library_, desc, math);
  } catch (const std::exception &error) {
    report_.add_note(text("No %s for ", what) + shape.name() + ": " + error.what() + ".");
    return nullptr;
  }
}

}  // namespace mpbench
