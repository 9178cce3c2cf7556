// Graphs with expected precisions, casts and reasons.  The first are from TensorFlow's tests
// (grappler/optimizers/auto_mixed_precision_test.cc), with their numbers of casts.
#include "known_graphs.h"
#include "test_graph.h"

using namespace mptest;
using namespace mptest::autocast;

namespace {

struct Case {
  const char *name;
  const char *graph;
  const char *low;
  int32_t casts;
  mp_autocast_preset_t preset = MP_AUTOCAST_PRESET_TENSORFLOW;
  mp_dtype_t dtype = MP_FP16;
  mp_autocast_level_t level = MP_AUTOCAST_LEVEL_NORMAL;
  uint32_t flags = 0;
  int32_t model_copies = 0;
  float amax_limit = 0.0f;
  int64_t depth_limit = 0;
};

constexpr const char *kTensorListSetGet = R"(
integer index
input Const
tl1 TensorListReserve >none
tl1w1 TensorListSetItem tl1 index input >none
allow1 MatMul input input
tl1w2 TensorListSetItem tl1 index allow1 >none
tl1rs TensorListResize tl1w2 >none
tl1r1 TensorListGetItem tl1rs index
infer1 Tanh tl1r1
allow2 MatMul infer1 infer1
tl1w3 TensorListSetItem tl1 index allow2 >none
tl1r2 TensorListGetItem tl1w3 index
tl2 TensorListReserve >none
tl2w1 TensorListSetItem tl2 index input >none
tl2r1 TensorListGetItem tl2w1 index
fetch1 Identity tl1r2 !keep_fp32
fetch2 Identity tl2r1 !keep_fp32
container tl1 tl1w1 tl1w2 tl1r1 tl1w3 tl1r2
container tl2 tl2w1 tl2r1
hidden tl1w1 tl1r1
hidden tl1w2 tl1r1
hidden tl1w3 tl1r1
hidden tl1w1 tl1r2
hidden tl1w2 tl1r2
hidden tl1w3 tl1r2
hidden tl2w1 tl2r1)";

