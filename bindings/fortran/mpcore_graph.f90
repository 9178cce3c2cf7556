!> Graphs for autocast.  Use module mpcore_autocast, which includes this module.
module mpcore_graph
  use mpcore
  implicit none
  private
  public :: mp_graph, lent_graph, lend, strings, byte

  !> Concatenated C strings.
  type :: strings
    character(kind=c_char), allocatable :: all(:)
  contains
    procedure :: add => add_string
    procedure :: address
  end type

  !> An FP32 graph: tensors, and nodes that read and write them.  It can have cycles.  The arrays
  !> are those of mp_autocast_graph_t.
  type :: mp_graph
    private
    type(strings) :: text
    integer(c_int64_t), allocatable :: op(:), name(:) !< offsets in the text
    integer(c_int8_t), allocatable :: node_class(:), input_slot(:), tensor_slot(:), tensor_dtype(:), tensor_role(:)
    integer(c_int16_t), allocatable :: node_flags(:)
    integer(c_int64_t), allocatable :: node_depth(:)
    integer(c_int32_t), allocatable :: input_offsets(:), input_tensor(:), tensor_producer(:)
    integer(c_int32_t), allocatable :: hidden_src(:), hidden_dst(:), member_offsets(:), member(:)
    integer(c_int8_t), allocatable :: cluster_kind(:)
    real(c_float), allocatable :: tensor_amax(:)
  contains
    procedure :: add_tensor
    procedure :: add_node
    procedure :: set_producer
    procedure :: add_hidden_edge
    procedure :: add_cluster
  end type

  !> The C struct of a graph for a call, with its arrays.
  type :: lent_graph
    type(mp_autocast_graph_t) :: raw
    type(mp_graph) :: graph
    type(c_ptr), allocatable :: node_op(:), node_name(:)
    integer(c_int32_t), allocatable :: input_offsets(:)
  end type

  real(c_float), parameter :: UNKNOWN_AMAX = -1

