// What every program is linked with: the functions that the compiler calls without being asked, and a word of data.
// Accesses are volatile, so that the loops are not turned into calls of these very functions.

extern "C" {

// GNU ld writes no program header for an empty section .data, and tt-metal's loader refuses a program without it.
__attribute__((section(".data.kept_in_data"), used)) int kept_in_data = 1;

void* memcpy(void* target, const void* source, unsigned size) {
    auto to = static_cast<volatile char*>(target);
    auto from = static_cast<const volatile char*>(source);
    if (((reinterpret_cast<unsigned>(target) | reinterpret_cast<unsigned>(source)) & 3) == 0) {
        for (; size >= 4; size -= 4, to += 4, from += 4) {
            *reinterpret_cast<volatile unsigned*>(to) = *reinterpret_cast<const volatile unsigned*>(from);
        }
    }
    while (size-- > 0) {
        *to++ = *from++;
    }
    return target;
}

void* memset(void* target, int value, unsigned size) {
    auto to = static_cast<volatile char*>(target);
    while (size-- > 0) {
        *to++ = static_cast<char>(value);
    }
    return target;
}

void* memmove(void* target, const void* source, unsigned size) {
    auto to = static_cast<volatile char*>(target);
    auto from = static_cast<const volatile char*>(source);
    if (to < from) {
        return memcpy(target, source, size);
    }
    while (size-- > 0) {
        to[size] = from[size];
    }
    return target;
}
}
