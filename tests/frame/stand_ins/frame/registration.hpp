#pragma once

// Stands for the header of the frame, because Python is not in the program of the tests.

#include "frame/backend.hpp"
