!> Policies of automatic mixed precision for Fortran.
!>
!>     type(mp_autocast) :: policy
!>     call policy%create(mp_autocast_config_default(MP_FP16))
!>     call policy%set_nodes('head/*', MP_OP_CLASS_DENY) ! in fp32
!>     call net%autocast(policy)                         ! an mp_network
!>     call net%compile()
!>     call policy%destroy()
!>
!> Trailing blanks are not part of a name.  stat and errmsg are those of module mpcore.
module mpcore_autocast
  use mpcore
  implicit none
  private
  public :: mp_autocast

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
    procedure :: op
  end type

contains

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
    character(len(op_types) + 1, c_char), target :: text(size(op_types))
    type(c_ptr), target :: names(size(op_types) + 1) ! c_loc requires a nonempty array
    integer :: i
    do i = 1, size(op_types)
      text(i) = trim(op_types(i))//c_null_char
      names(i) = mp_address(text(i))
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
    character(:, c_char), allocatable, target :: text
    text = trim(pattern)//c_null_char
    call mp_check(mp_autocast_set_nodes(policy%handle(), mp_address(text), node_class), stat, errmsg)
  end subroutine

  !> Returns the class of an operation, before the level is applied.
  function class_of(policy, op_type)
    class(mp_autocast), intent(in) :: policy
    character(*), intent(in) :: op_type
    integer(c_int) :: class_of
    character(:, c_char), allocatable, target :: text
    text = trim(op_type)//c_null_char
    class_of = mp_autocast_get_class(policy%handle(), mp_address(text))
  end function

  !> Returns the reason why rewrites are disabled on a device, or ''.  Without a context only the
  !> environment can disable them.
  subroutine get_disabled_reason(policy, disabled_reason, context, stat, errmsg)
    class(mp_autocast), intent(in) :: policy
    character(:), allocatable, intent(out) :: disabled_reason
    type(c_ptr), intent(in), optional :: context
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: because, device
    because = c_null_ptr
    device = c_null_ptr
    if (present(context)) device = context
    call mp_check(mp_autocast_get_disabled_reason(policy%handle(), device, because), stat, errmsg)
    disabled_reason = ''
    if (c_associated(because)) disabled_reason = mp_text(because)
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
    character(:, c_char), allocatable, target :: text
    integer(c_int8_t), target :: inputs(size(dtypes) + 1), casts(size(dtypes) + 1) ! see set_class
    integer(c_int) :: status
    text = trim(op_type)//c_null_char
    ! The library rejects -1, which replaces numbers that a byte cannot store.
    inputs(:size(dtypes)) = int(merge(dtypes, -1, dtypes >= 0 .and. dtypes <= 127), c_int8_t)
    output = MP_DTYPE_NONE
    status = mp_autocast_op(policy%handle(), mp_address(text), c_loc(inputs), size(dtypes), casts(1), output)
    call mp_check(status, stat, errmsg)
    if (status == MP_SUCCESS) cast_to = int(casts(:size(dtypes)), c_int)
  end subroutine

end module
