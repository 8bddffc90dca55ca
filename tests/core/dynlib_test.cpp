// Libraries found at run time, and what they import.
#include "cuop/core/dynlib.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cuop/core/error.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;

using Handler = void (*)(int);

void handler(int) {}
Handler keep(int, Handler) { return SIG_IGN; }

Handler handler_of(int number) {
  struct sigaction now {};
  sigaction(number, nullptr, &now);
  return now.sa_handler;
}

TEST(DynLib, AbsenceIsAStateWithAReason) {
  const DynLib absent("Nothing", {"libcuop-no-such-library.so.1"});
  EXPECT_FALSE(absent.is_loaded());
  EXPECT_THAT(absent.reason(), HasSubstr("libcuop-no-such-library"));
  EXPECT_EQ(absent.find("anything"), nullptr);
  EXPECT_THROW(absent.require("anything"), DeviceError);
  const DynLib c("C library", {"libcuop-no-such-library.so.1", "libc.so.6"});
  EXPECT_TRUE(c.is_loaded());
  EXPECT_EQ(c.path(), "libc.so.6");
  EXPECT_EQ(c.reason(), "");
  EXPECT_NE(c.find("malloc"), nullptr);
  EXPECT_THROW(c.require("cuop_no_such_symbol"), DeviceError);
}

TEST(DynLib, ErrorsEndWithTheAdvice) {
  using ::testing::EndsWith, ::testing::ThrowsMessage;
  const DynLib absent("Nothing", {"libcuop-no-such-library.so.1"}, "install it");
  EXPECT_EQ(absent.advice(), "install it");
  EXPECT_THAT([&] { absent.require("anything"); },
              ThrowsMessage<DeviceError>(EndsWith("; install it")));
  const DynLib c("C library", {"libc.so.6"}, "install a newer one");
  EXPECT_THAT([&] { c.require("cuop_no_such_symbol"); },
              ThrowsMessage<DeviceError>(EndsWith("cuop_no_such_symbol; install a newer one")));
}

TEST(DynLib, ACallOfAnotherLibraryIsRedirected) {
  const DynLib library("the taker of signals", {CUOP_FAKE_DYNLIB});
  void (*take)(int, Handler) = library.require("take_signal");
  take(SIGUSR2, handler);
  ASSERT_EQ(handler_of(SIGUSR2), handler);
  EXPECT_TRUE(library.redirect("signal", reinterpret_cast<void*>(&keep)));
  take(SIGUSR2, SIG_DFL);
  EXPECT_EQ(handler_of(SIGUSR2), handler);
  // That of everybody else is as it was.
  std::signal(SIGUSR2, SIG_DFL);
  EXPECT_EQ(handler_of(SIGUSR2), SIG_DFL);
}

TEST(DynLib, WhatIsNotCalledIsNotRedirected) {
  const DynLib library("the taker of signals", {CUOP_FAKE_DYNLIB});
  EXPECT_FALSE(library.redirect("fork", reinterpret_cast<void*>(&keep)));
  EXPECT_FALSE(library.redirect("take_signal", reinterpret_cast<void*>(&keep)));
  const DynLib nothing("nothing", {"libcuop-no-such-library.so"});
  EXPECT_FALSE(nothing.redirect("signal", reinterpret_cast<void*>(&keep)));
}

}  // namespace
}  // namespace cuop
