//! Graphs for [`Autocast`](crate::Autocast).

use crate::enums::{Dtype, NodeFlags, OpClass, TensorRole};
use crate::error::{c_string, Result};
use crate::sys;
use std::ffi::CString;
use std::marker::PhantomData;
use std::os::raw::c_char;
use std::ptr;

/// Slot of inputs and outputs that are always FP32, such as batch norm statistics.
pub const SLOT_FP32: u8 = sys::MP_AUTOCAST_SLOT_FP32 as u8;

const OUTSIDE: i32 = -1;
const NO_TENSOR: i32 = -1;
const UNKNOWN_AMAX: f32 = -1.0;

/// A node of a [`Graph`], numbered in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub(crate) i32);

impl NodeId {
    /// Returns the index, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tensor of a [`Graph`] or a [`Network`](crate::Network), numbered in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorId(pub(crate) i32);

impl TensorId {
    /// Returns the index, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Description of a tensor.  A [`Dtype`](crate::Dtype) converts to an activation in slot 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphTensor {
    /// `Fp32` can be converted; `Fp16` and `Bf16` are kept; `DtypeNone`: not floating-point.
    pub dtype: Dtype,
    /// Role of the tensor.
    pub role: TensorRole,
    /// Output slot of the node that writes it.
    pub slot: u8,
    /// Largest |x| observed.
    pub amax: Option<f32>,
}

impl From<Dtype> for GraphTensor {
    fn from(dtype: Dtype) -> Self {
        GraphTensor { dtype, role: TensorRole::Activation, slot: 0, amax: None }
    }
}

/// Kinds of clusters: sets of nodes with equal types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterKind {
    /// A container, such as a list of tensors.  FP32 if any member cannot have 16 bits; otherwise
    /// 16-bit if any member is.
    Container = 0,
    /// A loop.  16-bit if all members without [`NodeFlags::BACK_EDGE`] are, and the others can be.
    Loop = 1,
}

/// An FP32 graph: tensors, and nodes that read and write them.  It can have cycles.
///
/// Tensors and nodes are valid only for the graph that returned them; those of other graphs are
/// rejected if they are out of range.
///
/// ```
/// use mpcore::{Dtype, Graph};
/// # fn main() -> mpcore::Result<()> {
/// let mut graph = Graph::new();
/// let (x, w) = (graph.tensor(Dtype::Fp32), graph.tensor(Dtype::Fp32));
/// let y = graph.node("MatMul", "fc1", &[x, w])?.output(Dtype::Fp32);
/// graph.node("Relu", "act1", &[y])?.output(Dtype::Fp32);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Graph {
    node_op: Vec<CString>,
    node_name: Vec<CString>,
    node_class: Vec<u8>,
    node_flags: Vec<u16>,
    node_depth: Vec<i64>,
    input_ends: Vec<i32>, // per node
    input_tensor: Vec<i32>,
    input_slot: Vec<u8>,
    tensor_producer: Vec<i32>,
    tensor_slot: Vec<u8>,
    tensor_dtype: Vec<u8>,
    tensor_role: Vec<u8>,
    tensor_amax: Vec<f32>,
    hidden_src: Vec<i32>,
    hidden_dst: Vec<i32>,
    member_ends: Vec<i32>, // per cluster
    member: Vec<i32>,
    cluster_kind: Vec<u8>,
}

impl Graph {
    /// Creates an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor, which is an input unless a node [`writes`](GraphNode::writes) it.
    pub fn tensor(&mut self, tensor: impl Into<GraphTensor>) -> TensorId {
        self.add_tensor(OUTSIDE, tensor.into())
    }

