#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "hooks.hpp"

namespace sim {

using at::Tensor;

// [view]
// The memory of a tensor as a tensor of the CPU. It knows the address and owns nothing,
// as a kernel of a GPU does: if the memory is given to another tensor before the kernel
// runs, the kernel reads what is there then.
inline Tensor on_host(const Tensor& tensor) {
  const auto options = at::TensorOptions(tensor.scalar_type());
  Tensor view =
      at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), options);
  view._set_conj(tensor.is_conj());
  view._set_neg(tensor.is_neg());
  return view;
}
// [/view]

// Queues a kernel on the current stream of the device that is guarded.
template <class Kernel>
void launch(const char* name, const Tensor& tensor, Kernel kernel) {
  current_queue(tensor.device().index()).launch(name, std::move(kernel), false);
}

// [kernels]
// Kernels that run in the stream. What could fail is checked before, on the host.
inline Tensor& fill(Tensor& self, const at::Scalar& value) {
  at::assert_no_internal_overlap(self);
  const Tensor element = at::scalar_tensor(value, self.scalar_type()); // may throw
  launch("fill", self, [to = on_host(self), element] { to.copy_(element); });
  return self;
}

inline Tensor& zero(Tensor& self) { return fill(self, 0); }

// Runs `kernel(out, a, b)` in the stream if all have one floating type. The caller runs
// other cases on the CPU. A number that the host knows is copied, as an argument is.
template <class Kernel>
bool binary(const char* name, const Tensor& a, const Tensor& b, Tensor& out,
    const Kernel& kernel) {
  const auto fits = [&](const Tensor& x) {
    const bool number = x.is_cpu() && x.dim() == 0;
    return number ||
        (x.scalar_type() == out.scalar_type() && x.device() == out.device());
  };
  if (!at::isFloatingType(out.scalar_type()) || !fits(a) || !fits(b)) return false;
  if (at::result_type(a, b) != out.scalar_type()) return false;
  at::native::resize_output(out, at::infer_size(a.sizes(), b.sizes()));
  at::assert_no_internal_overlap(out);
  const auto argument = [](const Tensor& x) {
    return x.is_cpu() ? at::scalar_tensor(x.item(), x.scalar_type()) : on_host(x);
  };
  launch(name, out, [kernel, to = on_host(out), x = argument(a), y = argument(b)] {
    Tensor target = to;
    kernel(target, x, y);
  });
  return true;
}

// All that has no kernel here: copies the arguments to the host, runs the kernel of the
// CPU, and copies the results back, in the order of the current stream. Random numbers
// come from the generator of the device.
inline void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& value = (*stack)[stack->size() - arguments.size() + i];
    if (arguments[i].name() != "generator" || !value.isNone()) continue;
    value = hooks().getDefaultGenerator(-1);
  }
  at::native::cpu_fallback(op, stack);
}

inline Tensor& add(
    const Tensor& a, const Tensor& b, const at::Scalar& alpha, Tensor& out) {
  const bool launched = binary("add", a, b, out,
      [alpha](Tensor& to, auto& x, auto& y) { at::add_out(to, x, y, alpha); });
  if (launched) return out;
  return at::native::call_fallback_fn<&fallback, ATEN_OP2(add, out)>::call(
      a, b, alpha, out);
}

inline Tensor& mul(const Tensor& a, const Tensor& b, Tensor& out) {
  const bool launched = binary(
      "mul", a, b, out, [](Tensor& to, auto& x, auto& y) { at::mul_out(to, x, y); });
  if (launched) return out;
  return at::native::call_fallback_fn<&fallback, ATEN_OP2(mul, out)>::call(a, b, out);
}
// [/kernels]

