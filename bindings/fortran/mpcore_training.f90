!> Optimizers by name, and checkpoints.
!>
!>     type(mp_optimizer_desc_t) :: desc
!>     type(mp_param_group_t), target :: group
!>     call mp_optimizer_from_name(desc, group, 'adamw', 1e-3)
!>     call net%get_lists(desc%grads, desc%master, desc%model)
!>     call mp_check(mp_optimizer_create(optimizer, context, desc)) ! allocates the moments
!>
!> The subroutines end with stat and errmsg, like those of the module mpcore.
module mpcore_training
  use mpcore
  implicit none
  private
  public :: mp_optimizer_from_name, mp_save_checkpoint, mp_restore_checkpoint

contains

  !> Initializes desc and group, its only group, with the defaults of a method: 'adamw', 'sgd' and
  !> the other names of mp_optimizer_desc_from_name.  mp_optimizer_create reads group, so you can
  !> change it before that call.
  subroutine mp_optimizer_from_name(desc, group, name, lr, stat, errmsg)
    type(mp_optimizer_desc_t), intent(inout) :: desc
    type(mp_param_group_t), intent(inout), target :: group
    character(*), intent(in) :: name
    real(c_float), intent(in) :: lr
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    character(:, c_char), allocatable, target :: text
    text = trim(name)//c_null_char
    call mp_check(mp_optimizer_desc_from_name(c_loc(text), desc, c_sizeof(desc), group, c_sizeof(group), lr), &
                  stat, errmsg)
  end subroutine

  !> Saves masters, moments, the number of steps, and the scaler (absent: the built-in scaler of the
  !> optimizer).  mp_restore_checkpoint continues the training bit for bit.  Waits for the stream.
  !> On failure checkpoint is not allocated.
  subroutine mp_save_checkpoint(optimizer, checkpoint, scaler, stream, stat, errmsg)
    type(c_ptr), intent(in) :: optimizer
    integer(c_int8_t), allocatable, target, intent(out) :: checkpoint(:)
    type(c_ptr), intent(in), optional :: scaler, stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    integer(c_size_t) :: bytes
    integer(c_int) :: status
    integer :: refused
    status = mp_optimizer_checkpoint_size(optimizer, or_null(scaler), bytes)
    if (status == MP_SUCCESS) then
      allocate (checkpoint(bytes), stat=refused)
      if (refused /= 0) then
        call mp_refuse(MP_ERROR_OUT_OF_MEMORY, 'mp_save_checkpoint: out of memory', stat, errmsg)
        return
      end if
      status = mp_optimizer_save_sync(optimizer, or_null(scaler), c_loc(checkpoint), bytes, or_null(stream))
      if (status /= MP_SUCCESS) deallocate (checkpoint)
    end if
    call mp_check(status, stat, errmsg)
  end subroutine

  !> Restores a checkpoint and writes the 16-bit copies with the rounding of this optimizer.  The
  !> scaler must have the saved policy; absent: the built-in scaler of the optimizer.  Waits for the
  !> stream.  On failure nothing is written.
  subroutine mp_restore_checkpoint(optimizer, checkpoint, scaler, stream, stat, errmsg)
    type(c_ptr), intent(in) :: optimizer
    integer(c_int8_t), target, contiguous, intent(in) :: checkpoint(:)
    type(c_ptr), intent(in), optional :: scaler, stream
    integer(c_int), intent(out), optional :: stat; character(*), intent(inout), optional :: errmsg
    call mp_check(mp_optimizer_restore_sync(optimizer, or_null(scaler), c_loc(checkpoint), &
                                            size(checkpoint, kind=c_size_t), or_null(stream)), stat, errmsg)
  end subroutine

  function or_null(given) result(pointer)
    type(c_ptr), intent(in), optional :: given
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    if (present(given)) pointer = given
  end function

end module
