//! Automatic mixed precision: selects the type of each operation in a graph.

use crate::context::Context;
use crate::enums::{
    AutocastFlags, AutocastFormat, AutocastLevel, AutocastPreset, AutocastReason, CastKind, Dtype,
    OpClass,
};
use crate::error::{c_string, check, read_text, Result};
use crate::graph::{count, Graph, NodeId, TensorId};
use crate::scaler::ScalerConfig;
use crate::sys;
use std::ffi::{CStr, CString};
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr;

/// Configuration of an [`Autocast`]; see the manual of its fields.
pub type AutocastConfig = sys::mp_autocast_config_t;

impl AutocastConfig {
    /// Returns the default lists for `low` (`Fp16` or `Bf16`), without flags and limits.
    pub fn new(low: Dtype) -> Self {
        sys::mp_autocast_config_default(low as u32)
    }

    setters! {
        /// Adds flags.
        fn with_flags(self, flags: AutocastFlags) { self.flags |= flags.bits(); }
        /// Selects the lists of operations.
        fn with_preset(self, preset: AutocastPreset) { self.preset = preset as u32; }
        /// Selects the level.
        fn with_level(self, level: AutocastLevel) { self.level = level as u32; }
    }
}

impl ScalerConfig {
    /// Returns the recommended loss scaler for a 16-bit type.
    pub fn for_autocast(low: Dtype) -> Result<Self> {
        let mut config = Self::zeroed();
        // SAFETY: the size of `config` is passed; it is written during the call.
        check(unsafe { sys::mp_autocast_scaler_init(&mut config, size_of::<Self>(), low as u32) })?;
        Ok(config)
    }
}

/// A mixed-precision policy: operation lists and a level.  Immutable after its first use.  Threads
/// can share it.
#[derive(Debug)]
pub struct Autocast {
    raw: sys::mp_autocast_t,
}

// SAFETY: a policy has no thread-local state.
unsafe impl Send for Autocast {}
// SAFETY: only `&mut self` modifies a policy; other functions can run concurrently.
unsafe impl Sync for Autocast {}

impl Autocast {
    /// Creates a policy.  Reads the environment unless [`AutocastFlags::NO_ENVIRONMENT`] is set.
    pub fn new(config: &AutocastConfig) -> Result<Self> {
        let mut config = *config;
        config.struct_size = size_of::<AutocastConfig>() as u32; // bytes to read
        let mut raw = ptr::null_mut();
        // SAFETY: the config is read during the call.
        check(unsafe { sys::mp_autocast_create(&mut raw, &config) })?;
        Ok(Autocast { raw })
    }

    /// Returns the handle, for functions of [`sys`].
    pub fn as_raw(&self) -> sys::mp_autocast_t {
        self.raw
    }

    fn call(&self, function: impl FnOnce(sys::mp_autocast_t) -> sys::mp_status_t) -> Result<()> {
        check(function(self.raw))
    }

    /// Moves operations to a class.
    pub fn set_class(&mut self, op_types: &[&str], class: OpClass) -> Result<()> {
        let names: Result<Vec<CString>> =
            op_types.iter().map(|name| c_string("op_types", name)).collect();
        let names = names?;
        let pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let (names, count) = (pointers.as_ptr(), count(pointers.len()));
        run!(self, mp_autocast_set_class(names, count, class as u32))
    }

    /// Assigns a class to nodes with matching names, for any operation.  The last matching pattern
    /// applies.  `*`, `?`, `[a-z]` and `[!a-z]` work like in a shell, but `*` also matches "/".
    pub fn set_nodes(&mut self, pattern: &str, class: OpClass) -> Result<()> {
        let pattern = c_string("pattern", pattern)?;
        run!(self, mp_autocast_set_nodes(pattern.as_ptr(), class as u32))
    }

