// Matmul: `out = activation(x W + bias)` for one column of tiles of W.
// Waits: packets of the ring. Reads: rows of `x` in whole columns of tiles, tiles of W from the ring, the bias of the pass.
// Writes: rows `first_row .. first_row + rows` of `out` in its first `columns` columns, nothing else. Raises: the ring's
// semaphore for free slots, for packets that are used up.
//
// x is the left operand, bf16 as stored; where it is f32, its tiles are rounded to scratch first. Sums are f32 in dest. Of
// more rows of tiles than dest holds, the sums of each packet's tiles are put by in scratch, as they are. The bias is the
// product of a column of ones with it, added as the last term.
#pragma once
#include "activation.h"
#include "packets.h"
#include "tile.h"

namespace compute {

// Rows of tiles that are worked on at one time.
struct Group {
    uint32_t first;
    uint32_t count;
};

// A product and how far it has come.
struct Product {
    Block x;
    Block out;
    uint32_t first_row;
    uint32_t rows;
    uint32_t columns;
    uint32_t weights;
    uint32_t bias;
    uint32_t activation;
    // Rows of tiles that take part.
    uint32_t first_tile;
    uint32_t end_tile;

    Group group(uint32_t number) const {
        const uint32_t first = first_tile + number * DEST_TILES;
        const uint32_t left = end_tile - first;
        return {first, left < DEST_TILES ? left : DEST_TILES};
    }

    uint32_t groups() const { return (end_tile - first_tile + DEST_TILES - 1) / DEST_TILES; }

    // Where the sums of a row of tiles are put by.
    uint32_t partial(uint32_t row_tile) const { return scratch(FREE + (row_tile - first_tile) * SUMS_BYTES); }

    // Bytes of all sums that are put by.
    uint32_t sums_bytes() const { return groups() > 1 ? (end_tile - first_tile) * SUMS_BYTES : 0; }

    // Where tiles of x are rounded: behind the sums.
    uint32_t rounded_x() const { return scratch(FREE + sums_bytes()); }

