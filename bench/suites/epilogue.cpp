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

/// Appends the statistics pass of mpcore over D: cuBLASLt has no epilogue that measures a 16-bit
/// result.
PeerCalls with_stats(PeerCalls gemms, const Machine &machine, const mp_gemm_desc_t &desc,
                     const Problem &problem) {
  const auto lists = std::make_shared<std::map<const void *, TensorList>>();  // key: address of D
  for (const Operands &set : problem.all_sets())
    (*lists)[set.out] = make_list(machine.context(), desc.dtype_cd, {set.out}, {desc.m * desc.n});
  for (PeerCall &call : gemms)
    call.enqueue = [&machine, lists, gemm = std::move(call.enqueue)](const Operands &t) {
      gemm(t);
      mp_stats_outputs_t outputs;
      MP_INIT_STRUCT(&outputs);
      outputs.amax = t.epilogue.amax;
      outputs.found_inf = t.epilogue.found_inf;
      check(mp_tensor_stats(lists->at(t.out).get(), &outputs, machine.stream()));
    };
  return gemms;
}

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
          .make_peer =
              [=, this](const Problem &problem) {
                const PeerCalls gemms = library_->gemm(desc, PeerMath::kFp32, shape.epilogue);
                return is_measured_apart ? with_stats(gemms, machine_, desc, problem) : gemms;
              }};
}

}  // namespace

Suite epilogue_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite_of_sets<EpilogueBench, EpilogueShape>("epilogue", options, machine, report);
}

}  // namespace mpbench