const Case kCases[] = {
    {"TensorFlow: NoOp", R"(
input Const
deny1 Exp input
clr1 Relu deny1
infer1 Sqrt clr1
clr2 Relu infer1
fetch Identity clr2 !keep_fp32)",
     "", 0},
    {"TensorFlow: AlreadyFp16", R"(
input Const
cst1 Cast input !cast >half =@1
allow1 MatMul cst1 cst1 >half
clr1 Relu allow1 >half
cst2 Cast clr1 !cast =@1
clr2 Relu cst2
fetch Identity clr2 !keep_fp32)",
     "", 0},
    {"TensorFlow: Simple", kSimple, "clr2 allow1 clr3", 2},
    {"TensorFlow: BidirectionalClearChain", R"(
input Const
clr1 Relu input
clr2 Relu input
allow1 MatMul clr1 clr1
clr3 ShapeN clr1 clr2 >none
clr4 Relu clr2
fetch1 Identity allow1 !keep_fp32
fetch2 Identity clr4 !keep_fp32)",
     "clr1 clr2 allow1 clr3 clr4", 3},
    {"TensorFlow: PreserveFetches", R"(
input Const
allow1 MatMul input input !keep_fp32
clr1 Relu allow1
infer1 Sqrt clr1
deny1 Exp infer1
clr2 Relu deny1 !keep_fp32
allow2 MatMul clr2 clr2
clr3 Relu allow2 !keep_fp32
deny2 Exp clr3
clr4 Relu deny2)",
     "allow2", 2},
    {"TensorFlow: PreserveCPUNodes", R"(
input Const
clr1 Relu input
allow1 MatMul clr1 clr1
infer1 Tanh allow1
allow2 MatMul infer1 infer1 !other_device
clr2 Relu allow2
fetch Identity clr2 !keep_fp32)",
     "clr1 allow1", 2},
    {"TensorFlow: PreserveIdentityAfterVariable", R"(
input Const
var1 Variable
clr1 Identity var1 !reads_variable
allow1 MatMul input clr1
input2 Const
clr2 Identity input2
allow2 MatMul input clr2
fetch1 Identity allow1 !keep_fp32
fetch2 Identity allow2 !keep_fp32)",
     "allow1 clr2 allow2", 5},
    {"TensorFlow: FusedBatchNorm", R"(
input Const
weight Const
allow1 Conv2D input weight
fbn1 FusedBatchNorm allow1 scale offset mean variance > > > >
bng1 FusedBatchNormGrad fbn1 allow1 scale fbn1.3 fbn1.4 > > > >
infer1 Add fbn1 bng1
allow2 Conv2D infer1 weight
fetch Identity allow2 !keep_fp32)",
     "allow1 fbn1 bng1 infer1 allow2", 3},
    {"TensorFlow: RepeatedAndListTypeAttrs", R"(
input Const
allow1 MatMul input input
clr1 IdentityN allow1 allow1 allow1 > >
infer1 AddN clr1 clr1.1 clr1.2
allow2 MatMul infer1 infer1
fetch Identity allow2 !keep_fp32)",
     "allow1 clr1 infer1 allow2", 2},
    {"TensorFlow: ExistingCast", R"(
input Const >none
cst1 Cast input !cast =@1
allow1 MatMul cst1 cst1
fetch Identity allow1 !keep_fp32)",
     "cst1 allow1", 1},
    {"TensorFlow: RecurrentEdgeColorMismatch", R"(
input Const
deny1 Exp input
ent1 Enter deny1
mrg1 Merge ent1 nxt1
swt1 Switch mrg1 >
infer1 Sqrt swt1.1
allow1 MatMul infer1 infer1
nxt1 NextIteration allow1 !back_edge
ext1 Exit swt1
fetch Identity ext1 !keep_fp32
mrg2 Merge ent1 nxt1
loop mrg1 mrg2 nxt1)",
     "allow1", 2},
    {"TensorFlow: TensorListSetGet", kTensorListSetGet,
     "tl1 tl1w1 allow1 tl1w2 tl1r1 infer1 allow2 tl1w3 tl1r2", 2},
    {"TensorFlow: TensorListPushPop, one list is an output", R"(
input Const
tl1 EmptyTensorList >none
allow1 MatMul input input
tl1w1 TensorListPushBack tl1 allow1 >none
tl1r1 TensorListPopBack tl1w1 >
infer1 Tanh tl1r1.1
allow2 MatMul infer1 infer1
retval _Retval tl1w1 !keep_fp32
fetch Identity allow2 !keep_fp32
container tl1 tl1w1 tl1r1 retval
hidden tl1w1 tl1r1)",
     "allow1 allow2", 4},
    {"TensorFlow: BatchMatMul", R"(
input Const
allow1 BatchMatMul input input
fetch1 Identity allow1 !keep_fp32)",
     "allow1", 2},
    {"TensorFlow, bf16: Simple", kSimple, "clr2 allow1 clr3", 2, MP_AUTOCAST_PRESET_TENSORFLOW_BF16,
     MP_BF16},
    {"TensorFlow: two products", kTwoProducts, "clr1 allow0 clr2 infer1 clr3 allow1 clr4", 2},
    {"TensorFlow: two products, TREAT_INFER_AS_DENY", kTwoProducts,
     "clr1 allow0 clr2 clr3 allow1 clr4", 4, MP_AUTOCAST_PRESET_TENSORFLOW, MP_FP16,
     MP_AUTOCAST_LEVEL_INFER_AS_DENY},
    {"TensorFlow: two products, TENSOR_CORES_ONLY", kTwoProducts, "allow0 allow1", 4,
     MP_AUTOCAST_PRESET_TENSORFLOW, MP_FP16, MP_AUTOCAST_LEVEL_TENSOR_CORES_ONLY},
    {"TensorFlow: two products, UNSAFE_FORCE_ALL", kTwoProducts,
     "clr1 allow0 clr2 infer1 clr3 allow1 clr4", 2, MP_AUTOCAST_PRESET_TENSORFLOW, MP_FP16,
     MP_AUTOCAST_LEVEL_FORCE_ALL},
    {"UNSAFE_FORCE_ALL exempts constants, state and cross-entropies", R"(
c Const
v Variable
read Identity v !reads_variable
e Exp read
x Mul c e
loss SparseSoftmaxCrossEntropyWithLogits x
unknown Anything loss)",
     "e x unknown", 4, MP_AUTOCAST_PRESET_TENSORFLOW, MP_FP16, MP_AUTOCAST_LEVEL_FORCE_ALL},
    {"TensorFlow, emulated: Simple", kSimple, "clr2 allow1 clr3", 9, MP_AUTOCAST_PRESET_TENSORFLOW,
     MP_FP16, MP_AUTOCAST_LEVEL_NORMAL, MP_AUTOCAST_FLAG_EMULATE},
    {"TensorFlow, emulated: MixedFanout", kMixedFanout, "allow1 allow2", 10,
     MP_AUTOCAST_PRESET_TENSORFLOW, MP_FP16, MP_AUTOCAST_LEVEL_NORMAL, MP_AUTOCAST_FLAG_EMULATE},
    {"TensorFlow: MixedFanout", kMixedFanout, "allow1 allow2", 4},
    {"casts of parameters are the optimizer's copies", R"(
parameter w
allow1 MatMul x w
allow2 MatMul allow1 w
norm Mean w)",
     "allow1 allow2", 2, MP_AUTOCAST_PRESET_TENSORFLOW, MP_FP16, MP_AUTOCAST_LEVEL_NORMAL, 0, 1},
    {"outputs may be low precision", "allow MatMul x x\noutput allow", "allow", 1},
    {"KEEP_IO: outputs are fp32", "allow MatMul x x\noutput allow", "allow", 2,
     MP_AUTOCAST_PRESET_TENSORFLOW, MP_FP16, MP_AUTOCAST_LEVEL_NORMAL, MP_AUTOCAST_FLAG_KEEP_IO},
    {"KEEP_IO: WRITES_EITHER writes an fp32 output",
     "allow MatMul x x !writes_either\noutput allow", "allow", 1, MP_AUTOCAST_PRESET_TENSORFLOW,
     MP_FP16, MP_AUTOCAST_LEVEL_NORMAL, MP_AUTOCAST_FLAG_KEEP_IO},
    {"limits of 0 are ignored", R"(
a MatMul x x ~4096 ^2000
b MatMul a a)",
     "a b", 1},
    {"amax_limit: the output of node 0", R"(
a MatMul x x ^2000
b MatMul x x)",
     "b", 1, MP_AUTOCAST_PRESET_TENSORFLOW, MP_FP16, MP_AUTOCAST_LEVEL_NORMAL, 0, 0, 1000.0f},
    {"an empty graph", "", "", 0},

    {"PyTorch: a residual block", R"(
parameter w1
parameter w2
conv1 conv2d x w1
relu1 relu conv1
conv2 conv2d relu1 w2
sum1 add conv2 x
sum2 add conv2 relu1
relu2 relu sum2
norm layer_norm relu2
out linear norm w1)",
     "conv1 relu1 conv2 sum2 relu2 out", 6, MP_AUTOCAST_PRESET_PYTORCH, MP_FP16,
     MP_AUTOCAST_LEVEL_NORMAL, 0, 2},
    {"PyTorch: promote", R"(
a mm x x
b mm x x
c addcmul a b b
d addcmul a b x
e cat a c)",
     "a b c e", 3, MP_AUTOCAST_PRESET_PYTORCH},
    {"PyTorch: a cycle is low precision if all its inputs are", R"(
a mm x x
m add a n
n relu m
k add a l
l relu k
w add l x)",
     "a", 2, MP_AUTOCAST_PRESET_PYTORCH},
    {"default preset: a denied softmax with READS_EITHER needs no cast", R"(
parameter w
qk MatMul x w
s Softmax qk !reads_either
v MatMul s x !writes_either
loss SoftmaxXent v !reads_either)",
     "qk v", 3, MP_AUTOCAST_PRESET_DEFAULT, MP_FP16, MP_AUTOCAST_LEVEL_NORMAL, 0, 1},
    {"ONNX: operation names", R"(
parameter w
c Conv x w
b BatchNormalization c s@255 t@255
r Relu b
p GlobalAveragePool r
f Flatten p
g Gemm f w
s Softmax g)",
     "c b r p f g", 3, MP_AUTOCAST_PRESET_ONNX, MP_FP16, MP_AUTOCAST_LEVEL_NORMAL, 0, 1},
};

