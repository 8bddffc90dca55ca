// What the stand-ins let others see: their entry points alone.
#pragma once

#define CUOP_SIMULATOR_EXPORTED [[gnu::visibility("default")]]
#define CUOP_SIMULATOR_ENTRY extern "C" CUOP_SIMULATOR_EXPORTED
