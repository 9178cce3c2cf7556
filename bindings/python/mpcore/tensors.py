"""Tensor lists and device scalars (mpcore/tensors.h)."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Sequence

from . import _sys
from ._library import Handle, Native, array_of, check, integers, lib
from .arrays import View, point
from .context import Context, stream_pointer


class Object(Handle):
    """Base of objects that belong to a context."""

    def __init__(self, context: Context):
        self.context = context

    @property
    def handle(self) -> Native:
        """The handle, for functions of mpcore._sys."""
        self.context.handle  # raises if the context is closed
        return super().handle

    def _create(self, function: Any, desc: Any, needs: Sequence[Native] = (), kept: Any = None) -> None:
        handle = ctypes.c_void_p()
        check(function(ctypes.byref(handle), self.context.handle, desc))
        self._own(handle, [self.context.handle, *needs], kept)


def view_of(context: Context, array: Any, name: str, size: int, writable: bool = True,
            dtype: str = "float32") -> Optional[View]:
    """Returns the View of an optional array of `size` elements."""
    if array is None:
        return None
    return context.check_array(array, name, dtype=dtype, size=size, writable=writable)


def views_of(context: Context, size: int, writable: bool = True, dtype: str = "float32",
             **arrays: Any) -> Dict[str, Optional[View]]:
    """Returns the Views of optional arrays of `size` elements by their names."""
    return {name: view_of(context, array, name, size, writable, dtype) for name, array in arrays.items()}


def nccl_comm(communicator: int) -> Any:
    """Returns an mp_comm_t for the ncclComm_t at an address; the ncclComm_t must outlive it."""
    comm = _sys.mp_comm_t()
    check(lib.mp_comm_init_nccl(comm, communicator))
    return comm


class Reports:
    """`count` reports (mp_tensor_report_t) on the device, each about a tensor or a list."""

    def __init__(self, context: Context, count: int = 1):
        self.count = count
        self.array = context.zeros(count * ctypes.sizeof(_sys.mp_tensor_report_t), "uint8")

    def read(self, stream: Any = None) -> List[Any]:
        """Returns the reports: num_nan, num_inf, amax, ...  Waits for the stream."""
        return list((_sys.mp_tensor_report_t * self.count).from_buffer_copy(self.array.tobytes(stream)))


def reports_of(context: Context, reports: Optional[Reports], name: str, count: int) -> Optional[View]:
    if reports is None:
        return None
    if reports.count != count:
        raise ValueError(f"{name} has {reports.count} reports, not {count}")
    return context.check_array(reports.array, name, dtype="uint8", writable=True)


def copies_of(context: Context, views: Sequence[Optional[View]], stream: Any) -> List[bytes]:
    """Returns the bytes of each array.  Waits for the stream."""
    copies = [ctypes.create_string_buffer(got.nbytes if got else 0) for got in views]
    for got, copy in zip(views, copies):
        if got is not None:
            check(lib.mp_memcpy(context.handle, copy, got, got.nbytes, stream_pointer(stream)))
    context.sync(stream)
    return [copy.raw for copy in copies]


class TensorList(Object):
    """A list of dense arrays that are processed as one.  Keeps the arrays alive.

    In the model list of an optimizer, None is a parameter without a 16-bit copy; `numels` then
    specifies its number of elements.
    """

    _destroy = "mp_tensor_list_destroy"
    _written_as: Optional[str] = None  # argument name in an optimizer

    def __init__(self, context: Context, arrays: Sequence[Any], *, numels: Optional[Sequence[int]] = None):
        super().__init__(context)
        self.arrays: List[Any] = list(arrays)
        views = [None if a is None else context.check_array(a, f"arrays[{i}]")
                 for i, a in enumerate(self.arrays)]
        if any(v is None for v in views) and numels is None:
            raise ValueError("arrays contains None, which requires numels")
        given = integers(numels, "numels") if numels is not None else ()
        self.numels = [v.size if v else given[i] for i, v in enumerate(views)]
        self.dtypes = [v.dtype if v else None for v in views]
        known = next((v.mp_dtype for v in views if v), _sys.MP_FP32)
        count = len(views)
        data = (ctypes.c_void_p * max(1, count))(*[v.address if v and v.size else None for v in views])
        lengths = array_of("numels", ctypes.c_int64, self.numels or [0])
        dtypes = (ctypes.c_uint32 * max(1, count))(*[v.mp_dtype if v else known for v in views])
        desc = _sys.mp_tensor_list_desc_t(
            dtype=known, count=count, data=ctypes.addressof(data), numel=ctypes.addressof(lengths),
            dtypes=ctypes.addressof(dtypes))
        self._create(lib.mp_tensor_list_create, desc, kept=views)  # views keep DLPack memory alive

    def __len__(self) -> int:
        return len(self.arrays)

    def written(self, name: str) -> Native:
        """Returns the handle for a call that writes to this list, passed as argument `name`."""
        for i, got in enumerate(self.handle.kept):
            if got is not None:
                got.require_writable(f"{name}.arrays[{i}]")
        return self.handle

    def keep_written(self, name: str) -> Native:
        """Returns the handle for an optimizer, which also requires later arrays to be writable."""
        self._written_as = name
        return self.written(name)

    def tobytes(self, stream: Any = None) -> List[bytes]:
        """Returns a copy of the memory of each array.  Waits for the stream."""
        return copies_of(self.context, self.handle.kept, stream)

    def set_data(self, arrays: Sequence[Any], stream: Any = None) -> None:
        """Replaces the arrays by others of equal sizes and types."""
        if len(arrays) != len(self):
            raise ValueError(f"arrays has {len(arrays)} elements, but the list has {len(self)}")
        views = [self.context.check_array(a, f"arrays[{i}]", dtype=self.dtypes[i], size=self.numels[i],
                                          writable=self._written_as is not None) for i, a in enumerate(arrays)]
        data = (ctypes.c_void_p * max(1, len(views)))(*[v.address if v.size else None for v in views])
        check(lib.mp_tensor_list_set_data(self.handle, ctypes.addressof(data), stream_pointer(stream)))
        self.arrays, self.handle.kept = list(arrays), views

    def check_nonfinite(self, found_inf: Any, stream: Any = None) -> None:
        """Sets found_inf (float32, 1 element) to 1 if any element is infinite or NaN; never clears
        it."""
        check(lib.mp_check_nonfinite(self.handle, view_of(self.context, found_inf, "found_inf", 1),
                                     stream_pointer(stream)))

    def amax(self, out: Any = None, *, per_tensor: Any = None, stream: Any = None) -> Any:
        """Computes the largest absolute value; returns out (float32, 1 element; allocated if
        None)."""
        out = self.context.empty(1) if out is None else out
        check(lib.mp_amax(self.handle, view_of(self.context, out, "out", 1),
                          view_of(self.context, per_tensor, "per_tensor", len(self)), stream_pointer(stream)))
        return out

    def l2norm(self, out: Any = None, *, per_tensor: Any = None, stream: Any = None) -> Any:
        """Computes sqrt(sum x^2); returns out (float32, 1 element; allocated if None)."""
        out = self.context.empty(1) if out is None else out
        check(lib.mp_l2norm(self.handle, view_of(self.context, out, "out", 1), view_of(self.context, per_tensor,
                            "per_tensor", len(self)), stream_pointer(stream)))
        return out

    def inspect(self, report: Optional[Reports] = None, tensor_reports: Optional[Reports] = None,
                stream: Any = None) -> None:
        """Counts NaN, infinities, zeros and values close to underflow in one pass; see
        mp_inspect."""
        check(lib.mp_inspect(self.handle, reports_of(self.context, report, "report", 1), reports_of(self.context,
                             tensor_reports, "tensor_reports", len(self)), stream_pointer(stream)))

    def stats(self, *, found_inf: Any = None, amax: Any = None, tensor_amax: Any = None, norm: Any = None,
              tensor_norm: Any = None, report: Optional[Reports] = None,
              tensor_reports: Optional[Reports] = None, stream: Any = None) -> None:
        """Computes the given outputs of check_nonfinite, amax, l2norm and inspect in one pass."""
        context, count = self.context, len(self)
        outputs = point(_sys.mp_stats_outputs_t(), **views_of(context, 1, found_inf=found_inf, amax=amax, norm=norm),
                        **views_of(context, count, tensor_amax=tensor_amax, tensor_norm=tensor_norm),
                        report=reports_of(context, report, "report", 1),
                        tensor_reports=reports_of(context, tensor_reports, "tensor_reports", count))
        check(lib.mp_tensor_stats(self.handle, outputs, stream_pointer(stream)))

    def all_reduce(self, comm: Any, pre: float = 1.0, post: float = 1.0, stream: Any = None) -> None:
        """Reduces gradients over all ranks in place: post * sum(pre * self).

        comm is an mpcore._sys.mp_comm_t, from nccl_comm or of Python functions.  This call raises
        the exception of such a function.
        """
        check(lib.mp_grads_all_reduce(self.written("grads"), comm, pre, post, stream_pointer(stream)))

    def unscale(self, out: "TensorList", inv_scale: Any, found_inf: Any = None, stream: Any = None) -> None:
        """Computes out = self * inv_scale; see mp_unscale."""
        if out.numels != self.numels:
            raise ValueError(f"out has tensors of {out.numels} elements, but this list has {self.numels}")
        check(lib.mp_unscale(self.handle, out.written("out"), view_of(self.context, inv_scale, "inv_scale", 1, False),
                             view_of(self.context, found_inf, "found_inf", 1), stream_pointer(stream)))


class DeviceScalar:
    """One or more numbers on the device that belong to a scaler or an optimizer and keep it
    alive."""

    def __init__(self, owner: Object, address: Optional[int], writable: bool, dtype: str = "float32", size: int = 1):
        self._owner, self._address, self._writable = owner, address, writable
        self._dtype, self._size = dtype, size

    def _mpcore_view(self) -> View:
        context = self._owner.context
        return View(self._address or 0, self._dtype, (self._size,), (1,), context.device, self._writable,
                    self._owner.handle)

    def tolist(self, stream: Any = None) -> List[Any]:
        """Returns the current values.  Waits for the stream."""
        view, context = self._mpcore_view(), self._owner.context
        element: Any = ctypes.c_float if self._dtype == "float32" else ctypes.c_int64
        values = (element * self._size)()
        check(lib.mp_memcpy(context.handle, ctypes.addressof(values), view.address, view.nbytes,
                            stream_pointer(stream)))
        context.sync(stream)
        return list(values)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def item(self, stream: Any = None) -> Any:
        """Returns the current first value.  Waits for the stream."""
        return self.tolist(stream)[0]
