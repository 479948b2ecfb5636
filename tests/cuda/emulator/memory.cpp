// Memory of the emulated device: buffers of exact extent, and the state of each byte.

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime.hpp"

namespace emulator {

namespace {

const uint32_t MANY = 0xffff;
const uint8_t POISON = 0xdb;

// Recorded accesses of 4 bytes.
struct Cell {
    uint32_t write_epoch = 0, read_epoch = 0;
    uint32_t write_warp_epoch = 0, read_warp_epoch = 0;
    uint16_t write_thread = 0, read_thread = 0;  // MANY: several.
    uint16_t read_warp = 0;                      // MANY: of several warps.
    uint8_t written = 0;                         // A bit a byte that holds a value.
    uint8_t write_mask = 0;                      // Bytes of the last writes.
    bool was_atomic = false;
};

struct Buffer {
    uint8_t *at;
    size_t bytes;
    std::vector<Cell> cells;
};

std::vector<Buffer *> buffers;  // Ascending.
Buffer *last = nullptr;
Buffer shared;
uint32_t epoch = 1, block_epoch = 1, launch_epoch = 1;
uintptr_t image_begin = 0, image_end = 0;

int find_image(dl_phdr_info *info, size_t, void *) {
    uintptr_t own = (uintptr_t)&find_image;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto &header = info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_LOAD && own >= begin && own < begin + header.p_memsz) {
            for (int j = 0; j < info->dlpi_phnum; j++) {
                const auto &part = info->dlpi_phdr[j];
                if (part.p_type != PT_LOAD) continue;
                uintptr_t from = info->dlpi_addr + part.p_vaddr;
                image_begin = image_begin == 0 ? from : std::min(image_begin, from);
                image_end = std::max(image_end, from + part.p_memsz);
            }
            return 1;
        }
    }
    return 0;
}

Buffer *buffer_of(const uint8_t *at) {
    if (last != nullptr && at >= last->at && at < last->at + last->bytes) return last;
    auto after = std::upper_bound(buffers.begin(), buffers.end(), at,
                                  [](const uint8_t *at, Buffer *b) { return at < b->at; });
    if (after == buffers.begin()) return nullptr;
    Buffer *found = *(after - 1);
    if (at >= found->at + found->bytes) return nullptr;
    return last = found;
}

std::string place_of(const Buffer &buffer, const uint8_t *at) {
    char text[96];
    snprintf(text, sizeof text, "byte %zu of %s of %zu bytes", (size_t)(at - buffer.at),
             &buffer == &shared ? "shared memory" : "a buffer", buffer.bytes);
    return text;
}

// Whether an earlier access by others is not ordered before one that happens now.
bool unordered(uint32_t then, uint32_t warp_then, uint32_t thread, uint32_t warp) {
    if (then < launch_epoch) return false;
    if (then < block_epoch) return true;  // Another block of this launch.
    if (then < epoch) return false;
    if (thread == current->position.thread) return false;
    uint32_t own = current->position.thread / WARP_LANES;
    return warp != own || warp_then >= block.warps[own].epoch;
}

void check_cell(Buffer &buffer, size_t number, uint8_t mask, Access access) {
    Cell &cell = buffer.cells[number];
    uint32_t thread = current->position.thread, warp = thread / WARP_LANES;
    uint32_t warp_epoch = block.warps[warp].epoch;
    bool writes = access != Access::Read, is_atomic = access == Access::Atomic;
    const uint8_t *at = buffer.at + 4 * number;
    if (access != Access::Write && (cell.written & mask) != mask) {
        fail("a read of memory that nobody wrote: " + place_of(buffer, at));
    }
    bool same_bytes = (cell.write_mask & mask) != 0;
    if (cell.write_epoch != 0 && same_bytes && !(is_atomic && cell.was_atomic)) {
        bool many = cell.write_thread == MANY && cell.write_epoch == epoch;
        uint32_t writer = cell.write_thread;
        if (!many &&
            unordered(cell.write_epoch, cell.write_warp_epoch, writer, writer / WARP_LANES)) {
            fail("a race with thread " + std::to_string(writer) + ", which wrote before: " +
                 place_of(buffer, at));
        }
    }
    if (writes && cell.read_epoch != 0 &&
        unordered(cell.read_epoch, cell.read_warp_epoch, cell.read_thread, cell.read_warp)) {
        fail("a race with thread " + std::to_string(cell.read_thread) +
             " (65535: several), which read before: " + place_of(buffer, at));
    }
    if (writes) {
        bool others = cell.write_epoch == epoch && cell.write_thread != thread && !same_bytes;
        cell.write_mask = others ? cell.write_mask | mask : mask;
        cell.write_thread = others ? MANY : thread;
        cell.write_epoch = epoch;
        cell.write_warp_epoch = warp_epoch;
        cell.written |= mask;
        cell.was_atomic = is_atomic;
    } else {
        // Earlier reads of the same warp are behind its last barrier, or still count.
        bool behind = cell.read_warp == warp && cell.read_warp_epoch < warp_epoch;
        bool again = cell.read_epoch == epoch && !behind;
        cell.read_warp = again && cell.read_warp != warp ? MANY : warp;
        cell.read_thread = again && cell.read_thread != thread ? MANY : thread;
        cell.read_epoch = epoch;
        cell.read_warp_epoch = warp_epoch;
    }
}

