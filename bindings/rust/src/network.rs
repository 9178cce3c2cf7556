//! Networks that run forward and backward.

use crate::context::{at_least, Context, Data, Plain, Stream, View};
use crate::enums::{AutocastForm, Dtype, GraphMode, OptimizerKind};
use crate::error::{read_text, Error, Result};
use crate::graph::TensorId;
use crate::half::{Bf16, F16};
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

/// Bytes of device memory that a network holds.
pub type NetworkMemory = sys::mp_graph_memory_t;

/// A network described once, which runs forward and backward in the types that it was told: the graphs of
/// `mpcore/graph.h`.  (A [`Graph`](crate::Graph) is what autocast looks at by itself.)
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
/// A network owns a share of the memory bound to it, and an [`Optimizer`] a share of the network: both fit
/// into one struct, in any order, and may be sent to another thread.  Two networks that are bound to
/// tensors of each other are freed only after one is unbound.
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
    /// Begins a description.
    pub fn builder<'a>(context: &Context) -> Result<NetworkBuilder<'a>> {
        NetworkBuilder::new(context)
    }

    pub(crate) fn new(built: NetworkBuilder<'_>) -> Result<Self> {
        let NetworkBuilder { handle, inputs, parameters, counters, has_loss, .. } = built;
        let [mut grads, mut master, mut model] = [ptr::null_mut(); 3];
        let grads_out = if has_loss { &mut grads } else { ptr::null_mut() };
        // SAFETY: the graph lives, and has gradients where it has a loss.
        handle.call(|graph| unsafe {
            sys::mp_graph_lists(graph, grads_out, &mut master, &mut model)
        })?;
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

    /// For calls of [`sys`].
    pub fn as_raw(&self) -> sys::mp_graph_t {
        self.handle.raw()
    }

    // ------------------------------------------------------------------ running

    /// Where an input lies from the next pass on: a buffer, or a slice of one, with an element for each of the
    /// input's, in the batch that is set then.
    pub fn bind<'v, T: Plain>(
        &mut self,
        tensor: TensorId,
        data: impl Into<View<'v, T>>,
    ) -> Result<()> {
        let view = data.into();
        self.handle.context().owns("bind", "data", &view)?;
        let input = self.input(tensor)?;
        self.require_type::<T>("bind", tensor, self.info(tensor)?.dtype)?;
        let data = view.pointer.cast();
        // SAFETY: memory of this context that the network keeps; a pass checks that it is enough.
        self.handle.call(|graph| unsafe { sys::mp_graph_bind(graph, tensor.0, data) })?;
        self.inputs[input].bound = Some((view.len, view.owner.clone()));
        Ok(())
    }

    /// The input lies nowhere: a loss whose labels do so is not computed in inference.
    pub fn unbind(&mut self, tensor: TensorId) -> Result<()> {
        let input = self.input(tensor)?;
        // SAFETY: the graph lives.
        self.handle.call(|graph| unsafe { sys::mp_graph_bind(graph, tensor.0, ptr::null()) })?;
        self.inputs[input].bound = None;
        Ok(())
    }

    /// How large the batch is from the next pass on: at most as it was described.
    pub fn set_batch(&self, batch: usize) -> Result<()> {
        let batch = i64::try_from(batch).unwrap_or(i64::MAX);
        // SAFETY: the graph lives.
        self.handle.call(|graph| unsafe { sys::mp_graph_set_batch(graph, batch) })
    }

    /// Sets a parameter or a state, and the 16-bit copy of a parameter.  Done when it returns.
    pub fn write(&self, tensor: TensorId, values: &[f32], stream: Stream) -> Result<()> {
        self.write_from(tensor, values.as_ptr(), values.len(), stream)?;
        self.handle.context().sync(stream)
    }

    /// The same from device memory, in stream order.
    pub fn write_from_device<D: Data<Element = f32>>(
        &self,
        tensor: TensorId,
        values: &D,
        stream: Stream,
    ) -> Result<()> {
        let values = values.view();
        self.handle.context().owns("write_from_device", "values", &values)?;
        self.write_from(tensor, values.pointer, values.len, stream)
    }

    fn write_from(&self, t: TensorId, values: *const f32, len: usize, s: Stream) -> Result<()> {
        let info = self.info(t)?;
        if len != numel(&info) {
            let (name, needed) = (name_of(&info), numel(&info));
            return Err(Error::invalid(format!("write: {name} has {needed} elements, not {len}")));
        }
        // SAFETY: as many elements as the tensor has; those of the host live until the stream is done.
        self.handle.call(|graph| unsafe { sys::mp_graph_write(graph, t.0, values, s.0) })
    }

    /// All outputs from the inputs that are bound.
    pub fn forward(&self, mode: GraphMode, stream: Stream) -> Result<()> {
        self.require_elements("forward")?;
        // SAFETY: the inputs outlive the network, and are as large as the batch wants.
        self.handle.call(|graph| unsafe { sys::mp_graph_forward(graph, mode as u32, stream.0) })
    }

    /// The loss, and the gradients of all parameters times S, after a forward pass in training.
    pub fn backward(&self, scaler: Option<&Scaler>, stream: Stream) -> Result<()> {
        self.require_elements("backward")?;
        if let Some(scaler) = scaler {
            self.handle.context().is("backward", "the scaler", scaler.context())?;
        }
        let scaler = scaler.map_or(ptr::null_mut(), Scaler::as_raw);
        // SAFETY: as in forward; the numbers of a scaler that goes wait for the kernels.
        self.handle.call(|graph| unsafe { sys::mp_graph_backward(graph, scaler, stream.0) })
    }

    /// Number of forward passes in training, which masks of Dropout follow; 0 without Dropout.
    /// Part of a checkpoint.  Waits for the stream.
    pub fn get_step(&self, stream: Stream) -> Result<i64> {
        let mut t = 0;
        // SAFETY: `t` is written during the call.
        self.handle
            .call(|graph| unsafe { sys::mp_graph_get_step_sync(graph, &mut t, stream.0) })?;
        Ok(t)
    }

    /// Sets that number from a checkpoint.  Waits for the stream.
    pub fn set_step(&self, t: i64, stream: Stream) -> Result<()> {
        // SAFETY: the graph lives.
        self.handle.call(|graph| unsafe { sys::mp_graph_set_step_sync(graph, t, stream.0) })
    }

    fn require_elements(&self, call: &str) -> Result<()> {
        for input in &self.inputs {
            if let Some((len, _)) = &input.bound {
                let info = self.info(input.tensor)?;
                at_least(call, &name_of(&info), *len, numel(&info) as i128)?;
            }
        }
        Ok(())
    }

    /// The index of an input.
    fn input(&self, tensor: TensorId) -> Result<usize> {
        (self.inputs.iter().position(|input| input.tensor == tensor))
            .ok_or_else(|| Error::invalid(format!("bind: tensor {} is no input", tensor.index())))
    }

    fn info(&self, tensor: TensorId) -> Result<sys::mp_graph_tensor_t> {
        info_of(&self.handle, tensor)
    }

    // ------------------------------------------------------------------ what became of it

    /// Of all parameters, in the order of their creation.  None: there is no loss.
    pub fn grads(&self) -> Option<&TensorList> {
        self.grads.as_ref()
    }

    /// The parameters themselves.
    pub fn master(&self) -> &TensorList {
        &self.master
    }

    /// Their 16-bit copies.  None: no parameter has one.
    pub fn model(&self) -> Option<&TensorList> {
        self.model.as_ref()
    }

    /// One that updates all parameters and their copies.
    pub fn optimizer(&self, kind: OptimizerKind) -> Result<OptimizerBuilder<'_>> {
        let context = self.handle.context();
        let builder = Optimizer::builder(context, kind, self.trained()?, &self.master);
        Ok(self.with_model(builder))
    }

    /// The same of a name, see [`Optimizer::named`].
    pub fn optimizer_named(&self, name: &str, lr: f32) -> Result<OptimizerBuilder<'_>> {
        let builder =
            Optimizer::named(self.handle.context(), name, lr, self.trained()?, &self.master)?;
        Ok(self.with_model(builder))
    }

    fn trained(&self) -> Result<&TensorList> {
        (self.grads.as_ref())
            .ok_or_else(|| Error::invalid("optimizer: the network has no loss".to_string()))
    }

    fn with_model<'n>(&'n self, builder: OptimizerBuilder<'n>) -> OptimizerBuilder<'n> {
        match &self.model {
            Some(model) => builder.model(model),
            None => builder,
        }
    }

    /// What became of a tensor.
    pub fn tensor(&self, tensor: TensorId) -> Result<NetworkTensor> {
        Ok(NetworkTensor::new(&self.info(tensor)?))
    }

    /// Its elements, of the type that they have in memory: i64 for what is counted, `correct` of a SoftmaxXent.
    /// Of an input, what is bound.
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

    /// Its cast or 16-bit copy.
    pub fn copy<T: Plain>(&self, tensor: TensorId) -> Result<View<'_, T>> {
        let info = self.info(tensor)?;
        self.part("copy", tensor, &info, (info.copy, info.dtype_copy), numel(&info))
    }

    /// Its gradient: of a parameter, or of what keeps it.
    pub fn grad<T: Plain>(&self, tensor: TensorId) -> Result<View<'_, T>> {
        let info = self.info(tensor)?;
        self.part("grad", tensor, &info, (info.grad, info.dtype_grad), numel(&info))
    }

    fn part<T: Plain>(
        &self,
        call: &str,
        tensor: TensorId,
        info: &sys::mp_graph_tensor_t,
        (pointer, dtype): (*mut c_void, u32),
        len: usize,
    ) -> Result<View<'_, T>> {
        if pointer.is_null() {
            let sentence = format!("{call}: {} has none that lasts", name_of(info));
            return Err(Error::invalid(sentence));
        }
        self.require_type::<T>(call, tensor, dtype)?;
        let owner = self.handle.owner();
        Ok(View { owner, pointer: pointer.cast(), len, borrowed: PhantomData })
    }

    fn require_type<T: Plain>(&self, call: &str, tensor: TensorId, dtype: u32) -> Result<()> {
        fn named<E: Plain>() -> (TypeId, &'static str) {
            (TypeId::of::<E>(), type_name::<E>())
        }
        let (wanted, name) = match known(dtype) {
            Some(Dtype::Fp32) => named::<f32>(),
            Some(Dtype::Fp16) => named::<F16>(),
            Some(Dtype::Bf16) => named::<Bf16>(),
            _ if self.counters.contains(&tensor) => named::<i64>(),
            _ if self.inputs.iter().any(|input| input.tensor == tensor) => named::<i32>(),
            _ => named::<u8>(),
        };
        if TypeId::of::<T>() == wanted {
            return Ok(());
        }
        let index = tensor.index();
        Err(Error::invalid(format!("{call}: the elements of tensor {index} are {name}")))
    }

    /// Bytes, by what they are for.
    pub fn memory(&self) -> Result<NetworkMemory> {
        let mut memory = NetworkMemory::zeroed();
        // SAFETY: the graph lives, and `memory` says how large it is.
        self.handle.call(|graph| unsafe { sys::mp_graph_get_memory(graph, &mut memory) })?;
        Ok(memory)
    }

    /// How the operations came to their types.
    pub fn explain(&self, form: AutocastForm) -> Result<String> {
        read_text(|text, bytes| {
            // SAFETY: the graph lives; text is NULL, or has room for so many bytes.
            self.handle
                .call(|graph| unsafe { sys::mp_graph_explain(graph, form as u32, text, bytes) })
        })
    }

    /// What is launched, in order: one line per launch.
    pub fn describe(&self) -> Result<String> {
        read_text(|text, bytes| {
            // SAFETY: as in explain.
            self.handle.call(|graph| unsafe { sys::mp_graph_describe(graph, text, bytes) })
        })
    }
}

/// What became of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkTensor {
    /// As it was given; that of its node, for an output.
    pub name: String,
    /// As it is in memory; `DtypeNone` for integers.
    pub dtype: Dtype,
    /// Of its cast or 16-bit copy.
    pub dtype_copy: Option<Dtype>,
    /// Of its gradient.
    pub dtype_grad: Option<Dtype>,
    /// For the batch that is set.
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

/// Right after the tensor was asked for.
fn name_of(info: &sys::mp_graph_tensor_t) -> String {
    // SAFETY: NUL-terminated, and the graph, which the caller borrows, has it.
    unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned()
}
