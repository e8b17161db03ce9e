#pragma once

// 10000 * major + 100 * minor + patch. Only macros, so that a project can compare it
// before it includes anything else: another major version may need other code.
#define C10D_FRAME_VERSION 10101
