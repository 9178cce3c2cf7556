!> Networks for Fortran: the graphs of mpcore/graph.h, with automatic differentiation and mixed
!> precision.
!>
!>     type(mp_network) :: net
!>     integer :: x, w, y
!>     call net%create(context)
!>     x = net%input('x', MP_FP32, [784, 128])
!>     w = net%parameter('w', [10, 784])
!>     y = net%node('Linear', 'fc', [x, w], [mp_attribute('transposed', 0)])
!>     call net%output(y)
!>     call net%compile()
!>
!> Shapes are those of Fortran arrays: [n h w c] of the header is an array of shape [c, w, h, n]
!> with the same memory layout, and the batch is last.  Tensors are numbered from 1, and 0 is an
!> absent optional input.  Error messages and reports of the library number from 0 and use C shapes.
!> Trailing blanks are not part of a name.  stat and errmsg are those of module mpcore.
module mpcore_network
  use mpcore
  use mpcore_described
  implicit none
  private
  public :: mp_network, mp_attribute

  type, extends(mp_described) :: mp_network
  contains
    procedure, private :: bind_real, bind_half, bind_int, bind_long, bind_pointer
    !> Binds an array to an input, from the next pass on: real(c_float), integer(c_int16_t),
    !> integer(c_int32_t) or, for the offset of a mask, integer(c_int64_t).  The array has any
    !> rank, is contiguous, and is a target that must remain allocated.  A type(c_ptr) is not
    !> checked; c_null_ptr unbinds the input.
    generic :: bind => bind_real, bind_half, bind_int, bind_long, bind_pointer
    procedure :: set_batch
    procedure :: write => write_values
    procedure, private :: read_real, read_long
    !> Reads all values of a tensor into an array of equal size.  Waits for the stream.
    generic :: read => read_real, read_long
    procedure :: forward
    procedure :: backward
    procedure :: get_step
    procedure :: set_step
    procedure :: get_lists
    procedure :: get_memory
    procedure :: explain
    procedure :: describe
  end type

