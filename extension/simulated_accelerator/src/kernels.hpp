#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/ScalarOps.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "hooks.hpp"

namespace sim {

using at::Tensor;

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

// Queues a kernel on the current stream of the tensor's device. Its caller is below
// autograd, and so must be the thread that runs it, which does not know of the caller's
// inference mode: autograd refuses to write to a tensor that was made in that mode.
template <class Kernel>
void launch(const char* name, const Tensor& tensor, Kernel kernel) {
  auto run = [kernel = std::move(kernel)]() mutable {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    kernel();
  };
  current_queue(tensor.device().index()).launch(name, std::move(run), false);
}

// [kernels]
// Kernels that run in the stream. The host checks what it can; other errors come late.
inline Tensor& fill(Tensor& self, const at::Scalar& value) {
  at::assert_no_internal_overlap(self);
  const Tensor element = at::scalar_tensor(value, self.scalar_type()); // may throw
  launch("fill", self, [to = on_host(self), element] { to.copy_(element); });
  return self;
}

inline Tensor& zero(Tensor& self) { return fill(self, 0); }

// All that has no kernel here: copies the arguments to the host, runs the kernel of the
// CPU, and copies the results back, in the order of the current stream. A kernel that
// takes a generator gets that of the device.
inline void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  c10::DeviceIndex device = -1; // of the tensors, or else the current one
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& value = (*stack)[stack->size() - arguments.size() + i];
    const bool is_one = value.isTensor() && value.toTensor().defined();
    if (is_one) device = std::max(device, value.toTensor().device().index());
    if (arguments[i].name() != "generator" || !value.isNone()) continue;
    value = hooks.getDefaultGenerator(device);
  }
  at::native::cpu_fallback(op, stack);
}

// Runs an operation with a last argument `out` in the stream, if all its tensors have one
// floating type; other cases go to the CPU. A number that the host knows is copied, as the
// arguments of a kernel are.
inline void in_stream(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const Tensor out = stack->back().toTensor();
  torch::jit::Stack arguments(stack->end() - count, stack->end());
  std::vector<int64_t> sizes;
  bool fits = at::isFloatingType(out.scalar_type());
  for (auto& value : arguments) {
    if (!value.isTensor()) continue;
    const auto& tensor = value.toTensor();
    const bool number = tensor.is_cpu() && tensor.dim() == 0 && !tensor.is_complex();
    fits = fits && (number || tensor.options().type_equal(out.options())) &&
        (number || tensor.device() == out.device());
    if (&value != &arguments.back()) sizes = at::infer_size(sizes, tensor.sizes());
    if (!fits) break;
    value = number ? at::native::wrapped_scalar_tensor(tensor.item()) : on_host(tensor);
  }
  if (!fits || out.sizes() != sizes) return fallback(op, stack);
  at::assert_no_internal_overlap(out);
  launch(op.schema().name().c_str() + sizeof("aten::") - 1, out,
      [op, arguments]() mutable { op.callBoxed(arguments); });
  torch::jit::drop(*stack, count);
  stack->push_back(out);
}
// [/kernels]

// [copy]
// Copies run in the stream, too. The host waits for them, unless its memory is pinned
// and the program asks for a copy that does not block.
inline Tensor copy_from(const Tensor& self, const Tensor& to, bool non_blocking) {
  at::assert_no_internal_overlap(to);
  const Tensor from = self.expand_as(to);
  const Tensor& one = to.is_cpu() ? from : to; // on the device whose stream copies
  auto& queue = current_queue(one.device().index());
  const bool across = !from.is_cpu() && !to.is_cpu() && from.device() != to.device();
  auto& other = across ? current_queue(from.device().index()) : queue;
  driver.wait(queue, driver.mark(other)); // the streams of both devices
  const Tensor& host = to.is_cpu() ? to : from;
  const bool pinned = host.is_cpu() && pinned_pool.owns(host.data_ptr());
  if (pinned) pinned_pool.record(host.data_ptr(), queue);
  launch("copy", one, [to = on_host(to), from = on_host(from)] { to.copy_(from); });
  driver.wait(other, driver.mark(queue));
  const bool blocks = host.is_cpu() && !(non_blocking && pinned);
  if (blocks) driver.wait(driver.mark(queue));
  return to;
}
// [/copy]

inline Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  if (to.sizes() != self.sizes()) to.resize_(self.sizes());
  return copy_from(self, to, false);
}

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

inline Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
    std::optional<at::ScalarType> dtype, std::optional<at::Layout> /* dense */,
    std::optional<at::Device> device, std::optional<bool> pin) {
  TORCH_CHECK_VALUE(!pin.value_or(false), "sim: only tensors of the CPU can be pinned");
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(
      size, stride, &allocator, kKeys, c10::dtype_or_default(dtype));
}

inline std::vector<int64_t> strides_of(
    at::IntArrayRef size, std::optional<at::MemoryFormat> format = std::nullopt) {
  return at::empty(size, at::device(at::kMeta), format).strides().vec();
}

inline Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout, std::optional<at::Device> device,
    std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  return empty_strided(size, strides_of(size, format), dtype, layout, device, pin);
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
    hooks.resizePrivateUse1Bytes(self.storage(), bytes);
  }
}

inline const Tensor& resize(
    const Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  if (format == at::MemoryFormat::Preserve) format = self.suggest_memory_format();
  show(self, self.storage_offset(), size, strides_of(size, format));
  return self;
}

inline Tensor& set_part(Tensor& self, at::Storage source, int64_t offset,
    at::IntArrayRef size, at::IntArrayRef stride) {
  TORCH_CHECK_VALUE(source.device() == self.device(), "sim: a tensor of ",
      self.device(), " cannot show memory of ", source.device());
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  show(self, offset, size, stride.data() ? stride.vec() : strides_of(size));
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
  allocator.recordStream(self.storage().data_ptr(), stream);
}

// Lets `tensor.data = other` change the device, which FSDP's offload does.
inline bool can_show(const Tensor& self, const Tensor& from) {
  return self.layout() == at::kStrided && from.layout() == at::kStrided;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Scalar", TORCH_FN(fill));
  m.impl("zero_", TORCH_FN(zero));
  for (const char* name : {"add.out", "sub.out", "mul.out", "div.out"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&in_stream>());
  }
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
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
