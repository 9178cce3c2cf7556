!> Tests of the module mpcore_autocast.
module autocast_tests
  use mpcore
  use mpcore_autocast
  use expectations
  implicit none
  private
  public :: test_autocast

contains

  subroutine test_autocast(context)
    type(c_ptr), intent(in) :: context
    call test_graph()
    call test_configurations()
    call test_classes_and_patterns()
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

  !> A graph with a node for each property that decides a type.
  function network() result(g)
    type(mp_graph) :: g
    integer :: x, w1, gain, w2, y, node, back, next
    x = g%add_tensor(MP_FP32)
    w1 = g%add_tensor(MP_FP32, role=MP_TENSOR_ROLE_PARAMETER)
    gain = g%add_tensor(MP_FP32, role=MP_TENSOR_ROLE_PARAMETER)
    w2 = g%add_tensor(MP_FP32, role=MP_TENSOR_ROLE_PARAMETER)
    y = result_of(g%add_node('Conv2D', [x, w1], name='conv1', depth=575_c_int64_t))
    y = result_of(g%add_node('BatchNorm', [y, gain, 0], name='norm  ', &
      slots=[0, MP_AUTOCAST_SLOT_FP32, MP_AUTOCAST_SLOT_FP32]))
    y = result_of(g%add_node('Relu', [y], name='relu'))
    y = result_of(g%add_node('Conv2D', [y, w2], name='conv2'))
    node = g%add_node('Exp', [y], name='exp')
    y = g%add_tensor(MP_FP32, producer=node, role=MP_TENSOR_ROLE_OUTPUT)
    y = result_of(g%add_node('MatMul', [x, x], depth=576_c_int64_t))
    y = g%add_tensor(MP_FP32, amax=1001.0)
    y = result_of(g%add_node('MatMul', [y, x]))
    y = result_of(g%add_node('MatMul', [x, x], flags=MP_NODE_FLAG_KEEP_FP32))
    y = result_of(g%add_node('', [x], op_class=MP_OP_CLASS_ALLOW))
    back = g%add_tensor(MP_FP32) ! read before the node that writes it is added
    y = result_of(g%add_node('MatMul', [x, back]))
    next = g%add_node('TensorListGetItem', [y])
    call g%set_producer(back, next)
    call g%add_cluster([next - 1, next], is_loop=.false.)
    y = result_of(g%add_node('MatMul', [x, x]))
    y = result_of(g%add_node('TensorListGetItem', [x]))
    call g%add_cluster([next + 1, next + 2], is_loop=.true.)
    y = result_of(g%add_node('MatMul', [x, x]))
    y = result_of(g%add_node('Tanh', [y]))
    call g%add_hidden_edge(5, next + 4)
    node = g%add_node('MatMul', [y, 0])
    y = g%add_tensor(MP_FP32, producer=node, slot=MP_AUTOCAST_SLOT_FP32)
    y = g%add_tensor(MP_DTYPE_NONE, producer=node)

  contains

    integer function result_of(producer)
      integer, intent(in) :: producer
      result_of = g%add_tensor(MP_FP32, producer=producer)
    end function
  end function

  subroutine test_graph()
    integer, parameter :: h = MP_FP16, f = MP_FP32
    type(mp_autocast) :: policy
    type(mp_autocast_config_t) :: limited
    type(mp_graph) :: nothing
    type(mp_rewritten) :: r
    character(:), allocatable :: report
    limited = config()
    limited%amax_limit = 1000
    limited%depth_limit = 575
    call policy%create(limited)
    call policy%rewrite(network(), r)
    call expect('types of tensors', same(r%tensor_dtype, [f, f, f, f, h, h, h, h, f, f, f, f, f, h, h, h, f, f, h, &
      f, f, MP_DTYPE_NONE]))
    call expect('types of nodes', same(r%node_dtype, [h, h, h, h, f, f, f, f, h, h, h, f, f, h, f, h]))
    call expect('reasons', same(r%node_reason, [MP_AUTOCAST_REASON_ALLOW_LIST, MP_AUTOCAST_REASON_BETWEEN_ALLOW, &
      MP_AUTOCAST_REASON_BETWEEN_ALLOW, MP_AUTOCAST_REASON_ALLOW_LIST, MP_AUTOCAST_REASON_DENY_LIST, &
      MP_AUTOCAST_REASON_DEPTH, MP_AUTOCAST_REASON_RANGE, MP_AUTOCAST_REASON_KEPT, MP_AUTOCAST_REASON_ALLOW_LIST, &
      MP_AUTOCAST_REASON_ALLOW_LIST, MP_AUTOCAST_REASON_CLUSTER_LOW, MP_AUTOCAST_REASON_CLUSTER_FP32, &
      MP_AUTOCAST_REASON_NO_ALLOW_NEARBY, MP_AUTOCAST_REASON_ALLOW_LIST, MP_AUTOCAST_REASON_DENY_UPSTREAM, &
      MP_AUTOCAST_REASON_ALLOW_LIST]))
    call expect('causes', same(r%node_cause, [0, 4, 4, 0, 0, 0, 0, 0, 0, 0, 10, 13, 0, 0, 5, 0]))
    call expect('casts of which tensors', size(r%casts) == 6 .and. all(r%casts%tensor == [1, 2, 4, 8, 19, 20]))
    call expect('casts from and to', &
      all(r%casts%from == [f, f, f, h, h, f]) .and. all(r%casts%to == [h, h, h, f, f, h]))
    call expect('kinds of casts', all(r%casts%kind == [MP_CAST_KIND_KERNEL, MP_CAST_KIND_MODEL_COPY, &
      MP_CAST_KIND_MODEL_COPY, MP_CAST_KIND_KERNEL, MP_CAST_KIND_KERNEL, MP_CAST_KIND_KERNEL]))
    call expect('readers of casts', all(r%casts%readers == [5, 1, 1, 1, 1, 1]))
    call expect('inputs of nodes', &
      same(r%input_offsets, [1, 3, 6, 7, 9, 10, 12, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28]))
    call expect('casts that inputs read', same(r%input_cast, [1, 2, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 1, 1, 0, &
      0, 0, 0, 0, 1, 1, 5, 6, 0]))
    call expect('counts', r%num_low_nodes == 9 .and. r%num_parameters_low == 2 .and. r%disabled_reason == '')

    call policy%explain(network(), r, report)
    call expect('report: '//report, index(report, 'norm   BatchNorm          fp16  between conv1 and conv2') > 0 .and. &
      index(report, '#6     MatMul             fp32  a tensor exceeds amax_limit') > 0)
    call policy%explain(network(), r, report, MP_AUTOCAST_FORMAT_JSON)
    call expect('report in JSON', index(report, '"num_low_nodes": 9') > 0)

    call policy%rewrite(nothing, r)
    call expect('an empty graph', size(r%node_dtype) == 0 .and. size(r%tensor_dtype) == 0 .and. &
      size(r%casts) == 0 .and. size(r%input_cast) == 0)
    call policy%destroy()
    call expect('destroyed', .not. c_associated(policy%handle()))
  end subroutine

  pure logical function same(got, wanted)
    integer, intent(in) :: got(:), wanted(:)
    same = size(got) == size(wanted)
    if (same) same = all(got == wanted)
  end function

  subroutine test_configurations()
    type(mp_autocast) :: policy
    type(mp_autocast_config_t) :: c
    type(mp_scaler_config_t) :: scaler
    type(mp_rewritten) :: r
    integer(c_int) :: stat
    character(200) :: errmsg
    c = config()
    c%flags = ior(c%flags, MP_AUTOCAST_FLAG_EMULATE)
    call policy%create(c)
    call policy%rewrite(network(), r)
    call expect('more casts than tensors', size(r%casts) > size(r%tensor_dtype))
    c%depth_limit = -1
    call policy%create(c, stat, errmsg) ! destroys the previous policy
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
    call policy%rewrite(network(), r)
    call expect('patterns', all(r%node_reason(:5) == [MP_AUTOCAST_REASON_PATTERN, &
      MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW, MP_AUTOCAST_REASON_UNLISTED, MP_AUTOCAST_REASON_UNLISTED, &
      MP_AUTOCAST_REASON_UNLISTED]) .and. &
      all(r%node_cause(:5) == [0, 1, 0, 0, 0]))
    call policy%set_class(['Exp'], MP_OP_CLASS_ALLOW, stat, errmsg)
    call expect('a policy in use is immutable: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. errmsg == &
      'mp_autocast_set_class: policy is in use and cannot be modified; create a new one')
    call policy%destroy()
  end subroutine

  !> Values that do not fit into the arrays of mp_autocast_graph_t become invalid ones, or are
  !> rejected by the module.
  subroutine test_wrong_graphs()
    type(mp_autocast) :: policy
    type(mp_graph) :: g
    type(mp_rewritten) :: good, r
    integer(c_int) :: stat
    character(200) :: errmsg
    integer :: added
    call policy%create(config())
    g = network()
    call policy%rewrite(g, good)
    call expect_rejected(g%add_node('MatMul', [1], flags=-1), 'graph->node_flags[16] = 32767 has unknown bits')
    g = network()
    call expect_rejected(g%add_node('', [1]), &
      'graph->node_op[16] = NULL, but graph->node_class does not set the class of the node')
    g = network()
    call expect_rejected(g%add_node('MatMul', [1], op_class=500), &
      'graph->node_class[16] = 255 must be 0 or 1 + mp_op_class_t')
    g = network()
    call expect_rejected(g%add_tensor(256 + MP_FP32), &
      'graph->tensor_dtype[22] = 255 must be the mp_dtype_t of an element')

    g = network()
    added = g%add_tensor(MP_FP32, slot=256, stat=stat, errmsg=errmsg)
    call expect('a slot: '//trim(errmsg), added == 0 .and. stat == MP_ERROR_INVALID_ARGUMENT .and. &
      errmsg == 'mp_graph: a slot is outside [0, MP_AUTOCAST_SLOT_FP32]')
    added = g%add_node('MatMul', [1, 1], slots=[0, -1], stat=stat)
    call expect('a slot of an input', added == 0 .and. stat == MP_ERROR_INVALID_ARGUMENT)
    added = g%add_node('MatMul', [1, 1], slots=[0], stat=stat, errmsg=errmsg)
    call expect('slots: '//trim(errmsg), added == 0 .and. stat == MP_ERROR_INVALID_ARGUMENT .and. &
      errmsg == 'mp_graph: slots and inputs must have equal sizes')
    call g%set_producer(30, 1, stat, errmsg)
    call expect('a producer: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. &
      errmsg == 'mp_graph: tensor = 30 is outside [1, 22]')
    call g%set_producer(1, 0, stat)
    call policy%rewrite(g, r)
    call expect('the graph is unchanged', stat == MP_SUCCESS .and. all(r%node_dtype == good%node_dtype))
    call policy%destroy()

  contains

    !> Expects that rewrite and explain reject the graph after an addition, and with this message.
    subroutine expect_rejected(added, message)
      integer, intent(in) :: added
      character(*), intent(in) :: message
      character(:), allocatable :: report
      call policy%rewrite(g, r, stat=stat, errmsg=errmsg)
      call expect('rewrite: '//trim(errmsg), added > 0 .and. stat == MP_ERROR_INVALID_ARGUMENT .and. &
        errmsg == 'mp_autocast_rewrite: '//message .and. .not. allocated(r%node_dtype))
      call policy%explain(g, good, report, stat=stat)
      call expect('explain: '//message, stat == MP_ERROR_INVALID_ARGUMENT .and. .not. allocated(report))
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
    call policy%rewrite(network(), r, context)
    call expect('the rewrite is disabled', r%disabled_reason == because .and. size(r%casts) == 0 .and. &
      all(r%node_reason == MP_AUTOCAST_REASON_DISABLED) .and. all(r%node_dtype == MP_FP32) .and. all(r%input_cast == 0))
    call policy%explain(network(), r, text)
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
