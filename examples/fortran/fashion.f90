!> examples/c/fashion.c in Fortran: trains a perceptron on Fashion-MNIST, in fp32 or, by calling
!> net%autocast, in mixed precision.
!>
!>     fashion FOLDER [fp32|fp16|bf16 [STEPS]]
!>
!> FOLDER contains train-images-idx3-ubyte and train-labels-idx1-ubyte, unpacked.
!> A sample is a column.
program fashion
  use mpcore
  use mpcore_autocast
  use mpcore_network
  implicit none
  integer, parameter :: IMAGES = 60000, PIXELS = 784, HIDDEN = 256, CLASSES = 10, BATCH = 100
  integer(c_int8_t), allocatable :: image(:, :), label(:)
  character(1000) :: folder
  character(4) :: name, words
  integer :: steps, step, x, y, w1, b1, w2, b2, h, logits, loss
  integer(c_int) :: low
  integer(c_int64_t) :: state
  type(mp_network) :: net
  type(mp_autocast) :: policy
  type(mp_autocast_config_t) :: config
  type(mp_param_group_t), target :: group
  type(mp_optimizer_desc_t) :: sgd
  type(c_ptr) :: context, optimizer, scaler
  real(c_float), pointer :: x_batch(:, :)
  integer(c_int32_t), pointer :: y_batch(:)
  real(c_float), target :: values(PIXELS, BATCH)
  integer(c_int32_t), target :: labels(BATCH)
  real(c_float) :: value, total

  call read_arguments()
  allocate (image(PIXELS, IMAGES), label(IMAGES))
  open (1, file=trim(folder)//'/train-images-idx3-ubyte', access='stream', form='unformatted', status='old')
  read (1, pos=17) image
  open (2, file=trim(folder)//'/train-labels-idx1-ubyte', access='stream', form='unformatted', status='old')
  read (2, pos=9) label

  call mp_check(mp_context_create(context))
  call net%create(context)
  x = net%input('x', MP_FP32, [PIXELS, BATCH])
  y = net%input('labels', MP_DTYPE_NONE, [BATCH])
  w1 = net%parameter('w', [HIDDEN, PIXELS])
  b1 = net%parameter('b', [HIDDEN])
  w2 = net%parameter('w', [CLASSES, HIDDEN])
  b2 = net%parameter('b', [CLASSES])
  h = net%node('Linear', 'fc1', [x, w1, b1])
  h = net%node('Relu', 'relu', [h])
  logits = net%node('Linear', 'fc2', [h, w2, b2])
  loss = net%node('SoftmaxXent', 'loss', [logits, y])
  call net%loss(loss)

  config = mp_autocast_config_default(merge(MP_BF16, MP_FP16, low == MP_BF16))
  config%flags = MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE ! also on a CPU, although it is not faster
  call policy%create(config)
  if (low /= MP_FP32) call net%autocast(policy) ! mixed precision
  call net%compile()
  state = 1
  call net%write(w1, numbers(PIXELS*HIDDEN))
  call net%write(w2, numbers(HIDDEN*CLASSES))

  group = mp_param_group_default(MP_OPT_SGD, 0.1)
  group%beta1 = 0
  sgd = mp_optimizer_desc_default(MP_OPT_SGD)
  sgd%groups = c_loc(group)
  call net%get_lists(sgd%grads, sgd%master, sgd%model)
  call mp_check(mp_optimizer_create(optimizer, context, sgd))
  call mp_check(mp_scaler_create(scaler, context, mp_autocast_scaler_default(low)))

  call mp_allocate(context, x_batch, PIXELS, BATCH)
  call mp_allocate(context, y_batch, BATCH)
  call net%bind(x, x_batch)
  call net%bind(y, y_batch)
  total = 0
  do step = 1, steps
    values = iand(int(image(:, (step - 1)*BATCH + 1:step*BATCH)), 255)/256.0
    labels = label((step - 1)*BATCH + 1:step*BATCH)
    call mp_check(mp_memcpy(context, c_loc(x_batch), c_loc(values), c_sizeof(values), c_null_ptr))
    call mp_check(mp_memcpy(context, c_loc(y_batch), c_loc(labels), c_sizeof(labels), c_null_ptr))
    call net%forward(MP_GRAPH_MODE_TRAINING)
    call net%backward(scaler)
    call mp_check(mp_scale_step(optimizer, scaler, stream=c_null_ptr))
    if (step <= steps - 100) cycle ! average the last hundred losses; the host waits only here
    call net%read(loss, value)
    total = total + value
  end do
  print '(2a,f6.4)', name, ': loss ', real(total, c_double)/min(steps, 100)

  call mp_optimizer_destroy(optimizer)
  call mp_scaler_destroy(scaler)
  call net%destroy()
  call policy%destroy()
  call mp_deallocate(context, x_batch)
  call mp_deallocate(context, y_batch)
  call mp_context_destroy(context)

contains

  subroutine read_arguments()
    call get_command_argument(1, folder)
    name = 'fp16'
    if (command_argument_count() > 1) call get_command_argument(2, name)
    low = MP_FP16
    if (name == 'fp32') low = MP_FP32
    if (name == 'bf16') low = MP_BF16
    steps = IMAGES/BATCH
    call get_command_argument(3, words)
    if (command_argument_count() > 2) read (words, *) steps
    steps = min(steps, IMAGES/BATCH)
  end subroutine

  !> Returns small values from a linear congruential generator; the biases stay 0.
  function numbers(count)
    integer, intent(in) :: count
    real(c_float) :: numbers(count)
    integer :: i
    do i = 1, count
      state = modulo(state*1664525 + 1013904223, 2_c_int64_t**32)
      numbers(i) = (real(state/2**24, c_float) - 127.5)/2048
    end do
  end function

end program
