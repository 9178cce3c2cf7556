!> Tests of the module mpcore on the host target.  Integers make every product exact.
program test_mpcore
  use mpcore
  use autocast_tests
  use memory_tests
  use network_tests
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

end program
