// product over the first dimension

//@ launch column_products<<<ceil_div(cols, 1024), 1024>>>(in, out, rows, cols)
__global__ void column_products(const float* in, float* out, long long rows, long long cols) {
  const long long col = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (col < cols) {
    float product = 1.0f;
    const float* p = in + col;
    long long left = rows;
    while (left > 0) {
      product *= *p;
      p += cols;
      --left;
    }
    out[col] = product;
  }
}
