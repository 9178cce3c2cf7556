// Element-wise instructions: in each lane, a function of one to four registers.
//
// The parameter types of the function determine the width and interpretation of the registers, so
// decode_elementwise<f>(form) completely defines an instruction.  If f is a lambda template of one
// type, use decode_elementwise<f, T>(form).
#pragma once

#include <array>
#include <bit>
#include <tuple>
#include <type_traits>
#include <utility>

#include "softgpu/isa/form.h"
#include "softgpu/machine/warp.h"

namespace softgpu {

template <class T>
inline T value_of(Word<T> word) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<T>(word);
  else
    return static_cast<T>(word);
}
template <class T>
inline Word<T> word_of(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<Word<T>>(value);
  else
    return static_cast<std::make_unsigned_t<T>>(value);
}

struct ElementwiseOperands {
  RegisterSlot to = 0;
  std::array<RegisterSlot, 4> from{};
  int rounding = 0;           ///< mode for the wrapper in rounding.h
  Handler rounded = nullptr;  ///< handler that the wrapper calls
};

/// Signature R (*)(A...) of a function, or of a lambda template for one type.
template <class F>
struct Signature {
  using Pointer = F;
};
template <class R, class Lambda, class... A>
struct Signature<R (Lambda::*)(A...) const> {
  using Pointer = R (*)(A...);
};
template <auto kFunction, class T>
struct SignatureFor
    : Signature<decltype(&std::remove_const_t<decltype(kFunction)>::template operator()<T>)> {};
template <auto kFunction>
struct SignatureFor<kFunction, void> : Signature<decltype(kFunction)> {};
template <auto kFunction, class T = void>
using SignatureOf = typename SignatureFor<kFunction, T>::Pointer;

template <auto kFunction, class Signature>
struct Elementwise;

template <auto kFunction, class R, class... A>
struct Elementwise<kFunction, R (*)(A...)> {
  static_assert(sizeof...(A) <= 4);

  static void decode(OpcodeCursor &form) {
    form.need_operands(1 + sizeof...(A));
    auto &o = form.instruction.make<ElementwiseOperands>();
    size_t operand = 1;
    ((o.from[operand - 1] = form.read(operand, sizeof(Word<A>)), operand++), ...);
    o.to = form.write(0, sizeof(Word<R>));
    form.instruction.execute = execute;
  }

  /// Inlines the function into loops that the compiler vectorizes.
  [[gnu::flatten]] static Step execute(Warp &warp, const Instruction &i, Lanes lanes) {
    const auto &o = i.as<ElementwiseOperands>();
    set_row(warp, o, lanes, std::index_sequence_for<A...>());
    return Step::kNext;
  }

 private:
  template <size_t... k>
  static void set_row(Warp &warp, const ElementwiseOperands &o, Lanes lanes,
                      std::index_sequence<k...>) {
    const std::tuple<const Word<A> *...> from{warp.row<Word<A>>(o.from[k])...};
    set_lanes(warp.row<Word<R>>(o.to), lanes, [&](int lane) {
      return word_of<R>(kFunction(value_of<A>(std::get<k>(from)[lane])...));
    });
  }
};
template <auto kFunction, class T = void>
void decode_elementwise(OpcodeCursor &form) {
  Elementwise<kFunction, SignatureOf<kFunction, T>>::decode(form);
}
/// Decodes an operation for the C++ type of the statement's type, which must be in `types`.
template <auto kFunction, Type... types>
void decode_one_of(OpcodeCursor &form) {
  form.with_type<types...>(form.type,
                           [&](auto type) { decode_elementwise<kFunction, Native<type>>(form); });
}

}  // namespace softgpu
