// A library that takes a signal for itself.
#include <csignal>

extern "C" void take_signal(int number, void (*handler)(int)) { std::signal(number, handler); }
