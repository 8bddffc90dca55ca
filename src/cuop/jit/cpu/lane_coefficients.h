// Polynomials of sin and tanh on intervals, for tan and pow. Written by tools/fit_lane_forms.py: do
// not edit.
#pragma once

namespace cuop::jit {

struct SineIntervals {
  static constexpr float kPerSpacing = 0x1.45f3060000000p+1f;
  static constexpr float kSpacingA = 0x1.921fb40000000p-2f;
  static constexpr float kSpacingB = 0x1.4442d20000000p-26f;
  static constexpr float kSpacingC = -0x1.ee59da0000000p-52f;
  static constexpr float kBase[] = {-0x1.0000000000000p+0f,
                                    -0x1.d906bc0000000p-1f,
                                    -0x1.6a09e60000000p-1f,
                                    -0x1.87de2a0000000p-2f,
                                    -0x0.0p+0f,
                                    0x1.87de2a0000000p-2f,
                                    0x1.6a09e60000000p-1f,
                                    0x1.d906bc0000000p-1f};
  static constexpr float kSlope[] = {0x0.0p+0f,
                                     0x1.87de2a0000000p-2f,
                                     0x1.6a09e60000000p-1f,
                                     0x1.d906bc0000000p-1f,
                                     0x1.0000000000000p+0f,
                                     0x1.d906bc0000000p-1f,
                                     0x1.6a09e60000000p-1f,
                                     0x1.87de2a0000000p-2f};
  static constexpr float kRest[][8] = {
      {0x1.ffffc40000000p-2f, 0x1.d905c00000000p-2f, 0x1.6a09680000000p-2f, 0x1.87dda60000000p-3f,
       -0x1.0000000000000p-60f, -0x1.87dda60000000p-3f, -0x1.6a09680000000p-2f,
       -0x1.d905c00000000p-2f},
      {-0x0.0p+0f, -0x1.053e020000000p-4f, -0x1.e2b6620000000p-4f, -0x1.3b582c0000000p-3f,
       -0x1.5555440000000p-3f, -0x1.3b582c0000000p-3f, -0x1.e2b6620000000p-4f,
       -0x1.053e020000000p-4f},
      {-0x1.54b9140000000p-5f, -0x1.3a43720000000p-5f, -0x1.e168d00000000p-6f,
       -0x1.048d0c0000000p-6f, 0x0.0p+0f, 0x1.048d0c0000000p-6f, 0x1.e168d00000000p-6f,
       0x1.3a43720000000p-5f},
      {0x0.0p+0f, 0x1.9f7bd80000000p-9f, 0x1.7fc4c40000000p-8f, 0x1.f391500000000p-8f,
       0x1.10b7c40000000p-7f, 0x1.f391500000000p-8f, 0x1.7fc4c40000000p-8f, 0x1.9f7bd80000000p-9f}};
};

struct TanhIntervals {
  static constexpr float kSpacing = 0x1.3000000000000p-1f;
  static constexpr float kPerSpacing = 0x1.af286c0000000p+0f;
  static constexpr float kValue[] = {0x0.0p+0f,
                                     0x1.10af480000000p-1f,
                                     0x1.a8dbcc0000000p-1f,
                                     0x1.e3c0b00000000p-1f,
                                     0x1.f737760000000p-1f,
                                     0x1.fd4e200000000p-1f,
                                     0x1.ff2d360000000p-1f,
                                     0x1.ffbfae0000000p-1f,
                                     0x1.ffec620000000p-1f,
                                     0x1.fffa040000000p-1f,
                                     0x1.fffe2c0000000p-1f,
                                     0x1.ffff720000000p-1f,
                                     0x1.ffffd40000000p-1f,
                                     0x1.fffff20000000p-1f,
                                     0x1.fffffc0000000p-1f,
                                     0x1.fffffe0000000p-1f};
  static constexpr float kLack[] = {0x0.0p+0f,
                                    -0x1.f409f00000000p-29f,
                                    -0x1.e73b420000000p-28f,
                                    -0x1.e81eb40000000p-26f,
                                    0x1.65545c0000000p-26f,
                                    -0x1.4d3f360000000p-26f,
                                    0x1.69a05c0000000p-26f,
                                    -0x1.de4f540000000p-27f,
                                    -0x1.b0cb8c0000000p-26f,
                                    0x1.3fd2e40000000p-30f,
                                    0x1.8ab2620000000p-26f,
                                    -0x1.fd74f40000000p-27f,
                                    0x1.14cfea0000000p-26f,
                                    0x1.7dc4a00000000p-26f,
                                    -0x1.5af2040000000p-30f,
                                    0x1.88c8300000000p-26f};
  static constexpr float kSlope[] = {
      0x1.0000000000000p+0f,  0x1.6000000000000p-1f,  0x1.4000000000000p-2f,
      0x1.c000000000000p-4f,  0x1.2000000000000p-5f,  0x1.6000000000000p-7f,
      0x1.a000000000000p-9f,  0x1.0000000000000p-10f, 0x1.4000000000000p-12f,
      0x1.8000000000000p-14f, 0x1.e000000000000p-16f, 0x1.2000000000000p-17f,
      0x1.6000000000000p-19f, 0x1.a000000000000p-21f, 0x1.0000000000000p-22f,
      0x1.4000000000000p-24f};
  static constexpr float kRest[][16] = {
      {0x1.2ee5220000000p-31f, 0x1.d8b10c0000000p-6f, -0x1.18d0160000000p-10f,
       -0x1.1052c20000000p-9f, -0x1.2b00740000000p-10f, -0x1.fe04040000000p-13f,
       0x1.4ef3ba0000000p-15f, 0x1.39b4f20000000p-18f, -0x1.861f620000000p-18f,
       -0x1.04bcac0000000p-22f, -0x1.98c5ce0000000p-21f, -0x1.80b69c0000000p-24f,
       -0x1.14d39e0000000p-25f, 0x1.04760e0000000p-26f, 0x1.5af17e0000000p-29f,
       -0x1.19062c0000000p-30f},
      {-0x1.7ad56c0000000p-23f, -0x1.86ad0a0000000p-2f, -0x1.08a06c0000000p-2f,
       -0x1.9f3e1a0000000p-4f, -0x1.11e0320000000p-5f, -0x1.5638660000000p-7f,
       -0x1.a48e6c0000000p-9f, -0x1.01196a0000000p-10f, -0x1.39db840000000p-12f,
       -0x1.7ef6d40000000p-14f, -0x1.d338340000000p-16f, -0x1.1cfe4c0000000p-17f,
       -0x1.5bac9e0000000p-19f, -0x1.a823b00000000p-21f, -0x1.02b5e80000000p-22f,
       -0x1.3b9bee0000000p-24f},
      {-0x1.5552ec0000000p-2f, -0x1.2397700000000p-5f, 0x1.c5264a0000000p-4f, 0x1.ebac760000000p-5f,
       0x1.60957a0000000p-6f, 0x1.c37be80000000p-8f, 0x1.1778000000000p-9f, 0x1.56766a0000000p-11f,
       0x1.a259f20000000p-13f, 0x1.fe92800000000p-15f, 0x1.3778960000000p-16f,
       0x1.7bfce60000000p-18f, 0x1.cf90840000000p-20f, 0x1.1ac2680000000p-21f,
       0x1.58f2860000000p-23f, 0x1.a4cfe80000000p-25f},
      {-0x1.75e48a0000000p-13f, 0x1.2b4b020000000p-3f, -0x1.71c7d20000000p-8f,
       -0x1.778dd60000000p-6f, -0x1.47eda20000000p-7f, -0x1.b9e87c0000000p-9f,
       -0x1.15a62e0000000p-10f, -0x1.55c35e0000000p-12f, -0x1.a2110c0000000p-14f,
       -0x1.fe6fca0000000p-16f, -0x1.376d800000000p-17f, -0x1.7bf3240000000p-19f,
       -0x1.cf86020000000p-21f, -0x1.1abc400000000p-22f, -0x1.58eb1e0000000p-24f,
       -0x1.a4c6e80000000p-26f},
      {0x1.145eda0000000p-3f, -0x1.98d5a00000000p-5f, -0x1.9e69e20000000p-6f, 0x1.083ca00000000p-8f,
       0x1.c012e00000000p-9f, 0x1.52619a0000000p-10f, 0x1.b67faa0000000p-12f,
       0x1.1056360000000p-13f, 0x1.4e0d9a0000000p-15f, 0x1.9833520000000p-17f,
       0x1.f23aa60000000p-19f, 0x1.2ff3180000000p-20f, 0x1.72d0a60000000p-22f,
       0x1.c460120000000p-24f, 0x1.13ef3e0000000p-25f, 0x1.509f200000000p-27f},
      {-0x1.d3c59a0000000p-8f, -0x1.f85aa60000000p-6f, 0x1.1276d40000000p-6f,
       0x1.c1d3f00000000p-10f, -0x1.8a281a0000000p-11f, -0x1.9d6bf40000000p-12f,
       -0x1.1f9d6a0000000p-13f, -0x1.6c72220000000p-15f, -0x1.c1b1ca0000000p-17f,
       -0x1.133fa80000000p-18f, -0x1.5023680000000p-20f, -0x1.9a32820000000p-22f,
       -0x1.f476200000000p-24f, -0x1.3145fa0000000p-25f, -0x1.746a740000000p-27f,
       -0x1.c652aa0000000p-29f},
      {-0x1.4d1e400000000p-5f, 0x1.d4f08c0000000p-6f, -0x1.c9fd8e0000000p-9f,
       -0x1.d03bfe0000000p-10f, 0x1.2d5f1a0000000p-17f, 0x1.7b17900000000p-14f,
       0x1.367ff40000000p-15f, 0x1.999a560000000p-17f, 0x1.ff4e380000000p-19f,
       0x1.3a0c820000000p-20f, 0x1.7fed240000000p-22f, 0x1.d4aa200000000p-24f,
       0x1.1decda0000000p-25f, 0x1.5cd4720000000p-27f, 0x1.a98e600000000p-29f,
       0x1.0393760000000p-30f}};
};

struct RightAngle {
  static constexpr float kTwoOver = 0x1.45f3060000000p-1f;
  static constexpr float kA = 0x1.921fb40000000p+0f;
  static constexpr float kB = 0x1.4440000000000p-24f;
  static constexpr float kC = 0x1.68c2340000000p-39f;
};

struct CotangentSeries {
  static constexpr double kMiddle = 0x1.8f5c28f5c2b3ep-2;
  static constexpr double kBase = 0x1.bba47e50761c6p-1;
  static constexpr double kShift = 0x1.4e00000000000p+2;
  static constexpr double kTop[] = {-0x1.25670b8ac267fp-20, 0x1.a4e5baa25f864p-24,
                                    -0x1.abb0c87c3ae4ep-29};
  static constexpr double kRoots[] = {-0x1.8d1d2d66a85bap+6, -0x1.afc8f9f7cba94p+5,
                                      0x1.35cf66d625939p+4};
  static constexpr double kSteps[] = {0x1.3a8c603aeeac1p-14, -0x1.ad98e50c3c1b7p-10,
                                      -0x1.54d2a0d60b30bp-2};
};

struct PowerSeries {
  static constexpr double kLog2[] = {
      0x1.71547652b92b1p+0, -0x1.715476517e9b7p-1, 0x1.ec709cf7e06dep-2, -0x1.715496f0b95f3p-2,
      0x1.277e13e674876p-2, -0x1.ec1298d00424ap-3, 0x1.811ac3f65a1f2p-3};
  static constexpr double kExp2[] = {0x1.62e42feb1ddb2p-1, 0x1.ebfff45b00451p-3,
                                     0x1.c6b469f339e4fp-5};
};

}  // namespace cuop::jit
