"""Mutations of tests/device/sabotage: cases, changes, and exceptions with their reasons."""
import collections

# One run of mptests: a test, and the case in MP_REPRO.
Test = collections.namedtuple("Test", "name repro")


def library(*names: str) -> list:
    return [Test(name.replace(",", "\\,"), "") for name in names]


def gemm(*lines: str, of="[.repro]") -> list:
    return [Test(of, line) for line in lines]


def conv(op: str, kernel: str, *options: str, size="n=13 r=3 s=3", image="h=9 w=11") -> list:
    layer = f"op={op} {size} {image} c=72 k=136 pad_top=1 pad_left=1 kernel={kernel} "
    return gemm(*(layer + option for option in options), of="[.repro-conv]")


def conv_wmma(op: str) -> list:
    """Products that end within a tile of k, with more and with fewer tiles than stages.
    Out-of-bounds elements are multiplied by zeros, which hide everything except infinity; dgrad
    would continue with the next channels of the filter, in the middle of which the infinity is
    placed."""
    c, k = (72, 8) if op == "dgrad" else (8, 72)
    layers = [f"op={op} {layer} cd=fp32 kernel=conv_wmma_64x64x32_s4" for layer in (
        f"n=2 h=9 w=11 c=72 k={40 if op == 'dgrad' else 72} r=3 s=3 pad_top=1 pad_bottom=1 pad_left=1 pad_right=1",
        f"n=1 h=5 w=7 c={c} k={k} r=1 s=5 pad_left=2 pad_right=2")]
    place = "middle" if op == "dgrad" else "first"
    infinity = f" special=inf place={place} special_in_second={int(op != 'wgrad')}"
    others = {
        # The next channels follow the last tap directly.
        "dgrad": [f"op=dgrad n=1 h=9 w=11 c=72 k=8 r=5 s=5 pad_left=2 pad_right=2 cd=fp32 kernel=conv_wmma_64x64x32_s4{infinity}"],
        # The second vector is half of the three taps of four channels.
        "fprop": ["op=fprop n=1 h=5 w=10 c=4 k=8 r=3 s=3 cd=fp32 kernel=conv_wmma_64x64x32_s4 special=inf place=middle"]}
    return gemm(*layers, *(layer + infinity for layer in layers), *others.get(op, []), of="[.repro-conv]")


# name, architecture, number of multiprocessors (few, so that a block computes several tiles),
# regular expression for the mutated kernels, tests that together execute all their statements, and
# pattern of the mutated opcodes.
Case = collections.namedtuple("Case", "name arch sms kernel tests opcodes", defaults=["*"])
ROWS = "rows of layers"
WGMMA = ["m=300 n=264 k=392 {} cd=fp16", "m=300 n=264 k=392 {} cd=fp16 beta=1 activation=drelu aux=1 amax=1 dbias=1",
         "m=300 n=264 k=392 {} cd=fp32 beta=1", "m=300 n=264 k=200 {} cd=fp16 beta=1",
         "m=300 n=264 k=8 {} cd=fp16 activation=relu aux=1 amax=1", "m=256 n=256 k=1032 {} cd=fp32",
         "m=300 n=264 k=8 {} cd=bf16 bias=fp32 amax=1"]
TILE = "conv_wgmma_128x128x64_s6_c2"
ALONE = TILE.removesuffix("_c2")
CONV = ["cd=fp16", "cd=fp32", "cd=fp16 beta=1", "cd=fp16 beta=1 activation=drelu aux=1 amax=1"]
SPLIT = "m=256 n=256 k=1032 op=NT cd=fp16 kernel=wgmma_128x128x64_s6_k2"
POINTERS = "m=256 n=256 k=72 batch=3 pointers=1 op=NT cd=fp16 kernel=wgmma_128x128x64_s6"
GROUP = "m=1 n=1 k=1 op=NT cd=fp16 kernel={} items=300x264x200,64x8x16,136x72x400"
RAGGED = ["m=300 n=264 k=72 op=NT cd=fp16 kernel={} ragged=m ends=10,10,150,300",
          "m=300 n=72 k=24 op=NT cd=fp16 kernel={} ragged=m ends=" + ",".join(str(7 * i) for i in range(43))]
