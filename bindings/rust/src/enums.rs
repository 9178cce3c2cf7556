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
    /// Status codes.  The values are part of the ABI and grouped in ranges by cause.
    Status {
        /// [`MP_SUCCESS`](crate::sys::MP_SUCCESS)
        Success = 0,
        /// a value outside its documented range
        ErrorInvalidArgument = 1,
        /// a pointer or ld violates a documented alignment
        ErrorMisaligned = 2,
        /// see mp\_\*\_workspace\_size
        ErrorWorkspaceTooSmall = 3,
        /// struct\_size is 0 or requests unknown features
        ErrorStructSize = 4,
        /// no kernel for this combination; [`mp_last_error`](crate::sys::mp_last_error) names the part
        ErrorUnsupported = 20,
        /// the build has no code for this device
        ErrorArchMismatch = 21,
        /// unknown name, index past the end, missing shared library
        ErrorNotFound = 22,
        /// [`MP_ERROR_OUT_OF_MEMORY`](crate::sys::MP_ERROR_OUT_OF_MEMORY)
        ErrorOutOfMemory = 40,
        /// [`mp_last_error`](crate::sys::mp_last_error) contains the CUDA error name
        ErrorCuda = 41,
        /// a callback of [`mp_comm_t`](crate::sys::mp_comm_t) failed; [`mp_last_error`](crate::sys::mp_last_error) contains its code
        ErrorComm = 42,
        /// [`MP_ERROR_INTERNAL`](crate::sys::MP_ERROR_INTERNAL)
        ErrorInternal = 60,
    }
}

numbered! {
    /// Log severity; lower values are more severe.
    LogLevel {
        /// every error, once; by default only errors that no status returns
        Error = 1,
        /// slow paths whose cause the caller can change
        Warn = 2,
        /// kernel selections, the first time each is made; skipped steps, if the
        /// host queries their outcome
        Info = 3,
        /// every call
        Debug = 4,
    }
}

numbered! {
    /// Element types.  0 is invalid, so that an unset field is an error.
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
    /// Target that the kernels of a context are compiled for.
    Target {
        /// [`MP_TARGET_CUDA`](crate::sys::MP_TARGET_CUDA)
        Cuda = 1,
        /// [`MP_TARGET_HOST`](crate::sys::MP_TARGET_HOST)
        Host = 2,
    }
}

numbered! {
    /// Form of an operand: as stored (N) or transposed (T).
    Op {
        /// [`MP_OP_N`](crate::sys::MP_OP_N)
        N = 0,
        /// [`MP_OP_T`](crate::sys::MP_OP_T)
        T = 1,
    }
}

numbered! {
    /// Activation function, or its derivative, applied to each element of a result.
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
    /// Dimension that is divided among the groups of [`mp_gemm_ragged`](crate::sys::mp_gemm_ragged).
    Ragged {
        /// rows: forward pass and input gradients of experts
        M = 0,
        /// k: weight gradients of experts
        K = 1,
    }
}

