// out = transpose of in; in is M x N, out is N x M, both row-major.

void transpose(const float* in, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      out[j * M + i] = in[i * N + j];
    }
  }
}

//@ launch transpose(in, out, M, N)
