// Made by bindings/generate/generate from include/mpcore.h; edit that and run bindings/generate/generate.

//! The enums of `mpcore.h` as Rust has them.

macro_rules! numbered {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $value:literal,)* }) => {
        $(#[$about])*
        #[non_exhaustive]
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$of])* $variant = $value,)*
        }

        impl $name {
            /// The value of that number, if this crate knows one.
            pub fn from_raw(raw: u32) -> Option<Self> {
                match raw {
                    $($value => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

macro_rules! flags {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $flag:ident = $value:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(u32);

        impl $name {
            $($(#[$of])* pub const $flag: Self = Self($value);)*

            /// The flags of an integer of [`sys`](crate::sys); bits of newer libraries are kept.
            pub const fn from_bits(bits: u32) -> Self {
                Self(bits)
            }

            /// As [`sys`](crate::sys) has them.
            pub const fn bits(self) -> u32 {
                self.0
            }

            /// True if all of `flags` are set.
            pub const fn contains(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, flags: Self) -> Self {
                Self(self.0 | flags.0)
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, flags: Self) {
                self.0 |= flags.0;
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            /// `self` without `flags`.
            fn sub(self, flags: Self) -> Self {
                Self(self.0 & !flags.0)
            }
        }
    };
}

numbered! {
    /// Values are part of the ABI.  The decades say whose fault it is.
    Status {
        /// [`MP_SUCCESS`](crate::sys::MP_SUCCESS)
        Success = 0,
        /// a value outside its documented range
        ErrorInvalidArgument = 1,
        /// a pointer or ld breaks a documented alignment
        ErrorMisaligned = 2,
        /// ask mp\_\*\_workspace\_size
        ErrorWorkspaceTooSmall = 3,
        /// struct\_size is 0, or asks for unknown features
        ErrorStructSize = 4,
        /// no kernel for this combination; [`mp_last_error`](crate::sys::mp_last_error) says which part
        ErrorUnsupported = 20,
        /// not compiled for this device
        ErrorArchMismatch = 21,
        /// name unknown, enumeration exhausted, shared library missing
        ErrorNotFound = 22,
        /// [`MP_ERROR_OUT_OF_MEMORY`](crate::sys::MP_ERROR_OUT_OF_MEMORY)
        ErrorOutOfMemory = 40,
        /// [`mp_last_error`](crate::sys::mp_last_error) has the CUDA error name
        ErrorCuda = 41,
        /// a callback of [`mp_comm_t`](crate::sys::mp_comm_t) failed; [`mp_last_error`](crate::sys::mp_last_error) has its code
        ErrorComm = 42,
        /// [`MP_ERROR_INTERNAL`](crate::sys::MP_ERROR_INTERNAL)
        ErrorInternal = 60,
    }
}

numbered! {
    /// How much a message matters; a smaller number matters more.
    LogLevel {
        /// every error, once; by default only errors that no status returns
        Error = 1,
        /// slow paths taken for a reason the caller can change
        Warn = 2,
        /// kernel choices, the first time each is made; skipped steps, where the
        /// host asks for their outcome
        Info = 3,
        /// every call
        Debug = 4,
    }
}

numbered! {
    /// Element types.  0 is deliberately invalid: a forgotten field is an error.
    Dtype {
        /// [`MP_DTYPE_NONE`](crate::sys::MP_DTYPE_NONE)
        DtypeNone = 0,
        /// IEEE binary16: 5 exponent bits, 11 significant bits, max 65504
        Fp16 = 1,
        /// bfloat16: 8 exponent bits, 8 significant bits
        Bf16 = 2,
        /// IEEE binary32
        Fp32 = 3,
    }
}

numbered! {
    /// What the kernels of a context were compiled for.
    Target {
        /// [`MP_TARGET_CUDA`](crate::sys::MP_TARGET_CUDA)
        Cuda = 1,
        /// [`MP_TARGET_HOST`](crate::sys::MP_TARGET_HOST)
        Host = 2,
    }
}

numbered! {
    /// An operand as it is stored, or its transpose.
    Op {
        /// [`MP_OP_N`](crate::sys::MP_OP_N)
        N = 0,
        /// [`MP_OP_T`](crate::sys::MP_OP_T)
        T = 1,
    }
}

numbered! {
    /// A function applied to each element of a result, or its derivative.
    Activation {
        /// [`MP_ACT_NONE`](crate::sys::MP_ACT_NONE)
        None = 0,
        /// [`MP_ACT_RELU`](crate::sys::MP_ACT_RELU)
        Relu = 1,
        /// tanh form: 0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))
        Gelu = 2,
        /// backward: multiplies by relu'(aux)
        Drelu = 3,
        /// backward: multiplies by gelu'(aux)
        Dgelu = 4,
        /// 1 / (1 + exp(-z))
        Sigmoid = 5,
        /// [`MP_ACT_TANH`](crate::sys::MP_ACT_TANH)
        Tanh = 6,
        /// backward: multiplies by sigmoid'(aux)
        Dsigmoid = 7,
        /// backward: multiplies by tanh'(aux)
        Dtanh = 8,
        /// z / (1 + exp(-z)), also called swish
        Silu = 9,
        /// backward: multiplies by silu'(aux)
        Dsilu = 10,
        /// exact form: 0.5 z (1 + erf(z / sqrt(2)))
        GeluErf = 11,
        /// backward: multiplies by gelu'(aux) of the exact form
        DgeluErf = 12,
    }
}

numbered! {
    /// The dimension that the groups of [`mp_gemm_ragged`](crate::sys::mp_gemm_ragged) share.
    Ragged {
        /// rows: forward pass and input gradients of the experts of a layer
        M = 0,
        /// k: their weight gradients
        K = 1,
    }
}

numbered! {
    /// The three passes of a convolutional layer.
    ConvOp {
        /// [`MP_CONV_FPROP`](crate::sys::MP_CONV_FPROP)
        Fprop = 0,
        /// [`MP_CONV_DGRAD`](crate::sys::MP_CONV_DGRAD)
        Dgrad = 1,
        /// [`MP_CONV_WGRAD`](crate::sys::MP_CONV_WGRAD)
        Wgrad = 2,
    }
}

numbered! {
    /// How the loss scale S follows the gradients.
    ScalerPolicy {
        /// S never changes.  bf16 training uses this with S = 1.
        Static = 0,
        /// Overflow: S \*= backoff\_factor.  growth\_interval clean steps in a row:
        /// S \*= growth\_factor, unless that is not a finite number.  Source: torch.amp.GradScaler.
        /// hysteresis h \> 1 forgives h - 1 overflows; further ones back off, until the budget is
        /// refilled: when S grows (Megatron-LM) or, with [`MP_SCALER_REFILL_EACH_STEP`](crate::sys::MP_SCALER_REFILL_EACH_STEP), by every
        /// clean step (apex update\_scale\_hysteresis).
        Backoff = 1,
        /// Models log2 of the largest unscaled gradient as normal, with running mean mu (decay
        /// beta1) and deviation sigma (decay beta2, at least sigma\_floor), and sets
        ///
        /// ```text
        /// S = 2^floor(log2_max - mu - overflow_std_dev * sigma)
        /// ```
        /// so that overflow has a fixed small probability.  An overflowing step leaves mu and
        /// sigma alone, backs off once, and raises a head-room h (bits) subtracted in the exponent
        /// above; every growth\_interval clean steps h shrinks by one bit.  Without h the policy
        /// livelocks when an activation gradient, which no statistic sees, overflows first.  After
        /// overflows before the first statistics, these begin with an h that leaves S as it is.
        /// A step whose gradients are all zero changes nothing.
        /// Source: OpenSeq2Seq LogMaxScaler, with its defects repaired (there an overflow feeds
        /// 2^log\_max into a mean of log2 values and pins S at its minimum for ~12,000 steps).
        Lognormal = 2,
        /// OpenSeq2Seq's LogMaxScaler as it was shipped; see mpcore/compat.h.
        Logmax = 3,
    }
}

flags! {
    /// Bits of `mp_scaler_config`.flags.
    ScalerFlags {
        /// backoff; see there
        REFILL_EACH_STEP = 1,
        /// Backoff: the first clean step, and the first after each overflow, does not count towards
        /// growth\_interval.  Source: DeepSpeed FP16\_Optimizer.
        FIRST_STEP_UNCOUNTED = 2,
    }
}

numbered! {
    /// Whether a scaler still gets anywhere.
    ScalerStatus {
        /// [`MP_SCALER_OK`](crate::sys::MP_SCALER_OK)
        Ok = 0,
        /// see `mp_scaler_config`.diverged\_after; or S has no finite inverse
        Diverged = 1,
    }
}

numbered! {
    /// In all formulas g is the unscaled, clipped gradient, w the fp32 master weight, t the
    /// number of applied (not skipped) steps including this one.  Norms |x| are taken over one tensor,
    /// computed as in [`mp_l2norm`](crate::sys::mp_l2norm).
    OptimizerKind {
        /// m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m
        /// [`MP_OPT_NESTEROV`](crate::sys::MP_OPT_NESTEROV): w -= lr (g + momentum m).  Weight decay: g += wd w, or with
        /// [`MP_OPT_DECAY_AFTER_MOMENTUM`](crate::sys::MP_OPT_DECAY_AFTER_MOMENTUM) w -= lr wd w, which momentum does not see.
        /// [`MP_OPT_LARS`](crate::sys::MP_OPT_LARS), [`MP_OPT_LARC`](crate::sys::MP_OPT_LARC): g = a (g + wd w) instead, with one a per tensor:
        ///
        /// ```text
        /// LARS: a = trust |w| / (|g| + wd |w| + eps);   LARC: min(1, that / lr)
        /// ```
        /// a = 1 where |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
        /// and tensors that begin as 0 stay near it.)
        /// Source: You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
        /// algorithm 1; LARC: Apex, apex/parallel/LARC.py.
        Sgd = 1,
        /// m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)
        /// Decay: g += wd w, or with [`MP_OPT_DECOUPLED_DECAY`](crate::sys::MP_OPT_DECOUPLED_DECAY) w -= lr wd w (AdamW).
        /// Source: Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2.
        Adam = 2,
        /// w -= lr r u, where w -= lr u is the step of [`MP_OPT_ADAM`](crate::sys::MP_OPT_ADAM) with the same flags, its decay
        /// included, and r = |w| / |u|.  r = 1 where |w| or |u| is 0, and, unless [`MP_OPT_NVLAMB`](crate::sys::MP_OPT_NVLAMB), for
        /// tensors with wd = 0 (biases, normalisation), as in Apex's FusedLAMB.
        /// The paper's form has [`MP_OPT_DECOUPLED_DECAY`](crate::sys::MP_OPT_DECOUPLED_DECAY), which [`mp_optimizer_desc_default`](crate::sys::mp_optimizer_desc_default) sets.  The global
        /// clipping that Apex has inside is `mp_step_options`.max\_grad\_norm.
        /// Source: You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2.
        Lamb = 3,
        /// v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1), one number per tensor;
        /// m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m
        /// dampening = b1 averages the gradients, as upstream's grad\_averaging does.
        /// (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
        /// corrects the bias of a v that begins without one.  This is the paper's form.)
        /// Source: Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
        /// algorithm 1.
        Novograd = 4,
        /// v += g^2;  w -= lr g / (sqrt(v) + eps).  v may begin above 0 (TensorFlow: 0.1).
        /// Decay: g += wd w, or with [`MP_OPT_DECOUPLED_DECAY`](crate::sys::MP_OPT_DECOUPLED_DECAY) w -= lr wd w.
        /// Source: Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch.
        Adagrad = 5,
        /// v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps)
        /// With momentum: m = momentum m + g / (sqrt(v) + eps);  w -= lr m.  Decay: g += wd w.
        /// Source: Tieleman & Hinton, COURSERA: Neural Networks for Machine Learning, 2012, lecture 6.5;
        /// eps and momentum as in torch.
        Rmsprop = 6,
    }
}

flags! {
    /// Bits of `mp_optimizer_desc`.flags.
    OptimizerFlags {
        /// SGD
        NESTEROV = 1,
        /// Adam: makes it AdamW; LAMB; Adagrad
        DECOUPLED_DECAY = 2,
        /// Adam, LAMB: mhat = m, vhat = v
        NO_BIAS_CORRECTION = 4,
        /// Let the 16-bit copy of a weight that overflows become infinite.  Without this flag it is
        /// clamped to the largest finite value: an infinite weight makes every later gradient non-finite,
        /// so every later step is skipped and training never recovers.
        MODEL_OVERFLOW = 16,
        /// SGD, not with [`MP_OPT_LARC`](crate::sys::MP_OPT_LARC) or [`MP_OPT_LARS`](crate::sys::MP_OPT_LARS)
        DECAY_AFTER_MOMENTUM = 32,
        /// SGD
        LARC = 64,
        /// SGD, not with [`MP_OPT_LARC`](crate::sys::MP_OPT_LARC)
        LARS = 128,
        /// LAMB: adapts the tensors without decay too
        NVLAMB = 256,
        /// Round the 16-bit copy of a weight up or down at random, so that on average it is the weight: a
        /// change below half a unit of the copy is not lost in every step.  What the type can hold stays
        /// as it is.  The random numbers follow from rounding\_seed, t, the tensor's index and the
        /// element's, and from nothing else: not from the device, not from being interrupted and resumed.
        /// Probabilities are exact (fp16 subnormals: to within 2^-32).
        /// Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1;
        /// ```text
        ///     Philox
        /// ```
        /// 4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
        STOCHASTIC_ROUNDING = 512,
    }
}

numbered! {
    /// How the learning rate follows t, on the device: a skipped step does not advance it, and a
    /// captured graph needs no host.  Every schedule begins with a linear warm-up,
    ///
    /// ```text
    /// lr(t) = lr t / warmup_steps   for t <= warmup_steps,
    /// ```
    /// and s = t - 1 - warmup\_steps counts the steps after it: the first of them has lr itself.
    /// p = min(s / decay\_steps, 1).  Computed in fp64, rounded once.
    LrSchedule {
        /// lr
        Constant = 0,
        /// lr\_end + (lr - lr\_end) (1 - p)^decay\_power; linear with 1
        Polynomial = 1,
        /// lr\_end + (lr - lr\_end) (1 + cos(pi p)) / 2
        /// Source: Loshchilov & Hutter, SGDR, 2017, equation 5, without restarts.
        Cosine = 2,
        /// max(lr\_end, lr decay\_rate^(s / decay\_steps))
        Exponential = 3,
        /// lr sqrt(max(warmup\_steps, 1) / t)
        /// Source: Vaswani et al., Attention Is All You Need, 2017, equation 3, with lr as its peak.
        InverseSqrt = 4,
    }
}

numbered! {
    /// What becomes of equal places in the tensors of all ranks.
    ReduceOp {
        /// [`MP_REDUCE_SUM`](crate::sys::MP_REDUCE_SUM)
        Sum = 0,
        /// of finite numbers \>= 0 only: what NaN does to a maximum is everybody's own
        Max = 1,
    }
}

flags! {
    /// Bits of `mp_step_options`.flags.
    StepFlags {
        /// Leave the scaler and its flag to a later step, for optimizers that share a scaler: all but
        /// the last have this flag (or all, and [`mp_scaler_update`](crate::sys::mp_scaler_update)(scaler, NULL, stream) follows).
        /// An optimizer skips for its own gradients and those before it.  For all to skip together
        /// the lists of the later ones are checked first:
        ///
        /// ```text
        /// mp_check_nonfinite(grads_of_b, mp_scaler_found_inf(scaler), stream);
        /// options.flags = MP_STEP_KEEP_SCALER;
        /// mp_scale_step(a, scaler, &options, stream);
        /// mp_scale_step(b, scaler, NULL, stream);     // S follows its policy
        /// ```
        KEEP_SCALER = 1,
        /// The gradients are those of [`mp_grads_accumulate`](crate::sys::mp_grads_accumulate) or [`mp_grads_to_fp32`](crate::sys::mp_grads_to_fp32): 1/S is in them already,
        /// and the scaler learns from the amax that was noted there.  Lognormal and logmax need one.
        /// With [`MP_STEP_CHECKED`](crate::sys::MP_STEP_CHECKED) too where the last call had [`MP_ACCUMULATE_LAST`](crate::sys::MP_ACCUMULATE_LAST).
        UNSCALED = 2,
        /// Whoever produced the gradients has inspected them: the epilogues of GEMMs and convolutions raise
        /// [`mp_scaler_found_inf`](crate::sys::mp_scaler_found_inf) and measure amax.  Pass 1 falls away, which saves a launch and one of the two
        /// readings of every gradient.  Without a scaler the flag is that of [`mp_optimizer_get_scaler`](crate::sys::mp_optimizer_get_scaler).
        /// Not with what only pass 1 can tell: max\_grad\_norm, grad\_norm, tensor\_norms, reports, and the
        /// max\_tensor\_norm of a group.
        CHECKED = 4,
        /// With comm: every rank has tensors of its own, each of them whole (a sharded optimizer, perhaps
        /// without tensors), and the norm is that of all of them.  Without this flag all ranks have the
        /// same gradients.
        SHARDED = 8,
    }
}

flags! {
    /// Bits of the `flags` of [`mp_grads_accumulate`](crate::sys::mp_grads_accumulate).
    AccumulateFlags {
        /// The first gradients of a window: sums are overwritten, and not read.
        FIRST = 1,
        /// The last ones before the update, by an optimizer of the host program: the sums are inspected
        /// as well, and [`mp_step_query`](crate::sys::mp_step_query) learns the outcome here already.  Of several lists only the last one
        /// has this flag; nothing may raise the scaler's flag between here and [`mp_scaler_update`](crate::sys::mp_scaler_update).  The
        /// outcome is of this rank's gradients: with several ranks [`mp_grad_all_reduce`](crate::sys::mp_grad_all_reduce) comes before.
        LAST = 2,
    }
}

numbered! {
    /// Outcome of a step.  If several causes apply: OVERFLOW, then NO\_SCALE, then RANGE.  Queries, the
    /// state of the scaler and `mp_step_options` report the same outcome; [`mp_scaler_get_history_sync`](crate::sys::mp_scaler_get_history_sync) has
    /// its own codes.
    StepOutcome {
        /// the device has not come to it yet
        Pending = 0,
        /// [`MP_STEP_TAKEN`](crate::sys::MP_STEP_TAKEN)
        Taken = 1,
        /// Bound for comparisons, never reported: from here on (\>=) nothing was updated.
        Skipped = 2,
        /// The largest |gradient| times the factor that unscales and clips is not below 2^63, or that
        /// factor is not finite.  S stays: no other S helps.
        Range = 3,
        /// (4 is reserved.)  S is 0, or 1/S is not a finite number.  The scaler's status becomes
        /// [`MP_SCALER_DIVERGED`](crate::sys::MP_SCALER_DIVERGED).
        NoScale = 5,
        /// the flag was up, or a gradient or amax was not finite; S follows its policy
        Overflow = 6,
    }
}

numbered! {
    /// What an operation makes of a 16-bit type.
    AutocastClass {
        /// fp32, whatever stands around it
        Unlisted = 0,
        /// always low: it is safe, and faster
        Allow = 1,
        /// low between low ones, unless it feels an [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY)
        Infer = 2,
        /// fp32, and so are the [`MP_CAST_INFER`](crate::sys::MP_CAST_INFER) and what lies before these, behind it
        Deny = 3,
        /// no numerical effect: takes the colour of its neighbours
        Clear = 4,
        /// [`MP_AUTOCAST_PYTORCH`](crate::sys::MP_AUTOCAST_PYTORCH): low where all its floating-point inputs are.  Elsewhere [`MP_CAST_INFER`](crate::sys::MP_CAST_INFER).
        Promote = 5,
    }
}

numbered! {
    /// Whose lists of operations, and whose way of colouring.
    AutocastPreset {
        /// Names of mpcore, ONNX, TensorFlow and PyTorch at once.  Softmax, norms over a row, losses and
        /// sums are [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY); batch norm is [`MP_CAST_INFER`](crate::sys::MP_CAST_INFER); products, convolutions, attention and
        /// recurrent layers are [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW).
        Default = 0,
        /// lists of TensorFlow 2.21 for fp16
        Tensorflow = 1,
        /// lists of TensorFlow 2.21 for bf16
        TensorflowBf16 = 2,
        /// Lists of torch.amp in PyTorch 2.11 on a GPU, names without overload, and compositions of
        /// listed operations, such as cross\_entropy and interpolate.  [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY) does not spread, and
        /// one sweep forward replaces the colouring: a node is low if it is [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW), or else if all
        /// its floating-point inputs are low and no list holds it in fp32.  An unknown operation is
        /// [`MP_CAST_CLEAR`](crate::sys::MP_CAST_CLEAR).
        Pytorch = 3,
        /// names of ONNX, with the block list of onnxconverter-common unlisted
        Onnx = 4,
    }
}

numbered! {
    /// How far it goes.
    AutocastLevel {
        /// [`MP_AUTOCAST_NORMAL`](crate::sys::MP_AUTOCAST_NORMAL)
        Normal = 0,
        /// the careful one
        InferAsDeny = 1,
        /// all but [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW) is [`MP_CAST_UNLISTED`](crate::sys::MP_CAST_UNLISTED)
        TensorCoresOnly = 2,
        /// For tests, fp16 alone: everything that can, but constants, state and cross-entropies.
        ForceAll = 3,
    }
}

flags! {
    /// Bits of `mp_autocast_config`.flags.
    AutocastFlags {
        /// the variables of [`mp_autocast_create`](crate::sys::mp_autocast_create) are not read
        NO_ENVIRONMENT = 1,
        /// no gate: see [`mp_autocast_gate`](crate::sys::mp_autocast_gate)
        IGNORE_PERFORMANCE = 2,
        /// Tensors of role [`MP_TENSOR_OUTPUT`](crate::sys::MP_TENSOR_OUTPUT) leave the graph in fp32: the outside is one more reader.
        KEEP_IO = 4,
        /// For machines without 16-bit arithmetic: low nodes run in fp32 on rounded values.  See
        /// `mp_autocast_result`.
        EMULATE = 8,
    }
}

flags! {
    /// Bits of `mp_autocast_graph`.node\_flags.
    NodeFlags {
        /// is not to be touched: fetched, fed, or the caller's wish
        KEEP = 1,
        /// runs on another device, and is not touched either
        ELSEWHERE = 2,
        /// has no 16-bit kernel: fp32; its class still spreads
        NO_LOW = 4,
        /// converts to the type of its output
        CAST = 8,
        /// Reads a variable in place (Identity or Enter of TensorFlow's reference variables): low does not
        /// spread through it.
        READS_VARIABLE = 16,
        /// of a loop: follows the others (NextIteration)
        BACK_EDGE = 32,
        /// reads fp32 and low alike, but for [`MP_SLOT_FP32`](crate::sys::MP_SLOT_FP32)
        READS_EITHER = 64,
        /// writes fp32 or low as it is told, like [`mp_gemm`](crate::sys::mp_gemm)'s dtype\_cd
        WRITES_EITHER = 128,
    }
}

numbered! {
    /// What a tensor is besides a value.
    TensorRole {
        /// [`MP_TENSOR_ACTIVATION`](crate::sys::MP_TENSOR_ACTIVATION)
        Activation = 0,
        /// an optimizer has its master, and can keep a 16-bit copy
        Parameter = 1,
        /// read from outside
        Output = 2,
    }
}

numbered! {
    /// How a tensor comes to its other type.
    CastKind {
        /// [`mp_cast`](crate::sys::mp_cast), once for all readers
        Kernel = 1,
        /// No kernel: the 16-bit copy that the optimizer keeps of its master (`mp_optimizer_desc`.model).
        ModelCopy = 2,
    }
}

numbered! {
    /// Why a node has its type.  Below 32 it stays fp32.  node\_because names the node in \[\].
    AutocastWhy {
        /// no list names its operation
        Unlisted = 1,
        /// [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY), by list, pattern or node\_class
        DenyList = 2,
        /// behind an [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY) \[it\]
        DenyUpstream = 3,
        /// a tensor with |x| \> amax\_limit
        Range = 4,
        /// more terms than depth\_limit
        Depth = 5,
        /// [`MP_NODE_KEEP`](crate::sys::MP_NODE_KEEP)
        Kept = 6,
        /// [`MP_NODE_ELSEWHERE`](crate::sys::MP_NODE_ELSEWHERE)
        Elsewhere = 7,
        /// [`MP_NODE_NO_LOW`](crate::sys::MP_NODE_NO_LOW)
        NoKernel = 8,
        /// could be low, but nothing low is near enough
        NoAllowNearby = 9,
        /// reads and writes no [`MP_FP32`](crate::sys::MP_FP32) tensor
        NotFloat = 10,
        /// see `mp_autocast_result`.gate
        Gate = 11,
        /// of a cluster that cannot be low \[the member that cannot\]
        ClusterFp32 = 12,
        /// [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW), by list or node\_class
        AllowList = 32,
        /// [`MP_CAST_INFER`](crate::sys::MP_CAST_INFER) or \_CLEAR between two low ones \[the one behind it\]
        BetweenAllow = 33,
        /// its inputs are low: bf16, or [`MP_AUTOCAST_PYTORCH`](crate::sys::MP_AUTOCAST_PYTORCH) \[the first\]
        FollowsAllow = 34,
        /// [`MP_CAST_CLEAR`](crate::sys::MP_CAST_CLEAR) beside a low one \[it\]
        ClearBesideLow = 35,
        /// of a cluster that is low \[the member that was\]
        ClusterLow = 36,
        /// a cast to fp32 all whose readers are low \[the first\]
        CastAbsorbed = 37,
        /// [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW) by [`mp_autocast_set_nodes`](crate::sys::mp_autocast_set_nodes)
        Pattern = 38,
    }
}

numbered! {
    /// How a report is written.
    AutocastForm {
        /// One line per node, "conv1/bn  FusedBatchNormV3  fp16  between conv1/conv and conv2/conv", and a
        /// summary.
        Text = 0,
        /// [`MP_AUTOCAST_JSON`](crate::sys::MP_AUTOCAST_JSON)
        Json = 1,
        /// a picture for Graphviz: low green, fp32 red, casts on their edges
        Dot = 2,
    }
}

flags! {
    /// Bits of [`mp_xent_desc_t`](crate::sys::mp_xent_desc_t).flags.
    XentFlags {
        /// rows whose label is `ignore_label` do not count
        IGNORE_LABEL = 1,
    }
}

numbered! {
    /// Losses of one prediction x and one target t.
    LossKind {
        /// (x - t)^2
        Mse = 1,
        /// |x - t|; its derivative is 0 for x = t
        L1 = 2,
        /// -t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x))
        BceWithLogits = 3,
    }
}

numbered! {
    /// Divisors of a sum of losses.
    LossReduction {
        /// the number of elements that count
        Mean = 0,
        /// 1
        Sum = 1,
    }
}

flags! {
    /// Bits of [`mp_loss_desc_t`](crate::sys::mp_loss_desc_t).flags.
    LossFlags {
        /// elements whose target is `ignore_target` do not count
        IGNORE_TARGET = 1,
    }
}

numbered! {
    /// What becomes of the pixels of a window.  Padding is never the largest; it counts as zeros in
    /// one of the two means, and not at all in the other.
    PoolMode {
        /// [`MP_POOL_MAX`](crate::sys::MP_POOL_MAX)
        Max = 1,
        /// sum / number of pixels inside the padded image
        AvgIncludePad = 2,
        /// sum / number of pixels inside the image
        AvgExcludePad = 3,
    }
}

flags! {
    /// Bits of [`mp_pool2d_desc_t`](crate::sys::mp_pool2d_desc_t).flags.
    PoolFlags {
        /// P and Q are rounded up: the last window may reach past the padding, but begins inside the
        /// image or the padding before it.  As ceil\_mode of torch.
        CEIL = 1,
    }
}

numbered! {
    /// What becomes of an element of a and the one of b at its place.
    PointwiseOp {
        /// z = a
        Copy = 1,
        /// z = a + b
        Add = 2,
        /// z = a b
        Mul = 3,
    }
}

numbered! {
    /// What happens in a step.
    RnnCell {
        /// [`MP_RNN_TANH`](crate::sys::MP_RNN_TANH)
        Tanh = 1,
        /// [`MP_RNN_RELU`](crate::sys::MP_RNN_RELU)
        Relu = 2,
        /// rows of the weights: i f g o
        Lstm = 3,
        /// rows of the weights: r z n
        Gru = 4,
    }
}

flags! {
    /// Bits of [`mp_rnn_desc_t`](crate::sys::mp_rnn_desc_t).flags.
    RnnFlags {
        /// [`MP_RNN_BIDIRECTIONAL`](crate::sys::MP_RNN_BIDIRECTIONAL)
        BIDIRECTIONAL = 1,
        /// b\_ih and b\_hh are 0 and not looked at
        NO_BIAS = 2,
        /// x\_t is added to every gate of the first layer in place of its product with W\_ih, which is not
        /// looked at; input\_size = hidden\_size.
        SKIP_INPUT = 4,
        /// [`MP_RNN_GRU`](crate::sys::MP_RNN_GRU): n = tanh(p\_n + (r h) W\_n^T + b\_n), with two products in a row in every step.
        /// Source: Cho et al. 2014; what TensorFlow and Keras call reset\_after=False.
        RESET_FIRST = 8,
        /// Gradients of weights and biases are added to what is there: micro-batches.  dtype\_dw = [`MP_FP32`](crate::sys::MP_FP32)
        /// loses nothing on the way.
        ACCUMULATE = 16,
    }
}

flags! {
    /// Bits of [`mp_embedding_desc_t`](crate::sys::mp_embedding_desc_t).flags.
    EmbeddingFlags {
        /// The gradient of row `padding_index` is 0, whatever dout is where that index stands; forward the
        /// row is one like any other.  As in torch.
        PADDING = 1,
        /// The gradient is added to what is there: micro-batches, or a table that is used twice.
        /// dtype\_dtable = [`MP_FP32`](crate::sys::MP_FP32) loses nothing on the way.
        ACCUMULATE = 2,
    }
}

numbered! {
    /// See the variants.
    GraphMode {
        /// BatchNorm with its states, no Dropout.  The loss, and all that depends on it, if its labels
        /// are bound.
        Inference = 0,
        /// All that [`mp_graph_backward`](crate::sys::mp_graph_backward) needs, which computes the loss with its gradient, and all that
        /// depends on the loss.
        Training = 1,
    }
}

numbered! {
    /// Policies of other systems: S after every step is theirs, exactly, with their defaults, while S
    /// is a finite fp32 number.  (Megatron, DeepSpeed and Keras 3 let S grow past that, and every
    /// later step is lost; here S stops.  apex amp raises at S = 0, DeepSpeed's DynamicLossScaler at
    /// an overflow with S = 1; here S stays there.)  All are [`MP_SCALER_BACKOFF`](crate::sys::MP_SCALER_BACKOFF) but for the first and
    /// the last; change what you like in the config returned.
    ScalerPreset {
        /// [`mp_scaler_config_default`](crate::sys::mp_scaler_config_default)([`MP_SCALER_LOGNORMAL`](crate::sys::MP_SCALER_LOGNORMAL))
        Lognormal = 0,
        /// torch.amp.GradScaler.  2^16, interval 2000, no limits.
        Torch = 1,
        /// apex.amp LossScaler, apex/amp/scaler.py (removed from apex in 2025).  2^16, interval 2000, no
        /// minimum, maximum 2^24.
        ApexAmp = 2,
        /// apex csrc/update\_scale\_hysteresis.cu: torch's rule, but it takes 2 overflows without a clean
        /// step between them to back off.  The kernel has no defaults: torch's, and Megatron's
        /// hysteresis of 2.
        ApexHysteresis = 3,
        /// Megatron-LM DynamicGradScaler, core/optimizer/grad\_scaler.py.  2^32, interval 1000, minimum
        /// 1, hysteresis 2, refilled when S grows.
        Megatron = 4,
        /// DeepSpeed DynamicLossScaler, runtime/fp16/loss\_scaler.py (ZeRO), with the defaults of the
        /// "fp16" section of its configuration: 2^16, interval 1000, minimum 1, hysteresis 2.  For
        /// consecutive\_hysteresis set [`MP_SCALER_REFILL_EACH_STEP`](crate::sys::MP_SCALER_REFILL_EACH_STEP).
        Deepspeed = 5,
        /// DeepSpeed FP16\_Optimizer, runtime/fp16/fused\_optimizer.py (without ZeRO), which has a rule of
        /// its own: no hysteresis, and the first growth takes 1001 clean steps.
        DeepspeedFused = 6,
        /// tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  2^15, interval 2000,
        /// minimum 1.
        Keras = 7,
        /// keras.optimizers.LossScaleOptimizer of Keras 3: the same without minimum.
        Keras3 = 8,
        /// OpenSeq2Seq BackoffScaler, optimizers/automatic\_loss\_scaler.py.  2^14, which is also the
        /// maximum, interval 2000, minimum 1.
        Openseq2seqBackoff = 9,
        /// OpenSeq2Seq LogMaxScaler as shipped: [`MP_SCALER_LOGMAX`](crate::sys::MP_SCALER_LOGMAX).  1, in \[1, 2^14\].
        Openseq2seqLogmax = 10,
    }
}