numbered! {
    /// Pass of a convolutional layer: forward, input gradient (dgrad) or weight gradient (wgrad).
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
    /// Policy that adapts the loss scale S to the gradients.  A step is clean if its outcome is
    /// [`MP_STEP_TAKEN`](crate::sys::MP_STEP_TAKEN); other steps are skipped.  docs/loss-scaler.md compares the policies.
    ScalerPolicy {
        /// Constant S.  bf16 training uses this policy with S = 1.
        Static = 0,
        /// Multiplicative backoff and growth.  An overflow sets S \*= backoff\_factor.  growth\_interval
        /// clean steps in a row set S \*= growth\_factor, unless the product is not finite.
        ///
        /// With hysteresis h \> 1, h - 1 overflows leave S unchanged; further ones back off until the
        /// budget is refilled.  S growing refills it (Megatron-LM) or, with [`MP_SCALER_REFILL_EACH_STEP`](crate::sys::MP_SCALER_REFILL_EACH_STEP),
        /// every clean step (Apex, update\_scale\_hysteresis).
        /// Source: torch.amp.GradScaler.
        Backoff = 1,
        /// Statistical model of the gradients.  log2 of the largest unscaled gradient is modeled as
        /// normal, with running mean mu (decay beta1) and deviation sigma (decay beta2, at least
        /// sigma\_floor):
        ///
        /// ```text
        /// S = 2^floor(e - h),  e = floor(log2_max - mu - overflow_std_dev * sigma)
        /// ```
        ///
        /// The probability of an overflow is therefore small and fixed.  h is a headroom in bits,
        /// initially 0:
        ///
        /// - An overflow does not change mu and sigma, backs off once, and raises h.
        /// - Every growth\_interval clean steps, h decreases by one bit.
        /// - If overflows precede the first statistics, h begins with the value that leaves S unchanged.
        ///
        /// Without h the policy would livelock if an activation gradient, which the statistics do not
        /// include, overflows before the weight gradients do.  A step whose gradients are all zero
        /// changes nothing.
        /// Source: OpenSeq2Seq LogMaxScaler, with its defects repaired (there an overflow feeds
        /// 2^log\_max into a mean of log2 values and pins S at its minimum for ~12,000 steps).
        Lognormal = 2,
        /// OpenSeq2Seq's LogMaxScaler with its defects; see mpcore/compat.h.
        Logmax = 3,
    }
}

flags! {
    /// Bits of `mp_scaler_config`.flags.
    ScalerFlags {
        /// backoff: clean steps refill hysteresis
        REFILL_EACH_STEP = 1,
        /// Backoff: the first clean step, and the first one after each overflow, does not count towards
        /// growth\_interval.
        /// Source: DeepSpeed FP16\_Optimizer.
        FIRST_STEP_UNCOUNTED = 2,
    }
}

numbered! {
    /// Health of a scaler.
    ScalerStatus {
        /// [`MP_SCALER_OK`](crate::sys::MP_SCALER_OK)
        Ok = 0,
        /// diverged\_after skips in a row, or 1/S is not finite
        Diverged = 1,
    }
}

numbered! {
    /// Update rule.  Symbols in the formulas:
    ///
    /// ```text
    /// g    unscaled, clipped gradient            wd      weight_decay
    /// w    fp32 master weight                    b1, b2  beta1, beta2
    /// |x|  norm of one tensor, as in mp_l2norm   t       applied (not skipped) steps, including
    ///                                                    the current one
    /// ```
    OptimizerKind {
        /// Stochastic gradient descent with momentum:
        ///
        /// ```text
        /// m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m
        /// ```
        ///
        /// [`MP_OPT_NESTEROV`](crate::sys::MP_OPT_NESTEROV): w -= lr (g + momentum m).  Decay: g += wd w.  With
        /// [`MP_OPT_DECAY_AFTER_MOMENTUM`](crate::sys::MP_OPT_DECAY_AFTER_MOMENTUM): w -= lr wd w, which does not enter the momentum.
        ///
        /// [`MP_OPT_LARS`](crate::sys::MP_OPT_LARS) and [`MP_OPT_LARC`](crate::sys::MP_OPT_LARC): g = a (g + wd w) instead, with a trust ratio a per tensor:
        ///
        /// ```text
        /// LARS: a = trust |w| / (|g| + wd |w| + eps);   LARC: a = min(1, a_LARS / lr)
        /// ```
        ///
        /// a is 1 if |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
        /// and tensors that are initially 0 stay near it.)
        /// Source: You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
        /// algorithm 1; LARC: Apex, apex/parallel/LARC.py.
        Sgd = 1,
        /// Adam, and AdamW with [`MP_OPT_DECOUPLED_DECAY`](crate::sys::MP_OPT_DECOUPLED_DECAY):
        ///
        /// ```text
        /// m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)
        /// ```
        ///
        /// mhat and vhat are m and v with bias correction.  Decay: g += wd w.  With
        /// [`MP_OPT_DECOUPLED_DECAY`](crate::sys::MP_OPT_DECOUPLED_DECAY): w -= lr wd w.
        /// Source: Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2.
        Adam = 2,
        /// LAMB: w -= lr r u with the trust ratio r = |w| / |u|, where w -= lr u is the step of
        /// [`MP_OPT_ADAM`](crate::sys::MP_OPT_ADAM) with the same flags, including decay.  r is 1 if |w| or |u| is 0 and, without
        /// [`MP_OPT_NVLAMB`](crate::sys::MP_OPT_NVLAMB), for tensors with wd = 0 (biases, normalization), as in Apex's FusedLAMB.
        ///
        /// The paper's form has [`MP_OPT_DECOUPLED_DECAY`](crate::sys::MP_OPT_DECOUPLED_DECAY), which [`mp_optimizer_desc_default`](crate::sys::mp_optimizer_desc_default) sets.  Apex
        /// includes global clipping; here it is `mp_step_options`.max\_grad\_norm.
        /// Source: You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2.
        Lamb = 3,
        /// NovoGrad, with one v per tensor:
        ///
        /// ```text
        /// v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1)
        /// m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m
        /// ```
        ///
        /// dampening = b1 averages the gradients, like grad\_averaging of the original implementation.
        /// (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
        /// corrects the bias of a v that is not biased.  This is the paper's form.)
        /// Source: Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
        /// algorithm 1.
        Novograd = 4,
        /// Adagrad: v += g^2;  w -= lr g / (sqrt(v) + eps).
        ///
        /// The initial v may be above 0 (TensorFlow: 0.1).  Decay: g += wd w.  With
        /// [`MP_OPT_DECOUPLED_DECAY`](crate::sys::MP_OPT_DECOUPLED_DECAY): w -= lr wd w.
        /// Source: Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch.
        Adagrad = 5,
        /// RMSProp: v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps).
        ///
        /// With momentum: m = momentum m + g / (sqrt(v) + eps);  w -= lr m.  Decay: g += wd w.
        /// Source: Tieleman & Hinton, COURSERA: Neural Networks for Machine Learning, 2012, lecture 6.5;
        /// eps and momentum as in torch.
        Rmsprop = 6,
    }
}

