// Powers of two and polynomials of exponential functions for vectors of AVX-512. Written by
// tools/fit_exp_tables.py: do not edit.
#pragma once

namespace cuop::jit {

template <class T>
struct PowerRows;

template <>
struct PowerRows<float> {
  static constexpr float kPowers[] = {
      0x1.0000000000000p+0f, 0x1.0b55860000000p+0f, 0x1.172b840000000p+0f, 0x1.2387a60000000p+0f,
      0x1.306fe00000000p+0f, 0x1.3dea640000000p+0f, 0x1.4bfdae0000000p+0f, 0x1.5ab07e0000000p+0f,
      0x1.6a09e60000000p+0f, 0x1.7a11480000000p+0f, 0x1.8ace540000000p+0f, 0x1.9c49180000000p+0f,
      0x1.ae89fa0000000p+0f, 0x1.c199be0000000p+0f, 0x1.d5818e0000000p+0f, 0x1.ea4afa0000000p+0f};
  static constexpr float kLacks[] = {0x0.0p+0f,
                                     0x1.9f31220000000p-25f,
                                     -0x1.c157420000000p-27f,
                                     0x1.ceac480000000p-25f,
                                     0x1.4636e20000000p-25f,
                                     0x1.8246840000000p-25f,
                                     -0x1.593abc0000000p-25f,
                                     -0x1.5bd5ec0000000p-27f,
                                     0x1.9fcef40000000p-26f,
                                     -0x1.829fd00000000p-25f,
                                     0x1.15506e0000000p-27f,
                                     0x1.51f8480000000p-27f,
                                     -0x1.a94b140000000p-26f,
                                     -0x1.3d56b20000000p-27f,
                                     -0x1.822dbc0000000p-27f,
                                     0x1.52486c0000000p-27f};
  static constexpr float kRest[] = {0x1.0002200000000p-1f, 0x1.5557620000000p-3f};
  static constexpr float kRestOfTwo[] = {0x1.ebfff40000000p-3f, 0x1.c6b34a0000000p-5f};
};

template <>
struct PowerRows<double> {
  static constexpr double kPowers[] = {
      0x1.0000000000000p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
      0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
      0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f090p+0,
      0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0};
  static constexpr double kLacks[] = {0x0.0p+0,
                                      0x1.8a62e4adc610bp-54,
                                      -0x1.19041b9d78a76p-55,
                                      0x1.9b07eb6c70573p-54,
                                      0x1.6f46ad23182e4p-55,
                                      0x1.ada0911f09ebcp-55,
                                      0x1.d4397afec42e2p-56,
                                      0x1.6324c054647adp-54,
                                      -0x1.bdd3413b26456p-54,
                                      -0x1.41577ee04992fp-55,
                                      0x1.6e9f156864b27p-54,
                                      0x1.c7c46b071f2bep-56,
                                      0x1.7a1cd345dcc81p-54,
                                      0x1.11065895048ddp-55,
                                      0x1.2ed02d75b3707p-55,
                                      -0x1.e9c23179c2893p-54};
  static constexpr double kRest[] = {0x1.0000000000005p-1, 0x1.555555548f1ffp-3,
                                     0x1.555555545efd5p-5, 0x1.11123afcd8802p-7,
                                     0x1.6c185de1a0d0dp-10};
  static constexpr double kRestOfTwo[] = {0x1.ebfbdff82c598p-3, 0x1.c6b08d6f42036p-5,
                                          0x1.3b2ab6fac171ep-7, 0x1.5d897bd10daa3p-10,
                                          0x1.430a80ec0a54ap-13};
};

}  // namespace cuop::jit
