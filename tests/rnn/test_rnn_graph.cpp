// A training step of a recurrent network as a CUDA graph.
#include <dlfcn.h>

#include "rnn_run.h"
#include "tests/support/named_plan.h"
#include "tests/support/tally.h"

using namespace mptest;

namespace {

/// The toolkit's CUDA runtime, if installed; the one linked into the library is not exported.
class Cudart {
 public:
  Cudart() {
    for (const char *const name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so"})
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  bool is_present() const { return library_ != nullptr; }

  /// Calls a function that must return 0.
  template <class... Arguments>
  void call(const char *name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    INFO(name);
    REQUIRE(function != nullptr);
    REQUIRE(function(arguments...) == 0);
  }

 private:
  void *library_ = nullptr;
};

}  // namespace

TEST_CASE("rnn: a replayed training step gives the bits of a call with the current x", "[rnn]") {
  if (on_host()) return skip("a CUDA graph needs the CUDA target");
  const Cudart cudart;
  if (!cudart.is_present()) return skip("no libcudart.so");
  for (const RnnCell &cell : kRnnCells) {
    RnnCase c =
        make_rnn(cell.cell, 5, 6, 16, 24, MP_FP16, cell.flags | MP_RNN_FLAG_BIDIRECTIONAL, 2);
    c.desc.dropout = 0.25f;
    c.lengths = {6, 0, 3, 5, 1};
    for (const char *const kernel : kernels_of(c)) {
      c.desc.plan = named_plan(kernel);
      CAPTURE(cell.cell, cell.flags, kernel);
      RnnData data = real_data(c, 1);
      RnnRun replayed(c, data);
      void *stream = nullptr, *graph = nullptr, *step = nullptr;
      constexpr unsigned kNonBlocking = 1;
      cudart.call("cudaStreamCreateWithFlags", &stream, kNonBlocking);
      cudart.call("cudaStreamBeginCapture", stream, 0);
      replayed.enqueue_training(static_cast<mp_stream_t>(stream));
      cudart.call("cudaStreamEndCapture", stream, &graph);
      cudart.call("cudaGraphInstantiateWithFlags", &step, graph, 0ull);
      for (const double sign : {1.0, -1.0}) {
        for (double &value : data.x) value *= sign;
        replayed.set_x(data.x);
        cudart.call("cudaGraphLaunch", step, stream);
        cudart.call("cudaStreamSynchronize", stream);
        check_same(c, train(c, data), replayed.result());
        CHECK(replayed.damage() == "");
      }
      cudart.call("cudaGraphExecDestroy", step);
      cudart.call("cudaGraphDestroy", graph);
      cudart.call("cudaStreamDestroy", stream);
    }
  }
}
