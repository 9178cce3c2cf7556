// Which kernel runs a problem: the one that the caller names, or the best; and of the best, what the calling
// thread asked last costs a look-up instead of a ranking.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/cache.h"
#include "base/thread_local_object.h"
#include "capi/context.h"
#include "capi/gemm_tuning.h"
#include "kernels/conv/problem.h"
#include "kernels/gemm/problem.h"

namespace mp {

// What selection looks at: shapes, types, layouts, and what an epilogue has to do.  Whether there are pointer
// arrays matters, not what is in them; whether C is read, not its factor; of what is stored, how it is aligned.

/// An address that is aligned as the pointer is, up to 16 bytes; NULL stays NULL.
inline void *alignment_of(const void *pointer) {
  constexpr uintptr_t kUnit = 16;
  if (pointer == nullptr) return nullptr;
  return reinterpret_cast<void *>(kUnit + reinterpret_cast<uintptr_t>(pointer) % kUnit);
}

/// One address for all pointers that are not NULL.
template <class T>
T *presence_of(const T *pointer) {
  return pointer != nullptr ? reinterpret_cast<T *>(alignof(std::max_align_t)) : nullptr;
}

inline Operand layout_of(const Operand &operand) {
  static const void *const some_items[1] = {};
  return {nullptr, operand.items != nullptr ? some_items : nullptr, operand.ld, operand.stride};
}

inline Operand layout_and_alignment_of(const Operand &operand) {
  Operand layout = layout_of(operand);
  layout.base = alignment_of(operand.base);
  return layout;
}

inline Epilogue layout_of(const Epilogue &e) {
  const bool has_aux = e.aux != nullptr;
  return {.activation = e.activation,
          .scale = nullptr,
          .bias = presence_of(static_cast<const char *>(e.bias)),
          .bias_dtype = MP_FP32,
          .aux = alignment_of(e.aux),
          .ld_aux = has_aux ? e.ld_aux : 0,
          .stride_aux = has_aux ? e.stride_aux : 0,
          .dbias = presence_of(e.dbias),
          .amax = presence_of(e.amax),
          .found_inf = presence_of(e.found_inf)};
}

inline Output layout_of(const Output &out) {
  return {.m = out.m,
          .n = out.n,
          .batch_count = out.batch_count,
          .dtype = out.dtype,
          .alpha = 1.0f,
          .beta = out.beta != 0.0f ? 1.0f : 0.0f,
          .c = out.beta != 0.0f ? layout_and_alignment_of(out.c) : layout_of(out.c),
          .d = layout_and_alignment_of(out.d),
          .epilogue = layout_of(out.epilogue)};
}

inline GemmProblem layout_of(const GemmProblem &p) {
  return {layout_of(p.out), p.k, p.op_a, p.op_b, p.dtype_ab, layout_of(p.a), layout_of(p.b)};
}

inline RaggedProblem layout_of(const RaggedProblem &p) {
  return {layout_of(p.all), p.dimension, nullptr};
}

inline ConvProblem layout_of(const ConvProblem &p) {
  return {p.op, p.shape, p.dtype, nullptr, nullptr, layout_of(p.out)};
}

/// Only what tells calls of one shape apart: a hash need not see everything.
inline void mix_layout(Hash &hash, const Output &out) {
  const Epilogue &e = out.epilogue;
  uint64_t flags = static_cast<uint64_t>(e.activation) << 3 | static_cast<uint64_t>(out.dtype);
  for (const bool flag : {out.beta != 0.0f, e.bias != nullptr, e.aux != nullptr, e.dbias != nullptr,
                          e.amax != nullptr, e.found_inf != nullptr})
    flags = flags << 1 | static_cast<uint64_t>(flag);
  hash.mix(flags);
}

inline void mix_layout(Hash &hash, const GemmProblem &p) {
  mix_layout(hash, p.out);
  hash.mix({p.out.m, p.out.n, p.k, p.out.batch_count, p.a.ld, p.b.ld, p.a.stride, p.b.stride});
  hash.mix(static_cast<uint64_t>(p.op_a) << 6 | static_cast<uint64_t>(p.op_b) << 4 |
           static_cast<uint64_t>(p.dtype_ab) << 2);
}

inline void mix_layout(Hash &hash, const RaggedProblem &p) {
  mix_layout(hash, p.all);
  hash.mix(static_cast<uint64_t>(p.dimension));
}

inline void mix_layout(Hash &hash, const ConvProblem &p) {
  mix_layout(hash, p.out);
  const ConvShape &s = p.shape;
  hash.mix({s.n, s.h, s.w, s.c, s.k, s.r, s.s, s.pad_top, s.pad_left, s.stride_h, s.stride_w,
            s.dilation_h, s.dilation_w, s.groups});
  hash.mix(static_cast<uint64_t>(p.op) << 4 | static_cast<uint64_t>(p.dtype) << 2);
}

/// One question: `problem` is a layout_of.
template <class Problem>
struct ChoiceKey {
  uint64_t context;  ///< Context::id: two contexts may differ in their limits
  size_t workspace_bytes;
  bool aligned;
  Problem problem;