flags! {
    /// Bits of `mp_optimizer_desc`.flags; bit 3 is unused.
    OptimizerFlags {
        /// SGD
        NESTEROV = 1,
        /// Adam (then AdamW), LAMB, Adagrad
        DECOUPLED_DECAY = 2,
        /// Adam, LAMB: mhat = m, vhat = v
        NO_BIAS_CORRECTION = 4,
        /// Lets the 16-bit copy of a weight become infinite on overflow.  By default it is clamped to the
        /// largest finite value: an infinite weight makes every later gradient non-finite, so every later
        /// step would be skipped and training would never recover.
        MODEL_OVERFLOW = 16,
        /// SGD; excludes [`MP_OPT_LARC`](crate::sys::MP_OPT_LARC) and [`MP_OPT_LARS`](crate::sys::MP_OPT_LARS)
        DECAY_AFTER_MOMENTUM = 32,
        /// SGD
        LARC = 64,
        /// SGD; excludes [`MP_OPT_LARC`](crate::sys::MP_OPT_LARC)
        LARS = 128,
        /// LAMB: also adapts tensors without decay
        NVLAMB = 256,
        /// Rounds the 16-bit copy of a weight up or down at random, so that its expected value is the
        /// weight.  Changes below half a unit in the last place then survive on average.  Weights that
        /// the 16-bit type can represent are unchanged.
        ///
        /// The random numbers depend only on rounding\_seed, t, and the indices of tensor and element.
        /// They are equal on all devices and after a resume.  Probabilities are exact (fp16 subnormals:
        /// to within 2^-32).
        /// Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1;
        /// Philox 4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
        STOCHASTIC_ROUNDING = 512,
    }
}

