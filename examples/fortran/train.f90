!> examples/c/train.c in Fortran: the same network on the same data.  On the host target both print
!> the same hash of the weights.
!>
!>     train [host|auto]
!>
!> The network is logits = w2 relu(w1 x + b1); a sample is a column.  Weights, activations and
!> gradients are fp16, master weights and optimizer state fp32.  To show skipped steps, the scaler
!> grows after every 8 clean steps until gradients overflow, and one sample of step 33 is broken.
program train
  use mpcore
  use mpcore_training
  implicit none
  integer, parameter :: batch = 32, inputs = 24, hidden = 32, classes = 8
  integer, parameter :: steps = 120, broken_step = 33
  integer(c_int64_t), parameter :: numels(3) = [inputs*hidden, hidden, hidden*classes]

  type(c_ptr) :: context, optimizer, scaler, masters, models, grads
  real(c_float), pointer :: w1(:, :), b1(:), w2(:, :)
  integer(c_int16_t), pointer :: half_w1(:, :), half_b1(:), half_w2(:, :), dw1(:, :), dw2(:, :)
  real(c_float), pointer :: db1(:), row_loss(:), loss(:), staging(:)
  integer(c_int16_t), pointer :: x(:, :), h(:, :), dh(:, :), logits(:, :)
  integer(c_int32_t), pointer :: labels(:)
  integer(c_int64_t) :: random
  integer :: step

  call create_context()
  call create_arrays()
  call create_optimizer()
  do step = 1, steps
    call load_batch(step)
    call forward()
    call compute_loss()
    call backward()
    call update()
    if (mod(step, 10) == 0) call print_progress(step) ! the host waits only here
  end do
  call print_hash()
  call destroy()

