// Does not compile.
void kernel_main() { this_is_not_declared(); }
