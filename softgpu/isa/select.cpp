// selp and slct: PTX ISA, Comparison and Selection Instructions.
#include <cstdint>

#include "softgpu/isa/arithmetic.h"
#include "softgpu/isa/elementwise.h"
#include "softgpu/isa/float_value.h"

namespace softgpu {
namespace {

struct SelpOperands {
  RegisterSlot to, a, b, predicate;
  bool is_negated;
};

template <class T>
Step selp(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<SelpOperands>();
  const T *a = warp.row<T>(o.a), *b = warp.row<T>(o.b);
  const Lanes p = o.is_negated ? ~warp.predicate(o.predicate) : warp.predicate(o.predicate);
  set_lanes(warp.row<T>(o.to), lanes, [&](int lane) { return p >> lane & 1 ? a[lane] : b[lane]; });
  return Step::kNext;
}

void decode_selp(OpcodeCursor &form) {
  if (!is_scalar(form.type)) form.unknown_type();
  form.need_operands(4);
  const int width = register_width(form.type);
  SelpOperands o{};
  o.a = form.read(1, width);
  o.b = form.read(2, width);
  o.predicate = form.decoder.read_predicate(form.decoder.operands()[3], &o.is_negated);
  o.to = form.write(0, width);
  form.instruction.make<SelpOperands>() = o;
  form.instruction.execute = width == 8 ? selp<uint64_t> : selp<uint32_t>;
}

/// slct: selects a if c is not negative.  A NaN counts as negative, -0 does not.
template <class C, bool kFtz>
constexpr auto select_by_sign = []<class T>(T a, T b, C c) {
  if constexpr (kFtz) c = flush(c);
  return c >= 0 ? a : b;
};

template <class T>
void decode_slct_of(OpcodeCursor &form) {
  if (form.type == Type::kS32) return decode_elementwise<select_by_sign<int32_t, false>, T>(form);
  if (form.type != Type::kF32) form.unknown_type();
  with_flags([&](auto ftz) { decode_elementwise<select_by_sign<float, ftz>, T>(form); },
             form.take("ftz"));
}
/// Decodes slct.dtype.ctype.
void decode_slct(OpcodeCursor &form) {
  const Type type = form.take_other_type();
  if (!is_scalar(type)) form.unknown_type();
  if (register_width(type) == 8)
    decode_slct_of<uint64_t>(form);
  else
    decode_slct_of<uint32_t>(form);
}

constexpr OpcodeEntry kOpcodes[] = {
    {"selp", decode_selp},
    {"slct", decode_slct},
};
static_assert(is_sorted(kOpcodes));

}  // namespace

bool decode_select(OpcodeCursor &form) {
  return decode_by(kOpcodes, form);
}

}  // namespace softgpu
