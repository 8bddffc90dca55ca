// Polynomials of erf on eight intervals, and on two. Written by tools/fit_intervals.py: do not
// edit.
#pragma once

namespace cuop::jit {

struct ErfIntervals {
  static constexpr float kSpacing = 0x1.2001600000000p-1f;
  static constexpr float kPerSpacing = 0x1.c71a460000000p+0f;
  static constexpr float kBase[] = {0x0.0p+0f,
                                    0x0.0p+0f,
                                    0x1.0000000000000p+0f,
                                    0x1.0000000000000p+0f,
                                    0x1.0000000000000p+0f,
                                    0x1.0000000000000p+0f,
                                    0x1.0000000000000p+0f,
                                    0x1.0000000000000p+0f};
  static constexpr float kValue[] = {0x0.0p+0f,
                                     0x1.25b9ca0000000p-1f,
                                     -0x1.c9226c0000000p-4f,
                                     -0x1.16a9aa0000000p-6f,
                                     -0x1.7f5d240000000p-10f,
                                     -0x1.240b9c0000000p-14f,
                                     -0x1.e7120c0000000p-20f,
                                     -0x1.b93ee80000000p-26f};
  static constexpr float kSlope[] = {0x1.2000000000000p+0f,  0x1.a000000000000p-1f,
                                     0x1.4000000000000p-2f,  0x1.0000000000000p-4f,
                                     0x1.e000000000000p-8f,  0x1.c000000000000p-12f,
                                     0x1.a000000000000p-17f, 0x1.c000000000000p-23f};
  static constexpr float kRest[][8] = {
      {0x1.baea0a0000000p-9f, 0x1.41822a0000000p-7f, 0x1.796ae40000000p-8f, 0x1.7e469c0000000p-9f,
       -0x1.804c540000000p-13f, -0x1.bccd740000000p-17f, 0x1.7638780000000p-22f,
       -0x1.b659a40000000p-33f},
      {-0x1.1126aa0000000p-25f, -0x1.d9a8da0000000p-2f, -0x1.6ea4440000000p-2f,
       -0x1.c42ae00000000p-4f, -0x1.073f880000000p-6f, -0x1.313c1c0000000p-10f,
       -0x1.68ead20000000p-15f, -0x1.b8cf6a0000000p-21f},
      {-0x1.8126d20000000p-2f, -0x1.9c3ab40000000p-4f, 0x1.4cb4fa0000000p-3f, 0x1.a3623c0000000p-4f,
       0x1.63e1800000000p-6f, 0x1.0c12400000000p-9f, 0x1.84329c0000000p-14f,
       0x1.17eddc0000000p-19f},
      {-0x1.29217e0000000p-15f, 0x1.759fc60000000p-3f, 0x1.cae0cc0000000p-6f,
       -0x1.9647ec0000000p-5f, -0x1.38bd440000000p-6f, -0x1.4602540000000p-9f,
       -0x1.28a45e0000000p-13f, -0x1.fe20d40000000p-19f},
      {0x1.cf8f720000000p-4f, -0x1.62f6d00000000p-7f, -0x1.f64ed20000000p-5f, 0x1.681da80000000p-9f,
       0x1.5d5a800000000p-7f, 0x1.1e88180000000p-9f, 0x1.56c9e60000000p-13f,
       0x1.68bd6c0000000p-18f},
      {-0x1.97b7780000000p-10f, -0x1.7374d40000000p-5f, 0x1.dfc1700000000p-7f,
       0x1.7efcc40000000p-7f, -0x1.68d63c0000000p-9f, -0x1.6fc9340000000p-10f,
       -0x1.44933e0000000p-13f, -0x1.c3b12a0000000p-18f},
      {-0x1.86aa3a0000000p-6f, 0x1.37aea20000000p-7f, 0x1.3859fc0000000p-7f, -0x1.8e0ae80000000p-8f,
       -0x1.83de040000000p-11f, 0x1.32a1e60000000p-11f, 0x1.bda1280000000p-14f,
       0x1.9670ca0000000p-18f}};
};

struct ErfSeries {
  static constexpr float kNear = 0x1.2000000000000p+0f;
  static constexpr float kNearMiddle = 0x1.2000000000000p-1f;
  static constexpr float kFarMiddle = 0x1.6000000000000p+0f;
  static constexpr float kMost = 0x1.0000000000000p+2f;
  static constexpr float kNearTerms[] = {-0x1.a848b60000000p-5f, -0x1.15de940000000p-2f,
                                         0x1.378c800000000p-4f,  -0x1.1da5700000000p-6f,
                                         0x1.b20b3a0000000p-9f,  -0x1.19fef20000000p-11f,
                                         0x1.2685940000000p-14f};
  static constexpr float kRoot[] = {0x1.e897320000000p-2f,  -0x1.917cc80000000p-2f,
                                    0x1.c969520000000p-5f,  0x1.3ecbfe0000000p-5f,
                                    -0x1.6f3c920000000p-7f, -0x1.5c5ec80000000p-9f,
                                    0x1.8aef2c0000000p-10f, -0x1.786ffc0000000p-13f};
};

}  // namespace cuop::jit
