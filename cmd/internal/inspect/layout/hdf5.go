package layout

import (
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// readHDF5 lists all pieces of an HDF5 file in the order of their offsets: the structures that the
// metadata leads to, with the object that each belongs to, and the gaps between them.
func readHDF5(p *dataset.Target) (*Layout, error) {
	l := &Layout{Path: p.Path, Format: "hdf5", Maps: []Map{}}
	names := namesOf(p.Meta)
	at, gaps := int64(0), []gap(nil)
	for _, e := range p.Meta.Extents() {
		gaps = l.gap(gaps, at, e.Offset)
		piece := Piece{File: filepath.Base(p.Path), Offset: e.Offset, Size: e.Size, What: e.What}
		if d := names.data[e.Offset]; d != nil && e.Size == d.Layout.Size && d.Layout.Size > 0 {
			piece.records(d)
		} else if path := names.headers[e.Offset]; path != "" {
			piece.What += " of " + path
		}
		l.Pieces = append(l.Pieces, piece)
		at = max(at, e.Offset+e.Size)
	}
	gaps = l.gap(gaps, at, p.Meta.Size)
	l.chunks(p.Meta, gaps)
	for _, g := range gaps {
		l.Pieces[g.piece].What = g.describe()
	}
	for _, d := range p.Meta.Datasets() {
		if len(d.Dims) > 0 && !strings.HasPrefix(d.Path, "/penstock/") {
			l.Maps = append(l.Maps, mapOf(p.Path, d))
		}
	}
	return l, nil
}

// gap adds a piece, and a gap, for bytes [from, to) that no structure has; nothing if from is to.
func (l *Layout) gap(gaps []gap, from, to int64) []gap {
	if from >= to {
		return gaps
	}
	l.Pieces = append(l.Pieces, Piece{File: filepath.Base(l.Path), Offset: from, Size: to - from})
	return append(gaps, gap{from: from, to: to, piece: len(l.Pieces) - 1})
}

// names says which object is at an offset: by the offset of its header, and of its contiguous data.
type names struct {
	headers map[int64]string
	data    map[int64]*meta.Dataset
}

// namesOf collects the names of all objects. A hard link is another name of an object; the last
// name found is shown.
func namesOf(f *meta.File) names {
	n := names{map[int64]string{f.Root.HeaderAt: "/"}, map[int64]*meta.Dataset{}}
	for l := range f.Walk() {
		switch {
		case l.Kind == meta.Soft: // a soft link leads to an object that has its own name
		case l.Dataset != nil:
			n.headers[l.Dataset.HeaderAt] = l.Path
			if l.Dataset.Layout.Kind == meta.Contiguous {
				n.data[l.Dataset.Layout.Offset] = l.Dataset
			}
		case l.Group != nil:
			n.headers[l.Group.HeaderAt] = l.Path
		}
	}
	return n
}

// records names the contiguous data of d: penstock's checksums, its manifest, or records.
func (p *Piece) records(d *meta.Dataset) {
	field, isSums := strings.CutPrefix(d.Path, "/penstock/crc/")
	switch {
	case isSums:
		p.What, p.Field = "checksums", field
	case d.Path == dataset.ManifestPath:
		p.What = "manifest"
	case strings.HasPrefix(d.Path, "/penstock/"), len(d.Dims) == 0:
		p.What = "data of " + d.Path
	default:
		first, count := int64(0), d.Records()
		p.What, p.Field, p.First, p.Count = "records", d.Path[1:], &first, &count
	}
}

// mapOf returns how NumPy maps a dataset, or why it cannot.
func mapOf(path string, d *meta.Dataset) Map {
	m := Map{Field: d.Path[1:]}
	spec, err := d.Spec()
	if err == nil {
		err = d.Mappable()
	}
	if err != nil {
		m.Reason, _ = strings.CutSuffix(err.Error(), ": "+meta.ErrUnsupported.Error())
		return m
	}
	m.Python = dataset.Memmap(path, spec, d.Layout.Offset, d.Records())
	return m
}
