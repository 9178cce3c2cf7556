// Comparison of the calling conventions of a declaration here and one in a peer's header.
#pragma once

#include <type_traits>

namespace mpbench {

template <typename Ours, typename Theirs>
constexpr bool kSamePassing =
    sizeof(Ours) == sizeof(Theirs) &&
    std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&std::is_floating_point_v<Ours> ==
        std::is_floating_point_v<Theirs>;

template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};

/// True if parameters and result are passed alike: pointers as pointers, integers and enums of
/// equal size.
template <typename R, typename... P, typename S, typename... Q>
requires(sizeof...(P) == sizeof...(Q)) struct SameCall<R (*)(P...), S (*)(Q...)>
    : std::bool_constant<kSamePassing<R, S> && (kSamePassing<P, Q> && ...)> {
};

template <typename Theirs, typename Ours>
consteval bool same_call(Ours, Theirs) {
  return SameCall<Ours, Theirs>::value;
}

// Compares each entry of a table (dynamic_library.h).
#define MPBENCH_SAME_CALLS(table, list, compare) \
  static_assert([] {                             \
    struct Same : table {                        \
      list(compare)                              \
    };                                           \
    return true;                                 \
  }());
#define MPBENCH_SAME_CALL(result, member, symbol, ...) \
  static_assert(SameCall<decltype(member), decltype(+symbol)>::value, #symbol);

}  // namespace mpbench
