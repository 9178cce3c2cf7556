// Host time of a GEMM call: argument checks (an empty GEMM), kernel selection (a query without
// launch; not needed by a call that names its kernel), and the rest.
//
// Kernels that use TMA need tensor maps, which each thread caches for recent problems.  Calls with
// different pointers or shapes exceed that cache.
#define MP_ENABLE_EXPERIMENTAL
#include <memory>

#include "call_cases.h"
#include "runnable.h"

namespace mpbench {
namespace {

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
  check(mp_gemm(machine.context(), &desc, x.a.as<char>() + offset_bytes,
                x.b.as<char>() + offset_bytes, nullptr, x.d.as<char>() + offset_bytes, nullptr,
                x.workspace.data(), static_cast<size_t>(x.workspace.bytes()), machine.stream()));
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
      const std::shared_ptr<Peer> peer = library.gemm(desc);
      return [peer, x = matrices_of(machine, desc)] {
        peer->enqueue({x->a.data(), x->b.data(), x->d.data()}, 0);
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
              check(mp_gemm_grouped(machine.context(), &g->desc, kGroup, g->items.data(), nullptr,
                                    g->workspace.data(), static_cast<size_t>(g->workspace.bytes()),
                                    machine.stream()));
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

}  // namespace

std::vector<CallCase> gemm_call_cases() {
  return {
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
  };
}

}  // namespace mpbench
