// Chance and prices: counter-based random numbers, Monte Carlo, Black-Scholes, random walks.

// Mixes a counter and a key into 32 random bits: rounds of wide multiplication, the halves crossed over.
__device__ unsigned mixed(unsigned counter, unsigned key) {
    unsigned other = key ^ 0x9e3779b9u;
#pragma unroll
    for (int round = 0; round < 6; round++) {
        unsigned high = __umulhi(counter, 0xd2511f53u), low = counter * 0xd2511f53u;
        counter = high ^ other ^ (key + round * 0x9e3779b9u);
        other = low;
    }
    return counter ^ other;
}

__device__ float uniform(unsigned bits) { return (bits >> 8) * 0x1p-24f; }

// Points of the square that fall into the circle; each warp adds up votes, each block adds once.
extern "C" __global__ void count_inside(unsigned long long* inside, int per_thread, unsigned key) {
    __shared__ unsigned block_total;
    if (threadIdx.x == 0) block_total = 0;
    __syncthreads();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
    for (int k = 0; k < per_thread; k++) {
        float x = uniform(mixed(2 * (i * per_thread + k), key)), y = uniform(mixed(2 * (i * per_thread + k) + 1, key));
        count += __popc(__ballot_sync(~0u, __fadd_rn(__fmul_rn(x, x), __fmul_rn(y, y)) <= 1.0f));
    }
    if (threadIdx.x % 32 == 0) atomicAdd(&block_total, count);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(inside, (unsigned long long)block_total);
}

// Price of an option on the mean of a path: normal numbers by Box and Muller; sums of payoffs and of their squares.
extern "C" __global__ void price_paths(double* sums, int steps, float start, float strike, float drift, float spread, unsigned key) {
    unsigned path = blockIdx.x * blockDim.x + threadIdx.x;
    float price = start, total = 0;
    for (int s = 0; s < steps; s++) {
        float u = uniform(mixed(path * 2 * steps + 2 * s, key)), v = uniform(mixed(path * 2 * steps + 2 * s + 1, key));
        float normal = sqrtf(-2 * logf(1 - u)) * cospif(2 * v);
        price *= expf(drift + spread * normal);
        total += price;
    }
    double payoff = fmax(total / steps - strike, 0.0f);
    atomicAdd(&sums[0], payoff);
    atomicAdd(&sums[1], payoff * payoff);
}

__device__ float normal_below(float d) { return 0.5f * erfcf(-d * 0.70710678f); }

extern "C" __global__ void black_scholes(const float* spot, const float* strike, const float* years, float2* prices, float rate,
                                         float volatility, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float deviation = volatility * sqrtf(years[i]);
    float d1 = (__logf(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / deviation;
    float d2 = d1 - deviation, discounted = strike[i] * expf(-rate * years[i]);
    float call = spot[i] * normal_below(d1) - discounted * normal_below(d2);
    prices[i] = make_float2(call, call - spot[i] + discounted);
}

// A walk on a lattice with a xorshift of 64 bits for each walker, states kept from launch to launch.
extern "C" __global__ void walk(unsigned long long* states, int* places, int steps, int n) {
    const int moves[4] = {1, -1, 1000, -1000};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long state = states[i];
    for (int s = 0; s < steps; s++) {
        state ^= state << 13; state ^= state >> 7; state ^= state << 17;
        places[i] += moves[state >> 62];
    }
    states[i] = state;
}
