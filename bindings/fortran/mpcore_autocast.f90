!> Automatic mixed precision for Fortran: selects the type of each operation in a graph.
!>
!>     type(mp_autocast) :: policy
!>     type(mp_graph) :: graph
!>     type(mp_rewritten) :: rewritten
!>     integer :: x, w, fc1, y
!>     x = graph%add_tensor(MP_FP32)
!>     w = graph%add_tensor(MP_FP32, role=MP_TENSOR_ROLE_PARAMETER)
!>     fc1 = graph%add_node('MatMul', [x, w], name='fc1')
!>     y = graph%add_tensor(MP_FP32, producer=fc1)
!>     call policy%create(mp_autocast_config_default(MP_FP16))
!>     call policy%rewrite(graph, rewritten)
!>     print *, rewritten%node_dtype(fc1) == MP_FP16
!>     call policy%destroy()
!>
!> Nodes, tensors, inputs and casts are numbered from 1, and 0 means none; error messages and
!> reports of the library number them from 0.  Trailing blanks are not part of a name.  stat and
!> errmsg are those of module mpcore.
module mpcore_autocast
  use mpcore
  use mpcore_graph
  implicit none
  private
  public :: mp_autocast, mp_graph, mp_rewritten

  !> Result of a rewrite.
  type :: mp_rewritten
    integer(c_int), allocatable :: tensor_dtype(:) !< type in which each tensor is written
    integer(c_int), allocatable :: node_dtype(:) !< MP_FP32 or the 16-bit type
    integer(c_int), allocatable :: node_reason(:) !< reason for each node, MP_AUTOCAST_REASON_*
    integer, allocatable :: node_cause(:) !< a node that caused the type
    !> First input of each node: the inputs of node i are input_offsets(i) to
    !> input_offsets(i + 1) - 1.
    integer, allocatable :: input_offsets(:)
    integer, allocatable :: input_cast(:) !< index into casts, per input; 0: no cast
    type(mp_autocast_cast_t), allocatable :: casts(:) !< ordered by tensor
    integer :: num_low_nodes = 0
    integer :: num_parameters_low = 0 !< number of casts of kind MP_CAST_KIND_MODEL_COPY
    character(:), allocatable :: disabled_reason !< reason why nothing was changed, or ''
    type(c_ptr), private :: reason_of_c = c_null_ptr
  end type

  !> A mixed-precision policy: operation lists and a level.  Immutable after its first use.
  !> Assignment does not copy it: both variables refer to the same policy, and the first destroy or
  !> create on any of them ends it for all.
  type :: mp_autocast
    type(c_ptr), pointer, private :: shared => null() ! never deallocated: others may read it
  contains
    procedure :: handle
    procedure :: create
    procedure :: destroy
    procedure :: set_class
    procedure :: set_nodes
    procedure :: class_of
    procedure :: get_disabled_reason
    procedure :: rewrite
    procedure :: explain
    procedure :: op
  end type