contains

  !> Adds a string and returns its offset; 0 if absent.
  function add_string(list, text) result(first)
    class(strings), intent(inout) :: list
    character(*), intent(in), optional :: text
    integer :: first
    first = 0
    if (.not. present(text)) return
    if (text == '') return
    if (.not. allocated(list%all)) allocate (list%all(0))
    first = size(list%all) + 1
    list%all = [character(kind=c_char) :: list%all, transfer(text, c_null_char, len_trim(text)), c_null_char]
  end function

  function address(list, first)
    class(strings), intent(in), target :: list
    integer(c_int64_t), intent(in) :: first
    type(c_ptr) :: address
    address = c_null_ptr
    if (first > 0) address = c_loc(list%all(first))
  end function

  ! ---------------------------------------------------------------- graphs

  !> Allocates the arrays of a new graph.
  subroutine begin(graph)
    class(mp_graph), intent(inout) :: graph
    if (allocated(graph%op)) return
    allocate (graph%op(0), graph%name(0), graph%node_class(0), graph%node_flags(0), graph%node_depth(0))
    allocate (graph%input_tensor(0), graph%input_slot(0), graph%hidden_src(0), graph%hidden_dst(0))
    allocate (graph%tensor_producer(0), graph%tensor_slot(0), graph%tensor_dtype(0), graph%tensor_role(0))
    allocate (graph%tensor_amax(0), graph%member(0), graph%cluster_kind(0))
    graph%input_offsets = [0]
    graph%member_offsets = [0]
  end subroutine

  !> Returns an optional number; default 0.
  pure function given(number)
    integer, intent(in), optional :: number
    integer(c_int64_t) :: given
    given = 0
    if (present(number)) given = number
  end function

  !> Adds a tensor.
  !>
  !>   producer  node that writes it; absent: graph input
  !>   slot      output slot of the producer
  !>   role      default MP_TENSOR_ROLE_ACTIVATION
  !>   amax      largest |x| observed; absent: unknown
  function add_tensor(graph, dtype, producer, slot, role, amax, stat, errmsg) result(tensor)
    class(mp_graph), intent(inout) :: graph
    integer(c_int), intent(in) :: dtype
    integer, intent(in), optional :: producer, slot
    integer(c_int), intent(in), optional :: role
    real(c_float), intent(in), optional :: amax
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer :: tensor
    tensor = 0
    if (.not. are_slots([int(given(slot))], stat, errmsg)) return
    call begin(graph)
    graph%tensor_dtype = [graph%tensor_dtype, byte(given(dtype))]
    graph%tensor_producer = [graph%tensor_producer, int(given(producer) - 1, c_int32_t)]
    graph%tensor_slot = [graph%tensor_slot, byte(given(slot))]
    graph%tensor_role = [graph%tensor_role, byte(given(role))]
    graph%tensor_amax = [graph%tensor_amax, UNKNOWN_AMAX]
    tensor = size(graph%tensor_dtype)
    if (present(amax)) graph%tensor_amax(tensor) = amax
    if (present(stat)) stat = MP_SUCCESS
  end function

  !> Adds a node.
  !>
  !>   inputs    tensors; 0: an absent optional input
  !>   name      for patterns and reports
  !>   slots     input slots; default all 0
  !>   flags     bitwise OR of MP_NODE_*
  !>   depth     number of terms in the sums of the node, e.g. k of a product
  !>   op_class  MP_CAST_*, overrides the class of the operation
  function add_node(graph, op, inputs, name, slots, flags, depth, op_class, stat, errmsg) result(node)
    class(mp_graph), intent(inout) :: graph
    character(*), intent(in) :: op
    integer, intent(in) :: inputs(:)
    character(*), intent(in), optional :: name
    integer, intent(in), optional :: slots(:), flags
    integer(c_int64_t), intent(in), optional :: depth
    integer(c_int), intent(in), optional :: op_class
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer :: node, all_slots(size(inputs))
    integer(c_int64_t) :: class_number
    node = 0
    all_slots = 0
    if (present(slots)) then
      if (size(slots) /= size(inputs)) then
        call mp_refuse(MP_ERROR_INVALID_ARGUMENT, &
                       'mp_graph: slots and inputs must have equal sizes', stat, errmsg)
        return
      end if
      if (.not. are_slots(slots, stat, errmsg)) return
      all_slots = slots
    end if
    call begin(graph)
    class_number = 0
    if (present(op_class)) class_number = 1 + op_class
    graph%input_tensor = [graph%input_tensor, int(inputs - 1, c_int32_t)]
    graph%input_slot = [graph%input_slot, byte(int(all_slots, c_int64_t))]
    graph%input_offsets = [graph%input_offsets, size(graph%input_tensor)]
    graph%op = [graph%op, int(graph%text%add(op), c_int64_t)]
    graph%name = [graph%name, int(graph%text%add(name), c_int64_t)]
    graph%node_class = [graph%node_class, byte(class_number)]
    graph%node_flags = [graph%node_flags, word(given(flags))]
    graph%node_depth = [graph%node_depth, 0_c_int64_t]
    node = size(graph%op)
    if (present(depth)) graph%node_depth(node) = depth
    if (present(stat)) stat = MP_SUCCESS
  end function

  !> Sets the producer of an existing tensor, for cycles.
  subroutine set_producer(graph, tensor, producer, stat, errmsg)
    class(mp_graph), intent(inout) :: graph
    integer, intent(in) :: tensor, producer
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    character(100) :: sentence
    call begin(graph)
    if (tensor < 1 .or. tensor > size(graph%tensor_producer)) then
      write (sentence, '(2(a,i0),a)') 'mp_graph: tensor = ', tensor, ' is outside [1, ', size(graph%tensor_producer), ']'
      call mp_refuse(MP_ERROR_INVALID_ARGUMENT, trim(sentence), stat, errmsg)
      return
    end if
    graph%tensor_producer(tensor) = producer - 1
    if (present(stat)) stat = MP_SUCCESS
  end subroutine

  !> Adds a hidden edge between nodes, through a container or through state.
  subroutine add_hidden_edge(graph, from, to)
    class(mp_graph), intent(inout) :: graph
    integer, intent(in) :: from, to
    call begin(graph)
    graph%hidden_src = [graph%hidden_src, from - 1]
    graph%hidden_dst = [graph%hidden_dst, to - 1]
  end subroutine

  !> Adds a cluster of nodes with equal types in slot 0: around a container, such as a list of
  !> tensors, or of a loop.
  subroutine add_cluster(graph, members, is_loop)
    class(mp_graph), intent(inout) :: graph
    integer, intent(in) :: members(:)
    logical, intent(in) :: is_loop
    call begin(graph)
    graph%member = [graph%member, members - 1]
    graph%member_offsets = [graph%member_offsets, size(graph%member)]
    graph%cluster_kind = [graph%cluster_kind, merge(1_c_int8_t, 0_c_int8_t, is_loop)]
  end subroutine

  !> Checks the range of a slot, because the library accepts any byte.
  function are_slots(slots, stat, errmsg)
    integer, intent(in) :: slots(:)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    logical :: are_slots
    are_slots = all(slots >= 0 .and. slots <= MP_AUTOCAST_SLOT_FP32)
    if (.not. are_slots) &
      call mp_refuse(MP_ERROR_INVALID_ARGUMENT, 'mp_graph: a slot is outside [0, MP_AUTOCAST_SLOT_FP32]', stat, errmsg)
  end function

  !> Converts to a byte; values out of range become 255, which the library rejects except for slots.
  elemental function byte(number)
    integer(c_int64_t), intent(in) :: number
    integer(c_int8_t) :: byte
    byte = -1_c_int8_t
    if (number >= 0 .and. number <= 127) byte = int(number, c_int8_t)
    if (number >= 128 .and. number <= 255) byte = int(number - 256, c_int8_t)
  end function

  !> Converts flags; all valid bits are among the lower 15.
  elemental function word(number)
    integer(c_int64_t), intent(in) :: number
    integer(c_int16_t) :: word
    word = huge(word)
    if (number >= 0 .and. number <= huge(word)) word = int(number, c_int16_t)
  end function

  !> Converts a graph to the C struct.  Empty arrays are NULL.
  subroutine lend(graph, lent)
    class(mp_graph), intent(in) :: graph
    type(lent_graph), intent(out), target :: lent
    type(mp_graph), pointer :: it
    integer :: i
    it => lent%graph
    it = graph
    call begin(it)
    lent%input_offsets = it%input_offsets
    lent%raw%input_offsets = c_loc(lent%input_offsets)
    lent%raw%member_offsets = c_loc(it%member_offsets)
    lent%raw%num_nodes = size(it%op)
    lent%raw%num_tensors = size(it%tensor_dtype)
    lent%raw%num_hidden_edges = size(it%hidden_src)
    lent%raw%num_clusters = size(it%cluster_kind)
    allocate (lent%node_op(size(it%op)), lent%node_name(size(it%op)))
    do i = 1, size(it%op)
      lent%node_op(i) = it%text%address(it%op(i))
      lent%node_name(i) = it%text%address(it%name(i))
    end do
    if (size(it%op) > 0) then
      lent%raw%node_op = c_loc(lent%node_op)
      lent%raw%node_name = c_loc(lent%node_name)
      lent%raw%node_class = c_loc(it%node_class)
      lent%raw%node_flags = c_loc(it%node_flags)
      lent%raw%node_depth = c_loc(it%node_depth)
    end if
    if (size(it%input_tensor) > 0) then
      lent%raw%input_tensor = c_loc(it%input_tensor)
      lent%raw%input_slot = c_loc(it%input_slot)
    end if
    if (size(it%tensor_dtype) > 0) then
      lent%raw%tensor_producer = c_loc(it%tensor_producer)
      lent%raw%tensor_slot = c_loc(it%tensor_slot)
      lent%raw%tensor_dtype = c_loc(it%tensor_dtype)
      lent%raw%tensor_role = c_loc(it%tensor_role)
      lent%raw%tensor_amax = c_loc(it%tensor_amax)
    end if
    if (size(it%hidden_src) > 0) then
      lent%raw%hidden_src = c_loc(it%hidden_src)
      lent%raw%hidden_dst = c_loc(it%hidden_dst)
    end if
    if (size(it%member) > 0) lent%raw%member = c_loc(it%member)
    if (size(it%cluster_kind) > 0) lent%raw%cluster_kind = c_loc(it%cluster_kind)
  end subroutine

end module
