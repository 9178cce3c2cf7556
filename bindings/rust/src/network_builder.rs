//! Descriptions of networks.

use crate::autocast::Autocast;
use crate::context::Context;
use crate::enums::Dtype;
use crate::error::{c_string, Result};
use crate::graph::{count, TensorId};
use crate::network::{Network, NetworkTensor};
use crate::owner::{Handle, Owner};
use crate::sys;
use std::ffi::{CStr, CString};

const NO_TENSOR: i32 = -1;

/// An input.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) tensor: TensorId,
    /// Bound elements and their owner.
    pub(crate) bound: Option<(usize, Owner)>,
}

pub(crate) type GraphHandle = Handle<sys::mp_graph>;

pub(crate) fn info_of(graph: &GraphHandle, tensor: TensorId) -> Result<sys::mp_graph_tensor_t> {
    let mut info = sys::mp_graph_tensor_t::zeroed();
    run!(graph, mp_graph_get_tensor(tensor.0, &mut info))?;
    Ok(info)
}

/// The description of a [`Network`] in f32: tensors, and nodes that read and write them.
///
/// `mpcore/graph.h` lists the operations with their inputs and attributes.  A tensor is valid only
/// for the network that returned it; tensors of other networks are rejected if they are out of
/// range.
#[derive(Debug)]
pub struct NetworkBuilder<'a> {
    pub(crate) handle: GraphHandle,
    pub(crate) inputs: Vec<Input>,
    pub(crate) parameters: Vec<TensorId>,
    /// Tensors of a single i64.
    pub(crate) counters: Vec<TensorId>,
    pub(crate) has_loss: bool,
    policy: Option<&'a Autocast>,
}

impl<'a> NetworkBuilder<'a> {
    pub(crate) fn new(context: &Context) -> Result<Self> {
        Ok(NetworkBuilder {
            handle: create!(context, Vec::new(), mp_graph_create(), mp_graph_destroy),
            inputs: Vec::new(),
            parameters: Vec::new(),
            counters: Vec::new(),
            has_loss: false,
            policy: None,
        })
    }

    /// Adds an input.  Autocast can convert `Fp32`; 16-bit types are read without conversion;
    /// `DtypeNone` is i32 (labels, indices, lengths), except for offsets of Dropout and Attention,
    /// which are one i64 without dimensions.  The first dimension is the batch.
    pub fn input(&mut self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<TensorId> {
        let (name, (rank, extent), mut id) = (c_string("name", name)?, extents(shape), NO_TENSOR);
        let (name, extent) = (name.as_ptr(), extent.as_ptr());
        run!(self.handle, mp_graph_add_input(name, dtype as u32, rank, extent, &mut id))?;
        let tensor = TensorId(id);
        self.inputs.push(Input { tensor, bound: None });
        if dtype == Dtype::DtypeNone && shape.is_empty() {
            self.counters.push(tensor); // whatever operation reads it
        }
        Ok(tensor)
    }

    /// Adds a trainable parameter, in memory of the network.
    pub fn parameter(&mut self, name: &str, shape: &[usize]) -> Result<TensorId> {
        let (name, (rank, extent), mut id) = (c_string("name", name)?, extents(shape), NO_TENSOR);
        let (name, extent) = (name.as_ptr(), extent.as_ptr());
        run!(self.handle, mp_graph_add_parameter(name, rank, extent, &mut id))?;
        self.parameters.push(TensorId(id));
        Ok(TensorId(id))
    }

    /// Adds a tensor that persists between steps and is not trained, in memory of the network.
    pub fn state(&mut self, name: &str, shape: &[usize]) -> Result<TensorId> {
        let (name, (rank, extent), mut id) = (c_string("name", name)?, extents(shape), NO_TENSOR);
        let (name, extent) = (name.as_ptr(), extent.as_ptr());
        run!(self.handle, mp_graph_add_state(name, rank, extent, &mut id))?;
        Ok(TensorId(id))
    }

    /// Begins an operation on these tensors: set options, then call
    /// [`output`](NetworkNode::output).
    pub fn node<'n>(
        &'n mut self, op: &str, name: &str, inputs: &[TensorId],
    ) -> NetworkNode<'n, 'a> {
        NetworkNode {
            network: self,
            op: op.to_string(),
            name: name.to_string(),
            inputs: inputs.iter().map(|tensor| tensor.0).collect(),
            attributes: Vec::new(),
        }
    }

    /// Marks a tensor as an output, which keeps its value until the next pass.
    pub fn output(&mut self, tensor: TensorId) -> Result<()> {
        run!(self.handle, mp_graph_add_output(tensor.0))
    }

    /// Keeps the gradient of a tensor.  Gradients of parameters are always kept.
    pub fn keep_gradient(&mut self, tensor: TensorId) -> Result<()> {
        run!(self.handle, mp_graph_keep_gradient(tensor.0))
    }

    /// Sets the loss to minimize: the output of a loss node, such as SoftmaxXent.
    pub fn loss(&mut self, tensor: TensorId) -> Result<()> {
        run!(self.handle, mp_graph_set_loss(tensor.0))?;
        self.has_loss = true;
        Ok(())
    }

    /// Adds an f32 input for dL / d(tensor), with the shape of the tensor, for a loss that the
    /// caller computes.  Bind it before [`backward`](crate::Network::backward), which multiplies it
    /// by S.
    pub fn seed_gradient(&mut self, tensor: TensorId) -> Result<TensorId> {
        let mut seed = NO_TENSOR;
        run!(self.handle, mp_graph_seed_gradient(tensor.0, &mut seed))?;
        self.has_loss = true;
        self.inputs.push(Input { tensor: TensorId(seed), bound: None });
        Ok(TensorId(seed))
    }

