package meta

// VirtualSource is a dataset that has elements of a virtual dataset.
type VirtualSource struct {
	File string // "." for the same file; may contain a pattern such as %b
	Path string
}

// Mapping is a part of a virtual dataset: the k-th element of To is the k-th element of From in the source.
type Mapping struct {
	VirtualSource
	From, To Selection
}

// Sources returns the datasets that have elements of a virtual dataset, each once, in the order of the file. The error
// wraps ErrUnsupported for a dataset that is not virtual, ErrCorrupt for a corrupt list, or comes from the ReaderAt.
func (d *Dataset) Sources() (list []VirtualSource, err error) {
	all, err := d.Mappings()
	seen := make(map[VirtualSource]bool)
	for _, m := range all {
		if !seen[m.VirtualSource] {
			seen[m.VirtualSource] = true
			list = append(list, m.VirtualSource)
		}
	}
	return list, err
}

// Mappings returns the parts of a virtual dataset, in the order of the file. It returns the same errors as Sources.
func (d *Dataset) Mappings() (list []Mapping, err error) {
	defer guard(&err)
	switch {
	case d.Err != nil:
		return nil, d.Err
	case d.Layout.Kind != Virtual:
		return nil, refuse("layout %v has no sources", d.Layout.Kind)
	case d.Layout.Params.Addr == undef:
		return nil, nil
	}
	s := d.file.session(nil)
	p, err := globalHeaps{}.Object(s, d.Layout.Params.Addr, d.Layout.Params.Mask)
	if err != nil {
		return nil, inPath(err, d.Path)
	}
	c := &cursor{Src: s, B: p, At: s.Abs(d.Layout.Params.Addr), What: "list of virtual sources"}
	return parseMappings(c), inPath(c.Err, d.Path)
}

// Flags of a source in version 1 of the list, which does not store names again that an earlier source has.
const (
	sourceOfFile = 1 << iota // the file of another source
	sourceOfPath             // the path of another source
	sourceHere               // this file
)

// parseMappings reads the list of mappings: a version, their number, and for each the names of the source and two
// selections. It does not allocate by the number, which comes from the file, and ends with the bytes of the list.
func parseMappings(c *cursor) (list []Mapping) {
	version := c.Version(0, 1)
	n := c.Length()
	for i := uint64(0); i < n && c.Err == nil; i++ {
		m := Mapping{VirtualSource: virtualSource(c, version, list)}
		m.From, m.To = parseSelection(c), parseSelection(c)
		if c.Err == nil {
			list = append(list, m)
		}
	}
	return list
}

// virtualSource reads the names of the source that comes after the sources in before. A name may be stored as a
// reference to an earlier source.
func virtualSource(c *cursor, version uint8, before []Mapping) (v VirtualSource) {
	flags := uint8(0)
	if version > 0 {
		flags = c.U8()
	}
	other := func() (v VirtualSource) {
		i := c.Length()
		if c.Err == nil && i >= uint64(len(before)) {
			c.Corrupt("source %d shares a name with source %d", len(before), i)
		}
		if c.Err == nil {
			v = before[i].VirtualSource
		}
		return v
	}
	switch {
	case flags&sourceHere != 0:
		v.File = "."
	case flags&sourceOfFile != 0:
		v.File = other().File
	default:
		v.File = c.Cstring()
	}
	if flags&sourceOfPath != 0 {
		v.Path = other().Path
	} else {
		v.Path = c.Cstring()
	}
	return v
}