mp_autocast_config_t config_of(const Case &c) {
  mp_autocast_config_t config = mp_autocast_config_default(c.dtype);
  config.preset = c.preset;
  config.level = c.level;
  config.flags = c.flags;
  config.amax_limit = c.amax_limit;
  config.depth_limit = c.depth_limit;
  return config;
}

}  // namespace

TEST_CASE("autocast: known graphs have the expected precisions and casts", "[autocast]") {
  for (const Case &c : kCases) {
    CAPTURE(c.name);
    const Policy policy(config_of(c));
    Graph graph = Graph::parse(c.graph);
    const Result result = rewrite(policy, graph);
    CHECK(low_nodes(graph, result) == c.low);
    CHECK(result.num_casts() == c.casts);
    CHECK(result.num_parameters_low == c.model_copies);
    CHECK(result.disabled_reason == nullptr);
  }
}

TEST_CASE("autocast: statistics of the first batch norms are fp32", "[autocast]") {
  Graph graph = Graph::parse(R"(
x0 MatMul x x
fbn1 FusedBatchNorm x0 x0 x0 x0 x0 > > > >
x1 MatMul fbn1 fbn1.1
bng1 FusedBatchNormGrad x1 x1 x1 fbn1.3 fbn1.4 > > > >
x2 MatMul bng1 bng1.1)");
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  const Result result = rewrite(policy, graph);
  CHECK(low_nodes(graph, result) == "x0 fbn1 x1 bng1 x2");
  const auto reads_cast = [&](const char *node, int32_t input) {
    const int32_t first = graph.view().input_offsets[graph.find_node(node)];
    return result.input_cast[static_cast<size_t>(first + input)] >= 0;
  };
  CHECK(!reads_cast("fbn1", 0));
  for (int32_t statistic = 1; statistic < 5; statistic++) CHECK(reads_cast("fbn1", statistic));
  CHECK(!reads_cast("x1", 0));
  CHECK(reads_cast("x1", 1));
  CHECK(!reads_cast("bng1", 1));
  CHECK(reads_cast("bng1", 2));
  CHECK(!reads_cast("bng1", 3));  // fp32 from the batch norm, fp32 here
  CHECK(!reads_cast("x2", 0));
  CHECK(reads_cast("x2", 1));
}

TEST_CASE("autocast: a first batch norm may be node 0", "[autocast]") {
  Graph graph = Graph::parse(R"(
fbn FusedBatchNorm a s s s s > > > >
a MatMul x x
b MatMul fbn fbn.1)");
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  const Result result = rewrite(policy, graph);
  CHECK(low_nodes(graph, result) == "fbn a b");
  for (size_t t = 0; t < graph.tensors.size(); t++)
    if (graph.tensors[t].producer == 0)
      CHECK(static_cast<int>(result.tensor_dtype[t]) == (t == 0 ? MP_FP16 : MP_FP32));
}
