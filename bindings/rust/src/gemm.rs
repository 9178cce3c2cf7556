//! Matrix products (GEMM).

use crate::context::{Context, Data, Float, Stream, View};
use crate::enums::{Activation, Dtype, Op};
use crate::epilogue::{operand, workspace_of, Epilogue, Operand};
use crate::error::{check, read_text, Error, Result};
use crate::kernels::{self, KernelInfo, Plan};
use crate::sys;
use std::ffi::c_void;

/// A product D = epilogue(alpha op(A) op(B) + beta C): set options, then call [`run`](Gemm::run).
/// The methods correspond to the fields of `mp_gemm_desc_t` and `mp_epilogue_t`.
pub struct Gemm<'a> {
    pub(crate) context: &'a Context,
    pub(crate) desc: sys::mp_gemm_desc_t,
    pub(crate) epilogue: Epilogue<'a>,
    plan: Option<Box<Plan>>,
    lda_given: bool,
    ldb_given: bool,
    pub(crate) c: Option<Operand<'a>>,
    pub(crate) workspace: Option<View<'a, u8>>,
    pub(crate) stream: Stream,
}

impl Context {
    /// Begins a product of dense, row-major matrices: op(A) is m x k, op(B) k x n, D m x n.
    pub fn gemm(&self, m: usize, n: usize, k: usize) -> Gemm<'_> {
        let desc = sys::mp_gemm_desc_default(
            m as i64,
            n as i64,
            k as i64,
            sys::MP_DTYPE_NONE,
            sys::MP_DTYPE_NONE,
        );
        Gemm {
            context: self,
            desc,
            epilogue: Epilogue::default(),
            plan: None,
            lda_given: false,
            ldb_given: false,
            c: None,
            workspace: None,
            stream: Stream::DEFAULT,
        }
    }
}

impl<'a> Gemm<'a> {
    /// Transposes A, which is stored as k x m.
    pub fn transpose_a(mut self) -> Self {
        self.desc.op_a = Op::T as u32;
        self
    }

    /// Transposes B, which is stored as n x k.
    pub fn transpose_b(mut self) -> Self {
        self.desc.op_b = Op::T as u32;
        self
    }

    /// Sets the leading dimensions of A, of B, and of C and D, in elements.
    pub fn ld(mut self, a: usize, b: usize, cd: usize) -> Self {
        self.desc.ld_a = a as i64;
        self.desc.ld_b = b as i64;
        self.desc.ld_c = cd as i64;
        self.desc.ld_d = cd as i64;
        self.lda_given = true;
        self.ldb_given = true;
        self
    }

    /// Computes `count` products, with the given strides between matrices of A, of B, and of C and
    /// D, in elements.
    pub fn batch(mut self, count: u32, a: usize, b: usize, cd: usize) -> Self {
        self.desc.batch_count = count as i32; // the library rejects negative values
        self.desc.stride_a = a as i64;
        self.desc.stride_b = b as i64;
        self.desc.stride_c = cd as i64;
        self.desc.stride_d = cd as i64;
        self
    }

