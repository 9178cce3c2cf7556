!> Tests of the module mpcore on the host target.  Integers make every product exact.
program test_mpcore
  use mpcore
  use autocast_tests
  use memory_tests
  use network_tests
  use transformer_tests
  use expectations
  implicit none
  type(c_ptr) :: context

  call create_context()
  call test_defaults()
  call test_products()
  call test_sections()
  call test_half()
  call test_epilogue()
  call test_errors()
  call test_memory(context)
  call test_layer()
  call test_convolution()
  call test_recurrent_layer()
  call test_pointwise()
  call test_sequences()
  call test_transformer(context)
  call test_autocast(context)
  call test_network(context)
  call mp_context_destroy(context)
  print '(i0,a,i0,a)', passed, ' passed, ', failed, ' failed'
  if (failed > 0) error stop 1

contains

  subroutine create_context()
    type(mp_context_config_t) :: config
    type(mp_device_info_t) :: info
    config%device = MP_DEVICE_HOST
    call mp_check(mp_context_create(context, config))
    call mp_check(mp_context_get_info(context, info))
    call expect('the context is on the host', info%target == MP_TARGET_HOST)
    call expect('library and header have one version', mp_version() == MP_VERSION_NUMBER)
    call expect('mp_text converts a C string', index(mp_text(mp_build_info()), 'mpcore ') == 1)
  end subroutine

  subroutine test_defaults()
    type(mp_gemm_desc_t) :: gemm
    type(mp_scaler_config_t) :: scaler
    type(mp_context_config_t) :: config
    type(mp_param_group_t) :: group
    call expect('a struct is initialized to its size and zeros', &
      gemm%struct_size == c_sizeof(gemm) .and. gemm%m == 0 .and. .not. c_associated(gemm%plan))
    gemm = mp_gemm_desc_default(2_c_int64_t, 3_c_int64_t, 5_c_int64_t, MP_FP16, MP_FP32)
    call expect('gemm', gemm%alpha == 1 .and. gemm%batch_count == 1 .and. gemm%ld_b == 3 .and. &
      gemm%struct_size == c_sizeof(gemm))
    config = mp_context_config_default()
    call expect('the default device is AUTO', config%device == MP_DEVICE_AUTO)
    scaler = mp_scaler_config_default(MP_SCALER_POLICY_STATIC)
    call expect('a static scaler starts at 1', scaler%init_scale == 1)
    scaler = mp_scaler_config_preset(MP_SCALER_PRESET_MEGATRON)
    call expect('a preset', scaler%init_scale == 2.0**32 .and. scaler%hysteresis == 2)
    group = mp_param_group_default(MP_OPT_ADAM, 0.25)
    call expect('hyperparameters', group%lr == 0.25 .and. group%beta2 == 0.999)
  end subroutine

  !> Small integers.
  function integers(m, n, seed) result(x)
    integer, intent(in) :: m, n, seed
    real(c_float) :: x(m, n)
    integer :: i, j
    do j = 1, n
      do i = 1, m
        x(i, j) = mod(i*7 + j*3 + seed*5, 9) - 4
      end do
    end do
  end function

  subroutine test_products()
    integer, parameter :: m = 5, n = 7, k = 6
    real(c_float) :: a(m, k), b(k, n), c(m, n)
    a = integers(m, k, 1)
    b = integers(k, n, 2)
    call mp_gemm(context, a, b, c)
    call expect('a b', all(c == matmul(a, b)))
    call mp_gemm(context, transpose(a), b, c, transa=.true.)
    call expect('a^T b', all(c == matmul(a, b)))
    call mp_gemm(context, a, transpose(b), c, transb=.true.)
    call expect('a b^T', all(c == matmul(a, b)))
    call mp_gemm(context, transpose(a), transpose(b), c, transa=.true., transb=.true.)
    call expect('a^T b^T', all(c == matmul(a, b)))
    c = integers(m, n, 3)
    call mp_gemm(context, a, b, c, alpha=2.0, beta=3.0)
    call expect('alpha and beta', all(c == 2*matmul(a, b) + 3*integers(m, n, 3)))
    call mp_gemm(context, a(:, 1:1), b(1:1, :), c)
    call expect('k = 1', all(c == matmul(a(:, 1:1), b(1:1, :))))
    call mp_gemm(context, a(:, 1:0), b(1:0, :), c)
    call expect('k = 0', all(c == 0))
    call mp_gemm(context, a(1:1, :), b(:, 1:1), c(1:1, 1:1))
    call expect('m = n = 1', c(1, 1) == dot_product(a(1, :), b(:, 1)))
  end subroutine

  subroutine test_sections()
    real(c_float) :: a(9, 8), b(7, 9), c(8, 8), wanted(8, 8)
    a = integers(9, 8, 1)
    b = integers(7, 9, 2)
    c = 77
    wanted = 77
    wanted(2:5, 3:8) = matmul(a(3:6, 2:7), b(2:7, 4:9))
    call mp_gemm(context, a(3:6, 2:7), b(2:7, 4:9), c(2:5, 3:8))
    call expect('sections are not copied', all(c == wanted))
    call mp_gemm(context, a(3:6, 1:7:2), b(2:5, 4:9), c(2:5, 3:8))
    wanted(2:5, 3:8) = matmul(a(3:6, 1:7:2), b(2:5, 4:9))
    call expect('every other column', all(c == wanted))
  end subroutine

  !> Small integers in fp16: 0, +-1, +-2, +-4.
  elemental function half(x) result(bits)
    integer, intent(in) :: x
    integer(c_int16_t) :: bits
    integer :: magnitude
    select case (abs(x))
    case (0)
      magnitude = 0
    case (1)
      magnitude = 15*1024
    case (2)
      magnitude = 16*1024
    case default
      magnitude = 17*1024
    end select
    if (x < 0) magnitude = magnitude - 32768
    bits = int(magnitude, c_int16_t)
  end function

  subroutine test_half()
    integer :: ia(3, 4), ib(4, 2), i
    real(c_float) :: c(3, 2), a32(3, 4)
    integer(c_int16_t) :: c16(3, 2)
    ia = reshape([(merge(2, -1, mod(i, 3) == 0), i=1, 12)], [3, 4])
    ib = reshape([(merge(4, 1, mod(i, 2) == 0), i=1, 8)], [4, 2])
    call mp_gemm(context, half(ia), half(ib), c)
    call expect('fp16 to fp32', all(c == matmul(ia, ib)))
    c16 = 0
    call mp_gemm(context, half(ia), half(reshape([1, 0, 0, 0, 0, 1, 0, 0], [4, 2])), c16)
    call expect('fp16 to fp16', all(c16 == half(ia(:, 1:2))))
    a32 = real(ia)
    call mp_gemm(context, a32, real(reshape([1, 0, 0, 0, 0, 1, 0, 0], [4, 2])), c16, dtype=MP_BF16)
    ! In bf16, 2 is 4000 and -1 is bf80: 16256 above the smallest integer.
    call expect('fp32 to bf16', all(c16 == merge(16384, -32768 + 16256, ia(:, 1:2) == 2)))
  end subroutine

  subroutine test_epilogue()
    integer, parameter :: m = 8, n = 4, k = 8
    real(c_float) :: a(m, k), b(k, n), c(m, n), z(m, n)
    real(c_float), target :: bias(m), dbias(m), amax(1), aux(m, n)
    type(mp_epilogue_t) :: epilogue
    integer :: i
    a = integers(m, k, 1)
    b = integers(k, n, 2)
    bias = [(real(mod(i*5, 7) - 3), i=1, m)]
    amax = 0
    epilogue%bias = c_loc(bias)
    epilogue%dtype_bias = MP_FP32
    epilogue%activation = MP_ACT_RELU
    epilogue%dbias = c_loc(dbias)
    epilogue%stats%amax = c_loc(amax)
    epilogue%aux = c_loc(aux)
    call mp_gemm(context, a, b, c, epilogue=epilogue)
    z = matmul(a, b) + spread(bias, 2, n)
    call expect('bias has one element per row', all(c == max(z, 0.0)))
    call expect('aux', all(aux == z))
    call expect('dbias sums over columns', all(dbias == sum(max(z, 0.0), 2)))
    call expect('amax', amax(1) == maxval(max(z, 0.0)))
  end subroutine

  subroutine test_errors()
    real(c_float) :: a(5, 6), b(6, 7), c(5, 7)
    integer(c_int) :: stat
    character(200) :: errmsg
    type(c_ptr) :: scaler
    type(mp_scaler_config_t) :: config
    a = 0
    b = 0
    c = 9
    call mp_gemm(context, a, b(1:5, :), c, stat=stat, errmsg=errmsg)
    call expect('k', stat == MP_ERROR_INVALID_ARGUMENT)
    call expect('k: '//trim(errmsg), errmsg == 'mp_gemm: op(b) has 5 rows, but op(a) has 6 columns')
    call mp_gemm(context, a, b, c(1:4, :), stat=stat, errmsg=errmsg)
    call expect('shape of c: '//trim(errmsg), errmsg == 'mp_gemm: c is 4 x 7, not 5 x 7')
    call mp_gemm(context, a(1:5:2, :), b, c(1:3, :), stat=stat, errmsg=errmsg)
    call expect('every other row: '//trim(errmsg), errmsg == 'mp_gemm: columns of a must be contiguous')
    call mp_gemm(context, a, b(6:1:-1, :), c, stat=stat, errmsg=errmsg)
    call expect('reversed rows: '//trim(errmsg), errmsg == 'mp_gemm: columns of b must be contiguous')
    call mp_gemm(context, a(:, 6:1:-1), b, c, stat=stat, errmsg=errmsg)
    call expect('reversed columns', stat == MP_ERROR_INVALID_ARGUMENT)
    call expect('rejected calls do not write c', all(c == 9))
    config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF)
    config%growth_factor = 0.5d0
    call mp_check(mp_scaler_create(scaler, context, config), stat, errmsg)
    call expect('an error of the library: '//trim(errmsg), &
                stat == MP_ERROR_INVALID_ARGUMENT .and. index(errmsg, 'growth_factor = 0.5') > 0)
    call mp_gemm(context, a, b, c, stat=stat)
    call expect('stat of success', stat == MP_SUCCESS)
  end subroutine

  !> Gradient descent on |y - target|^2 / 2 with y = w x, compared with the same in Fortran.  All
  !> numbers are multiples of powers of two that fp32 represents, so the weights are equal.
  subroutine test_layer()
    integer, parameter :: outputs = 3, inputs = 4, samples = 8
    real(c_float) :: x(inputs, samples), target_y(outputs, samples), error(outputs, samples)
    real(c_float), pointer :: w(:, :), dw(:, :)
    real(c_float) :: wanted(outputs, inputs), first_loss
    type(c_ptr) :: masters, grads, optimizer, scaler
    type(mp_optimizer_desc_t) :: desc
    type(mp_param_group_t), target :: group
    type(mp_scaler_state_t) :: state
    integer :: step

    x = integers(inputs, samples, 1)
    target_y = matmul(integers(outputs, inputs, 4), x)
    call mp_allocate(context, w, outputs, inputs)
    call mp_allocate(context, dw, outputs, inputs)
    call mp_make_tensor_list(masters, context, [c_loc(w)], [size(w, kind=c_int64_t)], [MP_FP32])
    call mp_make_tensor_list(grads, context, [c_loc(dw)], [size(dw, kind=c_int64_t)], [MP_FP32])
    group = mp_param_group_default(MP_OPT_SGD, 2.0**(-8))
    group%beta1 = 0
    desc = mp_optimizer_desc_default(MP_OPT_SGD)
    desc%groups = c_loc(group)
    desc%grads = grads
    desc%master = masters
    call mp_check(mp_optimizer_create(optimizer, context, desc))
    call mp_check(mp_scaler_create(scaler, context, mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF)))

    wanted = 0
    first_loss = sum(target_y**2)
    do step = 1, 3
      call mp_gemm(context, w, x, error)
      error = (error - target_y)*65536 ! the scale, which the step divides out
      call mp_gemm(context, error, x, dw, transb=.true.)
      call mp_check(mp_scale_step(optimizer, scaler, stream=c_null_ptr))
      wanted = wanted - matmul(matmul(wanted, x) - target_y, transpose(x))*2.0**(-8)
      call expect('weights after a step', all(w == wanted))
    end do
    call expect('the loss falls', sum((matmul(w, x) - target_y)**2) < first_loss/4)
    call mp_check(mp_scaler_get_state_sync(scaler, state, c_null_ptr))
    call expect('no step was skipped', state%steps == 3 .and. state%skipped == 0)
    call mp_scaler_destroy(scaler)
    call mp_optimizer_destroy(optimizer)
    call mp_tensor_list_destroy(grads)
    call mp_tensor_list_destroy(masters)
    call mp_deallocate(context, w)
    call mp_deallocate(context, dw)
  end subroutine

  !> Functions of mpcore_c take reversed extents: N H W C in C is (C, W, H, N) here.
  subroutine test_convolution()
    integer, parameter :: n = 2, h = 5, w = 6, c = 4, k = 3, r = 3, s = 2, p = 3, q = 7
    real(c_float), target :: x(c, w, h, n), filter(c, s, r, k), y(k, q, p, n)
    real(c_float) :: padded(c, 0:w + 1, 0:h + 1, n), wanted(k, q, p, n)
    type(mp_conv2d_desc_t) :: desc
    integer(c_int32_t) :: rows, columns
    integer :: stat, i_n, i_p, i_q, i_k
    character(200) :: sentence

    x = reshape(integers(c, w*h*n, 1), shape(x))
    filter = reshape(integers(c, s*r*k, 2), shape(filter))
    padded = 0
    padded(:, 1:w, 1:h, :) = x
    do concurrent(i_n=1:n, i_p=1:p, i_q=1:q, i_k=1:k)
      wanted(i_k, i_q, i_p, i_n) = sum(filter(:, :, :, i_k)* &
        padded(:, i_q - 1:i_q + s - 2, 2*i_p - 2:2*i_p + r - 3, i_n))
    end do

    desc = mp_conv2d_desc_default(n, h, w, c, k, r, s, MP_FP32)
    desc%pad_top = 1
    desc%pad_bottom = 1
    desc%pad_left = 1
    desc%pad_right = 1
    desc%stride_h = 2
    call mp_check(mp_conv2d_get_output_size(desc, rows, columns))
    call expect('the size of the outputs', rows == p .and. columns == q)
    y = 77
    call mp_check(mp_conv2d_fprop(context, desc, c_loc(x), c_loc(filter), c_loc(y), &
      workspace=c_null_ptr, workspace_bytes=0_c_size_t, stream=c_null_ptr))
    call expect('a convolution', all(y == wanted))
    y = 77
    desc%stride_h = 0
    call mp_check(mp_conv2d_fprop(context, desc, c_loc(x), c_loc(filter), c_loc(y), &
      workspace=c_null_ptr, workspace_bytes=0_c_size_t, stream=c_null_ptr), stat, sentence)
    call expect('a stride of 0', stat == MP_ERROR_INVALID_ARGUMENT .and. &
      index(sentence, 'stride_h = 0') > 0 .and. all(y == 77))
  end subroutine

  !> C's steps x sequences x elements is (element, sequence, step) here, and the weights are (input,
  !> output).
  subroutine test_recurrent_layer()
    integer, parameter :: steps = 4, n = 3, inputs = 2, hidden = 3
    real(c_float), target :: x(inputs, n, steps), dx(inputs, n, steps), dw_ih(inputs, hidden)
    real(c_float), target :: y(hidden, n, steps), dy(hidden, n, steps), dw_hh(hidden, hidden)
    real(c_float), target :: h0(hidden, n), hn(hidden, n), dhn(hidden, n), dh0(hidden, n), db(hidden)
    real(c_float), target :: w_ih(inputs, hidden), w_hh(hidden, hidden), b(hidden)
    integer(c_int32_t), target :: lengths(n)
    real(c_float), dimension(hidden, 0:steps) :: h
    real(c_float) :: wanted_y(hidden, n, steps), wanted_hn(hidden, n), wanted_dx(inputs, n, steps)
    real(c_float) :: wanted_dh0(hidden, n), wanted_dw_ih(inputs, hidden), wanted_dw_hh(hidden, hidden)
    real(c_float) :: wanted_db(hidden), da(hidden), dh(hidden)
    real(c_float), pointer :: reserve(:), workspace(:)
    type(mp_rnn_desc_t) :: desc
    type(mp_rnn_sizes_t) :: sizes
    type(mp_rnn_tensors_t) :: tensors
    type(mp_rnn_weights_t), target :: weights(1)
    type(mp_rnn_weight_grads_t), target :: grads(1)
    integer :: stat, i, t
    character(200) :: sentence

    x = reshape(integers(inputs, n*steps, 1), shape(x))
    dy = reshape(integers(hidden, n*steps, 2), shape(dy))
    h0 = integers(hidden, n, 3)
    dhn = integers(hidden, n, 4)
    w_ih = integers(inputs, hidden, 5)
    w_hh = max(min(integers(hidden, hidden, 6), 1.0), -1.0)
    b = [1, -2, 0]
    lengths = [3, 0, 4]

    wanted_y = 0
    wanted_dx = 0
    wanted_dw_ih = 0
    wanted_dw_hh = 0
    wanted_db = 0
    do i = 1, n
      h(:, 0) = h0(:, i)
      do t = 1, lengths(i)
        h(:, t) = max(matmul(x(:, i, t), w_ih) + matmul(h(:, t - 1), w_hh) + 2*b, 0.0)
        wanted_y(:, i, t) = h(:, t)
      end do
      wanted_hn(:, i) = h(:, lengths(i))
      dh = dhn(:, i)
      do t = lengths(i), 1, -1
        da = merge(dh + dy(:, i, t), 0.0, h(:, t) > 0)
        wanted_dx(:, i, t) = matmul(w_ih, da)
        wanted_dw_ih = wanted_dw_ih + outer(x(:, i, t), da)
        wanted_dw_hh = wanted_dw_hh + outer(h(:, t - 1), da)
        wanted_db = wanted_db + da
        dh = matmul(w_hh, da)
      end do
      wanted_dh0(:, i) = dh
    end do

    desc = mp_rnn_desc_default(MP_RNN_RELU, n, steps, inputs, hidden, MP_FP32)
    call mp_check(mp_rnn_get_sizes(context, desc, sizes))
    call expect('sizes', sizes%directions == 1 .and. sizes%gates == 1 .and. sizes%num_weights == 1)
    call mp_allocate(context, reserve, int(sizes%reserve_bytes + 3)/4)
    call mp_allocate(context, workspace, int(sizes%workspace_bytes + 3)/4)
    weights(1)%w_ih = c_loc(w_ih)
    weights(1)%w_hh = c_loc(w_hh)
    weights(1)%b_ih = c_loc(b)
    weights(1)%b_hh = c_loc(b)
    grads(1)%w_ih = c_loc(dw_ih)
    grads(1)%w_hh = c_loc(dw_hh)
    grads(1)%b_ih = c_loc(db)
    tensors%num_weights = size(weights)
    tensors%weights = c_loc(weights)
    tensors%weight_grads = c_loc(grads)
    tensors%lengths = c_loc(lengths)
    tensors%x = c_loc(x)
    tensors%h0 = c_loc(h0)
    tensors%y = c_loc(y)
    tensors%hn = c_loc(hn)
    tensors%reserve = c_loc(reserve)
    tensors%reserve_bytes = sizes%reserve_bytes
    tensors%dy = c_loc(dy)
    tensors%dhn = c_loc(dhn)
    tensors%dx = c_loc(dx)
    tensors%dh0 = c_loc(dh0)
    call mp_check(mp_rnn_forward_training(context, desc, tensors, c_loc(workspace), sizes%workspace_bytes, &
      c_null_ptr))
    call expect('a recurrent layer', all(y == wanted_y) .and. all(hn == wanted_hn))
    call mp_check(mp_rnn_backward_data(context, desc, tensors, c_loc(workspace), sizes%workspace_bytes, &
      c_null_ptr))
    call expect('data gradients of a recurrent layer', all(dx == wanted_dx) .and. all(dh0 == wanted_dh0))
    call mp_check(mp_rnn_backward_weights(context, desc, tensors, c_loc(workspace), sizes%workspace_bytes, &
      c_null_ptr))
    call expect('weight gradients of a recurrent layer', all(dw_ih == wanted_dw_ih) .and. &
      all(dw_hh == wanted_dw_hh) .and. all(db == wanted_db))
    y = 77
    call mp_check(mp_rnn_forward_inference(context, desc, tensors, c_loc(workspace), sizes%workspace_bytes, &
      c_null_ptr))
    call expect('inference of a recurrent layer', all(y == wanted_y))
    y = 77
    weights(1)%w_hh = c_null_ptr
    call mp_check(mp_rnn_forward_inference(context, desc, tensors, c_loc(workspace), sizes%workspace_bytes, &
      c_null_ptr), stat, sentence)
    call expect('missing weights are rejected', stat == MP_ERROR_INVALID_ARGUMENT .and. &
      index(sentence, 'weights[0].w_hh = NULL') > 0 .and. all(y == 77))
    call mp_deallocate(context, reserve)
    call mp_deallocate(context, workspace)
  end subroutine

  !> Rows in C are columns here.
  subroutine test_pointwise()
    integer, parameter :: m = 5, n = 3
    real(c_float), target :: a(m, n), b(m, n), y(m, n)
    type(mp_pointwise_desc_t) :: desc
    type(mp_column_sum_desc_t) :: columns
    real(c_float), target :: sums(m)
    integer(c_size_t) :: bytes
    real(c_float), pointer :: workspace(:)
    integer :: stat
    character(200) :: sentence
    a = integers(m, n, 1)
    b = integers(m, n, 2)
    desc = mp_pointwise_desc_default(MP_POINTWISE_MUL, int(n, c_int64_t), int(m, c_int64_t), MP_FP32)
    desc%activation = MP_ACT_RELU
    call mp_check(mp_pointwise(context, desc, c_loc(a), c_loc(b), c_loc(y), stream=c_null_ptr))
    call expect('a product and ReLU', all(y == max(a*b, 0.0)))
    desc%ld_b = 0
    call mp_check(mp_pointwise(context, desc, c_loc(a), c_loc(b), c_loc(a), stream=c_null_ptr))
    call expect('a broadcast row, in place', all(a == max(integers(m, n, 1)*spread(b(:, 1), 2, n), 0.0)))
    desc%activation = MP_ACT_DTANH
    call mp_check(mp_pointwise(context, desc, c_loc(a), c_loc(b), c_loc(y), stream=c_null_ptr), stat, sentence)
    call expect('a derivative of a product', stat == MP_ERROR_INVALID_ARGUMENT .and. &
      index(sentence, 'activation = MP_ACT_DTANH requires op = MP_POINTWISE_COPY') > 0)
    columns = mp_column_sum_desc_default(int(n, c_int64_t), int(m, c_int64_t), MP_FP32)
    call mp_check(mp_column_sum_workspace_size(context, columns, bytes))
    call mp_allocate(context, workspace, int(bytes + 3)/4)
    call mp_check(mp_column_sum(context, columns, c_loc(b), c_loc(sums), workspace=c_loc(workspace), &
      workspace_bytes=bytes, stream=c_null_ptr))
    call expect('column sums in C', all(sums == sum(b, dim=2)))
    call mp_deallocate(context, workspace)
  end subroutine

  !> Rows of a table in C are columns here.
  subroutine test_sequences()
    integer, parameter :: rows = 6, vocabulary = 5, width = 3, padding = 2
    real(c_float), target :: table(width, vocabulary), dtable(width, vocabulary), found_inf, amax
    real(c_float), target :: out(width, rows), dout(width, rows), x(4), y(4)
    integer(c_int32_t), target :: indices(rows)
    integer(c_int64_t), target :: offset
    real(c_float) :: wanted(width, vocabulary)
    real(c_float), pointer :: workspace(:)
    type(mp_embedding_desc_t) :: embedding
    type(mp_dropout_desc_t) :: dropout
    type(mp_grad_stats_t) :: stats
    integer(c_size_t) :: bytes
    integer :: stat, i
    character(200) :: sentence

    table = integers(width, vocabulary, 1)
    dout = integers(width, rows, 2)
    indices = [4, 0, 4, 2, 2, 4]
    wanted = 1
    do i = 1, rows
      if (indices(i) /= padding) &
        wanted(:, indices(i) + 1) = wanted(:, indices(i) + 1) + dout(:, i)
    end do

    embedding = mp_embedding_desc_default(int(rows, c_int64_t), vocabulary, int(width, c_int64_t), MP_FP32)
    embedding%flags = ior(MP_EMBEDDING_FLAG_PADDING, MP_EMBEDDING_FLAG_ACCUMULATE)
    embedding%padding_index = padding
    call mp_check(mp_embedding_forward(context, embedding, c_loc(table), c_loc(indices), c_loc(out), c_null_ptr))
    call expect('an embedding', all(out == table(:, indices + 1)))
    call mp_check(mp_embedding_workspace_size(context, embedding, bytes))
    call mp_allocate(context, workspace, int(bytes + 3)/4)
    dtable = 1
    found_inf = 0
    amax = 0
    stats = mp_grad_stats_t(c_loc(found_inf), c_loc(amax))
    call mp_check(mp_embedding_backward(context, embedding, c_loc(indices), c_loc(dout), c_loc(dtable), &
      stats, c_loc(workspace), bytes, c_null_ptr))
    call expect('the gradient of an embedding', all(dtable == wanted) .and. found_inf == 0)
    call mp_check(mp_embedding_backward(context, embedding, c_loc(indices), c_loc(dout), c_loc(dtable), &
      workspace=c_loc(workspace), workspace_bytes=bytes - 1, stream=c_null_ptr), stat, sentence)
    call expect('a workspace that is too small is rejected', stat == MP_ERROR_WORKSPACE_TOO_SMALL .and. &
      index(sentence, 'workspace_bytes = ') > 0 .and. all(dtable == wanted))
    call mp_deallocate(context, workspace)

    ! Philox of zeros starts with 6627e8d5 e169c58d bc57ac4c 9b00dbd8; 2^32 3/4 is c0000000.
    x = [1, 2, 3, 4]
    dropout = mp_dropout_desc_default(size(x, kind=c_int64_t), 0.75, MP_FP32)
    call mp_check(mp_dropout(context, dropout, c_null_ptr, c_loc(x), c_loc(y), stream=c_null_ptr))
    call expect('dropout', all(y == [0, 8, 0, 0]))
    dropout%p = 0.5
    offset = 0
    call mp_check(mp_dropout(context, dropout, c_loc(offset), c_loc(x), c_loc(x), stream=c_null_ptr))
    call expect('dropout in place', all(x == [0, 4, 6, 8]))
    dropout%p = 1
    call mp_check(mp_dropout(context, dropout, c_null_ptr, c_loc(x), c_loc(y), stream=c_null_ptr), stat, sentence)
    call expect('p = 1 is rejected', stat == MP_ERROR_INVALID_ARGUMENT .and. index(sentence, 'p = 1') > 0)
  end subroutine

  function outer(a, b) result(product)
    real(c_float), intent(in) :: a(:), b(:)
    real(c_float) :: product(size(a), size(b))
    product = spread(a, 2, size(b))*spread(b, 1, size(a))
  end function

end program
