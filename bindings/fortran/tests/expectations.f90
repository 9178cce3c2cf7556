!> What the tests expect, and how often it was so.
module expectations
  implicit none
  integer :: passed = 0, failed = 0

contains

  subroutine expect(what, holds)
    character(*), intent(in) :: what
    logical, intent(in) :: holds
    if (holds) then
      passed = passed + 1
    else
      failed = failed + 1
      print '(a)', 'FAILED: '//what
    end if
  end subroutine

end module
