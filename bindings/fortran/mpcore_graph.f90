!> Graphs for autocast.  Use module mpcore_autocast, which includes this module.
module mpcore_graph
  use mpcore
  implicit none
  private
  public :: mp_graph, lent_graph, lend, strings, byte

  !> A growing array of numbers.
  type :: numbers
    integer(c_int64_t), allocatable :: all(:)
    integer :: count = 0
  contains
    procedure :: used
    procedure :: add_int
    procedure :: add_long
    generic :: add => add_int, add_long
  end type

  !> Concatenated C strings.
  type :: strings
    character(kind=c_char), allocatable :: all(:)
    integer :: count = 0
  contains
    procedure :: add => add_string
    procedure :: address
  end type

  !> An FP32 graph: tensors, and nodes that read and write them.  It can have cycles.
  type :: mp_graph
    private
    type(strings) :: text
    type(numbers) :: node_op, node_name ! offsets in the text
    type(numbers) :: node_class, node_flags, node_depth, inputs_end, input_tensor, input_slot
    type(numbers) :: tensor_producer, tensor_slot, tensor_dtype, tensor_role
    type(numbers) :: hidden_src, hidden_dst, members_end, member, cluster_kind
    real(c_float), allocatable :: tensor_amax(:) ! size is the capacity
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
    type(c_ptr), allocatable :: node_op(:), node_name(:)
    integer(c_int8_t), allocatable :: node_class(:), input_slot(:), tensor_slot(:), tensor_dtype(:)
    integer(c_int8_t), allocatable :: tensor_role(:), cluster_kind(:)
    integer(c_int16_t), allocatable :: node_flags(:)
    integer(c_int64_t), allocatable :: node_depth(:)
    integer(c_int32_t), allocatable :: input_offsets(:), input_tensor(:), tensor_producer(:)
    integer(c_int32_t), allocatable :: hidden_src(:), hidden_dst(:), member_offsets(:), member(:)
    real(c_float), allocatable :: tensor_amax(:)
  end type

  real(c_float), parameter :: UNKNOWN_AMAX = -1

