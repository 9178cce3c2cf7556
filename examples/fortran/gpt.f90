!> examples/c/gpt.c in Fortran: trains its small GPT-2 on a text, with the same bits.
!>
!>     gpt FILE [fp32|fp16|bf16 [STEPS]]
program gpt
  use mpcore
  use mpcore_autocast
  use mpcore_network
  implicit none
  integer, parameter :: LAYERS = 2, WIDTH = 64, HEADS = 2, LENGTH = 64, CHARACTERS = 96, BATCH = 16
  integer, parameter :: PARAMETERS = 4 + 12*LAYERS

  !> A parameter; deviation = 0: a vector.
  type :: parameter_t
    integer :: tensor, elements
    real(c_float) :: deviation, constant
  end type

  type(parameter_t) :: parameter_of(PARAMETERS)
  integer :: added = 0, steps, step, tokens, labels, wte, x, loss, i
  integer(c_int) :: low
  integer(c_int32_t), allocatable, target :: text(:)
  type(mp_network) :: net
  type(mp_autocast) :: policy
  type(mp_autocast_config_t) :: config
  type(c_ptr) :: context, optimizer, scaler
  type(mp_step_options_t) :: options
  integer(c_int32_t), pointer :: batch_of(:) !< tokens, then labels
  integer(c_int64_t) :: hash = int(z'CBF29CE484222325', c_int64_t)
  real(c_float) :: value
  character(16) :: digits

  call read_arguments()
  call mp_check(mp_context_create(context))
  call net%create(context)
  tokens = net%input('tokens', MP_DTYPE_NONE, [LENGTH, BATCH])
  labels = net%input('labels', MP_DTYPE_NONE, [LENGTH, BATCH])
  wte = add_parameter('wte.weight', [WIDTH, CHARACTERS])
  x = net%node('Embedding', 'wte', [wte, tokens])
  x = net%node('Add', 'positions', [x, add_parameter('wpe.weight', [WIDTH, LENGTH])])
  do i = 0, LAYERS - 1
    x = add_block(x, 'h.'//achar(iachar('0') + i)//'.')
  end do
  x = add_layer(x, 'ln_f', 0, WIDTH)
  loss = net%node('LinearXent', 'loss', [x, wte, 0, labels])
  call net%loss(loss)
  config = mp_autocast_config_default(merge(MP_BF16, MP_FP16, low == MP_BF16))
  config%flags = MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE
  call policy%create(config)
  if (low /= MP_FP32) call net%autocast(policy)
  call net%compile()
  call initialize()
  call create_optimizer()

  call mp_allocate(context, batch_of, 2*BATCH*LENGTH)
  call net%bind(tokens, batch_of(:BATCH*LENGTH))
  call net%bind(labels, batch_of(BATCH*LENGTH + 1:))
  options%max_grad_norm = 1
  do step = 1, steps
    call load_batch()
    call net%forward(MP_GRAPH_MODE_TRAINING)
    call net%backward(scaler)
    call mp_check(mp_scale_step(optimizer, scaler, options, c_null_ptr))
  end do
  call net%read(loss, value)
  print '(a,i0,a,f6.4)', 'step ', steps, '  loss ', value
  do i = 1, PARAMETERS
    call add_to_hash(parameter_of(i)%tensor, parameter_of(i)%elements)
  end do
  write (digits, '(z16.16)') hash
  do i = 1, len(digits) ! lower case, like the other examples
    if (digits(i:i) >= 'A') digits(i:i) = achar(iachar(digits(i:i)) + 32)
  end do
  print '(a)', 'weights '//digits

  call mp_optimizer_destroy(optimizer)
  call mp_scaler_destroy(scaler)
  call net%destroy()
  call policy%destroy()
  call mp_deallocate(context, batch_of)
  call mp_context_destroy(context)

contains

  subroutine read_arguments()
    character(1000) :: file, words
    character(1), allocatable :: letters(:)
    integer :: bytes, code, k
    call get_command_argument(1, file)
    words = 'fp16'
    if (command_argument_count() > 1) call get_command_argument(2, words)
    low = merge(MP_FP32, merge(MP_BF16, MP_FP16, words == 'bf16'), words == 'fp32')
    if (all(words /= ['fp32', 'fp16', 'bf16'])) error stop 'the type must be fp32, fp16 or bf16'
    words = '200'
    if (command_argument_count() > 2) call get_command_argument(3, words)
    read (words, *) steps
    open (1, file=trim(file), access='stream', form='unformatted', status='old')
    inquire (1, size=bytes)
    if (bytes <= LENGTH) error stop 'FILE must be longer than a context'
    allocate (letters(bytes), text(bytes))
    read (1) letters
    do k = 1, bytes
      code = iachar(letters(k))
      text(k) = merge(code - 31, merge(0, 1, code == 10), code >= 32 .and. code <= 126)
    end do
  end subroutine

  integer function add_parameter(name, shape) result(tensor)
    character(*), intent(in) :: name
    integer, intent(in) :: shape(:)
    integer :: terms
    tensor = net%parameter(name, shape)
    terms = merge(2*LAYERS, 1, index(name, 'c_proj') > 0)
    added = added + 1
    parameter_of(added) = parameter_t(tensor, product(shape), 0, merge(1, 0, index(name, '.weight') > 0))
    if (size(shape) == 2) parameter_of(added)%deviation = real(0.02_c_double/sqrt(real(terms, c_double)), c_float)
  end function

  !> Adds a Linear or, if inputs = 0, a LayerNorm, and its parameters.
  integer function add_layer(x, name, inputs, outputs) result(y)
    integer, intent(in) :: x, inputs, outputs
    character(*), intent(in) :: name
    integer :: w, b
    w = add_parameter(name//'.weight', pack([outputs, inputs], [outputs, inputs] > 0))
    b = add_parameter(name//'.bias', [outputs])
    y = net%node(trim(merge('Linear   ', 'LayerNorm', inputs > 0)), name, [x, w, b])
  end function

  !> Adds a layer of the transformer.
  integer function add_block(x, name) result(y)
    integer, intent(in) :: x
    character(*), intent(in) :: name
    integer :: h
    h = add_layer(x, name//'ln_1', 0, WIDTH)
    h = add_layer(h, name//'attn.c_attn', WIDTH, 3*WIDTH)
    h = net%node('Attention', name//'attn', [h], [mp_attribute('heads', HEADS), mp_attribute('causal', 1)])
    h = add_layer(h, name//'attn.c_proj', WIDTH, WIDTH)
    y = net%node('Add', name//'attn/residual', [x, h])
    h = add_layer(y, name//'ln_2', 0, WIDTH)
    h = add_layer(h, name//'mlp.c_fc', WIDTH, 4*WIDTH)
    h = net%node('Gelu', name//'mlp.gelu', [h])
    h = add_layer(h, name//'mlp.c_proj', 4*WIDTH, WIDTH)
    y = net%node('Add', name//'mlp/residual', [y, h])
  end function

  !> Linear congruential generator; returns its upper bits.
  integer(c_int64_t) function next_random(state, bits)
    integer(c_int64_t), intent(inout) :: state
    integer, intent(in) :: bits
    state = modulo(state*1664525 + 1013904223, 2_c_int64_t**32)
    next_random = ishft(state, bits - 32)
  end function

  !> Sets initial weights; the sum of 12 bytes is approximately normal.
  subroutine initialize()
    real(c_float), allocatable :: values(:)
    integer(c_int64_t) :: state
    integer :: k, n, p, total
    state = 1
    do p = 1, PARAMETERS
      associate (it => parameter_of(p))
        values = spread(it%constant, 1, it%elements)
        do k = 1, merge(it%elements, 0, it%deviation > 0)
          total = -1530
          do n = 1, 12
            total = total + int(next_random(state, 8))
          end do
          values(k) = real(total, c_float)/256*it%deviation
        end do
        call net%write(it%tensor, values)
      end associate
    end do
  end subroutine

  subroutine create_optimizer()
    type(mp_param_group_t), target :: groups(2)
    integer(c_int32_t), target :: group_of(PARAMETERS)
    type(mp_optimizer_desc_t) :: adamw
    groups(1) = mp_param_group_default(MP_OPT_ADAM, 0.01)
    groups(1)%beta2 = 0.95
    groups(1)%weight_decay = 0.1
    groups(1)%lr_schedule = MP_LR_COSINE
    groups(1)%warmup_steps = steps/10
    groups(1)%decay_steps = steps - steps/10
    groups(1)%lr_end = groups(1)%lr/10
    groups(2) = groups(1)
    groups(2)%weight_decay = 0
    group_of = merge(0, 1, parameter_of%deviation > 0)
    adamw = mp_optimizer_desc_default(MP_OPT_ADAM)
    adamw%flags = MP_OPT_FLAG_DECOUPLED_DECAY
    adamw%groups = c_loc(groups)
    adamw%num_groups = 2
    adamw%tensor_group = c_loc(group_of)
    call net%get_lists(adamw%grads, adamw%master, adamw%model)
    call mp_check(mp_optimizer_create(optimizer, context, adamw))
    call mp_check(mp_scaler_create(scaler, context, mp_autocast_scaler_default(low)))
  end subroutine

  !> Copies the batch of a step to the device.
  subroutine load_batch()
    integer(c_int32_t), target :: sequences(LENGTH, BATCH, 2)
    integer(c_int64_t) :: state, high, first
    integer :: k
    state = modulo(step*2654435761_c_int64_t, 2_c_int64_t**32)
    do k = 1, BATCH
      high = next_random(state, 24)
      first = modulo(ior(ishft(high, 24), next_random(state, 24)), int(size(text) - LENGTH, c_int64_t))
      sequences(:, k, 1) = text(first + 1:first + LENGTH)
      sequences(:, k, 2) = text(first + 2:first + LENGTH + 1)
    end do
    call mp_check(mp_memcpy(context, c_loc(batch_of), c_loc(sequences), c_sizeof(sequences), c_null_ptr))
  end subroutine

  !> Adds a tensor to an FNV-1a hash: (hash xor byte) 0x100000001b3 = (hash xor byte) (2^40 + 435),
  !> in 32-bit halves that cannot overflow.
  subroutine add_to_hash(tensor, elements)
    integer, intent(in) :: tensor, elements
    integer(c_int64_t), parameter :: mask = 2_c_int64_t**32 - 1
    real(c_float) :: values(elements)
    integer(c_int8_t) :: bytes(4*elements)
    integer(c_int64_t) :: lower, upper
    integer :: k
    call net%read(tensor, values)
    bytes = transfer(values, bytes)
    do k = 1, 4*elements
      hash = ieor(hash, iand(int(bytes(k), c_int64_t), 255_c_int64_t))
      lower = iand(hash, mask)*435
      upper = ishft(hash, -32)*435 + ishft(lower, -32) + iand(ishft(iand(hash, mask), 8), mask)
      hash = ior(ishft(iand(upper, mask), 32), iand(lower, mask))
    end do
  end subroutine

end program
