!> Tests of the module mpcore_autocast.
module autocast_tests
  use mpcore
  use mpcore_autocast
  use expectations
  implicit none
  private
  public :: test_autocast

  integer, parameter :: NODES = 5, TENSORS = 9

contains

  subroutine test_autocast(context)
    type(c_ptr), intent(in) :: context
    call test_small_graph()
    call test_configurations()
    call test_classes_and_patterns()
    call test_node_properties()
    call test_loops_and_edges()
    call test_many_nodes()
    call test_wrong_graphs()
    call test_disabled(context)
    call test_unwritten_outputs(context)
    call test_operations()
    call test_assignment()
  end subroutine

  function config() result(it)
    type(mp_autocast_config_t) :: it
    it = mp_autocast_config_default(MP_FP16)
    it%flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT
  end function

  !> Nodes: conv1, norm, relu, conv2, exp.  Tensors: x, w1, gain, w2 and the outputs of the nodes.
  function small_graph() result(g)
    type(mp_graph) :: g
    integer :: x, w1, gain, w2, node
    x = g%add_tensor(MP_FP32)
    w1 = g%add_tensor(MP_FP32, role=MP_TENSOR_ROLE_PARAMETER)
    gain = g%add_tensor(MP_FP32, role=MP_TENSOR_ROLE_PARAMETER)
    w2 = g%add_tensor(MP_FP32, role=MP_TENSOR_ROLE_PARAMETER)
    node = g%add_node('Conv2D', [x, w1], name='conv1', depth=576_c_int64_t)
    x = g%add_tensor(MP_FP32, producer=node)
    node = g%add_node('BatchNorm', [x, gain, 0], name='norm  ', slots=[0, MP_AUTOCAST_SLOT_FP32, MP_AUTOCAST_SLOT_FP32])
    x = g%add_tensor(MP_FP32, producer=node)
    node = g%add_node('Relu', [x], name='relu')
    x = g%add_tensor(MP_FP32, producer=node)
    node = g%add_node('Conv2D', [x, w2], name='conv2')
    x = g%add_tensor(MP_FP32, producer=node)
    node = g%add_node('Exp', [x], name='exp')
    x = g%add_tensor(MP_FP32, producer=node, role=MP_TENSOR_ROLE_OUTPUT)
  end function

  subroutine test_small_graph()
    type(mp_autocast) :: policy
    type(mp_graph) :: nothing
    type(mp_rewritten) :: r
    character(:), allocatable :: report
    call policy%create(config())
    call policy%rewrite(small_graph(), r)
    call expect('types of tensors', all(r%tensor_dtype == [MP_FP32, MP_FP32, MP_FP32, MP_FP32, MP_FP16, &
      MP_FP16, MP_FP16, MP_FP16, MP_FP32]) .and. size(r%tensor_dtype) == TENSORS)
    call expect('types of nodes', all(r%node_dtype == [MP_FP16, MP_FP16, MP_FP16, MP_FP16, MP_FP32]) .and. &
      size(r%node_dtype) == NODES)
    call expect('reasons', all(r%node_reason == [MP_AUTOCAST_REASON_ALLOW_LIST, MP_AUTOCAST_REASON_BETWEEN_ALLOW, &
      MP_AUTOCAST_REASON_BETWEEN_ALLOW, MP_AUTOCAST_REASON_ALLOW_LIST, MP_AUTOCAST_REASON_DENY_LIST]) .and. &
      all(r%node_cause == [0, 4, 4, 0, 0]))
    call expect('casts of which tensors', all(r%casts%tensor == [1, 2, 4, 8]) .and. size(r%casts) == 4)
    call expect('casts from', all(r%casts%from == [MP_FP32, MP_FP32, MP_FP32, MP_FP16]))
    call expect('casts to', all(r%casts%to == [MP_FP16, MP_FP16, MP_FP16, MP_FP32]))
    call expect('kinds of casts', all(r%casts%kind == [MP_CAST_KIND_KERNEL, MP_CAST_KIND_MODEL_COPY, &
      MP_CAST_KIND_MODEL_COPY, MP_CAST_KIND_KERNEL]) .and. all(r%casts%readers == 1))
    call expect('what inputs read', all(r%input_offsets == [1, 3, 6, 7, 9, 10]) .and. &
      all(r%input_cast == [1, 2, 0, 0, 0, 0, 0, 3, 4]) .and. size(r%input_cast) == 9)
    call expect('counts', r%num_low_nodes == 4 .and. r%num_parameters_low == 2 .and. r%disabled_reason == '')

    call policy%explain(small_graph(), r, report)
    call expect('report: '//report, index(report, &
      'norm   BatchNorm  fp16  between conv1 and conv2'//new_line('a')) > 0)
    call policy%explain(small_graph(), r, report, MP_AUTOCAST_FORMAT_JSON)
    call expect('report in JSON', index(report, '"num_low_nodes": 4') > 0)
    call policy%explain(small_graph(), r, report, format=MP_AUTOCAST_FORMAT_DOT)
    call expect('picture', index(report, 'digraph autocast {') == 1)

    call policy%rewrite(nothing, r)
    call expect('an empty graph', size(r%node_dtype) == 0 .and. size(r%tensor_dtype) == 0 .and. &
      size(r%casts) == 0 .and. size(r%input_cast) == 0)
    call policy%destroy()
    call expect('destroyed', .not. c_associated(policy%handle()))
  end subroutine

  subroutine test_configurations()
    type(mp_autocast) :: policy
    type(mp_autocast_config_t) :: c
    type(mp_scaler_config_t) :: scaler
    type(mp_rewritten) :: r
    integer(c_int) :: stat
    character(200) :: errmsg
    c = config()
    c%dtype_low = MP_BF16
    c%depth_limit = 575
    call policy%create(c)
    call policy%rewrite(small_graph(), r)
    call expect('bf16 and a depth limit', r%node_dtype(4) == MP_BF16 .and. &
      r%node_dtype(1) == MP_FP32 .and. r%node_reason(1) == MP_AUTOCAST_REASON_DEPTH)
    c = config()
    c%flags = ior(c%flags, MP_AUTOCAST_FLAG_EMULATE)
    call policy%create(c) ! destroys the previous policy
    call policy%rewrite(small_graph(), r)
    ! To fp16: x, both filters, four outputs.  To fp32: the inputs of these nodes and of exp.
    call expect('emulated', all(r%tensor_dtype == MP_FP32) .and. r%node_dtype(1) == MP_FP16 .and. size(r%casts) == 14)
    c%depth_limit = -1
    call policy%create(c, stat, errmsg)
    call expect('a negative depth limit: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. &
      errmsg == 'mp_autocast_create: config->depth_limit = -1 is negative')
    call policy%destroy()
    scaler = mp_autocast_scaler_default(MP_FP16)
    call expect('the scaler of fp16', scaler%init_scale == 32768)
  end subroutine

  subroutine test_classes_and_patterns()
    type(mp_autocast) :: policy
    type(mp_rewritten) :: r
    integer(c_int) :: stat
    character(200) :: errmsg
    call policy%create(config())
    call expect('classes', policy%class_of('Conv2D') == MP_OP_CLASS_ALLOW .and. &
      policy%class_of('exp  ') == MP_OP_CLASS_DENY .and. policy%class_of('Nobody') == MP_OP_CLASS_UNLISTED)
    call policy%set_class([character(9) :: 'Nobody', 'BatchNorm'], MP_OP_CLASS_DENY)
    call expect('set_class replaces a class', policy%class_of('Nobody') == MP_OP_CLASS_DENY .and. &
      policy%class_of('BatchNorm') == MP_OP_CLASS_DENY)
    call policy%set_class([character(1) ::], MP_OP_CLASS_DENY)
    call policy%set_nodes('*', MP_OP_CLASS_UNLISTED)
    call policy%set_nodes('conv[!2]', MP_OP_CLASS_ALLOW)
    call policy%set_nodes('n*m', MP_OP_CLASS_CLEAR)
    call policy%set_nodes('conv[12', MP_OP_CLASS_ALLOW, stat, errmsg)
    call expect('an unmatched bracket in a pattern: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. &
      errmsg == 'mp_autocast_set_nodes: pattern = conv[12 has an unmatched [')
    call policy%rewrite(small_graph(), r)
    call expect('patterns', all(r%node_reason == [MP_AUTOCAST_REASON_PATTERN, MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW, &
      MP_AUTOCAST_REASON_UNLISTED, MP_AUTOCAST_REASON_UNLISTED, MP_AUTOCAST_REASON_UNLISTED]) .and. &
      all(r%node_cause == [0, 1, 0, 0, 0]))
    call policy%set_class(['Exp'], MP_OP_CLASS_ALLOW, stat, errmsg)
    call expect('a policy in use is immutable: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. errmsg == &
      'mp_autocast_set_class: policy is in use and cannot be modified; create a new one')
    call policy%destroy()
  end subroutine

  !> A chain of products that differ in amax, flags, class and slots.
  subroutine test_node_properties()
    type(mp_autocast) :: policy
    type(mp_autocast_config_t) :: c
    type(mp_graph) :: g
    type(mp_rewritten) :: r
    character(:), allocatable :: report
    integer :: w, x, node
    w = g%add_tensor(MP_FP32)
    x = g%add_tensor(MP_FP32, amax=2000.0)
    node = g%add_node('MatMul', [x, w])
    x = g%add_tensor(MP_FP32, producer=node)
    node = g%add_node('MatMul', [x, w], flags=MP_NODE_FLAG_KEEP_FP32)
    x = g%add_tensor(MP_FP32, producer=node)
    node = g%add_node('', [x, w], op_class=MP_OP_CLASS_UNLISTED)
    x = g%add_tensor(MP_FP32, producer=node)
    node = g%add_node('MatMul', [x, w, 0])
    x = g%add_tensor(MP_FP32, producer=node, slot=MP_AUTOCAST_SLOT_FP32)
    x = g%add_tensor(MP_DTYPE_NONE, producer=node)
    c = config()
    c%amax_limit = 1000
    call policy%create(c)
    call policy%rewrite(g, r)
    call expect('reasons of a chain', all(r%node_reason == [MP_AUTOCAST_REASON_RANGE, MP_AUTOCAST_REASON_KEPT, &
      MP_AUTOCAST_REASON_UNLISTED, MP_AUTOCAST_REASON_ALLOW_LIST]))
    call expect('an fp32 slot, and a tensor of no type', all(r%tensor_dtype(6:) == [MP_FP32, MP_DTYPE_NONE]))
    call policy%explain(g, r, report)
    call expect('a node without a name', index(report, '#0  MatMul  fp32  a tensor exceeds amax_limit') > 0)
    call policy%destroy()
  end subroutine

  !> x -> MatMul -> Merge -> Relu -> NextIteration -> Merge; another product reads what Relu writes.
  function loop(next_flags, is_loop) result(g)
    integer, intent(in) :: next_flags
    logical, intent(in) :: is_loop
    type(mp_graph) :: g
    integer :: x, back, merge, next, node
    x = g%add_tensor(MP_FP32)
    back = g%add_tensor(MP_FP32)
    node = g%add_node('MatMul', [x, x])
    x = g%add_tensor(MP_FP32, producer=node)
    merge = g%add_node('Merge', [x, back])
    x = g%add_tensor(MP_FP32, producer=merge)
    node = g%add_node('Relu', [x])
    x = g%add_tensor(MP_FP32, producer=node)
    next = g%add_node('NextIteration', [x], flags=ior(MP_NODE_FLAG_BACK_EDGE, next_flags))
    call g%set_producer(back, next)
    node = g%add_node('MatMul', [x, x])
    x = g%add_tensor(MP_FP32, producer=node)
    call g%add_cluster([merge, next], is_loop)
  end function

  !> Exp and MatMul read x; Tanh and another MatMul follow that MatMul.
  function chain(has_edge) result(g)
    logical, intent(in) :: has_edge
    type(mp_graph) :: g
    integer :: x, y, exp_node, tanh_node, node
    x = g%add_tensor(MP_FP32)
    exp_node = g%add_node('Exp', [x])
    y = g%add_tensor(MP_FP32, producer=exp_node)
    node = g%add_node('MatMul', [x, x])
    x = g%add_tensor(MP_FP32, producer=node)
    tanh_node = g%add_node('Tanh', [x])
    x = g%add_tensor(MP_FP32, producer=tanh_node)
    node = g%add_node('MatMul', [x, x])
    x = g%add_tensor(MP_FP32, producer=node)
    if (has_edge) call g%add_hidden_edge(exp_node, tanh_node)
  end function

  subroutine test_loops_and_edges()
    type(mp_autocast) :: policy
    type(mp_rewritten) :: r
    call policy%create(config())
    call policy%rewrite(loop(0, .true.), r)
    call expect('a loop', all(r%node_dtype == MP_FP16) .and. r%tensor_dtype(2) == MP_FP16)
    call policy%rewrite(loop(MP_NODE_FLAG_NO_LOW, .true.), r)
    call expect('a loop with a NO_LOW node', all(r%node_dtype([2, 4]) == MP_FP32))
    call policy%rewrite(loop(MP_NODE_FLAG_NO_LOW, .false.), r)
    call expect('a non-loop cluster', r%node_reason(2) == MP_AUTOCAST_REASON_CLUSTER_FP32 .and. r%node_cause(2) == 4)
    call policy%rewrite(chain(.false.), r)
    call expect('without an edge', r%node_reason(3) == MP_AUTOCAST_REASON_BETWEEN_ALLOW .and. r%node_cause(3) == 4)
    call policy%rewrite(chain(.true.), r)
    call expect('a hidden edge', r%node_reason(3) == MP_AUTOCAST_REASON_DENY_UPSTREAM .and. r%node_cause(3) == 1)
    call policy%destroy()
  end subroutine

  !> More nodes than the initial capacity of the arrays.
  subroutine test_many_nodes()
    integer, parameter :: many = 1000
    type(mp_autocast) :: policy
    type(mp_graph) :: g
    type(mp_rewritten) :: r
    character(:), allocatable :: report
    character(12) :: name
    integer :: x, node, i
    x = g%add_tensor(MP_FP32, amax=1.0)
    do i = 1, many
      write (name, '(a,i0)') 'layer/', i
      node = g%add_node(trim(merge('MatMul', 'Relu  ', mod(i, 2) == 1)), [x], name=name)
      x = g%add_tensor(MP_FP32, producer=node, amax=real(i))
    end do
    call policy%create(config())
    call policy%rewrite(g, r)
    call expect('many nodes', r%num_low_nodes == many .and. size(r%casts) == 1)
    call policy%explain(g, r, report)
    call expect('the last of many', index(report, 'layer/1000  Relu    fp16  next to layer/999') > 0)
    call policy%destroy()
  end subroutine

  subroutine test_wrong_graphs()
    type(mp_autocast) :: policy
    type(mp_graph) :: g
    type(mp_rewritten) :: good
    call policy%create(config())
    call policy%rewrite(small_graph(), good)
    g = small_graph()
    call expect_rejected(g%add_node('MatMul', [1, 20]), 'graph->input_tensor[10] = 19 is outside [-1, num_tensors = 9)')
    g = small_graph()
    call expect_rejected(g%add_node('MatMul', [1], depth=-3_c_int64_t), 'graph->node_depth[5] = -3 is negative')
    g = small_graph()
    call expect_rejected(g%add_node('MatMul', [1], flags=-1), 'graph->node_flags[5] = 32767 has unknown bits')
    g = small_graph()
    call expect_rejected(g%add_node('', [1]), &
      'graph->node_op[5] = NULL, but graph->node_class does not set the class of the node')
    g = small_graph()
    call expect_rejected(g%add_node('MatMul', [1], op_class=500), &
      'graph->node_class[5] = 255 must be 0 or 1 + mp_op_class_t')
    g = small_graph()
    call expect_rejected(g%add_tensor(256 + MP_FP32), &
      'graph->tensor_dtype[9] = 255 must be the mp_dtype_t of an element')
    call test_rejected_additions()
    call policy%destroy()

  contains

    !> Expects that rewrite and explain reject the graph after an addition, and with this message.
    subroutine expect_rejected(added, message)
      integer, intent(in) :: added
      character(*), intent(in) :: message
      type(mp_rewritten) :: r
      integer(c_int) :: stat
      character(200) :: errmsg
      character(:), allocatable :: report
      call policy%rewrite(g, r, stat=stat, errmsg=errmsg)
      call expect('rewrite: '//trim(errmsg), added > 0 .and. stat == MP_ERROR_INVALID_ARGUMENT .and. &
        errmsg == 'mp_autocast_rewrite: '//message .and. .not. allocated(r%node_dtype))
      call policy%explain(g, good, report, stat=stat, errmsg=errmsg)
      call expect('explain: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. &
        errmsg == 'mp_autocast_explain: '//message .and. .not. allocated(report))
    end subroutine

    !> Errors that the module reports: mp_autocast_graph_t cannot represent these values.
    subroutine test_rejected_additions()
      type(mp_rewritten) :: r
      integer(c_int) :: stat
      character(200) :: errmsg
      integer :: added
      g = small_graph()
      added = g%add_tensor(MP_FP32, slot=256, stat=stat, errmsg=errmsg)
      call expect('a slot: '//trim(errmsg), added == 0 .and. stat == MP_ERROR_INVALID_ARGUMENT .and. &
        errmsg == 'mp_graph: a slot is outside [0, MP_AUTOCAST_SLOT_FP32]')
      added = g%add_node('MatMul', [1, 1], slots=[0, -1], stat=stat)
      call expect('a slot of an input', added == 0 .and. stat == MP_ERROR_INVALID_ARGUMENT)
      added = g%add_node('MatMul', [1, 1], slots=[0], stat=stat, errmsg=errmsg)
      call expect('slots: '//trim(errmsg), added == 0 .and. stat == MP_ERROR_INVALID_ARGUMENT .and. &
        errmsg == 'mp_graph: slots and inputs must have equal sizes')
      call g%set_producer(10, 1, stat, errmsg)
      call expect('a producer: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. &
        errmsg == 'mp_graph: tensor = 10 is outside [1, 9]')
      call g%set_producer(1, 0, stat)
      call policy%rewrite(g, r)
      call expect('the graph is unchanged', stat == MP_SUCCESS .and. all(r%node_dtype == good%node_dtype))
    end subroutine

  end subroutine

  subroutine test_disabled(context)
    type(c_ptr), intent(in) :: context
    character(*), parameter :: because = '16-bit arithmetic is not faster on the CPU'
    type(mp_autocast) :: policy
    type(mp_rewritten) :: r
    character(:), allocatable :: text
    integer(c_int) :: stat
    call policy%create(config())
    call policy%get_disabled_reason(text)
    call expect('not disabled', text == '')
    call policy%get_disabled_reason(text, context)
    call expect('disabled: '//text, text == because)
    call policy%rewrite(small_graph(), r, context)
    call expect('the rewrite is disabled', r%disabled_reason == because .and. size(r%casts) == 0 .and. &
      all(r%node_reason == MP_AUTOCAST_REASON_DISABLED) .and. all(r%tensor_dtype == MP_FP32) .and. all(r%input_cast == 0))
    call policy%explain(small_graph(), r, text)
    call expect('the report has the reason', index(text, 'the rewrite is disabled: '//because) > 0)
    call policy%destroy()
    call policy%get_disabled_reason(text, stat=stat)
    call expect('without a policy', stat == MP_ERROR_INVALID_ARGUMENT)
  end subroutine

  !> A rejected call does not write its outputs.
  subroutine test_unwritten_outputs(context)
    type(c_ptr), intent(in) :: context
    type(c_ptr) :: text, policy
    integer(c_int8_t) :: cast_to
    integer(c_int) :: stat, output
    text = context
    stat = mp_autocast_get_disabled_reason(c_null_ptr, c_null_ptr, text)
    call expect('a rejected query does not write its text', stat /= MP_SUCCESS .and. c_associated(text, context))
    policy = context
    stat = mp_autocast_create(policy, mp_autocast_config_t())
    call expect('a rejected creation does not write its object', stat /= MP_SUCCESS .and. c_associated(policy, context))
    output = 77
    cast_to = 7
    stat = mp_autocast_op(c_null_ptr, c_null_ptr, c_null_ptr, 1, cast_to, output)
    call expect('a rejected call does not write its numbers', stat /= MP_SUCCESS .and. cast_to == 7 .and. output == 77)
  end subroutine

  subroutine test_operations()
    type(mp_autocast) :: policy
    type(mp_autocast_config_t) :: c
    integer(c_int), allocatable :: cast_to(:)
    integer(c_int) :: output, stat
    character(200) :: errmsg
    c = config()
    c%preset = MP_AUTOCAST_PRESET_PYTORCH
    call policy%create(c)
    call policy%op('matmul', [MP_FP32, MP_FP16, MP_DTYPE_NONE], cast_to, output)
    call expect('an operation of the allow list', output == MP_FP16 .and. &
      all(cast_to == [MP_FP16, MP_DTYPE_NONE, MP_DTYPE_NONE]) .and. size(cast_to) == 3)
    call policy%op('exp', [MP_FP16], cast_to, output)
    call expect('an operation of the deny list', output == MP_FP32 .and. all(cast_to == [MP_FP32]))
    call policy%op('arange', [integer(c_int) ::], cast_to, output)
    call expect('an operation without inputs', output == MP_DTYPE_NONE .and. size(cast_to) == 0)
    call policy%op('matmul', [256 + MP_FP32], cast_to, output, stat, errmsg)
    call expect('an invalid type: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. &
      errmsg == 'mp_autocast_op: input_dtype[0] = 255 must be the mp_dtype_t of an element')
    call policy%op('binary_cross_entropy', [MP_FP16, MP_FP16], cast_to, output, stat, errmsg)
    call expect('a banned operation: '//trim(errmsg), stat == MP_ERROR_UNSUPPORTED .and. &
      index(errmsg, 'use binary_cross_entropy_with_logits') > 0)
    call policy%destroy()
  end subroutine

  !> Assignment copies the reference: both variables own one policy, which is destroyed once.
  subroutine test_assignment()
    type(mp_autocast) :: first, second
    integer(c_int) :: stat
    character(200) :: errmsg
    call first%create(config())
    second = first
    call second%set_class(['Mine'], MP_OP_CLASS_INFER)
    call expect('variables share a policy after an assignment', first%class_of('Mine') == MP_OP_CLASS_INFER)
    call first%destroy()
    call second%set_class(['Mine'], MP_OP_CLASS_DENY, stat, errmsg)
    call expect('destroy invalidates both variables', stat == MP_ERROR_INVALID_ARGUMENT .and. &
      errmsg == 'mp_autocast_set_class: policy = NULL')
    call second%destroy()
    call second%create(config())
    call expect('a variable holds a new policy after create', second%class_of('Mine') == MP_OP_CLASS_UNLISTED .and. &
      .not. c_associated(first%handle()))
    call second%destroy()
  end subroutine

end module