    /// Returns the class of an operation, before the level is applied.  None if the name contains a
    /// NUL, or if the class is unknown to this crate.
    pub fn class_of(&self, op_type: &str) -> Option<OpClass> {
        let op_type = CString::new(op_type).ok()?;
        // SAFETY: the policy lives, and the name during the call.
        OpClass::from_raw(unsafe { sys::mp_autocast_get_class(self.raw, op_type.as_ptr()) })
    }

    /// Returns the reason why rewrites are disabled on a device, or None.  Without a context only
    /// the environment can disable them.
    pub fn disabled_reason(&self, context: Option<&Context>) -> Result<Option<String>> {
        let mut because = ptr::null();
        run!(self, mp_autocast_get_disabled_reason(raw_context(context), &mut because))?;
        // SAFETY: NULL, or a string in static storage.
        Ok(unsafe { clause(because) }.map(owned))
    }

    /// Selects the nodes that run in 16 bits and the casts between them.  With a context, nothing
    /// changes if [`disabled_reason`](Autocast::disabled_reason) returns a reason for its device.
    pub fn rewrite(&self, context: Option<&Context>, graph: &Graph) -> Result<Rewritten> {
        let (nodes, tensors, inputs) = (graph.num_nodes(), graph.num_tensors(), graph.num_inputs());
        let (mut tensor_dtype, mut node_dtype) = (vec![0; tensors], vec![0; nodes]);
        let (mut node_reason, mut node_cause) = (vec![0; nodes], vec![0; nodes]);
        let mut input_cast = vec![0; inputs];
        // The maximum with MP_AUTOCAST_FLAG_EMULATE.
        let mut casts = vec![sys::mp_autocast_cast_t::zeroed(); 2 * tensors + inputs];
        let mut raw = sys::mp_autocast_result_t {
            tensor_dtype: tensor_dtype.as_mut_ptr(),
            node_dtype: node_dtype.as_mut_ptr(),
            input_cast: input_cast.as_mut_ptr(),
            casts: casts.as_mut_ptr(),
            node_reason: node_reason.as_mut_ptr(),
            node_cause: node_cause.as_mut_ptr(),
            ..sys::mp_autocast_result_t::zeroed()
        };
        let lent = graph.lend();
        run!(self, mp_autocast_rewrite(raw_context(context), &lent.raw, &mut raw))?;
        casts.truncate(raw.num_casts as usize);

        let casts_of = |node: usize| {
            let first = &lent.input_offsets;
            let own = &input_cast[first[node] as usize..first[node + 1] as usize];
            own.iter().map(|&cast| usize::try_from(cast).ok()).collect()
        };
        let node = |i: usize| RewrittenNode {
            dtype: dtype(node_dtype[i]),
            reason: AutocastReason::from_raw(u32::from(node_reason[i])),
            cause: Some(NodeId(node_cause[i])).filter(|node| node.0 >= 0),
            input_casts: casts_of(i),
        };
        Ok(Rewritten {
            tensors: tensor_dtype.into_iter().map(dtype).collect(),
            nodes: (0..nodes).map(node).collect(),
            casts: casts.iter().map(GraphCast::new).collect(),
            num_low_nodes: raw.num_low_nodes as usize,
            num_parameters_low: raw.num_parameters_low as usize,
            // SAFETY: NULL, or a string in static storage.
            disabled_reason: unsafe { clause(raw.disabled_reason) },
        })
    }

    /// Returns a report on a rewrite of this graph by this policy.
    pub fn explain(
        &self, graph: &Graph, rewritten: &Rewritten, format: AutocastFormat,
    ) -> Result<String> {
        let lent = graph.lend();
        let raw = sys::mp_autocast_result_t {
            disabled_reason: rewritten.disabled_reason.map_or(ptr::null(), CStr::as_ptr),
            ..sys::mp_autocast_result_t::zeroed() // its arrays are not read
        };
        let (graph, format) = (&lent.raw, format as u32);
        query!(self, read_text(text, bytes), mp_autocast_explain(graph, &raw, format))
    }

