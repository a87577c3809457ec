#include "base/float_modes.h"

namespace thalweg {

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

#if defined(__x86_64__)

// MXCSR without its flags in the low half; in the high one the control word of x87, which computes long
// doubles.
constexpr std::uint64_t mode_bits = std::uint64_t{0x0f00} << 32 | 0xe040;  // rounding, precision, denormals
constexpr std::uint64_t standard_bits = std::uint64_t{0x0300} << 32;       // of long doubles all digits
constexpr std::uint64_t mask_bits = std::uint64_t{0x003f} << 32 | 0x1f80;  // exceptions that do not trap
constexpr std::uint32_t sse_flags = 0x3f;
constexpr std::uint16_t x87_flags = 0x80ff;  // with what the unit sums up from them

std::uint32_t read_sse() {
    std::uint32_t sse;
    asm volatile("stmxcsr %0" : "=m"(sse));
    return sse;
}
void write_sse(std::uint32_t sse) { asm volatile("ldmxcsr %0" : : "m"(sse)); }

std::uint64_t read_control() {
    std::uint16_t x87;
    asm volatile("fnstcw %0" : "=m"(x87));
    return std::uint64_t{x87} << 32 | (read_sse() & ~sse_flags);
}
void write_control(std::uint64_t control) {
    const auto x87 = static_cast<std::uint16_t>(control >> 32);
    write_sse(static_cast<std::uint32_t>(control) | (read_sse() & sse_flags));
    asm volatile("fldcw %0" : : "m"(x87));
}
std::uint64_t without_traps(std::uint64_t control) { return control | mask_bits; }

std::uint64_t read_flags() {
    std::uint16_t x87;
    asm volatile("fnstsw %0" : "=m"(x87));
    return std::uint64_t{static_cast<std::uint16_t>(x87 & x87_flags)} << 32 | (read_sse() & sse_flags);
}
// Of x87 the flags can be written only with the rest of its environment, which takes longer. Pre: none traps.
void write_x87_flags(std::uint16_t flags) {
    struct {
        std::uint32_t control, status, tags, pointers[4];
    } environment;
    static_assert(sizeof environment == 28);
    asm volatile("fnstenv %0" : "=m"(environment));
    environment.status = (environment.status & ~std::uint32_t{x87_flags}) | flags;
    asm volatile("fldenv %0" : : "m"(environment));
}
void restore_flags(std::uint64_t flags) {
    const std::uint64_t raised = read_flags() ^ flags;
    if (static_cast<std::uint32_t>(raised) != 0)
        write_sse((read_sse() & ~sse_flags) | static_cast<std::uint32_t>(flags));
    if (raised >> 32 != 0) write_x87_flags(static_cast<std::uint16_t>(flags >> 32));
}

#else

// FPCR; the flags are FPSR.
constexpr std::uint64_t mode_bits = 0x3c00003;  // rounding, default NaNs, denormals
constexpr std::uint64_t standard_bits = 0;
constexpr std::uint64_t trap_bits = 0x9f00;

std::uint64_t read_control() {
    std::uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
void write_control(std::uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
std::uint64_t without_traps(std::uint64_t control) { return control & ~trap_bits; }

std::uint64_t read_flags() {
    std::uint64_t flags;
    asm volatile("mrs %0, fpsr" : "=r"(flags));
    return flags;
}
void restore_flags(std::uint64_t flags) {
    if (read_flags() != flags) asm volatile("msr fpsr, %0" : : "r"(flags));
}

#endif

}  // namespace

FloatModes FloatModes::of_this_thread() {
    FloatModes modes;
    modes.thread_ = pthread_self();
    modes.bits_ = read_control() & mode_bits;
    return modes;
}

FloatModes FloatModes::standard() {
    FloatModes modes;
    modes.bits_ = standard_bits;
    return modes;
}

InModes::InModes(const FloatModes& modes)
    : own_(pthread_equal(modes.thread_, pthread_self()) != 0), control_(read_control()) {
    std::uint64_t wanted = (control_ & ~mode_bits) | modes.bits_;
    if (!own_) {
        wanted = without_traps(wanted);
        flags_ = read_flags();
    }
    changed_ = wanted != control_;
    if (changed_) write_control(wanted);
}

InModes::~InModes() {
    if (!own_) restore_flags(flags_);  // first, because a flag that is up may trap as soon as it can
    if (changed_) write_control(control_);
}

#else

FloatModes FloatModes::of_this_thread() {
    FloatModes modes;
    modes.thread_ = pthread_self();
    modes.bits_ = static_cast<std::uint64_t>(std::fegetround());
    return modes;
}

FloatModes FloatModes::standard() {
    FloatModes modes;
    modes.bits_ = static_cast<std::uint64_t>(FE_TONEAREST);
    return modes;
}

InModes::InModes(const FloatModes& modes) : own_(pthread_equal(modes.thread_, pthread_self()) != 0) {
    const int rounding = static_cast<int>(modes.bits_);
    if (own_)
        rounding_ = std::fegetround();
    else
        std::feholdexcept(&environment_);
    if (!own_ || rounding_ != rounding) std::fesetround(rounding);
}

InModes::~InModes() {
    if (own_)
        std::fesetround(rounding_);
    else
        std::fesetenv(&environment_);
}

#endif

}  // namespace thalweg
