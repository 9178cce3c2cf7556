#include "softgpu/program/edit.h"

#include <atomic>
#include <charconv>
#include <cstdio>

namespace softgpu {
namespace {

std::atomic<bool> has_edited = false;

struct Edit {
  std::string what, by;  ///< replaced text and replacement; a dropped instruction has none
  bool drops = false;
  bool is_single = false;
  uint64_t number = 0;  ///< index of the instruction, if only one is edited
  std::string kernel;
};

[[noreturn]] void refuse(const std::string &text) {
  throw ptx::Error("SOFTGPU_EDIT=" + text +
                   " must be 'drop TEXT' or 'swap A=>B', optionally with ' @N' and ' in KERNEL'");
}

/// Removes ` in KERNEL` and ` @N` from the end.
void take_places(std::string &text, Edit &edit) {
  if (const size_t in = text.rfind(" in "); in != text.npos) {
    edit.kernel = text.substr(in + 4);
    text.resize(in);
  }
  const size_t at = text.rfind(" @");
  if (at == text.npos) return;
  const char *begin = text.data() + at + 2, *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, edit.number);
  if (error != std::errc() || stop != end) return;  // a guard, not an index
  edit.is_single = true;
  text.resize(at);
}

Edit parse(const std::string &text) {
  Edit edit;
  std::string rest = text;
  take_places(rest, edit);
  edit.drops = rest.starts_with("drop ");
  if (!edit.drops && !rest.starts_with("swap ")) refuse(text);
  edit.what = rest.substr(5);
  if (!edit.drops) {
    const size_t arrow = edit.what.find("=>");
    if (arrow == edit.what.npos) refuse(text);
    edit.by = edit.what.substr(arrow + 2);
    edit.what.resize(arrow);
  }
  if (edit.what.empty()) refuse(text);
  return edit;
}

/// Applies an edit to one kernel.
class Editor {
 public:
  Editor(Edit edit, std::string kernel) : edit_(std::move(edit)), kernel_(std::move(kernel)) {}

  std::optional<std::string> operator()(const std::string &statement) {
    const size_t at = statement.find(edit_.what);
    if (at == statement.npos) return std::nullopt;
    const uint64_t number = num_found_++;
    if (edit_.is_single && number != edit_.number) return std::nullopt;
    std::string changed;
    if (!edit_.drops) changed = std::string(statement).replace(at, edit_.what.size(), edit_.by);
    has_edited = true;
    if (num_changed_++ == 0) print(statement, changed);
    return changed;
  }

 private:
  void print(const std::string &statement, const std::string &changed) const {
    std::fprintf(stderr, "softgpu: edit: %s: %s %s%s\n", kernel_.c_str(),
                 edit_.drops ? "dropped" : "swapped", statement.c_str(),
                 edit_.drops ? "" : ("; now " + changed).c_str());
  }

  Edit edit_;
  std::string kernel_;
  uint64_t num_found_ = 0, num_changed_ = 0;
};

}  // namespace

bool was_edited() {
  return has_edited;
}

ptx::Rewrite make_edit(const std::string &text, const std::string &kernel) {
  if (text.empty()) return nullptr;
  Edit edit = parse(text);
  if (kernel.find(edit.kernel) == kernel.npos) return nullptr;
  return Editor(std::move(edit), kernel);
}

}  // namespace softgpu
