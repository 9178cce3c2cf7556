!> Tests of the module mpcore_network: a perceptron trained in fp32 and in mixed precision.
module network_tests
  use mpcore
  use mpcore_autocast
  use mpcore_network
  use mpcore_training
  use expectations
  implicit none
  private
  public :: test_network

  integer, parameter :: BATCH = 16, IN = 8, HIDDEN = 16, CLASSES = 4, STEPS = 20

  !> Linear, ReLU, Linear, cross-entropy.
  type :: perceptron
    type(mp_network) :: net
    integer :: x, labels, w1, b1, w2, b2, relu, logits, outputs(3)
  end type

  real(c_float), target :: x_data(IN, BATCH)
  integer(c_int32_t), target :: label_data(BATCH)

contains

  subroutine test_network(context)
    type(c_ptr), intent(in) :: context
    integer :: i
    x_data = reshape(numbers(IN*BATCH, 1, 0.5), [IN, BATCH])
    label_data = [(mod(i, CLASSES), i=0, BATCH - 1)]
    call test_learning(context, MP_FP32)
    call test_learning(context, MP_FP16)
    call test_checkpoint(context)
    call test_batches(context)
    call test_inference(context)
    call test_wrong_descriptions(context)
    call test_wrong_calls(context)
    call test_assignment(context)
  end subroutine

  !> Multiples of step that every type represents.
  function numbers(count, seed, step) result(values)
    integer, intent(in) :: count, seed
    real(c_float), intent(in) :: step
    real(c_float) :: values(count)
    integer :: i
    values = [((mod(i*7 + i/3 + seed*5, 9) - 4)*step, i=0, count - 1)]
  end function

  function policy_of(low, flags) result(policy)
    integer(c_int), intent(in) :: low, flags
    type(mp_autocast) :: policy
    type(mp_autocast_config_t) :: config
    config = mp_autocast_config_default(low)
    config%flags = ior(MP_AUTOCAST_FLAG_NO_ENVIRONMENT, flags)
    call policy%create(config)
  end function

  subroutine describe_perceptron(p, context)
    type(perceptron), intent(inout) :: p
    type(c_ptr), intent(in) :: context
    integer :: fc1
    call p%net%create(context)
    p%x = p%net%input('x', MP_FP32, [IN, BATCH])
    p%labels = p%net%input('labels', MP_DTYPE_NONE, [BATCH])
    p%w1 = p%net%parameter('w1', [HIDDEN, IN])
    p%b1 = p%net%parameter('b1', [HIDDEN])
    p%w2 = p%net%parameter('w2', [HIDDEN, CLASSES])
    p%b2 = p%net%parameter('b2', [CLASSES])
    fc1 = p%net%node('Linear', 'fc1  ', [p%x, p%w1, p%b1])
    p%relu = p%net%node('Relu', 'relu', [fc1])
    p%logits = p%net%node('Linear', 'fc2', [p%relu, p%w2, p%b2], [mp_attribute('transposed', 1)])
    call p%net%node_outputs('SoftmaxXent', 'loss', [p%logits, p%labels], p%outputs)
    call p%net%output(p%logits)
    call p%net%keep_gradient(p%relu)
    call p%net%loss(p%outputs(1))
  end subroutine

  subroutine start(p)
    type(perceptron), intent(inout) :: p
    call p%net%compile()
    call p%net%write(p%w1, reshape(numbers(IN*HIDDEN, 2, 0.0625), [HIDDEN, IN]))
    call p%net%write(p%w2, numbers(HIDDEN*CLASSES, 3, 0.0625))
    call p%net%bind(p%x, x_data)
    call p%net%bind(p%labels, label_data)
  end subroutine

  !> A new network, optimizer and scaler continue from a checkpoint as the saved ones did.
  subroutine test_checkpoint(context)
    type(c_ptr), intent(in) :: context
    type(perceptron) :: p(2)
    type(mp_autocast) :: policy
    type(mp_param_group_t), target :: group
    type(mp_optimizer_desc_t) :: adamw
    type(mp_scaler_config_t) :: config
    type(mp_scaler_state_t) :: state
    type(c_ptr) :: optimizer(2), scaler(2)
    integer(c_int8_t), allocatable :: checkpoint(:)
    real(c_float) :: w(HIDDEN, IN, 2), loss(2)
    character(200) :: errmsg
    integer(c_int) :: stat
    integer :: i
    policy = policy_of(MP_FP16, MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE)
    config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF)
    call mp_optimizer_from_name(adamw, group, 'AdamW', 0.125)
    do i = 1, 2
      call describe_perceptron(p(i), context)
      call p(i)%net%autocast(policy)
      call p(i)%net%measure_kernels(0)
      call start(p(i))
      call p(i)%net%get_lists(adamw%grads, adamw%master, adamw%model)
      call mp_check(mp_optimizer_create(optimizer(i), context, adamw)) ! with its own moments
      call mp_check(mp_scaler_create(scaler(i), context, config))
    end do
    call train(1)
    call mp_save_checkpoint(optimizer(1), checkpoint, scaler(1))
    call train(1)
    call mp_restore_checkpoint(optimizer(2), checkpoint, scaler(2))
    call mp_check(mp_scaler_get_state_sync(scaler(2), state, c_null_ptr))
    call expect('a checkpoint has the scaler', state%steps == 1)
    call train(2)
    call expect('training continues from a checkpoint bit for bit', &
      all(w(:, :, 1) == w(:, :, 2)) .and. loss(1) == loss(2))
    call mp_restore_checkpoint(optimizer(2), checkpoint(:99), scaler(2), stat=stat)
    call expect('a part of a checkpoint is refused', stat == MP_ERROR_INVALID_ARGUMENT)
    call mp_restore_checkpoint(optimizer(2), checkpoint, stat=stat)
    call expect('a checkpoint with a scaler needs one', stat == MP_ERROR_INVALID_ARGUMENT)
    call mp_optimizer_from_name(adamw, group, 'adan', 1.0, stat, errmsg)
    call expect('an unknown name is refused: '//trim(errmsg), stat == MP_ERROR_NOT_FOUND)
    do i = 1, 2
      call mp_optimizer_destroy(optimizer(i))
      call mp_scaler_destroy(scaler(i))
      call p(i)%net%destroy()
    end do
    call policy%destroy()
    call mp_save_checkpoint(c_null_ptr, checkpoint, stat=stat)
    call expect('without an optimizer there is no checkpoint', stat /= MP_SUCCESS .and. .not. allocated(checkpoint))

  contains

    subroutine train(i)
      integer, intent(in) :: i
      call p(i)%net%forward(MP_GRAPH_MODE_TRAINING)
      call p(i)%net%backward(scaler(i))
      call mp_check(mp_scale_step(optimizer(i), scaler(i), stream=c_null_ptr))
      call p(i)%net%read(p(i)%outputs(1), loss(i))
      call p(i)%net%read(p(i)%w1, w(:, :, i))
    end subroutine
  end subroutine

  subroutine test_learning(context, low)
    type(c_ptr), intent(in) :: context
    integer(c_int), intent(in) :: low
    type(perceptron) :: p
    type(mp_autocast) :: policy
    type(mp_param_group_t), target :: group
    type(mp_optimizer_desc_t) :: sgd
    type(c_ptr) :: optimizer, scaler
    type(mp_graph_tensor_t) :: w1
    type(mp_graph_memory_t) :: memory
    character(:), allocatable :: report
    real(c_float) :: losses(STEPS), masters(HIDDEN, IN)
    integer(c_int) :: stat
    integer :: step
    call describe_perceptron(p, context)
    if (low /= MP_FP32) then
      policy = policy_of(low, MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE)
      call p%net%autocast(policy)
    end if
    call start(p)
    call policy%destroy() ! the network keeps a reference

    group = mp_param_group_default(MP_OPT_SGD, 0.25)
    group%beta1 = 0
    sgd = mp_optimizer_desc_default(MP_OPT_SGD)
    sgd%groups = c_loc(group)
    call p%net%get_lists(sgd%grads, sgd%master, sgd%model)
    call mp_check(mp_optimizer_create(optimizer, context, sgd))
    call mp_check(mp_scaler_create(scaler, context, mp_autocast_scaler_default(low)))
    do step = 1, STEPS
      call p%net%forward(MP_GRAPH_MODE_TRAINING)
      call p%net%backward(scaler)
      call mp_check(mp_scale_step(optimizer, scaler, stream=c_null_ptr))
      call p%net%read(p%outputs(1), losses(step))
    end do
    call expect('the loss falls', losses(1) > 1.2 .and. losses(STEPS) < losses(1) - 0.1)

    call p%net%get_tensor(p%w1, w1)
    call expect('a parameter', w1%rank == 2 .and. all(w1%extent(:2) == [HIDDEN, IN]) .and. w1%dtype == MP_FP32 .and. &
      mp_text(w1%name) == 'w1' .and. c_associated(w1%grad))
    call p%net%read(p%w1, masters)
    call expect('training changes the masters', any(reshape(masters, [HIDDEN*IN]) /= numbers(IN*HIDDEN, 2, 0.0625)))
    call p%net%get_memory(memory)
    call p%net%describe(report)
    call expect('two nodes are fused into one launch: '//report, index(report, 'fc1, relu  mp_gemm') > 0)
    if (low == MP_FP32) then
      call expect('no 16-bit copies', .not. c_associated(sgd%model) .and. w1%dtype_copy == MP_DTYPE_NONE .and. &
        memory%copies == 0)
      call p%net%explain(report, stat=stat)
      call expect('explain is rejected without a policy', &
        stat == MP_ERROR_INVALID_ARGUMENT .and. .not. allocated(report))
    else
      call expect('16-bit copies', c_associated(sgd%model) .and. w1%dtype_copy == low .and. w1%dtype_grad == low .and. &
        c_associated(w1%copy) .and. memory%copies > 0)
      call p%net%explain(report)
      call expect('reasons: '//report, index(report, 'fc1/grad_w') > 0)
      call p%net%explain(report, MP_AUTOCAST_FORMAT_DOT)
      call expect('explain writes DOT', index(report, 'digraph') == 1)
    end if
    call mp_optimizer_destroy(optimizer)
    call mp_scaler_destroy(scaler)
    call p%net%destroy()
  end subroutine

  !> The loss of a partial batch is the mean of its rows.
  subroutine test_batches(context)
    type(c_ptr), intent(in) :: context
    integer, parameter :: first = 12, count = 5
    type(perceptron) :: p
    type(mp_graph_tensor_t) :: info
    real(c_float) :: rows(BATCH), loss
    integer(c_int64_t) :: correct
    integer(c_int) :: stat
    character(200) :: sentence
    call describe_perceptron(p, context)
    call start(p)
    call p%net%forward(MP_GRAPH_MODE_INFERENCE)
    call p%net%read(p%outputs(2), rows)
    call p%net%bind(p%x, x_data(:, first:))
    call p%net%bind(p%labels, label_data(first:))
    call p%net%forward(MP_GRAPH_MODE_INFERENCE, stat=stat, errmsg=sentence)
    call expect('too few elements are rejected', stat == MP_ERROR_INVALID_ARGUMENT .and. &
      sentence == 'mp_graph_forward: x has 128 elements, but the array has 40')
    call p%net%set_batch(count)
    call p%net%forward(MP_GRAPH_MODE_INFERENCE)
    call p%net%read(p%outputs(1), loss)
    call expect('the loss of a partial batch is the mean of its rows', abs(loss - sum(rows(first:))/count) < 1e-6)
    call p%net%read(p%outputs(3), correct)
    call expect('a count', correct >= 0 .and. correct <= count)
    call p%net%get_tensor(p%logits, info)
    call expect('the batch comes last', all(info%extent(:2) == [CLASSES, count]))
    call p%net%bind(p%labels, c_null_ptr)
    call p%net%forward(MP_GRAPH_MODE_INFERENCE, stat=stat)
    call expect('inference without labels succeeds', stat == MP_SUCCESS)
    call p%net%bind(p%x, c_null_ptr)
    call p%net%forward(MP_GRAPH_MODE_INFERENCE, stat=stat)
    call expect('an unbound input is rejected', stat == MP_ERROR_INVALID_ARGUMENT)
    call p%net%destroy()
  end subroutine

  !> States, shapes, an absent input, and 16-bit inputs.
  subroutine test_inference(context)
    type(c_ptr), intent(in) :: context
    type(mp_network) :: net
    type(c_ptr) :: grads, master
    type(mp_graph_tensor_t) :: info
    integer, parameter :: ONE = int(z'3C00') ! in fp16
    integer :: x, h, mean, variance, gamma, beta, offset, mask, packed, y, z, i
    integer(c_int16_t), target :: halves(4, 2) = ONE
    integer(c_int64_t), target :: zero = 0
    integer(c_int64_t) :: step
    real(c_float), target :: values(6, 2)
    real(c_float) :: out(3, 2, 2), sums(4, 2)
    integer(c_int) :: stat
    character(200) :: sentence
    call net%create(context)
    x = net%input('x', MP_FP32, [6, 2])
    h = net%input('h', MP_FP16, [4, 2])
    offset = net%input('offset', MP_DTYPE_NONE, [integer ::])
    mean = net%state('mean', [3])
    variance = net%state('variance', [3])
    gamma = net%parameter('gamma', [3])
    beta = net%parameter('beta', [3])
    y = net%node('Reshape', 'turned', [x], [mp_attribute('extent', [-1, 2, 0])])
    call net%get_tensor(y, info)
    call expect('extents are in Fortran order', info%rank == 3 .and. all(info%extent(:3) == [3, 2, 2]))
    y = net%node('BatchNorm', 'norm', [y, gamma, beta, mean, variance], [mp_attribute('epsilon', 0)])
    y = net%node('Dropout', 'dropped', [y, offset], [mp_attribute('p', 0.25), mp_attribute('seed', 7)])
    y = net%node('Dropout', 'again', [y, 0])
    z = net%node('Add', 'twice', [h, h])
    mask = net%input('mask', MP_DTYPE_NONE, [integer ::])
    packed = net%node('Reshape', 'packed', [x], [mp_attribute('extent', [-1, 1, 0])])
    packed = net%node('Attention', 'attention', [packed, 0, 0, 0, 0, mask], [mp_attribute('p', 0.25)])
    call net%output(y)
    call net%output(z)
    call net%compile()
    call net%write(gamma, [2.0, 2.0, 2.0])
    call net%write(beta, [1.0, 1.0, 1.0])
    call net%write(variance, [4.0, 4.0, 4.0])
    values = reshape([(real(i), i=1, 12)], [6, 2])
    call net%bind(x, values)
    call net%bind(h, halves)
    call net%bind(offset, label_data(1), stat, sentence)
    call expect('an offset of 32 bits is rejected', stat == MP_ERROR_INVALID_ARGUMENT .and. &
      sentence == 'mp_graph_bind: offset is integer(c_int64_t), not integer(c_int32_t)')
    call net%bind(offset, zero)
    call net%bind(mask, zero, stat)
    call expect('an offset of attention has 64 bits', stat == MP_SUCCESS)
    call net%forward(MP_GRAPH_MODE_INFERENCE)
    call net%read(y, out)
    call expect('batch normalization', all(reshape(out, [6, 2]) == values + 1))
    call net%read(z, sums)
    call expect('a sum in fp16', all(sums == 2))
    call net%set_step(41_c_int64_t)
    call net%get_step(step)
    call expect('the step of a network', step == 41)
    call net%get_lists(master=master, stat=stat)
    call expect('masters without a loss', stat == MP_SUCCESS .and. c_associated(master))
    call net%get_lists(grads, stat=stat)
    call expect('no gradients without a loss', stat == MP_ERROR_INVALID_ARGUMENT)
    call net%destroy()
  end subroutine

  subroutine test_wrong_descriptions(context)
    type(c_ptr), intent(in) :: context
    type(mp_network) :: net
    integer :: x, w, t, two(2)
    integer(c_int) :: stat
    character(200) :: sentence
    call net%create(context)
    x = net%input('x', MP_FP32, [8, 4])
    w = net%parameter('w', [6, 8])
    t = net%input('t', MP_FP32, [5], stat, sentence)
    call expect('another batch', t == 0 .and. stat == MP_ERROR_INVALID_ARGUMENT .and. &
      index(sentence, 'extent[0] = 5 must equal the batch size') > 0)
    t = net%parameter(' ', [5], stat, sentence)
    call expect('no name: '//trim(sentence), t == 0 .and. sentence == 'mp_graph_add_parameter: name = NULL')
    t = net%state('t', [2, 0], stat, sentence)
    call expect('no elements', t == 0 .and. index(sentence, 'extent[0] = 0 must be at least 1') > 0)
    t = net%node('Nonlinear', 'n', [x], stat=stat, errmsg=sentence)
    call expect('an operation', t == 0 .and. stat == MP_ERROR_NOT_FOUND .and. index(sentence, 'Nonlinear') > 0)
    t = net%node('Linear', 'n', [x, w], [mp_attribute('transposed', 0.0d0)], stat, sentence)
    call expect('the kind of an attribute', index(sentence, 'kind of transposed = MP_ATTRIBUTE_KIND_FLOAT') > 0)
    t = net%node('Linear', 'n', [x, w], [mp_attribute('transposed', [0])], stat, sentence)
    call expect('a list for an integer', index(sentence, 'kind of transposed = MP_ATTRIBUTE_KIND_INTS') > 0)
    t = net%node('Linear', 'n', [x, 0], stat=stat, errmsg=sentence)
    call expect('an absent input', stat == MP_ERROR_INVALID_ARGUMENT .and. index(sentence, 'inputs[1] = -1') > 0)
    call net%node_outputs('Relu', 'n', [x], two, stat=stat, errmsg=sentence)
    call expect('outputs', all(two == 0) .and. index(sentence, 'num_outputs = 2') > 0)
    call net%keep_gradient(w, stat, sentence)
    call expect('a gradient', sentence == 'mp_graph_keep_gradient: tensor = 1 must be computed by a node')
    call net%destroy()
    call net%forward(MP_GRAPH_MODE_INFERENCE, stat=stat, errmsg=sentence)
    call expect('a destroyed network is rejected', sentence == 'mp_graph_forward: graph = NULL')
  end subroutine

  subroutine test_wrong_calls(context)
    type(c_ptr), intent(in) :: context
    type(perceptron) :: p
    integer(c_int) :: stat
    real(c_float) :: value
    character(200) :: sentence
    call describe_perceptron(p, context)
    call start(p)
    call p%net%bind(p%x, label_data, stat, sentence)
    call expect('a type', sentence == 'mp_graph_bind: x is real(c_float), not integer(c_int32_t)')
    call p%net%bind(p%x, x_data(1:IN:2, :), stat, sentence)
    call expect('a section', sentence == 'mp_graph_bind: data of x must be contiguous')
    call p%net%bind(p%w1, x_data, stat, sentence)
    call expect('no input', sentence == 'mp_graph_bind: tensor = 2 (w1) is not an input of the graph')
    stat = MP_SUCCESS
    call p%net%bind(99, x_data, stat, sentence)
    call expect('no tensor', stat == MP_ERROR_INVALID_ARGUMENT .and. &
      index(sentence, 'mp_graph_get_tensor: tensor = 98') == 1)
    call p%net%write(p%w1, [1.0], stat=stat, errmsg=sentence)
    call expect('too few', sentence == 'mp_graph_write: w1 has 128 elements, but the array has 1')
    call p%net%write(p%x, x_data, stat=stat, errmsg=sentence)
    call expect('writing an input is rejected', index(sentence, 'must be a parameter or a state') > 0)
    call p%net%read(p%w1, value, stat=stat, errmsg=sentence)
    call expect('too few to read', sentence == 'mp_graph_read: w1 has 128 elements, but the array has 1')
    call p%net%read(p%outputs(3), value, stat=stat, errmsg=sentence)
    call expect('a count of 32 bits is rejected', sentence == &
      'mp_graph_read: loss:2 is integer(c_int64_t), not real(c_float)')
    call p%net%destroy()
  end subroutine

  !> Assignment copies the reference: both variables own one network, and share its bindings.
  subroutine test_assignment(context)
    type(c_ptr), intent(in) :: context
    type(mp_network) :: first, second
    real(c_float), target :: small(3)
    integer :: x, y
    integer(c_int) :: stat
    character(200) :: sentence
    call first%create(context)
    second = first
    x = second%input('x', MP_FP32, [3, 2])
    y = first%node('Relu', 'y', [x])
    call second%output(y)
    call first%compile()
    small = 1
    call second%bind(x, small)
    call first%forward(MP_GRAPH_MODE_INFERENCE, stat=stat, errmsg=sentence)
    call expect('bindings are shared', sentence == 'mp_graph_forward: x has 6 elements, but the array has 3')
    call second%set_batch(1)
    call first%forward(MP_GRAPH_MODE_INFERENCE)
    call first%read(y, small)
    call expect('variables share a network after an assignment', all(small == 1))
    call first%destroy()
    call second%forward(MP_GRAPH_MODE_INFERENCE, stat=stat, errmsg=sentence)
    call expect('destroy invalidates both variables', sentence == 'mp_graph_forward: graph = NULL')
    call second%destroy()
  end subroutine

end module