// [copy]
// Copies run in the stream, too. The host waits for them, unless its memory is pinned
// and the program asks for a copy that does not block.
inline Tensor copy_from(const Tensor& self, const Tensor& to, bool non_blocking) {
  at::assert_no_internal_overlap(to);
  const Tensor from = self.expand_as(to);
  const Tensor& one = to.is_cpu() ? from : to; // of the device whose stream copies
  auto& queue = current_queue(one.device().index());
  const bool across = !from.is_cpu() && !to.is_cpu() && from.device() != to.device();
  auto& other = across ? current_queue(from.device().index()) : queue;
  Driver::get().wait(queue, Driver::get().mark(other)); // of both devices
  const Tensor& host = to.is_cpu() ? to : from;
  const bool pinned = host.is_cpu() && pinned_pool().owns(host.data_ptr());
  const bool blocks = host.is_cpu() && !(non_blocking && pinned);
  if (blocks) { // the host stays, and so do its tensors
    const Tensor target = to.is_cpu() ? to : on_host(to);
    const Tensor source = from.is_cpu() ? from : on_host(from);
    launch("copy", one, [&target, &source] { target.copy_(source); });
    Driver::get().wait(Driver::get().mark(queue));
    return to;
  }
  if (pinned) pinned_pool().record(host.data_ptr(), queue);
  launch("copy", one, [to = on_host(to), from = on_host(from)] { to.copy_(from); });
  Driver::get().wait(other, Driver::get().mark(queue));
  return to;
}
// [/copy]

inline Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  if (to.sizes() != self.sizes()) to.resize_(self.sizes());
  return copy_from(self, to, false);
}

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

inline Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout, std::optional<at::Device> device,
    std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::layout_or_default(layout) == at::kStrided,
      "sim: the device has dense tensors only");
  TORCH_CHECK_VALUE(!pin.value_or(false), "sim: only tensors of the CPU can be pinned");
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(
      size, &allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

inline Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
    std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<at::Device> device, std::optional<bool> pin) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::layout_or_default(layout) == at::kStrided,
      "sim: the device has dense tensors only");
  TORCH_CHECK_VALUE(!pin.value_or(false), "sim: only tensors of the CPU can be pinned");
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(
      size, stride, &allocator(), kKeys, c10::dtype_or_default(dtype));
}

// Changes what the tensor shows of its storage, which grows if it is too small.
inline void show(
    const Tensor& self, int64_t offset, at::IntArrayRef size, at::IntArrayRef stride) {
  auto* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(size, stride);
  const auto bytes =
      at::detail::computeStorageNbytes(size, stride, self.element_size(), offset);
  if (bytes > self.storage().nbytes()) {
    hooks().resizePrivateUse1Bytes(self.storage(), bytes);
  }
}

inline const Tensor& resize(
    const Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  auto memory = format.value_or(at::MemoryFormat::Contiguous);
  if (memory == at::MemoryFormat::Preserve) memory = self.suggest_memory_format();
  const auto stride = at::empty(size, at::device(at::kMeta).memory_format(memory));
  show(self, self.storage_offset(), size, stride.strides());
  return self;
}

inline Tensor& set_part(Tensor& self, at::Storage source, int64_t offset,
    at::IntArrayRef size, at::IntArrayRef stride) {
  TORCH_CHECK_VALUE(source.device() == self.device(), "sim: a tensor of ",
      self.device(), " cannot show memory of ", source.device());
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  const auto plain = at::empty(size, at::device(at::kMeta));
  show(self, offset, size, stride.data() ? stride : plain.strides());
  return self;
}

inline Tensor& set_all(Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.element_size());
  return set_part(self, std::move(source), 0, {count}, {});
}

inline Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_part(self, source.storage(), source.storage_offset(), source.sizes(),
      source.strides());
}

inline void record_stream(Tensor& self, at::Stream stream) {
  allocator().recordStream(self.storage().data_ptr(), stream);
}

inline at::Scalar item(const Tensor& self) { return self.cpu().item(); }

// Lets `tensor.data = other` change the device, which FSDP's offload does.
inline bool can_show(const Tensor& self, const Tensor& from) {
  const auto dense = [](const Tensor& x) {
    return x.layout() == at::kStrided && (x.is_cpu() || x.is_privateuseone());
  };
  return dense(self) && dense(from);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Scalar", TORCH_FN(fill));
  m.impl("zero_", TORCH_FN(zero));
  m.impl("add.out", TORCH_FN(add));
  m.impl("mul.out", TORCH_FN(mul));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(item));
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_part));
  m.impl("set_.source_Storage", TORCH_FN(set_all));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(can_show));
  // Views do not touch the memory.
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

// A copy resolves lazy conjugation and negation itself. Without these two lines, PyTorch
// would resolve them by a copy, which would never end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

} // namespace sim
