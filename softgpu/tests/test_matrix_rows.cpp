// ldmatrix and stmatrix, compared with their fragments, and their checks.
#include "softgpu/tests/fragments.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Values = std::vector<uint32_t>;
using Words = Buffer<uint32_t>;

/// Rows are in reverse order in memory: row r of the matrices is at 16 (31 - r).
size_t place_of_row(int row) {
  return static_cast<size_t>(31 - row);
}

/// Sets %s to the address of this lane's row.
const std::string kSharedRows =
    ".shared .align 16 .b8 rows[512];\n.reg .b32 %s;\n.reg .b64 %g;\nmov.u32 %s, rows;\n"
    "mad.lo.u32 %s, %t, -16, %s;\nadd.u32 %s, %s, 496;\n";

/// Copies 16 bytes of buffer 0 to each row.
const std::string kFillRows =
    ".reg .b32 %v<4>;\nmad.wide.u32 %g, %t, 16, %p0;\n"
    "ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%g];\n"
    "st.shared.v4.u32 [%s], {%v0, %v1, %v2, %v3};\nbar.warp.sync -1;\n";
/// Copies each row to buffer 1.
const std::string kReadRows =
    ".reg .b32 %w<4>;\nbar.warp.sync -1;\nmad.wide.u32 %g, %t, 16, %p1;\n"
    "ld.shared.v4.u32 {%w0, %w1, %w2, %w3}, [%s];\n"
    "st.global.v4.u32 [%g], {%w0, %w1, %w2, %w3};\n";

std::string form(int count, bool is_transposed) {
  return ".sync.aligned.m8n8.x" + std::to_string(count) + (is_transposed ? ".trans" : "") +
         ".shared.b16 ";
}

/// Lane and half of the register that holds element (row, column) of matrix q.
struct Place {
  int lane, half;
};
Place place_of(bool is_transposed, int row, int column) {
  if (is_transposed) std::swap(row, column);
  return {row * 4 + column / 2, column % 2};
}

uint16_t element(int q, int row, int column) {
  return static_cast<uint16_t>(1 + q * 64 + row * 8 + column);
}

/// Rows in memory order, by lane.
Values rows_in_memory(int count) {
  Values words(128);
  auto *halves = reinterpret_cast<uint16_t *>(words.data());
  for (int q = 0; q < count; q++)
    for (int row = 0; row < 8; row++)
      for (int column = 0; column < 8; column++)
        halves[(q * 8 + row) * 8 + column] = element(q, row, column);
  return words;
}

Values fragments(int count, bool is_transposed) {
  Values words(static_cast<size_t>(32 * count));
  for (int q = 0; q < count; q++)
    for (int row = 0; row < 8; row++)
      for (int column = 0; column < 8; column++) {
        const Place place = place_of(is_transposed, row, column);
        words[static_cast<size_t>(q * 32 + place.lane)] |=
            static_cast<uint32_t>(element(q, row, column)) << 16 * place.half;
      }
  return words;
}

TEST_CASE("ldmatrix distributes rows to fragments", "[matrix_rows]") {
  REQUIRE(place_of_row(0) == 31);
  for (const int count : {1, 2, 4})
    for (const bool is_transposed : {false, true}) {
      INFO(form(count, is_transposed));
      const Kernel kernel(body_text(2, kSharedRows + kFillRows + ".reg .b32 %r<4>;\nldmatrix" +
                                           form(count, is_transposed) + registers("r", count) +
                                           ", [%s];\n" + store_registers("r", count, 1) + "ret;"));
      const Words rows(rows_in_memory(count));
      Words out(static_cast<size_t>(32 * count));
      CHECK(kernel(Shape{}, rows, out).is_clean());
      CHECK(out.values() == fragments(count, is_transposed));
    }
}

TEST_CASE("stmatrix is the inverse", "[matrix_rows]") {
  for (const int count : {1, 2, 4})
    for (const bool is_transposed : {false, true}) {
      INFO(form(count, is_transposed));
      const Kernel kernel(body_text(2, kSharedRows + load_registers("r", count, 0) + "stmatrix" +
                                           form(count, is_transposed) + "[%s], " +
                                           registers("r", count) + ";\n" + kReadRows + "ret;"));
      const Words in(fragments(count, is_transposed));
      const Values rows = rows_in_memory(count);
      Words out(128);
      CHECK(kernel(Shape{}, in, out).is_clean());
      for (size_t i = 0; i < static_cast<size_t>(32 * count); i++) CHECK(out[i] == rows[i]);
    }
}

Outcome run_with_address(const std::string &change) {
  const Kernel kernel(body_text(1, kSharedRows + ".reg .b32 %r<1>;\n.reg .pred %q;\n" + change +
                                       "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%s];\n" +
                                       store_registers("r", 1, 0) + "ret;"));
  Words out(32);
  return kernel(Shape{}, out);
}

TEST_CASE("ldmatrix rows must be aligned and in shared memory", "[matrix_rows]") {
  CHECK(run_with_address("").is_clean());
  CHECK_THAT(run_with_address("add.u32 %s, %s, 8;\n").fault, ContainsSubstring("misaligned"));
  CHECK_THAT(run_with_address("add.u32 %s, %s, 4096;\n").fault, ContainsSubstring("shared memory"));
  // Lanes without a row may pass any address.
  CHECK(run_with_address("setp.gt.u32 %q, %t, 7;\n@%q mov.u32 %s, 3;\n").is_clean());
}

}  // namespace
}  // namespace softgpu::test
