//@ launch row_argmax<<<ceil_div(rows, 32), 32>>>(data, max_values, max_indices, rows, cols)

__global__ void row_argmax(const float* data, float* max_values, int* max_indices, int rows, int cols) {
    int row = threadIdx.x + blockDim.x * blockIdx.x;

    if (row < rows) {
        float max_val = data[row * cols];
        int max_idx = 0;

        for (int col = 1; col < cols; col++) {
            float val = data[row * cols + col];
            if (val > max_val) {
                max_val = val;
                max_idx = col;
            }
        }

        max_values[row] = max_val;
        max_indices[row] = max_idx;
    }
}
