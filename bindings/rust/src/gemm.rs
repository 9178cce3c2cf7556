//! Matrix products (GEMM).

use crate::context::{Context, Data, Float, Stream, View};
use crate::enums::{Activation, Dtype, Op};
use crate::epilogue::{operand, Epilogue, Operand};
use crate::error::{read, read_text, Error, Result};
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
    ld_given: bool,
    pub(crate) c: Option<Operand<'a>>,
    pub(crate) workspace: Option<View<'a, u8>>,
    pub(crate) stream: Stream,
}

impl Context {
    /// Begins a product of dense, row-major matrices: op(A) is m x k, op(B) k x n, D m x n.
    pub fn gemm(&self, m: usize, n: usize, k: usize) -> Gemm<'_> {
        let ([m, n, k], none) = ([m, n, k].map(|extent| extent as i64), sys::MP_DTYPE_NONE);
        let desc = sys::mp_gemm_desc_default(m, n, k, none, none);
        Gemm {
            context: self,
            desc,
            epilogue: Epilogue::default(),
            plan: None,
            ld_given: false,
            c: None,
            workspace: None,
            stream: Stream::DEFAULT,
        }
    }
}

impl<'a> Gemm<'a> {
    epilogue_setters! { epilogue }

    setters! {
        /// Transposes A, which is stored as k x m.
        fn transpose_a(self) { self.desc.op_a = Op::T as u32; }
        /// Transposes B, which is stored as n x k.
        fn transpose_b(self) { self.desc.op_b = Op::T as u32; }
        /// Sets the leading dimensions of A, of B, and of C and D, in elements.
        fn ld(self, a: usize, b: usize, cd: usize) {
            self.desc.ld_a = a as i64;
            self.desc.ld_b = b as i64;
            self.desc.ld_c = cd as i64;
            self.desc.ld_d = cd as i64;
            self.ld_given = true;
        }
        /// Computes `count` products, with the given strides between matrices of A, of B, and of C
        /// and D, in elements.
        fn batch(self, count: u32, a: usize, b: usize, cd: usize) {
            self.desc.batch_count = count as i32; // the library rejects negative values
            self.desc.stride_a = a as i64;
            self.desc.stride_b = b as i64;
            self.desc.stride_c = cd as i64;
            self.desc.stride_d = cd as i64;
        }
        /// Sets the factor of the product; default 1.
        fn alpha(self, alpha: f32) { self.desc.alpha = alpha; }
        /// Sets the factor of `c`, or of D if `c` is not set; default 0.
        fn beta(self, beta: f32) { self.desc.beta = beta; }
        /// Sets C: m x n, of the type of D.
        fn c<E: Float>(self, c: &'a impl Data<Element = E>) { self.c = Some(operand(c)); }
        /// Sets the workspace; the fastest kernel uses [`workspace_size`](Gemm::workspace_size)
        /// bytes.
        fn workspace(self, workspace: &'a impl Data<Element = u8>) {
            self.workspace = Some(workspace.view());
        }
        /// Selects a kernel by name, for tests.
        fn kernel(self, name: &str) { self.plan = kernels::named(name); }
        /// Selects a plan of [`get_plan`](Gemm::get_plan).
        fn plan(self, plan: &Plan) { self.plan = Some(Box::new(*plan)); }
        /// Sets the stream.
        fn stream(self, stream: Stream) { self.stream = stream; }
    }

    /// Returns the useful workspace size in bytes for the given types of A, B and D.
    pub fn workspace_size<AB: Float, CD: Float>(&self) -> Result<usize> {
        let (desc, epilogue) = self.query::<AB, CD>()?;
        query!(self.context, read(bytes), mp_gemm_workspace_size(&desc, &epilogue))
    }

    /// Returns the fastest plan for the given types of A, B and D.
    pub fn get_plan<AB: Float, CD: Float>(&self, max_workspace_bytes: usize) -> Result<Plan> {
        let (desc, epilogue) = self.query::<AB, CD>()?;
        query!(
            self.context,
            kernels::plan(plan),
            mp_gemm_get_plan(&desc, &epilogue, max_workspace_bytes)
        )
    }

    /// Describes the plan for the given types of A, B and D, for people.
    pub fn explain<AB: Float, CD: Float>(&self) -> Result<String> {
        let (desc, epilogue) = self.query::<AB, CD>()?;
        query!(self.context, read_text(text, bytes), mp_gemm_explain(&desc, &epilogue))
    }

    pub(crate) fn query<AB: Float, CD: Float>(
        &self,
    ) -> Result<(sys::mp_gemm_desc_t, sys::mp_epilogue_t)> {
        let desc = self.complete(AB::DTYPE, CD::DTYPE);
        let (_, _, of_d) = extents(&desc);
        let checks = self.context.checks("gemm");
        Ok((desc, self.epilogue.raw(checks, desc.n.into(), of_d, CD::DTYPE)?))
    }

    /// Returns all kernels, first the one that is selected.
    pub fn kernels<AB: Float, CD: Float>(&self) -> Result<Vec<KernelInfo>> {
        let desc = self.complete(AB::DTYPE, CD::DTYPE);
        query!(self.context, kernels::all(index, info), mp_gemm_kernel_info(&desc))
    }

    /// Enqueues the product of `a` and `b` into `d`.
    pub fn run<AB: Float, CD: Float>(
        self, a: &impl Data<Element = AB>, b: &impl Data<Element = AB>, d: &impl Data<Element = CD>,
    ) -> Result<()> {
        let Checked { desc, pointers: [a, b, c, d], epilogue, space, bytes } =
            self.checked("gemm", operand(a), operand(b), operand(d))?;
        run!(self.context, mp_gemm(&desc, a, b, c, d, &epilogue, space, bytes, self.stream.0))
    }

    /// Checks that all arguments of `call` belong to the context and are large enough.
    pub(crate) fn checked(
        &self, call: &str, a: Operand<'_>, b: Operand<'_>, d: Operand<'_>,
    ) -> Result<Checked> {
        let (c, checks) = (self.c.unwrap_or(d), self.context.checks(call));
        let desc = self.complete(a.dtype, d.dtype);
        let (of_a, of_b, of_d) = extents(&desc);
        for (name, operand, needed) in
            [("a", a, of_a), ("b", b, of_b), ("d", d, of_d), ("c", c, of_d)]
        {
            operand.check(checks, name, needed)?;
        }
        if c.dtype != d.dtype {
            return Err(Error::invalid(format!("{call}: c must have the type of d")));
        }
        let epilogue = self.epilogue.raw(checks, desc.n.into(), of_d, d.dtype)?;
        let (space, bytes) = checks.workspace(self.workspace)?;
        let pointers = [a, b, c, d].map(|operand| operand.pointer);
        Ok(Checked { desc, pointers, epilogue, space, bytes })
    }

    pub(crate) fn complete(&self, ab: Dtype, cd: Dtype) -> sys::mp_gemm_desc_t {
        let mut desc = self.desc;
        desc.dtype_ab = ab as u32;
        desc.dtype_cd = cd as u32;
        if desc.op_a == Op::T as u32 && !self.ld_given {
            desc.ld_a = desc.m;
        }
        if desc.op_b == Op::T as u32 && !self.ld_given {
            desc.ld_b = desc.k;
        }
        desc.plan = kernels::pointer(&self.plan);
        desc
    }
}

/// Result of `Gemm::checked`: a, b, c, d and others; the plan in `desc` belongs to the `Gemm`.
pub(crate) struct Checked {
    pub(crate) desc: sys::mp_gemm_desc_t,
    pub(crate) pointers: [*mut c_void; 4],
    pub(crate) epilogue: sys::mp_epilogue_t,
    pub(crate) space: *mut c_void,
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
    let turned =
        |op: u32, rows, columns| if op == Op::T as u32 { (columns, rows) } else { (rows, columns) };
    let (a_rows, a_columns) = turned(desc.op_a, desc.m, desc.k);
    let (b_rows, b_columns) = turned(desc.op_b, desc.k, desc.n);
    (
        matrix(a_rows, a_columns, desc.ld_a, desc.stride_a),
        matrix(b_rows, b_columns, desc.ld_b, desc.stride_b),
        matrix(desc.m, desc.n, desc.ld_d, desc.stride_d),
    )
}
