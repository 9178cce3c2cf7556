// File access: reads that never block, and writes that replace a file atomically.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

namespace mp {

/// Opens a regular file for reading.  Returns its descriptor, or -1 and an errno: EINVAL for pipes,
/// devices and folders, which may have no end of file.
inline int open_regular_file(const char *path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // never waits for a pipe
  struct stat found;
  if (file < 0 || (::fstat(file, &found) == 0 && S_ISREG(found.st_mode))) return file;
  ::close(file);
  errno = EINVAL;
  return -1;
}

/// Blocks all signals of the calling thread, so that none ends the process between two steps.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld &) = delete;
  SignalsHeld &operator=(const SignalsHeld &) = delete;

 private:
  sigset_t before_;
};

/// Writes `content` to an open file and closes the file.  Returns 0 or an errno.
inline int write_and_close(int file, std::string_view content, bool syncs) {
  int error = 0;
  while (error == 0 && !content.empty()) {
    const ssize_t bytes = ::write(file, content.data(), content.size());
    if (bytes >= 0)
      content.remove_prefix(static_cast<size_t>(bytes));
    else if (errno != EINTR)
      error = errno;
  }
  // EINVAL: the file does not support fsync.
  if (error == 0 && syncs && ::fsync(file) != 0 && errno != EINVAL) error = errno;
  if (::close(file) != 0 && errno != EINTR && error == 0) error = errno;
  return error;
}

/// Opens a device or a pipe, which cannot be replaced, for writing.  /dev/stdout and /dev/stderr
/// are those of this process.
/// @return a descriptor; -1 and errno = 0 if the path does not name a device or a pipe
inline int open_stream(const std::string &path) {
  if (path == "/dev/stdout") return ::dup(STDOUT_FILENO);
  if (path == "/dev/stderr") return ::dup(STDERR_FILENO);
  struct stat found;
  const bool is_listed = path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
  if (is_listed ||
      (::lstat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISLNK(found.st_mode)))
    return ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  errno = 0;
  return -1;
}

/// Writes `content` to a new file in the folder of `path` and renames it when all data is on disk.
/// A symbolic link at `path` is replaced, not followed; a device or a pipe is written directly.
/// @return 0 or an errno; on failure, the file is unchanged and no temporary file remains
inline int replace_file(const std::string &path, std::string_view content) {
  if (const int stream = open_stream(path); stream >= 0)
    return write_and_close(stream, content, false);
  if (errno != 0) return errno;
  static std::atomic<unsigned> num_files = 0;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const std::string process = std::to_string(::getpid()) + "-";
  constexpr int kMaxTries = 100;
  int file = -1;
  std::string part;
  const SignalsHeld held;
  for (int i = 0; i < kMaxTries && file < 0; i++) {
    part = folder + ".mpcore-" + process + std::to_string(++num_files) + ".part";
    constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    file = ::open(part.c_str(), kNew, 0666);
    if (file < 0 && errno != EEXIST) return errno;
  }
  if (file < 0) return EEXIST;
  struct stat old;
  const bool keeps_mode = ::lstat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode);
  if (keeps_mode) (void)::fchmod(file, old.st_mode & 0777);
  int error = write_and_close(file, content, true);
  if (error == 0 && std::rename(part.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(part.c_str());
  return error;
}

}  // namespace mp
