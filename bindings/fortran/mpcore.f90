!> Mixed-precision training kernels for Fortran: arrays instead of pointers, column-major products,
!> and errors that cannot be ignored.
!>
!> Module mpcore_c declares all of mpcore.h under the names of C, with one exception: mp_gemm is the
!> generic subroutine below, and the C function is mp_gemm_pointers.  Module mpcore_autocast has
!> policies of autocast, and module mpcore_network has mp_network, the graphs of mpcore/graph.h.
!>
!> Errors.  C functions return a status; mp_check checks it:
!>
!>     call mp_check(mp_context_create(context))                 ! stops with the error message
!>     call mp_check(mp_context_create(context), stat, errmsg)   ! returns the error
!>
!> The subroutines of this module end with the same two optional arguments.  stat is MP_SUCCESS or
!> one of MP_ERROR_*.  errmsg, of any length, names the argument and its value; it is unchanged on
!> success.
!>
!> Handles of contexts, lists, scalers and optimizers are type(c_ptr).  Assignment copies the
!> address, not the object; destroy each object once.
!>
!> Arrays.  With a context on the CPU, any array can be passed.  On a GPU arrays must be in its
!> memory: allocated by mp_allocate, or by OpenACC or OpenMP and passed inside host_data use_device,
!> like for cuBLAS.  16-bit floats are stored as bits in integer(c_int16_t); mp_cast converts to and
!> from real(c_float).
module mpcore
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpcore_c, mp_gemm_pointers => mp_gemm
  implicit none
  public

  !> Computes c = alpha op(a) op(b) + beta c, column-major like all Fortran arrays.
  !>
  !>   a, b, c         rank 2: op(a) is m x k, op(b) is k x n, c is m x n.  Sections with contiguous
  !>                   columns, such as a(1:8, :), are not copied; neither is transpose(a) if the
  !>                   compiler passes it without a copy
  !>   transa, transb  .true.: the array is stored transposed; default .false.
  !>   alpha, beta     default 1 and 0; c is read only if beta is not 0
  !>   dtype           type of all arrays of integer(c_int16_t): MP_FP16 (default) or MP_BF16
  !>   epilogue        operations on c before it is rounded.  The epilogue processes c transposed:
  !>   bias
  !>                   and dbias have m elements, one for each row of c; aux is m x n, in the layout
  !>                   of c.  It has no intent, because with intent(in) gfortran assumes that its
  !>                   targets do not change
  !>   workspace       device, 256-byte aligned, workspace_bytes bytes
  !>
  !> The C library is row-major and computes c^T = op(b)^T op(a)^T on the same memory, with
  !> exchanged operands.
  interface mp_gemm
    module procedure gemm_real, gemm_half, gemm_half_real, gemm_real_half
  end interface

  !> Allocates zeroed memory of the context as an array: call mp_allocate(context, x, n) or
  !> mp_allocate(context, x, m, n).  A negative extent is 0, like in a declaration.  On failure x is
  !> not associated; an array that exceeds the address space returns MP_ERROR_OUT_OF_MEMORY.  On a
  !> GPU, Fortran must not access the memory; copy it by mp_memcpy with c_loc(array).
  interface mp_allocate
    module procedure allocate_real_1, allocate_real_2, allocate_half_1, allocate_half_2
    module procedure allocate_integer_1
  end interface

  !> Frees an array of mp_allocate.
  interface mp_deallocate
    module procedure deallocate_real_1, deallocate_real_2, deallocate_half_1, deallocate_half_2
    module procedure deallocate_integer_1
  end interface

  !> Memory layout of a matrix.
  type, private :: matrix
    type(c_ptr) :: first = c_null_ptr
    integer(c_int64_t) :: rows = 0, columns = 0, ld = 1
    logical :: is_strided = .false. ! neither columns nor rows are contiguous
    logical :: is_turned = .false.  ! rows are contiguous: the compiler passes transpose(a) uncopied
    logical :: is_half = .false.    ! 16-bit floats
  end type

  interface describe
    module procedure describe_real, describe_half
  end interface

  private :: describe, describe_real, describe_half, locate, multiply, allocate_bytes
  private :: gemm_real, gemm_half, gemm_half_real, gemm_real_half
  private :: allocate_real_1, allocate_real_2, allocate_half_1, allocate_half_2, allocate_integer_1
  private :: deallocate_real_1, deallocate_real_2, deallocate_half_1, deallocate_half_2
  private :: deallocate_integer_1, error_unit