numbered! {
    /// Learning-rate schedule, evaluated on the device: a skipped step does not advance it, and a
    /// captured graph needs no host work.  Every schedule begins with a linear warm-up:
    ///
    /// ```text
    /// lr(t) = lr t / warmup_steps   for t <= warmup_steps
    /// ```
    ///
    /// In the formulas, s = t - 1 - warmup\_steps counts the steps after the warm-up, so the first of
    /// them has s = 0; p = min(s / decay\_steps, 1).  Rates are computed in fp64 and rounded once.
    LrSchedule {
        /// lr(t) = lr
        Constant = 0,
        /// lr\_end + (lr - lr\_end) (1 - p)^decay\_power; linear if decay\_power is 1
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
    /// Element-wise reduction across ranks.
    ReduceOp {
        /// [`MP_REDUCE_SUM`](crate::sys::MP_REDUCE_SUM)
        Sum = 0,
        /// finite values \>= 0 only; libraries treat NaN differently
        Max = 1,
    }
}

flags! {
    /// Bits of `mp_step_options`.flags.
    StepFlags {
        /// Leaves the scaler and its flag to a later step, for optimizers that share a scaler.  All
        /// optimizers except the last use this flag (or all do, and [`mp_scaler_update`](crate::sys::mp_scaler_update)(scaler, NULL,
        /// stream) follows).  An optimizer skips for its own gradients and those of previous steps.  To
        /// skip all of them together, check the later lists first:
        ///
        /// ```text
        /// mp_check_nonfinite(grads_of_b, mp_scaler_found_inf(scaler), stream);
        /// options.flags = MP_STEP_KEEP_SCALER;
        /// mp_scale_step(a, scaler, &options, stream);
        /// mp_scale_step(b, scaler, NULL, stream);     // S follows its policy
        /// ```
        KEEP_SCALER = 1,
        /// The gradients come from [`mp_grads_accumulate`](crate::sys::mp_grads_accumulate) or [`mp_grads_to_fp32`](crate::sys::mp_grads_to_fp32): they already include 1/S, and
        /// the scaler uses the amax recorded there, which lognormal and logmax require.  Add
        /// [`MP_STEP_CHECKED`](crate::sys::MP_STEP_CHECKED) if the last call had [`MP_ACCUMULATE_LAST`](crate::sys::MP_ACCUMULATE_LAST).
        UNSCALED = 2,
        /// The producer of the gradients has checked them: the epilogues of GEMMs and convolutions set
        /// [`mp_scaler_found_inf`](crate::sys::mp_scaler_found_inf) (without a scaler: that of [`mp_optimizer_get_scaler`](crate::sys::mp_optimizer_get_scaler)) and update amax.  The
        /// step omits pass 1, which saves a launch and one of two reads of every gradient.
        ///
        /// Not supported with outputs and limits that need pass 1: max\_grad\_norm, grad\_norm,
        /// tensor\_norms, reports, and a group's max\_tensor\_norm.
        CHECKED = 4,
        /// Sharded optimizer, with comm: every rank owns some tensors, none divided between ranks, and
        /// may own none; the norm is that of the tensors of all ranks.  Without this flag all ranks have
        /// the same gradients.
        SHARDED = 8,
    }
}

flags! {
    /// Flags of [`mp_grads_accumulate`](crate::sys::mp_grads_accumulate).
    AccumulateFlags {
        /// First gradients of a window: sums are overwritten, not read.
        FIRST = 1,
        /// Last gradients before an update by an optimizer of the host program: the sums are checked too,
        /// and [`mp_step_query`](crate::sys::mp_step_query) returns the outcome after this call.  If there are several lists, only the
        /// last one has this flag.  Nothing may set the scaler's flag between this call and
        /// [`mp_scaler_update`](crate::sys::mp_scaler_update).  The outcome is that of this rank's gradients; with several ranks, call
        /// [`mp_grad_all_reduce`](crate::sys::mp_grad_all_reduce) first.
        LAST = 2,
    }
}

numbered! {
    /// Outcome of a step.  If several causes apply: OVERFLOW, then NO\_SCALE, then RANGE.  Queries, the
    /// state of the scaler and `mp_step_options` report the same outcome; [`mp_scaler_get_history_sync`](crate::sys::mp_scaler_get_history_sync) has
    /// its own codes.
    StepOutcome {
        /// the device has not finished the step
        Pending = 0,
        /// [`MP_STEP_TAKEN`](crate::sys::MP_STEP_TAKEN)
        Taken = 1,
        /// Lower bound of all skips, for comparisons (outcome \>= [`MP_STEP_SKIPPED`](crate::sys::MP_STEP_SKIPPED)); never reported.  A
        /// skipped step updates neither weights nor moments.
        Skipped = 2,
        /// Skipped: the largest |gradient| times the factor that unscales and clips is not below 2^63, or
        /// that factor is not finite.  S is unchanged, because no other S would help.
        Range = 3,
        /// Skipped: S is 0, or 1/S is not finite.  The scaler's status becomes [`MP_SCALER_DIVERGED`](crate::sys::MP_SCALER_DIVERGED).  (4 is
        /// reserved.)
        NoScale = 5,
        /// skipped: the flag was set, or a gradient or amax is not finite; S follows its policy
        Overflow = 6,
    }
}

numbered! {
    /// Class of an operation: the list that contains it.  Names follow TensorFlow.
    AutocastClass {
        /// fp32, independent of its neighbors
        Unlisted = 0,
        /// always low precision: numerically safe, and faster
        Allow = 1,
        /// low precision between low-precision nodes, except downstream of a DENY
        Infer = 2,
        /// fp32.  Propagates downstream through [`MP_CAST_INFER`](crate::sys::MP_CAST_INFER) nodes, and through [`MP_CAST_CLEAR`](crate::sys::MP_CAST_CLEAR) nodes that
        /// lead to another [`MP_CAST_INFER`](crate::sys::MP_CAST_INFER) or [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY).
        Deny = 3,
        /// no numerical effect: takes the precision of its neighbors
        Clear = 4,
        /// [`MP_AUTOCAST_PYTORCH`](crate::sys::MP_AUTOCAST_PYTORCH): low precision if all floating-point inputs are.  Other presets treat it
        /// as [`MP_CAST_INFER`](crate::sys::MP_CAST_INFER).
        Promote = 5,
    }
}

numbered! {
    /// Lists of operations and rules of propagation.
    AutocastPreset {
        /// Names of mpcore, ONNX, TensorFlow and PyTorch.  [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW): products, convolutions,
        /// attention, recurrent layers.  [`MP_CAST_INFER`](crate::sys::MP_CAST_INFER): batch norm.  [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY): softmax, norms over a
        /// row, losses, sums.
        Default = 0,
        /// lists of TensorFlow 2.21 for fp16
        Tensorflow = 1,
        /// lists of TensorFlow 2.21 for bf16
        TensorflowBf16 = 2,
        /// Lists of torch.amp in PyTorch 2.11 for GPUs, names without overload, plus functions composed
        /// of listed operations, such as cross\_entropy and interpolate.  Unknown operations are
        /// [`MP_CAST_CLEAR`](crate::sys::MP_CAST_CLEAR).
        ///
        /// Propagation is that of torch.amp, one pass in execution order: a node is low precision if it
        /// is [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW), or if all its floating-point inputs are and no list requires fp32.
        /// [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY) does not propagate.
        Pytorch = 3,
        /// names of ONNX; the block list of onnxconverter-common is unlisted
        Onnx = 4,
    }
}

numbered! {
    /// Override of all lists.
    AutocastLevel {
        /// no override
        Normal = 0,
        /// conservative: [`MP_CAST_INFER`](crate::sys::MP_CAST_INFER) becomes [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY)
        InferAsDeny = 1,
        /// all but [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW) become [`MP_CAST_UNLISTED`](crate::sys::MP_CAST_UNLISTED)
        TensorCoresOnly = 2,
        /// Low precision wherever possible, except constants, state and cross-entropies.  For tests;
        /// [`MP_FP16`](crate::sys::MP_FP16) only.
        ForceAll = 3,
    }
}

flags! {
    /// Bits of `mp_autocast_config`.flags.
    AutocastFlags {
        /// ignores environment variables
        NO_ENVIRONMENT = 1,
        /// disables the gate, see [`mp_autocast_gate`](crate::sys::mp_autocast_gate)
        IGNORE_PERFORMANCE = 2,
        /// Keeps tensors of role [`MP_TENSOR_OUTPUT`](crate::sys::MP_TENSOR_OUTPUT) in fp32 for the caller, who counts as a reader.
        KEEP_IO = 4,
        /// Emulates 16-bit arithmetic: low-precision nodes compute in fp32 on rounded values.  See
        /// `mp_autocast_result`.
        EMULATE = 8,
    }
}

flags! {
    /// Bits of `mp_autocast_graph`.node\_flags.
    NodeFlags {
        /// stays fp32: fetched, fed, or requested by the caller
        KEEP = 1,
        /// stays fp32: runs on another device
        ELSEWHERE = 2,
        /// stays fp32: no 16-bit kernel; its class still propagates
        NO_LOW = 4,
        /// converts to the type of its output
        CAST = 8,
        /// Reads a variable in place (Identity or Enter of TensorFlow's reference variables); low
        /// precision does not propagate through it.
        READS_VARIABLE = 16,
        /// back edge (NextIteration): follows the rest of its loop
        BACK_EDGE = 32,
        /// reads fp32 and low precision, except on [`MP_SLOT_FP32`](crate::sys::MP_SLOT_FP32)
        READS_EITHER = 64,
        /// can write fp32 or low precision, like [`mp_gemm`](crate::sys::mp_gemm) (dtype\_cd)
        WRITES_EITHER = 128,
    }
}

numbered! {
    /// Role of a tensor.
    TensorRole {
        /// [`MP_TENSOR_ACTIVATION`](crate::sys::MP_TENSOR_ACTIVATION)
        Activation = 0,
        /// an optimizer has its fp32 master and can keep a 16-bit copy
        Parameter = 1,
        /// read by the caller
        Output = 2,
    }
}

numbered! {
    /// Source of the converted tensor.
    CastKind {
        /// [`mp_cast`](crate::sys::mp_cast), once for all readers
        Kernel = 1,
        /// The 16-bit copy of a parameter that the optimizer writes (`mp_optimizer_desc`.model): no
        /// kernel.
        ModelCopy = 2,
    }
}

numbered! {
    /// Reason for the type of a node: fp32 if \< 32, otherwise low precision.  node\_because is the node
    /// in brackets.
    AutocastWhy {
        /// [`MP_CAST_UNLISTED`](crate::sys::MP_CAST_UNLISTED): on no list, or by level
        Unlisted = 1,
        /// [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY) by list, pattern, node\_class or level
        DenyList = 2,
        /// downstream of an [`MP_CAST_DENY`](crate::sys::MP_CAST_DENY) \[that node\]
        DenyUpstream = 3,
        /// tensor\_amax of a tensor exceeds amax\_limit
        Range = 4,
        /// node\_depth exceeds depth\_limit
        Depth = 5,
        /// [`MP_NODE_KEEP`](crate::sys::MP_NODE_KEEP)
        Kept = 6,
        /// [`MP_NODE_ELSEWHERE`](crate::sys::MP_NODE_ELSEWHERE)
        Elsewhere = 7,
        /// [`MP_NODE_NO_LOW`](crate::sys::MP_NODE_NO_LOW)
        NoKernel = 8,
        /// could be low precision, but none propagates to it
        NoAllowNearby = 9,
        /// reads and writes no [`MP_FP32`](crate::sys::MP_FP32) tensor
        NotFloat = 10,
        /// gate closed, see `mp_autocast_result`.gate
        Gate = 11,
        /// in an fp32 cluster \[the member that requires fp32\]
        ClusterFp32 = 12,
        /// [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW) by list, node\_class or level
        AllowList = 32,
        /// INFER or CLEAR between two [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW) \[the downstream one\]
        BetweenAllow = 33,
        /// Downstream of a low-precision node \[that node\], with [`MP_BF16`](crate::sys::MP_BF16) or [`MP_AUTOCAST_PYTORCH`](crate::sys::MP_AUTOCAST_PYTORCH).
        FollowsAllow = 34,
        /// [`MP_CAST_CLEAR`](crate::sys::MP_CAST_CLEAR) connected to a low-precision node \[that node\]
        ClearBesideLow = 35,
        /// in a low-precision cluster \[the member that caused it\]
        ClusterLow = 36,
        /// cast to fp32 with only low-precision readers \[the first\]
        CastAbsorbed = 37,
        /// [`MP_CAST_ALLOW`](crate::sys::MP_CAST_ALLOW) by [`mp_autocast_set_nodes`](crate::sys::mp_autocast_set_nodes)
        Pattern = 38,
    }
}

numbered! {
    /// Format of a report.
    AutocastForm {
        /// One line per node, "conv1/bn  FusedBatchNormV3  fp16  between conv1/conv and conv2/conv", and
        /// a summary.
        Text = 0,
        /// [`MP_AUTOCAST_JSON`](crate::sys::MP_AUTOCAST_JSON)
        Json = 1,
        /// for Graphviz: low precision green, fp32 red, casts on the edges
        Dot = 2,
    }
}

flags! {
    /// Bits of [`mp_xent_desc_t`](crate::sys::mp_xent_desc_t).flags.
    XentFlags {
        /// excludes rows whose label is `ignore_label`
        IGNORE_LABEL = 1,
    }
}

numbered! {
    /// Loss l(x, t) of one prediction x and its target t.
    LossKind {
        /// (x - t)^2
        Mse = 1,
        /// |x - t|; derivative 0 at x = t
        L1 = 2,
        /// -t log s(x) - (1 - t) log(1 - s(x)), s(x) = 1 / (1 + exp(-x))
        BceWithLogits = 3,
    }
}

numbered! {
    /// Divisor of the sum of element losses.
    LossReduction {
        /// number of elements that are not ignored
        Mean = 0,
        /// 1
        Sum = 1,
    }
}

flags! {
    /// Bits of [`mp_loss_desc_t`](crate::sys::mp_loss_desc_t).flags.
    LossFlags {
        /// excludes elements whose target is `ignore_target`
        IGNORE_TARGET = 1,
    }
}

numbered! {
    /// Reduction of a window.
    PoolMode {
        /// largest element; padding is excluded
        Max = 1,
        /// sum / number of pixels in the padded image; padding is 0
        AvgIncludePad = 2,
        /// sum / number of pixels in the image
        AvgExcludePad = 3,
    }
}

flags! {
    /// Bits of [`mp_pool2d_desc_t`](crate::sys::mp_pool2d_desc_t).flags.
    PoolFlags {
        /// Rounds P and Q up, like ceil\_mode of torch: the last window may extend beyond the padding, but
        /// starts inside the image or the padding before it.
        CEIL = 1,
    }
}

numbered! {
    /// Element-wise operation on a and b.
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
    /// Cell type.
    RnnCell {
        /// [`MP_RNN_TANH`](crate::sys::MP_RNN_TANH)
        Tanh = 1,
        /// [`MP_RNN_RELU`](crate::sys::MP_RNN_RELU)
        Relu = 2,
        /// gate order in the rows of the weights: i f g o
        Lstm = 3,
        /// gate order in the rows of the weights: r z n
        Gru = 4,
    }
}

flags! {
    /// Bits of [`mp_rnn_desc_t`](crate::sys::mp_rnn_desc_t).flags.
    RnnFlags {
        /// [`MP_RNN_BIDIRECTIONAL`](crate::sys::MP_RNN_BIDIRECTIONAL)
        BIDIRECTIONAL = 1,
        /// no biases; b\_ih and b\_hh are ignored
        NO_BIAS = 2,
        /// Replaces the input product of the first layer by x\_t, which is added to every gate.  W\_ih is
        /// ignored; input\_size must equal hidden\_size.
        SKIP_INPUT = 4,
        /// Applies the reset gate before the product, [`MP_RNN_GRU`](crate::sys::MP_RNN_GRU) only: n = tanh(p\_n + (r h) W\_n^T + b\_n).
        /// A time step then has two dependent products.
        /// Source: Cho et al. 2014; reset\_after=False in TensorFlow and Keras.
        RESET_FIRST = 8,
        /// Adds the gradients of weights and biases to the previous values, for micro-batches.  With
        /// dtype\_dw = [`MP_FP32`](crate::sys::MP_FP32) partial sums are not rounded to 16 bits.
        ACCUMULATE = 16,
    }
}

flags! {
    /// Bits of [`mp_embedding_desc_t`](crate::sys::mp_embedding_desc_t).flags.
    EmbeddingFlags {
        /// Makes the gradient of row `padding_index` 0.  The forward pass reads that row like any other,
        /// as in torch.
        PADDING = 1,
        /// Adds the gradient to the previous value, for micro-batches or a table that is used twice.
        /// With dtype\_dtable = [`MP_FP32`](crate::sys::MP_FP32) partial sums are not rounded to 16 bits.
        ACCUMULATE = 2,
    }
}

numbered! {
    /// Mode of a forward pass.
    GraphMode {
        /// BatchNorm uses its states, Dropout is the identity.  The loss and tensors that depend on it
        /// are computed only if labels or target are bound.
        Inference = 0,
        /// Prepares [`mp_graph_backward`](crate::sys::mp_graph_backward), which computes the loss together with its gradient, and tensors
        /// that depend on the loss.
        Training = 1,
    }
}

numbered! {
    /// Policies of other systems, with their defaults.  S is equal to theirs after every step while S
    /// is a finite fp32 number.  All are [`MP_SCALER_BACKOFF`](crate::sys::MP_SCALER_BACKOFF) except the first and the last; the returned
    /// configuration can be modified.
    ///
    /// Differences at the limits: Megatron, DeepSpeed and Keras 3 let S grow beyond the finite numbers,
    /// after which every step is lost; here S stops.  Apex raises an error at S = 0, and DeepSpeed's
    /// DynamicLossScaler at an overflow with S = 1; here S stays.
    ScalerPreset {
        /// This library's lognormal policy: [`mp_scaler_config_default`](crate::sys::mp_scaler_config_default)([`MP_SCALER_LOGNORMAL`](crate::sys::MP_SCALER_LOGNORMAL)).
        Lognormal = 0,
        /// torch.amp.GradScaler.  Initial S 2^16, interval 2000, no limits.
        Torch = 1,
        /// apex.amp LossScaler, apex/amp/scaler.py (removed from Apex in 2025).  Initial S 2^16, interval
        /// 2000, no minimum, maximum 2^24.
        ApexAmp = 2,
        /// Apex csrc/update\_scale\_hysteresis.cu: torch's rule, but S backs off only after 2 overflows
        /// without a clean step between them.  The kernel has no defaults; the preset uses torch's, and
        /// Megatron's hysteresis of 2.
        ApexHysteresis = 3,
        /// Megatron-LM DynamicGradScaler, core/optimizer/grad\_scaler.py.  Initial S 2^32, interval 1000,
        /// minimum 1, hysteresis 2, refilled when S grows.
        Megatron = 4,
        /// DeepSpeed DynamicLossScaler, runtime/fp16/loss\_scaler.py (ZeRO), with the defaults of the
        /// "fp16" section of its configuration: initial S 2^16, interval 1000, minimum 1, hysteresis 2.
        /// For consecutive\_hysteresis set [`MP_SCALER_REFILL_EACH_STEP`](crate::sys::MP_SCALER_REFILL_EACH_STEP).
        Deepspeed = 5,
        /// DeepSpeed FP16\_Optimizer, runtime/fp16/fused\_optimizer.py (without ZeRO).  Like
        /// [`MP_SCALER_PRESET_DEEPSPEED`](crate::sys::MP_SCALER_PRESET_DEEPSPEED) without hysteresis, but the first growth takes 1001 clean steps.
        DeepspeedFused = 6,
        /// tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  Initial S 2^15, interval
        /// 2000, minimum 1.
        Keras = 7,
        /// keras.optimizers.LossScaleOptimizer of Keras 3.  Initial S 2^15, interval 2000, no limits.
        Keras3 = 8,
        /// OpenSeq2Seq BackoffScaler, optimizers/automatic\_loss\_scaler.py.  Initial S 2^14, interval
        /// 2000, minimum 1, maximum 2^14.
        Openseq2seqBackoff = 9,
        /// OpenSeq2Seq LogMaxScaler: [`MP_SCALER_LOGMAX`](crate::sys::MP_SCALER_LOGMAX).  Initial S 1, minimum 1, maximum 2^14.
        Openseq2seqLogmax = 10,
    }
}
