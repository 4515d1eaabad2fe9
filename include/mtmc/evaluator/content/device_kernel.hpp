#pragma once
/// The judge's own kernel: what the host's versions of filling, masking, looking and comparing do, done where
/// the buffers lie.

#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/content_finding.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What one job of the judge's kernel does. Jobs that write come first.
enum class DeviceJobKind : std::uint32_t {
  /// `count` times the byte `stream`.
  write_byte,
  /// `count` bytes as `philox_fill` makes them, again from the start after every `period` bytes.
  write_noise,
  /// `count` elements as `fill_values` makes them; f32 may be stored as f64 (`other_type`).
  write_values,
  /// `count` bytes of `other`, each changed by the noise of `key`; the same once more takes the mask off.
  write_masked,
  /// How many of `count` bytes are not the noise.
  look_for_noise,
  /// How many of `count` elements are not as `fill_values` makes them.
  look_for_values,
  /// How many of `count` elements have other bits than those that `other` holds under the mask of `key`.
  look_for_bits,
  /// `compare_output` of `count` elements with what `other` holds, of `other_type`, under the mask of `key`.
  compare,
  /// Sum and number of the finite magnitudes among `count` elements.
  add_magnitudes
};

/// One job. The kernel's text declares the same.
struct DeviceJob {
  std::uint64_t target = 0;
  std::uint64_t other = 0;
  std::uint64_t count = 0;
  std::uint64_t key = 0;
  std::uint64_t stream = 0;
  std::uint64_t period = 0;
  /// Bounds of values, or the tolerance's `relative` and `scale`.
  double low = 0;
  double high = 0;
  DeviceJobKind kind = DeviceJobKind::write_byte;
  DataType type = DataType::u8;
  Distribution distribution = Distribution::normal;
  std::uint32_t has_range = 0;
  std::uint32_t rare = 0;
  /// Blocks of the grid that share the job, and where the first of them puts what it found.
  std::uint32_t blocks = 1;
  std::uint32_t first_finding = 0;
  DataType other_type = DataType::u8;
  /// As in `ElementShape`.
  std::uint64_t slice = 1;
  std::int32_t exponent = 0;
  std::uint32_t unused = 0;
};
static_assert(sizeof(DeviceJob) == 112 && sizeof(DataType) == 4 && sizeof(Distribution) == 4);
static_assert(static_cast<int>(DataType::bf16) == 3 && static_cast<int>(DataType::i8) == 7 &&
              static_cast<int>(DataType::u8) == 11);
static_assert(static_cast<int>(Distribution::mostly_zero) == 5 &&
              static_cast<int>(Distribution::structured) == 11);

/// What a block, or all blocks of a job together, found.
using DeviceFinding = ContentFinding;
static_assert(sizeof(DeviceFinding) == 56);

inline constexpr std::int64_t device_kernel_threads = 256;
/// Bytes or elements that a thread handles at a time.
inline constexpr std::uint64_t device_kernel_step = 16;

/// One block of the grid's first axis for each part of a job, one of the second for each job.
inline constexpr std::string_view device_kernel_text = R"cuda(
//@ launch judge_work<<<(1, 1), 256>>>(jobs, findings)
typedef unsigned char byte;
typedef unsigned int word;
typedef unsigned long long wide;

struct Job {
  wide target, other, count, key, stream, period;
  double low, high;
  word kind, type, distribution, has_range, rare, blocks, first_finding, other_type;
  wide slice;
  int exponent;
  word unused;
};
struct Finding {
  wide checked, wrong, first_wrong, last_wrong;
  double largest_error, magnitudes, finite;
};
enum Kind {
  write_byte, write_noise, write_values, write_masked,
  look_for_noise, look_for_values, look_for_bits, compare, add_magnitudes
};
enum Type { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8 };
enum Distribution {
  normal, heavy_tail, large_offset, sparse_spikes, small_integers, mostly_zero, tiny, huge, slices, magnitudes,
  far_slices, structured
};

__device__ __forceinline__ word width_of(word type) {
  return type == f64 || type == i64 || type == u64   ? 8
         : type == f32 || type == i32 || type == u32 ? 4
         : type == i8 || type == u8                  ? 1
                                                     : 2;
}
__device__ __forceinline__ bool is_signed(word type) { return type < u64; }

