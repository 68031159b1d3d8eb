package meta

// VirtualSource is a dataset that a virtual one has elements of.
type VirtualSource struct {
	File string // "." for the same file; may have a pattern such as %b in it
	Path string
}

// Sources returns the datasets that a virtual one has its elements of, each once, in the order of
// the file. The error wraps ErrUnsupported for a dataset that is not virtual, ErrCorrupt for a
// corrupt list, or is that of the ReaderAt.
func (d *Dataset) Sources() (list []VirtualSource, err error) {
	defer guard(&err)
	return d.sources()
}

func (d *Dataset) sources() ([]VirtualSource, error) {
	switch {
	case d.Err != nil:
		return nil, d.Err
	case d.Layout.Kind != Virtual:
		return nil, refuse("layout %v has no sources", d.Layout.Kind)
	case d.Layout.index.addr == undef:
		return nil, nil
	}
	s := d.file.session(nil)
	p, err := heaps{}.object(s, d.Layout.index.addr, d.Layout.index.mask)
	if err != nil {
		return nil, inPath(err, d.Path)
	}
	c := &cursor{src: s, b: p, at: s.abs(d.Layout.index.addr), what: "list of virtual sources"}
	return c.virtualSources(), inPath(c.err, d.Path)
}

// Flags of a source in version 1 of the list: what does not repeat is not stored.
const (
	sourceOfFile = 1 << iota // the file of another source
	sourceOfPath             // the path of another source
	sourceHere               // this file
)

// virtualSources reads the list: a version, a number, and for each source names and two selections.
func (c *cursor) virtualSources() (list []VirtualSource) {
	version := c.version(0, 1)
	n := c.length()
	seen := make(map[VirtualSource]bool)
	var all []VirtualSource
	for i := uint64(0); i < n && c.err == nil; i++ {
		v := c.virtualSource(version, all)
		c.selection() // of the source
		c.selection() // of the virtual dataset
		all = append(all, v)
		if c.err == nil && !seen[v] {
			seen[v] = true
			list = append(list, v)
		}
	}
	return list
}

// virtualSource reads the names of a source behind those before.
func (c *cursor) virtualSource(version uint8, before []VirtualSource) (v VirtualSource) {
	flags := uint8(0)
	if version > 0 {
		flags = c.u8()
	}
	other := func() (v VirtualSource) {
		i := c.length()
		if c.err == nil && i >= uint64(len(before)) {
			c.corrupt("source %d shares a name with source %d", len(before), i)
		}
		if c.err == nil {
			v = before[i]
		}
		return v
	}
	switch {
	case flags&sourceHere != 0:
		v.File = "."
	case flags&sourceOfFile != 0:
		v.File = other().File
	default:
		v.File = c.cstring()
	}
	if flags&sourceOfPath != 0 {
		v.Path = other().Path
	} else {
		v.Path = c.cstring()
	}
	return v
}

// Types of serialized selections.
const (
	selectNone = iota
	selectPoints
	selectHyperslabs
	selectAll
)

// selection skips a serialized selection of elements.
func (c *cursor) selection() {
	kind, version := c.u32(), c.u32()
	switch {
	case c.err != nil:
	case kind == selectHyperslabs:
		c.hyperslabs(version)
	case kind == selectNone, kind == selectAll:
		c.skip(8)
	default:
		c.unsupported("selection of kind %d", kind)
	}
}

// hyperslabs skips what follows the version of hyperslabs: regular ones have start, stride, count
// and block for each axis, others a number of blocks with two corners each.
func (c *cursor) hyperslabs(version uint32) {
	flags, width := uint8(0), 4
	switch version {
	case 1:
		c.skip(8)
	case 2:
		flags, width = c.u8(), 8
		c.skip(4)
	case 3:
		flags = c.u8()
		width = int(c.u8())
	default:
		c.unsupported("hyperslabs of version %d", version)
		return
	}
	rank := uint64(c.u32())
	if c.err == nil && (rank > maxRank || width != 2 && width != 4 && width != 8) {
		c.corrupt("hyperslabs of %d axes, %d bytes a number", rank, width)
		return
	}
	numbers := 4 * rank
	if flags&1 == 0 {
		blocks := c.uint(width)
		var ok bool
		if numbers, ok = product(blocks, 2*rank); !ok || numbers > uint64(c.left()) {
			c.corrupt("%d hyperslabs", blocks)
			return
		}
	}
	c.bytes(numbers * uint64(width))
}
