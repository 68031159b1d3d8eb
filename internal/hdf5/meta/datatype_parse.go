package meta

import (
	"math/bits"
)

// maxTypeDepth limits how deep datatypes are nested. A hostile file needs only a few bytes for a level, and each level
// is a call.
const maxTypeDepth = 32

// parseDatatype reads a datatype message; it returns nil after a failure.
func parseDatatype(c *cursor) *Datatype {
	if t := parseType(c, 0); c.Err == nil {
		return t
	}
	return nil
}

// parseType reads a datatype message (IV.A.2.d), which nests: a member of a compound, or the base of an enum or array,
// is a message inside of this message. The depth is bounded, as a few bytes a level would overflow the stack.
func parseType(c *cursor, depth int) *Datatype {
	if depth > maxTypeDepth {
		c.Unsupported("datatypes nested more than %d deep", maxTypeDepth)
	}
	head := c.U32()
	version := head >> 4 & 15
	t := &Datatype{Class: class(head & 15), Size: int64(c.U32())}
	if c.Err == nil && (version < 1 || version > 5) {
		c.Unsupported("datatype version %d; known are 1 to 5", version)
	}
	if c.Err == nil && t.Size == 0 {
		c.Corrupt("datatype %v of 0 bytes", t.Class)
	}
	if c.Err == nil {
		t.properties(c, head>>8, version, depth)
	}
	return t
}

// properties reads the fields after the size. flags are the 24 class bits.
func (t *Datatype) properties(c *cursor, flags, version uint32, depth int) {
	switch t.Class {
	case Fixed, Bitfield:
		t.integer(c, flags)
	case Float:
		t.float(c, flags)
	case Time:
		t.Precision = int(c.U16())
	case String:
		t.Padding, t.UTF8 = Padding(flags&15), flags>>4&15 == 1
	case Opaque:
		t.Tag = untilNUL(c.Bytes(uint64(flags & 0xff)))
	case Compound:
		t.compound(c, int(flags&0xffff), version, depth)
	case Reference:
		t.RefRegion = flags&15 == 1
	case Enum:
		t.enum(c, int(flags&0xffff), version, depth)
	case Vlen:
		t.VlenString = flags&15 == 1
		t.Padding, t.UTF8 = Padding(flags>>4&15), flags>>8&15 == 1
		t.Base = parseType(c, depth+1)
	case Array:
		t.array(c, version, depth)
	case Complex:
		t.Base = parseType(c, depth+1)
		if c.Err == nil && (t.Base.Class != Float || t.Size != 2*t.Base.Size) {
			c.Corrupt("complex of %d bytes over %v of %d bytes", t.Size, t.Base.Class, t.Base.Size)
		}
	default:
		c.Unsupported("datatype class %d", uint8(t.Class))
	}
}

func (t *Datatype) integer(c *cursor, flags uint32) {
	t.BigEndian, t.Signed = flags&1 != 0, t.Class == Fixed && flags&8 != 0
	t.BitOffset, t.Precision = int(c.U16()), int(c.U16())
	t.checkBits(c)
}

// checkBits refuses numbers whose bits are not inside their bytes, so that shifts need no check later.
func (t *Datatype) checkBits(c *cursor) {
	if c.Err == nil && (t.Precision == 0 || int64(t.BitOffset+t.Precision) > 8*t.Size) {
		c.Corrupt("%v with %d bits from bit %d in %d bytes", t.Class, t.Precision, t.BitOffset, t.Size)
	}
}

// float reads where sign, exponent and mantissa are. IEEE's formats are one case of many: files of VAX, of bfloat16 and
// of x86's long double describe theirs by these numbers. Bits 0 and 6 of the flags are the byte order; both set is the
// VAX's, in which the two halves of each word are exchanged.
func (t *Datatype) float(c *cursor, flags uint32) {
	order := flags&1 | flags>>5&2
	t.BigEndian = order&1 != 0
	t.BitOffset, t.Precision = int(c.U16()), int(c.U16())
	f := floatFormat{Sign: int(flags >> 8 & 0xff), Implied: flags>>4&3 == 2, VAXOrder: order == 3}
	f.ExpLoc, f.ExpSize = int(c.U8()), int(c.U8())
	f.MantLoc, f.MantSize = int(c.U8()), int(c.U8())
	f.Bias = c.U32()
	t.Format = f
	t.checkBits(c)
	limit := t.BitOffset + t.Precision
	if c.Err == nil && (f.ExpLoc+f.ExpSize > limit || f.MantLoc+f.MantSize > limit || f.Sign >= limit) {
		c.Corrupt("float of %d bits with exponent %d+%d, mantissa %d+%d, sign %d", t.Precision, f.ExpLoc, f.ExpSize,
			f.MantLoc, f.MantSize, f.Sign)
	}
}

