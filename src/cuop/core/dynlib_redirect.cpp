// The functions that a loaded library imports: for each its table has the address that is called
// (System V ABI, "Global Offset Table" and "Procedure Linkage Table").
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "cuop/core/dynlib.h"

namespace cuop {
namespace {

#if defined(__aarch64__)
constexpr uint32_t kFilledIn[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#else
constexpr uint32_t kFilledIn[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#endif

/// What the loader knows of a library: tables by their tags, made absolute where they are not.
class Imports {
 public:
  explicit Imports(const link_map& library) : base_(library.l_addr) {
    for (const ElfW(Dyn)* each = library.l_ld; each->d_tag != DT_NULL; ++each) {
      const ElfW(Addr) value = each->d_un.d_val;
      switch (each->d_tag) {
        case DT_SYMTAB:
          symbols_ = table<ElfW(Sym)>(value);
          break;
        case DT_STRTAB:
          names_ = table<char>(value);
          break;
        case DT_JMPREL:
          calls_ = table<ElfW(Rela)>(value);
          break;
        case DT_PLTRELSZ:
          call_bytes_ = value;
          break;
        case DT_RELA:
          others_ = table<ElfW(Rela)>(value);
          break;
        case DT_RELASZ:
          other_bytes_ = value;
          break;
      }
    }
  }

  bool redirect(const char* name, void* function) const {
    if (symbols_ == nullptr || names_ == nullptr) return false;
    const bool by_call = redirect_in(calls_, call_bytes_, name, function);
    return redirect_in(others_, other_bytes_, name, function) || by_call;
  }

 private:
  template <class T>
  const T* table(ElfW(Addr) address) const {
    return reinterpret_cast<const T*>(address < base_ ? base_ + address : address);
  }

  bool redirect_in(const ElfW(Rela) * entries, size_t bytes, const char* name,
                   void* function) const {
    bool is_found = false;
    const size_t count = entries != nullptr ? bytes / sizeof(*entries) : 0;
    for (size_t i = 0; i < count; ++i) {
      const auto kind = static_cast<uint32_t>(ELF64_R_TYPE(entries[i].r_info));
      const ElfW(Sym)& symbol = symbols_[ELF64_R_SYM(entries[i].r_info)];
      if (kind != kFilledIn[0] && kind != kFilledIn[1]) continue;
      if (std::strcmp(names_ + symbol.st_name, name) != 0) continue;
      is_found = replace(base_ + entries[i].r_offset, function) || is_found;
    }
    return is_found;
  }

  /// The place may be one that the loader has made read-only.
  static bool replace(ElfW(Addr) place, void* function) {
    const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
    void* const begin = reinterpret_cast<void*>(place / page * page);
    if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return false;
    std::atomic_ref(*reinterpret_cast<void**>(place)).store(function);
    return true;
  }

  ElfW(Addr) base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const ElfW(Rela) * calls_ = nullptr;
  size_t call_bytes_ = 0;
  const ElfW(Rela) * others_ = nullptr;
  size_t other_bytes_ = 0;
};

}  // namespace

bool DynLib::redirect(const char* imported, void* function) const {
  link_map* library = nullptr;
  if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &library) != 0) return false;
  return Imports(*library).redirect(imported, function);
}

}  // namespace cuop
