//! Compiled networks: forward and backward passes.

use crate::context::{number_of, Context, Data, Plain, Stream, View};
use crate::enums::{AutocastFormat, Dtype, GraphMode, OptimizerKind};
use crate::error::{read_text, Error, Result};
use crate::graph::TensorId;
use crate::network_builder::{info_of, GraphHandle, Input, NetworkBuilder};
use crate::optimizer::{Optimizer, OptimizerBuilder};
use crate::owner::Handle;
use crate::scaler::Scaler;
use crate::sys;
use crate::tensors::TensorList;
use std::any::{type_name, TypeId};
use std::ffi::{c_void, CStr};
use std::marker::PhantomData;
use std::ptr;

/// Device memory of a network, in bytes.
pub type NetworkMemory = sys::mp_graph_memory_t;

/// A network with automatic differentiation and mixed precision: a graph of `mpcore/graph.h`.  (A
/// [`Graph`](crate::Graph) is only for autocast.)
///
/// ```
/// use mpcore::{Context, Device, Dtype, GraphMode, Network, Stream};
/// # fn main() -> mpcore::Result<()> {
/// let context = Context::new(Device::Host)?;
/// let x = context.upload(&[1.0f32, -2.0, 3.0, -4.0])?;
///
/// let mut network = Network::builder(&context)?;
/// let input = network.input("x", Dtype::Fp32, &[2, 2])?;
/// let y = network.node("Relu", "relu", &[input]).output()?;
/// network.output(y)?;
/// let mut network = network.compile()?;
/// network.bind(input, &x)?;
/// network.forward(GraphMode::Inference, Stream::DEFAULT)?;
/// assert_eq!(network.data::<f32>(y)?.to_vec()?, [1.0, 0.0, 3.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// A network shares ownership of the memory bound to it, and an [`Optimizer`] of the network.  One
/// struct can hold both in any order, and they can be sent to another thread.  Two networks that
/// are bound to tensors of each other are freed only after one is unbound.
#[derive(Debug)]
pub struct Network {
    handle: GraphHandle,
    inputs: Vec<Input>,
    counters: Vec<TensorId>,
    grads: Option<TensorList>,
    master: TensorList,
    model: Option<TensorList>,
}

impl Network {
    /// Begins the description of a network.
    pub fn builder<'a>(context: &Context) -> Result<NetworkBuilder<'a>> {
        NetworkBuilder::new(context)
    }

    pub(crate) fn new(built: NetworkBuilder<'_>) -> Result<Self> {
        let NetworkBuilder { handle, inputs, parameters, counters, has_loss, .. } = built;
        let [mut grads, mut master, mut model] = [ptr::null_mut(); 3];
        let grads_out = if has_loss { &mut grads } else { ptr::null_mut() };
        run!(handle, mp_graph_get_lists(grads_out, &mut master, &mut model))?;
        let infos: Result<Vec<_>> = parameters.iter().map(|&p| info_of(&handle, p)).collect();
        let infos = infos?;
        let list = |raw: sys::mp_tensor_list_t,
                    part: fn(&sys::mp_graph_tensor_t) -> (*mut c_void, u32)| {
            let shapes = infos.iter().map(|t| (numel(t), known(part(t).1).unwrap_or(Dtype::Fp16)));
            let has_absent = infos.iter().any(|t| part(t).0.is_null());
            // SAFETY: the list lives as long as the graph.
            let list = unsafe { Handle::lent(handle.owner(), raw) };
            TensorList::lent(list, shapes.collect(), has_absent)
        };
        let optional = |raw: sys::mp_tensor_list_t, part| {
            if raw.is_null() {
                None
            } else {
                Some(list(raw, part))
            }
        };
        Ok(Network {
            grads: optional(grads, |t| (t.grad, t.dtype_grad)),
            master: list(master, |t| (t.data, t.dtype)),
            model: optional(model, |t| (t.copy, t.dtype_copy)),
            handle,
            inputs,
            counters,
        })
    }