# Groups of k in NT are adjacent within rows, which TMA cannot load.
RAGGED_K = "m=136 n=264 k=300 op={} cd=fp32 kernel={} ragged=k ends=10,10,150,300"
WGMMA_RAGGED_K = gemm(RAGGED_K.format("TN", "wgmma_128x128x64_s6"))
CASES = [
    Case("wgmma, ping-pong", 90, 2, "gemm_wgmma<|fill_.*_table", [
        *gemm(*(w.format("op=NT kernel=wgmma_128x128x64_s6") for w in WGMMA), SPLIT, POINTERS),
        *gemm(GROUP.format("wgmma_128x128x64_s6")),
        *gemm(*(r.format("wgmma_128x128x64_s6") for r in RAGGED)),
        *library("wgmma: one misaligned pointer among many*")]),
    # Tensor maps of the groups.
    Case("wgmma, groups of k", 90, 2, "gemm_wgmma<", WGMMA_RAGGED_K, "*tensor*"),
    Case("wgmma, cluster of 2", 90, 2, "gemm_wgmma<", gemm(
        *(w.format("op=TN kernel=wgmma_128x128x64_s6_c2") for w in WGMMA))),
    Case("wgmma, cooperative", 90, 2, "gemm_wgmma<", gemm(
        *(w.format("op=NN kernel=wgmma_128x256x64_s4_c2") for w in WGMMA))),
    # Slices that clusters add, with more k-tiles than stages; the last block has fewer.
    Case("wgmma, k over a cluster", 90, 8, "gemm_wgmma<", gemm(
        *(f"m=72 n=136 k={k} op={op} cd={cd} kernel=wgmma_{tile}_p{parts}" for k, op, cd, tile, parts in (
            (2500, "TN", "fp16 amax=1", "64x128x64_s8_k4", 4), (2500, "NT", "fp32 beta=1", "128x256x64_s4_k3", 3)))),
         "*cluster*"),
    Case("conv wgmma, fprop", 90, 2, "conv_wgmma<", conv("fprop", TILE, *CONV)),
    Case("conv wgmma, dgrad", 90, 2, "conv_wgmma<", conv("dgrad", TILE, *CONV)),
    # Also phases without taps.
    Case("conv wgmma, strided dgrad", 90, 2, "dgrad_wgmma<", [
        *conv("dgrad", TILE, *("stride_h=2 stride_w=2 " + option for option in CONV)),
        *conv("dgrad", TILE, "stride_h=2 stride_w=2 cd=fp16", size="n=13 r=1 s=1")]),
    Case("conv wgmma, wgrad", 90, 2, "wgrad_wgmma<", [
        *conv("wgrad", TILE, "cd=fp16", "cd=fp32", "cd=fp16 beta=1", size="n=4 r=3 s=2"),
        *conv("wgrad", ALONE, "cd=fp16", size="n=4 r=3 s=2")]),
    *(Case(f"conv wmma, {op}", 80, 3, "conv_wmma<", conv_wmma(op)) for op in ("fprop", "dgrad", "wgrad")),
    Case("wmma with cp.async", 80, 3, "gemm_wmma<", gemm(
        # The last tiles have 20 and 8 rows.
        *(f"m=148 n=264 {d} op=NT kernel=wmma_128x128x32_s3" for d in (
            "k=200 pad=8 cd=fp32", "k=200 pad=8 cd=fp16 beta=1", "k=8 pad=8 cd=fp32", "k=197 pad=3 cd=fp32")))),
    Case("wmma, tables", 80, 3, "gemm_wmma<|fill_.*_table", [
        *gemm(GROUP.format("wmma_128x128x32_s3")),
        *gemm(*(r.format("wmma_128x128x32_s3") for r in RAGGED), RAGGED_K.format("NT", "wmma_128x128x32_s3"))]),
    Case("wmma through registers", 75, 3, "gemm_wmma<", gemm(
        *(f"m=200 n=264 k={k} op=TN kernel=wmma_64x64x32_s4" for k in (40, 72, 104, 136)))),
    Case("conv wmma through registers", 75, 3, "conv_wmma<", sum(map(conv_wmma, ("fprop", "dgrad", "wgrad")), [])),
    Case("conv CUDA cores", 80, 3, "conv_simt<", gemm(
        *(f"op={op} n=2 h=9 w=11 c=24 k=40 r=3 s=3 pad_top=1 pad_left=1 ab=fp32 kernel=conv_simt_{tile}" for op, tile in (
            ("fprop", "64x64x16"), ("dgrad", "64x64x16"), ("wgrad", "64x64x16"), ("fprop", "128x16x16"),
            ("wgrad", "16x128x16"))), of="[.repro-conv]")),
    Case("conv depthwise", 80, 3, "conv_depthwise", gemm(
        *(f"op={op} n=2 h=9 w=11 c=40 k=40 groups=40 r=3 s=3 pad_top=1 pad_left=1 kernel=conv_depthwise"
          for op in ("fprop", "dgrad", "wgrad")), of="[.repro-conv]")),
    Case("CUDA cores", 80, 3, "gemm_simt<", gemm("m=70 n=40 k=50 op=TT ab=fp32 kernel=simt_64x64x16")),
    Case("gemv", 80, 3, "gemv<", gemm("m=70 n=1 k=1100 op=TN kernel=gemv", "m=2000 n=1 k=300 op=TN kernel=gemv",
                                        "m=5 n=70 k=3000 op=NN kernel=gemv", "m=70 n=1 k=3000 op=NN kernel=gemv",
                                        "m=7 n=90 k=3000 op=NT kernel=gemv")),
    Case("reductions after products", 80, 3, "split_k_sum|column_sum", [
        *gemm("m=66 n=8 k=1100 op=TN cd=fp16 amax=1 kernel=wmma_64x64x32_s4_k4",
              "m=66 n=8 k=1900 op=TN cd=fp16 amax=1 kernel=wmma_64x64x32_s4_k12",
              "m=300 n=70 k=40 op=TN cd=fp16 dbias=1 kernel=wmma_64x64x32_s4",
              "m=3000 n=300 k=8 op=TN cd=fp16 dbias=1 kernel=wmma_64x64x32_s4"),
        *library("dbias: as many row blocks*")]),
    Case("copied operands", 90, 2, "copy_rows", gemm(
        *(f"m=136 n=130 k={k} op=NT multiple=1 kernel=wgmma_128x128x64_s6" for k in (69, 70)))),
    Case("padded images", 90, 2, "pad_channels", gemm(
        *(f"op={op} n=2 h=9 w=17 c={c} k=16 r=3 s=5 pad_top=1 pad_left=2 pad_right=1 stride_w={stride} kernel=conv_wmma_64x64x32_s4_copied"
          for op, c, stride in (("fprop", 3, 2), ("wgrad", 12, 1))), of="[.repro-conv]")),
    Case("windows of images", 90, 2, "copy_windows|store_windows", gemm(
        *(f"op={op} n=2 h=9 w=17 c=3 k=16 r=7 s=5 pad_top=1 pad_left=2 pad_right=1 stride_w=2 kernel=conv_wgmma_{tile}_copied"
          for op, tile in (("fprop", "256x64x64_s4"), ("wgrad", "64x128x64_s8"))), of="[.repro-conv]")),
    Case("statistics", 80, 3, "measure_list<false>", library(
        "tensors: small lists are exact", "tensors: the largest of many tensors is found*", "step: S below 1*",
        "step: any flag except 0 skips")),
    Case("statistics with reports", 80, 3, "measure_list<true>|report_tensors", library(
        "report: either output alone", "report: of several, the lowest tensor*", "report: the same each time*")),
    Case("norms of tensors", 80, 3, "measure_tensors<", library(
        "optimizer norms: results for powers of two are exact*", "optimizer norms: results do not depend*")),
    Case("optimizer", 80, 1, "update_list<", library(
        "optimizer: every rule follows its formula for awkward*", "checked step: a raised flag skips in every warp*",
        "optimizer options: schedules support more groups*", "query: steps of every kind of optimizer have outcomes",
        "query: every step changes from pending*")),
    Case("loss scale alone", 80, 3, "update_scaler_alone", library(
        "scaler presets: Megatron's state_dict*", "scaler lognormal: reproduces a known sequence",
        "scaler state: amax distinguishes NaN*", "query: a skipped step is logged once*")),
    Case("regularization", 80, 3, "measure_master", library(
        "optimizer options: the loss over many chunks is deterministic")),
    Case("gradients", 80, 3, "accumulate_list<", library(
        "unscale: small lists are exact*", "accumulate: sums are exact if S differs in each micro-batch",
        "accumulate: a sum that overflows fp32 is detected in every warp", "accumulate: the scaler receives*",
        "accumulate: the last call of several lists sets the outcome", "query: S after a pending update*")),
    Case("copies of weights", 80, 3, "copy_list<", library(
        "model: every copy is its rounded master weight", "model: overflows are counted over many chunks and calls")),
    Case("batch norm", 80, 3, "", library(
        "batch norm: results have the same bits*", "batch norm: training is within bounds for small*",
        "batch norm: gradients are within bounds if small, unaligned or in place")),
    Case("pooling backward", 80, 3, "largest_backward|mean_backward|indexed_backward", library(
        "pool: the first of equal maxima gets the gradient", "pool: unaligned tensors",
        "pool: all modes, types and shapes are exact", "pool: positions that exceed*")),
    Case("norms of vectors", 80, 3, "norm_vectors<|norm_gradients<", library(
        "norm: rows of two values are exact", "norm: gradients of rows of two values are orthogonal*",
        "norm: every vector is counted once")),
    Case("sums of ranges and chunks", 90, 3, "combine_ranges|column_totals", library(
        "norm: gradients of rows of two values are orthogonal*", "norm: an infinite gradient is reported",
        "norm: every vector is counted once", "column sum: integers are exact*")),
    Case("softmax", 80, 3, "softmax_(gradient_)?rows<.*half", library(
        "softmax: equal scores of 2^k columns are exact*", "softmax: NaN and infinity stay in their row")),
    Case(ROWS, 90, 3, "glu_(gradient_)?rows|rotate_rows|copy_strided|sum_repetitions", library(
        "glu: small integers are exact*", "rope: position 0 leaves every element unchanged",
        "strided copy: integers are exact*", "sum rows: integers are exact*",
        "sum rows: overflow and NaN stay in their column")),
    Case("losses of elements", 80, 3, "losses_of_chunk|count_targets|finish_loss", library(
        "loss: weights, ignored targets and the loss scale", "loss: a gradient of the caller*")),
    Case("attention", 80, 3, "attention_(dsink|.*_plain)", library(
        "attention: a large score selects its value exactly", "attention: gradients of two equal scores are exact",
        "attention: grouped query heads")),
    Case("attention on tensor cores", 80, 3, "attention_.*_mma<.*half, 64", library(
        "attention: gradients of two equal scores are exact", "attention: grouped query heads",
        "attention: equal scores average integers exactly", "attention: a query without a key*",
        "attention sequences: ends out of range*")),
    Case("softmax cross-entropy", 80, 3, "xent_.*half|mean_loss|count_rows", library(
        "xent: small batches", "xent long: all types and lengths", "xent: same bits in repeated calls*",
        "xent: the first of equal largest logits*", "xent ignore: rows are counted exactly*", "xent ignore: a block proceeds*", "xent count: *")),
    Case("embeddings and dropout", 80, 1, "embedding_|dropout_elements", library(
        "embedding: segments with any start and length", "embedding: indices outside the table*",
        "embedding: a sum that overflows FP16 raises found_inf", "dropout: non-finite values are dropped too")),
    Case("pointwise operations", 80, 3, "pointwise_elements", library(
        "pointwise: rows of any length*", "pointwise: every function is within the error bound")),
    Case("recurrent steps", 80, 3, r"rnn_(?!fused)|rnn_fused_\w+<LstmCell", library(
        "rnn: a few integer networks are exact", "rnn: saturated GRU gates are exact*", "rnn: inputs added directly*",
        "rnn: all cells and types are within tolerance", "rnn: rows shared by two warps*",
        "rnn: more k tiles than pipeline stages are exact",
        "rnn: more k tiles than pipeline stages are within tolerance in all cells",
        "rnn: gradients that are infinite or overflow*", "rnn: amax and found_inf include weight gradients",
        "rnn: elements past the end of a product*")),
    Case("recurrent steps by wgmma", 90, 70, r"rnn_fused_wgmma_\w+<LstmCell, true", library(
        "rnn: more k tiles than pipeline stages are within tolerance in all cells", "rnn: clusters whose blocks reuse*",
        "rnn: gradients that are infinite or overflow*")),
    Case("thin products by wgmma", 90, 8, "gemm_thin<.*ThinTile<16", gemm(
        *(f"m=14 n=136 k=5200 op={op} ab={ab} cd={cd} kernel=thin_16x64x64_s8_k4_p4 {more}"
          for op, ab, cd, more in (("NN", "fp16", "fp16", "amax=1"), ("NN", "bf16", "fp32", ""),
                                   ("NT", "fp16", "fp32", ""), ("NT", "bf16", "bf16", "batch=2"))))),
    Case("consecutive recurrent steps", 90, 3, "rnn_(?!.*bf16)", library(
        "rnn: a few integer networks are exact", "rnn: inputs added directly*",
        "rnn: steps after products*", "rnn: rows that are not 16-byte aligned*"), "griddepcontrol.wait"),
    Case("consecutive kernels", 90, 3, "^(?!.*embedding_begins)", library("sequences: *"), "griddepcontrol.wait"),
    Case("consecutive kernels of a newer GPU", 100, 3, "norm", library("sequences: repeated normalization*"),
         "griddepcontrol.wait"),
    Case("kernel after a sort", 90, 3, "embedding_begins", library(
        "sequences: the gradient of a table*"), "griddepcontrol.wait"),
    Case("transposes", 80, 3, "transpose_tiles", library("layout: conversions between all types, aligned or not")),
]

