// mpbench gemm: matrix products of real networks, beside cuBLASLt and beside the rate that large
// squares reach in the same run.
#include <optional>

#include "bench.h"
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
  GemmRow time(const Shape &shape, const mp_gemm_desc_t &desc, GemmProblem &problem,
               const Pace &pace);
  /// NULL where there is none for this problem.
  const CublasLtGemm *open_peer(const Shape &shape, const mp_gemm_desc_t &desc);

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  RandomPool pool_;
  std::optional<CublasLt> library_;
  std::optional<CublasLtGemm> peer_;  ///< of the problem at hand
};

GemmBench::GemmBench(const Options &options, const Machine &machine, Report &report)
    : options_(options),
      machine_(machine),
      report_(report),
      stopwatch_(machine),
      pool_(machine, options.dtype) {
  if (machine.on_host() || !options.peers.cublaslt) return;
  try {
    library_.emplace(machine.context());
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
    const GemmRow row = time(shape, desc, problem, pace);
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
  GemmRow row = time(shape, desc, problem, pace_of(options_, machine_));
  if (options_.rank) row.rank = rank_kernels(problem, stopwatch_, machine_);
  report_.add(row);
}

GemmRow GemmBench::time(const Shape &shape, const mp_gemm_desc_t &desc, GemmProblem &problem,
                        const Pace &pace) {
  std::vector<Work> works = {problem.own()};
  const CublasLtGemm *const peer = open_peer(shape, desc);
  if (peer != nullptr) works.push_back(problem.peer(*peer));
  const bool agrees = peer == nullptr || problem.agrees_with(*peer);
  if (!agrees) report_.add_failure("mpcore and cuBLASLt differ for " + shape.name() + ".");

  const std::vector<Timing> timings = stopwatch_.time(works, pace);
  GemmRow row{.shape = shape,
              .desc = desc,
              .kernel = problem.kernels().front(),
              .predicted_us = problem.predicted_us(),
              .workspace_bytes = problem.workspace_bytes(),
              .sets = problem.sets(),
              .min_bytes = problem.min_bytes(),
              .timing = timings[0],
              .peer = {},
              .rank = {}};
  if (peer != nullptr)
    row.peer = PeerResult{.name = "cuBLASLt " + std::to_string(library_->version()),
                          .median_us = timings[1].median_us,
                          .q1_us = timings[1].q1_us,
                          .q3_us = timings[1].q3_us,
                          .agrees = agrees};
  return row;
}

const CublasLtGemm *GemmBench::open_peer(const Shape &shape, const mp_gemm_desc_t &desc) {
  if (!library_) return nullptr;
  try {
    return &peer_.emplace(*library_, desc);
  } catch (const std::exception &error) {
    report_.add_note("No peer for " + shape.name() + ": " + error.what() + ".");
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
