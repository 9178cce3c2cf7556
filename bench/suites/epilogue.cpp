// mpbench epilogue: GEMMs of linear layers with the epilogues of training, compared with cuBLASLt's
// epilogues.
#include <map>
#include <memory>

#include "bench/peers/cublas.h"
#include "bench/rows/rows.h"
#include "peer_library.h"
#include "problem_timer.h"
#include "suite.h"

namespace mpbench {
namespace {

/// GEMM of cuBLASLt, then the statistics pass of mpcore over D: cuBLASLt has no epilogue that
/// measures a 16-bit result.
class GemmThenStats : public Peer {
 public:
  /// @throws std::runtime_error if cuBLASLt has no algorithm for the GEMM.
  GemmThenStats(const Machine &machine, const CublasLt &library, const mp_gemm_desc_t &desc,
                const Problem &problem)
      : machine_(machine), gemm_(library.gemm(desc)) {
    for (const Operands &set : problem.all_sets())
      lists_[set.out] = make_list(machine.context(), desc.dtype_cd, {set.out}, {desc.m * desc.n});
  }

  size_t choices() const override { return gemm_->choices(); }
  PeerWorkspace workspace(size_t choice) const override { return gemm_->workspace(choice); }
  void enqueue(const Operands &t, size_t choice) const override {
    gemm_->enqueue(t, choice);
    mp_stats_outputs_t outputs;
    MP_INIT_STRUCT(&outputs);
    outputs.amax = t.epilogue.amax;
    outputs.found_inf = t.epilogue.found_inf;
    check(mp_tensor_stats(lists_.at(t.out).get(), &outputs, machine_.stream()));
  }

 private:
  const Machine &machine_;
  std::unique_ptr<Peer> gemm_;
  std::map<const void *, TensorList> lists_;  ///< key: address of D
};

class EpilogueBench : BenchState {
 public:
  using BenchState::BenchState;

  void measure(const EpilogueShape &shape) {
    report_.add(EpilogueRow{.shape = shape, .figures = timer_.time(comparand(shape))});
  }

 private:
  Comparand comparand(const EpilogueShape &shape) const;

  ProblemTimer timer_{options_, machine_, report_};
  std::unique_ptr<CublasLt> library_ =
      open_peer<CublasLt>(options_.peers.cublaslt, "epilogues", machine_, report_);
};

Comparand EpilogueBench::comparand(const EpilogueShape &shape) const {
  const mp_gemm_desc_t desc = make_desc(shape, options_.dtype);
  const bool is_measured_apart = shape.epilogue == Epilogue::kAmaxFoundInf;
  const char *const then = is_measured_apart ? ", then mp_tensor_stats" : "";
  return {.name = shape.name(),
          .is_bare = true,
          .operation = [=, this] { return epilogue_operation(machine_, shape, desc); },
          .library = library_ ? name_of(*library_) + then : "",
          .make_peer = [=, this](const Problem &problem) -> std::unique_ptr<Peer> {
            if (is_measured_apart)
              return std::make_unique<GemmThenStats>(machine_, *library_, desc, problem);
            return library_->gemm(desc, PeerMath::kFp32, shape.epilogue);
          }};
}

}  // namespace

Suite epilogue_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite_of_sets<EpilogueBench, EpilogueShape>("epilogue", options, machine, report);
}

}  // namespace mpbench
