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
  static constexpr float kOdd[] = {0x1.5555420000000p-3f, -0x1.10b3fe0000000p-7f};
  static constexpr float kEven[] = {0x1.ffffa60000000p-2f, -0x1.54b27c0000000p-5f};
};

struct TanhIntervals {
  static constexpr float kShift = 0x1.4000000000000p-1f;
  static constexpr float kMiddle[] = {0x1.80160a0000000p+0f,
                                      0x1.bff09a0000000p+0f,
                                      0x1.000b020000000p+1f,
                                      0x1.1ff2260000000p+1f,
                                      0x1.3ff6bc0000000p+1f,
                                      0x1.5fe7f20000000p+1f,
                                      0x1.8015e20000000p+1f,
                                      0x1.a01c780000000p+1f,
                                      0x1.cff4b40000000p+1f,
                                      0x1.07f6be0000000p+2f,
                                      0x1.27f7860000000p+2f,
                                      0x1.481e280000000p+2f,
                                      0x1.6808640000000p+2f,
                                      0x1.87e9a40000000p+2f,
                                      0x1.a809580000000p+2f,
                                      0x1.c79ab80000000p+2f,
                                      0x1.f704060000000p+2f,
                                      0x1.1542460000000p+3f,
                                      0x0.0p+0f,
                                      0x1.7ff8140000000p-4f,
                                      0x1.4018fc0000000p-3f,
                                      0x1.bffda60000000p-3f,
                                      0x1.201c7c0000000p-2f,
                                      0x1.6000680000000p-2f,
                                      0x1.c0023c0000000p-2f,
                                      0x1.2018b00000000p-1f,
                                      0x1.5ffc7c0000000p-1f,
                                      0x1.a01cfc0000000p-1f,
                                      0x1.dff95a0000000p-1f,
                                      0x1.0ffe9c0000000p+0f,
                                      0x1.3007fe0000000p+0f,
                                      0x1.5004ca0000000p+0f};
  static constexpr float kValue[] = {0x1.cf778e0000000p-1f,
                                     0x1.e1f8780000000p-1f,
                                     0x1.ed98220000000p-1f,
                                     0x1.f4bd6e0000000p-1f,
                                     0x1.f924860000000p-1f,
                                     0x1.fbd37a0000000p-1f,
                                     0x1.fd78ae0000000p-1f,
                                     0x1.fe77280000000p-1f,
                                     0x1.ff45d60000000p-1f,
                                     0x1.ffbb740000000p-1f,
                                     0x1.ffe6c80000000p-1f,
                                     0x1.fff6c40000000p-1f,
                                     0x1.fffc980000000p-1f,
                                     0x1.fffebe0000000p-1f,
                                     0x1.ffff8a0000000p-1f,
                                     0x1.ffffd40000000p-1f,
                                     0x1.fffff60000000p-1f,
                                     0x1.fffffe0000000p-1f,
                                     0x0.0p+0f,
                                     0x1.7ed9280000000p-4f,
                                     0x1.3d842a0000000p-3f,
                                     0x1.b8fac60000000p-3f,
                                     0x1.18bdf20000000p-2f,
                                     0x1.52c3220000000p-2f,
                                     0x1.a5747a0000000p-2f,
                                     0x1.051ab40000000p-1f,
                                     0x1.31559c0000000p-1f,
                                     0x1.5798ee0000000p-1f,
                                     0x1.77d5280000000p-1f,
                                     0x1.92bea40000000p-1f,
                                     0x1.a8e0c60000000p-1f,
                                     0x1.bad7740000000p-1f};
  static constexpr float kSlope[] = {
      0x1.8000000000000p-3f,  0x1.e000000000000p-4f,  0x1.2000000000000p-4f,
      0x1.6000000000000p-5f,  0x1.c000000000000p-6f,  0x1.0000000000000p-6f,
      0x1.4000000000000p-7f,  0x1.8000000000000p-8f,  0x1.8000000000000p-9f,
      0x1.2000000000000p-10f, 0x1.a000000000000p-12f, 0x1.2000000000000p-13f,
      0x1.c000000000000p-15f, 0x1.4000000000000p-16f, 0x1.e000000000000p-18f,
      0x1.6000000000000p-19f, 0x1.4000000000000p-21f, 0x1.0000000000000p-23f,
      0x1.0000000000000p+0f,  0x1.0000000000000p+0f,  0x1.0000000000000p+0f,
      0x1.e000000000000p-1f,  0x1.e000000000000p-1f,  0x1.c000000000000p-1f,
      0x1.a000000000000p-1f,  0x1.8000000000000p-1f,  0x1.4000000000000p-1f,
      0x1.2000000000000p-1f,  0x1.e000000000000p-2f,  0x1.8000000000000p-2f,
      0x1.4000000000000p-2f,  0x1.0000000000000p-2f};
  static constexpr float kRest[][32] = {
      {-0x1.c467bc0000000p-8f,
       -0x1.b3db240000000p-9f,
       0x1.32698a0000000p-12f,
       0x1.16d38c0000000p-11f,
       -0x1.8258da0000000p-11f,
       0x1.4144a80000000p-11f,
       0x1.6dd13c0000000p-14f,
       0x1.080ac80000000p-13f,
       -0x1.7fd3760000000p-14f,
       -0x1.bdb04a0000000p-15f,
       -0x1.934ddc0000000p-17f,
       0x1.dc59440000000p-19f,
       -0x1.8266be0000000p-20f,
       0x1.f2518a0000000p-24f,
       -0x1.026f440000000p-23f,
       -0x1.d13ce60000000p-32f,
       -0x1.b032020000000p-30f,
       -0x1.713b1a0000000p-35f,
       0x0.0p+0f,
       -0x1.1e46b40000000p-7f,
       -0x1.89d0b60000000p-6f,
       0x1.0860e60000000p-6f,
       -0x1.9f00980000000p-7f,
       0x1.fdc1180000000p-7f,
       0x1.289ee00000000p-6f,
       -0x1.49ed020000000p-7f,
       0x1.3d2f940000000p-6f,
       -0x1.a562a80000000p-7f,
       -0x1.f086f20000000p-8f,
       0x1.9930d80000000p-8f,
       -0x1.294d480000000p-10f,
       0x1.f352780000000p-10f},
      {-0x1.4ece020000000p-3f,  -0x1.b7073e0000000p-4f,  -0x1.16cd3c0000000p-4f,
       -0x1.5c858c0000000p-5f,  -0x1.ae17260000000p-6f,  -0x1.07df720000000p-6f,
       -0x1.4143640000000p-7f,  -0x1.87132a0000000p-8f,  -0x1.737f780000000p-9f,
       -0x1.11f2120000000p-10f, -0x1.9357d40000000p-12f, -0x1.276bf60000000p-13f,
       -0x1.b3ed8c0000000p-15f, -0x1.41f8340000000p-16f, -0x1.d7efe00000000p-18f,
       -0x1.6003540000000p-19f, -0x1.3fe7fc0000000p-21f, -0x1.00b19c0000000p-23f,
       0x1.8eb5680000000p-18f,  -0x1.7b80e40000000p-4f,  -0x1.35e25a0000000p-3f,
       -0x1.a488bc0000000p-3f,  -0x1.03a3d60000000p-2f,  -0x1.2dafd60000000p-2f,
       -0x1.5e0fcc0000000p-2f,  -0x1.8265f00000000p-2f,  -0x1.897d6c0000000p-2f,
       -0x1.79b5c20000000p-2f,  -0x1.5aa5ec0000000p-2f,  -0x1.33167c0000000p-2f,
       -0x1.0895cc0000000p-2f,  -0x1.be37400000000p-3f},
      {0x1.6758fa0000000p-4f,  0x1.021b940000000p-4f,  0x1.59859c0000000p-5f,
       0x1.bd6ac00000000p-6f,  0x1.17ef3e0000000p-6f,  0x1.5b4d600000000p-7f,
       0x1.a9ab5e0000000p-8f,  0x1.0420280000000p-8f,  0x1.f58c560000000p-10f,
       0x1.7293320000000p-11f, 0x1.11015e0000000p-12f, 0x1.90053e0000000p-14f,
       0x1.272b000000000p-15f, 0x1.b407380000000p-17f, 0x1.3f90c40000000p-18f,
       0x1.dca3c80000000p-20f, 0x1.c5b44c0000000p-22f, 0x1.5cd44e0000000p-24f,
       -0x1.55ecb80000000p-2f, -0x1.49543e0000000p-2f, -0x1.34f92e0000000p-2f,
       -0x1.1820760000000p-2f, -0x1.e8d72a0000000p-3f, -0x1.9843a80000000p-3f,
       -0x1.16ed620000000p-3f, -0x1.bdd4d80000000p-5f, 0x1.cd290c0000000p-7f,
       0x1.0636d60000000p-4f,  0x1.831c280000000p-4f,  0x1.bcedec0000000p-4f,
       0x1.c4a1be0000000p-4f,  0x1.abacfe0000000p-4f},
      {-0x1.960b5e0000000p-6f,  -0x1.8081ba0000000p-6f,  -0x1.252dfe0000000p-6f,
       -0x1.946ca40000000p-7f,  -0x1.0854580000000p-7f,  -0x1.4f33700000000p-8f,
       -0x1.a170140000000p-9f,  -0x1.0140340000000p-9f,  -0x1.f169b80000000p-11f,
       -0x1.70bfac0000000p-12f, -0x1.100e6e0000000p-13f, -0x1.908f6a0000000p-15f,
       -0x1.26e6740000000p-16f, -0x1.b22b5a0000000p-18f, -0x1.3f56ea0000000p-19f,
       -0x1.d687c20000000p-21f, -0x1.b658620000000p-23f, -0x1.3292240000000p-25f,
       0x1.058b620000000p-6f,   0x1.f2f5a00000000p-5f,   0x1.8dd7380000000p-4f,
       0x1.04a5700000000p-3f,   0x1.32dbcc0000000p-3f,   0x1.4ff9f00000000p-3f,
       0x1.5b5b320000000p-3f,   0x1.39cd320000000p-3f,   0x1.e9346e0000000p-4f,
       0x1.47410a0000000p-4f,   0x1.6352e60000000p-5f,   0x1.dac2aa0000000p-7f,
       -0x1.6bd8540000000p-8f,  -0x1.21383e0000000p-6f}};
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
