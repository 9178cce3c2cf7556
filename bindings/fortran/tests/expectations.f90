!> Counts of passed and failed expectations.
module expectations
  implicit none
  integer :: passed = 0, failed = 0

contains

  subroutine expect(title, holds)
    character(*), intent(in) :: title
    logical, intent(in) :: holds
    if (holds) then
      passed = passed + 1
    else
      failed = failed + 1
      print '(a)', 'FAILED: '//title
    end if
  end subroutine

end module
