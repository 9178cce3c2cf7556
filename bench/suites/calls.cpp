// mpbench calls: host time of calls of a training step.
//
// Host time of a GEMM or convolution call: argument checks (an empty problem), kernel selection (a
// query without launch; not needed by a call that names its kernel), and the rest.
//
// Kernels that use TMA need tensor maps, which each thread caches for recent problems.  Calls with
// different pointers or shapes exceed that cache.
#define MP_ENABLE_EXPERIMENTAL
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include "bench/peers/cublas.h"
#include "bench/rows/rows.h"
#include "peer_library.h"
#include "runnable.h"
#include "step_data.h"
#include "step_ops.h"
#include "suite.h"

namespace mpbench {
namespace {

struct CallCase {
  std::string call;     ///< e.g. "mp_gemm"
  std::string problem;  ///< e.g. "4096x4096x4096, named kernel"
  /// True if the call enqueues device work.  On the host target such a call executes the work
  /// itself, so its time is not call overhead.
  bool enqueues;
  /// Creates work with one data set for all calls; the work owns the data.
  std::function<Work(const Machine &, Pools &)> make;
  /// Creates the same call of cuBLASLt with separate data; NULL = there is none.
  std::function<Work(const Machine &, const CublasLt &)> make_peer = nullptr;

  std::string label() const { return call + ", " + problem; }
  /// Each case is its own kind: --quick runs all, since they are short.
  std::string kind() const { return label(); }
  double effort_flop() const { return 0; }
};

/// Data of a GEMM or convolution call.
struct Matrices {
  Buffer a, b, d, workspace;
};

Buffer matrix(const Machine &machine, int64_t rows, int64_t cols) {
  return make_buffer(machine.context(), rows * cols, MP_FP16);
}

// ---------------------------------------------------------------------------- GEMM

constexpr int64_t kSmall = 128;
constexpr int64_t kLarge = 4096;
/// Several times the size of a thread's tensor map cache.
constexpr int64_t kOthers = 1024;
constexpr int32_t kGroup = 8;

int64_t workspace_bytes(const Machine &machine, const mp_gemm_desc_t &desc) {
  return bytes_from(mp_gemm_workspace_size, machine.context(), &desc, nullptr);
}

std::shared_ptr<Matrices> matrices_of(const Machine &machine, const mp_gemm_desc_t &desc) {
  return std::make_shared<Matrices>(
      matrix(machine, desc.m, desc.k), matrix(machine, desc.k, desc.n),
      matrix(machine, desc.m, desc.n), Buffer(machine.context(), workspace_bytes(machine, desc)));
}

mp_gemm_desc_t square(int64_t edge) {
  return mp_gemm_desc_default(edge, edge, edge, MP_FP16, MP_FP16);
}

/// Shape of call i of a sequence; differs from the shapes of the calls before.
mp_gemm_desc_t other_shape(int64_t i) {
  constexpr int64_t kSteps = 32;
  return mp_gemm_desc_default(kSmall + 8 * (i / kSteps), kSmall + 8 * (i % kSteps), kSmall, MP_FP16,
                              MP_FP16);
}

std::string edges_text(const mp_gemm_desc_t &desc) {
  return text("%lldx%lldx%lld", static_cast<long long>(desc.m), static_cast<long long>(desc.n),
              static_cast<long long>(desc.k));
}

void call_gemm(const Machine &machine, const mp_gemm_desc_t &desc, const Matrices &x,
               int64_t offset_bytes = 0) {
  machine.call(mp_gemm, &desc, x.a.as<char>() + offset_bytes, x.b.as<char>() + offset_bytes,
               nullptr, x.d.as<char>() + offset_bytes, nullptr, x.workspace);
}

/// @param change  changes the descriptor of a square for the call; NULL = the problem has a peer
CallCase gemm(int64_t edge, const std::string &what = {}, bool enqueues = true,
              void (*change)(const Machine &, mp_gemm_desc_t &) = nullptr) {
  mp_gemm_desc_t desc = square(edge);
  CallCase call{.call = "mp_gemm",
                .problem = enqueues ? edges_text(desc) + what : what,
                .enqueues = enqueues,
                .make = [desc, change](const Machine &machine, Pools &) mutable -> Work {
                  const auto x = matrices_of(machine, desc);
                  if (change != nullptr) change(machine, desc);
                  return [&machine, desc, x] { call_gemm(machine, desc, *x); };
                }};
  if (change == nullptr)
    call.make_peer = [desc](const Machine &machine, const CublasLt &library) -> Work {
      return [call = library.gemm(desc).front(), x = matrices_of(machine, desc)] {
        call.enqueue({x->a.data(), x->b.data(), x->d.data()});
      };
    };
  return call;
}

void name_kernel(const Machine &machine, mp_gemm_desc_t &desc) {
  mp_kernel_info_t best;
  MP_INIT_STRUCT(&best);
  check(mp_gemm_kernel_info(machine.context(), &desc, 0, &best));
  desc.plan = named_plan(best.name);
}

CallCase gemm_of_other_pointers() {
  const mp_gemm_desc_t desc = square(kSmall);
  return {.call = "mp_gemm",
          .problem = edges_text(desc) + ", other pointers",
          .enqueues = true,
          .make = [desc](const Machine &machine, Pools &) -> Work {
            const auto x = std::make_shared<Matrices>(
                matrix(machine, kOthers + kSmall, kSmall),
                matrix(machine, kOthers + kSmall, kSmall),
                matrix(machine, kOthers + kSmall, kSmall),
                Buffer(machine.context(), workspace_bytes(machine, desc)));
            const int64_t row_bytes = kSmall * dtype_bytes(MP_FP16);
            return [&machine, desc, x, row_bytes, i = int64_t{0}]() mutable {
              call_gemm(machine, desc, *x, (i++ % kOthers) * row_bytes);
            };
          }};
}

CallCase gemm_of_other_shapes() {
  return {.call = "mp_gemm",
          .problem = "another shape each time",
          .enqueues = true,
          .make = [](const Machine &machine, Pools &) -> Work {
            const auto x = matrices_of(machine, other_shape(kOthers - 1));
            return [&machine, x, i = int64_t{0}]() mutable {
              call_gemm(machine, other_shape(i++ % kOthers), *x);
            };
          }};
}

CallCase gemm_choice(const std::string &problem, mp_gemm_desc_t (*desc_of_call)(int64_t)) {
  return {.call = "mp_gemm_workspace_size",
          .problem = problem,
          .enqueues = false,
          .make = [desc_of_call](const Machine &machine, Pools &) -> Work {
            return [&machine, desc_of_call, i = int64_t{0}]() mutable {
              (void)workspace_bytes(machine, desc_of_call(i++ % kOthers));
            };
          }};
}

// ---------------------------------------------------------------------------- groups

struct Group {
  mp_gemm_desc_t desc = mp_gemm_desc_default(0, 0, 0, MP_FP16, MP_FP16);
  std::vector<mp_gemm_group_item_t> items;
  std::vector<std::shared_ptr<Matrices>> matrices;
  Buffer workspace;
};

int64_t workspace_bytes(const Machine &machine, const Group &group) {
  return bytes_from(mp_gemm_grouped_workspace_size, machine.context(), &group.desc, kGroup,
                    group.items.data(), nullptr);
}

/// @param rows  m of the first GEMM; the others have more.  0 = all are empty.
std::shared_ptr<Group> make_group(const Machine &machine, int64_t rows) {
  const auto group = std::make_shared<Group>();
  for (int64_t i = 0; i < kGroup; ++i) {
    const int64_t m = rows * (i + 1);
    mp_gemm_group_item_t item = mp_gemm_group_item_default(m, kSmall, kSmall);
    group->matrices.push_back(
        matrices_of(machine, mp_gemm_desc_default(kSmall + m, kSmall, kSmall, MP_FP16, MP_FP16)));
    item.A = group->matrices.back()->a.data();
    item.B = group->matrices.back()->b.data();
    item.D = group->matrices.back()->d.data();
    group->items.push_back(item);
  }
  group->workspace = Buffer(machine.context(), workspace_bytes(machine, *group));
  return group;
}

CallCase gemm_grouped(int64_t rows) {
  return {.call = "mp_gemm_grouped",
          .problem = text("%d GEMMs%s", kGroup, rows > 0 ? "" : ", all empty"),
          .enqueues = rows > 0,
          .make = [rows](const Machine &machine, Pools &) -> Work {
            return [&machine, g = make_group(machine, rows)] {
              machine.call(mp_gemm_grouped, &g->desc, kGroup, g->items.data(), nullptr,
                           g->workspace);
            };
          }};
}

CallCase grouped_choice() {
  return {.call = "mp_gemm_grouped_workspace_size",
          .problem = text("%d GEMMs", kGroup),
          .enqueues = false,
          .make = [](const Machine &machine, Pools &) -> Work {
            return
                [&machine, g = make_group(machine, kSmall)] { (void)workspace_bytes(machine, *g); };
          }};
}

// ---------------------------------------------------------------------------- convolution

constexpr char kLayer[] = "32x56x56x64, 64 of 3x3";

mp_conv2d_desc_t layer(int32_t images) {
  mp_conv2d_desc_t desc = mp_conv2d_desc_default(images, 56, 56, 64, 64, 3, 3, MP_FP16);
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = 1;
  return desc;
}

int64_t workspace_bytes(const Machine &machine, const mp_conv2d_desc_t &desc, mp_conv_op_t op) {
  return bytes_from(mp_conv2d_workspace_size, machine.context(), &desc, op, nullptr);
}

using Convolve = decltype(mp_conv2d_fprop);

CallCase conv(const char *name, Convolve *convolve, mp_conv_op_t op, int32_t images) {
  return {.call = name,
          .problem = images > 0 ? kLayer : "empty",
          .enqueues = images > 0,
          .make = [convolve, op, images](const Machine &machine, Pools &) -> Work {
            // Images and results have the same size; a filter is smaller.
            const mp_conv2d_desc_t full = layer(32);
            const auto x = std::make_shared<Matrices>(
                matrix(machine, full.n * full.h * full.w, full.c),
                matrix(machine, full.n * full.h * full.w, full.c),
                matrix(machine, full.n * full.h * full.w, full.c),
                Buffer(machine.context(), workspace_bytes(machine, full, op)));
            return [&machine, convolve, desc = layer(images), x] {
              machine.call(convolve, &desc, x->a.data(), x->b.data(), x->d.data(), nullptr,
                           x->workspace);
            };
          }};
}

CallCase conv_choice() {
  return {.call = "mp_conv2d_workspace_size",
          .problem = kLayer,
          .enqueues = false,
          .make = [](const Machine &machine, Pools &) -> Work {
            return [&machine, desc = layer(32)] {
              (void)workspace_bytes(machine, desc, MP_CONV_FPROP);
            };
          }};
}

// ---------------------------------------------------------------------------- other calls

constexpr int64_t kTensorElems = 1000;

const StepOp &step_op(const std::string &name) {
  static const std::vector<StepOp> ops = step_ops();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [&](const StepOp &op) { return op.name == name; });
  if (found == ops.end()) throw std::logic_error(name + " is not an operation of the step");
  return *found;
}

/// An operation of mpbench step on few elements per tensor, so that host work per tensor dominates.
CallCase on_tensors(const char *call, const char *op, int64_t tensors) {
  const Layout layout = equal_tensors(tensors, kTensorElems);
  return {.call = call,
          .problem = text("%lld tensor%s", static_cast<long long>(tensors), tensors > 1 ? "s" : ""),
          .enqueues = true,
          .make = [&chosen = step_op(op), layout](const Machine &machine, Pools &pools) {
            return chosen.make(machine, pools, layout);
          }};
}

/// Case of a call on a scaler.
template <typename Call>
CallCase on_scaler(const char *name, const char *problem, bool enqueues, const Call &call) {
  return {.call = name,
          .problem = problem,
          .enqueues = enqueues,
          .make = [call](const Machine &machine, Pools &) -> Work {
            const auto scaler = std::make_shared<Scaler>(make_scaler(machine));
            // A first update creates an outcome to query.
            check(mp_scaler_update(scaler->get(), nullptr, machine.stream()));
            machine.synchronize();
            return
                [scaler, call, stream = machine.stream()] { check(call(scaler->get(), stream)); };
          }};
}

std::vector<CallCase> call_cases() {
  std::vector<CallCase> cases = {
      gemm(kSmall, "empty", false, [](const Machine &, mp_gemm_desc_t &desc) { desc.m = 0; }),
      gemm_choice(edges_text(square(kSmall)), [](int64_t) { return square(kSmall); }),
      gemm_choice(edges_text(square(kLarge)), [](int64_t) { return square(kLarge); }),
      gemm_choice("another shape each time", other_shape),
      gemm(kSmall),
      gemm(kSmall, ", named kernel", true, name_kernel),
      gemm_of_other_pointers(),
      gemm_of_other_shapes(),
      gemm(kLarge),
      gemm(kLarge, ", named kernel", true, name_kernel),
      gemm_grouped(0),
      grouped_choice(),
      gemm_grouped(kSmall),
      conv("mp_conv2d_fprop", mp_conv2d_fprop, MP_CONV_FPROP, 0),
      conv_choice(),
      conv("mp_conv2d_fprop", mp_conv2d_fprop, MP_CONV_FPROP, 32),
      conv("mp_conv2d_dgrad", mp_conv2d_dgrad, MP_CONV_DGRAD, 32),
      conv("mp_conv2d_wgrad", mp_conv2d_wgrad, MP_CONV_WGRAD, 32),
  };
  for (const int64_t tensors : {1, 100, 10'000}) {
    for (const auto &[call, op] :
         {std::pair{"mp_scale_step", "scale_step adamw"},
          std::pair{"mp_check_nonfinite", "check_nonfinite"}, std::pair{"mp_l2norm", "l2norm"},
          std::pair{"mp_grads_accumulate", "grads_accumulate"}})
      cases.push_back(on_tensors(call, op, tensors));
  }
  cases.push_back(
      on_scaler("mp_scaler_update", "backoff", true, [](mp_scaler_t scaler, mp_stream_t stream) {
        return mp_scaler_update(scaler, nullptr, stream);
      }));
  cases.push_back(on_scaler("mp_scaler_query_step", "a step that is done", false,
                            [](mp_scaler_t scaler, mp_stream_t) {
                              mp_step_outcome_t outcome;
                              return mp_scaler_query_step(scaler, 1, &outcome);
                            }));
  return cases;
}

// ---------------------------------------------------------------------------- the suite

class CallBench : BenchState {
 public:
  using BenchState::BenchState;

  void begin() const;
  void measure(const CallCase &call);

 private:
  /// Empty if the call has no peer.
  std::optional<Work> make_peer(const CallCase &call);

  Stopwatch stopwatch_{machine_};
  Pools pools_{RandomPool(machine_, MP_FP16), RandomPool(machine_, MP_FP32)};
  std::unique_ptr<CublasLt> library_ =
      open_peer<CublasLt>(options_.peers.cublaslt, "calls", machine_, report_);
};

void CallBench::begin() const {
  if (machine_.on_host())
    report_.add_note(
        "calls: on the host target only calls that enqueue no work are measured; other calls "
        "execute the kernels themselves.");
}

void CallBench::measure(const CallCase &call) {
  std::vector<Work> works = {call.make(machine_, pools_)};
  if (std::optional<Work> peer = make_peer(call)) works.push_back(std::move(*peer));
  const std::vector<Timing> timings = stopwatch_.time_host(works);
  CallRow row{.call = call.call, .problem = call.problem, .timing = timings[0]};
  if (works.size() > 1) row.peer = peer_result(name_of(*library_), timings[1]);
  report_.add(row);
}

std::optional<Work> CallBench::make_peer(const CallCase &call) {
  if (!library_ || !call.make_peer) return std::nullopt;
  return report_.make_or_note("reference for " + call.label(), [&]() -> std::optional<Work> {
    return call.make_peer(machine_, *library_);
  });
}

}  // namespace

Suite calls_suite(const Options &options, const Machine &machine, Report &report) {
  std::vector<CallCase> cases = call_cases();
  if (machine.on_host()) std::erase_if(cases, [](const CallCase &call) { return call.enqueues; });
  const auto cost_us = [&](const CallCase &) { return machine.on_host() ? 1e4 : 1e5; };
  return make_suite<CallBench>("calls", selected(std::move(cases), options, machine.on_host()),
                               cost_us, options, machine, report);
}

}  // namespace mpbench