contains

  ! ---------------------------------------------------------------- policies

  !> Returns the handle for C functions; c_null_ptr if there is no policy.
  function handle(policy)
    class(mp_autocast), intent(in) :: policy
    type(c_ptr) :: handle
    handle = c_null_ptr
    if (associated(policy%shared)) handle = policy%shared
  end function

  !> Creates a policy from a config; default: FP16.
  subroutine create(policy, config, stat, errmsg)
    class(mp_autocast), intent(inout) :: policy
    type(mp_autocast_config_t), intent(in), optional :: config
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call policy%destroy()
    allocate (policy%shared)
    policy%shared = c_null_ptr
    call mp_check(mp_autocast_create(policy%shared, config), stat, errmsg)
  end subroutine

  subroutine destroy(policy)
    class(mp_autocast), intent(inout) :: policy
    call mp_autocast_destroy(policy%handle())
    if (associated(policy%shared)) policy%shared = c_null_ptr
  end subroutine

  !> Moves operations to a class.
  subroutine set_class(policy, op_types, op_class, stat, errmsg)
    class(mp_autocast), intent(in) :: policy
    character(*), intent(in) :: op_types(:)
    integer(c_int), intent(in) :: op_class
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(strings), target :: text
    type(c_ptr), target :: names(size(op_types) + 1) ! c_loc requires a nonempty array
    integer(c_int64_t) :: first(size(op_types))
    integer :: i
    do i = 1, size(op_types)
      first(i) = text%add(op_types(i))
    end do
    do i = 1, size(op_types)
      names(i) = text%address(first(i))
    end do
    call mp_check(mp_autocast_set_class(policy%handle(), c_loc(names), size(op_types), op_class), stat, errmsg)
  end subroutine

  !> Assigns a class to nodes with matching names, for any operation.  The last matching pattern
  !> applies.
  subroutine set_nodes(policy, pattern, node_class, stat, errmsg)
    class(mp_autocast), intent(in) :: policy
    character(*), intent(in) :: pattern
    integer(c_int), intent(in) :: node_class
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(strings), target :: text
    integer(c_int64_t) :: first
    first = text%add(pattern)
    call mp_check(mp_autocast_set_nodes(policy%handle(), text%address(first), node_class), stat, errmsg)
  end subroutine

  !> Returns the class of an operation, before the level is applied.
  function class_of(policy, op_type)
    class(mp_autocast), intent(in) :: policy
    character(*), intent(in) :: op_type
    integer(c_int) :: class_of
    type(strings), target :: text
    integer(c_int64_t) :: first
    first = text%add(op_type)
    class_of = mp_autocast_get_class(policy%handle(), text%address(first))
  end function

  !> Returns the reason why rewrites are disabled on a device, or ''.  Without a context only the
  !> environment can disable them.
  subroutine get_disabled_reason(policy, disabled_reason, context, stat, errmsg)
    class(mp_autocast), intent(in) :: policy
    character(:), allocatable, intent(out) :: disabled_reason
    type(c_ptr), intent(in), optional :: context
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: because
    because = c_null_ptr
    call mp_check(mp_autocast_get_disabled_reason(policy%handle(), device_of(context), because), stat, errmsg)
    disabled_reason = clause(because)
  end subroutine

  function device_of(context)
    type(c_ptr), intent(in), optional :: context
    type(c_ptr) :: device_of
    device_of = c_null_ptr
    if (present(context)) device_of = context
  end function

  function clause(because)
    type(c_ptr), intent(in) :: because
    character(:), allocatable :: clause
    clause = ''
    if (c_associated(because)) clause = mp_text(because)
  end function

  ! ---------------------------------------------------------------- rewrites

  !> Selects the nodes that run in 16 bits and the casts between them.  With a context, nothing
  !> changes if get_disabled_reason returns a reason for its device.
  subroutine rewrite(policy, graph, rewritten, context, stat, errmsg)
    class(mp_autocast), intent(in) :: policy
    type(mp_graph), intent(in), target :: graph
    type(mp_rewritten), intent(out) :: rewritten
    type(c_ptr), intent(in), optional :: context
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(lent_graph), target :: lent
    type(mp_autocast_result_t) :: raw
    integer(c_int8_t), allocatable, target :: tensor_dtype(:), node_dtype(:), node_reason(:)
    integer(c_int32_t), allocatable, target :: node_cause(:), input_cast(:)
    type(mp_autocast_cast_t), allocatable, target :: casts(:)
    integer :: nodes, tensors, inputs
    integer(c_int) :: status

    call lend(graph, lent)
    nodes = lent%raw%num_nodes
    tensors = lent%raw%num_tensors
    inputs = lent%input_offsets(nodes + 1)
    ! One more than is written, because c_loc requires a nonempty array.
    allocate (tensor_dtype(tensors + 1), node_dtype(nodes + 1), node_reason(nodes + 1), node_cause(nodes + 1))
    allocate (input_cast(inputs + 1))
    allocate (casts(2*tensors + inputs + 1)) ! the maximum with MP_AUTOCAST_FLAG_EMULATE
    raw%tensor_dtype = c_loc(tensor_dtype)
    raw%node_dtype = c_loc(node_dtype)
    raw%node_reason = c_loc(node_reason)
    raw%node_cause = c_loc(node_cause)
    raw%input_cast = c_loc(input_cast)
    raw%casts = c_loc(casts)
    status = mp_autocast_rewrite(policy%handle(), device_of(context), lent%raw, raw)
    call mp_check(status, stat, errmsg)
    if (status /= MP_SUCCESS) return

    rewritten%tensor_dtype = int(tensor_dtype(:tensors), c_int)
    rewritten%node_dtype = int(node_dtype(:nodes), c_int)
    rewritten%node_reason = int(node_reason(:nodes), c_int)
    rewritten%node_cause = node_cause(:nodes) + 1
    rewritten%input_offsets = lent%input_offsets + 1
    rewritten%input_cast = input_cast(:inputs) + 1
    rewritten%casts = casts(:raw%num_casts)
    rewritten%casts%tensor = rewritten%casts%tensor + 1
    rewritten%num_low_nodes = raw%num_low_nodes
    rewritten%num_parameters_low = raw%num_parameters_low
    rewritten%disabled_reason = clause(raw%disabled_reason)
    rewritten%reason_of_c = raw%disabled_reason
  end subroutine

  !> Returns a report on a rewrite of this graph by this policy; default format:
  !> MP_AUTOCAST_FORMAT_TEXT.
  subroutine explain(policy, graph, rewritten, report, format, stat, errmsg)
    class(mp_autocast), intent(in) :: policy
    type(mp_graph), intent(in), target :: graph
    type(mp_rewritten), intent(in) :: rewritten
    character(:), allocatable, intent(out) :: report
    integer(c_int), intent(in), optional :: format
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(lent_graph), target :: lent
    type(mp_autocast_result_t) :: raw ! its arrays are not read
    character(kind=c_char), allocatable, target :: text(:)
    integer(c_size_t), target :: bytes
    integer(c_int) :: chosen, status
    chosen = MP_AUTOCAST_FORMAT_TEXT
    if (present(format)) chosen = format
    call lend(graph, lent)
    raw%disabled_reason = rewritten%reason_of_c
    status = mp_autocast_explain(policy%handle(), lent%raw, raw, chosen, c_null_ptr, c_loc(bytes))
    if (status == MP_SUCCESS) then
      allocate (text(bytes))
      status = mp_autocast_explain(policy%handle(), lent%raw, raw, chosen, c_loc(text), c_loc(bytes))
    end if
    call mp_check(status, stat, errmsg)
    if (status == MP_SUCCESS) report = mp_text(c_loc(text))
  end subroutine

  !> Returns the casts of a single operation, for eager execution.
  !>
  !>   dtypes   types of the inputs; MP_DTYPE_NONE: not floating-point
  !>   cast_to  type to cast each input to; MP_DTYPE_NONE: no cast
  !>   output   type of the output; MP_DTYPE_NONE if no input is floating-point
  subroutine op(policy, op_type, dtypes, cast_to, output, stat, errmsg)
    class(mp_autocast), intent(in) :: policy
    character(*), intent(in) :: op_type
    integer(c_int), intent(in) :: dtypes(:)
    integer(c_int), allocatable, intent(out) :: cast_to(:)
    integer(c_int), intent(out) :: output
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(strings), target :: text
    integer(c_int8_t), target :: inputs(size(dtypes) + 1), casts(size(dtypes) + 1) ! see set_class
    integer(c_int64_t) :: first
    integer(c_int) :: status
    first = text%add(op_type)
    inputs(:size(dtypes)) = byte(int(dtypes, c_int64_t))
    output = MP_DTYPE_NONE
    status = mp_autocast_op(policy%handle(), text%address(first), c_loc(inputs), size(dtypes), casts(1), output)
    call mp_check(status, stat, errmsg)
    if (status == MP_SUCCESS) cast_to = int(casts(:size(dtypes)), c_int)
  end subroutine

end module
