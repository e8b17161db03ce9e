#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace frame {

using Bytes = std::span<std::byte>;
using Pieces = std::span<const Bytes>; // one for each rank, or one
using Blob = std::vector<std::byte>; // bytes that own their memory
using Blobs = std::vector<Blob>;

// The bytes of part number `index`, when `bytes` are cut into parts of `size`.
inline Bytes part(Bytes bytes, size_t index, size_t size) {
  const size_t start = std::min(index * size, bytes.size());
  return bytes.subspan(start, std::min(size, bytes.size() - start));
}

// The number of such parts. An empty tensor has one, which carries the note.
inline size_t parts(size_t bytes, size_t size) {
  return std::max<size_t>(1, (bytes + size - 1) / size);
}

// Fills `to`, or copies all of `from`.
inline void copy(Bytes to, std::span<const std::byte> from) {
  const size_t size = std::min(to.size(), from.size());
  if (to.data() != from.data() && size > 0) std::memmove(to.data(), from.data(), size);
}

} // namespace frame
