// Graphs shared by several tests; the first three are from TensorFlow's tests.
#pragma once

namespace mptest::autocast {

inline constexpr const char *kSimple = R"(
input Const
deny1 Exp input
clr1 Relu deny1
infer1 Sqrt clr1
clr2 Relu infer1
allow1 MatMul clr2 clr2
clr3 Relu allow1
infer2 Log clr3
clr4 Relu infer2
deny2 SparseMatMul clr4 clr4
clr5 Relu deny2
fetch Identity clr5 !keep_fp32)";

inline constexpr const char *kTwoProducts = R"(
input Const
clr1 Relu input
allow0 MatMul clr1 clr1
clr2 Relu allow0
infer1 Sqrt clr2
clr3 Relu infer1
allow1 MatMul clr3 clr3
clr4 Relu allow1
fetch Identity clr4 !keep_fp32)";

inline constexpr const char *kMixedFanout = R"(
input1 Const
input2 Const
allow1 MatMul input1 input2
allow2 MatMul allow1 input2
deny Exp allow1
infer Add deny allow2
fetch Identity infer !keep_fp32)";

/// DENY propagates through infer1 and clear1 to infer2, but not to clear2, which leads to an ALLOW.
inline constexpr const char *kDenyChain = R"(
input Const
deny Exp input
infer1 Sqrt deny
clear1 Relu infer1
infer2 Sqrt clear1
clear2 Relu infer2
allow MatMul clear2 clear2
fetch Identity allow !keep_fp32)";

}  // namespace mptest::autocast
