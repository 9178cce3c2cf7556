!> Descriptions of networks.  Use module mpcore_network, which includes this module.
module mpcore_described
  use mpcore
  use mpcore_autocast, only: mp_autocast
  implicit none
  private
  public :: mp_described, mp_attribute

  !> An attribute of an operation: an integer, a real number, or a list of integers.
  type :: mp_attribute
    character(32) :: name
    integer(c_int) :: kind
    integer(c_int64_t) :: int_value = 0
    real(c_double) :: float_value = 0
    integer(c_int64_t), allocatable :: ints(:)
  end type

  interface mp_attribute
    module procedure int_attribute, int64_attribute, float_attribute, double_attribute, ints_attribute
  end interface

  !> Number of elements bound to an input; 0: not bound.
  type :: bound_input
    integer :: tensor = 0
    integer(c_int64_t) :: elements = 0
  end type

  !> State of a network, shared by the variables that refer to it.
  type :: shared_network
    type(c_ptr) :: handle = c_null_ptr
    type(c_ptr) :: context = c_null_ptr
    type(bound_input), allocatable :: bound(:) !< one per input
    integer, allocatable :: counters(:) !< tensors of one integer(c_int64_t)
  end type

  !> A network.  Assignment does not copy it: both variables refer to the same network, and the
  !> first destroy or create on any of them ends it for all.
  type :: mp_described
    type(shared_network), pointer :: shared => null() !< never deallocated: others may read it
  contains
    procedure :: handle
    procedure :: create
    procedure :: destroy
    procedure :: input
    procedure :: parameter => add_parameter
    procedure :: state
    procedure :: node
    procedure :: node_outputs
    procedure :: output
    procedure :: keep_gradient
    procedure :: loss
    procedure :: seed_gradient
    procedure :: autocast
    procedure :: measure_kernels
    procedure :: compile
    procedure :: get_tensor
  end type

