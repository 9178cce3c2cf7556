//! Matrix products.

use crate::context::{at_least, Context, Data, Float, Stream, View};
use crate::enums::{Activation, Dtype, Op};
use crate::error::{check, Error, Result};
use crate::sys;
use std::ffi::{c_void, CString};
use std::marker::PhantomData;
use std::ptr;

/// A pointer of the epilogue: what it points to, and how many elements are there.
#[derive(Clone, Copy)]
struct Operand {
    context: sys::mp_context_t,
    pointer: *mut c_void,
    len: usize,
    dtype: Dtype,
}

fn operand<D: Data>(data: &D) -> Operand
where
    D::Element: Float,
{
    let view = data.view();
    Operand {
        context: view.context,
        pointer: view.pointer.cast(),
        len: view.len,
        dtype: D::Element::DTYPE,
    }
}

/// D = epilogue(alpha op(A) op(B) + beta C): say what differs from a plain product, then
/// [`run`](Gemm::run) it.  The members are those of `mp_gemm_desc_t` and `mp_epilogue_t`.
pub struct Gemm<'a> {
    context: &'a Context,
    desc: sys::mp_gemm_desc_t,
    epilogue: sys::mp_epilogue_t,
    kernel: Option<CString>,
    lda_given: bool,
    ldb_given: bool,
    bias: Option<Operand>,
    c: Option<Operand>,
    aux: Option<Operand>,
    dbias: Option<Operand>,
    scale: Option<Operand>,
    amax: Option<Operand>,
    found_inf: Option<Operand>,
    workspace: Option<View<'a, u8>>,
    stream: Stream,
    borrowed: PhantomData<&'a ()>,
}

impl Context {
    /// op(A) is m x k, op(B) k x n, D m x n: row-major, dense.
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
            epilogue: sys::mp_epilogue_default(),
            kernel: None,
            lda_given: false,
            ldb_given: false,
            bias: None,
            c: None,
            aux: None,
            dbias: None,
            scale: None,
            amax: None,
            found_inf: None,
            workspace: None,
            stream: Stream::DEFAULT,
            borrowed: PhantomData,
        }
    }
}

impl<'a> Gemm<'a> {
    /// A lies in memory as k x m.
    pub fn transpose_a(mut self) -> Self {
        self.desc.op_a = Op::T as u32;
        self
    }

    /// B lies in memory as n x k.
    pub fn transpose_b(mut self) -> Self {
        self.desc.op_b = Op::T as u32;
        self
    }

    /// Elements between the rows of A, of B and of C and D.
    pub fn ld(mut self, a: usize, b: usize, cd: usize) -> Self {
        self.desc.lda = a as i64;
        self.desc.ldb = b as i64;
        self.desc.ldc = cd as i64;
        self.desc.ldd = cd as i64;
        self.lda_given = true;
        self.ldb_given = true;
        self
    }

    /// `count` products, with so many elements between the matrices of A, of B and of C and D.
    pub fn batch(mut self, count: u32, a: usize, b: usize, cd: usize) -> Self {
        self.desc.batch_count = count as i32; // the library refuses what has become negative
        self.desc.stride_a = a as i64;
        self.desc.stride_b = b as i64;
        self.desc.stride_c = cd as i64;
        self.desc.stride_d = cd as i64;
        self
    }

