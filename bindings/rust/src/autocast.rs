//! Which type each operation of a graph runs in.

use crate::context::Context;
use crate::enums::{
    AutocastClass, AutocastFlags, AutocastForm, AutocastLevel, AutocastPreset, AutocastWhy,
    CastKind, Dtype,
};
use crate::error::{c_string, check, read_text, Result};
use crate::graph::{count, Graph, NodeId, TensorId};
use crate::scaler::ScalerConfig;
use crate::sys;
use std::ffi::{CStr, CString};
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr;

/// Numbers only; see the manual of its fields.
pub type AutocastConfig = sys::mp_autocast_config_t;

impl AutocastConfig {
    /// mpcore's own lists for `low`, `Fp16` or `Bf16`; no flags and no limits.
    pub fn new(low: Dtype) -> Self {
        sys::mp_autocast_config_default(low as u32)
    }

    /// Sets these flags too.
    pub fn with_flags(mut self, flags: AutocastFlags) -> Self {
        self.flags |= flags.bits();
        self
    }

    /// Selects the lists of operations.
    pub fn with_preset(mut self, preset: AutocastPreset) -> Self {
        self.preset = preset as u32;
        self
    }

    /// Selects the level.
    pub fn with_level(mut self, level: AutocastLevel) -> Self {
        self.level = level as u32;
        self
    }
}

impl ScalerConfig {
    /// That belongs to a 16-bit type.
    pub fn for_autocast(low: Dtype) -> Result<Self> {
        let mut config = Self::zeroed();
        // SAFETY: so many bytes are written during the call.
        check(unsafe { sys::mp_autocast_scaler_init(&mut config, size_of::<Self>(), low as u32) })?;
        Ok(config)
    }
}

/// Lists of operations and a level.  Once it has been used it does not change.  May be shared between
/// threads.
#[derive(Debug)]
pub struct Autocast {
    raw: sys::mp_autocast_t,
}

// SAFETY: nothing of a policy belongs to a thread.
unsafe impl Send for Autocast {}
// SAFETY: only `&mut self` changes one, and the library's other functions may use it from several threads.
unsafe impl Sync for Autocast {}

impl Autocast {
    /// Reads the environment, unless the flags have [`AutocastFlags::NO_ENVIRONMENT`].
    pub fn new(config: &AutocastConfig) -> Result<Self> {
        let mut config = *config;
        config.struct_size = size_of::<AutocastConfig>() as u32; // so many bytes are read
        let mut raw = ptr::null_mut();
        // SAFETY: the config is read during the call.
        check(unsafe { sys::mp_autocast_create(&mut raw, &config) })?;
        Ok(Autocast { raw })
    }

    /// For calls of [`sys`].
    pub fn as_raw(&self) -> sys::mp_autocast_t {
        self.raw
    }

    /// Puts operations into a class, out of the one that they are in.
    pub fn set_class(&mut self, op_types: &[&str], class: AutocastClass) -> Result<()> {
        let names: Result<Vec<CString>> =
            op_types.iter().map(|name| c_string("op_types", name)).collect();
        let names = names?;
        let pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: so many names, which are copied.
        check(unsafe {
            sys::mp_autocast_set_class(
                self.raw,
                pointers.as_ptr(),
                count(pointers.len()),
                class as u32,
            )
        })
    }

    /// Gives nodes whose name matches a class, whatever their operation; the last pattern that matches
    /// wins.  `*`, `?`, `[a-z]` and `[!a-z]` as in a shell, but `*` also matches "/".
    pub fn set_nodes(&mut self, pattern: &str, class: AutocastClass) -> Result<()> {
        let pattern = c_string("pattern", pattern)?;
        // SAFETY: the pattern is copied.
        check(unsafe { sys::mp_autocast_set_nodes(self.raw, pattern.as_ptr(), class as u32) })
    }

    /// Of an operation, before the level.  None where the name has a NUL, or where the library is newer
    /// than this crate.
    pub fn class_of(&self, op_type: &str) -> Option<AutocastClass> {
        let op_type = CString::new(op_type).ok()?;
        // SAFETY: the policy lives, and the name during the call.
        AutocastClass::from_raw(unsafe { sys::mp_autocast_class(self.raw, op_type.as_ptr()) })
    }

    /// Why rewrites change nothing on a device; without a context the environment alone can say so.
    pub fn gate(&self, context: Option<&Context>) -> Result<Option<String>> {
        let mut because = ptr::null();
        // SAFETY: policy and context live; `because` is written.
        check(unsafe { sys::mp_autocast_gate(self.raw, raw_context(context), &mut because) })?;
        // SAFETY: as the library says.
        Ok(unsafe { clause(because) }.map(owned))
    }

