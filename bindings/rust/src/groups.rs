//! Batched, grouped and ragged GEMM.

use crate::context::{Context, Data, DeviceBuffer, Float, View};
use crate::conv::extent;
use crate::enums::{Dtype, Op, Ragged};
use crate::epilogue::{operand, OutputOptions};
use crate::error::{read, Error, Result};
use crate::gemm::{extents, Checked, Gemm};
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
            context.checks("Matrices").data(&format!("matrices[{i}]"), view, 0)?;
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
        self, a: &Matrices<AB>, b: &Matrices<AB>, d: &Matrices<CD>,
    ) -> Result<()> {
        let call = "gemm_batched";
        if self.c.is_some() {
            return Err(Error::invalid(format!("{call}: c is not supported; C is read from d")));
        }
        let mut desc = self.complete(AB::DTYPE, CD::DTYPE);
        desc.batch_count = 1;
        let (of_a, of_b, of_d) = extents(&desc); // sizes per item; the library rejects strides
        let count = a.table.len();
        desc.batch_count = extent(call, "the number of matrices of a", count)?;
        let matrices = [
            ("a", &a.context, &a.table, a.shortest, of_a),
            ("b", &b.context, &b.table, b.shortest, of_b),
            ("d", &d.context, &d.table, d.shortest, of_d),
        ];
        let checks = self.context.checks(call);
        for (name, context, table, shortest, needed) in matrices {
            checks.belongs(name, context)?;
            if table.len() != count {
                let len = table.len();
                let sentence = format!("{call}: {name} has {len} matrices, but a has {count}");
                return Err(Error::invalid(sentence));
            }
            if count > 0 {
                checks.at_least(&format!("a matrix of {name}"), shortest, needed)?;
            }
        }
        let epilogue = self.epilogue.raw(checks, desc.n.into(), of_d, CD::DTYPE)?;
        let (space, bytes) = checks.workspace(self.workspace)?;
        let [a, b, d] = [&a.table, &b.table, &d.table].map(|table| table.as_ptr() as *const _);
        let (c, d) = (d as *const _, d as *const _);
        run!(
            self.context,
            mp_gemm_batched(&desc, a, b, c, d, &epilogue, space, bytes, self.stream.0)
        )
    }

    /// Returns the useful workspace size in bytes for `run_batched` of `count` products.
    pub fn batched_workspace_size<AB: Float, CD: Float>(&self, count: u32) -> Result<usize> {
        let (desc, epilogue) = self.query_batched::<AB, CD>(count)?;
        query!(self.context, read(bytes), mp_gemm_batched_workspace_size(&desc, &epilogue))
    }

    /// Returns the fastest plan for `run_batched` of `count` products.
    pub fn batched_get_plan<AB: Float, CD: Float>(
        &self, count: u32, max_workspace_bytes: usize,
    ) -> Result<Plan> {
        let (desc, epilogue) = self.query_batched::<AB, CD>(count)?;
        query!(
            self.context,
            kernels::plan(plan),
            mp_gemm_batched_get_plan(&desc, &epilogue, max_workspace_bytes)
        )
    }

    fn query_batched<AB: Float, CD: Float>(
        &self, count: u32,
    ) -> Result<(sys::mp_gemm_desc_t, sys::mp_epilogue_t)> {
        let (mut desc, epilogue) = self.query::<AB, CD>()?;
        desc.batch_count = count as i32; // the library rejects negative values
        Ok((desc, epilogue))
    }

    /// Enqueues one product per group, with group sizes that are on the device.  Group i contains
    /// the elements from ends\[i - 1\] (0 for the first) to ends\[i\] of the ragged dimension.
    /// `batch` sets the number of groups and the strides of the matrices that each group has: B for
    /// `Ragged::M`, C and D for `Ragged::K`.  Supports `scale`, `amax` and `found_inf` of the
    /// epilogue.
    pub fn run_ragged<AB: Float, CD: Float>(
        self, ragged: Ragged, ends: &impl Data<Element = i32>, a: &impl Data<Element = AB>,
        b: &impl Data<Element = AB>, d: &impl Data<Element = CD>,
    ) -> Result<()> {
        let (call, kind, stream) = ("gemm_ragged", ragged as u32, self.stream.0);
        let Checked { desc, pointers: [a, b, c, d], epilogue, space, bytes } =
            self.checked(call, operand(a), operand(b), operand(d))?;
        let ends = self.context.checks(call).data("ends", ends, desc.batch_count.into())?;
        run!(
            self.context,
            mp_gemm_ragged(&desc, kind, ends, a, b, c, d, &epilogue, space, bytes, stream)
        )
    }

    /// Returns the useful workspace size in bytes for `run_ragged`.
    pub fn ragged_workspace_size<AB: Float, CD: Float>(&self, ragged: Ragged) -> Result<usize> {
        let (desc, epilogue) = self.query::<AB, CD>()?;
        let kind = ragged as u32;
        query!(self.context, read(bytes), mp_gemm_ragged_workspace_size(&desc, kind, &epilogue))
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
    setters! {
        /// Transposes all A, which are stored as k x m.
        fn transpose_a(self) { self.op_a = Op::T as u32; }
        /// Transposes all B, which are stored as n x k.
        fn transpose_b(self) { self.op_b = Op::T as u32; }
    }

    /// Adds a product of dense matrices: op(A) is m x k, op(B) k x n, D m x n.
    pub fn product(
        mut self, (m, n, k): (usize, usize, usize), a: &'a impl Data<Element = AB>,
        b: &'a impl Data<Element = AB>, d: &'a impl Data<Element = CD>,
    ) -> Result<Self> {
        let mut item = sys::mp_gemm_group_item_default(m as i64, n as i64, k as i64);
        let elements = |rows: i64, columns: i64| i128::from(rows) * i128::from(columns);
        let needs = [
            ("a", operand(a), elements(item.m, item.k)),
            ("b", operand(b), elements(item.k, item.n)),
            ("d", operand(d), elements(item.m, item.n)),
        ];
        for (name, operand, needed) in needs {
            let name = format!("products[{}].{name}", self.items.len());
            operand.check(self.context.checks("gemm_grouped"), &name, needed)?;
        }
        [item.A, item.B, item.D] = needs.map(|(_, operand, _)| operand.pointer);
        item.C = item.D;
        self.items.push(item);
        Ok(self)
    }

    /// Returns the useful workspace size in bytes.
    pub fn workspace_size(&self) -> Result<usize> {
        let (desc, items) = self.complete();
        let (count, items, none) = (items.len() as i32, items.as_ptr(), std::ptr::null());
        query!(self.context, read(bytes), mp_gemm_grouped_workspace_size(&desc, count, items, none))
    }

    /// Enqueues all products.  Supports `scale` and `found_inf` of the epilogue.
    pub fn run(&self, options: &OutputOptions<'_>) -> Result<()> {
        let checks = self.context.checks("gemm_grouped");
        let (mut desc, items) = self.complete();
        desc.alpha = options.alpha;
        desc.beta = options.beta;
        let epilogue = options.epilogue.raw(checks, 0, 0, CD::DTYPE)?;
        let (space, bytes) = checks.workspace(options.workspace)?;
        let (count, list, stream) = (items.len() as i32, items.as_ptr(), options.stream.0);
        run!(self.context, mp_gemm_grouped(&desc, count, list, &epilogue, space, bytes, stream))
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
