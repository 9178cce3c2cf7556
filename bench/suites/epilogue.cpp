// mpbench epilogue: GEMMs of linear layers with the epilogues of training, compared with cuBLASLt's
// epilogues.
#include <map>
#include <memory>
#include <optional>

#include "bench/peers/cublaslt.h"
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
      : machine_(machine), gemm_(library, desc) {
    for (const Operands &set : problem.all_sets()) {
      void *data = set.out;
      const int64_t numel = desc.m * desc.n;
      mp_tensor_list_desc_t list_desc;
      MP_INIT_STRUCT(&list_desc);
      list_desc.dtype = desc.dtype_cd;
      list_desc.count = 1;
      list_desc.data = &data;
      list_desc.numel = &numel;
      mp_tensor_list_t list = nullptr;
      check(mp_tensor_list_create(&list, machine.context(), &list_desc));
      lists_[data].reset(list);
    }
  }

  size_t choices() const override { return gemm_.choices(); }
  PeerWorkspace workspace(size_t choice) const override { return gemm_.workspace(choice); }
  void enqueue(const Operands &t, size_t choice) const override {
    gemm_.enqueue(t, choice);
    mp_stats_outputs_t outputs;
    MP_INIT_STRUCT(&outputs);
    outputs.amax = t.epilogue.amax;
    outputs.found_inf = t.epilogue.found_inf;
    check(mp_tensor_stats(lists_.at(t.out).get(), &outputs, machine_.stream()));
  }

 private:
  const Machine &machine_;
  CublasLtGemm gemm_;
  std::map<const void *, TensorList> lists_;  ///< key: address of D
};

class EpilogueBench {
 public:
  EpilogueBench(const Options &options, const Machine &machine, Report &report)
      : options_(options), machine_(machine), report_(report), timer_(options, machine, report) {
    if (!machine.on_host() && options.peers.cublaslt)
      open_peer_library(library_, "epilogues", report, machine.context(), machine.stream());
  }

  void measure(const EpilogueShape &shape) {
    const Figures figures =
        timer_.time_bare(comparand(shape), pace_of(options_, machine_), /*during=*/{});
    report_.add(EpilogueRow{.shape = shape, .figures = figures});
  }

 private:
  Comparand comparand(const EpilogueShape &shape) const;

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  ProblemTimer timer_;
  std::optional<CublasLt> library_;
};

Comparand EpilogueBench::comparand(const EpilogueShape &shape) const {
  const mp_gemm_desc_t desc = make_desc(shape, options_.dtype);
  const bool is_measured_apart = shape.epilogue == Epilogue::kAmaxFoundInf;
  const char *const then = is_measured_apart ? ", then mp_tensor_stats" : "";
  return {.name = shape.name(),
          .operation = [=, this] { return epilogue_operation(machine_, shape, desc); },
          .library = library_ ? name_of(*library_) + then : "",
          .make_peer = [=, this](const Problem &problem) -> std::unique_ptr<Peer> {
            if (is_measured_apart)
              return std::make_unique<GemmThenStats>(machine_, *library_, desc, problem);
            return std::make_unique<CublasLtGemm>(*library_, desc, PeerMath::kFp32, shape.epilogue);
          }};
}

}  // namespace

Suite epilogue_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite<EpilogueBench>("epilogue", read_epilogue_shapes(options, machine.on_host()),
                                   options, machine, report);
}

}  // namespace mpbench
