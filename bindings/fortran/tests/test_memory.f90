!> Tests of mp_allocate and of lists of its arrays.
module memory_tests
  use mpcore
  use expectations
  implicit none
  private
  public :: test_memory

contains

  subroutine test_memory(context)
    type(c_ptr), intent(in) :: context
    call test_allocation(context)
    call test_lists(context)
  end subroutine

  subroutine test_allocation(context)
    type(c_ptr), intent(in) :: context
    real(c_float), pointer :: x(:), y(:, :)
    integer(c_int16_t), pointer :: h(:), g(:, :)
    integer(c_int32_t), pointer :: i(:)
    integer(c_int) :: stat
    character(120) :: errmsg
    call mp_allocate(context, x, -1)
    call mp_allocate(context, y, -huge(1), -huge(1))
    call mp_allocate(context, h, -huge(1))
    call mp_allocate(context, g, huge(1), -1)
    call mp_allocate(context, i, 0)
    call expect('a negative extent is an array without elements', size(x) == 0 .and. size(h) == 0 .and. &
      size(i) == 0 .and. all(shape(y) == 0) .and. all(shape(g) == [huge(1), 0]))
    call mp_deallocate(context, x)
    call mp_deallocate(context, y)
    call mp_deallocate(context, h)
    call mp_deallocate(context, g)
    call mp_deallocate(context, i)
    call expect('arrays without elements are deallocated', .not. (associated(x) .or. associated(y)))
    call mp_allocate(context, y, huge(1), huge(1), stat, errmsg)
    call expect('more bytes than a size holds are refused', stat == MP_ERROR_OUT_OF_MEMORY .and. &
      .not. associated(y) .and. errmsg == &
      'mp_allocate: m = 2147483647, n = 2147483647: the array exceeds the address space')
    call mp_allocate(context, g, huge(1), huge(1), stat)
    call expect('more memory than there is is refused', stat == MP_ERROR_OUT_OF_MEMORY .and. .not. associated(g))
  end subroutine

  subroutine test_lists(context)
    type(c_ptr), intent(in) :: context
    real(c_float), pointer :: x(:), y(:, :)
    real(c_float), target :: norm(1)
    type(c_ptr) :: list
    integer(c_int) :: stat
    call mp_allocate(context, x, 2)
    call mp_allocate(context, y, 2, 2)
    call expect('memory begins with zeros', all(x == 0) .and. all(y == 0))
    x = [3, -4]
    y(2, 1) = 12
    call mp_make_tensor_list(list, context, [c_loc(x), c_loc(y)], [2_c_int64_t, 4_c_int64_t], &
                             [MP_FP32, MP_FP32])
    call mp_check(mp_l2norm(list, c_loc(norm), c_null_ptr, c_null_ptr))
    call expect('norm', norm(1) == 13)
    call mp_tensor_list_destroy(list)
    call mp_make_tensor_list(list, context, [c_loc(x)], [2_c_int64_t, 4_c_int64_t], [MP_FP32], stat)
    call expect('arrays of different sizes', stat == MP_ERROR_INVALID_ARGUMENT)
    call mp_deallocate(context, x)
    call mp_deallocate(context, y)
    call expect('deallocated', .not. associated(x))
  end subroutine

end module
