#include "softgpu/ptx/operand.h"

#include <utility>

#include "softgpu/ptx/constant.h"

namespace softgpu::ptx {
void OperandReader::set_register(Operand &x, int reg) const {
  x.reg = reg;
  x.width = body_.registers[static_cast<size_t>(reg)].width;
  x.is_half = body_.registers[static_cast<size_t>(reg)].is_half;
}

Operand OperandReader::read() {
  Operand x = read_one();
  if (reader_.take('|')) x.second = std::make_shared<const Operand>(read_one());
  return x;
}

Operand OperandReader::read_one() {
  Operand x;
  if (reader_.take('{')) {
    x.kind = OperandKind::kVector;
    do {
      x.items.push_back(read_one());
    } while (reader_.take(','));
    reader_.expect('}');
  } else if (reader_.peek() == '[') {
    x = read_address();
  } else if (reader_.take('!')) {
    x = read_register();
    x.is_negated = true;
  } else if (!read_constant(reader_, x)) {
    x = read_named();
  }
  return x;
}

/// Parses a register, special register, symbol or `_`.
Operand OperandReader::read_named() {
  const std::string_view name = reader_.word();
  Operand x;
  if (name.empty()) reader_.fail("expected an operand");
  if (name == "_") return x;
  if (const int reg = scopes_.find_register(name); reg >= 0) {
    x.kind = OperandKind::kRegister;
    set_register(x, reg);
  } else if (name[0] == '%') {
    x.kind = OperandKind::kSpecial;
  } else if (name == "WARP_SZ") {
    x.kind = OperandKind::kImmediate;
    x.bits = 32;
  } else {
    x.kind = OperandKind::kSymbol;
    const std::string_view unique = scopes_.find_symbol(name);
    x.name = unique.empty() ? name : unique;
    x.offset = read_offset();
    return x;
  }
  x.name = name;
  return x;
}

Operand OperandReader::read_register() {
  const Reader begin = reader_;
  Operand x = read_named();
  if (x.kind != OperandKind::kRegister) begin.fail("expected a register");
  return x;
}

/// Parses `+8`, `-8`, `+-8` or nothing.
int64_t OperandReader::read_offset() {
  const bool is_positive = reader_.take('+');
  const bool is_negative = !is_positive && reader_.take('-');
  if (!is_positive && !is_negative) return 0;
  Operand x;
  if (!read_constant(reader_, x) || x.is_float) reader_.fail("expected an offset");
  const auto offset = static_cast<int64_t>(x.bits);
  return is_negative ? -offset : offset;
}

/// Parses `[%rd1+8]`, `[name]`, `[16]` or, for TMA, `[%rd1, {%r1, %r2}]`.
Operand OperandReader::read_address() {
  reader_.expect('[');
  Operand x;
  if (!read_constant(reader_, x)) {
    x = read_named();
    if (x.kind != OperandKind::kRegister && x.kind != OperandKind::kSymbol)
      reader_.fail("expected an address");
    if (x.kind == OperandKind::kRegister) {
      x.name = {};
      x.offset = read_offset();
    }
  } else {
    x.offset = static_cast<int64_t>(std::exchange(x.bits, 0));
  }
  x.kind = OperandKind::kAddress;
  while (reader_.take(',')) x.items.push_back(read_one());
  reader_.expect(']');
  return x;
}

}  // namespace softgpu::ptx
