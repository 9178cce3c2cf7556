!> Tests of the module mpcore_autocast.
module autocast_tests
  use mpcore
  use mpcore_autocast
  use mpcore_network
  use expectations
  implicit none
  private
  public :: test_autocast

contains

  subroutine test_autocast(context)
    type(c_ptr), intent(in) :: context
    call test_configurations()
    call test_classes()
    call test_patterns(context)
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

  subroutine test_configurations()
    type(mp_autocast) :: policy
    type(mp_autocast_config_t) :: c
    type(mp_scaler_config_t) :: scaler
    integer(c_int) :: stat
    character(200) :: errmsg
    c = config()
    call policy%create(c)
    c%depth_limit = -1
    call policy%create(c, stat, errmsg) ! destroys the previous policy
    call expect('a negative depth limit: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. &
      errmsg == 'mp_autocast_create: config->depth_limit = -1 is negative')
    call expect('a rejected config leaves no policy', .not. c_associated(policy%handle()))
    call policy%destroy()
    scaler = mp_autocast_scaler_default(MP_FP16)
    call expect('the scaler of fp16', scaler%init_scale == 32768)
  end subroutine

  subroutine test_classes()
    type(mp_autocast) :: policy
    integer(c_int) :: stat
    character(200) :: errmsg
    call policy%create(config())
    call expect('classes', policy%class_of('Conv2D') == MP_OP_CLASS_ALLOW .and. &
      policy%class_of('exp  ') == MP_OP_CLASS_DENY .and. policy%class_of('Nobody') == MP_OP_CLASS_UNLISTED)
    call policy%set_class([character(9) :: 'Nobody', 'BatchNorm'], MP_OP_CLASS_DENY)
    call expect('set_class replaces a class', policy%class_of('Nobody') == MP_OP_CLASS_DENY .and. &
      policy%class_of('BatchNorm') == MP_OP_CLASS_DENY)
    call policy%set_class([character(1) ::], MP_OP_CLASS_DENY)
    call policy%set_nodes('conv[12', MP_OP_CLASS_ALLOW, stat, errmsg)
    call expect('an unmatched bracket in a pattern: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. &
      errmsg == 'mp_autocast_set_nodes: pattern = conv[12 has an unmatched [')
    call policy%destroy()
  end subroutine

  subroutine test_patterns(context)
    type(c_ptr), intent(in) :: context
    type(mp_autocast) :: policy
    type(mp_autocast_config_t) :: c
    type(mp_network) :: net
    character(:), allocatable :: report
    integer(c_int) :: stat
    character(200) :: errmsg
    integer :: y
    c = config()
    c%flags = ior(c%flags, MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE)
    call policy%create(c)
    call policy%set_nodes('*', MP_OP_CLASS_DENY)
    call policy%set_nodes('fc[!2] ', MP_OP_CLASS_ALLOW)
    call net%create(context)
    y = net%input('x', MP_FP32, [4, 2])
    y = net%node('Linear', 'fc1', [y, net%parameter('w1', [4, 4])])
    y = net%node('Linear', 'fc2', [y, net%parameter('w2', [4, 4])])
    call net%output(y)
    call net%autocast(policy)
    call net%compile()
    call net%explain(report)
    call expect('patterns: '//report, index(report, 'fc1  Linear  fp16  allowed by name') > 0 .and. &
      index(report, 'fc2  Linear  fp32  on the deny list') > 0)
    call policy%set_class(['Exp'], MP_OP_CLASS_ALLOW, stat, errmsg)
    call expect('a policy in use is immutable: '//trim(errmsg), stat == MP_ERROR_INVALID_ARGUMENT .and. errmsg == &
      'mp_autocast_set_class: policy is in use and cannot be modified; create a new one')
    call net%destroy()
    call policy%destroy()
  end subroutine

  subroutine test_disabled(context)
    type(c_ptr), intent(in) :: context
    character(*), parameter :: because = '16-bit arithmetic is not faster on the CPU'
    type(mp_autocast) :: policy
    character(:), allocatable :: text
    integer(c_int) :: stat
    call policy%create(config())
    call policy%get_disabled_reason(text)
    call expect('not disabled', text == '')
    call policy%get_disabled_reason(text, context)
    call expect('disabled: '//text, text == because)
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
    first = second
    call second%create(config())
    call expect('create invalidates both variables', .not. c_associated(first%handle()))
    call second%destroy()
  end subroutine

end module