    /// Sets the factor of the product; default 1.
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.desc.alpha = alpha;
        self
    }

    /// Sets the factor of `c`, or of D if `c` is not set; default 0.
    pub fn beta(mut self, beta: f32) -> Self {
        self.desc.beta = beta;
        self
    }

    /// Sets C: m x n, of the type of D.
    pub fn c<D: Data>(mut self, c: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.c = Some(operand(c));
        self
    }

    /// Adds a bias of n elements to every row.
    pub fn bias<D: Data>(mut self, bias: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.epilogue = self.epilogue.bias(bias);
        self
    }

    /// Sets the activation, which is applied last.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.epilogue = self.epilogue.activation(activation);
        self
    }

    /// Sets aux: m x n, of the type of D.  It is written before the activation; derivatives such as
    /// `Drelu` read it.
    pub fn aux<D: Data>(mut self, aux: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.epilogue = self.epilogue.aux(aux);
        self
    }

    /// Stores the n column sums of D.
    pub fn dbias<D: Data<Element = f32>>(mut self, dbias: &'a D) -> Self {
        self.epilogue = self.epilogue.dbias(dbias);
        self
    }

    /// Multiplies alpha by a number on the device.
    pub fn scale<D: Data<Element = f32>>(mut self, scale: &'a D) -> Self {
        self.epilogue = self.epilogue.scale(scale);
        self
    }

    /// Updates 1 number to max(amax, |D|).
    pub fn amax<D: Data<Element = f32>>(mut self, amax: &'a D) -> Self {
        self.epilogue = self.epilogue.amax(amax);
        self
    }

    /// Sets 1 number to 1 if D contains an infinity or a NaN: `&scaler.found_inf()`.
    pub fn found_inf<D: Data<Element = f32>>(mut self, found_inf: &'a D) -> Self {
        self.epilogue = self.epilogue.found_inf(found_inf);
        self
    }

    /// Sets the workspace; the fastest kernel uses [`workspace_size`](Gemm::workspace_size) bytes.
    pub fn workspace<D: Data<Element = u8>>(mut self, workspace: &'a D) -> Self {
        self.workspace = Some(workspace.view());
        self
    }

    /// Selects a kernel by name, for tests.
    pub fn kernel(mut self, name: &str) -> Self {
        self.plan = kernels::named(name);
        self
    }

    /// Selects a plan of [`get_plan`](Gemm::get_plan).
    pub fn plan(mut self, plan: &Plan) -> Self {
        self.plan = Some(Box::new(*plan));
        self
    }

    /// Sets the stream.
    pub fn stream(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// Returns the useful workspace size in bytes for the given types of A, B and D.
    pub fn workspace_size<AB: Float, CD: Float>(&self) -> Result<usize> {
        let (desc, epilogue) = self.query(AB::DTYPE, CD::DTYPE)?;
        let mut bytes = 0;
        // SAFETY: the descriptor lives during the call, and so does the plan in it.
        check(unsafe {
            sys::mp_gemm_workspace_size(self.context.as_raw(), &desc, &epilogue, &mut bytes)
        })?;
        Ok(bytes)
    }

    /// Returns the fastest plan for the given types of A, B and D.
    pub fn get_plan<AB: Float, CD: Float>(&self, max_workspace_bytes: usize) -> Result<Plan> {
        let (desc, epilogue) = self.query(AB::DTYPE, CD::DTYPE)?;
        // SAFETY: as above; `plan` is written.
        kernels::plan(|plan| unsafe {
            sys::mp_gemm_get_plan(
                self.context.as_raw(),
                &desc,
                &epilogue,
                max_workspace_bytes,
                plan,
            )
        })
    }

    /// Describes the plan for the given types of A, B and D, for people.
    pub fn explain<AB: Float, CD: Float>(&self) -> Result<String> {
        let (desc, epilogue) = self.query(AB::DTYPE, CD::DTYPE)?;
        read_text(|text, bytes| {
            // SAFETY: as above; text is NULL or has `bytes` bytes.
            check(unsafe {
                sys::mp_gemm_explain(self.context.as_raw(), &desc, &epilogue, text, bytes)
            })
        })
    }

    pub(crate) fn query(&self, ab: Dtype, cd: Dtype) -> Result<(sys::mp_gemm_desc_t, sys::mp_epilogue_t)> {
        let mut desc = self.desc;
        self.complete(&mut desc, ab, cd);
        let (_, _, of_d) = extents(&desc);
        let epilogue = self.epilogue.raw(self.context, "gemm", desc.n.into(), of_d, cd)?;
        Ok((desc, epilogue))
    }

    /// Returns all kernels, first the one that is selected.
    pub fn kernels<AB: Float, CD: Float>(&self) -> Result<Vec<KernelInfo>> {
        let mut desc = self.desc;
        self.complete(&mut desc, AB::DTYPE, CD::DTYPE);
        // SAFETY: as above; `info` is written.
        kernels::all(|index, info| unsafe {
            sys::mp_gemm_kernel_info(self.context.as_raw(), &desc, index, info)
        })
    }

    /// Enqueues the product of `a` and `b` into `d`.
    pub fn run<A, B, D>(self, a: &A, b: &B, d: &D) -> Result<()>
    where
        A: Data,
        B: Data<Element = A::Element>,
        D: Data,
        A::Element: Float,
        D::Element: Float,
    {
        let call = self.checked("gemm", a, b, d)?;
        // SAFETY: every pointer belongs to this context and has at least the elements that the call
        // reads or writes, as checked above; `self` borrows them, and freeing device memory waits
        // for the kernel.
        self.context.call(|| unsafe {
            sys::mp_gemm(
                self.context.as_raw(),
                &call.desc,
                call.a,
                call.b,
                call.c,
                call.d,
                &call.epilogue,
                call.workspace,
                call.bytes,
                self.stream.0,
            )
        })
    }

    /// Checks that all arguments of `call` belong to the context and are large enough.
    pub(crate) fn checked<A, B, D>(&self, call: &str, a: &A, b: &B, d: &D) -> Result<Checked>
    where
        A: Data,
        B: Data<Element = A::Element>,
        D: Data,
        A::Element: Float,
        D::Element: Float,
    {
        let (a, b, d) = (operand(a), operand(b), operand(d));
        let c = self.c.unwrap_or(d);
        let mut desc = self.desc;
        self.complete(&mut desc, a.dtype, d.dtype);
        let (of_a, of_b, of_d) = extents(&desc);
        for (name, operand, needed) in
            [("a", a, of_a), ("b", b, of_b), ("d", d, of_d), ("c", c, of_d)]
        {
            operand.check(self.context, call, name, needed)?;
        }
        if c.dtype != d.dtype {
            return Err(Error::invalid(format!("{call}: c must have the type of d")));
        }
        let epilogue = self.epilogue.raw(self.context, call, desc.n.into(), of_d, d.dtype)?;
        let (workspace, bytes) = workspace_of(self.context, call, self.workspace.as_ref())?;
        let (a, b, c, d) = (a.pointer, b.pointer, c.pointer, d.pointer);
        Ok(Checked { desc, a, b, c, d, epilogue, workspace, bytes })
    }

    pub(crate) fn complete(&self, desc: &mut sys::mp_gemm_desc_t, ab: Dtype, cd: Dtype) {
        desc.dtype_ab = ab as u32;
        desc.dtype_cd = cd as u32;
        if desc.op_a == Op::T as u32 && !self.lda_given {
            desc.ld_a = desc.m;
        }
        if desc.op_b == Op::T as u32 && !self.ldb_given {
            desc.ld_b = desc.k;
        }
        desc.plan = kernels::pointer(&self.plan);
    }
}