contains

  ! ---------------------------------------------------------------- running

  subroutine bind_real(net, tensor, data, stat, errmsg)
    class(mp_network), intent(inout) :: net
    integer, intent(in) :: tensor
    real(c_float), intent(in), target :: data(..)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call bind_array(net, tensor, c_loc(data), size(data, kind=c_int64_t), is_contiguous(data), 'real(c_float)', &
                    stat, errmsg)
  end subroutine

  subroutine bind_half(net, tensor, data, stat, errmsg)
    class(mp_network), intent(inout) :: net
    integer, intent(in) :: tensor
    integer(c_int16_t), intent(in), target :: data(..)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call bind_array(net, tensor, c_loc(data), size(data, kind=c_int64_t), is_contiguous(data), &
                    'integer(c_int16_t)', stat, errmsg)
  end subroutine

  subroutine bind_int(net, tensor, data, stat, errmsg)
    class(mp_network), intent(inout) :: net
    integer, intent(in) :: tensor
    integer(c_int32_t), intent(in), target :: data(..)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call bind_array(net, tensor, c_loc(data), size(data, kind=c_int64_t), is_contiguous(data), &
                    'integer(c_int32_t)', stat, errmsg)
  end subroutine

  subroutine bind_long(net, tensor, data, stat, errmsg)
    class(mp_network), intent(inout) :: net
    integer, intent(in) :: tensor
    integer(c_int64_t), intent(in), target :: data(..)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call bind_array(net, tensor, c_loc(data), size(data, kind=c_int64_t), is_contiguous(data), &
                    'integer(c_int64_t)', stat, errmsg)
  end subroutine

  !> Binds an address with a number of elements, which each pass checks because the batch can
  !> change.
  subroutine bind_array(net, tensor, address, elements, is_dense, kind, stat, errmsg)
    class(mp_network), intent(inout) :: net
    integer, intent(in) :: tensor
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: elements
    logical, intent(in) :: is_dense
    character(*), intent(in) :: kind
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(mp_graph_tensor_t) :: info
    integer(c_int) :: status
    call net%get_tensor(tensor, info, status, errmsg)
    if (status /= MP_SUCCESS) then
      call mp_check(status, stat, errmsg)
    else if (kind_of(net, tensor, info) /= kind) then
      call refuse('bind', mp_text(info%name)//' is '//kind_of(net, tensor, info)//', not '//kind, stat, errmsg)
    else if (.not. is_dense) then
      call refuse('bind', 'data of '//mp_text(info%name)//' must be contiguous', stat, errmsg)
    else
      call bind_elements(net, tensor, address, elements, stat, errmsg)
    end if
  end subroutine

  subroutine bind_pointer(net, tensor, data, stat, errmsg)
    class(mp_network), intent(inout) :: net
    integer, intent(in) :: tensor
    type(c_ptr), intent(in) :: data
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call bind_elements(net, tensor, data, merge(huge(0_c_int64_t), 0_c_int64_t, c_associated(data)), stat, errmsg)
  end subroutine

  subroutine bind_elements(net, tensor, address, elements, stat, errmsg)
    class(mp_network), intent(inout) :: net
    integer, intent(in) :: tensor
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: elements
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer(c_int) :: status
    status = mp_graph_bind(net%handle(), tensor - 1, address)
    call mp_check(status, stat, errmsg)
    if (status == MP_SUCCESS) where (net%shared%bound%tensor == tensor) net%shared%bound%elements = elements
  end subroutine

  !> Sets the batch size of the next passes, at most the size in the description.
  subroutine set_batch(net, batch, stat, errmsg)
    class(mp_network), intent(in) :: net
    integer, intent(in) :: batch
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_set_batch(net%handle(), int(batch, c_int64_t)), stat, errmsg)
  end subroutine

  !> Writes a parameter, including its 16-bit copy, or a state from an array on the host or the
  !> device.  Waits for the stream.
  subroutine write_values(net, tensor, values, stream, stat, errmsg)
    class(mp_network), intent(in) :: net
    integer, intent(in) :: tensor
    real(c_float), intent(in), target, contiguous :: values(..)
    type(c_ptr), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(mp_graph_tensor_t) :: info
    integer(c_int) :: status
    call net%get_tensor(tensor, info, status, errmsg)
    if (status == MP_SUCCESS .and. size(values, kind=c_int64_t) /= elements_of(info)) then
      call refuse('write', sizes(info, size(values, kind=c_int64_t)), stat, errmsg)
      return
    end if
    if (status == MP_SUCCESS) status = mp_graph_write(net%handle(), tensor - 1, c_loc(values), queue(stream))
    if (status == MP_SUCCESS) status = mp_stream_sync(net%shared%context, queue(stream))
    call mp_check(status, stat, errmsg)
  end subroutine

  subroutine read_real(net, tensor, values, stream, stat, errmsg)
    class(mp_network), intent(in) :: net
    integer, intent(in) :: tensor
    real(c_float), intent(inout), target, contiguous :: values(..)
    type(c_ptr), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call read_array(net, tensor, c_loc(values), size(values, kind=c_int64_t), 'real(c_float)', 4, stream, stat, errmsg)
  end subroutine

  subroutine read_long(net, tensor, values, stream, stat, errmsg)
    class(mp_network), intent(in) :: net
    integer, intent(in) :: tensor
    integer(c_int64_t), intent(inout), target, contiguous :: values(..)
    type(c_ptr), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call read_array(net, tensor, c_loc(values), size(values, kind=c_int64_t), 'integer(c_int64_t)', 8, stream, &
                    stat, errmsg)
  end subroutine

  subroutine read_array(net, tensor, address, elements, kind, bytes, stream, stat, errmsg)
    class(mp_network), intent(in) :: net
    integer, intent(in) :: tensor, bytes
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: elements
    character(*), intent(in) :: kind
    type(c_ptr), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(mp_graph_tensor_t) :: info
    integer(c_int64_t) :: needed
    integer(c_int) :: status
    call net%get_tensor(tensor, info, status, errmsg)
    if (status == MP_SUCCESS) then
      needed = elements_of(info)
      if (any(net%shared%counters == tensor)) needed = 1 ! the extent in C is in bytes
      if (kind_of(net, tensor, info) /= kind) then
        call refuse('read', mp_text(info%name)//' is '//kind_of(net, tensor, info)//', not '//kind, stat, errmsg)
        return
      else if (elements /= needed) then
        call refuse('read', sizes(info, elements), stat, errmsg)
        return
      else if (.not. c_associated(info%data)) then
        call refuse('read', mp_text(info%name)//' shares its memory with other tensors or is not computed', stat, errmsg)
        return
      end if
      status = mp_memcpy(net%shared%context, address, info%data, int(bytes*needed, c_size_t), queue(stream))
    end if
    if (status == MP_SUCCESS) status = mp_stream_sync(net%shared%context, queue(stream))
    call mp_check(status, stat, errmsg)
  end subroutine

  !> Runs the forward pass on the bound inputs, in mode MP_GRAPH_MODE_TRAINING or
  !> MP_GRAPH_MODE_INFERENCE.
  subroutine forward(net, mode, stream, stat, errmsg)
    class(mp_network), intent(in) :: net
    integer(c_int), intent(in) :: mode
    type(c_ptr), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    if (are_large_enough(net, 'forward', stat, errmsg)) &
      call mp_check(mp_graph_forward(net%handle(), mode, queue(stream)), stat, errmsg)
  end subroutine

  !> Computes the loss, and the gradients of all parameters times the scale S.  Requires a
  !> preceding forward pass in training mode.
  subroutine backward(net, scaler, stream, stat, errmsg)
    class(mp_network), intent(in) :: net
    type(c_ptr), intent(in), optional :: scaler, stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    if (are_large_enough(net, 'backward', stat, errmsg)) &
      call mp_check(mp_graph_backward(net%handle(), queue(scaler), queue(stream)), stat, errmsg)
  end subroutine

  !> Returns the number of forward passes in training, which determines the masks of Dropout and
  !> Attention; 0 without dropout.  Save it in checkpoints.  Waits for the stream.
  subroutine get_step(net, t, stream, stat, errmsg)
    class(mp_network), intent(in) :: net
    integer(c_int64_t), intent(out) :: t
    type(c_ptr), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    t = 0
    call mp_check(mp_graph_get_step_sync(net%handle(), t, queue(stream)), stat, errmsg)
  end subroutine

  !> Restores the number returned by get_step.  Waits for the stream.
  subroutine set_step(net, t, stream, stat, errmsg)
    class(mp_network), intent(in) :: net
    integer(c_int64_t), intent(in) :: t
    type(c_ptr), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_set_step_sync(net%handle(), t, queue(stream)), stat, errmsg)
  end subroutine

  function are_large_enough(net, call_name, stat, errmsg)
    class(mp_network), intent(in) :: net
    character(*), intent(in) :: call_name
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    logical :: are_large_enough
    type(mp_graph_tensor_t) :: info
    integer(c_int) :: status
    integer :: i
    are_large_enough = .true.
    if (.not. c_associated(net%handle())) return ! no network; the library reports the error
    do i = 1, size(net%shared%bound)
      if (net%shared%bound(i)%elements == 0) cycle
      call net%get_tensor(net%shared%bound(i)%tensor, info, status)
      if (net%shared%bound(i)%elements >= elements_of(info)) cycle
      are_large_enough = .false.
      call refuse(call_name, sizes(info, net%shared%bound(i)%elements), stat, errmsg)
      return
    end do
  end function

  ! ---------------------------------------------------------------- results

  !> Returns the lists for an optimizer: all parameters in the order of their creation.  They live
  !> as long as the network.  model is c_null_ptr if no parameter has a 16-bit copy.  Without a loss
  !> grads must be absent.
  subroutine get_lists(net, grads, master, model, stat, errmsg)
    class(mp_network), intent(in) :: net
    type(c_ptr), intent(out), optional :: grads, master, model
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_get_lists(net%handle(), grads, master, model), stat, errmsg)
  end subroutine

  !> Returns the device memory by purpose, in bytes.
  subroutine get_memory(net, memory, stat, errmsg)
    class(mp_network), intent(in) :: net
    type(mp_graph_memory_t), intent(out) :: memory
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_get_memory(net%handle(), memory), stat, errmsg)
  end subroutine

  !> Explains the types of the operations; default format: MP_AUTOCAST_FORMAT_TEXT.
  subroutine explain(net, report, format, stat, errmsg)
    class(mp_network), intent(in) :: net
    character(:), allocatable, intent(out) :: report
    integer(c_int), intent(in), optional :: format
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: text(:)
    integer(c_size_t), target :: bytes
    integer(c_int) :: chosen, status
    chosen = MP_AUTOCAST_FORMAT_TEXT
    if (present(format)) chosen = format
    status = mp_graph_explain(net%handle(), chosen, c_null_ptr, c_loc(bytes))
    if (status == MP_SUCCESS) then
      allocate (text(bytes))
      status = mp_graph_explain(net%handle(), chosen, c_loc(text), c_loc(bytes))
    end if
    call mp_check(status, stat, errmsg)
    if (status == MP_SUCCESS) report = mp_text(c_loc(text))
  end subroutine

  !> Lists the launches in order, one per line.
  subroutine describe(net, report, stat, errmsg)
    class(mp_network), intent(in) :: net
    character(:), allocatable, intent(out) :: report
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: text(:)
    integer(c_size_t), target :: bytes
    integer(c_int) :: status
    status = mp_graph_describe(net%handle(), c_null_ptr, c_loc(bytes))
    if (status == MP_SUCCESS) then
      allocate (text(bytes))
      status = mp_graph_describe(net%handle(), c_loc(text), c_loc(bytes))
    end if
    call mp_check(status, stat, errmsg)
    if (status == MP_SUCCESS) report = mp_text(c_loc(text))
  end subroutine

  ! ---------------------------------------------------------------- parts of calls

  !> Returns the address of an optional stream; NULL if absent.
  function queue(given)
    type(c_ptr), intent(in), optional :: given
    type(c_ptr) :: queue
    queue = c_null_ptr
    if (present(given)) queue = given
  end function

  pure function elements_of(info)
    type(mp_graph_tensor_t), intent(in) :: info
    integer(c_int64_t) :: elements_of
    elements_of = product(info%extent(:info%rank))
  end function

  !> Returns the Fortran declaration of the elements of a tensor, for messages.
  function kind_of(net, tensor, info) result(kind)
    class(mp_network), intent(in) :: net
    integer, intent(in) :: tensor
    type(mp_graph_tensor_t), intent(in) :: info
    character(:), allocatable :: kind
    if (info%dtype == MP_FP32) then
      kind = 'real(c_float)'
    else if (info%dtype /= MP_DTYPE_NONE) then
      kind = 'integer(c_int16_t)'
    else if (any(net%shared%counters == tensor)) then
      kind = 'integer(c_int64_t)'
    else
      kind = 'integer(c_int32_t)'
    end if
  end function

  function sizes(info, given) result(text)
    type(mp_graph_tensor_t), intent(in) :: info
    integer(c_int64_t), intent(in) :: given
    character(:), allocatable :: text
    character(60) :: numbers
    write (numbers, '(2(a,i0))') ' has ', elements_of(info), ' elements, but the array has ', given
    text = mp_text(info%name)//trim(numbers)
  end function

  subroutine refuse(call_name, sentence, stat, errmsg)
    character(*), intent(in) :: call_name, sentence
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_refuse(MP_ERROR_INVALID_ARGUMENT, 'mp_graph_'//call_name//': '//sentence, stat, errmsg)
  end subroutine

end module
