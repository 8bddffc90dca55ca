// Rows and polynomials of logarithms for vectors of AVX-512. Written by tools/fit_log_tables.py: do
// not edit.
#pragma once

namespace cuop::jit {

template <class T>
struct LogRows;
template <class T>
struct Log2Rows;
template <class T>
struct Log10Rows;

template <>
struct LogRows<float> {
  static constexpr float kSlope = 0x1.0000000000000p+0f;
  static constexpr float kSlopeRest = 0x0.0p+0f;
  static constexpr float kOfTwo = 0x1.62e4000000000p-1f;
  static constexpr float kOfTwoRest = 0x1.7f7d1c0000000p-20f;
  static constexpr float kFactors[] = {
      0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.e11ba20000000p-1f, 0x1.cd69560000000p-1f,
      0x1.c235160000000p-1f, 0x1.b5254a0000000p-1f, 0x1.aa01020000000p-1f, 0x1.9fce360000000p-1f,
      0x1.937edc0000000p-1f, 0x1.8a22300000000p-1f, 0x1.8091a80000000p-1f, 0x1.788a960000000p-1f,
      0x1.6f4d840000000p-1f, 0x1.68b94a0000000p-1f, 0x1.5fb6580000000p-1f, 0x1.5960d60000000p-1f,
      0x1.52b9fa0000000p-1f, 0x1.4af92a0000000p-1f, 0x1.4435da0000000p-1f, 0x1.3d7a020000000p-1f,
      0x1.38202a0000000p-1f, 0x1.31f1060000000p-1f, 0x1.2c610a0000000p-1f, 0x1.26e8a40000000p-1f,
      0x1.21e4480000000p-1f, 0x1.1cf6540000000p-1f, 0x1.183a4a0000000p-1f, 0x1.13a64e0000000p-1f,
      0x1.0edad60000000p-1f, 0x1.091eb80000000p-1f, 0x1.0000000000000p-1f, 0x1.0000000000000p-1f};
  static constexpr float kLogs[] = {0x0.0p+0f,
                                    0x0.0p+0f,
                                    0x1.fdd0000000000p-5f,
                                    0x1.aa20000000000p-4f,
                                    0x1.0768000000000p-3f,
                                    0x1.43b4000000000p-3f,
                                    0x1.7894000000000p-3f,
                                    0x1.aa34000000000p-3f,
                                    0x1.e7c0000000000p-3f,
                                    0x1.0bea000000000p-2f,
                                    0x1.2512000000000p-2f,
                                    0x1.3aac000000000p-2f,
                                    0x1.541c000000000p-2f,
                                    0x1.669e000000000p-2f,
                                    0x1.8086000000000p-2f,
                                    0x1.9322000000000p-2f,
                                    0x1.a70c000000000p-2f,
                                    0x1.bec2000000000p-2f,
                                    0x1.d3e6000000000p-2f,
                                    0x1.e964000000000p-2f,
                                    0x1.facc000000000p-2f,
                                    0x1.07a5000000000p-1f,
                                    0x1.110a000000000p-1f,
                                    0x1.1a73000000000p-1f,
                                    0x1.233c000000000p-1f,
                                    0x1.2c04000000000p-1f,
                                    0x1.3498000000000p-1f,
                                    0x1.3d07000000000p-1f,
                                    0x1.4603000000000p-1f,
                                    0x1.50f8000000000p-1f,
                                    0x1.62e4000000000p-1f,
                                    0x1.62e4000000000p-1f};
  static constexpr float kRest[] = {-0x1.0000000000000p-1f, 0x1.5558440000000p-2f,
                                    -0x1.0010000000000p-2f, 0x1.81f78c0000000p-3f};
};

template <>
struct LogRows<double> {
  static constexpr double kSlope = 0x1.0000000000000p+0;
  static constexpr double kSlopeRest = 0x0.0p+0;
  static constexpr double kOfTwo = 0x1.62e42fefa3800p-1;
  static constexpr double kOfTwoRest = 0x1.ef35793c76730p-45;
  static constexpr double kFactors[] = {
      0x1.0000000000000p+0, 0x1.dfdac14000000p-1, 0x1.bbb4d08000000p-1, 0x1.a30967e000000p-1,
      0x1.8fabe58000000p-1, 0x1.7d8e2d0000000p-1, 0x1.6cbc95a000000p-1, 0x1.5baa2ca000000p-1,
      0x1.4ef0f48000000p-1, 0x1.40e3b2e000000p-1, 0x1.344f58e000000p-1, 0x1.29a3942000000p-1,
      0x1.2035d72000000p-1, 0x1.14f60a2000000p-1, 0x1.08b1c30000000p-1, 0x1.0000000000000p-1};
  static constexpr double kLogs[] = {0x0.0p+0,
                                     0x1.09976ae260000p-4,
                                     0x1.2531fd47c7000p-3,
                                     0x1.9a59801b56000p-3,
                                     0x1.fb40903f9a000p-3,
                                     0x1.2d20541fe7000p-2,
                                     0x1.5b49e139b2000p-2,
                                     0x1.8c60451927800p-2,
                                     0x1.b28dedafec800p-2,
                                     0x1.de710196b8800p-2,
                                     0x1.03b236068d400p-1,
                                     0x1.15bb2299ecc00p-1,
                                     0x1.263672af40400p-1,
                                     0x1.3a98dfe76ec00p-1,
                                     0x1.51ca96458bc00p-1,
                                     0x1.62e42fefa3800p-1};
  static constexpr double kRest[] = {
      -0x1.0000000000003p-1, 0x1.5555555555f5ep-2,  -0x1.fffffffff1c3bp-3,
      0x1.99999980a7b29p-3,  -0x1.555554b4fdb1bp-3, 0x1.2492d81593922p-3,
      -0x1.0009b7b84d181p-3, 0x1.c575fe8ae3d4cp-4,  -0x1.66046971e2495p-4};
};

template <>
struct Log2Rows<double> {
  static constexpr double kSlope = 0x1.71547652b82fep+0;
  static constexpr double kSlopeRest = 0x1.777d0ffda0d24p-56;
  static constexpr double kOfTwo = 0x1.0000000000000p+0;
  static constexpr double kOfTwoRest = 0x0.0p+0;
  static constexpr double kFactors[] = {
      0x1.0000000000000p+0, 0x1.df00cee000000p-1, 0x1.bbeb46e000000p-1, 0x1.a5558ba000000p-1,
      0x1.9070e38000000p-1, 0x1.7d6b040000000p-1, 0x1.6c26866000000p-1, 0x1.5c4c35c000000p-1,
      0x1.4e24524000000p-1, 0x1.41a1b08000000p-1, 0x1.3473adc000000p-1, 0x1.2954306000000p-1,
      0x1.1ff6bc2000000p-1, 0x1.151011c000000p-1, 0x1.09e845e000000p-1, 0x1.0000000000000p-1};
  static constexpr double kLogs[] = {0x0.0p+0,
                                     0x1.89a9386c68000p-4,
                                     0x1.a59335ffde000p-3,
                                     0x1.1fed5da0d5000p-2,
                                     0x1.6b1042cfdd000p-2,
                                     0x1.b2f71bb68f000p-2,
                                     0x1.f7685bad51000p-2,
                                     0x1.1c94d12c32000p-1,
                                     0x1.3b3acd2be7800p-1,
                                     0x1.576a8866bf000p-1,
                                     0x1.765288246d000p-1,
                                     0x1.91737f04d7800p-1,
                                     0x1.a9175ad722000p-1,
                                     0x1.c598bd914e000p-1,
                                     0x1.e3f3eb8e58000p-1,
                                     0x1.0000000000000p+0};
  static constexpr double kRest[] = {
      -0x1.71547652b8302p-1, 0x1.ec709dc3a1278p-2,  -0x1.71547652adeb1p-2,
      0x1.2776c4fcfb4b7p-2,  -0x1.ec709cdc4d061p-3, 0x1.a61830e039ed7p-3,
      -0x1.71627b58259bbp-3, 0x1.471a581a50acdp-3,  -0x1.02413d74bc122p-3};
};

template <>
struct Log10Rows<double> {
  static constexpr double kSlope = 0x1.bcb7b1526e50ep-2;
  static constexpr double kSlopeRest = 0x1.95355baaafad3p-57;
  static constexpr double kOfTwo = 0x1.34413509f79ffp-2;
  static constexpr double kOfTwoRest = -0x1.9dc1da994fd21p-59;
  static constexpr double kRest[] = {
      -0x1.bcb7b1526e513p-3, 0x1.287a7636f4c16p-3,  -0x1.bcb7b15261f38p-4,
      0x1.63c6275f7a541p-4,  -0x1.287a75abaeaf2p-4, 0x1.fc409e659fe19p-5,
      -0x1.bcc892ef23ed3p-5, 0x1.89df0375384fbp-5,  -0x1.36f846029cbc3p-5};
};

struct LogSteps {
  static constexpr float kUnit = 0x1.0000000000000p+0f;
  static constexpr float kTwo = 0x1.0000000000000p+0f;
  static constexpr float kOfStep = 0x1.62e4300000000p-1f;
  static constexpr float kFactors[] = {
      0x1.0000000000000p+0f, 0x1.e9234a0000000p-1f, 0x1.db48200000000p-1f, 0x1.ccf8120000000p-1f,
      0x1.c18c5a0000000p-1f, 0x1.b43ee80000000p-1f, 0x1.a966c80000000p-1f, 0x1.9f3e6c0000000p-1f,
      0x1.94cc280000000p-1f, 0x1.8967ca0000000p-1f, 0x1.8186900000000p-1f, 0x1.7840a20000000p-1f,
      0x1.70e34c0000000p-1f, 0x1.67d50a0000000p-1f, 0x1.5f23d00000000p-1f, 0x1.5a557c0000000p-1f,
      0x1.523c640000000p-1f, 0x1.4a45760000000p-1f, 0x1.43169e0000000p-1f, 0x1.3eaee40000000p-1f,
      0x1.38c5d20000000p-1f, 0x1.330d980000000p-1f, 0x1.2d23760000000p-1f, 0x1.2625a40000000p-1f,
      0x1.20cdfe0000000p-1f, 0x1.1cf3880000000p-1f, 0x1.161fae0000000p-1f, 0x1.11bb500000000p-1f,
      0x1.0e7db80000000p-1f, 0x1.086bba0000000p-1f, 0x1.061eee0000000p-1f, 0x1.0000000000000p-1f};
  static constexpr float kLogs[] = {0x0.0p+0f,
                                    0x1.0df0000000000p-4f,
                                    0x1.b7c0000000000p-4f,
                                    0x1.3638000000000p-3f,
                                    0x1.8058000000000p-3f,
                                    0x1.d918000000000p-3f,
                                    0x1.11bc000000000p-2f,
                                    0x1.3570000000000p-2f,
                                    0x1.5b14000000000p-2f,
                                    0x1.8540000000000p-2f,
                                    0x1.a324000000000p-2f,
                                    0x1.c71c000000000p-2f,
                                    0x1.e450000000000p-2f,
                                    0x1.0484000000000p-1f,
                                    0x1.1694000000000p-1f,
                                    0x1.20c2000000000p-1f,
                                    0x1.323c000000000p-1f,
                                    0x1.43d6000000000p-1f,
                                    0x1.5414000000000p-1f,
                                    0x1.5e38000000000p-1f,
                                    0x1.6c0c000000000p-1f,
                                    0x1.79ae000000000p-1f,
                                    0x1.880c000000000p-1f,
                                    0x1.9966000000000p-1f,
                                    0x1.a6f0000000000p-1f,
                                    0x1.b0dc000000000p-1f,
                                    0x1.c2c6000000000p-1f,
                                    0x1.ce88000000000p-1f,
                                    0x1.d754000000000p-1f,
                                    0x1.e818000000000p-1f,
                                    0x1.ee8c000000000p-1f,
                                    0x1.0000000000000p+0f};
  static constexpr float kTerms[] = {-0x1.b59fc00000000p-30f, -0x1.00002c0000000p-1f,
                                     0x1.555f160000000p-2f, -0x1.f39f2c0000000p-3f};
};

struct Log2Steps {
  static constexpr float kUnit = 0x1.6800000000000p+0f;
  static constexpr float kTwo = 0x1.0000000000000p+0f;
  static constexpr float kOfStep = 0x1.0000000000000p+0f;
  static constexpr float kFactors[] = {
      0x1.6800000000000p+0f, 0x1.5a4ff00000000p+0f, 0x1.4e3a7a0000000p+0f, 0x1.448c320000000p+0f,
      0x1.3d7b800000000p+0f, 0x1.33f94c0000000p+0f, 0x1.2c05de0000000p+0f, 0x1.25e3a20000000p+0f,
      0x1.1adb0c0000000p+0f, 0x1.15b1e20000000p+0f, 0x1.109e9c0000000p+0f, 0x1.0824f20000000p+0f,
      0x1.0280de0000000p+0f, 0x1.fa455e0000000p-1f, 0x1.efadf00000000p-1f, 0x1.e4fc7a0000000p-1f,
      0x1.daa3a00000000p-1f, 0x1.d1af000000000p-1f, 0x1.c873e00000000p-1f, 0x1.bef0f00000000p-1f,
      0x1.b67d5a0000000p-1f, 0x1.ad32b80000000p-1f, 0x1.a6126e0000000p-1f, 0x1.9e7f8e0000000p-1f,
      0x1.9797200000000p-1f, 0x1.9023040000000p-1f, 0x1.87e9240000000p-1f, 0x1.82e3ea0000000p-1f,
      0x1.7cebee0000000p-1f, 0x1.73ce6e0000000p-1f, 0x1.6f83760000000p-1f, 0x1.6800000000000p-1f};
  static constexpr float kLogs[] = {0x0.0p+0f,
                                    0x1.ca20000000000p-5f,
                                    0x1.b6f0000000000p-4f,
                                    0x1.3250000000000p-3f,
                                    0x1.7358000000000p-3f,
                                    0x1.cd30000000000p-3f,
                                    0x1.0d3c000000000p-2f,
                                    0x1.2bc0000000000p-2f,
                                    0x1.6448000000000p-2f,
                                    0x1.7f7c000000000p-2f,
                                    0x1.9abc000000000p-2f,
                                    0x1.c964000000000p-2f,
                                    0x1.e948000000000p-2f,
                                    0x1.0424000000000p-1f,
                                    0x1.13c2000000000p-1f,
                                    0x1.23de000000000p-1f,
                                    0x1.33cc000000000p-1f,
                                    0x1.41de000000000p-1f,
                                    0x1.50a8000000000p-1f,
                                    0x1.6036000000000p-1f,
                                    0x1.6e50000000000p-1f,
                                    0x1.7e22000000000p-1f,
                                    0x1.8a80000000000p-1f,
                                    0x1.97e0000000000p-1f,
                                    0x1.a44a000000000p-1f,
                                    0x1.b1ec000000000p-1f,
                                    0x1.c144000000000p-1f,
                                    0x1.caca000000000p-1f,
                                    0x1.d646000000000p-1f,
                                    0x1.e82a000000000p-1f,
                                    0x1.f0be000000000p-1f,
                                    0x1.0000000000000p+0f};
  static constexpr float kTerms[] = {0x1.a89d8e0000000p-6f, -0x1.75869a0000000p-2f,
                                     0x1.623a580000000p-3f, -0x1.71f68e0000000p-4f};
};

struct Log10Steps {
  static constexpr float kUnit = 0x1.b000000000000p-2f;
  static constexpr float kTwo = 0x1.8000000000000p+1f;
  static constexpr float kOfStep = 0x1.9b019c0000000p-4f;
  static constexpr float kFactors[] = {
      0x1.b000000000000p-2f, 0x1.9dd19e0000000p-2f, 0x1.93ff020000000p-2f, 0x1.84a52a0000000p-2f,
      0x1.7c296c0000000p-2f, 0x1.6f6e200000000p-2f, 0x1.68843a0000000p-2f, 0x1.5d9f240000000p-2f,
      0x1.53ffd00000000p-2f, 0x1.4dadec0000000p-2f, 0x1.4673780000000p-2f, 0x1.3db0b80000000p-2f,
      0x1.3733fc0000000p-2f, 0x1.2e8e960000000p-2f, 0x1.297fb80000000p-2f, 0x1.230d620000000p-2f,
      0x1.1cccb00000000p-2f, 0x1.16cb900000000p-2f, 0x1.113da80000000p-2f, 0x1.0e23300000000p-2f,
      0x1.06edc20000000p-2f, 0x1.022a4a0000000p-2f, 0x1.fa10ae0000000p-3f, 0x1.f16fbe0000000p-3f,
      0x1.e98c5e0000000p-3f, 0x1.e123e40000000p-3f, 0x1.d8c4380000000p-3f, 0x1.cc99380000000p-3f,
      0x1.c940aa0000000p-3f, 0x1.c027d40000000p-3f, 0x1.b9d3b80000000p-3f, 0x1.b000000000000p-3f};
  static constexpr float kLogs[] = {0x0.0p+0f,
                                    0x1.7d20000000000p-3f,
                                    0x1.2908000000000p-2f,
                                    0x1.d4b8000000000p-2f,
                                    0x1.1b44000000000p-1f,
                                    0x1.66c0000000000p-1f,
                                    0x1.90d8000000000p-1f,
                                    0x1.d4d8000000000p-1f,
                                    0x1.0958000000000p+0f,
                                    0x1.1e22000000000p+0f,
                                    0x1.3666000000000p+0f,
                                    0x1.548a000000000p+0f,
                                    0x1.6b66000000000p+0f,
                                    0x1.8a9e000000000p+0f,
                                    0x1.9d4c000000000p+0f,
                                    0x1.b592000000000p+0f,
                                    0x1.cda2000000000p+0f,
                                    0x1.e53e000000000p+0f,
                                    0x1.fb8a000000000p+0f,
                                    0x1.0419000000000p+1f,
                                    0x1.1315000000000p+1f,
                                    0x1.1d36000000000p+1f,
                                    0x1.2856000000000p+1f,
                                    0x1.31dd000000000p+1f,
                                    0x1.3ab8000000000p+1f,
                                    0x1.4451000000000p+1f,
                                    0x1.4e0b000000000p+1f,
                                    0x1.5c7d000000000p+1f,
                                    0x1.6087000000000p+1f,
                                    0x1.6ba9000000000p+1f,
                                    0x1.738a000000000p+1f,
                                    0x1.8000000000000p+1f};
  static constexpr float kTerms[] = {0x1.e253260000000p-6f, -0x1.3857160000000p+0f,
                                     0x1.eda85e0000000p+0f, -0x1.ad239e0000000p+1f};
};

}  // namespace cuop::jit
