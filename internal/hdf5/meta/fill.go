package meta

// FillState says where the value of elements that were never written comes from.
type FillState uint8

// The states of a fill value.
const (
	FillDefault   FillState = iota // zero bytes
	FillUndefined                  // nobody's: elements have arbitrary values
	FillUser                       // Fill.Value
)

// Fill is the fill value of a dataset and when it is written.
type Fill struct {
	State FillState
	Value []byte // FillUser: one element as stored
	Alloc string // when storage is allocated: "early", "late", "incremental", "" if not stored
	Write string // when the fill value is written: "alloc", "never", "ifset", "" if not stored
}

var (
	allocTimes = []string{"", "early", "late", "incremental"}
	fillTimes  = []string{"alloc", "never", "ifset"}
)

func timeName(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return ""
}

// parseFill reads the fill value message, versions 1 to 3 (IV.A.2.f). The value matters to readers: chunks that were
// never written have no bytes in the file, and read as this value. Versions 1 and 2 have a byte that says whether the
// value is set. Version 3 has flags; without both flags the value is the default, zero.
func parseFill(c *cursor) Fill {
	var f Fill
	version := c.Version(1, 3)
	if version < 3 {
		f.Alloc, f.Write = timeName(allocTimes, c.U8()), timeName(fillTimes, c.U8())
		if defined := c.U8() != 0; !defined {
			if version == 1 {
				c.U32() // of a value that is not there
			}
			f.State = FillUndefined
			return f
		}
	} else {
		flags := c.U8()
		f.Alloc, f.Write = timeName(allocTimes, flags&3), timeName(fillTimes, flags>>2&3)
		if flags&0x10 != 0 {
			f.State = FillUndefined
		}
		if flags&0x20 == 0 {
			return f
		}
	}
	f.value(c)
	return f
}

// parseFillOld reads the fill value message of libhdf5 before 1.6, which has only size and value.
func parseFillOld(c *cursor) (f Fill) {
	f.value(c)
	return f
}

// value reads size and value. Size 0 means the default, and size -1 means undefined.
func (f *Fill) value(c *cursor) {
	n := c.U32()
	switch {
	case n == 1<<32-1:
		f.State = FillUndefined
	case n > 0:
		f.State = FillUser
		f.Value = append([]byte(nil), c.Bytes(uint64(n))...)
	}
}
