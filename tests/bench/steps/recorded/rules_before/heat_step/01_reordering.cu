// Seven points of a grid in three dimensions, one thread for each point; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 32), ceil_div(Y, 4), ceil_div(X, 4)), (32, 4, 4)>>>(u, out, k, X, Y, Z)
__global__ void heat_step(const float* u, float* out, float k, int X, int Y, int Z) {
  int l = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  int i = blockIdx.z * blockDim.z + threadIdx.z;
  if (i < X && j < Y && l < Z) {
    int at = (i * Y + j) * Z + l;
    float centre = u[at];
    if (i == 0 || i == X - 1 || j == 0 || j == Y - 1 || l == 0 || l == Z - 1) {
      out[at] = centre;
    } else {
      out[at] = centre + k * (u[at - Y * Z] + u[at + Y * Z] + u[at - Z] + u[at + Z] + u[at - 1] + u[at + 1] -
                              6.0f * centre);
    }
  }
}