// compound reads members. Version 1 has axes in the member itself, where later versions have a member of class array,
// and both become an array. Version 3 stores an offset in as many bytes as the size of the compound needs. Members must
// lie inside of the element; they may overlap, as libhdf5 allows it, and readers only read.
func (t *Datatype) compound(c *cursor, n int, version uint32, depth int) {
	if c.Err == nil && n == 0 {
		c.Corrupt("compound without members")
	}
	for range n {
		m := Member{Name: memberName(c, version)}
		if version < 3 {
			m.Offset = int64(c.U32())
		} else {
			m.Offset = int64(c.Uint(encSize(uint64(t.Size))))
		}
		var dims []int64
		if version == 1 {
			dims = memberDims(c)
		}
		m.Type = parseType(c, depth+1)
		if c.Err == nil && len(dims) > 0 {
			m.Type = arrayOf(c, m.Type, dims)
		}
		if c.Err == nil && (m.Offset > t.Size || m.Type.Size > t.Size-m.Offset) {
			c.Corrupt("member %q of %d bytes at byte %d of a compound of %d", m.Name, m.Type.Size, m.Offset, t.Size)
		}
		if c.Err != nil {
			return
		}
		t.Members = append(t.Members, m)
	}
}

// memberName reads a name, which is padded to 8 bytes before version 3.
func memberName(c *cursor, version uint32) string {
	start := c.Pos
	name := c.Cstring()
	if version < 3 && c.Err == nil {
		c.Pad(start)
	}
	return name
}

// memberDims reads the array dimensions that version 1 has in every compound member.
func memberDims(c *cursor) []int64 {
	rank := int(c.U8())
	c.Skip(3 + 4 + 4)
	var all [4]int64
	for i := range all {
		all[i] = int64(c.U32())
	}
	if c.Err == nil && rank > len(all) {
		c.Corrupt("compound member with %d axes, at most 4 are possible", rank)
		return nil
	}
	return all[:min(rank, 4)]
}

// arrayOf returns the type of an array of base. Its size is computed and not read, so it cannot overflow.
func arrayOf(c *cursor, base *Datatype, dims []int64) *Datatype {
	n, ok := (Dataspace{Dims: dims}).Elems()
	size, ok2 := product(uint64(n), uint64(base.Size))
	if !ok || !ok2 || size == 0 {
		c.Corrupt("array of shape %v of elements of %d bytes", dims, base.Size)
	}
	return &Datatype{Class: Array, Size: int64(size), Base: base, Dims: dims}
}

// enum reads the names of an enum, then their values, which have the type of the base. Values narrower than 64 bits are
// extended by their sign, so that -1 is -1 and not 255.
func (t *Datatype) enum(c *cursor, n int, version uint32, depth int) {
	t.Base = parseType(c, depth+1)
	if c.Err == nil && (t.Base.Class != Fixed || t.Base.Size != t.Size) {
		c.Corrupt("enum of %d bytes over %v of %d bytes", t.Size, t.Base.Class, t.Base.Size)
	}
	for i := 0; i < n && c.Err == nil; i++ {
		t.Members = append(t.Members, Member{Name: memberName(c, version)})
	}
	for i := 0; i < n && c.Err == nil; i++ {
		v := t.Base.fixedBits(c.Bytes(uint64(t.Base.Size)))
		if t.Base.Signed && t.Size < 8 {
			shift := 64 - 8*t.Size
			v = uint64(int64(v<<shift) >> shift)
		}
		t.Members[i].Value = int64(v)
	}
}

// fixedBits returns the low 64 bits of an integer as stored, in the type's byte order.
func (t *Datatype) fixedBits(p []byte) uint64 {
	v := littleEndian(p)
	if t.BigEndian && len(p) <= 8 {
		v = bits.ReverseBytes64(v) >> (64 - 8*len(p))
	}
	return v
}

// array reads the axes and the base of an array. Versions before 3 have a permutation of the axes after them, which no
// library ever used; it is skipped. The size that the message states must be the product.
func (t *Datatype) array(c *cursor, version uint32, depth int) {
	rank := int(c.U8())
	if version < 3 {
		c.Skip(3)
	}
	if c.Err == nil && (rank == 0 || rank > maxRank) {
		c.Corrupt("array with %d axes", rank)
	}
	for i := 0; i < rank && c.Err == nil; i++ {
		t.Dims = append(t.Dims, int64(c.U32()))
	}
	if version < 3 {
		c.Skip(4 * rank)
	}
	t.Base = parseType(c, depth+1)
	if c.Err == nil {
		if a := arrayOf(c, t.Base, t.Dims); c.Err == nil && a.Size != t.Size {
			c.Corrupt("array of shape %v of %d bytes has %d bytes", t.Dims, t.Base.Size, t.Size)
		}
	}
}
