// All that nccl.h needs of the CUDA toolkit, which pip does not install.
#pragma once

#include <stddef.h>

typedef struct CUstream_st* cudaStream_t;
