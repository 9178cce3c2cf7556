#include "softgpu/ptx/variable.h"

#include <algorithm>
#include <cstring>

#include "softgpu/ptx/constant.h"

namespace softgpu::ptx {
namespace {

/// Parses the words before the name.
void read_type(Reader &reader, Variable &v, uint32_t &element_size) {
  bool is_pointer = false;
  uint32_t vector_length = 1;
  while (reader.peek() == '.') {
    const std::string_view word = reader.word();
    if (word == ".extern") {
      v.is_extern = true;
    } else if (word == ".ptr") {
      is_pointer = true;
    } else if (word == ".align") {  // after .ptr: alignment of the pointer's target
      const uint32_t alignment = reader.number();
      if (!is_pointer) v.alignment = alignment;
    } else if (word == ".attribute") {
      reader.until(')');
    } else if (word == ".v2" || word == ".v4") {
      vector_length = word == ".v2" ? 2 : 4;
    } else if (const int size = type_size(word.substr(1)); size != 0) {
      v.type = word.substr(1);
      element_size = static_cast<uint32_t>(size);
    }
  }
  if (element_size == 0) reader.fail("a variable of an unknown type");
  element_size *= vector_length;
  v.alignment = std::max(v.alignment, element_size);
}

/// Parses `[2][3]`.  The first dimension may be empty: its size follows from the initializer or is
/// defined elsewhere.
void read_dimensions(Reader &reader, Variable &v) {
  while (reader.take('[')) {
    if (reader.take(']')) {
      v.size = 0;
      continue;
    }
    v.size *= reader.number();
    reader.expect(']');
  }
}

/// Parses `= 5` or `= {1, {2, 3}}`.
void read_initialiser(Reader &reader, Variable &v) {
  const auto size = static_cast<size_t>(type_size(v.type));
  int depth = 0;
  do {
    if (reader.take('{')) {
      depth++;
    } else if (reader.take('}')) {
      depth--;
    } else if (!reader.take(',')) {
      Operand x;
      if (!read_constant(reader, x)) reader.fail("an initializer that is not a number");
      v.initial.resize(v.initial.size() + size);
      std::memcpy(v.initial.data() + v.initial.size() - size, &x.bits, size);
    }
  } while (depth > 0);
}

}  // namespace

Variable read_variable(Reader &reader) {
  Variable v;
  uint32_t element_size = 0;
  read_type(reader, v, element_size);
  v.name = reader.word();
  if (v.name.empty()) reader.fail("a variable without a name");
  v.size = element_size;
  read_dimensions(reader, v);
  if (reader.take('=')) read_initialiser(reader, v);
  v.size = std::max<uint64_t>(v.size, v.initial.size());
  return v;
}

std::vector<Variable> read_parameters(Reader &reader) {
  std::vector<Variable> parameters;
  reader.expect('(');
  if (reader.take(')')) return parameters;
  do {
    parameters.push_back(read_variable(reader));
  } while (reader.take(','));
  reader.expect(')');
  return parameters;
}

}  // namespace softgpu::ptx
