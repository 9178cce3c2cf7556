//! Graphs for [`Autocast`](crate::Autocast).

use crate::enums::{Dtype, NodeFlags, OpClass, TensorRole};
use crate::error::{c_string, Result};
use crate::sys;
use std::any::Any;
use std::ffi::CString;
use std::marker::PhantomData;
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
    nodes: Vec<Node>,
    tensors: Vec<(i32, GraphTensor)>, // with the node that writes it
    hidden_edges: Vec<[i32; 2]>,
    clusters: Vec<(ClusterKind, Vec<i32>)>,
}

#[derive(Clone, Debug)]
struct Node {
    op: CString,
    name: CString,
    class: u8, // 0: that of the operation
    flags: u16,
    depth: i64,
    inputs: Vec<(i32, u8)>, // with slots
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
        let id = NodeId(number(self.nodes.len()));
        self.nodes.push(Node { op, name, class: 0, flags: 0, depth: 0, inputs: Vec::new() });
        let node = GraphNode { graph: self, id };
        Ok(inputs.iter().fold(node, |node, &tensor| node.input(tensor, 0)))
    }

    /// Adds a hidden edge between nodes, through a container or through state.
    pub fn hidden_edge(&mut self, from: NodeId, to: NodeId) {
        self.hidden_edges.push([from.0, to.0]);
    }

    /// Adds a cluster of nodes with equal types in slot 0.
    pub fn cluster(&mut self, kind: ClusterKind, members: &[NodeId]) {
        self.clusters.push((kind, members.iter().map(|node| node.0).collect()));
    }

    /// Returns the number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of tensors.
    pub fn num_tensors(&self) -> usize {
        self.tensors.len()
    }

    /// Returns the number of inputs of all nodes.
    pub(crate) fn num_inputs(&self) -> usize {
        self.nodes.iter().map(|node| node.inputs.len()).sum()
    }

    fn add_tensor(&mut self, producer: i32, tensor: GraphTensor) -> TensorId {
        let id = TensorId(number(self.num_tensors()));
        self.tensors.push((producer, tensor));
        id
    }

    /// Converts to the C struct.
    pub(crate) fn lend(&self) -> Lent<'_> {
        let mut kept: Vec<Box<dyn Any>> = Vec::new();
        let (nodes, tensors, clusters) = (&self.nodes, &self.tensors, &self.clusters);
        let inputs = || nodes.iter().flat_map(|node| &node.inputs);
        let input_offsets = offsets(nodes.iter().map(|node| node.inputs.len()));
        let text =
            |text: &CString| if text.as_bytes().is_empty() { ptr::null() } else { text.as_ptr() };
        let raw = sys::mp_autocast_graph_t {
            num_nodes: count(nodes.len()),
            num_tensors: count(tensors.len()),
            num_hidden_edges: count(self.hidden_edges.len()),
            num_clusters: count(clusters.len()),
            node_op: keep(&mut kept, nodes.iter().map(|node| node.op.as_ptr())),
            node_class: keep(&mut kept, nodes.iter().map(|node| node.class)),
            node_name: keep(&mut kept, nodes.iter().map(|node| text(&node.name))),
            node_flags: keep(&mut kept, nodes.iter().map(|node| node.flags)),
            node_depth: keep(&mut kept, nodes.iter().map(|node| node.depth)),
            input_offsets: input_offsets.as_ptr(),
            input_tensor: keep(&mut kept, inputs().map(|input| input.0)),
            input_slot: keep(&mut kept, inputs().map(|input| input.1)),
            tensor_producer: keep(&mut kept, tensors.iter().map(|tensor| tensor.0)),
            tensor_slot: keep(&mut kept, tensors.iter().map(|tensor| tensor.1.slot)),
            tensor_dtype: keep(&mut kept, tensors.iter().map(|tensor| tensor.1.dtype as u8)),
            tensor_role: keep(&mut kept, tensors.iter().map(|tensor| tensor.1.role as u8)),
            tensor_amax: keep(&mut kept, tensors.iter().map(|t| t.1.amax.unwrap_or(UNKNOWN_AMAX))),
            hidden_src: keep(&mut kept, self.hidden_edges.iter().map(|edge| edge[0])),
            hidden_dst: keep(&mut kept, self.hidden_edges.iter().map(|edge| edge[1])),
            member_offsets: keep(
                &mut kept,
                offsets(clusters.iter().map(|c| c.1.len())).into_iter(),
            ),
            member: keep(&mut kept, clusters.iter().flat_map(|cluster| cluster.1.iter().copied())),
            cluster_kind: keep(&mut kept, clusters.iter().map(|cluster| cluster.0 as u8)),
            ..sys::mp_autocast_graph_t::zeroed()
        };
        Lent { raw, input_offsets, _kept: kept, graph: PhantomData }
    }
}

/// Returns the address of an array with these values, which is kept.
fn keep<T: 'static>(kept: &mut Vec<Box<dyn Any>>, values: impl Iterator<Item = T>) -> *const T {
    let values: Box<Vec<T>> = Box::new(values.collect());
    let address = values.as_ptr();
    kept.push(values);
    address
}

/// Returns the start of each part of that many elements, and the end of the last.
fn offsets(lens: impl Iterator<Item = usize>) -> Vec<i32> {
    let mut offsets = vec![0];
    let mut end = 0;
    offsets.extend(lens.map(|len| {
        end += len;
        number(end)
    }));
    offsets
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
    pub(crate) input_offsets: Vec<i32>,
    _kept: Vec<Box<dyn Any>>, // the other arrays of raw
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
    pub fn input(mut self, tensor: impl Into<Option<TensorId>>, slot: u8) -> Self {
        let tensor = tensor.into().map_or(NO_TENSOR, |tensor| tensor.0);
        self.node().inputs.push((tensor, slot));
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
        self.graph.tensors[tensor.index()].0 = self.id.0;
        self
    }

    /// Sets flags of the node.
    pub fn flags(mut self, flags: NodeFlags) -> Self {
        // The library rejects unknown bits, which u16 can represent.
        self.node().flags = u16::try_from(flags.bits()).unwrap_or(u16::MAX);
        self
    }

    /// Sets the number of terms in the sums of the node, e.g. k of a product.
    pub fn depth(mut self, terms: i64) -> Self {
        self.node().depth = terms;
        self
    }

    /// Sets the class of the node, overriding that of its operation.
    pub fn class(mut self, class: OpClass) -> Self {
        self.node().class = 1 + class as u8;
        self
    }

    fn node(&mut self) -> &mut Node {
        self.graph.nodes.last_mut().expect("the node was added")
    }
}
