# 1 "kernel.cpp"
# 1 "/usr/include/math.h" 1 3
int x;
# 2 "kernel.cpp" 2
float f() { return FLT_MAX; }
# 1 "end.cpp"