contains

  subroutine create_context()
    type(mp_context_config_t) :: config
    character(10) :: device
    call get_command_argument(1, device)
    config = mp_context_config_default()
    if (device == 'host') config%device = MP_DEVICE_HOST
    call mp_check(mp_context_create(context, config))
  end subroutine

  !> Linear congruential generator; returns its upper 8 bits, -128 to 127.
  integer function next_random(state)
    integer(c_int64_t), intent(inout) :: state
    state = modulo(state*1664525 + 1013904223, 2_c_int64_t**32)
    next_random = int(state/2**24) - 128
  end function

  !> Converts fp32 host memory to fp16 device memory.
  subroutine upload_half(device, values)
    type(c_ptr), intent(in) :: device
    real(c_float), intent(in), target, contiguous :: values(:)
    call copy(c_loc(staging), c_loc(values), 4*size(values, kind=c_size_t))
    call mp_check(mp_cast(context, c_loc(staging), MP_FP32, device, MP_FP16, size(values, kind=c_int64_t), &
                          c_null_ptr))
  end subroutine

  subroutine copy(to, from, bytes)
    type(c_ptr), intent(in) :: to, from
    integer(c_size_t), intent(in) :: bytes
    call mp_check(mp_memcpy(context, to, from, bytes, c_null_ptr))
    call mp_check(mp_stream_sync(context, c_null_ptr))
  end subroutine

  subroutine create_arrays()
    call mp_allocate(context, w1, hidden, inputs)
    call mp_allocate(context, b1, hidden)
    call mp_allocate(context, w2, classes, hidden)
    call mp_allocate(context, half_w1, hidden, inputs)
    call mp_allocate(context, half_b1, hidden)
    call mp_allocate(context, half_w2, classes, hidden)
    call mp_allocate(context, dw1, hidden, inputs)
    call mp_allocate(context, db1, hidden) ! computed by an epilogue, in fp32
    call mp_allocate(context, dw2, classes, hidden)
    call mp_allocate(context, x, inputs, batch)
    call mp_allocate(context, h, hidden, batch)
    call mp_allocate(context, dh, hidden, batch)
    call mp_allocate(context, logits, classes, batch)
    call mp_allocate(context, labels, batch)
    call mp_allocate(context, row_loss, batch)
    call mp_allocate(context, loss, 1)
    call mp_allocate(context, staging, int(maxval(numels)))

    random = 1
    call set_weights(c_loc(w1), c_loc(half_w1), int(numels(1)))
    call set_weights(c_loc(w2), c_loc(half_w2), int(numels(3)))
  end subroutine

  subroutine set_weights(master, model, count)
    type(c_ptr), intent(in) :: master, model
    integer, intent(in) :: count
    real(c_float), target :: values(count)
    integer :: i
    do i = 1, count
      values(i) = next_random(random)/512.0
    end do
    call copy(master, c_loc(values), 4_c_size_t*count)
    call upload_half(model, values)
  end subroutine

  subroutine create_optimizer()
    type(mp_param_group_t), target :: group
    type(mp_optimizer_desc_t) :: adamw
    type(mp_scaler_config_t) :: backoff
    integer(c_int) :: float(3), half(3)
    float = MP_FP32
    half = MP_FP16
    call mp_make_tensor_list(masters, context, [c_loc(w1), c_loc(b1), c_loc(w2)], numels, float)
    call mp_make_tensor_list(models, context, [c_loc(half_w1), c_loc(half_b1), c_loc(half_w2)], &
                             numels, half)
    call mp_make_tensor_list(grads, context, [c_loc(dw1), c_loc(db1), c_loc(dw2)], numels, &
                             [MP_FP16, MP_FP32, MP_FP16])
    call mp_optimizer_from_name(adamw, group, 'adamw', 0.015625)
    group%weight_decay = 0.0078125
    adamw%grads = grads
    adamw%master = masters
    adamw%model = models
    call mp_check(mp_optimizer_create(optimizer, context, adamw)) ! allocates the moments
    backoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF)
    backoff%growth_interval = 8
    call mp_check(mp_scaler_create(scaler, context, backoff))
  end subroutine

  !> Uploads a batch.  A sample is noise around the center of its class, in multiples of 2^-6, which
  !> are exact in fp16.
  subroutine load_batch(step)
    integer, intent(in) :: step
    real(c_float) :: values(inputs*batch)
    integer(c_int32_t), target :: new_labels(batch)
    integer(c_int64_t) :: center
    integer :: i, j
    do i = 1, batch
      new_labels(i) = mod(next_random(random) + 128, classes)
      center = new_labels(i)
      do j = 1, inputs
        values((i - 1)*inputs + j) = next_random(center)
        values((i - 1)*inputs + j) = (values((i - 1)*inputs + j) + next_random(random))/64
      end do
    end do
    if (step == broken_step) values(1) = 1e6 ! infinity in fp16
    call upload_half(c_loc(x), values)
    call copy(c_loc(labels), c_loc(new_labels), 4_c_size_t*batch)
  end subroutine

  subroutine forward()
    type(mp_epilogue_t) :: relu
    relu%activation = MP_ACT_RELU
    relu%bias = c_loc(half_b1)
    relu%dtype_bias = MP_FP16
    call mp_gemm(context, half_w1, x, h, epilogue=relu)
    call mp_gemm(context, half_w2, h, logits)
  end subroutine

  !> Computes the loss and replaces the logits with their gradient times S.
  subroutine compute_loss()
    type(mp_xent_desc_t) :: desc
    type(mp_xent_tensors_t) :: tensors
    desc = mp_xent_desc_default(int(batch, c_int64_t), int(classes, c_int64_t), MP_FP16)
    tensors%x = c_loc(logits)
    tensors%dx = c_loc(logits)
    tensors%labels = c_loc(labels)
    tensors%loss_scale = mp_scaler_get_scale_address(scaler)
    tensors%row_loss = c_loc(row_loss)
    tensors%loss = c_loc(loss)
    call mp_check(mp_softmax_xent(context, desc, tensors, c_null_ptr))
  end subroutine

  subroutine backward()
    type(mp_epilogue_t) :: drelu
    call mp_gemm(context, logits, h, dw2, transb=.true.)
    drelu%activation = MP_ACT_DRELU
    drelu%aux = c_loc(h) ! relu'(z) = relu'(relu(z)), so z is not stored
    drelu%dbias = c_loc(db1)
    drelu%stats%found_inf = mp_scaler_get_found_inf_address(scaler)
    call mp_gemm(context, half_w2, logits, dh, transa=.true., epilogue=drelu)
    call mp_gemm(context, dh, x, dw1, transb=.true.)
  end subroutine

  !> Checks, unscales, clips and applies the gradients, writes the fp16 weights, adjusts S.
  subroutine update()
    type(mp_step_options_t) :: options
    options%max_grad_norm = 1
    call mp_check(mp_scale_step(optimizer, scaler, options, c_null_ptr))
  end subroutine

  subroutine print_progress(step)
    integer, intent(in) :: step
    type(mp_scaler_state_t) :: state
    real(c_float), target :: value
    call mp_check(mp_scaler_get_state_sync(scaler, state, c_null_ptr))
    call copy(c_loc(value), c_loc(loss), 4_c_size_t)
    print '(a,i3,a,f6.4,a,i0,a,i0)', 'step ', step, '  loss ', value, '  scale ', nint(state%scale), &
      '  skipped ', state%skipped
  end subroutine

  !> Prints the FNV-1a hash of the bytes of the master weights.
  subroutine print_hash()
    integer(c_int64_t) :: hash
    character(16) :: text
    integer :: i
    hash = int(z'CBF29CE484222325', c_int64_t)
    call add_to_hash(hash, c_loc(w1), 4*numels(1))
    call add_to_hash(hash, c_loc(b1), 4*numels(2))
    call add_to_hash(hash, c_loc(w2), 4*numels(3))
    write (text, '(z16.16)') hash
    do i = 1, len(text) ! lower case, like the other examples
      if (text(i:i) >= 'A') text(i:i) = achar(iachar(text(i:i)) + 32)
    end do
    print '(a)', 'weights '//text
  end subroutine

  !> hash = (hash xor byte) 0x100000001b3 = (hash xor byte) (2^40 + 435), in 32-bit halves that
  !> cannot overflow.
  subroutine add_to_hash(hash, device, count)
    integer(c_int64_t), intent(inout) :: hash
    type(c_ptr), intent(in) :: device
    integer(c_int64_t), intent(in) :: count
    integer(c_int64_t), parameter :: mask = 2_c_int64_t**32 - 1
    integer(c_int8_t), target :: bytes(count)
    integer(c_int64_t) :: low, high
    integer :: i
    call copy(c_loc(bytes), device, int(count, c_size_t))
    do i = 1, int(count)
      hash = ieor(hash, iand(int(bytes(i), c_int64_t), 255_c_int64_t))
      low = iand(hash, mask)*435
      high = ishft(hash, -32)*435 + ishft(low, -32) + iand(ishft(iand(hash, mask), 8), mask)
      hash = ior(ishft(iand(high, mask), 32), iand(low, mask))
    end do
  end subroutine

  subroutine destroy()
    call mp_scaler_destroy(scaler)
    call mp_optimizer_destroy(optimizer)
    call mp_tensor_list_destroy(masters)
    call mp_tensor_list_destroy(models)
    call mp_tensor_list_destroy(grads)
    call mp_deallocate(context, w1)
    call mp_deallocate(context, b1)
    call mp_deallocate(context, w2)
    call mp_deallocate(context, half_w1)
    call mp_deallocate(context, half_b1)
    call mp_deallocate(context, half_w2)
    call mp_deallocate(context, dw1)
    call mp_deallocate(context, db1)
    call mp_deallocate(context, dw2)
    call mp_deallocate(context, x)
    call mp_deallocate(context, h)
    call mp_deallocate(context, dh)
    call mp_deallocate(context, logits)
    call mp_deallocate(context, labels)
    call mp_deallocate(context, row_loss)
    call mp_deallocate(context, loss)
    call mp_deallocate(context, staging)
    call mp_context_destroy(context)
  end subroutine

end program