contains

  ! ---------------------------------------------------------------- growing arrays

  pure function used(list)
    class(numbers), intent(in) :: list
    integer(c_int64_t) :: used(list%count)
    if (list%count > 0) used = list%all(:list%count)
  end function

  subroutine add_long(list, number)
    class(numbers), intent(inout) :: list
    integer(c_int64_t), intent(in) :: number
    integer(c_int64_t), allocatable :: larger(:)
    if (.not. allocated(list%all)) allocate (list%all(8))
    if (list%count == size(list%all)) then
      allocate (larger(2*list%count))
      larger(:list%count) = list%all
      call move_alloc(larger, list%all)
    end if
    list%count = list%count + 1
    list%all(list%count) = number
  end subroutine

  !> Appends an optional number; default 0.
  subroutine add_int(list, number)
    class(numbers), intent(inout) :: list
    integer, intent(in), optional :: number
    integer(c_int64_t) :: long
    long = 0
    if (present(number)) long = number
    call list%add_long(long)
  end subroutine

  !> Adds a string and returns its offset; 0 if absent.
  function add_string(list, text) result(first)
    class(strings), intent(inout) :: list
    character(*), intent(in), optional :: text
    integer :: first, last, i
    character(kind=c_char), allocatable :: larger(:)
    first = 0
    if (.not. present(text)) return
    if (text == '') return
    first = list%count + 1
    last = first + len_trim(text) ! the NUL
    if (.not. allocated(list%all)) allocate (list%all(last))
    if (last > size(list%all)) then
      allocate (larger(2*last))
      larger(:list%count) = list%all(:list%count)
      call move_alloc(larger, list%all)
    end if
    do i = 1, len_trim(text)
      list%all(first + i - 1) = text(i:i)
    end do
    list%all(last) = c_null_char
    list%count = last
  end function

  function address(list, first)
    class(strings), intent(in), target :: list
    integer(c_int64_t), intent(in) :: first
    type(c_ptr) :: address
    address = c_null_ptr
    if (first > 0) address = c_loc(list%all(first))
  end function

  ! ---------------------------------------------------------------- graphs

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
    real(c_float), allocatable :: larger(:)
    integer :: tensor
    tensor = 0
    if (present(slot)) then
      if (.not. are_slots([slot], stat, errmsg)) return
    end if
    call graph%tensor_dtype%add(dtype)
    call graph%tensor_producer%add(producer)
    call graph%tensor_slot%add(slot)
    call graph%tensor_role%add(role)
    tensor = graph%tensor_dtype%count
    if (.not. allocated(graph%tensor_amax)) allocate (graph%tensor_amax(8))
    if (tensor > size(graph%tensor_amax)) then
      allocate (larger(2*tensor))
      larger(:tensor - 1) = graph%tensor_amax
      call move_alloc(larger, graph%tensor_amax)
    end if
    graph%tensor_amax(tensor) = UNKNOWN_AMAX
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
    integer :: node, i, all_slots(size(inputs))
    integer(c_int64_t) :: terms
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
    do i = 1, size(inputs)
      call graph%input_tensor%add(inputs(i))
      call graph%input_slot%add(all_slots(i))
    end do
    call graph%inputs_end%add(graph%input_tensor%count)
    call graph%node_op%add(graph%text%add(op))
    call graph%node_name%add(graph%text%add(name))
    if (present(op_class)) then
      call graph%node_class%add(1 + op_class)
    else
      call graph%node_class%add(0)
    end if
    call graph%node_flags%add(flags)
    terms = 0
    if (present(depth)) terms = depth
    call graph%node_depth%add(terms)
    node = graph%node_op%count
    if (present(stat)) stat = MP_SUCCESS
  end function

  !> Sets the producer of an existing tensor, for cycles.
  subroutine set_producer(graph, tensor, producer, stat, errmsg)
    class(mp_graph), intent(inout) :: graph
    integer, intent(in) :: tensor, producer
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    character(100) :: sentence
    if (tensor < 1 .or. tensor > graph%tensor_producer%count) then
      write (sentence, '(2(a,i0),a)') 'mp_graph: tensor = ', tensor, ' is outside [1, ', &
        graph%tensor_producer%count, ']'
      call mp_refuse(MP_ERROR_INVALID_ARGUMENT, trim(sentence), stat, errmsg)
      return
    end if
    graph%tensor_producer%all(tensor) = producer
    if (present(stat)) stat = MP_SUCCESS
  end subroutine

  !> Adds a hidden edge between nodes, through a container or through state.
  subroutine add_hidden_edge(graph, from, to)
    class(mp_graph), intent(inout) :: graph
    integer, intent(in) :: from, to
    call graph%hidden_src%add(from)
    call graph%hidden_dst%add(to)
  end subroutine

  !> Adds a cluster of nodes with equal types in slot 0: around a container, such as a list of
  !> tensors, or of a loop.
  subroutine add_cluster(graph, members, is_loop)
    class(mp_graph), intent(inout) :: graph
    integer, intent(in) :: members(:)
    logical, intent(in) :: is_loop
    integer :: i
    do i = 1, size(members)
      call graph%member%add(members(i))
    end do
    call graph%members_end%add(graph%member%count)
    call graph%cluster_kind%add(merge(1, 0, is_loop))
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

  !> Converts indices of this module to those of C.
  pure function indices(list)
    type(numbers), intent(in) :: list
    integer(c_int32_t) :: indices(list%count)
    indices = int(list%used() - 1, c_int32_t)
  end function

  !> Converts end offsets to the start offsets of C.
  pure function begins(ends)
    type(numbers), intent(in) :: ends
    integer(c_int32_t) :: begins(ends%count + 1)
    begins = [0_c_int32_t, int(ends%used(), c_int32_t)]
  end function

  !> Converts the graph to the C struct.  Arrays without values are NULL.
  subroutine lend(graph, lent)
    class(mp_graph), intent(in), target :: graph
    type(lent_graph), intent(out), target :: lent
    integer :: i
    allocate (lent%node_op(graph%node_op%count), lent%node_name(graph%node_name%count))
    do i = 1, graph%node_op%count
      lent%node_op(i) = graph%text%address(graph%node_op%all(i))
      lent%node_name(i) = graph%text%address(graph%node_name%all(i))
    end do
    lent%node_class = byte(graph%node_class%used())
    lent%node_flags = word(graph%node_flags%used())
    lent%node_depth = graph%node_depth%used()
    lent%input_offsets = begins(graph%inputs_end)
    lent%input_tensor = indices(graph%input_tensor)
    lent%input_slot = byte(graph%input_slot%used())
    lent%tensor_producer = indices(graph%tensor_producer)
    lent%tensor_slot = byte(graph%tensor_slot%used())
    lent%tensor_dtype = byte(graph%tensor_dtype%used())
    lent%tensor_role = byte(graph%tensor_role%used())
    lent%hidden_src = indices(graph%hidden_src)
    lent%hidden_dst = indices(graph%hidden_dst)
    lent%member_offsets = begins(graph%members_end)
    lent%member = indices(graph%member)
    lent%cluster_kind = byte(graph%cluster_kind%used())

    lent%raw%num_nodes = graph%node_op%count
    lent%raw%num_tensors = graph%tensor_dtype%count
    lent%raw%num_hidden_edges = graph%hidden_src%count
    lent%raw%num_clusters = graph%cluster_kind%count
    lent%raw%input_offsets = c_loc(lent%input_offsets)
    lent%raw%member_offsets = c_loc(lent%member_offsets)
    if (any(lent%node_class /= 0)) lent%raw%node_class = c_loc(lent%node_class)
    if (any(lent%node_flags /= 0)) lent%raw%node_flags = c_loc(lent%node_flags)
    if (any(lent%node_depth /= 0)) lent%raw%node_depth = c_loc(lent%node_depth)
    if (any(graph%node_name%used() > 0)) lent%raw%node_name = c_loc(lent%node_name)
    if (any(lent%input_slot /= 0)) lent%raw%input_slot = c_loc(lent%input_slot)
    if (any(lent%tensor_slot /= 0)) lent%raw%tensor_slot = c_loc(lent%tensor_slot)
    if (any(lent%tensor_role /= 0)) lent%raw%tensor_role = c_loc(lent%tensor_role)
    if (any(lent%cluster_kind /= 0)) lent%raw%cluster_kind = c_loc(lent%cluster_kind)
    if (size(lent%node_op) > 0) lent%raw%node_op = c_loc(lent%node_op)
    if (size(lent%input_tensor) > 0) lent%raw%input_tensor = c_loc(lent%input_tensor)
    if (size(lent%member) > 0) lent%raw%member = c_loc(lent%member)
    if (size(lent%hidden_src) > 0) then
      lent%raw%hidden_src = c_loc(lent%hidden_src)
      lent%raw%hidden_dst = c_loc(lent%hidden_dst)
    end if
    if (size(lent%tensor_dtype) == 0) return
    lent%raw%tensor_producer = c_loc(lent%tensor_producer)
    lent%raw%tensor_dtype = c_loc(lent%tensor_dtype)
    lent%tensor_amax = graph%tensor_amax(:graph%tensor_dtype%count)
    if (any(lent%tensor_amax /= UNKNOWN_AMAX)) lent%raw%tensor_amax = c_loc(lent%tensor_amax)
  end subroutine

end module