    /// Returns the handle, for functions of [`sys`].
    pub fn as_raw(&self) -> sys::mp_graph_t {
        self.handle.as_raw()
    }

    // ------------------------------------------------------------------ running

    /// Binds a buffer or a slice to an input, from the next pass on.  It must have at least as many
    /// elements as the input has with the batch of that pass.
    pub fn bind<'v, T: Plain>(
        &mut self, tensor: TensorId, data: impl Into<View<'v, T>>,
    ) -> Result<()> {
        let view = data.into();
        let data = self.handle.context().checks("bind").data("data", &view, 0)?.cast();
        let input = self.input(tensor)?;
        self.require_type::<T>("bind", tensor, self.info(tensor)?.dtype)?;
        run!(self.handle, mp_graph_bind(tensor.0, data))?;
        self.inputs[input].bound = Some((view.len, view.owner.clone()));
        Ok(())
    }

    /// Unbinds an input.  In inference, a loss with unbound labels is not computed.
    pub fn unbind(&mut self, tensor: TensorId) -> Result<()> {
        let input = self.input(tensor)?;
        run!(self.handle, mp_graph_bind(tensor.0, ptr::null()))?;
        self.inputs[input].bound = None;
        Ok(())
    }

    /// Sets the batch size of the next passes, at most the size in the description.
    pub fn set_batch(&self, batch: usize) -> Result<()> {
        let batch = i64::try_from(batch).unwrap_or(i64::MAX);
        run!(self.handle, mp_graph_set_batch(batch))
    }

    /// Writes a parameter, including its 16-bit copy, or a state.  Waits for the default stream.
    pub fn write(&self, tensor: TensorId, values: &[f32], stream: Stream) -> Result<()> {
        self.write_from(tensor, values.as_ptr(), values.len(), stream)?;
        self.handle.context().sync(stream)
    }

    /// Writes a parameter or a state from device memory, in stream order.
    pub fn write_from_device<D: Data<Element = f32>>(
        &self, tensor: TensorId, values: &D, stream: Stream,
    ) -> Result<()> {
        let checks = self.handle.context().checks("write_from_device");
        self.write_from(tensor, checks.data("values", values, 0)?, values.view().len, stream)
    }

    fn write_from(&self, t: TensorId, values: *const f32, len: usize, s: Stream) -> Result<()> {
        let info = self.info(t)?;
        if len != numel(&info) {
            let (name, needed) = (name_of(&info), numel(&info));
            return Err(Error::invalid(format!("write: {name} has {needed} elements, not {len}")));
        }
        run!(self.handle, mp_graph_write(t.0, values, s.0))
    }

    /// Runs the forward pass on the bound inputs.
    pub fn forward(&self, mode: GraphMode, stream: Stream) -> Result<()> {
        self.require_elements("forward")?;
        run!(self.handle, mp_graph_forward(mode as u32, stream.0))
    }

    /// Computes the loss, and the gradients of all parameters times the scale S.  Requires
    /// a preceding forward pass in training mode.
    pub fn backward(&self, scaler: Option<&Scaler>, stream: Stream) -> Result<()> {
        self.require_elements("backward")?;
        if let Some(scaler) = scaler {
            self.handle.context().checks("backward").belongs("the scaler", scaler.context())?;
        }
        let scaler = scaler.map_or(ptr::null_mut(), Scaler::as_raw);
        run!(self.handle, mp_graph_backward(scaler, stream.0))
    }

    /// Returns the number of forward passes in training, which determines the masks of Dropout and
    /// Attention; 0 without dropout.  Save it in checkpoints.  Waits for the stream.
    pub fn get_step(&self, stream: Stream) -> Result<i64> {
        let mut t = 0;
        run!(self.handle, mp_graph_get_step_sync(&mut t, stream.0))?;
        Ok(t)
    }

    /// Restores the number returned by `step`.  Waits for the stream.
    pub fn set_step(&self, t: i64, stream: Stream) -> Result<()> {
        run!(self.handle, mp_graph_set_step_sync(t, stream.0))
    }

    fn require_elements(&self, call: &str) -> Result<()> {
        for input in &self.inputs {
            if let Some((len, _)) = &input.bound {
                let info = self.info(input.tensor)?;
                let checks = self.handle.context().checks(call);
                checks.at_least(&name_of(&info), *len, numel(&info) as i128)?;
            }
        }
        Ok(())
    }

    /// Returns the index of an input.
    fn input(&self, tensor: TensorId) -> Result<usize> {
        (self.inputs.iter().position(|input| input.tensor == tensor)).ok_or_else(|| {
            Error::invalid(format!("bind: tensor {} is not an input", tensor.index()))
        })
    }

    fn info(&self, tensor: TensorId) -> Result<sys::mp_graph_tensor_t> {
        info_of(&self.handle, tensor)
    }

    // ------------------------------------------------------------------ results

    /// Returns the gradients of all parameters in the order of their creation.  None without a
    /// loss.
    pub fn grads(&self) -> Option<&TensorList> {
        self.grads.as_ref()
    }

    /// Returns the parameters.
    pub fn master(&self) -> &TensorList {
        &self.master
    }

    /// Returns the 16-bit copies of the parameters.  None if no parameter has one.
    pub fn model(&self) -> Option<&TensorList> {
        self.model.as_ref()
    }

    /// Begins an optimizer of all parameters and their copies.
    pub fn optimizer(&self, kind: OptimizerKind) -> Result<OptimizerBuilder<'_>> {
        let context = self.handle.context();
        let builder = Optimizer::builder(context, kind, self.trained()?, &self.master);
        Ok(self.with_model(builder))
    }

    /// Begins an optimizer by name; see [`Optimizer::named`].
    pub fn optimizer_named(&self, name: &str, lr: f32) -> Result<OptimizerBuilder<'_>> {
        let builder =
            Optimizer::named(self.handle.context(), name, lr, self.trained()?, &self.master)?;
        Ok(self.with_model(builder))
    }

    fn trained(&self) -> Result<&TensorList> {
        (self.grads.as_ref()).ok_or_else(|| {
            Error::invalid("optimizer: requires a loss; call loss before compile".to_string())
        })
    }

    fn with_model<'n>(&'n self, builder: OptimizerBuilder<'n>) -> OptimizerBuilder<'n> {
        match &self.model {
            Some(model) => builder.model(model),
            None => builder,
        }
    }

    /// Returns the properties of a tensor.
    pub fn tensor(&self, tensor: TensorId) -> Result<NetworkTensor> {
        Ok(NetworkTensor::new(&self.info(tensor)?))
    }

    /// Returns the elements of a tensor, of their type in memory.  For an input, returns the bound
    /// buffer; `correct` of a SoftmaxXent or LinearXent is i64.
    pub fn data<T: Plain>(&self, tensor: TensorId) -> Result<View<'_, T>> {
        let info = self.info(tensor)?;
        let (owner, len) = match self.input(tensor).map(|input| &self.inputs[input].bound) {
            Ok(Some((len, owner))) => (owner, *len),
            Ok(None) => (self.handle.owner(), 0),
            Err(_) if self.counters.contains(&tensor) => (self.handle.owner(), 1),
            Err(_) => (self.handle.owner(), numel(&info)),
        };
        let view = self.part("data", tensor, &info, (info.data, info.dtype), len)?;
        Ok(View { owner, ..view })
    }

    /// Returns the cast or 16-bit copy of a tensor.
    pub fn copy<T: Plain>(&self, tensor: TensorId) -> Result<View<'_, T>> {
        let info = self.info(tensor)?;
        self.part("copy", tensor, &info, (info.copy, info.dtype_copy), numel(&info))
    }

    /// Returns the gradient of a parameter, or of a tensor that keeps its gradient.
    pub fn grad<T: Plain>(&self, tensor: TensorId) -> Result<View<'_, T>> {
        let info = self.info(tensor)?;
        self.part("grad", tensor, &info, (info.grad, info.dtype_grad), numel(&info))
    }

    fn part<T: Plain>(
        &self, call: &str, tensor: TensorId, info: &sys::mp_graph_tensor_t,
        (pointer, dtype): (*mut c_void, u32), len: usize,
    ) -> Result<View<'_, T>> {
        if pointer.is_null() {
            let reason = match call {
                "data" => "shares its memory with other tensors or is not computed",
                "copy" => "has no copy",
                _ => "has no gradient",
            };
            return Err(Error::invalid(format!("{call}: {} {reason}", name_of(info))));
        }
        self.require_type::<T>(call, tensor, dtype)?;
        let owner = self.handle.owner();
        Ok(View { owner, pointer: pointer.cast(), len, borrowed: PhantomData })
    }

    fn require_type<T: Plain>(&self, call: &str, tensor: TensorId, dtype: u32) -> Result<()> {
        fn named<E: Plain>() -> (TypeId, &'static str) {
            (TypeId::of::<E>(), type_name::<E>())
        }
        let (wanted, name) = match known(dtype).and_then(number_of) {
            Some(number) => number,
            _ if self.counters.contains(&tensor) => named::<i64>(),
            _ if self.inputs.iter().any(|input| input.tensor == tensor) => named::<i32>(),
            _ => named::<u8>(),
        };
        if TypeId::of::<T>() == wanted {
            return Ok(());
        }
        let short = |name: &'static str| name.rsplit("::").next().unwrap_or(name);
        let (index, name, given) = (tensor.index(), short(name), short(type_name::<T>()));
        Err(Error::invalid(format!("{call}: tensor {index} has type {name}, not {given}")))
    }

    /// Returns the device memory by purpose.
    pub fn memory(&self) -> Result<NetworkMemory> {
        let mut memory = NetworkMemory::zeroed();
        run!(self.handle, mp_graph_get_memory(&mut memory))?;
        Ok(memory)
    }

    /// Explains the types of the operations.
    pub fn explain(&self, format: AutocastFormat) -> Result<String> {
        let _turn = self.handle.context().turn();
        query!(self, read_text(text, bytes), mp_graph_explain(format as u32))
    }

    /// Lists the launches in order, one per line.
    pub fn describe(&self) -> Result<String> {
        let _turn = self.handle.context().turn();
        query!(self, read_text(text, bytes), mp_graph_describe())
    }
}