    /// Multiplies the product; 1 by itself.
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.desc.alpha = alpha;
        self
    }

    /// Multiplies what is in D, or in `c` where that is given; 0 by itself.
    pub fn beta(mut self, beta: f32) -> Self {
        self.desc.beta = beta;
        self
    }

    /// m x n, of the type of D.
    pub fn c<D: Data>(mut self, c: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.c = Some(operand(c));
        self
    }

    /// n elements, added to every row.
    pub fn bias<D: Data>(mut self, bias: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.bias = Some(operand(bias));
        self
    }

    /// Applied last.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.epilogue.activation = activation as u32;
        self
    }

    /// m x n, of the type of D: written before the activation; read by `Drelu` and `Dgelu`.
    pub fn aux<D: Data>(mut self, aux: &'a D) -> Self
    where
        D::Element: Float,
    {
        self.aux = Some(operand(aux));
        self
    }

    /// n sums over the rows of D.
    pub fn dbias<D: Data<Element = f32>>(mut self, dbias: &'a D) -> Self {
        self.dbias = Some(operand(dbias));
        self
    }

    /// 1 number on the device that multiplies alpha.
    pub fn scale<D: Data<Element = f32>>(mut self, scale: &'a D) -> Self {
        self.scale = Some(operand(scale));
        self
    }

    /// 1 number that becomes max(itself, |D|).
    pub fn amax<D: Data<Element = f32>>(mut self, amax: &'a D) -> Self {
        self.amax = Some(operand(amax));
        self
    }

    /// 1 number that becomes 1 where D has an infinity or a NaN: `&scaler.found_inf()`.
    pub fn found_inf<D: Data<Element = f32>>(mut self, found_inf: &'a D) -> Self {
        self.found_inf = Some(operand(found_inf));
        self
    }

    /// Scratch memory; [`workspace_size`](Gemm::workspace_size) bytes let the fastest kernel run.
    pub fn workspace<D: Data<Element = u8>>(mut self, workspace: &'a D) -> Self {
        self.workspace = Some(workspace.view());
        self
    }

    /// For tests: the kernel of that name.
    pub fn kernel(mut self, name: &str) -> Self {
        self.kernel = CString::new(name).ok();
        self
    }

    /// Where it is enqueued.
    pub fn stream(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// Bytes of workspace that help this product of A and B of one type and D of another.
    pub fn workspace_size<AB: Float, CD: Float>(&self) -> Result<usize> {
        let mut desc = self.desc;
        self.complete(&mut desc, AB::DTYPE, CD::DTYPE);
        let mut bytes = 0;
        // SAFETY: the descriptor lives during the call, and so does the name in it.
        check(unsafe { sys::mp_gemm_workspace_size(self.context.as_raw(), &desc, &mut bytes) })?;
        Ok(bytes)
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
        let (a, b, d) = (operand(a), operand(b), operand(d));
        let c = self.c.unwrap_or(d);
        let mut desc = self.desc;
        self.complete(&mut desc, a.dtype, d.dtype);
        let epilogue = self.check_operands(&desc, a, b, c, d)?;
        let (workspace, bytes) =
            self.workspace.map_or((ptr::null_mut(), 0), |w| (w.pointer, w.len));
        // SAFETY: every pointer belongs to this context and has, as check_operands has seen, at least
        // the elements that the call reads or writes; `self` keeps them borrowed, and device memory
        // freed later waits for the kernel.
        check(unsafe {
            sys::mp_gemm(
                self.context.as_raw(),
                &desc,
                a.pointer,
                b.pointer,
                c.pointer,
                d.pointer,
                &epilogue,
                workspace.cast(),
                bytes,
                self.stream.0,
            )
        })
    }

    fn complete(&self, desc: &mut sys::mp_gemm_desc_t, ab: Dtype, cd: Dtype) {
        desc.dtype_ab = ab as u32;
        desc.dtype_cd = cd as u32;
        if desc.op_a == Op::T as u32 && !self.lda_given {
            desc.lda = desc.m;
        }
        if desc.op_b == Op::T as u32 && !self.ldb_given {
            desc.ldb = desc.k;
        }
        desc.kernel = self.kernel.as_ref().map_or(ptr::null(), |name| name.as_ptr());
    }

    fn check_operands(
        &self,
        desc: &sys::mp_gemm_desc_t,
        a: Operand,
        b: Operand,
        c: Operand,
        d: Operand,
    ) -> Result<sys::mp_epilogue_t> {
        let n = i128::from(desc.n);
        let matrix = |rows: i64, columns: i64, ld: i64, stride: i64| -> i128 {
            if rows == 0 || columns == 0 || desc.batch_count == 0 {
                return 0;
            }
            let batches = i128::from(desc.batch_count - 1);
            i128::from(rows - 1) * i128::from(ld)
                + i128::from(columns)
                + batches * i128::from(stride)
        };
        let turned =
            |op: u32, rows, columns| if op == 0 { (rows, columns) } else { (columns, rows) };
        let (a_rows, a_columns) = turned(desc.op_a, desc.m, desc.k);
        let (b_rows, b_columns) = turned(desc.op_b, desc.k, desc.n);
        let of_d = matrix(desc.m, desc.n, desc.ldd, desc.stride_d);
        let needs = [
            ("a", Some(a), matrix(a_rows, a_columns, desc.lda, desc.stride_a)),
            ("b", Some(b), matrix(b_rows, b_columns, desc.ldb, desc.stride_b)),
            ("d", Some(d), of_d),
            ("c", Some(c), of_d),
            ("aux", self.aux, of_d),
            ("bias", self.bias, n),
            ("dbias", self.dbias, n),
            ("scale", self.scale, 1),
            ("amax", self.amax, 1),
            ("found_inf", self.found_inf, 1),
        ];
        for (name, operand, needed) in needs {
            if let Some(operand) = operand {
                let Operand { context, pointer, len, .. } = operand;
                let view = View { context, pointer, len, borrowed: PhantomData };
                self.context.owns("gemm", name, &view)?;
                at_least("gemm", name, len, needed)?;
            }
        }
        for (name, operand) in [("c", Some(c)), ("aux", self.aux)] {
            if operand.map_or(false, |o| o.dtype != d.dtype) {
                return Err(Error::invalid(format!("gemm: {name} has not the type of d")));
            }
        }
        if let Some(workspace) = &self.workspace {
            self.context.owns("gemm", "workspace", workspace)?;
        }

        let pointer = |o: Option<Operand>| o.map_or(ptr::null_mut(), |o| o.pointer);
        let mut epilogue = self.epilogue;
        epilogue.bias = pointer(self.bias);
        epilogue.bias_dtype = self.bias.map_or(0, |o| o.dtype as u32);
        epilogue.aux = pointer(self.aux);
        epilogue.dbias = pointer(self.dbias).cast();
        epilogue.scale = pointer(self.scale).cast();
        epilogue.amax = pointer(self.amax).cast();
        epilogue.found_inf = pointer(self.found_inf).cast();
        Ok(epilogue)
    }
}
