// mpbench epilogue: GEMMs of linear layers with the epilogues of training, compared with cuBLASLt's
// epilogues.
#include <optional>

#include "bench/peers/cublaslt.h"
#include "bench/rows/rows.h"
#include "gemm_then_stats.h"
#include "peer_library.h"
#include "problem_timer.h"
#include "suite.h"
#include "suites.h"

namespace mpbench {
namespace {

cublaslt::Epilogue peer_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return cublaslt::kBias;
    case Epilogue::kBiasRelu:
      return cublaslt::kReluBias;
    case Epilogue::kBiasGeluAux:
      return cublaslt::kGeluAuxBias;
    case Epilogue::kDgeluDbias:
      return cublaslt::kDgeluBgrad;
    case Epilogue::kNone:
    case Epilogue::kAmaxFoundInf:
    case Epilogue::kAccumulateFp32:
      return cublaslt::kDefault;
  }
  return cublaslt::kDefault;
}

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
            return std::make_unique<CublasLtGemm>(*library_, desc, PeerMath::kFp32,
                                                  peer_epilogue(shape.epilogue));
          }};
}

}  // namespace

Suite epilogue_suite(const Options &options, const Machine &machine, Report &report) {
  const auto cost_us = [&](const EpilogueShape &shape) {
    return measuring_us(machine, pace_of(options, machine), shape.effort_flop());
  };
  return make_suite<EpilogueBench>("epilogue", read_epilogue_shapes(options, machine.on_host()),
                                   cost_us, options, machine, report);
}

}  // namespace mpbench