void check_in(Buffer &buffer, const uint8_t *at, size_t bytes, Access access) {
    size_t offset = at - buffer.at;
    if (offset + bytes > buffer.bytes) {
        fail("an access of " + std::to_string(bytes) + " bytes beyond the end: " +
             place_of(buffer, at));
    }
    for (size_t byte = offset; byte < offset + bytes;) {
        size_t until = std::min(offset + bytes, (byte / 4 + 1) * 4);
        uint8_t mask = (uint8_t)(((1u << (until - byte)) - 1) << byte % 4);
        check_cell(buffer, byte / 4, mask, access);
        byte = until;
    }
}

}  // namespace

void check(const void *address, size_t bytes, Access access) {
    const uint8_t *at = (const uint8_t *)address;
    if (current == nullptr) return;
#if defined(__SANITIZE_ADDRESS__)
    return;  // Plain accesses do not report themselves to this shadow then, but to that of ASan.
#endif
    if (at >= block.shared && at < block.shared + block.shared_bytes) {
        return check_in(shared, at, bytes, access);
    }
    if (at >= current->stack && at < current->stack + (256 << 10)) return;
    if (Buffer *buffer = buffer_of(at)) return check_in(*buffer, at, bytes, access);
    bool in_image = (uintptr_t)at >= image_begin && (uintptr_t)at < image_end;
    if (in_image && access == Access::Read) return;
    char text[64];
    snprintf(text, sizeof text, "%p", address);
    fail("an access of " + std::to_string(bytes) + " bytes outside all memory: " + text);
}

void mark_pending(const void *address, size_t bytes) {
    check(address, bytes, Access::Write);
    size_t offset = (const uint8_t *)address - shared.at;
    for (size_t cell = offset / 4; cell < (offset + bytes) / 4; cell++) {
        shared.cells[cell].written = 0;
    }
    memset((void *)address, POISON, bytes);
}

void memory_begin_launch() {
    if (image_begin == 0) dl_iterate_phdr(find_image, nullptr);
    launch_epoch = ++epoch;
}

void memory_begin_block() {
    block_epoch = ++epoch;
    shared.at = block.shared;
    shared.bytes = block.shared_bytes;
    shared.cells.assign((shared.bytes + 3) / 4, Cell());
    memset(shared.at, POISON, shared.bytes);
}

void memory_barrier() { epoch++; }

}  // namespace emulator

using namespace emulator;

extern "C" {

// A buffer of exactly so many bytes, aligned as CUDA does; 0 bytes give an address nobody may use.
uint64_t emulated_allocate(uint64_t bytes) {
    void *at = nullptr;
    if (posix_memalign(&at, 256, bytes == 0 ? 1 : bytes) != 0) return 0;
    memset(at, POISON, bytes);
    Buffer *buffer = new Buffer{(uint8_t *)at, bytes, std::vector<Cell>((bytes + 3) / 4)};
    auto place = std::upper_bound(buffers.begin(), buffers.end(), buffer->at,
                                  [](const uint8_t *at, Buffer *b) { return at < b->at; });
    buffers.insert(place, buffer);
    return (uint64_t)at;
}

void emulated_free(uint64_t address) {
    last = nullptr;
    for (size_t i = 0; i < buffers.size(); i++) {
        if ((uint64_t)buffers[i]->at != address) continue;
        free(buffers[i]->at);
        delete buffers[i];
        buffers.erase(buffers.begin() + i);
        return;
    }
}

static int host_access(uint64_t address, uint64_t bytes, bool writes) {
    if (bytes == 0) return 0;
    Buffer *buffer = buffer_of((const uint8_t *)address);
    if (buffer == nullptr || address + bytes > (uint64_t)buffer->at + buffer->bytes) return 1;
    size_t first = address - (uint64_t)buffer->at;
    for (size_t byte = first; writes && byte < first + bytes; byte++) {
        buffer->cells[byte / 4].written |= 1 << byte % 4;
    }
    return 0;
}

// These give 1 and do nothing where the range is not within one buffer.
int emulated_upload(uint64_t to, const void *from, uint64_t bytes) {
    if (host_access(to, bytes, true) != 0) return 1;
    if (bytes > 0) memcpy((void *)to, from, bytes);
    return 0;
}
int emulated_download(void *to, uint64_t from, uint64_t bytes) {
    if (host_access(from, bytes, false) != 0) return 1;
    if (bytes > 0) memcpy(to, (const void *)from, bytes);
    return 0;
}
int emulated_fill(uint64_t to, uint8_t value, uint64_t bytes) {
    if (host_access(to, bytes, true) != 0) return 1;
    if (bytes > 0) memset((void *)to, value, bytes);
    return 0;
}

// Called before every access of a kernel (-fsanitize=thread, without its library).
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
#define ACCESSES(bytes)                                                                    \
    void __tsan_read##bytes(void *at) { check(at, bytes, Access::Read); }                  \
    void __tsan_write##bytes(void *at) { check(at, bytes, Access::Write); }                \
    void __tsan_unaligned_read##bytes(void *at) { check(at, bytes, Access::Read); }        \
    void __tsan_unaligned_write##bytes(void *at) { check(at, bytes, Access::Write); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
void __tsan_read_range(void *at, size_t bytes) { check(at, bytes, Access::Read); }
void __tsan_write_range(void *at, size_t bytes) { check(at, bytes, Access::Write); }
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

}  // extern "C"
