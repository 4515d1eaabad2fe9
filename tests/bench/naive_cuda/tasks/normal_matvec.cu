// z = A^T (A x), as in conjugate gradients on the normal equations
//@ scratch y: f32[m]
//@ launch mat_vec<<<ceil_div(m, 64), 64>>>(A, x, y, m, n)
//@ launch mat_trans_vec<<<ceil_div(n, 128), 128>>>(A, y, z, m, n)

__global__ void mat_vec(const float* A, const float* x, float* y, unsigned int m, unsigned int n)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < m)
	{
		float dot = 0.0f;
		for (unsigned int j = 0; j < n; j++)
			dot += A[i * n + j] * x[j];
		y[i] = dot;
	}
}

__global__ void mat_trans_vec(const float* A, const float* y, float* z, unsigned int m, unsigned int n)
{
	unsigned int j = blockIdx.x * blockDim.x + threadIdx.x;
	if (j < n)
	{
		float dot = 0.0f;
		for (unsigned int i = 0; i < m; i++)
			dot += A[i * n + j] * y[i];
		z[j] = dot;
	}
}