/// Result of `Gemm::checked`; the plan in `desc` belongs to the `Gemm`.
pub(crate) struct Checked {
    pub(crate) desc: sys::mp_gemm_desc_t,
    pub(crate) a: *mut c_void,
    pub(crate) b: *mut c_void,
    pub(crate) c: *mut c_void,
    pub(crate) d: *mut c_void,
    pub(crate) epilogue: sys::mp_epilogue_t,
    pub(crate) workspace: *mut c_void,
    pub(crate) bytes: usize,
}

/// Returns the number of elements from the first to the last of A, of B and of D.
pub(crate) fn extents(desc: &sys::mp_gemm_desc_t) -> (i128, i128, i128) {
    let matrix = |rows: i64, columns: i64, ld: i64, stride: i64| -> i128 {
        if rows == 0 || columns == 0 || desc.batch_count == 0 {
            return 0;
        }
        // A count that overflowed is negative, and the library rejects it.
        let [last_row, last_batch] = [i128::from(rows) - 1, i128::from(desc.batch_count) - 1];
        last_row * i128::from(ld) + i128::from(columns) + last_batch * i128::from(stride)
    };
    let turned = |op: u32, rows, columns| if op == Op::T as u32 { (columns, rows) } else { (rows, columns) };
    let (a_rows, a_columns) = turned(desc.op_a, desc.m, desc.k);
    let (b_rows, b_columns) = turned(desc.op_b, desc.k, desc.n);
    (
        matrix(a_rows, a_columns, desc.ld_a, desc.stride_a),
        matrix(b_rows, b_columns, desc.ld_b, desc.stride_b),
        matrix(desc.m, desc.n, desc.ld_d, desc.stride_d),
    )
}