# Opcodes that are removed.
DROPPED = ("bar.sync", "bar.warp.sync", "barrier.cluster.*", "fence.*", "membar.*", "mbarrier.init.*",
           "mbarrier.arrive.*", "cp.async.commit_group", "cp.async.wait_*", "cp.async.bulk.commit_group",
           "cp.async.bulk.wait_group*", "wgmma.fence.*", "wgmma.commit_group.*", "wgmma.wait_group.*", "setmaxnreg.*",
           "griddepcontrol.*", "prefetch.*", "atom.*", "st.release.*", "tensormap.replace.*")

# Branches over straight-line code that stores are also removed.
GUARD = "stores despite the branch"

# Changes: pattern of opcodes, regular expression for a part of the statement, replacement (None:
# increments its last number), name.
CHANGED = [
    ("mbarrier.try_wait.*", r"mbarrier\.try_wait\S* (%?\w+), .*", r"setp.eq.u32 \1, 0, 0", "does not wait"),
    ("mbarrier.try_wait.parity.*", r", %r\d+$", r", 0", "always waits for even phases"),
    ("mbarrier.init.*", r", (%r\d+|\d+)$", r", 5", "five arrivals"),
    ("setmaxnreg.inc*", r"\d+$", r"240", "takes 240 registers"),
    ("setmaxnreg.dec*", r"\d+$", r"56", "keeps 56 registers"),
    ("atom.global.inc.*", r", %r\d+$", r", 0", "counts to 0"),
    ("tensormap.replace.*global_dim*", r", (%r\d+|\d+)$", r", 7", "a dimension of 7"),
    ("tensormap.replace.*global_stride*", r", %rd\d+$", r", 48", "a stride of 48 bytes"),
    ("cp.async.c?.shared.global", r", (\d+), %r\d+$", r", \1", "copies out-of-bounds elements"),
    ("cp.async.wait_group", r" \d+$", None, "one more group may be pending"),
    ("cp.async.bulk.wait_group*", r" \d+$", None, "one more group may be pending"),
    ("wgmma.wait_group.*", r" \d+$", None, "one more group may be pending"),
    ("mbarrier.arrive.expect_tx.*", r", (%r\d+|\d+)$", r", 16", "fewer bytes are expected"),
    ("cp.async.bulk.tensor.*", r"\{(%r\d+), (%r\d+)", r"{\2, \1", "coordinates exchanged"),
    ("cp.async.bulk.tensor.*", r"(\{%r\d+, %r\d+), %r\d+", r"\1, 1", "third coordinate 1"),
    ("cp.async.bulk.tensor.*", r"(\{%r\d+, %r\d+, %r\d+), %r\d+", r"\1, 1", "fourth coordinate 1"),
    ("cp.async.bulk.tensor.*", r"\{(%rs\d+), (%rs\d+)\}", r"{\2, \1}", "offsets exchanged"),
    ("cp.async.bulk.tensor.*.multicast*", r", (%rs\d+)(?=$|, )", r", 1", "multicast to one block"),
    ("mapa.*", r", (%r\d+|\d+)$", r", 0", "always block 0"),
    ("wgmma.mma_async.*", r"p, 1, 1, 0", r"p, 1, 1, 1", "A transposed"),
    ("wgmma.mma_async.*", r"p, 1, 1, 1", r"p, 1, 1, 0", "A transposed"),
    ("wgmma.mma_async.*", r"0$", r"1", "B transposed"),
    ("wgmma.mma_async.*", r"1$", r"0", "B transposed"),
    ("shfl.sync.*", r", \S+$", r", 1", "only lane 0"),
]

