//! Batched, grouped and ragged GEMM.

use crate::context::{at_least, Context, Data, DeviceBuffer, Float, View};
use crate::enums::{Dtype, Op, Ragged};
use crate::epilogue::{operand, workspace_of, OutputOptions};
use crate::error::{check, Error, Result};
use crate::gemm::{extents, Gemm};
use crate::kernels::{self, Plan};
use crate::owner::Owner;
use crate::sys;
use std::marker::PhantomData;

/// Matrices at arbitrary addresses, for [`Gemm::run_batched`].  Stores the addresses on the device.
pub struct Matrices<T: Float> {
    context: Context,
    table: DeviceBuffer<i64>,
    shortest: usize,
    _used: Vec<Owner>,
    element: PhantomData<T>,
}

impl<T: Float> Matrices<T> {
    /// Creates a table of the given matrices.
    pub fn new(context: &Context, matrices: &[View<'_, T>]) -> Result<Self> {
        for (i, view) in matrices.iter().enumerate() {
            context.owns("Matrices", &format!("matrices[{i}]"), view)?;
        }
        let addresses: Vec<_> = matrices.iter().map(|view| view.pointer as usize as i64).collect();
        let shortest = matrices.iter().map(|view| view.len).min().unwrap_or(0);
        let table = context.upload(&addresses)?;
        let used = matrices.iter().map(|view| view.owner.clone()).collect();
        let context = context.clone();
        Ok(Matrices { context, table, shortest, _used: used, element: PhantomData })
    }
}

impl<'a> Gemm<'a> {
    /// Enqueues d\[i\] = epilogue(alpha op(a\[i\]) op(b\[i\]) + beta d\[i\]) for all i.  Does not
    /// support `batch`, `c`, `aux`, `dbias` and `amax`.
    pub fn run_batched<AB: Float, CD: Float>(
        self,
        a: &Matrices<AB>,
        b: &Matrices<AB>,
        d: &Matrices<CD>,
    ) -> Result<()> {
        let call = "gemm_batched";
        if self.c.is_some() {
            return Err(Error::invalid(format!("{call}: c is not supported; C is read from d")));
        }
        let mut desc = self.desc;
        self.complete(&mut desc, AB::DTYPE, CD::DTYPE);
        desc.batch_count = 1;
        let (of_a, of_b, of_d) = extents(&desc); // of each; the library refuses strides
        desc.batch_count = i32::try_from(a.table.len()).map_err(|_| {
            Error::invalid(format!(
                "{call}: a has {} matrices, which exceeds 2^31 - 1",
                a.table.len()
            ))
        })?;
        let matrices = [
            ("a", &a.context, &a.table, a.shortest, of_a),
            ("b", &b.context, &b.table, b.shortest, of_b),
            ("d", &d.context, &d.table, d.shortest, of_d),
        ];
        for (name, context, table, shortest, needed) in matrices {
            self.context.is(call, name, context)?;
            if table.len() != a.table.len() {
                return Err(Error::invalid(format!(
                    "{call}: {name} has {} matrices, but a has {}",
                    table.len(),
                    a.table.len()
                )));
            }
            if desc.batch_count > 0 && (shortest as i128) < needed {
                return Err(Error::invalid(format!(
                    "{call}: a matrix of {name} has {shortest} elements, but must have at least {needed}"
                )));
            }
        }
        let epilogue = self.epilogue.raw(self.context, call, desc.n.into(), of_d, CD::DTYPE)?;
        let (workspace, bytes) = workspace_of(self.context, call, self.workspace.as_ref())?;
        // SAFETY: three tables of batch_count addresses of matrices of this context that are large
        // enough; freeing memory waits for the kernel.
        self.context.call(|| unsafe {
            sys::mp_gemm_batched(
                self.context.as_raw(),
                &desc,
                a.table.as_ptr() as *const _,
                b.table.as_ptr() as *const _,
                d.table.as_ptr() as *const _,
                d.table.as_ptr() as *const _,
                &epilogue,
                workspace,
                bytes,
                self.stream.0,
            )
        })
    }