contains

  ! ---------------------------------------------------------------- errors

  !> Stops the program with mp_last_error if status is not MP_SUCCESS and stat is absent.
  subroutine mp_check(status, stat, errmsg)
    integer(c_int), intent(in) :: status
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    if (status == MP_SUCCESS) then
      if (present(stat)) stat = MP_SUCCESS
    else
      call mp_refuse(status, mp_message(), stat, errmsg)
    end if
  end subroutine

  !> Reports an error like mp_check, for arguments that this module rejects.
  subroutine mp_refuse(status, sentence, stat, errmsg)
    integer(c_int), intent(in) :: status
    character(*), intent(in) :: sentence
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    if (present(errmsg)) errmsg = sentence
    if (present(stat)) then
      stat = status
    else
      write (error_unit, '(a)') 'mpcore: '//sentence
      error stop 1
    end if
  end subroutine

  !> Returns mp_last_error as text.
  function mp_message() result(text)
    character(:), allocatable :: text
    text = mp_text(mp_last_error())
  end function

  !> Converts a C string to text: mp_text(mp_build_info()).
  function mp_text(string) result(text)
    type(c_ptr), intent(in) :: string
    character(:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    integer :: length
    interface
      function strlen(string) bind(c, name="strlen")
        import
        type(c_ptr), value :: string
        integer(c_size_t) :: strlen
      end function
    end interface
    length = int(strlen(string))
    call c_f_pointer(string, characters, [length])
    allocate (character(length) :: text)
    text = transfer(characters, text)
  end function

  !> Returns the address of a C string, a target that ends in c_null_char; c_null_ptr if empty.
  function mp_address(string) result(address)
    character(*, c_char), intent(in), target :: string
    type(c_ptr) :: address
    address = c_null_ptr
    if (string(1:1) /= c_null_char) address = c_loc(string)
  end function

  ! ---------------------------------------------------------------- products

  subroutine gemm_real(context, a, b, c, transa, transb, alpha, beta, epilogue, workspace, &
                       workspace_bytes, stream, stat, errmsg)
    type(c_ptr), intent(in) :: context
    real(c_float), intent(in), target :: a(:, :), b(:, :)
    real(c_float), intent(inout), target :: c(:, :)
    logical, intent(in), optional :: transa, transb; real(c_float), intent(in), optional :: alpha, beta
    type(mp_epilogue_t), optional :: epilogue
    type(c_ptr), intent(in), optional :: workspace, stream; integer(c_size_t), intent(in), optional :: workspace_bytes
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call multiply(context, describe(a), describe(b), describe(c), transa, transb, alpha, beta, &
                  epilogue=epilogue, workspace=workspace, workspace_bytes=workspace_bytes, stream=stream, &
                  stat=stat, errmsg=errmsg)
  end subroutine

  subroutine gemm_half(context, a, b, c, transa, transb, alpha, beta, dtype, epilogue, workspace, &
                       workspace_bytes, stream, stat, errmsg)
    type(c_ptr), intent(in) :: context
    integer(c_int16_t), intent(in), target :: a(:, :), b(:, :)
    integer(c_int16_t), intent(inout), target :: c(:, :)
    logical, intent(in), optional :: transa, transb; real(c_float), intent(in), optional :: alpha, beta
    integer(c_int), intent(in), optional :: dtype; type(mp_epilogue_t), optional :: epilogue
    type(c_ptr), intent(in), optional :: workspace, stream; integer(c_size_t), intent(in), optional :: workspace_bytes
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call multiply(context, describe(a), describe(b), describe(c), transa, transb, alpha, beta, dtype, &
                  epilogue, workspace, workspace_bytes, stream, stat, errmsg)
  end subroutine

  subroutine gemm_half_real(context, a, b, c, transa, transb, alpha, beta, dtype, epilogue, &
                            workspace, workspace_bytes, stream, stat, errmsg)
    type(c_ptr), intent(in) :: context
    integer(c_int16_t), intent(in), target :: a(:, :), b(:, :)
    real(c_float), intent(inout), target :: c(:, :)
    logical, intent(in), optional :: transa, transb; real(c_float), intent(in), optional :: alpha, beta
    integer(c_int), intent(in), optional :: dtype; type(mp_epilogue_t), optional :: epilogue
    type(c_ptr), intent(in), optional :: workspace, stream; integer(c_size_t), intent(in), optional :: workspace_bytes
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call multiply(context, describe(a), describe(b), describe(c), transa, transb, alpha, beta, dtype, &
                  epilogue, workspace, workspace_bytes, stream, stat, errmsg)
  end subroutine

  subroutine gemm_real_half(context, a, b, c, transa, transb, alpha, beta, dtype, epilogue, &
                            workspace, workspace_bytes, stream, stat, errmsg)
    type(c_ptr), intent(in) :: context
    real(c_float), intent(in), target :: a(:, :), b(:, :)
    integer(c_int16_t), intent(inout), target :: c(:, :)
    logical, intent(in), optional :: transa, transb; real(c_float), intent(in), optional :: alpha, beta
    integer(c_int), intent(in), optional :: dtype; type(mp_epilogue_t), optional :: epilogue
    type(c_ptr), intent(in), optional :: workspace, stream; integer(c_size_t), intent(in), optional :: workspace_bytes
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call multiply(context, describe(a), describe(b), describe(c), transa, transb, alpha, beta, dtype, &
                  epilogue, workspace, workspace_bytes, stream, stat, errmsg)
  end subroutine

  subroutine multiply(context, a, b, c, transa, transb, alpha, beta, dtype, epilogue, workspace, &
                      workspace_bytes, stream, stat, errmsg)
    type(c_ptr), intent(in) :: context
    type(matrix), intent(in) :: a, b, c
    logical, intent(in), optional :: transa, transb; real(c_float), intent(in), optional :: alpha, beta
    integer(c_int), intent(in), optional :: dtype; type(mp_epilogue_t), optional :: epilogue
    type(c_ptr), intent(in), optional :: workspace, stream; integer(c_size_t), intent(in), optional :: workspace_bytes
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(mp_gemm_desc_t) :: desc
    type(c_ptr) :: space, queue
    integer(c_size_t) :: space_bytes
    integer(c_int) :: half
    integer(c_int64_t) :: m, n, k, k_of_b
    logical :: turn_a, turn_b
    character(100) :: sentence

    turn_a = .false.
    turn_b = .false.
    if (present(transa)) turn_a = transa
    if (present(transb)) turn_b = transb
    m = merge(a%columns, a%rows, turn_a)
    k = merge(a%rows, a%columns, turn_a)
    k_of_b = merge(b%columns, b%rows, turn_b)
    n = merge(b%rows, b%columns, turn_b)

    sentence = ''
    if (k_of_b /= k) write (sentence, '(2(a,i0),a)') 'op(b) has ', k_of_b, ' rows, but op(a) has ', k, ' columns'
    if (c%rows /= m .or. c%columns /= n) &
      write (sentence, '(4(a,i0))') 'c is ', c%rows, ' x ', c%columns, ', not ', m, ' x ', n
    if (a%is_strided) sentence = 'columns of a must be contiguous'
    if (b%is_strided) sentence = 'columns of b must be contiguous'
    if (c%is_strided .or. c%is_turned) sentence = 'columns of c must be contiguous'
    if (sentence /= '') then
      call mp_refuse(MP_ERROR_INVALID_ARGUMENT, 'mp_gemm: '//trim(sentence), stat, errmsg)
      return
    end if

    ! c^T = op(b)^T op(a)^T
    half = MP_FP16
    if (present(dtype)) half = dtype
    desc = mp_gemm_desc_default(n, m, k, merge(half, MP_FP32, a%is_half), merge(half, MP_FP32, c%is_half))
    desc%op_a = merge(MP_OP_T, MP_OP_N, turn_b .neqv. b%is_turned)
    desc%op_b = merge(MP_OP_T, MP_OP_N, turn_a .neqv. a%is_turned)
    desc%ld_a = b%ld
    desc%ld_b = a%ld
    desc%ld_c = c%ld
    desc%ld_d = c%ld
    if (present(alpha)) desc%alpha = alpha
    if (present(beta)) desc%beta = beta
    space = c_null_ptr
    space_bytes = 0
    queue = c_null_ptr
    if (present(workspace)) space = workspace
    if (present(workspace_bytes)) space_bytes = workspace_bytes
    if (present(stream)) queue = stream
    call mp_check(mp_gemm_pointers(context, desc, b%first, a%first, c%first, c%first, epilogue, &
                                   space, space_bytes, queue), stat, errmsg)
  end subroutine

  function describe_real(x) result(it)
    real(c_float), intent(in), target :: x(:, :)
    type(matrix) :: it
    it = matrix(rows=size(x, 1, c_int64_t), columns=size(x, 2, c_int64_t), ld=max(size(x, 1, c_int64_t), 1_c_int64_t))
    if (size(x) > 0) call locate(it, c_loc(x(1, 1)), c_loc(x(min(2, size(x, 1)), 1)), c_loc(x(1, min(2, size(x, 2)))))
  end function

  function describe_half(x) result(it)
    integer(c_int16_t), intent(in), target :: x(:, :)
    type(matrix) :: it
    it = matrix(rows=size(x, 1, c_int64_t), columns=size(x, 2, c_int64_t), ld=max(size(x, 1, c_int64_t), 1_c_int64_t), &
                is_half=.true.)
    if (size(x) > 0) call locate(it, c_loc(x(1, 1)), c_loc(x(min(2, size(x, 1)), 1)), c_loc(x(1, min(2, size(x, 2)))))
  end function

  !> Determines the layout from the addresses of x(2, 1) and x(1, 2): x can be a section or a
  !> transpose.
  subroutine locate(it, first, below, right)
    type(matrix), intent(inout) :: it
    type(c_ptr), intent(in) :: first, below, right
    integer(c_intptr_t) :: start, next, bytes
    integer(c_int64_t) :: down, across
    it%first = first
    bytes = merge(2, 4, it%is_half)
    start = transfer(first, start)
    next = transfer(below, next)
    down = merge((next - start)/bytes, 1_c_int64_t, it%rows > 1)
    next = transfer(right, next)
    across = merge((next - start)/bytes, 1_c_int64_t, it%columns > 1)
    if (down == 1 .and. (across >= it%rows .or. it%columns == 1)) then
      it%ld = merge(across, it%rows, it%columns > 1)
    else if (across == 1 .and. (down >= it%columns .or. it%rows == 1)) then
      it%is_turned = .true.
      it%ld = merge(down, it%columns, it%rows > 1)
    else
      it%is_strided = .true.
    end if
  end subroutine

  ! ---------------------------------------------------------------- lists

  !> Creates a tensor list from arrays of addresses (c_loc of each tensor), element counts and
  !> types.
  subroutine mp_make_tensor_list(list, context, data, numel, dtypes, stat, errmsg)
    type(c_ptr), intent(out) :: list
    type(c_ptr), intent(in) :: context
    type(c_ptr), intent(in), target, contiguous :: data(:)
    integer(c_int64_t), intent(in), target, contiguous :: numel(:)
    integer(c_int), intent(in), target, contiguous :: dtypes(:)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(mp_tensor_list_desc_t) :: desc
    list = c_null_ptr
    if (size(numel) /= size(data) .or. size(dtypes) /= size(data)) then
      call mp_refuse(MP_ERROR_INVALID_ARGUMENT, &
                  'mp_make_tensor_list: data, numel and dtypes must have equal sizes', stat, errmsg)
      return
    end if
    desc%count = size(data)
    if (size(data) > 0) then
      desc%dtype = dtypes(1)
      desc%data = c_loc(data)
      desc%numel = c_loc(numel)
      desc%dtypes = c_loc(dtypes)
    else
      desc%dtype = MP_FP32
    end if
    call mp_check(mp_tensor_list_create(list, context, desc), stat, errmsg)
  end subroutine

  ! ---------------------------------------------------------------- memory

  !> Returns zeroed memory for an array, or c_null_ptr.  A negative extent is 0, like in a
  !> declaration.
  function allocate_bytes(context, bytes_per_element, extents, stat, errmsg) result(address)
    type(c_ptr), intent(in) :: context
    integer, intent(in) :: bytes_per_element, extents(:)
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_size_t) :: bytes
    integer(c_int) :: status
    integer :: i
    character(100) :: sentence
    address = c_null_ptr
    bytes = merge(0, bytes_per_element, any(extents <= 0))
    do i = 1, merge(0, size(extents), bytes == 0)
      if (bytes > huge(bytes)/extents(i)) then
        write (sentence, '(2(a,i0),a)') 'mp_allocate: m = ', extents(1), ', n = ', extents(i), &
          ': the array exceeds the address space'
        call mp_refuse(MP_ERROR_OUT_OF_MEMORY, trim(sentence), stat, errmsg)
        return
      end if
      bytes = bytes*extents(i)
    end do
    status = mp_malloc(context, address, max(bytes, 1_c_size_t))
    if (status == MP_SUCCESS) status = mp_memset(context, address, 0, bytes, c_null_ptr)
    if (status == MP_SUCCESS) status = mp_stream_sync(context, c_null_ptr)
    call mp_check(status, stat, errmsg)
  end function

  subroutine allocate_real_1(context, x, n, stat, errmsg)
    type(c_ptr), intent(in) :: context
    real(c_float), pointer, intent(out) :: x(:)
    integer, intent(in) :: n
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    nullify (x)
    address = allocate_bytes(context, 4, [n], stat, errmsg)
    if (c_associated(address)) call c_f_pointer(address, x, max([n], 0))
  end subroutine

  subroutine allocate_real_2(context, x, m, n, stat, errmsg)
    type(c_ptr), intent(in) :: context
    real(c_float), pointer, intent(out) :: x(:, :)
    integer, intent(in) :: m, n
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    nullify (x)
    address = allocate_bytes(context, 4, [m, n], stat, errmsg)
    if (c_associated(address)) call c_f_pointer(address, x, max([m, n], 0))
  end subroutine

  subroutine allocate_half_1(context, x, n, stat, errmsg)
    type(c_ptr), intent(in) :: context
    integer(c_int16_t), pointer, intent(out) :: x(:)
    integer, intent(in) :: n
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    nullify (x)
    address = allocate_bytes(context, 2, [n], stat, errmsg)
    if (c_associated(address)) call c_f_pointer(address, x, max([n], 0))
  end subroutine

  subroutine allocate_half_2(context, x, m, n, stat, errmsg)
    type(c_ptr), intent(in) :: context
    integer(c_int16_t), pointer, intent(out) :: x(:, :)
    integer, intent(in) :: m, n
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    nullify (x)
    address = allocate_bytes(context, 2, [m, n], stat, errmsg)
    if (c_associated(address)) call c_f_pointer(address, x, max([m, n], 0))
  end subroutine

  subroutine allocate_integer_1(context, x, n, stat, errmsg)
    type(c_ptr), intent(in) :: context
    integer(c_int32_t), pointer, intent(out) :: x(:)
    integer, intent(in) :: n
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    nullify (x)
    address = allocate_bytes(context, 4, [n], stat, errmsg)
    if (c_associated(address)) call c_f_pointer(address, x, max([n], 0))
  end subroutine

  subroutine deallocate_real_1(context, x)
    type(c_ptr), intent(in) :: context
    real(c_float), pointer, intent(inout) :: x(:)
    if (associated(x)) call mp_free(context, c_loc(x))
    nullify (x)
  end subroutine

  subroutine deallocate_real_2(context, x)
    type(c_ptr), intent(in) :: context
    real(c_float), pointer, intent(inout) :: x(:, :)
    if (associated(x)) call mp_free(context, c_loc(x))
    nullify (x)
  end subroutine

  subroutine deallocate_half_1(context, x)
    type(c_ptr), intent(in) :: context
    integer(c_int16_t), pointer, intent(inout) :: x(:)
    if (associated(x)) call mp_free(context, c_loc(x))
    nullify (x)
  end subroutine

  subroutine deallocate_half_2(context, x)
    type(c_ptr), intent(in) :: context
    integer(c_int16_t), pointer, intent(inout) :: x(:, :)
    if (associated(x)) call mp_free(context, c_loc(x))
    nullify (x)
  end subroutine

  subroutine deallocate_integer_1(context, x)
    type(c_ptr), intent(in) :: context
    integer(c_int32_t), pointer, intent(inout) :: x(:)
    if (associated(x)) call mp_free(context, c_loc(x))
    nullify (x)
  end subroutine

end module
