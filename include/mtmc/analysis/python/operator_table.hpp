#pragma once
/// Names of PyTorch's modules and functions, and what kind of work they are.

#include <mtmc/analysis/python/operator_class.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Names of a class, small and without underscores: `nn.LeakyReLU`, `F.leaky_relu` and `x.leaky_relu_()` are
/// one.
struct OperatorNames {
  OperatorClass kind;
  std::string_view names; ///< with blanks between and at both ends
};

inline constexpr OperatorNames operator_names[] = {
    {OperatorClass::contraction, " linear bilinear matmul mm bmm addmm addbmm baddbmm addmv mv dot vdot "
                                 "inner outer ger einsum tensordot kron "
                                 "scaleddotproductattention chainmatmul multidot "},
    {OperatorClass::convolution,
     " conv1d conv2d conv3d convtranspose1d convtranspose2d convtranspose3d lazyconv2d "},
    {OperatorClass::pointwise,
     " relu relu6 leakyrelu prelu rrelu elu selu celu gelu silu swish mish sigmoid logsigmoid hardsigmoid "
     "tanh "
     "hardtanh hardswish hardshrink softshrink tanhshrink softplus softsign threshold glu exp exp2 expm1 log "
     "log2 log10 "
     "log1p sqrt rsqrt square pow abs absolute neg negative sign sgn sin cos tan asin acos atan atan2 sinh "
     "cosh erf erfc "
     "erfinv floor ceil round trunc frac reciprocal clamp clip clampmin clampmax add sub subtract rsub mul "
     "multiply div "
     "divide truedivide floordivide remainder fmod addcmul addcdiv lerp maximum minimum fmax fmin where "
     "maskedfill eq ne "
     "lt le gt ge logicaland logicalor logicalnot logicalxor bitwiseand bitwiseor bitwisenot isnan isinf "
     "nantonum tril "
     "triu hypot heaviside sinc deg2rad copy float half double long int bool bfloat16 "},
    {OperatorClass::reduction,
     " sum mean max min prod var std varmean stdmean norm vectornorm matrixnorm logsumexp argmax argmin amax "
     "amin aminmax any all "
     "median mode nansum nanmean countnonzero trace topk sort argsort kthvalue unique histc bincount "
     "cosinesimilarity "
     "pairwisedistance cdist mseloss l1loss smoothl1loss huberloss crossentropy crossentropyloss nllloss "
     "kldiv kldivloss "
     "bceloss bcewithlogitsloss binarycrossentropy binarycrossentropywithlogits hingeembeddingloss "
     "tripletmarginloss cosineembeddingloss marginrankingloss softmarginloss "},
    {OperatorClass::normalization, " batchnorm1d batchnorm2d batchnorm3d batchnorm syncbatchnorm "
                                   "instancenorm1d instancenorm2d instancenorm3d "
                                   "instancenorm groupnorm layernorm rmsnorm localresponsenorm softmax "
                                   "softmax2d logsoftmax softmin gumbelsoftmax "
                                   "normalize "},
    {OperatorClass::pooling,
     " maxpool1d maxpool2d maxpool3d avgpool1d avgpool2d avgpool3d adaptiveavgpool1d adaptiveavgpool2d "
     "adaptiveavgpool3d "
     "adaptivemaxpool1d adaptivemaxpool2d adaptivemaxpool3d lppool1d lppool2d fractionalmaxpool2d "},
    {OperatorClass::scan, " cumsum cumprod cummax cummin logcumsumexp "},
    {OperatorClass::gather, " gather indexselect embedding embeddingbag take takealongdim scatter scatteradd "
                            "indexadd maskedselect roll unfold "
                            "fold gridsample interpolate upsample onehot nonzero "},
    {OperatorClass::view, " view viewas reshape reshapeas transpose permute movedim swapaxes t squeeze "
                          "unsqueeze flatten unflatten expand "
                          "expandas broadcastto contiguous chunk split tensorsplit unbind narrow select cat "
                          "concat stack hstack vstack repeat "
                          "repeatinterleave tile flip fliplr flipud rot90 pixelshuffle pixelunshuffle "
                          "channelshuffle pad identity clone detach "
                          "diag diagonal diagembed data to cuda cpu type typeas requiresgrad "},
    {OperatorClass::creation, " zeros ones empty full arange linspace eye tensor astensor zeroslike oneslike "
                              "emptylike fulllike newzeros newones "
                              "newempty newfull newtensor scalartensor "},
    {OperatorClass::random, " dropout dropout1d dropout2d dropout3d alphadropout featurealphadropout rand "
                            "randn randint randlike randnlike "
                            "bernoulli multinomial normal uniform "},
    {OperatorClass::library, " lstm gru rnn lstmcell grucell multiheadattention transformer "
                             "transformerencoder transformerencoderlayer "
                             "transformerdecoder transformerdecoderlayer fftn fft ifft rfft svd eig eigh qr "
                             "cholesky solve lu inv pinv det "},
};

/// A name as the table has it.
[[nodiscard]] inline std::string table_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != '_') plain += lower_case(c);
  return plain;
}

/// The class of a module or function by that name, or nothing.
[[nodiscard]] inline std::optional<OperatorClass> class_of_operator(std::string_view name) {
  const std::string wanted = ' ' + table_name(name) + ' ';
  const auto found =
      std::find_if(std::begin(operator_names), std::end(operator_names), [&](const OperatorNames& one) {
        return one.names.find(wanted) != std::string_view::npos;
      });
  if (found == std::end(operator_names)) return std::nullopt;
  return found->kind;
}

} // namespace mtmc::detail