    /// Returns the useful workspace size in bytes for `run_batched` of `count` products.
    pub fn batched_workspace_size<AB: Float, CD: Float>(&self, count: u32) -> Result<usize> {
        let (desc, epilogue) = self.query_batched(AB::DTYPE, CD::DTYPE, count)?;
        let mut bytes = 0;
        // SAFETY: the descriptor and the plan in it live during the call.
        check(unsafe {
            sys::mp_gemm_batched_workspace_size(
                self.context.as_raw(),
                &desc,
                &epilogue,
                &mut bytes,
            )
        })?;
        Ok(bytes)
    }

    /// Returns the fastest plan for `run_batched` of `count` products.
    pub fn batched_get_plan<AB: Float, CD: Float>(
        &self,
        count: u32,
        max_workspace_bytes: usize,
    ) -> Result<Plan> {
        let (desc, epilogue) = self.query_batched(AB::DTYPE, CD::DTYPE, count)?;
        // SAFETY: as above; `plan` is written.
        kernels::plan(|plan| unsafe {
            sys::mp_gemm_batched_get_plan(
                self.context.as_raw(),
                &desc,
                &epilogue,
                max_workspace_bytes,
                plan,
            )
        })
    }

    fn query_batched(
        &self,
        ab: Dtype,
        cd: Dtype,
        count: u32,
    ) -> Result<(sys::mp_gemm_desc_t, sys::mp_epilogue_t)> {
        let (mut desc, epilogue) = self.query(ab, cd)?;
        desc.batch_count = count as i32; // the library rejects negative values
        Ok((desc, epilogue))
    }

