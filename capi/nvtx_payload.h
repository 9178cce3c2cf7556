// Payloads of NVTX ranges: problem sizes of a call.  Arguments have not been checked yet,
// so NULL and structs of any size are accepted.  Entry of functions with a descriptor.
#pragma once

#include <type_traits>

#include "capi/context.h"

namespace mp {

inline Message payload_text(const mp_gemm_desc_t &d) {
  const auto op = [](const mp_op_t &field) { return enum_value(field) == MP_OP_T ? "T" : "N"; };
  return Message("m = ", d.m, ", n = ", d.n, ", k = ", d.k, ", batch = ", d.batch_count,
                 ", op = ", op(d.op_a), op(d.op_b), ", ", mp_dtype_name(d.dtype_ab), " to ",
                 mp_dtype_name(d.dtype_cd));
}

inline Message payload_text(const mp_conv2d_desc_t &d) {
  return Message("n = ", d.n, ", h = ", d.h, ", w = ", d.w, ", c = ", d.c, ", k = ", d.k,
                 ", r = ", d.r, ", s = ", d.s, ", stride = ", d.stride_h, " x ", d.stride_w,
                 ", groups = ", d.groups, ", ", mp_dtype_name(d.dtype), " to ",
                 mp_dtype_name(d.dtype_out));
}

inline Message payload_text(const mp_pool2d_desc_t &d) {
  return Message("n = ", d.n, ", h = ", d.h, ", w = ", d.w, ", c = ", d.c,
                 ", window = ", d.window_h, " x ", d.window_w, ", ", mp_dtype_name(d.dtype));
}

inline Message payload_text(const mp_rnn_desc_t &d) {
  return Message("batch = ", d.batch, ", timesteps = ", d.timesteps, ", input = ", d.input_size,
                 ", hidden = ", d.hidden_size, ", layers = ", d.layers, ", cell = ", d.cell,
                 ", flags = ", d.flags, ", ", mp_dtype_name(d.dtype));
}

inline Message payload_text(const mp_attention_desc_t &d) {
  return Message("batch = ", d.batch, ", heads = ", d.heads, " / ", d.kv_heads,
                 ", q_len = ", d.q_len, ", kv_len = ", d.kv_len, ", head_dim = ", d.head_dim, " / ",
                 d.head_dim_v, ", flags = ", d.flags, ", ", mp_dtype_name(d.dtype));
}

/// Defines the text of a descriptor: the names and values of fields, then the type.
#define MP_FIELD(name) #name " = ", d.name, ", ",
#define MP_PAYLOAD(Desc, ...)                                                  \
  inline Message payload_text(const Desc &d) {                                 \
    return Message(MP_FOR_EACH(MP_FIELD, __VA_ARGS__) mp_dtype_name(d.dtype)); \
  }
#define MP_PAYLOAD_TO(Desc, dtype_to, ...)                                            \
  inline Message payload_text(const Desc &d) {                                        \
    return Message(MP_FOR_EACH(MP_FIELD, __VA_ARGS__) mp_dtype_name(d.dtype), " to ", \
                   mp_dtype_name(d.dtype_to));                                        \
  }

MP_PAYLOAD(mp_xent_desc_t, rows, classes)
MP_PAYLOAD(mp_linear_xent_desc_t, rows, width, classes)
MP_PAYLOAD(mp_loss_desc_t, count, kind)
MP_PAYLOAD(mp_batchnorm_desc_t, rows, channels)
MP_PAYLOAD(mp_norm_desc_t, rows, columns, groups, kind)
MP_PAYLOAD(mp_pointwise_desc_t, rows, columns, op, activation)
MP_PAYLOAD_TO(mp_column_sum_desc_t, dtype_sum, rows, columns)
MP_PAYLOAD_TO(mp_sum_rows_desc_t, dtype_sum, rows, period, columns)
MP_PAYLOAD(mp_glu_desc_t, rows, columns, activation)
MP_PAYLOAD(mp_strided_copy_desc_t, rank)
MP_PAYLOAD_TO(mp_embedding_desc_t, dtype_dtable, num_indices, num_embeddings, embedding_dim, flags)
MP_PAYLOAD(mp_dropout_desc_t, count, p)
MP_PAYLOAD(mp_rope_desc_t, rows, heads, head_dim, rotary_dim, flags)
MP_PAYLOAD(mp_softmax_desc_t, rows, columns, mask, flags)
#undef MP_FIELD
#undef MP_PAYLOAD
#undef MP_PAYLOAD_TO

Message payload_text(const mp_tensor_list &);
Message payload_text(const mp_optimizer &);
/// A scaler has no sizes.
inline Message payload_text(const mp_scaler &) {
  return Message();
}

/// Returns a function, for mp::call, that formats a descriptor or an object.
template <class Subject>
auto nvtx_payload(const Subject *subject) {
  return [subject] {
    if (subject == nullptr) return Message();
    if constexpr (requires { subject->struct_size; }) {
      if (subject->struct_size < kFirstSize<Subject>) return Message();
    }
    return payload_text(*subject);
  };
}

/// Returns a function, for mp::call, that formats a number with its name.
template <class Number>
auto nvtx_payload(const char *name, Number number) {
  return [=] { return Message(name, " = ", number); };
}

// ---------------------------------------------------------------------------- entry

/// Runs the body of an API function that takes a context and a descriptor.
/// @param read  returns the checked descriptor
/// @param body  (const Context &, const Desc &)
template <class Desc, class Body>
mp_status_t call(const char *function, mp_context_t context, const Desc *desc,
                 std::type_identity_t<Desc> (*read)(const Desc *), const Body &body) {
  return call(function, nvtx_payload(desc), [&] {
    const Context &c = *require_context(context);
    body(c, read(desc));
  });
}

/// Runs the body of an API function of an object: a tensor list, a scaler or an optimizer.
/// @param body  (const Context &, Object &)
template <class Object, class Body>
mp_status_t call(const char *function, Object *object, const char *name, const Body &body) {
  return call(function, nvtx_payload(object), [&] {
    Object &o = require_pointer(object, name);
    body(*o.context, o);
  });
}

}  // namespace mp