    /// Which nodes run in 16 bits, and the casts between.  With a context the gate is that of its device.
    pub fn rewrite(&self, context: Option<&Context>, graph: &Graph) -> Result<Rewritten> {
        let (nodes, tensors, inputs) = (graph.num_nodes(), graph.num_tensors(), graph.num_inputs());
        let (mut tensor_dtype, mut node_dtype) = (vec![0; tensors], vec![0; nodes]);
        let (mut node_why, mut node_because) = (vec![0; nodes], vec![0; nodes]);
        let mut input_cast = vec![0; inputs];
        // As many as MP_AUTOCAST_EMULATE wants.
        let mut casts = vec![sys::mp_autocast_cast_t::zeroed(); 2 * tensors + inputs];
        let mut raw = sys::mp_autocast_result_t {
            tensor_dtype: tensor_dtype.as_mut_ptr(),
            node_dtype: node_dtype.as_mut_ptr(),
            input_cast: input_cast.as_mut_ptr(),
            casts: casts.as_mut_ptr(),
            node_why: node_why.as_mut_ptr(),
            node_because: node_because.as_mut_ptr(),
            ..sys::mp_autocast_result_t::zeroed()
        };
        let lent = graph.lend();
        // SAFETY: policy and context live; the arrays of the graph have as many elements as it says, and
        // those of the result as many as the library writes.
        check(unsafe {
            sys::mp_autocast_rewrite(self.raw, raw_context(context), &lent.raw, &mut raw)
        })?;
        casts.truncate(raw.num_casts as usize);

        let casts_of = |node: usize| {
            let first = graph.first_input();
            let own = &input_cast[first[node] as usize..first[node + 1] as usize];
            own.iter().map(|&cast| usize::try_from(cast).ok()).collect()
        };
        let node = |i: usize| RewrittenNode {
            dtype: dtype(node_dtype[i]),
            why: AutocastWhy::from_raw(u32::from(node_why[i])),
            because: Some(NodeId(node_because[i])).filter(|node| node.0 >= 0),
            input_casts: casts_of(i),
        };
        Ok(Rewritten {
            tensors: tensor_dtype.into_iter().map(dtype).collect(),
            nodes: (0..nodes).map(node).collect(),
            casts: casts.iter().map(GraphCast::new).collect(),
            num_low_nodes: raw.num_low_nodes as usize,
            num_parameters_low: raw.num_parameters_low as usize,
            // SAFETY: as the library says.
            gate: unsafe { clause(raw.gate) },
        })
    }

    /// The report on a rewrite of this graph by this policy.
    pub fn explain(
        &self,
        graph: &Graph,
        rewritten: &Rewritten,
        form: AutocastForm,
    ) -> Result<String> {
        let lent = graph.lend();
        let raw = sys::mp_autocast_result_t {
            gate: rewritten.gate.map_or(ptr::null(), CStr::as_ptr),
            ..sys::mp_autocast_result_t::zeroed() // its arrays are not read
        };
        read_text(|text, bytes| {
            // SAFETY: graph and result as in `rewrite`; text is NULL, or has room for so many bytes.
            check(unsafe {
                sys::mp_autocast_explain(self.raw, &lent.raw, &raw, form as u32, text, bytes)
            })
        })
    }

    /// One operation without a graph, for programs that execute as they go: to which type each input is
    /// cast, None where it is left alone, and the type of the output, None where no input is a float.
    /// Inputs of other types than the three floats are `DtypeNone`.
    pub fn op(
        &self,
        op_type: &str,
        inputs: &[Dtype],
    ) -> Result<(Vec<Option<Dtype>>, Option<Dtype>)> {
        let op_type = c_string("op_type", op_type)?;
        let inputs: Vec<_> = inputs.iter().map(|&dtype| dtype as u8).collect();
        let (mut cast_to, mut output) = (vec![0; inputs.len()], 0);
        // SAFETY: the policy lives, and the name during the call; both arrays have so many elements.
        check(unsafe {
            sys::mp_autocast_op(
                self.raw,
                op_type.as_ptr(),
                inputs.as_ptr(),
                count(inputs.len()),
                cast_to.as_mut_ptr(),
                &mut output,
            )
        })?;
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

/// What a rewrite says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// What the producer of each tensor writes.
    pub tensors: Vec<Dtype>,
    /// Of each node.
    pub nodes: Vec<RewrittenNode>,
    /// In order of tensors.
    pub casts: Vec<GraphCast>,
    /// How many there are.
    pub num_low_nodes: usize,
    /// Casts of kind `ModelCopy`.
    pub num_parameters_low: usize,
    gate: Option<&'static CStr>,
}

impl Rewritten {
    /// Why nothing was changed.
    pub fn gate(&self) -> Option<String> {
        self.gate.map(owned)
    }
}

/// What a rewrite says of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewrittenNode {
    /// `Fp32`, or the 16-bit type.
    pub dtype: Dtype,
    /// None where the library is newer than this crate.
    pub why: Option<AutocastWhy>,
    /// The node that did it, one if there are several.
    pub because: Option<NodeId>,
    /// Of each input: which of `casts` it reads.  None: what is written.
    pub input_casts: Vec<Option<usize>>,
}

/// How a tensor comes to its other type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphCast {
    /// Whose.
    pub tensor: TensorId,
    /// What is written.
    pub from: Dtype,
    /// What is read.
    pub to: Dtype,
    /// None where the library is newer than this crate.
    pub kind: Option<CastKind>,
    /// Inputs that read the result, and the outside with [`AutocastFlags::KEEP_IO`].
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

/// A type of a tensor of the caller, or a 16-bit one: this crate knows them.
fn dtype(raw: impl Into<u32>) -> Dtype {
    Dtype::from_raw(raw.into()).unwrap_or(Dtype::DtypeNone)
}

fn raw_context(context: Option<&Context>) -> sys::mp_context_t {
    context.map_or(ptr::null_mut(), Context::as_raw)
}

/// # Safety
/// NULL, or a string in static storage.
unsafe fn clause(text: *const c_char) -> Option<&'static CStr> {
    if text.is_null() {
        return None;
    }
    Some(CStr::from_ptr(text))
}

fn owned(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}
