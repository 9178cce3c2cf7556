// mpbench gemm: matrix products of real networks, beside cuBLASLt in the same precision, in FP32 and
// in TF32, and beside the rate that large squares reach in the same run.
#include <algorithm>
#include <memory>
#include <optional>

#include "bench.h"
#include "contest.h"
#include "family.h"
#include "gemm_problem.h"
#include "rank.h"
#include "rows/gemm_row.h"
#include "shapes.h"

namespace mpbench {
namespace {

class GemmBench {
 public:
  GemmBench(const Options &options, const Machine &machine, Report &report);

  /// The ceiling.
  void begin();
  void measure(const Shape &shape);

 private:
  enum class Beside { kPeer, kPeerAndBaselines };

  /// The same product of FP32 operands, and what multiplies them.
  struct Fp32Side {
    std::optional<GemmProblem> problem;
    std::unique_ptr<CublasLtGemm> fp32, tf32;
  };

  GemmRow time(const Shape &shape, const mp_gemm_desc_t &desc, GemmProblem &problem,
               const Pace &pace, Beside beside);
  /// NULL where there is none for this problem; a note says so, and `what` it would have been.
  std::unique_ptr<CublasLtGemm> open_peer(const char *what, const Shape &shape,
                                          const mp_gemm_desc_t &desc, PeerMath math);
  /// The fastest of the peer's algorithms.
  size_t best_choice(GemmProblem &problem, const CublasLtGemm &peer) const;
  bool check_agreement(const Shape &shape, GemmProblem &problem, const CublasLtGemm &peer,
                       size_t choice);
  void add_baselines(const Shape &shape, mp_gemm_desc_t desc, Fp32Side &side, Contest &contest,
                     Baselines &baselines);
  std::string peer_name() const { return "cuBLASLt " + std::to_string(library_->version()); }

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  RandomPool pool_, fp32_pool_;
  std::optional<CublasLt> library_;
};

GemmBench::GemmBench(const Options &options, const Machine &machine, Report &report)
    : options_(options),
      machine_(machine),
      report_(report),
      stopwatch_(machine),
      pool_(machine, options.dtype),
      fp32_pool_(machine, MP_FP32) {
  if (machine.on_host() || !options.peers.cublaslt) return;
  try {
    library_.emplace(machine.context());
    report.add_library("cuBLASLt", std::to_string(library_->version()), library_->library());
  } catch (const std::exception &error) {
    report_.add_note(std::string("No peer for GEMM: ") + error.what() + ".");
  }
}

Shape square(int64_t edge) {
  return {.set = "square",
          .m = edge,
          .n = edge,
          .k = edge,
          .op_a = MP_OP_N,
          .op_b = MP_OP_T,
          .is_wgrad = false,
          .comment = {}};
}

void GemmBench::begin() {
  const std::vector<int64_t> edges =
      machine_.on_host() ? std::vector<int64_t>{512} : std::vector<int64_t>{4096, 8192};
  Pace pace = pace_of(options_, machine_);
  // The first seconds of load also bring the GPU to the clocks that its power limit allows.
  if (!machine_.on_host()) pace.warm_up_us = 1.5e6;

  Ceiling ceiling{.tflops = 0, .from = {}};
  for (const int64_t edge : edges) {
    const Shape shape = square(edge);
    const mp_gemm_desc_t desc = make_desc(shape, options_.dtype, MP_DTYPE_NONE);
    GemmProblem problem(machine_, pool_, desc);
    const GemmRow row = time(shape, desc, problem, pace, Beside::kPeer);
    const auto raise = [&](double median_us, const std::string &who) {
      const double tflops = 1e-6 * shape.flop() / median_us;
      if (tflops > ceiling.tflops)
        ceiling = {.tflops = tflops,
                   .from = who + ", " + shape.name() + ", " + dtype_name(options_.dtype)};
    };
    raise(row.timing.median_us, "mpcore");
    if (row.peer && row.peer->agrees == true) raise(row.peer->median_us, row.peer->name);
    if (edge == edges.back())
      report_.add(gpu_state_under(machine_, problem.own(), row.timing, "mp_gemm " + shape.name()));
  }
  report_.set_ceiling(ceiling);
}

void GemmBench::measure(const Shape &shape) {
  const mp_gemm_desc_t desc = make_desc(shape, options_.dtype, options_.out_dtype);
  GemmProblem problem(machine_, pool_, desc);
  GemmRow row = time(shape, desc, problem, pace_of(options_, machine_), Beside::kPeerAndBaselines);
  if (options_.rank) row.rank = rank_kernels(problem, stopwatch_, machine_);
  report_.add(row);
}

GemmRow GemmBench::time(const Shape &shape, const mp_gemm_desc_t &desc, GemmProblem &problem,
                        const Pace &pace, Beside beside) {
  GemmRow row{.shape = shape,
              .desc = desc,
              .kernel = problem.kernels().front(),
              .predicted_us = problem.predicted_us(),
              .workspace_bytes = problem.workspace_bytes(),
              .sets = problem.sets(),
              .min_bytes = problem.min_bytes(),
              .timing = {},
              .peer = {},
              .peer_best = {},
              .baselines = {},
              .rank = {}};
  Contest contest(problem.own());

  const std::unique_ptr<CublasLtGemm> peer = open_peer("peer", shape, desc, PeerMath::kFp32);
  size_t best = 0;
  std::optional<PeerResult> best_result;
  if (peer) {
    best = best_choice(problem, *peer);
    contest.add(row.peer, peer_name(), problem.peer(*peer));
    if (best != 0) contest.add(best_result, peer_name(), problem.peer(*peer, best));
  }
  Fp32Side fp32_side;
  if (beside == Beside::kPeerAndBaselines && desc.dtype_ab != MP_FP32)
    add_baselines(shape, desc, fp32_side, contest, row.baselines);

  row.timing = contest.run(stopwatch_, pace);
  if (!peer) return row;
  row.peer->agrees = check_agreement(shape, problem, *peer, 0);
  if (best_result) best_result->agrees = check_agreement(shape, problem, *peer, best);
  row.peer_best = BestChoice{.choice = static_cast<int64_t>(best) + 1,
                             .of = static_cast<int64_t>(peer->choices()),
                             .result = best_result.value_or(*row.peer)};
  return row;
}

bool GemmBench::check_agreement(const Shape &shape, GemmProblem &problem, const CublasLtGemm &peer,
                                size_t choice) {
  if (problem.agrees_with(peer, choice)) return true;
  report_.add_failure("mpcore and cuBLASLt differ for " + shape.name() + ".");
  return false;
}

size_t GemmBench::best_choice(GemmProblem &problem, const CublasLtGemm &peer) const {
  std::vector<Work> works;
  std::vector<size_t> choices;
  for (size_t choice = 0; choice < peer.choices(); ++choice) {
    const Work work = problem.peer(peer, choice);
    try {
      work();
    } catch (const std::exception &) {
      if (choice == 0) throw;
      continue;  // the heuristic does not promise that all of its choices run
    }
    works.push_back(work);
    choices.push_back(choice);
  }
  const std::vector<Timing> timings = stopwatch_.time(works, brief_pace(machine_));
  return choices[fastest_of(timings)];
}

void GemmBench::add_baselines(const Shape &shape, mp_gemm_desc_t desc, Fp32Side &side,
                              Contest &contest, Baselines &baselines) {
  if (!machine_.on_host() && !library_) return;
  desc.dtype_ab = desc.dtype_cd = MP_FP32;
  try {
    side.problem.emplace(machine_, fp32_pool_, desc);
  } catch (const std::exception &error) {
    report_.add_note("No FP32 baseline for " + shape.name() + ": " + error.what() + ".");
    return;
  }
  if (machine_.on_host()) {
    contest.add(baselines.fp32, "mpcore, FP32", side.problem->own());
    return;
  }
  side.fp32 = open_peer("FP32 baseline", shape, desc, PeerMath::kFp32);
  if (side.fp32)
    contest.add(baselines.fp32, peer_name() + ", FP32", side.problem->peer(*side.fp32));
  if (machine_.info().arch < kFirstArchWithTf32) return;
  side.tf32 = open_peer("TF32 baseline", shape, desc, PeerMath::kTf32);
  if (side.tf32)
    contest.add(baselines.tf32, peer_name() + ", TF32", side.problem->peer(*side.tf32));
}

std::unique_ptr<CublasLtGemm> GemmBench::open_peer(const char *what, const Shape &shape,
                                                   const mp_gemm_desc_t &desc, PeerMath math) {
  if (!library_) return nullptr;
  try {
    return std::make_unique<CublasLtGemm>(*library_, desc, math);
  } catch (const std::exception &error) {
    report_.add_note(text("No %s for ", what) + shape.name() + ": " + error.what() + ".");
    return nullptr;
  }
}

}  // namespace

Family gemm_family(const Options &options, const Machine &machine, Report &report) {
  const auto cost_us = [&](const Shape &shape) {
    return measuring_us(machine, pace_of(options, machine), shape.effort_flop());
  };
  return make_family<GemmBench>("gemm", read_shapes(options, machine.on_host()), cost_us, options,
                                machine, report);
}

}  // namespace mpbench