    /// Adds a node, with inputs in slot 0.  The name can be empty.
    pub fn node(&mut self, op: &str, name: &str, inputs: &[TensorId]) -> Result<GraphNode<'_>> {
        let (op, name) = (c_string("op", op)?, c_string("name", name)?);
        let id = NodeId(number(self.node_op.len()));
        self.node_op.push(op);
        self.node_name.push(name);
        self.node_class.push(0);
        self.node_flags.push(0);
        self.node_depth.push(0);
        self.input_ends.push(number(self.input_tensor.len()));
        let node = GraphNode { graph: self, id };
        Ok(inputs.iter().fold(node, |node, &tensor| node.input(tensor, 0)))
    }

    /// Adds a hidden edge between nodes, through a container or through state.
    pub fn hidden_edge(&mut self, from: NodeId, to: NodeId) {
        self.hidden_src.push(from.0);
        self.hidden_dst.push(to.0);
    }

    /// Adds a cluster of nodes with equal types in slot 0.
    pub fn cluster(&mut self, kind: ClusterKind, members: &[NodeId]) {
        self.member.extend(members.iter().map(|node| node.0));
        self.member_ends.push(number(self.member.len()));
        self.cluster_kind.push(kind as u8);
    }

    /// Returns the number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.node_op.len()
    }

    /// Returns the number of tensors.
    pub fn num_tensors(&self) -> usize {
        self.tensor_dtype.len()
    }

    /// Returns the number of inputs of all nodes.
    pub(crate) fn num_inputs(&self) -> usize {
        self.input_tensor.len()
    }

    fn add_tensor(&mut self, producer: i32, tensor: GraphTensor) -> TensorId {
        let id = TensorId(number(self.num_tensors()));
        self.tensor_producer.push(producer);
        self.tensor_slot.push(tensor.slot);
        self.tensor_dtype.push(tensor.dtype as u8);
        self.tensor_role.push(tensor.role as u8);
        self.tensor_amax.push(tensor.amax.unwrap_or(UNKNOWN_AMAX));
        id
    }

    /// Converts to the C struct.
    pub(crate) fn lend(&self) -> Lent<'_> {
        let op: Vec<_> = self.node_op.iter().map(|op| op.as_ptr()).collect();
        let name: Vec<_> = (self.node_name.iter())
            .map(|name| if name.as_bytes().is_empty() { ptr::null() } else { name.as_ptr() })
            .collect();
        let [input_offsets, member_offsets] =
            [&self.input_ends, &self.member_ends].map(|ends| [&[0], &ends[..]].concat());
        let raw = sys::mp_autocast_graph_t {
            num_nodes: count(self.num_nodes()),
            num_tensors: count(self.num_tensors()),
            num_hidden_edges: count(self.hidden_src.len()),
            num_clusters: count(self.cluster_kind.len()),
            node_op: op.as_ptr(),
            node_class: if_set(&self.node_class, 0),
            node_name: if_set(&name, ptr::null()),
            node_flags: if_set(&self.node_flags, 0),
            node_depth: if_set(&self.node_depth, 0),
            input_offsets: input_offsets.as_ptr(),
            input_tensor: self.input_tensor.as_ptr(),
            input_slot: if_set(&self.input_slot, 0),
            tensor_producer: self.tensor_producer.as_ptr(),
            tensor_slot: if_set(&self.tensor_slot, 0),
            tensor_dtype: self.tensor_dtype.as_ptr(),
            tensor_role: if_set(&self.tensor_role, TensorRole::Activation as u8),
            tensor_amax: if_set(&self.tensor_amax, UNKNOWN_AMAX),
            hidden_src: self.hidden_src.as_ptr(),
            hidden_dst: self.hidden_dst.as_ptr(),
            member_offsets: member_offsets.as_ptr(),
            member: self.member.as_ptr(),
            cluster_kind: if_set(&self.cluster_kind, ClusterKind::Container as u8),
            ..sys::mp_autocast_graph_t::zeroed()
        };
        Lent {
            raw,
            _op: op,
            _name: name,
            input_offsets,
            _member_offsets: member_offsets,
            graph: PhantomData,
        }
    }
}

/// Returns NULL for an empty array.
fn if_set<T: PartialEq>(array: &[T], unset: T) -> *const T {
    if array.iter().all(|value| *value == unset) {
        return ptr::null();
    }
    array.as_ptr()
}

/// Converts a size; the library rejects graphs with sizes that do not fit.
fn number(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(i32::MAX)
}

/// Converts a size; see above.
pub(crate) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// The C struct of a graph, borrowed for a call.
pub(crate) struct Lent<'g> {
    pub(crate) raw: sys::mp_autocast_graph_t,
    _op: Vec<*const c_char>, // raw points to these, and to the arrays of the graph
    _name: Vec<*const c_char>,
    pub(crate) input_offsets: Vec<i32>,
    _member_offsets: Vec<i32>,
    graph: PhantomData<&'g Graph>,
}

/// The node that was added last.  Its methods modify the graph.
#[derive(Debug)]
pub struct GraphNode<'g> {
    graph: &'g mut Graph,
    id: NodeId,
}

impl GraphNode<'_> {
    /// Returns the id of the node.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Adds an input.  None: an absent optional input.
    pub fn input(self, tensor: impl Into<Option<TensorId>>, slot: u8) -> Self {
        self.graph.input_tensor.push(tensor.into().map_or(NO_TENSOR, |tensor| tensor.0));
        self.graph.input_slot.push(slot);
        let inputs = number(self.graph.num_inputs());
        *last(&mut self.graph.input_ends) = inputs;
        self
    }

    /// Adds an output, in slot 0 unless the tensor specifies another.
    pub fn output(&mut self, tensor: impl Into<GraphTensor>) -> TensorId {
        self.graph.add_tensor(self.id.0, tensor.into())
    }

    /// Makes an existing tensor an output, for cycles.
    ///
    /// # Panics
    /// If the graph has no such tensor.
    pub fn writes(self, tensor: TensorId) -> Self {
        self.graph.tensor_producer[tensor.index()] = self.id.0;
        self
    }

    /// Sets flags of the node.
    pub fn flags(self, flags: NodeFlags) -> Self {
        // The library rejects unknown bits, which u16 can represent.
        *last(&mut self.graph.node_flags) = u16::try_from(flags.bits()).unwrap_or(u16::MAX);
        self
    }

    /// Sets the number of terms in the sums of the node, e.g. k of a product.
    pub fn depth(self, terms: i64) -> Self {
        *last(&mut self.graph.node_depth) = terms;
        self
    }

    /// Sets the class of the node, overriding that of its operation.
    pub fn class(self, class: OpClass) -> Self {
        *last(&mut self.graph.node_class) = 1 + class as u8;
        self
    }
}

/// Returns the last element of a per-node array.
fn last<T>(array: &mut [T]) -> &mut T {
    array.last_mut().expect("the node was added")
}