/// 16 bytes, or what is left of them. Words are chosen by conditions, not by an index, which would put them
/// in memory; loops are not unrolled, which would make the compiler take twice as long.
struct Chunk { word at[4]; };
__device__ __forceinline__ word word_at(const Chunk& chunk, word i) {
  const word low = i & 1 ? chunk.at[1] : chunk.at[0], high = i & 1 ? chunk.at[3] : chunk.at[2];
  return i & 2 ? high : low;
}
__device__ __forceinline__ void add_to_word(Chunk& chunk, word i, word bits) {
  chunk.at[0] |= i == 0 ? bits : 0;
  chunk.at[1] |= i == 1 ? bits : 0;
  chunk.at[2] |= i == 2 ? bits : 0;
  chunk.at[3] |= i == 3 ? bits : 0;
}
__device__ __noinline__ Chunk philox(wide counter, wide stream, wide key) {
  word a = (word)counter, b = (word)(counter >> 32), c = (word)stream, d = (word)(stream >> 32);
  word first = (word)key, second = (word)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const wide left = 0xD2511F53ull * a, right = 0xCD9E8D57ull * c;
    a = (word)(right >> 32) ^ b ^ first;
    b = (word)right;
    c = (word)(left >> 32) ^ d ^ second;
    d = (word)left;
    first += 0x9E3779B9u;
    second += 0xBB67AE85u;
  }
  Chunk block = {{a, b, c, d}};
  return block;
}

__device__ __noinline__ Chunk load_bytes(const byte* from, word bytes) {
  Chunk chunk = {{0, 0, 0, 0}};
#pragma unroll 1
  for (word i = 0; i < bytes; ++i) add_to_word(chunk, i / 4, (word)from[i] << (8 * (i % 4)));
  return chunk;
}
__device__ __noinline__ void store_bytes(byte* to, const Chunk& chunk, word bytes) {
#pragma unroll 1
  for (word i = 0; i < bytes; ++i) to[i] = (byte)(word_at(chunk, i / 4) >> (8 * (i % 4)));
}
__device__ __forceinline__ Chunk load(const byte* from, word bytes) {
  if (bytes != 16 || ((wide)from & 15) != 0) return load_bytes(from, bytes);
  const uint4 whole = *(const uint4*)from;
  Chunk chunk = {{whole.x, whole.y, whole.z, whole.w}};
  return chunk;
}
__device__ __forceinline__ void store(byte* to, const Chunk& chunk, word bytes) {
  if (bytes == 16 && ((wide)to & 15) == 0)
    *(uint4*)to = make_uint4(chunk.at[0], chunk.at[1], chunk.at[2], chunk.at[3]);
  else
    store_bytes(to, chunk, bytes);
}
__device__ __forceinline__ Chunk noise_at(wide chunk, const Job& job) {
  return philox(chunk, job.stream, job.key);
}