    /// Enqueues one product per group, with group sizes that are on the device.  Group i contains
    /// the elements from ends\[i - 1\] (0 for the first) to ends\[i\] of the ragged dimension.
    /// `batch` sets the number of groups and the strides of the matrices that each group has: B for
    /// `Ragged::M`, C and D for `Ragged::K`.  Supports `scale`, `amax` and `found_inf` of the
    /// epilogue.
    pub fn run_ragged<E, A, B, D>(self, ragged: Ragged, ends: &E, a: &A, b: &B, d: &D) -> Result<()>
    where
        E: Data<Element = i32>,
        A: Data,
        B: Data<Element = A::Element>,
        D: Data,
        A::Element: Float,
        D::Element: Float,
    {
        let call = self.checked("gemm_ragged", a, b, d)?;
        let ends = ends.view();
        self.context.owns("gemm_ragged", "ends", &ends)?;
        at_least("gemm_ragged", "ends", ends.len, call.desc.batch_count.into())?;
        // SAFETY: as in `run`; for any `ends`, the library stays within the sizes of the
        // descriptor.
        self.context.call(|| unsafe {
            sys::mp_gemm_ragged(
                self.context.as_raw(),
                &call.desc,
                ragged as u32,
                ends.pointer,
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

    /// Returns the useful workspace size in bytes for `run_ragged`.
    pub fn ragged_workspace_size<AB: Float, CD: Float>(&self, ragged: Ragged) -> Result<usize> {
        let (desc, epilogue) = self.query(AB::DTYPE, CD::DTYPE)?;
        let mut bytes = 0;
        // SAFETY: the descriptor lives during the call, and so does the plan in it.
        check(unsafe {
            sys::mp_gemm_ragged_workspace_size(
                self.context.as_raw(),
                &desc,
                ragged as u32,
                &epilogue,
                &mut bytes,
            )
        })?;
        Ok(bytes)
    }
}

/// Products of different shapes in one call, such as the experts of a layer or the weight gradients
/// of a network.
pub struct GroupedGemm<'a, AB: Float, CD: Float> {
    context: &'a Context,
    op_a: u32,
    op_b: u32,
    items: Vec<sys::mp_gemm_group_item_t>,
    borrowed: PhantomData<(View<'a, AB>, View<'a, CD>)>,
}

impl Context {
    /// Creates an empty group.
    pub fn gemm_grouped<AB: Float, CD: Float>(&self) -> GroupedGemm<'_, AB, CD> {
        let (op_a, op_b) = (Op::N as u32, Op::N as u32);
        GroupedGemm { context: self, op_a, op_b, items: Vec::new(), borrowed: PhantomData }
    }
}

impl<'a, AB: Float, CD: Float> GroupedGemm<'a, AB, CD> {
    /// Transposes all A, which are stored as k x m.
    pub fn transpose_a(mut self) -> Self {
        self.op_a = Op::T as u32;
        self
    }

    /// Transposes all B, which are stored as n x k.
    pub fn transpose_b(mut self) -> Self {
        self.op_b = Op::T as u32;
        self
    }

    /// Adds a product of dense matrices: op(A) is m x k, op(B) k x n, D m x n.
    pub fn product<A, B, D>(
        mut self,
        (m, n, k): (usize, usize, usize),
        a: &'a A,
        b: &'a B,
        d: &'a D,
    ) -> Result<Self>
    where
        A: Data<Element = AB>,
        B: Data<Element = AB>,
        D: Data<Element = CD>,
    {
        let mut item = sys::mp_gemm_group_item_default(m as i64, n as i64, k as i64);
        let elements = |rows: i64, columns: i64| i128::from(rows) * i128::from(columns);
        let needs = [
            ("a", operand(a), elements(item.m, item.k)),
            ("b", operand(b), elements(item.k, item.n)),
            ("d", operand(d), elements(item.m, item.n)),
        ];
        for (name, operand, needed) in needs {
            let name = format!("products[{}].{name}", self.items.len());
            operand.check(self.context, "gemm_grouped", &name, needed)?;
        }
        item.A = needs[0].1.pointer;
        item.B = needs[1].1.pointer;
        item.C = needs[2].1.pointer;
        item.D = needs[2].1.pointer;
        self.items.push(item);
        Ok(self)
    }

    /// Returns the useful workspace size in bytes.
    pub fn workspace_size(&self) -> Result<usize> {
        let (desc, items) = self.complete();
        let mut bytes = 0;
        // SAFETY: the number of items is passed, and they live during the call.
        check(unsafe {
            sys::mp_gemm_grouped_workspace_size(
                self.context.as_raw(),
                &desc,
                items.len() as i32,
                items.as_ptr(),
                std::ptr::null(),
                &mut bytes,
            )
        })?;
        Ok(bytes)
    }

    /// Enqueues all products.  Supports `scale` and `found_inf` of the epilogue.
    pub fn run(&self, options: &OutputOptions<'_>) -> Result<()> {
        let call = "gemm_grouped";
        let (mut desc, items) = self.complete();
        desc.alpha = options.alpha;
        desc.beta = options.beta;
        let epilogue = options.epilogue.raw(self.context, call, 0, 0, CD::DTYPE)?;
        let (workspace, bytes) = workspace_of(self.context, call, options.workspace.as_ref())?;
        // SAFETY: the items are copied by the call; their matrices are borrowed, belong to this
        // context and are large enough; freeing memory waits for the kernels.
        self.context.call(|| unsafe {
            sys::mp_gemm_grouped(
                self.context.as_raw(),
                &desc,
                items.len() as i32,
                items.as_ptr(),
                &epilogue,
                workspace,
                bytes,
                options.stream.0,
            )
        })
    }

    fn complete(&self) -> (sys::mp_gemm_desc_t, Vec<sys::mp_gemm_group_item_t>) {
        let (ab, cd): (Dtype, Dtype) = (AB::DTYPE, CD::DTYPE);
        let mut desc = sys::mp_gemm_desc_default(0, 0, 0, ab as u32, cd as u32);
        desc.op_a = self.op_a;
        desc.op_b = self.op_b;
        let mut items = self.items.clone();
        for item in &mut items {
            item.ld_a = if self.op_a == Op::T as u32 { item.m } else { item.k };
            item.ld_b = if self.op_b == Op::T as u32 { item.k } else { item.n };
        }
        (desc, items)
    }
}
