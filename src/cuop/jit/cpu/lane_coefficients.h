// Polynomials of sin on eight intervals and for tan. Written by tools/fit_lane_forms.py: do not
// edit.
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

struct RightAngle {
  static constexpr float kTwoOver = 0x1.45f3060000000p-1f;
  static constexpr float kA = 0x1.921fb40000000p+0f;
  static constexpr float kB = 0x1.4440000000000p-24f;
  static constexpr float kC = 0x1.68c2340000000p-39f;
};

struct CotangentSeries {
  static constexpr double kRest[] = {
      0x1.555555555556bp-2,  0x1.6c16c16c116f4p-6,  0x1.1566abc3b4cd9p-9,
      0x1.bbd776c223505p-13, 0x1.66a969667d6bbp-16, 0x1.2272ca4576809p-19,
      0x1.d8c2b2b4413a4p-23, 0x1.6943447a62916p-26, 0x1.aa6523f327d93p-29};
};

}  // namespace cuop::jit
