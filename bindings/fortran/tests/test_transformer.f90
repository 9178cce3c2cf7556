!> Tests of normalization, rotary embedding, softmax, gated units, sums of rows and attention.  Rows
!> in C are columns here.
module transformer_tests
  use mpcore
  use expectations
  implicit none
  private
  public :: test_transformer
  integer(c_int64_t), parameter :: two = 2, four = 4

contains

  subroutine test_transformer(context)
    type(c_ptr), intent(in) :: context
    call test_norm(context)
    call test_rope(context)
    call test_softmax(context)
    call test_gated_units(context)
    call test_attention(context)
  end subroutine

  logical function close(a, b)
    real(c_float), intent(in) :: a(:), b(:)
    close = all(abs(a - b) < 2e-6)
  end function

  !> Vectors of mean 1 and 2 and variance 1; every number is exact.
  subroutine test_norm(context)
    type(c_ptr), intent(in) :: context
    type(mp_norm_desc_t) :: desc
    type(mp_norm_tensors_t) :: tensors
    real(c_float), target :: x(8), y(8), dy(8), dx(8), gamma(4), dgamma(4), mean(2), rstd(2), amax
    real(c_float), pointer :: workspace(:)
    integer(c_size_t) :: bytes
    integer(c_int) :: stat
    character(200) :: sentence
    desc = mp_norm_desc_default(MP_NORM_LAYER, two, four, MP_FP32)
    desc%epsilon = 0
    x = [0, 0, 2, 2, 3, 1, 3, 1]
    dy = [2, 0, 0, 0, 0, 2, 0, 0]
    gamma = 2
    amax = 0
    tensors%x = c_loc(x)
    tensors%y = c_loc(y)
    tensors%gamma = c_loc(gamma)
    tensors%mean = c_loc(mean)
    tensors%rstd = c_loc(rstd)
    call mp_check(mp_norm_forward(context, desc, tensors, c_null_ptr))
    call expect('layer normalization', all(y == [-2, -2, 2, 2, 2, -2, 2, -2]) .and. all(mean == [1, 2]))
    tensors%dy = c_loc(dy)
    tensors%dx = c_loc(dx)
    tensors%dgamma = c_loc(dgamma)
    tensors%stats%amax = c_loc(amax)
    call mp_check(mp_norm_backward_workspace_size(context, desc, bytes))
    call mp_allocate(context, workspace, int(bytes + 3)/4)
    call mp_check(mp_norm_backward(context, desc, tensors, c_loc(workspace), bytes, c_null_ptr))
    call expect('gradients of layer normalization', all(dx == [2, -2, 0, 0, 0, 2, 0, -2]) .and. &
      all(dgamma == [-2, -2, 0, 0]) .and. amax == 2)
    call mp_check(mp_norm_backward(context, desc, tensors, c_loc(workspace), bytes - 1, c_null_ptr), stat, sentence)
    call expect('a workspace of a normalization that is too small', stat == MP_ERROR_WORKSPACE_TOO_SMALL .and. &
      index(sentence, 'workspace_bytes = ') > 0)
    call mp_deallocate(context, workspace)
  end subroutine

  subroutine test_rope(context)
    type(c_ptr), intent(in) :: context
    type(mp_rope_desc_t) :: desc
    real(c_float), target :: x(4, 2), y(4, 2), inv_freq(2)
    real(c_float) :: wanted(4)
    integer(c_int) :: stat
    character(200) :: sentence
    x(:, 1) = [1, 2, 3, 4]
    x(:, 2) = x(:, 1)
    inv_freq = [1, 0]
    wanted = [cos(1.0) - 3*sin(1.0), 2.0, 3*cos(1.0) + sin(1.0), 4.0]
    desc = mp_rope_desc_default(two, 1, 4, MP_FP32)
    call mp_check(mp_rope(context, desc, c_null_ptr, c_loc(inv_freq), c_loc(x), c_loc(y), stream=c_null_ptr))
    call expect('a rotary embedding', all(y(:, 1) == x(:, 1)) .and. close(y(:, 2), wanted))
    desc%flags = MP_ROPE_FLAG_INVERSE
    call mp_check(mp_rope(context, desc, c_null_ptr, c_loc(inv_freq), c_loc(y), c_loc(y), stream=c_null_ptr))
    call expect('the inverse of a rotary embedding', close(y(:, 2), x(:, 2)))
    desc%rotary_dim = 3
    call mp_check(mp_rope(context, desc, c_null_ptr, c_null_ptr, c_loc(x), c_loc(y), stream=c_null_ptr), stat, sentence)
    call expect('an odd rotary_dim', stat == MP_ERROR_INVALID_ARGUMENT .and. index(sentence, 'rotary_dim = 3') > 0)
  end subroutine

  subroutine test_softmax(context)
    type(c_ptr), intent(in) :: context
    type(mp_softmax_desc_t) :: desc
    type(mp_grad_stats_t) :: stats
    real(c_float), target :: x(4), y(4), dy(4), amax
    integer(c_int) :: stat
    character(200) :: sentence
    x = 0
    dy = [4, 9, 2, 6]
    amax = 0
    stats%amax = c_loc(amax)
    desc = mp_softmax_desc_default(two, two, MP_FP32)
    desc%mask = MP_SOFTMAX_MASK_CAUSAL
    call mp_check(mp_softmax_forward(context, desc, c_loc(x), c_null_ptr, c_loc(y), c_null_ptr))
    call expect('causal softmax', all(y == [1.0, 0.0, 0.5, 0.5]))
    call mp_check(mp_softmax_backward(context, desc, c_loc(y), c_loc(dy), c_null_ptr, c_loc(y), stats, c_null_ptr))
    call expect('the gradient of softmax', all(y == [0, 0, -1, 1]) .and. amax == 1)
    desc%mask = MP_SOFTMAX_MASK_LENGTHS
    call mp_check(mp_softmax_forward(context, desc, c_loc(x), c_null_ptr, c_loc(y), c_null_ptr), stat, sentence)
    call expect('absent lengths', stat == MP_ERROR_INVALID_ARGUMENT .and. index(sentence, 'mask = NULL') > 0)
  end subroutine

  subroutine test_gated_units(context)
    type(c_ptr), intent(in) :: context
    type(mp_glu_desc_t) :: desc
    type(mp_sum_rows_desc_t) :: rows
    type(mp_grad_stats_t) :: stats
    real(c_float), target :: x(8), y(4), dy(4), amax
    integer(c_int) :: stat
    character(200) :: sentence
    x = [2, -1, 3, 5, 1, 4, -2, 6]
    dy = [1, 2, 3, 1]
    amax = 0
    stats%amax = c_loc(amax)
    desc = mp_glu_desc_default(MP_ACT_RELU, two, two, MP_FP32)
    call mp_check(mp_glu_forward(context, desc, c_loc(x), c_loc(y), c_null_ptr))
    call expect('a gated linear unit', all(y == [6, 0, -2, 24]))
    call mp_check(mp_glu_backward(context, desc, c_loc(x), c_loc(dy), c_loc(x), stats, c_null_ptr))
    call expect('the gradient of a gated unit', all(x == [3, 0, 2, 0, -6, 6, 3, 4]) .and. amax == 6)
    desc%activation = MP_ACT_DRELU
    call mp_check(mp_glu_forward(context, desc, c_loc(x), c_loc(y), c_null_ptr), stat, sentence)
    call expect('a derivative as gate', stat == MP_ERROR_INVALID_ARGUMENT .and. &
      index(sentence, 'activation = MP_ACT_DRELU') > 0)
    rows = mp_sum_rows_desc_default(four, two, two, MP_FP32)
    rows%beta = 1
    call mp_check(mp_sum_rows(context, rows, c_loc(x), c_loc(y), stats, c_null_ptr))
    call expect('sums of rows', all(y == [3, 6, 3, 28]) .and. amax == 28)
    rows%period = 0
    call mp_check(mp_sum_rows(context, rows, c_loc(x), c_loc(y), stats, c_null_ptr), stat, sentence)
    call expect('a period of 0', stat == MP_ERROR_INVALID_ARGUMENT .and. index(sentence, 'period = 0') > 0)
  end subroutine

  !> Queries of 0 give equal weights to the visible keys.
  subroutine test_attention(context)
    type(c_ptr), intent(in) :: context
    type(mp_attention_desc_t) :: desc
    type(mp_attention_tensors_t) :: tensors
    real(c_float), target :: q(4), k(2), v(2), o(4), lse(4), d_o(4), dq(4), dk(2), dv(2), amax
    real(c_float), pointer :: workspace(:)
    integer(c_size_t) :: bytes
    integer(c_int) :: stat
    character(200) :: sentence
    desc = mp_attention_desc_default(1, 2, two, two, 1, MP_FP32)
    desc%kv_heads = 1
    desc%flags = MP_ATTENTION_FLAG_CAUSAL
    q = 0
    k = [1, 2]
    v = [4, 8]
    d_o = [1, 1, 2, 4]
    amax = 0
    tensors%q = c_loc(q)
    tensors%k = c_loc(k)
    tensors%v = c_loc(v)
    tensors%o = c_loc(o)
    tensors%lse = c_loc(lse)
    call mp_check(mp_attention_forward(context, desc, tensors, c_null_ptr))
    call expect('causal attention', close(o, [4.0, 4.0, 6.0, 6.0]) .and. &
      close(lse, [0.0, log(2.0), 0.0, log(2.0)]))
    tensors%d_o = c_loc(d_o)
    tensors%dq = c_loc(dq)
    tensors%dk = c_loc(dk)
    tensors%dv = c_loc(dv)
    tensors%stats%amax = c_loc(amax)
    call mp_check(mp_attention_backward_workspace_size(context, desc, bytes))
    call mp_allocate(context, workspace, int(bytes + 3)/4)
    call mp_check(mp_attention_backward(context, desc, tensors, c_loc(workspace), bytes, c_null_ptr))
    call expect('gradients of attention', close(dq, [0.0, 0.0, 2.0, 4.0]) .and. close(dk, [0.0, 0.0]) .and. &
      close(dv, [5.0, 3.0]) .and. amax == dv(1))
    call mp_check(mp_attention_backward(context, desc, tensors, c_loc(workspace), bytes - 1, c_null_ptr), stat, sentence)
    call expect('a workspace of attention that is too small', stat == MP_ERROR_WORKSPACE_TOO_SMALL .and. &
      index(sentence, 'workspace_bytes = ') > 0)
    call mp_deallocate(context, workspace)
  end subroutine

end module
