#pragma once
/// What judge and runner say to each other.
///
/// They talk over one SOCK_SEQPACKET pair. Every message is an array of 64-bit words in the machine's byte
/// order; the runner sends a greeting (a reply to question 0), then the judge asks, the runner answers each
/// question once, and nothing is ever sent unasked.
///
/// No code of the candidate runs in the runner, which only loads it. For each call, or group of calls that
/// are timed together, it forks a *caller*, which talks with the judge over a connection of its own and ends
/// with the call: whatever a call leaves behind in memory ends with it, and no call finds what another one
/// left. A reply of a caller that does not fit (too short, wrong magic, wrong sequence number) is a fault of
/// the candidate, which lives in its address space and may do there what it likes.
///
///     question   = magic, command, sequence number, payload
///     reply      = magic, sequence number, status, two numbers, text (padded with zeros to whole words)
///
///     greeting                                                  ok: process in which programs run, 1 = in
///                                                               a process namespace of its own, else why
///                                                               not
///
///     command    payload                                        reply
///     load       bytes of the path, the path                    ok; refused with the loader's message
///     map        mapping, bytes; one descriptor beside it       ok, and there is no memory on the pages
///                                                               before and behind; refused with errno as
///                                                               first number
///     unmap      mapping                                        ok
///     prepare    1 = forget earlier launches, their number,     ok; refused
///                launches
///     begin      1 = start the program's threads; one           the caller answers, over that descriptor:
///                descriptor beside it                           ok when it is ready; refused with errno as
///                                                               first number
///     go         nothing; to the caller                         ok, when all launches have returned; misfit
///                                                               with launch (from 0) and argument (from 1)
///     ended      nothing                                        ok, with how the last caller ended (as of
///                                                               waitpid) as first number
///
///     launch     = number of the trampoline, number of arguments, arguments
///     argument   = 0, the value's 64 bits  |  1, mapping, byte offset  |  2, mapping, byte offset, bytes
///                  that the caller fills with zeros before the launch
///
/// No code of the candidate runs before `go`, so it is a launch's trampoline that finds a value its
/// parameter's type cannot hold. `prepare` may be repeated to append more launches than one message can hold.
/// Values come as an int64, or as a double for floating-point scalars. A mapping is named by the judge;
/// numbers are never reused. The constants below are also the source of those in the runner's text, so that
/// each is written once.

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <cstdint>

namespace mtmc::inline MTMC_ABI::detail {

namespace runner_protocol {
/// "mtmc" and the protocol's version. Changes whenever anything on this page does.
inline constexpr std::uint64_t magic = 0x6d746d6300000005;

inline constexpr std::uint64_t command_load = 1;
inline constexpr std::uint64_t command_map = 2;
inline constexpr std::uint64_t command_unmap = 3;
inline constexpr std::uint64_t command_prepare = 4;
inline constexpr std::uint64_t command_begin = 5;
inline constexpr std::uint64_t command_go = 6;
inline constexpr std::uint64_t command_ended = 7;

inline constexpr std::uint64_t status_ok = 0;
inline constexpr std::uint64_t status_refused = 1;
inline constexpr std::uint64_t status_misfit = 2;

inline constexpr std::uint64_t argument_value = 0;
inline constexpr std::uint64_t argument_buffer = 1;
inline constexpr std::uint64_t argument_zeroed = 2;

/// Words of the longest question: 64 KiB, well below the default send buffer of a socket.
inline constexpr std::size_t largest_question = 8192;
/// Words before a reply's text, and of the longest reply.
inline constexpr std::size_t reply_header = 5;
inline constexpr std::size_t largest_reply = 64;

/// Where the runner and its callers find their socket, and the runner the pipe that tells it that the judge
/// is gone.
inline constexpr int socket_number = 3;
inline constexpr int lifeline_number = 4;
} // namespace runner_protocol

} // namespace mtmc::detail
