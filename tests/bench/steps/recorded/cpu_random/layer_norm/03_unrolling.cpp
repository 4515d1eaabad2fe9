// Layer normalisation of every row of a row-major M x N matrix, with scale and shift per column.

#include <cmath>

void layer_norm(const float* in, const float* gamma, const float* beta, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    float sum = 0.0f;
    for (int j = 0; j < N; ++j) {
      sum += in[i * N + j];
    }
    const float mean = sum / static_cast<float>(N);
    float squares = 0.0f;
    for (int j = 0; j < N; ++j) {
      const float centred = in[i * N + j] - mean;
      squares += centred * centred;
    }
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(N) + 1e-5f);
    int j = 0;
    for (; j + 15 < N; j += 16) {
      const float value0 = (in[i * N + j] - mean) * scale * gamma[j] + beta[j];
      const float value1 = (in[i * N + j + 1] - mean) * scale * gamma[j + 1] + beta[j + 1];
      const float value2 = (in[i * N + j + 2] - mean) * scale * gamma[j + 2] + beta[j + 2];
      const float value3 = (in[i * N + j + 3] - mean) * scale * gamma[j + 3] + beta[j + 3];
      const float value4 = (in[i * N + j + 4] - mean) * scale * gamma[j + 4] + beta[j + 4];
      const float value5 = (in[i * N + j + 5] - mean) * scale * gamma[j + 5] + beta[j + 5];
      const float value6 = (in[i * N + j + 6] - mean) * scale * gamma[j + 6] + beta[j + 6];
      const float value7 = (in[i * N + j + 7] - mean) * scale * gamma[j + 7] + beta[j + 7];
      const float value8 = (in[i * N + j + 8] - mean) * scale * gamma[j + 8] + beta[j + 8];
      const float value9 = (in[i * N + j + 9] - mean) * scale * gamma[j + 9] + beta[j + 9];
      const float value10 = (in[i * N + j + 10] - mean) * scale * gamma[j + 10] + beta[j + 10];
      const float value11 = (in[i * N + j + 11] - mean) * scale * gamma[j + 11] + beta[j + 11];
      const float value12 = (in[i * N + j + 12] - mean) * scale * gamma[j + 12] + beta[j + 12];
      const float value13 = (in[i * N + j + 13] - mean) * scale * gamma[j + 13] + beta[j + 13];
      const float value14 = (in[i * N + j + 14] - mean) * scale * gamma[j + 14] + beta[j + 14];
      const float value15 = (in[i * N + j + 15] - mean) * scale * gamma[j + 15] + beta[j + 15];
      out[i * N + j] = value0;
      out[i * N + j + 1] = value1;
      out[i * N + j + 2] = value2;
      out[i * N + j + 3] = value3;
      out[i * N + j + 4] = value4;
      out[i * N + j + 5] = value5;
      out[i * N + j + 6] = value6;
      out[i * N + j + 7] = value7;
      out[i * N + j + 8] = value8;
      out[i * N + j + 9] = value9;
      out[i * N + j + 10] = value10;
      out[i * N + j + 11] = value11;
      out[i * N + j + 12] = value12;
      out[i * N + j + 13] = value13;
      out[i * N + j + 14] = value14;
      out[i * N + j + 15] = value15;
    }
    for (; j < N; ++j) {
      out[i * N + j] = (in[i * N + j] - mean) * scale * gamma[j] + beta[j];
    }
  }
}

//@ launch layer_norm(in, gamma, beta, out, M, N)