contains

  function int_attribute(name, value) result(it)
    character(*), intent(in) :: name
    integer, intent(in) :: value
    type(mp_attribute) :: it
    it = int64_attribute(name, int(value, c_int64_t))
  end function

  function int64_attribute(name, value) result(it)
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: value
    type(mp_attribute) :: it
    it%name = name
    it%kind = MP_ATTRIBUTE_KIND_INT
    it%int_value = value
  end function

  function float_attribute(name, value) result(it)
    character(*), intent(in) :: name
    real(c_float), intent(in) :: value
    type(mp_attribute) :: it
    it = double_attribute(name, real(value, c_double))
  end function

  function double_attribute(name, value) result(it)
    character(*), intent(in) :: name
    real(c_double), intent(in) :: value
    type(mp_attribute) :: it
    it%name = name
    it%kind = MP_ATTRIBUTE_KIND_FLOAT
    it%float_value = value
  end function

  function ints_attribute(name, values) result(it)
    character(*), intent(in) :: name
    integer, intent(in) :: values(:)
    type(mp_attribute) :: it
    it%name = name
    it%kind = MP_ATTRIBUTE_KIND_INTS
    it%ints = values
  end function

  ! ---------------------------------------------------------------- describing

  !> Returns the handle for C functions; c_null_ptr if there is no network.
  function handle(net)
    class(mp_described), intent(in) :: net
    type(c_ptr) :: handle
    handle = c_null_ptr
    if (associated(net%shared)) handle = net%shared%handle
  end function

  subroutine create(net, context, stat, errmsg)
    class(mp_described), intent(inout) :: net
    type(c_ptr), intent(in) :: context
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call net%destroy()
    allocate (net%shared)
    net%shared%context = context
    allocate (net%shared%bound(0), net%shared%counters(0))
    call mp_check(mp_graph_create(net%shared%handle, context), stat, errmsg)
  end subroutine

  !> Destroys the network.  Enqueued work must have finished, and optimizers created from its lists
  !> must have been destroyed.
  subroutine destroy(net)
    class(mp_described), intent(inout) :: net
    call mp_graph_destroy(net%handle())
    if (associated(net%shared)) net%shared = shared_network()
  end subroutine

  !> Adds an input.  Autocast can convert MP_FP32; 16-bit types are read without conversion;
  !> MP_DTYPE_NONE is integer(c_int32_t) (labels, indices, lengths), except for offsets of Dropout
  !> and Attention, which are one integer(c_int64_t) without dimensions.  The last dimension is the
  !> batch.
  function input(net, name, dtype, shape, stat, errmsg) result(tensor)
    class(mp_described), intent(inout) :: net
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: dtype
    integer, intent(in) :: shape(:)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer :: tensor
    type(shared_network), pointer :: it ! gfortran 12 does not reallocate through net%shared
    integer(c_int32_t) :: number
    integer(c_int64_t), target :: extent(size(shape) + 1)
    character(:, c_char), allocatable, target :: text
    number = -1
    extent = turned(shape)
    text = trim(name)//c_null_char
    call mp_check(mp_graph_add_input(net%handle(), mp_address(text), dtype, size(shape), c_loc(extent), number), &
                  stat, errmsg)
    tensor = number + 1
    if (tensor == 0) return
    it => net%shared
    it%bound = [it%bound, bound_input(tensor)]
    if (dtype == MP_DTYPE_NONE .and. size(shape) == 0) it%counters = [it%counters, tensor]
  end function

  !> Adds a trainable parameter: real(c_float), in memory of the network.
  function add_parameter(net, name, shape, stat, errmsg) result(tensor)
    class(mp_described), intent(inout) :: net
    character(*), intent(in) :: name
    integer, intent(in) :: shape(:)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer :: tensor
    tensor = add_stored(net, mp_graph_add_parameter, name, shape, stat, errmsg)
  end function

  !> Adds a tensor that persists between steps and is not trained: real(c_float), in memory of the
  !> network.
  function state(net, name, shape, stat, errmsg) result(tensor)
    class(mp_described), intent(inout) :: net
    character(*), intent(in) :: name
    integer, intent(in) :: shape(:)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer :: tensor
    tensor = add_stored(net, mp_graph_add_state, name, shape, stat, errmsg)
  end function

  function add_stored(net, add, name, shape, stat, errmsg) result(tensor)
    class(mp_described), intent(in) :: net
    procedure(mp_graph_add_state) :: add
    character(*), intent(in) :: name
    integer, intent(in) :: shape(:)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer :: tensor
    integer(c_int32_t) :: number
    integer(c_int64_t), target :: extent(size(shape) + 1)
    character(:, c_char), allocatable, target :: text
    number = -1
    extent = turned(shape)
    text = trim(name)//c_null_char
    call mp_check(add(net%handle(), mp_address(text), size(shape), c_loc(extent), number), stat, errmsg)
    tensor = number + 1
  end function

  !> Returns extents in the order of C, with an extra element because c_loc requires a nonempty
  !> array.
  pure function turned(shape)
    integer, intent(in) :: shape(:)
    integer(c_int64_t) :: turned(size(shape) + 1)
    turned = [int(shape(size(shape):1:-1), c_int64_t), 0_c_int64_t]
  end function

  !> Adds an operation, as listed in mpcore/graph.h, and returns its first output; most operations
  !> have only one.  The extents of a Reshape are in the order of Fortran, too.
  function node(net, op, name, inputs, attributes, stat, errmsg) result(tensor)
    class(mp_described), intent(inout) :: net
    character(*), intent(in) :: op, name
    integer, intent(in) :: inputs(:)
    type(mp_attribute), intent(in), optional :: attributes(:)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer :: tensor, outputs(1)
    call net%node_outputs(op, name, inputs, outputs, attributes, stat, errmsg)
    tensor = outputs(1)
  end function

  !> Adds an operation and returns its first outputs.
  subroutine node_outputs(net, op, name, inputs, outputs, attributes, stat, errmsg)
    class(mp_described), intent(inout) :: net
    character(*), intent(in) :: op, name
    integer, intent(in) :: inputs(:)
    integer, intent(out) :: outputs(:)
    type(mp_attribute), intent(in), optional :: attributes(:)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(shared_network), pointer :: it ! as in input
    type(mp_graph_attribute_t), allocatable :: given(:)
    character(:, c_char), allocatable, target :: op_text, name_text
    character(33, c_char), allocatable, target :: attribute_names(:)
    integer(c_int64_t), allocatable, target :: lists(:) !< elements of all lists
    integer(c_int32_t), target :: read_tensors(size(inputs) + 1), numbers(size(outputs) + 1)
    integer(c_int) :: status
    integer :: i, used, count
    count = 0
    if (present(attributes)) count = size(attributes)
    allocate (given(count + 1), attribute_names(count))
    op_text = trim(op)//c_null_char
    name_text = trim(name)//c_null_char
    used = 1
    do i = 1, count
      if (allocated(attributes(i)%ints)) used = used + size(attributes(i)%ints)
    end do
    allocate (lists(used))
    used = 0
    do i = 1, count
      attribute_names(i) = trim(attributes(i)%name)//c_null_char
      given(i)%name = mp_address(attribute_names(i))
      given(i)%kind = attributes(i)%kind
      given(i)%int_value = attributes(i)%int_value
      given(i)%float_value = attributes(i)%float_value
      if (.not. allocated(attributes(i)%ints)) cycle
      given(i)%count = size(attributes(i)%ints)
      lists(used + 1:used + given(i)%count) = attributes(i)%ints(given(i)%count:1:-1) ! order of C
      given(i)%ints = c_loc(lists(used + 1))
      used = used + given(i)%count
    end do
    read_tensors = [inputs - 1, 0]
    numbers = -1
    status = mp_graph_add_node(net%handle(), mp_address(op_text), mp_address(name_text), c_loc(read_tensors), &
                               size(inputs), given(1), count, numbers(1), size(outputs))
    outputs = numbers(:size(outputs)) + 1
    call mp_check(status, stat, errmsg)
    if (status /= MP_SUCCESS) return
    it => net%shared
    if (any(op == [character(11) :: 'SoftmaxXent', 'LinearXent']) .and. size(outputs) > 2) it%counters = [it%counters, outputs(3)]
  end subroutine

  !> Marks a tensor as an output, which keeps its value until the next pass.
  subroutine output(net, tensor, stat, errmsg)
    class(mp_described), intent(in) :: net
    integer, intent(in) :: tensor
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_add_output(net%handle(), tensor - 1), stat, errmsg)
  end subroutine

  !> Keeps the gradient of a tensor.  Gradients of parameters are always kept.
  subroutine keep_gradient(net, tensor, stat, errmsg)
    class(mp_described), intent(in) :: net
    integer, intent(in) :: tensor
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_keep_gradient(net%handle(), tensor - 1), stat, errmsg)
  end subroutine

  !> Sets the loss to minimize: the output of a loss node, such as SoftmaxXent.
  subroutine loss(net, tensor, stat, errmsg)
    class(mp_described), intent(in) :: net
    integer, intent(in) :: tensor
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_set_loss(net%handle(), tensor - 1), stat, errmsg)
  end subroutine

  !> Adds an input for dL / d(tensor) in single precision, with the shape of the tensor, for a loss
  !> that the caller computes.  Bind it before backward, which multiplies it by S.
  function seed_gradient(net, tensor, stat, errmsg) result(seed)
    class(mp_described), intent(in) :: net
    integer, intent(in) :: tensor
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer :: seed
    integer(c_int32_t) :: number
    number = -1
    call mp_check(mp_graph_seed_gradient(net%handle(), tensor - 1, number), stat, errmsg)
    seed = number + 1
  end function

  !> Enables mixed precision by a policy, which must exist until compile.
  subroutine autocast(net, policy, stat, errmsg)
    class(mp_described), intent(in) :: net
    type(mp_autocast), intent(in) :: policy
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_set_autocast(net%handle(), policy%handle()), stat, errmsg)
  end subroutine

  !> Selects kernels by times that the first passes measure: up to max_kernels for each product or
  !> convolution.  See mp_graph_measure_kernels.
  subroutine measure_kernels(net, max_kernels, stat, errmsg)
    class(mp_described), intent(in) :: net
    integer, intent(in) :: max_kernels
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_measure_kernels(net%handle(), max_kernels), stat, errmsg)
  end subroutine

  !> Compiles the network: adds the backward pass and casts, fuses operations, allocates memory.
  !> Call it once.  Parameters and states are initialized to 0.
  subroutine compile(net, stat, errmsg)
    class(mp_described), intent(in) :: net
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_compile(net%handle()), stat, errmsg)
  end subroutine

  !> Returns the properties of a tensor, with its Fortran shape in extent(:rank).
  subroutine get_tensor(net, tensor, info, stat, errmsg)
    class(mp_described), intent(in) :: net
    integer, intent(in) :: tensor
    type(mp_graph_tensor_t), intent(out) :: info
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_graph_get_tensor(net%handle(), tensor - 1, info), stat, errmsg)
    info%extent(:info%rank) = info%extent(info%rank:1:-1)
  end subroutine

end module
