// The emulator finds every error that runtime.hpp lists, and none in correct kernels.

#include "check.hpp"

namespace {

struct Params {
    uint64_t from, to;
    uint32_t count, fault;
};

void fault(const char *kernel, uint32_t fault, unsigned threads, unsigned blocks,
           const char *message) {
    std::vector<uint32_t> words(4 * 64);
    for (size_t i = 0; i < words.size(); i++) words[i] = (uint32_t)i;
    bool is_reverse = strcmp(kernel, "faulty_reverse") == 0;
    OnDevice<uint32_t> from(is_reverse ? std::vector<uint32_t>(words.begin(), words.begin() + 64)
                                       : words);
    OnDevice<uint32_t> to((size_t)threads * blocks);
    unsigned shared_bytes = is_reverse ? 256 : strcmp(kernel, "faulty_warp") == 0 ? 128 : 2048;
    for (uint32_t order : {0u, 1u, 2u}) {
        emulated_order(order);
        Params params{from.at, to.at, 40, fault};
        int code = try_launch(kernel, blocks, 1, threads, shared_bytes, params);
        std::string error = emulated_error();
        if (message == nullptr) {
            expect(code == 0, "%s without fault: %s", kernel, error.c_str());
        } else {
            expect(code == 3 && error.find(message) != std::string::npos,
                   "%s fault %u, order %u: code %d, wanted '%s', got '%s'", kernel, fault, order,
                   code, message, error.c_str());
        }
    }
    emulated_order(0);
}

float widened(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    float rest = (float)(bits & 1023) / 1024;
    float size = exponent == 0 ? ldexpf(rest, -14) : ldexpf(1 + rest, exponent - 15);
    return bits >> 15 ? -size : size;
}

void fragments() {
    Random random(7);
    std::vector<uint8_t> a(512), b(256);
    for (auto &byte : a) byte = (uint8_t)random();
    for (auto &byte : b) byte = (uint8_t)random();
    // As halves no value may be infinite: the exponent's highest bit is taken away.
    for (size_t i = 1; i < a.size(); i += 2) a[i] &= 0xbf;
    for (size_t i = 1; i < b.size(); i += 2) b[i] &= 0xbf;
    OnDevice<uint8_t> of_a(a), of_b(b);
    OnDevice<int32_t> s8((size_t)128);
    OnDevice<float> f16((size_t)128);
    struct {
        uint64_t a, b, s8, f16;
    } params{of_a.at, of_b.at, s8.at, f16.at};
    launch("fragments", 1, 1, 32, 768, params);
    auto integers = s8.download();
    auto floats = f16.download();
    for (int row = 0; row < 16; row++) {
        for (int column = 0; column < 8; column++) {
            int32_t sum = 1;
            double halves = 0, size = 0;
            for (int i = 0; i < 32; i++) {
                sum += (int8_t)a[row * 32 + i] * (int8_t)b[column * 32 + i];
            }
            for (int i = 0; i < 32; i += 2) {
                uint16_t left, right;
                memcpy(&left, &a[row * 32 + i], 2);
                memcpy(&right, &b[column * 32 + i], 2);
                halves += (double)widened(left) * widened(right);
                size += fabs((double)widened(left) * widened(right));
            }
            expect(integers[row * 8 + column] == sum, "s8 at %d, %d", row, column);
            expect(fabs(floats[row * 8 + column] - halves) <= 1e-6 * size, "f16 at %d, %d", row,
                   column);
        }
    }
}

}  // namespace

int main() {
    fault("faulty_reverse", 0, 64, 1, nullptr);
    fault("faulty_reverse", 1, 64, 1, "");
    fault("faulty_reverse", 2, 64, 1, "outside all memory");
    fault("faulty_reverse", 3, 64, 1, "outside all memory");
    fault("faulty_reverse", 4, 64, 1, "a divergent barrier");
    fault("faulty_reverse", 5, 64, 1, "a read of memory that nobody wrote");
    fault("faulty_reverse", 6, 64, 2, "a race");
    fault("faulty_reverse", 7, 64, 1, "outside all memory");
    fault("faulty_reverse", 8, 64, 1, "a divergent barrier");
    fault("faulty_reverse", 9, 64, 1, "a race");
    fault("faulty_copy", 0, 64, 1, nullptr);
    fault("faulty_copy", 1, 64, 1, "a read of memory that nobody wrote");
    fault("faulty_copy", 2, 64, 1, "");
    fault("faulty_copy", 3, 64, 1, "a read of memory that nobody wrote");
    fault("faulty_warp", 0, 32, 1, nullptr);
    fault("faulty_warp", 1, 32, 1, "");
    fault("faulty_warp", 2, 32, 1, "a divergent barrier");
    fragments();
    printf("selftest: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