__device__ __forceinline__ float half_value(word half) {
  const word mask = 0x7c00u << 13;
  word bits = (half & 0x7fffu) << 13;
  const word exponent = bits & mask;
  bits += (127u - 15u) << 23;
  if (exponent == mask) {
    bits += (128u - 16u) << 23;
  } else if (exponent == 0) {
    bits += 1u << 23;
    bits = __float_as_uint(__fadd_rn(__uint_as_float(bits), -0x1p-14f));
  }
  return __uint_as_float(bits | (half & 0x8000u) << 16);
}
__device__ __forceinline__ word half_bits(float value) {
  const word bits = __float_as_uint(value);
  const word magnitude = bits & 0x7fffffffu;
  word result;
  if (magnitude >= 0x47800000u)
    result = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  else if (magnitude < 0x38800000u)
    result = __float_as_uint(__fadd_rn(__uint_as_float(magnitude), 0.5f)) - 0x3f000000u;
  else
    result = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  return (result | ((bits >> 16) & 0x8000u)) & 0xffffu;
}
__device__ __forceinline__ float bfloat_value(word bits) { return __uint_as_float(bits << 16); }
__device__ __forceinline__ word bfloat_bits(float value) {
  const word bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return ((bits >> 16) | 0x40u) & 0xffffu;
  return ((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16) & 0xffffu;
}

/// The contents of inputs; the host's versions are in evaluator/content/input_generation.hpp.
__device__ __forceinline__ word scrambled(word random) { return random * 0x9E3779B1u; }
__device__ __forceinline__ float bell(word random) {
  const int coarse = (int)((random & 0x7ffu) + ((random >> 11) & 0x7ffu) + ((random >> 22) << 1));
  const int fine = (int)((random ^ (random >> 7) ^ (random >> 17)) & 0x1fffu);
  return __fmul_rn((float)(coarse * 8192 + fine - (3070 * 8192 + 4096)), 0x1p-23f);
}
__device__ __forceinline__ float unit(word random) { return __fmul_rn((float)(int)(random >> 8), 0x1p-24f); }
/// 2^k for k from -farthest to farthest.
__device__ __forceinline__ float power_within(word random, int farthest) {
  const word choices = 2 * farthest + 1;
  return __uint_as_float((word)((int)(((scrambled(random) >> 16) * choices) >> 16) - farthest + 127) << 23);
}
/// How one element is made: `ElementShape` and `SliceStyle` in one.
struct Style {
  word distribution, rare;
  float factor, offset;
};
__device__ __forceinline__ float shaped(word random, const Job& job, const Style& style) {
  switch (style.distribution) {
  case normal:
    return bell(random);
  case heavy_tail:
    return __fdiv_rn(bell(random), __fadd_rn(unit(scrambled(random)), job.type == f16 ? 0.2f : 0.02f));
  case large_offset:
    return __fadd_rn(bell(random), 16.0f);
  case sparse_spikes:
    return __fmul_rn(bell(random), scrambled(random) >> 26 == 0 ? 32.0f : 1.0f / 64.0f);
  case small_integers:
    return (float)((int)(((random >> 16) * 5u) >> 16) - 2);
  case magnitudes:
    return __fmul_rn(bell(random), power_within(random, abs(job.exponent)));
  default:
    return scrambled(random) < style.rare ? bell(random) : 0.0f;
  }
}
__device__ __forceinline__ float real_of(word random, const Job& job, const Style& style) {
  const float real = shaped(random, job, style);
  if (style.factor == 1.0f && style.offset == 0.0f) return real;
  return __fadd_rn(__fmul_rn(real, style.factor), style.offset);
}
__device__ __forceinline__ double fraction(word random) { return __dmul_rn((double)random, 0x1p-32); }
__device__ double place_in_domain(word random, const Job& job, const Style& style) {
  const double uniform = fraction(scrambled(random));
  const double width = __dsub_rn(job.high, job.low);
  const double background = job.low <= 0 && job.high >= 0 && width > 0 ? __ddiv_rn(-job.low, width) : 0;
  switch (style.distribution) {
  case normal:
    return __dadd_rn(__ddiv_rn((double)bell(random), 6.02), 0.5);
  case heavy_tail:
    return __dmul_rn(__dmul_rn(__dmul_rn(uniform, uniform), uniform), uniform);
  case large_offset:
    return __dsub_rn(1.0, __ddiv_rn(uniform, 16.0));
  case sparse_spikes:
    return (random >> 26) == 0 ? uniform : background;
  case mostly_zero:
    return scrambled(random) < style.rare ? fraction(random) : background;
  default: {
    const double value = round(__dadd_rn(job.low, __dmul_rn(uniform, width)));
    if (width >= 1 && value >= job.low && value <= job.high)
      return __ddiv_rn(__dsub_rn(value, job.low), width);
    return __ddiv_rn(floor(__dmul_rn(uniform, 5.0)), 4.0);
  }
  }
}
__device__ __forceinline__ bool inside(double value, const Job& job) {
  return value >= job.low && value <= job.high;
}
__device__ wide real_in_range(word random, const Job& job, const Style& style) {
  const double place = place_in_domain(random, job, style);
  double value = __dadd_rn(job.low, __dmul_rn(place, __dsub_rn(job.high, job.low)));
  value = value < job.low ? job.low : job.high < value ? job.high : value;
  if (job.type == f64) return (wide)__double_as_longlong(value);
  if (job.type == f32) {
    float real = __double2float_rn(value);
    if ((double)real > job.high) real = nextafterf(real, -__int_as_float(0x7f800000));
    if ((double)real < job.low) real = nextafterf(real, __int_as_float(0x7f800000));
    return __float_as_uint(real);
  }
  const bool half = job.type == f16;
  const float narrow = __double2float_rn(value);
  const word bits = half ? half_bits(narrow) : bfloat_bits(narrow);
  const word candidates[3] = {bits, (bits - 1) & 0xffffu, (bits + 1) & 0xffffu};
  for (int i = 0; i < 3; ++i)
    if (inside((double)(half ? half_value(candidates[i]) : bfloat_value(candidates[i])), job))
      return candidates[i];
  return bits;
}
__device__ __forceinline__ long long within(long long bound, word random, const Job& job) {
  const long long low = is_signed(job.type) ? -bound : 0;
  return low + (long long)(((wide)scrambled(random) * (wide)(bound - low + 1)) >> 32);
}
__device__ long long default_integer(word random, const Job& job, const Style& style) {
  const bool rare = (random & 63u) == 0;
  const long long largest = job.type == u8 ? 255 : job.type == i8 ? 127 : 1000;
  switch (style.distribution) {
  case normal:
    return within(16, random, job);
  case heavy_tail:
    return within(rare ? (largest < 1000 ? largest : 1000) : 4, random, job);
  case large_offset:
    return 64 + within(16, random, job);
  case sparse_spikes:
    return rare ? within(100, random, job) : 0;
  case small_integers:
    return within(2, random, job);
  default:
    return scrambled(random) < style.rare ? 1 + (long long)(random >> 29) : 0;
  }
}
__device__ long long integer_in_range(word random, const Job& job, const Style& style) {
  const long long low = (long long)job.low, high = (long long)job.high;
  const double width = __dadd_rn((double)(high - low), 1.0);
  double place = fraction(scrambled(random));
  if (style.distribution == heavy_tail) place = __dmul_rn(__dmul_rn(__dmul_rn(place, place), place), place);
  if (style.distribution == large_offset)
    place = __dsub_rn(1.0, __ddiv_rn(__dadd_rn(place, 0x1p-32), 16.0));
  const bool background = (style.distribution == sparse_spikes && (random & 63u) != 0) ||
                          (style.distribution == mostly_zero && scrambled(random) >= style.rare);
  if (background) return low <= 0 && high >= 0 ? 0 : low;
  if (style.distribution == mostly_zero) place = fraction(random);
  const long long value = low + (long long)__dmul_rn(place, width);
  return value < low ? low : high < value ? high : value;
}
/// Bits of one element.
__device__ __noinline__ wide value_of(word random, const Job& job, const Style& style) {
  if (job.type >= i64)
    return (wide)(job.has_range ? integer_in_range(random, job, style) : default_integer(random, job, style));
  if (job.has_range) return real_in_range(random, job, style);
  const float real = real_of(random, job, style);
  if (job.type == f32) return __float_as_uint(real);
  if (job.type == f16) return half_bits(real);
  if (job.type == bf16) return bfloat_bits(real);
  const double more =
      style.distribution == small_integers ? 0 : __dmul_rn((double)scrambled(random ^ 0x5bd1e995u), 0x1p-56);
  return (wide)__double_as_longlong(__dmul_rn((double)real, __dadd_rn(1.0, more)));
}
__device__ __forceinline__ float power_of_two(int exponent) {
  return __uint_as_float((word)(exponent + 127) << 23);
}
__device__ __forceinline__ wide slice_hash(wide slice, const Job& job) {
  wide x = job.key + (slice + 1) * 0x9E3779B97F4A7C15ull + (job.stream + 1) * 0xD1B54A32D192ED03ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
__device__ __forceinline__ bool copies(wide hash) { return hash >> 60 >= 10 && hash >> 60 <= 12; }
__device__ __forceinline__ wide bits_of(float real, const Job& job) {
  if (job.type == f32) return __float_as_uint(real);
  if (job.type == f16) return half_bits(real);
  if (job.type == bf16) return bfloat_bits(real);
  return (wide)__double_as_longlong((double)real);
}
__device__ __forceinline__ float familiar(word which) {
  return which == 0   ? 0.0f
         : which == 1 ? 1.0f
         : which == 2 ? -1.0f
         : which == 3 ? 2.0f
         : which == 4 ? 0.5f
         : which == 5 ? 3.0f
         : which == 6 ? 0.1f
                      : -2.0f;
}
__device__ __forceinline__ float far_familiar(word which) {
  return which == 3    ? 10.0f
         : which == 4  ? -10.0f
         : which == 5  ? 100.0f
         : which == 6  ? -100.0f
         : which == 7  ? 50.0f
         : which == 8  ? -0.0f
         : which == 9  ? 2.0f
         : which == 10 ? -2.0f
         : which == 11 ? 0.5f
         : which == 12 ? 3.0f
         : which == 13 ? 0.1f
         : which == 14 ? 20.0f
         : which == 15 ? -50.0f
                       : familiar(which);
}
/// Bits of an element of a slice with a texture (`SliceTexture`).
__device__ __noinline__ wide textured(word texture, wide first, wide in, const Job& job) {
  const wide place = first + (texture == 3 ? in & ~1ull : in);
  const Chunk random = philox(place / 4, job.stream, job.key);
  const word bits = word_at(random, (word)(place % 4));
  float value = bell(bits);
  if (texture == 1) value = __fadd_rn(__fmul_rn((float)(int)(in % 1024), 0x1p-6f), -4.0f);
  if (texture == 2 && bits % 4 == 0) value = -0.0f;
  if (texture == 4) value = familiar(bits >> 29);
  if (texture == 5) value = __fadd_rn((float)(int)(in % 256), -64.0f);
  if (texture == 6) value = far_familiar(bits >> 28);
  if (texture == 7 && in >= job.slice / 2) value = 0.0f;
  if (texture == 8 && value < 0.0f) value = 0.0f;
  if (texture == 9) value = (float)(int)(bits >> 24);
  if (texture == 10 && bits % 8 == 0) value = __uint_as_float((bits & 0x80000000u) | ((bits >> 12 & 0x7ff) + 1));
  return bits_of(value, job);
}
/// Bits of the element at a place of an input of slices.
__device__ __noinline__ wide value_in_slice(wide element, const Job& job) {
  const bool free = job.type < i64 && !job.has_range, near = job.distribution == slices;
  const wide slice = element / job.slice, in = element % job.slice;
  Style style = {normal, job.rare, 1.0f, 0.0f};
  const wide own = slice_hash(slice, job), before = slice_hash(slice - 1, job);
  const bool copied = copies(own) && slice > 0 && !copies(before);
  if (copied && own >> 60 == 12 && in == (own & 0xffffffffull) % job.slice) {
    const Chunk random = philox(element / 4, job.stream, job.key);
    return value_of(word_at(random, (word)(element % 4)), job, style);
  }
  const wide hash = copied ? before : own;
  const word kind = copies(hash) ? 0 : (word)(hash >> 60);
  const wide place = (slice - (copied ? 1 : 0)) * job.slice + in;
  const wide filled = job.slice / 16 > 1 ? job.slice / 16 : 1;
  const wide empty = near ? (kind == 7 || kind == 8 ? job.slice : kind == 14 ? job.slice - filled : 0)
                          : (kind == 14 ? job.slice / 2 : 0);
  if (in < empty) {
    style.distribution = mostly_zero;
    style.rare = 0;
    return value_of(0, job, style);
  }
  if (!near && kind >= 2 && kind <= 7) {
    const float share = __fmul_rn((float)(int)(16 + (hash & 15)), 0.03125f);
    const float offset = __fmul_rn(share, power_of_two(job.exponent));
    style.offset = kind % 2 == 0 ? offset : -offset;
  }
  const bool odd = (hash >> 8 & 1) != 0;
  if (!near && (kind == 6 || kind == 7 || kind >= 14 || (kind == 8 && odd))) style.factor = 64.0f;
  if (near && kind == 13) style.factor = 0x1p-10f;
  const word near_texture = kind >= 1 && kind <= 4 ? kind : kind == 5 ? 8 : kind == 6 ? 7 : kind == 15 ? 4 : 0;
  const word far_texture = kind == 1 ? 5 : kind == 9 ? 9 : kind == 13 ? 6 : kind == 15 && odd && job.exponent != 0 ? 10 : 0;
  const word texture = near ? near_texture : far_texture;
  if (free && texture != 0) return textured(texture, place - in, in, job);
  if (!free) {
    if (style.offset != 0.0f || style.factor != 1.0f) style.distribution = large_offset;
    style.offset = 0.0f;
    style.factor = 1.0f;
  }
  const bool repeated = near ? kind == 9 && job.exponent != 0 : kind == 8;
  if (repeated) return value_of((word)hash, job, style);
  const Chunk random = philox(place / 4, job.stream, job.key);
  return value_of(word_at(random, (word)(place % 4)), job, style);
}
/// The element whose random number makes the one at a place (`source_of`).
__device__ __forceinline__ wide source_of(word structure, wide element, const Job& job) {
  const wide slice = job.slice, row = element / slice, column = element % slice, in_block = row % slice;
  if (structure == 3)
    return (row - in_block + (in_block < column ? in_block : column)) * slice +
           (in_block < column ? column : in_block);
  if (structure == 10) return (row & ~1ull) * slice + column;
  if (structure == 11) return column;
  if (structure == 12 || structure == 15) return row;
  if (structure == 13) return 0;
  if (structure == 17) return element % (16ull << ((job.key >> 5) % 7));
  if (structure == 22) return element < job.count - 1 - element ? element : job.count - 1 - element;
  if (structure == 27) return (row & 1) * slice + column;
  return element;
}
/// Bits of the element at a place of an input with a structure (`InputStructure`).
__device__ __noinline__ wide structured_value(wide element, const Job& job) {
  const word structure = (word)job.exponent;
  const wide row = element / job.slice, column = element % job.slice;
  const wide stream = structure == 16 ? 63 : job.stream;
  const wide source = source_of(structure, element, job);
  const word bits = word_at(philox(source / 4, stream, job.key), (word)(source % 4));
  if (job.type >= i64 || job.has_range) {
    const Style style = {normal, job.rare, 1.0f, 0.0f};
    return value_of(bits, job, style);
  }
  float value = bell(bits);
  if (structure == 0) value = 1.0f;
  if (structure == 1) value = 0.0f;
  if (structure == 2) value = row % job.slice == column ? 1.0f : 0.0f;
  if (structure == 4 && column > row % job.slice) value = 0.0f;
  if (structure == 5) value = unit(bits);
  if (structure == 6 && value < 0.0f) value = 0.0f;
  if (structure == 7) value = __fdiv_rn((float)(int)(bits >> 24), 255.0f);
  if (structure == 8) {
    value = __uint_as_float(__float_as_uint(value) & 0xffffe000u);
    if (value < 0x1p-13f && value > -0x1p-13f) value = 0.0f;
  }
  if (structure == 9) value = __fmul_rn((float)(128 - (int)(column % 256)), 0.25f);
  if (structure == 14) value = __fmul_rn((float)(4096 + (int)((row + column) % 4096)), 0x1p-12f);
  if (structure == 15) {
    const wide place = (1ull << 40) + column;
    value = __fmul_rn(value, bell(word_at(philox(place / 4, stream, job.key), (word)(place % 4))));
  }
  if (structure == 18 && bits % 4 == 0) value = -10000.0f;
  if (structure == 19) value = (float)(int)(element % 4096);
  if (structure == 20 && column == job.slice - 1) value = 1.0f;
  if (structure == 21) value = (float)(int)(bits >> 24);
  if (structure == 23) value = __fadd_rn(__fmul_rn(value, 512.0f), 4000.0f);
  if (structure == 24) value = __fmul_rn(value, 0x1p-9f);
  if (structure == 25) value = __fadd_rn(__fmul_rn(value, 16.0f), 100.0f);
  if (structure == 26) value = __fadd_rn(value, -5000.0f);
  if (structure == 29 && bits % 4 == 0) value = __uint_as_float(0xff800000u);
  if (structure == 30 && bits % 16 == 0) {
    const word kind = bits >> 4 & 7;
    value = __uint_as_float(kind < 2    ? 0x7f800000u
                            : kind == 2 ? 0xff800000u
                            : kind == 3 ? 0x7fc00000u
                                        : (bits & 0x80000000u) | ((bits >> 12 & 0x7ffu) + 1u));
  }
  if (structure == 28 && column >= row % job.slice) value = column == row % job.slice ? 1.0f : 0.0f;
  return bits_of(value, job);
}
/// The elements that share 16 bytes from chunk `chunk` on.
__device__ __noinline__ Chunk values_at(wide chunk, const Job& job) {
  const word width = width_of(job.other_type);
  const word elements = 16 / width;
  const bool wider = job.other_type != job.type;
  Chunk values = {{0, 0, 0, 0}};
  const wide first = chunk * elements;
  const bool free = job.type < i64 && !job.has_range;
  const bool scaled = job.distribution == tiny || job.distribution == huge;
  const bool bounded = job.distribution == magnitudes && !free;
  const Style style = {bounded                    ? heavy_tail
                       : !scaled                  ? job.distribution
                       : free                     ? normal
                       : job.distribution == tiny ? heavy_tail
                                                  : large_offset,
                       job.rare, scaled && free ? power_of_two(job.exponent) : 1.0f, 0.0f};
  Chunk random = philox(first / 4, job.stream, job.key);
#pragma unroll 1
  for (word i = 0; i < elements; ++i) {
    const wide element = first + i;
    if (i != 0 && element % 4 == 0) random = philox(element / 4, job.stream, job.key);
    const bool sliced = job.distribution == slices || job.distribution == far_slices;
    wide bits = job.distribution == structured ? structured_value(element, job)
                : sliced                       ? value_in_slice(element, job)
                                               : value_of(word_at(random, (word)(element % 4)), job, style);
    if (wider) bits = (wide)__double_as_longlong((double)__uint_as_float((word)bits));
    const word at = i * width;
    if (width < 4) bits = (bits & ((1u << (8 * width)) - 1)) << (8 * (at % 4));
    add_to_word(values, at / 4, (word)bits);
    if (width == 8) add_to_word(values, at / 4 + 1, (word)(bits >> 32));
  }
  return values;
}

__device__ __forceinline__ wide element_bits(const Chunk& chunk, word i, word width) {
  const word at = i * width;
  const word bits = word_at(chunk, at / 4);
  if (width == 8) return (wide)word_at(chunk, at / 4 + 1) << 32 | bits;
  if (width == 4) return bits;
  return (bits >> (8 * (at % 4))) & ((1u << (8 * width)) - 1);
}
__device__ __forceinline__ double number(wide bits, word type) {
  return type == f64   ? __longlong_as_double((long long)bits)
         : type == f32 ? (double)__uint_as_float((word)bits)
         : type == f16 ? (double)half_value((word)bits)
                       : (double)bfloat_value((word)bits);
}
__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
__device__ __noinline__ double error_of(double got, double wanted, const Job& job) {
  if (isnan(got) || isnan(wanted)) return isnan(got) && isnan(wanted) ? 0 : infinity();
  if (got == wanted) return 0;
  if (isinf(got) || isinf(wanted)) return infinity();
  const double magnitude = fabs(wanted);
  const double allowed = job.low * (magnitude > job.high ? magnitude : job.high);
  return allowed > 0 ? fabs(got - wanted) / allowed : infinity();
}
__device__ __forceinline__ void note(Finding& found, wide place) {
  ++found.wrong;
  if (place < found.first_wrong) found.first_wrong = place;
  if (place > found.last_wrong) found.last_wrong = place;
}

/// 16 bytes of what `other` holds, of `bytes` in all, without the mask.
__device__ __forceinline__ Chunk unmasked(const Job& job, wide chunk, wide bytes) {
  const wide at = chunk * 16;
  Chunk content = load((const byte*)job.other + at, (word)(bytes - at < 16 ? bytes - at : 16));
  const Chunk mask = noise_at(chunk, job);
  for (int i = 0; i < 4; ++i) content.at[i] ^= mask.at[i];
  return content;
}
__device__ __forceinline__ void compare_chunk(const Job& job, const Chunk& got, wide first, word elements,
                                              Finding& found) {
  const word width = width_of(job.type), other_width = width_of(job.other_type);
  const word others = 16 / other_width;
  const bool real = job.type < i64;
  Chunk wanted;
  wide loaded = ~0ull;
#pragma unroll 1
  for (word i = 0; i < elements; ++i) {
    const wide element = first + i;
    if (element / others != loaded) {
      loaded = element / others;
      wanted = unmasked(job, loaded, job.count * other_width);
    }
    const wide a = element_bits(got, i, width), b = element_bits(wanted, (word)(element % others), other_width);
    if (a == b && job.type == job.other_type) continue;
    const double error = real ? error_of(number(a, job.type), number(b, job.other_type), job) : infinity();
    if (error > found.largest_error) found.largest_error = error;
    if (error > 1) note(found, element);
  }
}

/// Handles 16 bytes.
__device__ __forceinline__ void work(const Job& job, wide chunk, wide bytes, Finding& found) {
  const wide at = chunk * 16;
  const word here = (word)(bytes - at < 16 ? bytes - at : 16);
  byte* const target = (byte*)job.target + at;
  if (job.kind <= write_masked) {
    Chunk made;
    if (job.kind == write_byte) {
      const word four = (word)job.stream * 0x01010101u;
      made.at[0] = made.at[1] = made.at[2] = made.at[3] = four;
    } else if (job.kind == write_noise) {
      made = noise_at(job.period == 0 ? chunk : chunk % (job.period / 16), job);
    } else if (job.kind == write_values) {
      made = values_at(chunk, job);
    } else {
      made = unmasked(job, chunk, bytes);
    }
    store(target, made, here);
    return;
  }
  const Chunk got = load(target, here);
  const word width = job.kind == look_for_noise ? 1 : width_of(job.type);
  const word elements = here / width;
  found.checked += elements;
  if (job.kind == add_magnitudes) {
    for (word i = 0; i < elements; ++i) {
      const double value = fabs(number(element_bits(got, i, width), job.type));
      if (!(value < infinity())) continue;
      found.magnitudes += value;
      found.finite += 1;
    }
    return;
  }
  const wide first = at / width;
  if (job.kind == compare) {
    compare_chunk(job, got, first, elements, found);
    return;
  }
  Chunk wanted;
  if (job.kind == look_for_noise)
    wanted = noise_at(chunk, job);
  else if (job.kind == look_for_values)
    wanted = values_at(chunk, job);
  else
    wanted = unmasked(job, chunk, bytes);
#pragma unroll 1
  for (word i = 0; i < elements; ++i) {
    const wide a = element_bits(got, i, width), b = element_bits(wanted, i, width);
    if (a != b) note(found, first + i);
  }
}

__device__ __forceinline__ void add(Finding& to, const Finding& from) {
  to.checked += from.checked;
  to.wrong += from.wrong;
  if (from.first_wrong < to.first_wrong) to.first_wrong = from.first_wrong;
  if (from.last_wrong > to.last_wrong) to.last_wrong = from.last_wrong;
  if (from.largest_error > to.largest_error) to.largest_error = from.largest_error;
  to.magnitudes += from.magnitudes;
  to.finite += from.finite;
}

__global__ void __launch_bounds__(256) judge_work(const byte* jobs, byte* findings) {
  const Job job = ((const Job*)jobs)[blockIdx.y];
  if (blockIdx.x >= job.blocks) return;
  const word width = job.kind == write_values      ? width_of(job.other_type)
                     : job.kind >= look_for_values ? width_of(job.type)
                                                   : 1;
  const wide bytes = job.count * width;
  const wide chunks = (bytes + 15) / 16;
  Finding found = {0, 0, ~0ull, 0, 0, 0, 0};
  for (wide chunk = blockIdx.x * 256ull + threadIdx.x; chunk < chunks; chunk += job.blocks * 256ull)
    work(job, chunk, bytes, found);
  if (job.kind <= write_masked) return;
  __shared__ Finding all[256];
  all[threadIdx.x] = found;
  for (word half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) add(all[threadIdx.x], all[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) ((Finding*)findings)[job.first_finding + blockIdx.x] = all[0];
}
)cuda";

} // namespace detail

} // namespace mtmc