# Fields of a wgmma descriptor (PTX ISA, Matrix Descriptor Format) and the bit that is flipped in
# each. The order of the operand determines which stride is along k.  Start addresses are computed
# at run time, and the base offset is 0.
DESCRIPTOR = [("swizzle", 1 << 62), ("stride", 1 << 37), ("leading dimension", 1 << 21)]

# Mutations that may remain undetected: patterns of cases, opcode and change, maximum number of
# statements per kernel, and reason.  Without a number, and for descriptors, only two orders are
# tried.
Reason = collections.namedtuple("Reason", "cases opcode what most why")
STEPS, THIN = "recurrent steps by wgmma", "thin products by wgmma"
AT_ONCE = "the four warps of a warpgroup read their operands at the same time here, but separately on hardware"
REDUCE = "block_reduce, arrive_last: another barrier is in between, or only thread 0 writes and reads"
REASONS = [
    Reason("*", "prefetch.*", "left out", None, "a hint"),
    Reason("*", "griddepcontrol.launch_dependents", "left out", None, "a hint"),
    *(Reason(cases, "griddepcontrol.wait", "left out", None, "a single call; consecutive kernels are a separate case")
      for cases in ("*wgmma*", "copied operands", "padded images", "windows of images")),
    Reason("consecutive recurrent steps", "griddepcontrol.wait", "left out", 1,
           "last step, from which a backward pass starts: follows copies, which do not allow PDL"),
    Reason("kernel after a sort", "griddepcontrol.wait", "left out", None,
           "kernels of CUB do not allow PDL"),
    Reason(ROWS, "griddepcontrol.wait", "left out", None, "single calls follow copies, which do not allow PDL"),
    Reason("sums of ranges and chunks", "griddepcontrol.wait", "left out", 2,
           "the kernels before start no successor early; consecutive kernels are a separate case"),
    Reason("*", "membar.*", "left out", None,
           "execution is sequentially consistent; the race check requires a second block that reads the data"),
    Reason("*", "setmaxnreg.inc*", "left out", None, "ptxas spills"),
    *(Reason(case, "or.b64", "descriptor: leading dimension", most,
             "K-major: a slice is in one row of a swizzle atom; MN-major A: the 64 rows of a wgmma are one atom wide")
      for case, most in (("wgmma, ping-pong", 12), ("wgmma, cluster of 2", 8), ("wgmma, cooperative", 4),
                         ("conv wgmma, fprop", 12), ("conv wgmma, dgrad", 8), ("conv wgmma, strided dgrad", 8),
                         ("conv wgmma, wgrad", 8), (STEPS, 8), (THIN, 36))),
    *(Reason(case, "bar.warp.sync", "left out", most,
             "reuse_all before lane 0 fetches, and before the staged store; loads from WgmmaStagingBuffers, "
             "because ldmatrix and stmatrix access the lane's own row; after the last staged subtile; "
             "after waits of one lane before it exits")
      for case, most in (("wgmma, c*", 9), ("conv wgmma, [fds]*", 13))),
    Reason("wgmma, ping-pong", "bar.warp.sync", "left out", 9, "as in the other wgmma cases"),
    Reason("conv wgmma, wgrad", "bar.warp.sync", "left out", 4,
           "reuse_all before the staged store; after the last staged subtile; exits"),
    *(Reason(case, "mbarrier.init.*", "*", most, "Barriers::order: only ping-pong kernels wait for it")
      for case, most in (("wgmma, cooperative", 2), (STEPS, 1), (THIN, 1))),
    # Thin products: two orders of B, and loops for each of two types.
    *(Reason(case, "mbarrier.try_wait.*", "does not wait", most, "fill: first use of a stage; later, " + AT_ONCE)
      for case, most in ((STEPS, 3), (THIN, 6))),
    *(Reason(case, "mbarrier.arrive.shared::cluster.b64", "left out", most,
             "after the last tile of k: its stage is not refilled") for case, most in ((STEPS, 1), (THIN, 4))),
    *(Reason(case, "bar.sync", "left out", most, "before the sums overwrite the stages: " + AT_ONCE)
      for case, most in ((STEPS, 1), (THIN, 2), ("wgmma, k over a cluster", 2))),
    *(Reason(case, "bar.warp.sync", "left out", most,
             "after a single-lane section: lanes reconverge at the next wait or product; before the last barrier of a "
             "cluster: lanes reconverge after the loop")
      for case, most in ((STEPS, 4), (THIN, 7))),
    *(Reason(case, "mapa.*", "always block 0", most, "block 0 has the sums of the first part")
      for case, most in ((STEPS, 1), (THIN, 2))),
    *(Reason(THIN, "or.b64", f"descriptor: {field}", 4, "only the low word is used; the fields are constants of later statements")
      for field in ("swizzle", "stride")),
    Reason(STEPS, "cp.async.bulk.tensor.*", "third coordinate 1", 3, "the coordinate of the second gate is 1"),
    Reason("wgmma, ping-pong", "bar.sync", "left out", 1, "block_reduce: its storage has not been used before"),
    Reason("statistics", "bar.sync", "left out", 5, REDUCE),
    Reason("gradients", "bar.sync", "left out", 3, REDUCE),
    Reason("statistics with reports", "bar.sync", "left out", 10, REDUCE),
    Reason("norms of tensors", "bar.sync", "left out", 3,
           "parameters of a chunk, its first sum, arrive_last: as " + REDUCE),
    Reason("softmax cross-entropy", "bar.sync", "left out", 4, REDUCE),
    Reason("softmax cross-entropy", "bar.warp.sync", "left out", 2,
           "between reads and writes of global memory by converged lanes"),
    Reason("softmax cross-entropy", "bra", GUARD, 1, "loss of an ignored row: all lanes write the same 0"),
    Reason("pooling backward", "bar.sync", "left out", 3,
           "positions of 32 bits: the windows of these tests are one group"),
    Reason("statistics with reports", "bra", GUARD, 1, "all lanes of a warp store the same report"),
    Reason("losses of elements", "bar.sync", "left out", 2, REDUCE),
    Reason("softmax", "bar.sync", "left out", 2, REDUCE),
    Reason("norms of vectors", "bar.sync", "left out", 3, "store_sums, before its first use; as " + REDUCE),
    Reason("norms of vectors", "atom.global.max*", "left out", 1,
           "amax of vectors of three tiles: another kernel finds a larger value, that of dgamma or dbeta"),
    Reason("attention*", "bar.sync", "left out", 1, "before the next unit of a block; each block has only one"),
    Reason("attention on tensor cores", "cp.async.cg.shared.global", "copies out-of-bounds elements", 2,
           "columns past the end, which are hidden: only NaN matters, which is a separate test; later tiles are complete"),
    Reason("attention on tensor cores", "bar.warp.sync", "left out", 2,
           "store_sums, before its stores: a block barrier follows the last load of the rows"),
    Reason("regularization", "bar.sync", "left out", 3, REDUCE),
    Reason("conv depthwise", "bar.sync", "left out", 1,
           "conv_depthwise_wgrad: after the last tap of a work item; each block has only one"),
    Reason("reductions after products", "bar.sync", "left out", 1,
           "split_k_sum: after the last slice ranges of a block; more would require a D larger than memory"),
    Reason("transposes", "bar.sync", "left out", 1, "after the last tile of a block; each block has only one"),
    *(Reason("wgmma, ping-pong", f"tensormap.replace.*{field}*", what, 3,
             "third dimensions of three maps: a group entry is one matrix, so only index 0 is read")
      for field, what in (("global_dim", "left out"), ("global_dim", "a dimension of 7"), ("global_stride", "left out"),
                          ("global_stride", "a stride of 48 bytes"))),
    Reason("wgmma, ping-pong", "bra", GUARD, 1,
           "header().misaligned, if it remains 0: all threads write the same value"),
    Reason("wgmma, ping-pong", "mapa.*", "always block 0", None, "a cluster of one block"),
    *(Reason(cases, "cp.async.wait_group", "*", most, "WmmaLoop: the groups after the last tile of k are empty")
      for cases, most in (("*wmma*", 1), ("recurrent steps", 2))),  # one main loop per 16-bit type
    Reason("conv wmma, wgrad", "cp.async.cg.shared.global", "copies out-of-bounds elements", 1,
           "columns after the last tap, whose sums are not stored"),
    Reason("recurrent steps", "bar.warp.sync", "left out", 1, "after the last staged subtile"),
    Reason("recurrent steps", "cp.async.commit_group", "left out", 2,
           "forward, 32 rows: products have one tile of k, because launches with more units use tiles of 64 rows"),
    Reason("recurrent steps", "cp.async.cg.shared.global", "copies out-of-bounds elements", 8,
           "rows and units out of bounds, whose sums are not stored; backward, the gates of LSTM end with a tile of k"),
    Reason("conv wgmma, wgrad", "mbarrier.init.*", "*", 16,
           "Barriers::arrived, for eight warps with two buffers each: set_output passes no epilogue source map "
           "to wgrad, so nothing is loaded into the buffers"),
    Reason("*wgmma*", "cp.async.bulk.wait_group.read", "*", 1,
           "Buffers::reuse_all before the staged store: a launch with staged stores has no TMA stores"),
]