  bool operator==(const ChoiceKey &) const = default;
  uint64_t hash() const {
    Hash hash{context << 1 | static_cast<uint64_t>(aligned)};
    hash.mix(workspace_bytes);
    mix_layout(hash, problem);
    return hash.sum;
  }
};

/// As plan_gemm and best_conv.
template <class Problem, class Choice>
using Best = Choice(const Problem &, const Device &, const GemmTuning &, bool aligned,
                    size_t workspace_bytes);
/// As find_gemm and find_conv.
template <class Problem, class Choice>
using Find = bool(const Problem &, const Device &, const GemmTuning &, bool aligned,
                  const char *name, Choice *, const char **why);

/// best(...), from the calling thread's cache where it is there.
template <class Problem, class Choice>
Choice cached_plan(Best<Problem, Choice> *best, const Context &context, const Problem &problem,
                   bool aligned, size_t workspace_bytes) {
  using ChoiceCache = Cache<ChoiceKey<Problem>, Choice>;
  return ThreadLocal<ChoiceCache>::get().find(
      {context.id, workspace_bytes, aligned, layout_of(problem)},
      [&] { return best(problem, context.device, gemm_tuning(), aligned, workspace_bytes); });
}

/// Of a call that has nothing to do, and so chooses no kernel: a name that is none is still an error.
inline void require_known_kernel(const char *kernel, std::span<const char *const> names) {
  const auto is_it = [&](const char *name) { return std::strcmp(name, kernel) == 0; };
  MP_REQUIRE(kernel == nullptr || std::any_of(names.begin(), names.end(), is_it),
             MP_ERROR_NOT_FOUND, "kernel = ", kernel, " is unknown");
}

/// With at most that much workspace; `kernel` = NULL is the best, else an error if it is unknown, cannot run
/// this or needs more.
template <class Problem, class Choice>
Choice choose_kernel(Best<Problem, Choice> *best, Find<Problem, Choice> *find,
                     const Context &context, const Problem &problem, bool aligned,
                     const char *kernel, size_t workspace_bytes) {
  if (kernel == nullptr) return cached_plan(best, context, problem, aligned, workspace_bytes);
  Choice choice;
  const char *why;
  if (!find(problem, context.device, gemm_tuning(), aligned, kernel, &choice, &why)) {
    MP_REQUIRE(why != nullptr, MP_ERROR_NOT_FOUND, "kernel = ", kernel, " is unknown");
    fail(MP_ERROR_UNSUPPORTED, "kernel = ", kernel, " ", why);
  }
  MP_REQUIRE(choice.workspace_bytes <= workspace_bytes, MP_ERROR_WORKSPACE_TOO_SMALL,
             "workspace_bytes = ", workspace_bytes, ", but kernel = ", kernel, " requires ",
             choice.workspace_bytes);
  return choice;
}

}  // namespace mp