    /// Returns the casts of a single operation, for eager execution: the type to cast each input
    /// to, or None for no cast; and the type of the output, or None if no input is floating-point.
    /// Pass `DtypeNone` for inputs that are not floating-point.
    pub fn op(
        &self, op_type: &str, inputs: &[Dtype],
    ) -> Result<(Vec<Option<Dtype>>, Option<Dtype>)> {
        let op_type = c_string("op_type", op_type)?;
        let inputs: Vec<_> = inputs.iter().map(|&dtype| dtype as u8).collect();
        let (mut cast_to, mut output) = (vec![0; inputs.len()], 0);
        let (given, count, to) = (inputs.as_ptr(), count(inputs.len()), cast_to.as_mut_ptr());
        run!(self, mp_autocast_op(op_type.as_ptr(), given, count, to, &mut output))?;
        let known = |dtype| Some(dtype).filter(|&dtype| dtype != Dtype::DtypeNone);
        let cast_to = cast_to.into_iter().map(|raw: u8| known(dtype(raw))).collect();
        Ok((cast_to, known(dtype(output))))
    }
}

impl Drop for Autocast {
    fn drop(&mut self) {
        // SAFETY: made by mp_autocast_create.
        unsafe { sys::mp_autocast_destroy(self.raw) }
    }
}

/// Result of a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Type in which each tensor is written.
    pub tensors: Vec<Dtype>,
    /// Result for each node.
    pub nodes: Vec<RewrittenNode>,
    /// Casts, ordered by tensor.
    pub casts: Vec<GraphCast>,
    /// Number of 16-bit nodes.
    pub num_low_nodes: usize,
    /// Number of casts of kind `ModelCopy`.
    pub num_parameters_low: usize,
    disabled_reason: Option<&'static CStr>,
}

impl Rewritten {
    /// Reason why nothing was changed.
    pub fn disabled_reason(&self) -> Option<String> {
        self.disabled_reason.map(owned)
    }
}

/// Result of a rewrite for one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewrittenNode {
    /// Type of the node: `Fp32` or the 16-bit type.
    pub dtype: Dtype,
    /// Reason for the type; None if it is unknown to this crate.
    pub reason: Option<AutocastReason>,
    /// Node that caused the type; one of them if there are several.
    pub cause: Option<NodeId>,
    /// Index into `casts` for each input.  None: the input is not cast.
    pub input_casts: Vec<Option<usize>>,
}

/// A cast of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphCast {
    /// Tensor that is cast.
    pub tensor: TensorId,
    /// Source type.
    pub from: Dtype,
    /// Destination type.
    pub to: Dtype,
    /// Kind of the cast; None if it is unknown to this crate.
    pub kind: Option<CastKind>,
    /// Number of inputs that read the result, plus the caller with [`AutocastFlags::KEEP_IO`].
    pub readers: usize,
}

impl GraphCast {
    fn new(raw: &sys::mp_autocast_cast_t) -> Self {
        GraphCast {
            tensor: TensorId(raw.tensor),
            from: dtype(raw.from),
            to: dtype(raw.to),
            kind: CastKind::from_raw(raw.kind),
            readers: raw.readers as usize,
        }
    }
}

/// Converts a type that is known to this crate.
fn dtype(raw: impl Into<u32>) -> Dtype {
    Dtype::from_raw(raw.into()).unwrap_or(Dtype::DtypeNone)
}

fn raw_context(context: Option<&Context>) -> sys::mp_context_t {
    context.map_or(ptr::null_mut(), Context::as_raw)
}

/// # Safety
/// `text` is NULL or a string in static storage.
unsafe fn clause(text: *const c_char) -> Option<&'static CStr> {
    if text.is_null() {
        return None;
    }
    Some(CStr::from_ptr(text))
}

fn owned(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}
