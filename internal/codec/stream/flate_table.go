package stream

import "math/bits"

// Tables turn the next bits of a deflate stream into an entry of 32 bits:
//
//	literal    1 at bit 31, the byte from bit 16, the bits of its code from bit 0
//	base       length or distance from bit 16, the bits of its code from bit 8, the bits of the
//	           code and the extra bits after it from bit 0
//	rest       1 at bit 15 and one of: the subtable's place from bit 16, its index bits from
//	           bit 8; the end of the block; nothing, for what no valid stream has
//
// A table is indexed by the first bits of a code, bit 0 being the first; longer codes lead to a subtable after it. The
// layout of entries and the way that build goes through the codes come from libdeflate (deflate_decompress.c).
const (
	isLiteral  = 1 << 31
	isRest     = 1 << 15
	isSubtable = 1 << 14
	isEnd      = 1 << 13
	codeMask   = 63 // of the low bits
)

// Index bits of the tables, and how many entries complete codes can need with subtables
// (as zlib's enough.c computes).
const (
	litBits, litEntries   = 11, 2342
	distBits, distEntries = 8, 402
	preBits, preEntries   = 7, 128
	maxCode               = 15
)

// Entries of the symbols, without the bits of the code.
var litSymbols, distSymbols, preSymbols = symbols()

// symbols returns the entries of all symbols without the bits of their codes (RFC 1951, 3.2.5). Symbols that the format
// reserves get entries that end decoding with an error, so the loop needs no check for them.
func symbols() (lit [288]uint32, dist [32]uint32, pre [19]uint32) {
	for i := range 256 {
		lit[i] = isLiteral | uint32(i)<<16
	}
	lit[256] = isRest | isEnd
	base := uint32(3)
	for i := range 28 {
		extra := uint32(max(0, i/4-1))
		lit[257+i] = base<<16 | extra
		base += 1 << extra
	}
	lit[285] = 258 << 16
	lit[286], lit[287] = isRest, isRest
	base = 1
	for i := range 30 {
		extra := uint32(max(0, i/2-1))
		dist[i] = base<<16 | extra
		base += 1 << extra
	}
	dist[30], dist[31] = isRest, isRest
	for i := range pre {
		pre[i] = uint32(i) << 16
	}
	return lit, dist, pre
}

// buildTable fills a table of codes from their lengths, which RFC 1951, 3.2.2 turns into codes.
// Like zlib it refuses incomplete codes, except a single code of one bit, or no code, for
// literals and distances.
func buildTable(table []uint32, tableBits int, lengths []uint8, entries []uint32) bool {
	var count, start [maxCode + 2]int
	for _, n := range lengths {
		count[n]++
	}
	used := len(lengths) - count[0]
	count[0] = 0
	space := 0
	for n := 1; n <= maxCode; n++ {
		start[n+1] = start[n] + count[n]
		space = space<<1 + count[n]
	}
	var order [288]uint16
	for i, n := range lengths {
		if n > 0 {
			order[start[n]] = uint16(i)
			start[n]++
		}
	}
	if space != 1<<maxCode {
		return tableBits != preBits && incomplete(table[:1<<tableBits], used, count[1], entries[order[0]])
	}
	b := builder{table: table, bits: tableBits, entries: entries, order: order[:used], count: &count}
	b.build()
	return true
}

// incomplete makes the table of no code or of one code of one bit.
func incomplete(table []uint32, used, single int, entry uint32) bool {
	if used > 1 || used != single {
		return false
	}
	for i := range table {
		table[i] = isRest
		if used == 1 && i&1 == 0 {
			table[i] = entry + 1<<8 + 1
		}
	}
	return true
}

// builder goes through a complete code in the order of its lengths.
type builder struct {
	table   []uint32
	bits    int
	entries []uint32
	order   []uint16 // symbols, sorted by the length of their codes
	count   *[maxCode + 2]int
}

// nextCode returns the code after c of n bits, both with their first bit lowest.
func nextCode(c uint32, n int) uint32 {
	bit := uint32(1) << (bits.Len32(c^(1<<n-1)) - 1)
	return c&(bit-1) | bit
}

// build fills a table from the codes in the order of their lengths. Short codes are entered once, and the filled part
// of the table is doubled for each longer length, which copies memory instead of entering a code 2^k times.
func (b *builder) build() {
	code, n := uint32(0), 1
	for b.count[n] == 0 {
		n++
	}
	left := b.count[n]
	for n <= b.bits {
		for ; left > 0; left-- {
			b.table[code] = b.entries[b.order[0]] + uint32(n)<<8 + uint32(n)
			b.order = b.order[1:]
			if code == 1<<n-1 {
				b.double(n, b.bits)
				return
			}
			code = nextCode(code, n)
		}
		for left == 0 {
			if n < b.bits {
				b.double(n, n+1)
			}
			n++
			left = b.count[n]
		}
	}
	b.long(code, n, left)
}

// double repeats the table for codes of n bits until it is a table for codes of to bits.
func (b *builder) double(n, to int) {
	for ; n < to; n++ {
		copy(b.table[1<<n:2<<n], b.table[:1<<n])
	}
}

// long fills the subtables, for codes that are longer than the index of the table.
func (b *builder) long(code uint32, n, left int) {
	prefix, start, end := ^uint32(0), 0, 1<<b.bits
	for {
		if p := code & (1<<b.bits - 1); p != prefix {
			prefix, start = p, end
			sub := b.subtable(n, left)
			end = start + 1<<sub
			b.table[prefix] = uint32(start)<<16 | isRest | isSubtable | uint32(sub)<<8 | uint32(b.bits)
		}
		rest := n - b.bits
		entry := b.entries[b.order[0]] + uint32(rest)<<8 + uint32(rest)
		b.order = b.order[1:]
		for i := start + int(code>>b.bits); i < end; i += 1 << rest {
			b.table[i] = entry
		}
		if code == 1<<n-1 {
			return
		}
		code = nextCode(code, n)
		for left--; left == 0; left = b.count[n] {
			n++
		}
	}
}

// subtable returns how many index bits the next subtable has. The subtable begins with
// a code of n bits, of which left codes are not yet in a table, and must have room for
// all codes that share its first bits.
func (b *builder) subtable(n, left int) int {
	sub := n - b.bits
	for used := left; used < 1<<sub; {
		sub++
		used = used<<1 + b.count[b.bits+sub]
	}
	return sub
}
