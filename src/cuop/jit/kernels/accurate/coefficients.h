// Constants of the elementary functions. Written by tools/fit_coefficients.py: do not edit.
#pragma once

namespace cuop::jit::accurate {

inline constexpr double kInvPi = 0x1.45f306dc9c883p-2;

struct Pi {
  static constexpr double kA = 0x1.921fb54442d18p+1;
  static constexpr double kB = 0x1.1a62633145c07p-53;
  static constexpr double kC = -0x1.f1976b7ed8fbcp-109;
  static constexpr double kShort1 = 0x1.921fb54400000p+1;
  static constexpr double kShortRest = 0x1.0b4611a626331p-33;
  static constexpr double kShort2 = 0x1.0b4611a600000p-33;
  static constexpr double kShort3 = 0x1.3198a2e000000p-68;
  static constexpr double kShort4 = 0x1.b839a252049c1p-103;
};
struct HalfPi {
  static constexpr double kA = 0x1.921fb54442d18p+0;
  static constexpr double kB = 0x1.1a62633145c07p-54;
  static constexpr double kC = -0x1.f1976b7ed8fbcp-110;
  static constexpr double kShort1 = 0x1.921fb54400000p+0;
  static constexpr double kShortRest = 0x1.0b4611a626331p-34;
  static constexpr double kShort2 = 0x1.0b4611a600000p-34;
  static constexpr double kShort3 = 0x1.3198a2e000000p-69;
  static constexpr double kShort4 = 0x1.b839a252049c1p-104;
};

template <class T>
struct Coefficients;
template <>
struct Coefficients<float> {
  static constexpr float kInvLn2 = 0x1.7154760000000p+0f;
  static constexpr float kLn2 = 0x1.62e4300000000p-1f;
  static constexpr float kLn2Rest = -0x1.05c6100000000p-29f;
  static constexpr float kLn2High = 0x1.62e4000000000p-1f;
  static constexpr float kLn2Low = 0x1.7f7d1c0000000p-20f;
  static constexpr float kInvLn2High = 0x1.7160000000000p+0f;
  static constexpr float kInvLn2Low = -0x1.7135a80000000p-13f;
  static constexpr float kInvLn10High = 0x1.bcc0000000000p-2f;
  static constexpr float kInvLn10Low = -0x1.09d5b20000000p-15f;
  static constexpr float kLog10Of2High = 0x1.3442000000000p-2f;
  static constexpr float kLog10Of2Low = -0x1.95ec100000000p-19f;
  static constexpr float kHalfPi = 0x1.921fb60000000p+0f;
  static constexpr float kHalfPiRest = -0x1.777a5c0000000p-25f;
  static constexpr float kRootHalf = 0x1.6a09e60000000p-1f;
  static constexpr float kRootHalfRest = 0x1.9fcef40000000p-27f;
  static constexpr float kGeluLinear = 0x1.9884500000000p+0f;
  static constexpr float kGeluLinearRest = 0x1.9ea1b20000000p-23f;
  static constexpr float kGeluCubic = 0x1.2444f20000000p-4f;
  static constexpr float kGeluCubicRest = 0x1.49b16a0000000p-29f;
  static constexpr float kCbrtTwo = 0x1.428a300000000p+0f;
  static constexpr float kCbrtHalf = 0x1.965fea0000000p-1f;
  static constexpr float kErfcMiddle = 0x1.3ba5920000000p+0f;
  static constexpr float kErfcMiddleRest = -0x1.22be580000000p-25f;
  static constexpr float kErfc[] = {
      -0x1.1df1ae0000000p-3f,  0x1.f7f5de0000000p-7f,   0x1.16ecee0000000p-4f,
      -0x1.9ddb200000000p-4f,  0x1.7fee3e0000000p-4f,   -0x1.0fb0a60000000p-4f,
      0x1.30753e0000000p-5f,   -0x1.095eaa0000000p-6f,  0x1.4a7e0a0000000p-8f,
      -0x1.8cf2e80000000p-11f, -0x1.d82c5c0000000p-13f, 0x1.2834d00000000p-13f};
  static constexpr double kErfcRoot[] = {
      0x1.480c919528a93p-1,   -0x1.ac08f5a1c5ff6p-4,  -0x1.5965eedb3628cp-10,
      0x1.25f1fd97339b8p-10,  -0x1.0034ebd0073b5p-15, -0x1.b77d509b43cf4p-18,
      0x1.b4311fec606c8p-22,  0x1.5e1f1582fec2ep-27,  -0x1.3b265aa49cf75p-31,
      -0x1.969932803ffe0p-33, 0x1.189adf52cb149p-35,  -0x1.af3156d7caf90p-39,
      -0x1.e39ba2f10a494p-43, 0x1.905f65082605fp-45,  0x1.36e43d165e534p-46,
      -0x1.c17d55584e586p-49, -0x1.e0be6b3e51c6cp-53, 0x1.46afa680b2809p-54,
      -0x1.17311bab01826p-58};
  static constexpr double kErfNear[] = {
      0x1.06eba80c7fd96p-3, -0x1.81274331690cep-2,  0x1.ce2e59a1a145ep-4,  -0x1.b81baa242c6a4p-6,
      0x1.559f2250c522bp-8, -0x1.b7456ddb25cddp-11, 0x1.bc602284d9758p-14, -0x1.0bbfcbb3f0b92p-17};
  static constexpr double kErfFar[] = {
      0x1.0bcc8508552bcp-2,  -0x1.27cb9b4cbfee5p-2, 0x1.960e0e69e11fcp-4,  0x1.c49f86393aa05p-8,
      -0x1.9051c2e8ad82fp-7, 0x1.92c357c11caf4p-10, 0x1.7afae070319bap-11, -0x1.8d8b7009ea7b1p-13};
  static constexpr double kShortErf[] = {0x1.06eba7ed79329p-3, -0x1.81273277dad05p-2,
                                         0x1.ce2500ed16471p-4, -0x1.b6644fe887b21p-6,
                                         0x1.353512d29a4bep-8};
  static constexpr double kShortExp[] = {0x1.000000531fcb6p-1, 0x1.55548cdfccfe3p-3,
                                         0x1.55545b36c0077p-5, 0x1.123cdedf57b5ep-7,
                                         0x1.6db663412ab19p-10};
  static constexpr double kShortCbrt[] = {
      0x1.55555553a1b00p-1, 0x1.1c71c9bb919bdp-1, 0x1.f9ade468555a7p-2, 0x1.cf7e2877e3b59p-2,
      0x1.b08e64aa69cdap-2, 0x1.a032c3592dbd8p-2, 0x1.8e77364a54a73p-2};
  static constexpr float kTanhNear = 0x1.3333340000000p-1f;
  static constexpr float kExp[] = {0x1.0000000000000p-1f,  0x1.5555560000000p-3f,
                                   0x1.5554e80000000p-5f,  0x1.1110e00000000p-7f,
                                   0x1.6d44b20000000p-10f, 0x1.a126520000000p-13f};
  static constexpr float kExp2[] = {0x1.ebfbe00000000p-3f,  0x1.c6b08e0000000p-5f,
                                    0x1.3b2a520000000p-7f,  0x1.5d87c00000000p-10f,
                                    0x1.4414120000000p-13f, 0x1.008a740000000p-16f};
  static constexpr float kCosh[] = {0x1.0000000000000p-1f, 0x1.5554e80000000p-5f,
                                    0x1.6d44b20000000p-10f};
  static constexpr float kSinh[] = {0x1.5555560000000p-3f, 0x1.1110e00000000p-7f,
                                    0x1.a126520000000p-13f};
  static constexpr float kLog[] = {0x1.5555560000000p-1f, 0x1.9999ec0000000p-2f,
                                   0x1.245c280000000p-2f, 0x1.ddd4da0000000p-3f};
  static constexpr float kAtanh[] = {0x1.5555560000000p-2f, 0x1.999abc0000000p-3f,
                                     0x1.2413e40000000p-3f, 0x1.ea0c8a0000000p-4f};
  static constexpr double kSine[] = {-0x1.5555555554994p-3,  0x1.1111110fbb18dp-7,
                                     -0x1.a01a000cd7907p-13, 0x1.71dd8c4d483eep-19,
                                     -0x1.ae205b5e84f05p-26, 0x1.54dde1e3a0967p-33};
  static constexpr float kShortSine[] = {-0x1.5555560000000p-3f, 0x1.11110e0000000p-7f,
                                         -0x1.a013a40000000p-13f, 0x1.6dbcec0000000p-19f};
  static constexpr float kCosine[] = {0x1.5555560000000p-5f, -0x1.6c16c00000000p-10f,
                                      0x1.a015c20000000p-16f, -0x1.2523920000000p-22f};
  static constexpr double kTangent[] = {
      0x1.5555554d49298p-2, 0x1.11111e12da787p-3, 0x1.ba14c9f9f5b38p-5,   0x1.66fd2c71e6ca5p-6,
      0x1.1a0ffb745749bp-7, 0x1.22414765b4c60p-8, -0x1.38777bbce5476p-18, 0x1.d5a742a9f6e2dp-10};
  static constexpr float kAsin[] = {0x1.5555540000000p-3f, 0x1.3334340000000p-4f,
                                    0x1.6d5adc0000000p-5f, 0x1.fda4060000000p-6f,
                                    0x1.1885240000000p-6f, 0x1.1466800000000p-5f};
  static constexpr float kAtan[] = {-0x1.5555560000000p-2f, 0x1.99997a0000000p-3f,
                                    -0x1.248a120000000p-3f, 0x1.c57ade0000000p-4f,
                                    -0x1.613e3a0000000p-4f, 0x1.9d6be60000000p-5f};
  static constexpr float kTanh[] = {-0x1.5555560000000p-2f, 0x1.1110f60000000p-3f,
                                    -0x1.ba0d820000000p-5f, 0x1.64f9980000000p-6f,
                                    -0x1.138bea0000000p-7f, 0x1.3692120000000p-9f};
  static constexpr float kSinhWide[] = {0x1.5555560000000p-3f, 0x1.1111120000000p-7f,
                                        0x1.a01a140000000p-13f, 0x1.71d2020000000p-19f,
                                        0x1.b559920000000p-26f};
  static constexpr float kErf[] = {0x1.06eba80000000p-3f, -0x1.8127320000000p-2f,
                                   0x1.ce25000000000p-4f, -0x1.b664500000000p-6f,
                                   0x1.3535120000000p-8f};
  static constexpr float kCbrt[] = {0x1.b9e0380000000p+0f, -0x1.459e200000000p+0f,
                                    0x1.6670060000000p-1f, -0x1.3c363c0000000p-3f};
};
template <>
struct Coefficients<double> {
  static constexpr double kInvLn2 = 0x1.71547652b82fep+0;
  static constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  static constexpr double kLn2Rest = 0x1.abc9e3b39803fp-56;
  static constexpr double kLn2High = 0x1.62e42fefa3800p-1;
  static constexpr double kLn2Low = 0x1.ef35793c76730p-45;
  static constexpr double kInvLn2High = 0x1.7154768000000p+0;
  static constexpr double kInvLn2Low = -0x1.6a3e80f444178p-27;
  static constexpr double kInvLn10High = 0x1.bcb7b18000000p-2;
  static constexpr double kInvLn10Low = -0x1.6c8d78e6acaa4p-29;
  static constexpr double kLog10Of2High = 0x1.34413509f7800p-2;
  static constexpr double kLog10Of2Low = 0x1.fef311f12b358p-46;
  static constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  static constexpr double kHalfPiRest = 0x1.1a62633145c07p-54;
  static constexpr double kRootHalf = 0x1.6a09e667f3bcdp-1;
  static constexpr double kRootHalfRest = -0x1.bdd3413b26456p-55;
  static constexpr double kGeluLinear = 0x1.9884533d43650p+0;
  static constexpr double kGeluLinearRest = 0x1.1a1f9678a0175p-53;
  static constexpr double kGeluCubic = 0x1.2444f2a4d8b4bp-4;
  static constexpr double kGeluCubicRest = -0x1.6c843a29d1c70p-61;
  static constexpr double kCbrtTwo = 0x1.428a2f98d728bp+0;
  static constexpr double kCbrtHalf = 0x1.965fea53d6e3dp-1;
  static constexpr double kErfcMiddle = 0x1.3ba5916e9fd7fp+0;
  static constexpr double kErfcMiddleRest = -0x1.a7c78f1a306c7p-55;
  static constexpr double kErfc[] = {
      -0x1.1df1ad154a28ep-3,  0x1.f7f5df66fd76dp-7,   0x1.16ecefcfa52b5p-4,
      -0x1.9ddb23c3e8e00p-4,  0x1.7fee004e14c37p-4,   -0x1.0fb06dfe4e4f9p-4,
      0x1.3079edf61e7a1p-5,   -0x1.09623883f080cp-6,  0x1.49c672aa08182p-8,
      -0x1.8d4a9b1376eaep-11, -0x1.a1df44d0d357ap-13, 0x1.3be055036ec36p-13,
      -0x1.9954dbbbdf343p-16, -0x1.788966f85ff88p-17, 0x1.7ef4d531cf830p-18,
      0x1.3abf792a3125dp-22,  -0x1.b7f86449a0aa8p-21, 0x1.43dc50b7baccdp-24,
      0x1.bb7be885c5a0bp-24,  -0x1.3c396538d8d44p-26, -0x1.4ba5c49bc26a7p-27,
      0x1.0eff5654f9fd0p-29};
  static constexpr double kTanhNear = 0x1.3333333333333p-1;
  static constexpr double kErfNear[] = {
      -0x1.1ae14dc34815bp-5, -0x1.1fd16292151fep-2,  0x1.454368017b0d4p-4,  -0x1.2b902b7b2f0c3p-6,
      0x1.c82aa249a9df9p-9,  -0x1.263991b853749p-11, 0x1.4866392ec5a07p-14, -0x1.429e932e17a4ep-17,
      0x1.1ad5117056756p-20, -0x1.bf8e9d7b2fb15p-24, 0x1.4417272b9121fp-27, -0x1.abae1f6f792f5p-31};
  static constexpr double kErfFar[] = {
      0x1.0dcb6fdee6331p-1,   -0x1.9dd3ea3f6005bp-2,  0x1.49bfe8be2c7adp-5,
      0x1.68e9ea7ab795fp-5,   -0x1.3192fc796261cp-7,  -0x1.c38a2ddb7d7fap-9,
      0x1.2f55c9dc55c36p-10,  0x1.1b0742cb96eaep-13,  -0x1.6113c6486ec8dp-14,
      -0x1.7b30701c85341p-26, 0x1.f8880705d272dp-19,  -0x1.66eaade8ba4fdp-23,
      -0x1.2df81c140d17ap-23, 0x1.444545d46da72p-27,  0x1.54db7fc58392bp-28,
      -0x1.29583f1bce11cp-33, -0x1.c72f43a883b99p-32, 0x1.f2988d59a8dccp-34,
      -0x1.fa795e0de103cp-37, 0x1.0b0f6470ffe48p-40,  -0x1.dbac74217dd97p-46};
  static constexpr double kTangentAbove[] = {-0x1.5555555555555p-3, 0x1.f03fbd5209319p-8,
                                             -0x1.944fb9e5a0093p-14};
  static constexpr double kTangentBelow[] = {0x1.4f1908bb52361p-5, -0x1.0ed54bc0f317dp-10,
                                             0x1.4c877477c8a58p-18, 0x1.9ad06853e8878p-27};
  static constexpr double kGeluLinearShort = 0x1.9884533d40000p+0;
  static constexpr double kGeluLinearShortRest = 0x1.b284687e59e28p-39;
  static constexpr double kGeluCubicShort = 0x1.2448000000000p-4;
  static constexpr double kGeluCubicShortRest = -0x1.86ad93a5a85b2p-19;
  static constexpr double kExp[] = {
      0x1.0000000000001p-1,  0x1.5555555555556p-3,  0x1.5555555553ce3p-5,  0x1.111111111098cp-7,
      0x1.6c16c178bd6bcp-10, 0x1.a01a01a7e29cdp-13, 0x1.a019b84d17a80p-16, 0x1.71de0d383914ap-19,
      0x1.28926932adb78p-22, 0x1.af39c20098071p-26};
  static constexpr double kExp2[] = {
      0x1.ebfbdff82c590p-3,  0x1.c6b08d704a0c0p-5,  0x1.3b2ab6fba3832p-7,  0x1.5d87fe78a5db2p-10,
      0x1.43091303894aap-13, 0x1.ffcbfc6205782p-17, 0x1.62bfe4219e251p-20, 0x1.b52508425a20ap-24,
      0x1.e5ea86398000ep-28, 0x1.e9bc592654519p-32};
  static constexpr double kCosh[] = {0x1.0000000000000p-1,  0x1.5555555555557p-5,
                                     0x1.6c16c16c15a0ap-10, 0x1.a01a01aa109bbp-16,
                                     0x1.27e4d3b13855fp-22, 0x1.1f7fe7ae52b10p-29};
  static constexpr double kSinh[] = {0x1.5555555555556p-3, 0x1.111111111098cp-7,
                                     0x1.a01a01a7e29cdp-13, 0x1.71de0d383914ap-19,
                                     0x1.af39c20098071p-26};
  static constexpr double kLog[] = {
      0x1.5555555555558p-1, 0x1.9999999995273p-2, 0x1.2492492dfd86cp-2, 0x1.c71c62d5e53e0p-3,
      0x1.7462b91b8df65p-3, 0x1.39fdcceb4bb45p-3, 0x1.2b5f68a50d903p-3};
  static constexpr double kAtanh[] = {
      0x1.5555555555555p-2, 0x1.999999999a55fp-3, 0x1.24924923379b4p-3, 0x1.c71c73ac80ad9p-4,
      0x1.745c70c1626f3p-4, 0x1.3b329b92ac709p-4, 0x1.0de861977b65fp-4, 0x1.1b46ed1ab2066p-4};
  static constexpr double kSine[] = {-0x1.5555555554994p-3,  0x1.1111110fbb18dp-7,
                                     -0x1.a01a000cd7907p-13, 0x1.71dd8c4d483eep-19,
                                     -0x1.ae205b5e84f05p-26, 0x1.54dde1e3a0967p-33};
  static constexpr double kShortSine[] = {-0x1.5555555555555p-3,  0x1.1111111110babp-7,
                                          -0x1.a01a019e81f4bp-13, 0x1.71de379452125p-19,
                                          -0x1.ae6008b321baep-26, 0x1.5e0a44fa8765ap-33};
  static constexpr double kCosine[] = {0x1.5555555555555p-5,  -0x1.6c16c16c16963p-10,
                                       0x1.a01a019f4dd4cp-16, -0x1.27e4fa16bdc76p-22,
                                       0x1.1eeb67c12a0b4p-29, -0x1.907cce35dd891p-37};
  static constexpr double kTangent[] = {
      0x1.5555555555554p-2,   0x1.11111111116d6p-3,  0x1.ba1ba1b98442dp-5,   0x1.664f48b37dbe1p-6,
      0x1.226e2d34bb0f3p-7,   0x1.d6d572a896d5ap-9,  0x1.7d88753401a8cp-10,  0x1.368423d737847p-11,
      0x1.e3703a60fbeb4p-13,  0x1.f75c9f00b8240p-14, -0x1.d28530c593dffp-19, 0x1.204f54f70aa73p-14,
      -0x1.1c342e81417f5p-15, 0x1.326723fab873fp-16};
  static constexpr double kAsin[] = {
      0x1.5555555555556p-3, 0x1.3333333332eaap-4, 0x1.6db6db6e35217p-5, 0x1.f1c71c1baf1c5p-6,
      0x1.6e8bb21b0d9bap-6, 0x1.1c4d2df172182p-6, 0x1.c9cff8af3076fp-7, 0x1.781cd742184c7p-7,
      0x1.52816d4983b43p-7, 0x1.637b7e101b0dap-8, 0x1.1e9d59329c4d3p-6, -0x1.eb83e904a1bfcp-7,
      0x1.d8dbb348232e7p-6};
  static constexpr double kAtan[] = {
      -0x1.5555555555555p-2, 0x1.9999999999953p-3, -0x1.249249248d768p-3, 0x1.c71c71c2fe5d9p-4,
      -0x1.745d165cb83aap-4, 0x1.3b1392b641b06p-4, -0x1.110e858a72e28p-4, 0x1.e199da4156fd9p-5,
      -0x1.ac78ec6b8cb98p-5, 0x1.74d64aa665b0ap-5, -0x1.1b2058fb5da30p-5, 0x1.0aa87c56e3eb5p-6};
  static constexpr double kTanh[] = {
      -0x1.5555555555554p-2,  0x1.1111111110c98p-3,  -0x1.ba1ba1b99f318p-5,  0x1.664f485871b6cp-6,
      -0x1.226e2df7c7c3ap-7,  0x1.d6d24c993898ap-9,  -0x1.7d8a70acb37f1p-10, 0x1.344e0e6e343b0p-11,
      -0x1.e7048076c04edp-13, 0x1.55e6e7f55c259p-14, -0x1.335133040afafp-16};
  static constexpr double kSinhWide[] = {
      0x1.5555555555555p-3,  0x1.1111111111111p-7,  0x1.a01a01a01a001p-13, 0x1.71de3a556f9acp-19,
      0x1.ae64567924223p-26, 0x1.612467d1c2fabp-33, 0x1.ae777839b3498p-41, 0x1.99f1ba85cd318p-49};
  static constexpr double kErf[] = {
      0x1.06eba8214db68p-3,  -0x1.812746b0379b4p-2,  0x1.ce2f21a03d6ebp-4,
      -0x1.b82ce30f20f12p-6, 0x1.565bcbf624b99p-8,   -0x1.c02d4ea487e5ep-11,
      0x1.f98d9341e830bp-14, -0x1.f2223c882dc23p-17, 0x1.8b34e669056f5p-20};
  static constexpr double kCbrt[] = {0x1.dece4054e25fap+0, -0x1.d85e6c68764a9p+0,
                                     0x1.8978659d6583cp+0, -0x1.5fb22710f082bp-1,
                                     0x1.feeff4d33cdacp-4};
};

// What is used where there are fused operations.
template <class T>
struct Fused;
template <>
struct Fused<float> {
  static constexpr float kInvPi = 0x1.45f3060000000p-2f;
  static constexpr float kPiA = 0x1.921fb40000000p+1f;
  static constexpr float kPiB = 0x1.4442d20000000p-23f;
  static constexpr float kPiC = -0x1.ee59da0000000p-49f;
  static constexpr float kInvLn2High = 0x1.7154760000000p+0f;
  static constexpr float kInvLn2Low = 0x1.4ae0c00000000p-26f;
  static constexpr float kInvLn10High = 0x1.bcb7b20000000p-2f;
  static constexpr float kInvLn10Low = -0x1.5b235e0000000p-27f;
  static constexpr float kHalfTurn[] = {-0x1.5555300000000p-5f, 0x1.110ed40000000p-7f,
                                        -0x1.9f6fea0000000p-13f, 0x1.5dbcae0000000p-19f};
  static constexpr float kTangent[] = {
      0x1.2d45e40000000p-3f, 0x1.d8de1e0000000p-2f, 0x1.bf89180000000p-3f, 0x1.ab65460000000p-4f,
      0x1.987c060000000p-5f, 0x1.887f200000000p-6f, 0x1.7bfa160000000p-7f, 0x1.222ff40000000p-8f};
  static constexpr float kLog[] = {
      -0x1.fffff80000000p-2f, 0x1.5555500000000p-2f,  -0x1.0004260000000p-2f,
      0x1.99a3f20000000p-3f,  -0x1.54276e0000000p-3f, 0x1.22719a0000000p-3f,
      -0x1.0f375a0000000p-3f, 0x1.0848720000000p-3f,  -0x1.3830800000000p-4f};
  static constexpr float kLog2[] = {
      -0x1.7154700000000p-1f, 0x1.ec70960000000p-2f,  -0x1.715a720000000p-2f,
      0x1.277e3c0000000p-2f,  -0x1.eabd100000000p-3f, 0x1.a305940000000p-3f,
      -0x1.8748440000000p-3f, 0x1.7d479e0000000p-3f,  -0x1.c264ea0000000p-4f};
  static constexpr float kLog10[] = {
      -0x1.bcb7aa0000000p-3f, 0x1.287a720000000p-3f,  -0x1.bcbee60000000p-4f,
      0x1.63cf240000000p-4f,  -0x1.27743c0000000p-4f, 0x1.f88d700000000p-5f,
      -0x1.d7269e0000000p-5f, 0x1.cb1b480000000p-5f,  -0x1.0f2a100000000p-5f};
  static constexpr float kCbrt[] = {0x1.56b6360000000p-2f, 0x1.ca39000000000p-3f};
  static constexpr float kRsqrt[] = {0x1.008dd80000000p-1f, 0x1.814e7e0000000p-2f};
  static constexpr float kExp[] = {0x1.0000000000000p-1f, 0x1.55548c0000000p-3f,
                                   0x1.55545c0000000p-5f, 0x1.123cde0000000p-7f,
                                   0x1.6db6640000000p-10f};
  static constexpr float kExpRest[] = {0x1.5555560000000p-3f, 0x1.5554e40000000p-5f,
                                       0x1.1110940000000p-7f, 0x1.6d50860000000p-10f,
                                       0x1.a19df00000000p-13f};
  static constexpr float kTanh[] = {
      -0x1.55554e0000000p-2f, 0x1.110f340000000p-3f, -0x1.b9c9f20000000p-5f, 0x1.62ef7e0000000p-6f,
      -0x1.0ed00c0000000p-7f, 0x1.52840c0000000p-9f, -0x1.dd95e00000000p-12f};
  static constexpr float kAsinh[] = {-0x1.5555540000000p-3f, 0x1.3332040000000p-4f,
                                     -0x1.6d77ec0000000p-5f, 0x1.ebac440000000p-6f,
                                     -0x1.471d2e0000000p-6f, 0x1.2bb3d60000000p-7f};
  static constexpr float kAtanh[] = {0x1.55553e0000000p-2f, 0x1.99a7200000000p-3f,
                                     0x1.2341a80000000p-3f, 0x1.e4c1ca0000000p-4f,
                                     0x1.a112a60000000p-5f, 0x1.6b360c0000000p-3f};
  static constexpr float kAtan[] = {
      0x1.da7a860000000p-5f, -0x1.a1494e0000000p-3f, 0x1.55a2960000000p-4f, -0x1.49b2940000000p-5f,
      0x1.5914500000000p-6f, -0x1.7af2b00000000p-7f, 0x1.a3fa3c0000000p-8f, -0x1.e2a1ce0000000p-9f,
      0x1.737e560000000p-9f, -0x1.cbc8ba0000000p-10f};
  static constexpr float kErfNear[] = {-0x1.1ae14e0000000p-5f, -0x1.1fd1640000000p-2f,
                                       0x1.4543660000000p-4f,  -0x1.2b8df60000000p-6f,
                                       0x1.c82b760000000p-9f,  -0x1.286f2c0000000p-11f,
                                       0x1.496a5e0000000p-14f};
  static constexpr float kErfFar[] = {
      0x1.0dcb700000000p-1f,  -0x1.9dd3fa0000000p-2f,  0x1.49bf7a0000000p-5f,
      0x1.68fe2c0000000p-5f,  -0x1.31cec00000000p-7f,  -0x1.ce5ad80000000p-9f,
      0x1.645b580000000p-10f, -0x1.7afb3e0000000p-15f, -0x1.74276a0000000p-16f};
  static constexpr float kGeluUnit = 0x1.691a1e0000000p-1f;
  static constexpr float kGeluPerUnit = 0x1.6afa4e0000000p+0f;
  static constexpr float kGeluLinear = 0x1.9faa800000000p+0f;
  static constexpr float kGeluCubic = 0x1.2962540000000p-4f;
  static constexpr float kGeluSlope = -0x1.19caa60000000p-6f;
  static constexpr float kGeluExp[] = {0x1.ee8a1c0000000p-2f, 0x1.4405140000000p-3f,
                                       0x1.3e72400000000p-5f, 0x1.f6d48c0000000p-8f,
                                       0x1.49823a0000000p-10f};
};
template <>
struct Fused<double> {
  static constexpr double kInvPi = 0x1.45f306dc9c883p-2;
  static constexpr double kPiA = 0x1.921fb54442d18p+1;
  static constexpr double kPiB = 0x1.1a62633100000p-53;
  static constexpr double kPiC = 0x1.1701b839a2520p-87;
  static constexpr double kInvLn2High = 0x1.71547652b82fep+0;
  static constexpr double kInvLn2Low = 0x1.777d0ffda0d24p-56;
  static constexpr double kInvLn10High = 0x1.bcb7b1526e50ep-2;
  static constexpr double kInvLn10Low = 0x1.95355baaafad3p-57;
  static constexpr double kHalfTurn[] = {
      -0x1.b049b73be5f2cp-4,  -0x1.179d955a0ed18p-3,  0x1.da80bd5f9468dp-8,
      -0x1.753ca54e463dbp-13, 0x1.527b7ddcc536ap-19,  -0x1.8f55f19b6c96ep-26,
      0x1.4af9600f1f780p-33,  -0x1.96851b4629f57p-41, 0x1.880f26d7f02a1p-49};
  static constexpr double kCbrt[] = {0x1.5553d43e8823ap-2, 0x1.c9afb6fee06ebp-3,
                                     0x1.65cbcd7aadb65p-3};
  static constexpr double kAtan[] = {
      -0x1.55555555553b3p-2, 0x1.999999996a644p-3, -0x1.24924915aed4bp-3, 0x1.c71c6d0e0738cp-4,
      -0x1.745ca673a62bfp-4, 0x1.3b0cf3eac4730p-4, -0x1.10cbc7c384ea2p-4, 0x1.de0999c1bd604p-5,
      -0x1.9c0f74862a640p-5, 0x1.43c6a044f8ce7p-5, -0x1.896a69007b715p-6, 0x1.03cb3ea57d6c0p-7};
  static constexpr double kErfcTail[] = {
      -0x1.4fe731b075ac9p-4,  -0x1.0720069d944cep-2,  0x1.8ebb93ae4c50bp-2,   -0x1.7a3c537e15b08p-2,
      0x1.16d42b9b693d6p-2,   -0x1.4e552ccd84295p-3,  0x1.453b6cdec07d0p-4,   -0x1.ecb79e935c6d5p-6,
      0x1.ff9d1cf517373p-8,   -0x1.591811db61b11p-11, -0x1.008c414f808c0p-11, 0x1.e23512dced139p-13,
      -0x1.0057c52176811p-16, -0x1.75bd655550eaep-16, 0x1.cfe32afcb536ep-18,  0x1.87ba86a9282fbp-20,
      -0x1.34eb96cb83024p-20, -0x1.cbb00846f8007p-25, 0x1.5ba01fd43fe8bp-23,  0x1.0a05bb1334553p-28,
      -0x1.2b16fa9754192p-26, -0x1.5e755c974cfd8p-29};
  static constexpr double kNormalTail[] = {
      -0x1.3b432786a6314p-3,  -0x1.b2bbe58497313p-3, 0x1.5877a5db73e83p-2,   -0x1.2f7f6bd569569p-2,
      0x1.86b7d7a6f844ap-3,   -0x1.7b6c33a2a9ac8p-4, 0x1.05bdbc42444a6p-5,   -0x1.8039d3dc774a6p-8,
      -0x1.b92bdcf03d3edp-11, 0x1.c982f6fd79d80p-11, -0x1.2c8464aceb50cp-13, -0x1.2a5ad3bdaa2b2p-14,
      0x1.08a986fb6141dp-15,  0x1.3ae1e2c6d80ebp-18, -0x1.4e0fab968ff95p-18, -0x1.19bbe976b8a88p-22,
      0x1.a3553f12ad459p-21,  0x1.0237b757f1aedp-25, -0x1.1780893a0bda3p-23, -0x1.81f22cca3ec5fp-26,
      0x1.68e513de86d9ep-27,  0x1.b047e2b3fda6cp-29};
  static constexpr double kGeluUnit = 0x1.62e430890c2f2p-1;
  static constexpr double kGeluPerUnit = 0x1.715475b311d73p+0;
  static constexpr double kGeluLinear = 0x1.988453edda340p+0;
  static constexpr double kGeluCubic = 0x1.2444f3232f770p-4;
  static constexpr double kGeluSlope = -0x1.baa4a94f8c3acp-26;
  static constexpr double kGeluExp[] = {
      0x1.fffffe455b589p-2,  0x1.5555539ab0ad8p-3,  0x1.555553071f06bp-5,  0x1.11110ec2dc6c4p-7,
      0x1.6c16bdd5be1d8p-10, 0x1.a019fcd04dab6p-13, 0x1.a0198fdb3843cp-16, 0x1.71ddd9163db74p-19,
      0x1.28b14f25f71cap-22, 0x1.af8733c46c33dp-26};
};

}  // namespace cuop::jit::accurate