/// Properties of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkTensor {
    /// Name; outputs have the name of their node.
    pub name: String,
    /// Type in memory; `DtypeNone` for integers.
    pub dtype: Dtype,
    /// Type of its cast or 16-bit copy.
    pub dtype_copy: Option<Dtype>,
    /// Type of its gradient.
    pub dtype_grad: Option<Dtype>,
    /// Shape, for the current batch.
    pub shape: Vec<usize>,
}

impl NetworkTensor {
    pub(crate) fn new(info: &sys::mp_graph_tensor_t) -> Self {
        NetworkTensor {
            name: name_of(info),
            dtype: known(info.dtype).unwrap_or(Dtype::DtypeNone),
            dtype_copy: known(info.dtype_copy),
            dtype_grad: known(info.dtype_grad),
            shape: shape(info).collect(),
        }
    }
}

fn shape(info: &sys::mp_graph_tensor_t) -> impl Iterator<Item = usize> + '_ {
    info.extent.iter().take(info.rank as usize).map(|&extent| extent as usize)
}

fn numel(info: &sys::mp_graph_tensor_t) -> usize {
    shape(info).fold(1, usize::saturating_mul)
}

fn known(dtype: u32) -> Option<Dtype> {
    Dtype::from_raw(dtype).filter(|&dtype| dtype != Dtype::DtypeNone)
}

/// Returns the name in `info`, directly after the query.
fn name_of(info: &sys::mp_graph_tensor_t) -> String {
    // SAFETY: NUL-terminated, and the graph, which the caller borrows, has it.
    unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned()
}