    uint32_t scratch_bytes() const { return sums_bytes() + (x.format == lowered::F32 ? ROUNDED_BYTES : 0); }
};

constexpr uint32_t llk_weights(uint32_t format) {
    if (format == lowered::WEIGHTS_BF16) {
        return static_cast<uint32_t>(DataFormat::Float16_b);
    }
    return static_cast<uint32_t>(format == lowered::WEIGHTS_BFP8_B ? DataFormat::Bfp8_b : DataFormat::Bfp4_b);
}

// Which bits of the weights take part: those of the kernel's fidelity, or all of them.
enum class Exactness { AS_BUILT, ALL_BITS };

#ifdef TRISC_MATH
constexpr ckernel::MathFidelity fidelity(Exactness exactness) {
    return exactness == Exactness::ALL_BITS ? ckernel::MathFidelity::HiFi2 : MATH_FIDELITY;
}
#endif

// Configures this thread for products with weights of a format by so many rows of tiles.
template <Exactness EXACTNESS>
inline void configure_product(uint32_t weights, uint32_t row_tiles) {
#ifdef TRISC_UNPACK
    if (reconfigure(PRODUCT + weights * DEST_TILES + row_tiles - 1)) {
        const uint32_t bf16 = llk_format(lowered::BF16);
        const uint32_t llk = llk_weights(weights);
        const uint32_t weight_units = llk_bytes(lowered::weight_tile_bytes(weights));
        constexpr auto ROW_MAJOR = p_dim_stride_target::FACE_ROW_MAJOR;
        _llk_unpack_reconfig_data_format_srca_impl_<true, ROW_MAJOR>(llk, llk, weight_units);
        _llk_unpack_reconfig_data_format_srcb_impl_<true, ROW_MAJOR>(bf16, bf16, llk_bytes(BF16_TILE));
        _llk_unpack_AB_matmul_init_(0, 1, row_tiles, 1);
    }
#endif
#ifdef TRISC_MATH
    if (reconfigure(PRODUCT + static_cast<uint32_t>(EXACTNESS) * DEST_TILES + row_tiles - 1)) {
        const uint32_t bf16 = llk_format(lowered::BF16);
        _llk_math_reconfig_data_format_<true>(bf16, bf16);
        _llk_math_matmul_init_<fidelity(EXACTNESS)>(32, 32, 32, 32, false, 0, 1, row_tiles);
    }
#endif
}

// Tiles `dest .. dest + row_tiles` of dest += those that follow one another at `x`, times W.
template <Exactness EXACTNESS>
inline void multiply(uint32_t x, uint32_t w, uint32_t weights, uint32_t row_tiles, uint32_t dest) {
    configure_product<EXACTNESS>(weights, row_tiles);
#ifdef TRISC_UNPACK
    const uint32_t x_units = llk_bytes(BF16_TILE);
    const uint32_t w_units = llk_bytes(lowered::weight_tile_bytes(weights));
    _llk_unpack_AB_matmul_(llk_address(x), llk_address(w), 0, 0, x_units, w_units, false, false, 1, row_tiles, 1);
#endif
    MATH((_llk_math_matmul_<fidelity(EXACTNESS)>(dest, 1, row_tiles)));
}

// Address of the tiles of a column of x as bf16.
inline uint32_t operand(const Product& product, const Group& group, uint32_t column_tile) {
    const uint32_t stored = product.x.tile(group.first, column_tile);
    if (product.x.format == lowered::BF16) {
        return stored;
    }
#ifdef TRISC_UNPACK
    await_unpacker();
    copy_run(stored, lowered::F32, product.rounded_x(), lowered::BF16, group.count * lowered::TILE_VALUES);
    memory::settle(product.rounded_x());
#endif
    return product.rounded_x();
}

// The bias as the first row of a tile; what is below it stays 0.
inline void prepare_bias(const Product& product) {
#ifdef TRISC_UNPACK
    if (product.bias == lowered::NONE) {
        return;
    }
    prepare_ones();
    const Block row = {scratch(ROW), lowered::BF16, 1};
    for (uint32_t column = 0; column < lowered::SIDE; ++column) {
        const bool given = column < product.columns;
        *half_at(row.value(0, column)) = given ? *half_at(product.bias + 2 * column) : 0;
    }
    memory::settle(row.address);
#endif
}

// Products with so many tiles of the packet at hand, from row of tiles `k` of W on. The packet is left as it was.
inline void add_products(const Product& product, const Group& group, Packets packets, uint32_t k, uint32_t count) {
    const uint32_t bytes = lowered::weight_tile_bytes(product.weights);
    for (uint32_t end = k + count; k < end; ++k) {
        const uint32_t w = packets.advance(bytes);
        multiply<Exactness::AS_BUILT>(operand(product, group, k), w, product.weights, group.count, 0);
    }
}

inline void add_bias(const Product& product, const Group& group) {
    for (uint32_t tile = 0; tile < group.count; ++tile) {
        multiply<Exactness::ALL_BITS>(scratch(ONES), scratch(ROW), lowered::WEIGHTS_BF16, 1, tile);
    }
}

inline void finish_group(const Product& product, const Group& group) {
    if (product.bias != lowered::NONE) {
        add_bias(product, group);
    }
    for (uint32_t tile = 0; tile < group.count; ++tile) {
        activate(tile, product.activation);
        round_tile_for(tile, product.out.format);
    }
    begin_packing();
    for (uint32_t tile = 0; tile < group.count; ++tile) {
        const uint32_t row_tile = group.first + tile;
        const Part part = rows_in_tile(row_tile, product.first_row, product.rows, product.columns);
        store_part(tile, product.out.tile(row_tile, 0), product.out.format, part);
    }
    end_section();
}

inline void put_by(const Product& product, const Group& group) {
    begin_packing();
    for (uint32_t tile = 0; tile < group.count; ++tile) {
        store_tile(tile, product.partial(group.first + tile), lowered::F32);
    }
    end_section();
}

inline void take_up(const Product& product, const Group& group) {
    for (uint32_t tile = 0; tile < group.count; ++tile) {
        load_tile(product.partial(group.first + tile), lowered::F32, tile);
    }
}

// The tiles of the packet at hand times their columns of x, for all rows; the product is finished with the last of them.
inline void multiply_packet(const Product& product, const Packets& packets, uint32_t k, uint32_t count, uint32_t all) {
    const uint32_t groups = product.groups();
    for (uint32_t number = 0; number < groups; ++number) {
        const Group group = product.group(number);
        if (groups > 1 || k == 0) {
            begin_section();
        }
        if (groups > 1 && k > 0) {
            take_up(product, group);
        }
        add_products(product, group, packets, k, count);
        if (k + count == all) {
            finish_group(product, group);
        } else if (groups > 1) {
            put_by(product, group);
        }
    }
    if (groups > 1 || k + count == all) {
        await_results();
    }
}

inline Product product_of(lowered::Words words, uint32_t pass) {
    using lowered::Matmul;
    const uint32_t first_row = words[Matmul::first_row];
    const uint32_t rows = words[Matmul::rows];
    const uint32_t bias = words[Matmul::bias];
    return {
        block(words[Matmul::x], words[Matmul::x_format], words[Matmul::row_tiles]),
        block(words[Matmul::out], words[Matmul::out_format], words[Matmul::row_tiles]),
        first_row,
        rows,
        words[Matmul::columns],
        words[Matmul::weights],
        bias == lowered::NONE ? bias : arguments::l1(bias + pass * words[Matmul::vector_step]),
        words[Matmul::activation],
        first_row / lowered::SIDE,
        lowered::tiles_of(first_row + rows)};
}

// False where the activation is not known, or scratch too small.
inline bool matmul(semaphores::Semaphores& semaphores, Packets& packets, lowered::Words words, uint32_t pass) {
    const Product product = product_of(words, pass);
    if (!is_known(product.activation) || product.scratch_bytes() > free_bytes()) {
        return false;
    }
    const uint32_t bytes = lowered::weight_tile_bytes(product.weights);
    const uint32_t all = lowered::tiles_of(words[lowered::Matmul::inputs]);
    prepare_bias(product);
    for (uint32_t k = 0; k < all;) {
        packets.take(semaphores, bytes);
        const uint32_t room = packets.room(bytes);
        const uint32_t count = room < all - k ? room : all - k;
        multiply_packet(product, packets, k, count, all);
        packets.next += count * bytes;
        k += count;
    }
    return true;
}

}  // namespace compute