    /// Enables mixed precision by a policy, if the policy is active on this device
    /// ([`disabled_reason`](crate::Autocast::disabled_reason)).
    pub fn autocast(&mut self, policy: &'a Autocast) -> Result<()> {
        run!(self.handle, mp_graph_set_autocast(policy.as_raw()))?;
        self.policy = Some(policy);
        Ok(())
    }

    /// Selects kernels by times that the first passes measure: up to `max_kernels` for each product
    /// or convolution.  See `mp_graph_measure_kernels`.
    pub fn measure_kernels(&mut self, max_kernels: i32) -> Result<()> {
        run!(self.handle, mp_graph_measure_kernels(max_kernels))
    }

    /// Returns the properties of a tensor.
    pub fn tensor(&self, tensor: TensorId) -> Result<NetworkTensor> {
        Ok(NetworkTensor::new(&info_of(&self.handle, tensor)?))
    }

    /// Compiles the network: adds the backward pass and casts, fuses operations, allocates memory.
    /// Parameters and states are initialized to 0.
    pub fn compile(self) -> Result<Network> {
        run!(self.handle, mp_graph_compile())?;
        Network::new(self)
    }
}

/// Returns the rank and the extents; the library rejects those that do not fit.
fn extents(shape: &[usize]) -> (i32, Vec<i64>) {
    let extents: Vec<_> = shape.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
    (i32::try_from(extents.len()).unwrap_or(i32::MAX), extents)
}

/// Value of an attribute of an operation, e.g. `2.into()`, `0.5.into()` or `[0, -1].into()`.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// An integer, also accepted for a real number.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of real numbers.
    Floats(Vec<f64>),
}

macro_rules! attributes {
    ($($value:ident: $kind:ty => $attribute:expr;)*) => { $(
        impl From<$kind> for Attribute {
            fn from($value: $kind) -> Self {
                use Attribute::*;
                $attribute
            }
        }
    )* };
}
attributes! {
    value: i32 => Int(value.into());
    value: i64 => Int(value);
    value: u64 => Int(value as i64); // a seed: all 64 bits are kept
    value: f64 => Float(value);
    values: Vec<i64> => Ints(values);
    values: Vec<f64> => Floats(values);
}

impl<const N: usize> From<[i32; N]> for Attribute {
    fn from(values: [i32; N]) -> Self {
        Attribute::Ints(values.map(i64::from).to_vec())
    }
}

impl Attribute {
    /// Returns the attribute for C, which points to `name` and to the values of `self`.
    fn raw(&self, name: &CStr) -> sys::mp_graph_attribute_t {
        let mut raw = sys::mp_graph_attribute_t::zeroed();
        raw.name = name.as_ptr();
        match self {
            Attribute::Int(value) => {
                raw.kind = sys::MP_ATTRIBUTE_KIND_INT;
                raw.int_value = *value;
            }
            Attribute::Float(value) => {
                raw.kind = sys::MP_ATTRIBUTE_KIND_FLOAT;
                raw.float_value = *value;
            }
            Attribute::Ints(values) => {
                raw.kind = sys::MP_ATTRIBUTE_KIND_INTS;
                raw.ints = values.as_ptr();
                raw.count = count(values.len());
            }
            Attribute::Floats(values) => {
                raw.kind = sys::MP_ATTRIBUTE_KIND_FLOATS;
                raw.floats = values.as_ptr();
                raw.count = count(values.len());
            }
        }
        raw
    }
}

/// An operation that has not yet been added to its [`Network`].
#[derive(Debug)]
pub struct NetworkNode<'n, 'a> {
    network: &'n mut NetworkBuilder<'a>,
    op: String,
    name: String,
    inputs: Vec<i32>,
    attributes: Vec<(String, Attribute)>,
}

impl NetworkNode<'_, '_> {
    setters! {
        /// Adds an input.  None: an absent optional input.
        fn input(self, tensor: impl Into<Option<TensorId>>) {
            self.inputs.push(tensor.into().map_or(NO_TENSOR, |tensor| tensor.0));
        }
        /// Adds an attribute.
        fn attribute(self, name: &str, value: impl Into<Attribute>) {
            self.attributes.push((name.to_string(), value.into()));
        }
    }

    /// Adds the operation and returns its first output; most operations have only one.
    pub fn output(self) -> Result<TensorId> {
        let [output] = self.outputs()?;
        Ok(output)
    }

    /// Adds the operation and returns its first `N` outputs.
    pub fn outputs<const N: usize>(self) -> Result<[TensorId; N]> {
        let (op, name) = (c_string("op", &self.op)?, c_string("name", &self.name)?);
        let names: Result<Vec<CString>> =
            self.attributes.iter().map(|(name, _)| c_string("attribute", name)).collect();
        let names = names?;
        let attributes: Vec<_> = (names.iter().zip(&self.attributes))
            .map(|(name, (_, value))| value.raw(name))
            .collect();
        let mut outputs = [NO_TENSOR; N];
        let (op, name) = (op.as_ptr(), name.as_ptr());
        let (read, num_read) = (self.inputs.as_ptr(), count(self.inputs.len()));
        let (given, num_given) = (attributes.as_ptr(), count(attributes.len()));
        let (to, handle) = (outputs.as_mut_ptr(), &self.network.handle);
        run!(handle, mp_graph_add_node(op, name, read, num_read, given, num_given, to, count(N)))?;
        let outputs = outputs.map(TensorId);
        if let ("SoftmaxXent" | "LinearXent", Some(&correct)) = (self.op.as_str(), outputs.get(2)) {
            self.network.counters.push(correct);
        }
        Ok(outputs)
    }
}
